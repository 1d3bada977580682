//! The errors of resolution, in words.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use super::quoted;
use super::script::PlainText;
use crate::error::{Error, ErrorKind, Stage};

/// Why a program that was found can't be used.
pub(super) enum Problem {
    NotExecutable,
    NotAFile,
    NoShebang(PlainText),
    NoInterpreterNamed,
    NoInterpreter {
        name: OsString,
        on_path: bool,
        carriage_return: bool,
    },
    Unsplit(OsString),
    NoLoader(OsString),
}

impl Problem {
    pub(super) fn into_error(self, program: &Path) -> Error {
        let quoted_program = quoted(program);
        let (code, message, remedy) = match self {
            Self::NotExecutable => (
                "not-executable",
                format!("{quoted_program} may not be executed."),
                "Make it executable (chmod +x), or start it with its interpreter.".to_owned(),
            ),
            Self::NotAFile => (
                "not-executable",
                format!("{quoted_program} is not a regular file."),
                "Give the path of a program.".to_owned(),
            ),
            Self::NoShebang(text) => {
                let why = match text {
                    PlainText::Empty => "is empty",
                    PlainText::BehindMark => {
                        "begins with a byte order mark, so the system does not see its #! line"
                    }
                    PlainText::Other => {
                        "is a text file without a #! line, so the system does not know its interpreter"
                    }
                };
                let remedy = match text {
                    PlainText::Empty => "Install it again.",
                    PlainText::BehindMark => "Save it without a byte order mark.",
                    PlainText::Other => {
                        "Add a #! line, or use the interpreter as the command and the file as an argument."
                    }
                };
                (
                    "no-shebang",
                    format!("{quoted_program} {why}."),
                    remedy.to_owned(),
                )
            }
            Self::NoInterpreterNamed => (
                "no-interpreter",
                format!("The #! line of {quoted_program} names no interpreter."),
                "Complete the #! line.".to_owned(),
            ),
            Self::NoInterpreter {
                name,
                on_path,
                carriage_return,
            } => {
                let place = if on_path {
                    "is not on the server's PATH"
                } else {
                    "does not exist or may not be executed"
                };
                let message = format!(
                    "{quoted_program} is a script for {}, which {place}.",
                    quoted(&name)
                );
                let remedy = if carriage_return {
                    "Save the script with Unix line endings: the carriage return counts as part of the name.".to_owned()
                } else if on_path {
                    format!(
                        "Install {}, or pass a PATH in env that has it.",
                        quoted(&name)
                    )
                } else {
                    "Install the interpreter, or correct the #! line; a virtual environment that was moved must be made again."
                        .to_owned()
                };
                ("no-interpreter", message, remedy)
            }
            Self::Unsplit(argument) => (
                "no-interpreter",
                format!(
                    "The #! line of {quoted_program} makes env look for one program named {}.",
                    quoted(&argument)
                ),
                "Write \"#!/usr/bin/env -S\" before a command with arguments.".to_owned(),
            ),
            Self::NoLoader(loader) => (
                "no-interpreter",
                format!(
                    "{quoted_program} needs the loader {}, which does not exist.",
                    quoted(&loader)
                ),
                "It was built for another system or C library: install a build for this one."
                    .to_owned(),
            ),
        };
        launch(code, message).remedy(remedy).filename(program)
    }
}

/// How a search on PATH went.
pub(super) struct Search<'a> {
    pub(super) command: &'a OsStr,
    pub(super) searched: usize,
    pub(super) skipped: usize,
    pub(super) has_path: bool,
    /// PATH was given with the server.
    pub(super) own_path: bool,
    /// There is a file of that name in the working directory.
    pub(super) in_cwd: bool,
}

pub(super) fn not_on_path(search: &Search<'_>) -> Error {
    let folders = match search.searched {
        0 => "no folder could be searched".to_owned(),
        1 => "1 folder was searched".to_owned(),
        count => format!("{count} folders were searched"),
    };
    let path = if search.has_path {
        "on the server's PATH"
    } else {
        "in the default folders (the server has no PATH)"
    };
    let skipped = match search.skipped {
        0 => "",
        1 => ", 1 relative entry skipped",
        _ => ", relative entries skipped",
    };
    let command = quoted(search.command);
    let message = format!("The command {command} was not found {path}: {folders}{skipped}.");
    not_found(message)
        .remedy(not_on_path_remedy(search))
        .filename(search.command)
}

