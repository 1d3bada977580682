//! Starting a process: its pipes, its descriptors, its signals, and nothing of the host's.
//!
//! The host's memory is never copied: the child shares it until it executes (as `vfork` does), so the cost doesn't grow
//! with the host, and makes system calls only.

pub(crate) mod block;
pub(crate) mod failure;
#[cfg(target_os = "macos")]
mod helper_ffi;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
pub(crate) mod pipes;
#[cfg(target_os = "macos")]
mod program;

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

#[cfg(target_os = "linux")]
pub(crate) use image::Kept;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Ground, NOT_PROGRAMS, start};
#[cfg(target_os = "macos")]
pub(crate) use macos::{Ground, NOT_PROGRAMS, start};

use crate::Error;
use crate::command::{Environment, ResolvedCommand};
use crate::fork::HostFd;
use crate::launch::block::Block;
use crate::os_error::os_error;

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
            argv: Block::new(
                command
                    .argv
                    .iter()
                    .map(|argument| argument.as_encoded_bytes().to_vec()),
            )?,
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

impl Stdio<'static> {
    /// This process's own. A parent may have closed some of them: the server gets /dev/null there, as it would from a
    /// shell.
    pub(crate) fn own() -> Result<Self, Error> {
        use rustix::fs::{CWD, Mode, OFlags, openat};
        for fd in 0..3 {
            // SAFETY: asks about a number, whatever it is.
            if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
                let null = openat(CWD, c"/dev/null", OFlags::RDWR, Mode::empty())
                    .map_err(|errno| os_error("open", errno))?;
                // The lowest free number, which is this one.
                std::mem::forget(null);
            }
        }
        // SAFETY: the three are open, since what was missing has just been opened, and nobody closes them.
        let [stdin, stdout, stderr] = [0, 1, 2].map(|fd| unsafe { BorrowedFd::borrow_raw(fd) });
        Ok(Stdio {
            stdin,
            stdout,
            stderr,
        })
    }
}

/// A started server.
pub(crate) struct Started {
    pub(crate) pid: i32,
    /// The process above it that owns its tree.
    pub(crate) supervisor: i32,
    /// Speaks to the supervisor.
    pub(crate) control: HostFd,
}
