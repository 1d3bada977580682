use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// What resolution wants to know of a file, after symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileInfo {
    /// A directory.
    pub is_dir: bool,
    /// A regular file.
    pub is_file: bool,
    /// This process may execute it, or enter it where it is a directory.
    pub executable: bool,
}

/// The files, as far as resolution needs them.
pub trait FileSystem {
    /// What is at an absolute path.
    ///
    /// # Errors
    /// Those of `stat`.
    fn stat(&self, path: &Path) -> io::Result<FileInfo>;

    /// The first bytes of a regular file, `limit` at most.
    ///
    /// # Errors
    /// Those of opening and reading it.
    fn head(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>>;
}

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFileSystem;

impl FileSystem for OsFileSystem {
    fn stat(&self, path: &Path) -> io::Result<FileInfo> {
        let metadata = fs::metadata(path)?;
        Ok(FileInfo {
            is_dir: metadata.is_dir(),
            is_file: metadata.is_file(),
            executable: may_execute(path),
        })
    }

    fn head(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(limit);
        File::open(path)?
            .take(limit as u64)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The kernel's own answer, which knows groups, access lists and mounts without execution.
#[cfg(unix)]
fn may_execute(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// There is no such permission to ask for.
#[cfg(not(unix))]
fn may_execute(_path: &Path) -> bool {
    true
}
