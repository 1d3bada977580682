//! What to start: the server as it was described, the environment it gets, and the program that its command means.
//!
//! Nothing here starts anything. The only contact with the system is [`FileSystem`], which can be a model.

mod elf;
mod environment;
mod files;
mod refusal;
mod resolve_unix;
mod resolved;
mod script;
mod server;

use std::path::Path;

pub use environment::Environment;
pub use files::{FileInfo, FileSystem, OsFileSystem};
pub use resolved::{Candidate, CommandKind, ResolvedCommand};
pub use server::{Inherit, Server};

use crate::error::Error;

/// Find the program that a server's command means.
///
/// `environment` is the server's own, as [`Server::environment`] gives it: its `PATH` counts, not this process's.
/// `working_directory` is this process's, absolute. Blocks on the file system.
///
/// # Errors
/// `CommandNotFound`, with every place that was tried; `Launch` for a working directory or a program that is there but
/// can't be used.
pub fn resolve(
    server: &Server,
    environment: &Environment,
    working_directory: &Path,
    files: &dyn FileSystem,
) -> Result<ResolvedCommand, Error> {
    resolve_unix::resolve(server, environment, working_directory, files)
}

/// A command, name or path as it appears in a message: quoted, on one line.
fn quoted(text: impl AsRef<std::ffi::OsStr>) -> String {
    format!("{:?}", text.as_ref().to_string_lossy())
}
