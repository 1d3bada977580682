//! A file system in memory, for the tests of resolution.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::command::files::{FileInfo, FileSystem};

const ELF: &[u8] = b"\x7FELF";

#[derive(Clone)]
pub(super) enum Node {
    Directory {
        executable: bool,
    },
    File {
        executable: bool,
        head: Vec<u8>,
    },
    /// Executable, but not readable.
    Unreadable,
    Fifo,
    Error(i32),
}

/// A file system in memory. A path that isn't in it doesn't exist.
#[derive(Default, Clone)]
pub(super) struct Model {
    nodes: BTreeMap<PathBuf, Node>,
    /// How often something was looked at.
    pub(super) looked: Cell<usize>,
}

impl Model {
    pub(super) fn with(mut self, path: &str, node: Node) -> Self {
        self.nodes.insert(path.into(), node);
        self
    }

    pub(super) fn program(self, path: &str) -> Self {
        self.script(path, ELF)
    }

    pub(super) fn script(self, path: &str, head: &[u8]) -> Self {
        self.with(
            path,
            Node::File {
                executable: true,
                head: head.to_vec(),
            },
        )
    }

    pub(super) fn data(self, path: &str) -> Self {
        self.with(
            path,
            Node::File {
                executable: false,
                head: b"data".to_vec(),
            },
        )
    }

    pub(super) fn directory(self, path: &str) -> Self {
        self.with(path, Node::Directory { executable: true })
    }
}

impl FileSystem for Model {
    fn stat(&self, path: &Path) -> io::Result<FileInfo> {
        self.looked.set(self.looked.get() + 1);
        assert!(path.is_absolute(), "{}", path.display());
        let info = |is_dir, is_file, executable| {
            Ok(FileInfo {
                is_dir,
                is_file,
                executable,
            })
        };
        match self.nodes.get(path) {
            Some(Node::Directory { executable }) => info(true, false, *executable),
            Some(Node::File { executable, .. }) => info(false, true, *executable),
            Some(Node::Unreadable) => info(false, true, true),
            Some(Node::Fifo) => info(false, false, true),
            Some(Node::Error(errno)) => Err(io::Error::from_raw_os_error(*errno)),
            None => {
                let through_file =
                    |path: &Path| matches!(self.nodes.get(path), Some(Node::File { .. }));
                let errno = if path.ancestors().skip(1).any(through_file) {
                    errno::ENOTDIR
                } else {
                    errno::ENOENT
                };
                Err(io::Error::from_raw_os_error(errno))
            }
        }
    }

    fn head(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        match self.nodes.get(path) {
            Some(Node::File { head, .. }) => Ok(head[..head.len().min(limit)].to_vec()),
            _ => Err(io::Error::from_raw_os_error(errno::EACCES)),
        }
    }
}

/// Error numbers, as this system counts them.
pub(super) mod errno {
    pub(in super::super) const ENOENT: i32 = rustix::io::Errno::NOENT.raw_os_error();
    pub(in super::super) const EACCES: i32 = rustix::io::Errno::ACCESS.raw_os_error();
    pub(in super::super) const ENOTDIR: i32 = rustix::io::Errno::NOTDIR.raw_os_error();
    pub(in super::super) const ELOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();
    pub(in super::super) const ENAMETOOLONG: i32 = rustix::io::Errno::NAMETOOLONG.raw_os_error();
    pub(in super::super) const EIO: i32 = rustix::io::Errno::IO.raw_os_error();
}