fn not_on_path_remedy(search: &Search<'_>) -> String {
    let name = search.command.to_string_lossy();
    if name.contains(char::is_whitespace) {
        return "Give the program alone as the command, and each argument in args.".to_owned();
    }
    if search.in_cwd {
        let path = quoted(format!("./{name}"));
        return format!("To start the file in the working directory, write {path}.");
    }
    let package = match &*name {
        "npx" | "npm" | "node" => Some("Node.js"),
        "uvx" | "uv" => Some("uv"),
        "docker" => Some("Docker"),
        "bunx" | "bun" => Some("Bun"),
        "deno" => Some("Deno"),
        "pipx" => Some("pipx"),
        "python" | "python3" => Some("Python"),
        _ => None,
    };
    let install = package.map_or_else(
        || "Install it".to_owned(),
        |package| format!("Install {package}"),
    );
    if search.own_path {
        format!(
            "{install}, give the full path, or add its folder to the PATH in env, which replaces the inherited one."
        )
    } else {
        format!("{install}, or give the full path of the program.")
    }
}

pub(super) fn no_such_file(command: &OsStr, path: &Path) -> Error {
    let name = command.to_string_lossy();
    let remedy = if name.starts_with('~') || name.contains('$') {
        "Nothing is expanded here, neither ~ nor $NAME: write the path out."
    } else if path.as_os_str() == command {
        "Correct the path, or install the program."
    } else {
        "A relative command is looked for in the server's working directory: correct it, or give the full path."
    };
    let message = if path.as_os_str() == command {
        format!("The command {} does not exist.", quoted(command))
    } else {
        format!(
            "The command {} does not exist: there is no {}.",
            quoted(command),
            quoted(path)
        )
    };
    not_found(message).remedy(remedy).filename(path)
}

pub(super) fn is_a_directory(path: &Path) -> Error {
    launch(
        "is-a-directory",
        format!("The command {} is a directory.", quoted(path)),
    )
    .remedy("Give the path of the program in it.")
    .filename(path)
}

pub(super) fn cwd_missing(cwd: &Path, error: &io::Error) -> Error {
    let message = format!("The working directory {} does not exist.", quoted(cwd));
    with_cause(launch("cwd-missing", message), Some(error))
        .remedy("Create it, or correct cwd; a relative one counts from this process's working directory.")
        .filename(cwd)
}

pub(super) fn cwd_not_a_directory(cwd: &Path, error: Option<&io::Error>) -> Error {
    let message = format!("The working directory {} is not a directory.", quoted(cwd));
    with_cause(launch("cwd-not-a-directory", message), error)
        .remedy("Give a directory as cwd.")
        .filename(cwd)
}

pub(super) fn cwd_no_access(cwd: &Path, error: Option<&io::Error>) -> Error {
    let message = format!("The working directory {} may not be entered.", quoted(cwd));
    with_cause(launch("cwd-no-access", message), error)
        .remedy(
            "Give this user the right to enter it and the directories above it, or choose another.",
        )
        .filename(cwd)
}

pub(super) fn resolve_failed(path: &Path, subject: &str, error: &io::Error) -> Error {
    let message = format!(
        "{subject} {} could not be looked up: {error}.",
        quoted(path)
    );
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "Give this user the right to enter the directories above it."
        }
        _ => "Check the path.",
    };
    with_cause(launch("resolve-failed", message), Some(error))
        .remedy(remedy)
        .filename(path)
}

fn with_cause(error: Error, cause: Option<&io::Error>) -> Error {
    match cause.and_then(io::Error::raw_os_error) {
        Some(code) => error.operation("stat").native_code(code),
        None => error,
    }
}

fn launch(code: &'static str, message: String) -> Error {
    Error::new(ErrorKind::Launch, code, Stage::Resolve, message)
}

fn not_found(message: String) -> Error {
    Error::new(
        ErrorKind::CommandNotFound,
        "command-not-found",
        Stage::Resolve,
        message,
    )
}
