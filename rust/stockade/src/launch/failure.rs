//! A failed start as an error: which step, why, and what to do.

use rustix::io::Errno;

use crate::launch::{NOT_PROGRAMS, Plan};
use crate::os_error::{code_of, os_error, plain};
use crate::{Error, ErrorKind, Stage};

/// Where a start failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// Before the server was on its way.
    Preparation,
    /// Entering the working directory.
    Directory,
    /// Executing the program.
    Execution,
}

/// The error of a step that failed in a child.
pub(crate) fn start_error(at: At, operation: &'static str, errno: Errno, plan: &Plan) -> Error {
    let program = plan.program.to_string_lossy();
    let reason = plain(&std::io::Error::from_raw_os_error(errno.raw_os_error()));
    let launch = |code, message: String, remedy: &str| {
        Error::new(ErrorKind::Launch, code, Stage::Launch, message)
            .remedy(remedy)
            .operation(operation)
            .native_code(errno.raw_os_error())
            .filename(program.as_ref())
    };
    match (at, errno) {
        (At::Execution, Errno::NOENT) => launch(
            "no-interpreter",
            format!(
                "{program} could not be started: the file is there, but the interpreter or loader that it names is not."
            ),
            "Install what it was built for, or start it by its interpreter: python3 SCRIPT, node SCRIPT.",
        ),
        (At::Execution, errno) if NOT_PROGRAMS.contains(&errno) => launch(
            "not-a-program",
            format!(
                "{program} could not be started: it is no program for this machine, nor a script with a first line such as #!/bin/sh."
            ),
            "Start it by its interpreter: python3 SCRIPT, node SCRIPT.",
        ),
        (At::Execution, Errno::ACCESS | Errno::PERM) => launch(
            "not-executable",
            format!("{program} could not be started: {reason}."),
            "Check its permissions, and whether it lies on a file system mounted noexec.",
        ),
        (At::Execution, Errno::TOOBIG) => launch(
            "arguments-too-long",
            format!(
                "{program} could not be started: its arguments and environment are too long together."
            ),
            "Pass long data in a file.",
        ),
        (At::Execution, Errno::TXTBSY) => launch(
            "file-busy",
            format!("{program} could not be started: somebody has it open for writing."),
            "Wait until it is written, then try again.",
        ),
        (At::Directory, _) => {
            let directory = plan.directory().unwrap_or_default().to_string_lossy();
            launch(
                "cwd-unusable",
                format!("The working directory {directory} can't be entered: {reason}."),
                "",
            )
            .filename(directory.as_ref())
        }
        (_, Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
            os_error(operation, errno)
        }
        _ => launch(
            code_of(errno),
            format!("{program} could not be started: {operation} failed: {reason}."),
            "",
        ),
    }
}
