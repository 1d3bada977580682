//! Resolution as Unix does it, told step by step.

use std::borrow::Cow;
use std::env;
use std::ffi::OsStr;
use std::io::{self, ErrorKind::NotADirectory, ErrorKind::NotFound, ErrorKind::PermissionDenied};
use std::path::{Path, PathBuf};

use super::elf;
use super::environment::Environment;
use super::files::FileSystem;
use super::refusal::{self, Problem};
use super::resolved::{Candidate, CommandKind, ResolvedCommand};
use super::script::{self, EnvTarget, Form};
use super::server::Server;
use crate::error::Error;

/// Where commands are looked for when there is no `PATH` at all.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

const FOUND: &str = "found";

pub(super) fn resolve(
    server: &Server,
    environment: &Environment,
    working_directory: &Path,
    files: &dyn FileSystem,
) -> Result<ResolvedCommand, Error> {
    let cwd = server.cwd().map(|cwd| working_directory.join(cwd));
    if let Some(cwd) = &cwd {
        check_cwd(cwd, files)?;
    }
    let search = Search {
        server,
        environment,
        cwd: cwd.as_deref().unwrap_or(working_directory),
        files,
    };
    let (program, tried) = if has_slash(server.command()) {
        search.named()?
    } else {
        search.on_path()?
    };
    let argv = [server.command()]
        .into_iter()
        .chain(server.args().iter().map(|arg| &**arg));
    Ok(ResolvedCommand {
        kind: CommandKind::Executable,
        program,
        argv: argv.map(OsStr::to_os_string).collect(),
        command_line: None,
        tried,
        working_directory: cwd,
    })
}

fn check_cwd(cwd: &Path, files: &dyn FileSystem) -> Result<(), Error> {
    match files.stat(cwd) {
        Ok(info) if !info.is_dir => Err(refusal::cwd_not_a_directory(cwd, None)),
        Ok(info) if !info.executable => Err(refusal::cwd_no_access(cwd, None)),
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind() {
            NotFound => refusal::cwd_missing(cwd, &error),
            NotADirectory => refusal::cwd_not_a_directory(cwd, Some(&error)),
            PermissionDenied => refusal::cwd_no_access(cwd, Some(&error)),
            _ => refusal::resolve_failed(cwd, "The working directory", &error),
        }),
    }
}

/// What a place turned out to be.
enum Place {
    Program,
    Directory,
    NotExecutable,
    NotAFile,
    Failed(io::Error),
}

struct Search<'a> {
    server: &'a Server,
    environment: &'a Environment,
    /// Where the server will run, absolute.
    cwd: &'a Path,
    files: &'a dyn FileSystem,
}

