//! Starting a process: its pipes, its descriptors, its signals, and nothing of the host's.
//!
//! The host's memory is never copied: the child shares it until it executes (as `vfork` does), so the cost doesn't grow
//! with the host, and makes system calls only.

pub(crate) mod background;
pub(crate) mod block;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
pub(crate) mod pipes;

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

#[cfg(target_os = "linux")]
pub(crate) use image::Kept;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Ground, start};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{Ground, start};

use crate::command::{Environment, ResolvedCommand};
use crate::fork::HostFd;
use crate::launch::block::Block;
use crate::{Error, ErrorKind, Stage};

/// Everything that a child needs, made before it exists.
pub(crate) struct Plan {
    program: std::ffi::CString,
    argv: Block,
    environment: Block,
    directory: Option<std::ffi::CString>,
}

impl Plan {
    pub(crate) fn new(command: &ResolvedCommand, environment: &Environment) -> Result<Plan, Error> {
        let c_string = |text: &std::ffi::OsStr| block::c_string(text.as_encoded_bytes().to_vec());
        Ok(Plan {
            program: c_string(command.program.as_os_str())?,
            argv: Block::new(command.argv.iter().map(|argument| argument.as_encoded_bytes().to_vec()))?,
            environment: Block::new(environment.iter().map(|(name, value)| {
                [name.as_encoded_bytes(), b"=", value.as_encoded_bytes()].concat()
            }))?,
            directory: command
                .working_directory
                .as_ref()
                .map(|directory| c_string(directory.as_os_str()))
                .transpose()?,
        })
    }

    fn directory(&self) -> Option<&CStr> {
        self.directory.as_deref()
    }
}

/// What the server gets as 0, 1 and 2.
pub(crate) struct Stdio<'a> {
    pub(crate) stdin: BorrowedFd<'a>,
    pub(crate) stdout: BorrowedFd<'a>,
    pub(crate) stderr: BorrowedFd<'a>,
}

/// A started server.
pub(crate) struct Started {
    pub(crate) pid: i32,
    /// The process above it that owns its tree.
    pub(crate) supervisor: i32,
    /// Speaks to the supervisor.
    pub(crate) control: HostFd,
}

/// A launch error of the operating system's.
pub(crate) fn os_error(operation: &'static str, errno: rustix::io::Errno) -> Error {
    let reason = std::io::Error::from_raw_os_error(errno.raw_os_error());
    let remedy = match errno {
        rustix::io::Errno::MFILE => "Raise the limit of open files (ulimit -n), or close what isn't needed.",
        rustix::io::Errno::NFILE => "The whole system is out of descriptors: raise fs.file-max.",
        rustix::io::Errno::NOMEM => "The system is out of memory: end something else first.",
        rustix::io::Errno::AGAIN => "The limit of processes is reached: raise it (ulimit -u) or end something else first.",
        _ => "",
    };
    Error::new(
        ErrorKind::Launch,
        code_of(errno),
        Stage::Launch,
        format!("The server could not be started: {operation} failed: {}.", plain(&reason)),
    )
    .remedy(remedy)
    .operation(operation)
    .native_code(errno.raw_os_error())
}

fn code_of(errno: rustix::io::Errno) -> &'static str {
    match errno {
        rustix::io::Errno::MFILE | rustix::io::Errno::NFILE => "too-many-files",
        rustix::io::Errno::NOMEM => "out-of-memory",
        rustix::io::Errno::AGAIN => "too-many-processes",
        _ => "launch-failed",
    }
}

/// "No such file or directory (os error 2)" without its end, in lower case.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
