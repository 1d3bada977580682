//! What the operating system refused, as an error that says what to do.

use rustix::io::Errno;

use crate::{Error, ErrorKind, Stage};

/// The setting for the number of descriptors of the whole system.
const FILES_SETTING: &str = if cfg!(target_os = "macos") {
    "kern.maxfiles"
} else {
    "fs.file-max"
};

/// A launch error of the operating system's.
pub(crate) fn os_error(operation: &'static str, errno: Errno) -> Error {
    let reason = std::io::Error::from_raw_os_error(errno.raw_os_error());
    let remedy = match errno {
        Errno::MFILE => "Raise the limit of open files (ulimit -n), or close what isn't needed.",
        Errno::NFILE => &format!("The whole system is out of descriptors: raise {FILES_SETTING}."),
        Errno::NOMEM => "The system is out of memory: end something else first.",
        Errno::AGAIN => {
            "The limit of processes is reached: raise it (ulimit -u) or end something else first."
        }
        _ => "",
    };
    Error::new(
        ErrorKind::Launch,
        code_of(errno),
        Stage::Launch,
        format!(
            "The server could not be started: {operation} failed: {}.",
            plain(&reason)
        ),
    )
    .remedy(remedy)
    .operation(operation)
    .native_code(errno.raw_os_error())
}

pub(crate) fn code_of(errno: Errno) -> &'static str {
    match errno {
        Errno::MFILE | Errno::NFILE => "too-many-files",
        Errno::NOMEM => "out-of-memory",
        Errno::AGAIN => "too-many-processes",
        _ => "launch-failed",
    }
}

/// "No such file or directory (os error 2)" without its end, in lower case.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}