impl Search<'_> {
    /// The command is a path.
    fn named(&self) -> Result<(PathBuf, Vec<Candidate>), Error> {
        let command = self.server.command();
        let path = self.cwd.join(command);
        let place = self.look_at(&path);
        let tried = vec![Candidate::new(&path, describe(&place))];
        let error = match place {
            Place::Program => match self.check_form(&path) {
                Ok(()) => return Ok((path, tried)),
                Err(problem) => problem.into_error(&path),
            },
            Place::Directory => refusal::is_a_directory(&path),
            Place::NotExecutable => Problem::NotExecutable.into_error(&path),
            Place::NotAFile => Problem::NotAFile.into_error(&path),
            Place::Failed(error) if matches!(error.kind(), NotFound | NotADirectory) => {
                refusal::no_such_file(command, &path)
            }
            Place::Failed(error) => refusal::resolve_failed(&path, "The command", &error),
        };
        Err(error.tried(tried))
    }

    /// The command is a name: the folders of the server's own PATH, and nothing else.
    fn on_path(&self) -> Result<(PathBuf, Vec<Candidate>), Error> {
        let command = self.server.command();
        let path = self.environment.get(OsStr::new("PATH"));
        let mut tried = Vec::new();
        let mut unusable = None;
        let mut searched = 0;
        for folder in env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))) {
            let candidate = folder.join(command);
            if !folder.is_absolute() {
                tried.push(Candidate::new(candidate, skipped(&folder)));
                continue;
            }
            searched += 1;
            let place = self.look_at(&candidate);
            tried.push(Candidate::new(&candidate, describe(&place)));
            match place {
                Place::Program => {
                    return match self.check_form(&candidate) {
                        Ok(()) => Ok((candidate, tried)),
                        Err(problem) => Err(problem.into_error(&candidate).tried(tried)),
                    };
                }
                // The search goes on, as execvp's does.
                Place::NotExecutable if unusable.is_none() => unusable = Some(candidate),
                _ => {}
            }
        }
        let error = match unusable {
            Some(candidate) => Problem::NotExecutable.into_error(&candidate),
            None => refusal::not_on_path(&refusal::Search {
                command,
                searched,
                skipped: tried.len() - searched,
                has_path: path.is_some(),
                own_path: self.server.sets("PATH"),
                in_cwd: self
                    .files
                    .stat(&self.cwd.join(command))
                    .is_ok_and(|info| info.is_file),
            }),
        };
        Err(error.tried(tried))
    }

    fn look_at(&self, path: &Path) -> Place {
        match self.files.stat(path) {
            Ok(info) if info.is_dir => Place::Directory,
            Ok(info) if !info.is_file => Place::NotAFile,
            Ok(info) if !info.executable => Place::NotExecutable,
            Ok(_) => Place::Program,
            Err(error) => Place::Failed(error),
        }
    }

    /// Whether the kernel will know what to do with the program. What can't be read isn't judged: programs may be
    /// executable without being readable.
    fn check_form(&self, program: &Path) -> Result<(), Problem> {
        let Ok(head) = self.files.head(program, script::HEAD) else {
            return Ok(());
        };
        match script::form(&head) {
            Form::PlainText(text) => Err(Problem::NoShebang(text)),
            Form::Binary => match elf::loader(&head).map(script::as_name) {
                Some(loader) if !self.is_program(&loader) => {
                    Err(Problem::NoLoader(loader.into_owned()))
                }
                _ => Ok(()),
            },
            Form::Script {
                interpreter: b"", ..
            } => Err(Problem::NoInterpreterNamed),
            Form::Script {
                interpreter,
                argument,
                carriage_return,
            } => {
                let name = script::as_name(interpreter);
                if !self.is_program(&name) {
                    let name = name.into_owned();
                    return Err(Problem::NoInterpreter {
                        name,
                        on_path: false,
                        carriage_return,
                    });
                }
                if script::is_env(interpreter) {
                    self.check_env(argument, carriage_return)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// What `env` will look for on the server's PATH.
    fn check_env(&self, argument: &[u8], carriage_return: bool) -> Result<(), Problem> {
        match script::env_target(argument, cfg!(not(target_os = "macos"))) {
            EnvTarget::Unknown => Ok(()),
            EnvTarget::Unsplit(argument) => {
                Err(Problem::Unsplit(script::as_name(argument).into_owned()))
            }
            EnvTarget::Name(name) => {
                let name = script::as_name(name);
                if self.env_finds(&name) {
                    return Ok(());
                }
                let on_path = !has_slash(&name);
                Err(Problem::NoInterpreter {
                    name: name.into_owned(),
                    on_path,
                    carriage_return,
                })
            }
        }
    }

    fn env_finds(&self, name: &OsStr) -> bool {
        if has_slash(name) {
            return self.is_program(name);
        }
        let path = self
            .environment
            .get(OsStr::new("PATH"))
            .unwrap_or(OsStr::new(DEFAULT_PATH));
        // env itself searches relative folders as well, in the server's working directory.
        env::split_paths(path).any(|folder| self.is_program(folder.join(name).as_os_str()))
    }

    fn is_program(&self, path: &OsStr) -> bool {
        matches!(self.look_at(&self.cwd.join(path)), Place::Program)
    }
}

fn has_slash(command: &OsStr) -> bool {
    command.as_encoded_bytes().contains(&b'/')
}

fn describe(place: &Place) -> Cow<'static, str> {
    match place {
        Place::Program => FOUND.into(),
        Place::Directory => "is a directory".into(),
        Place::NotExecutable => "is not executable".into(),
        Place::NotAFile => "is not a regular file".into(),
        Place::Failed(error) => match error.kind() {
            NotFound => "does not exist".into(),
            NotADirectory => "lies in something that is not a directory".into(),
            PermissionDenied => "lies in a directory without access".into(),
            _ => error.to_string().into(),
        },
    }
}

fn skipped(folder: &Path) -> &'static str {
    if folder.as_os_str().is_empty() {
        "skipped: an empty entry of PATH means the current directory"
    } else {
        "skipped: a relative entry of PATH depends on the current directory"
    }
}

#[cfg(all(test, unix))]
#[path = "resolve_unix_tests.rs"]
mod tests;
