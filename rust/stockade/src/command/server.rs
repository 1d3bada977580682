use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::quoted;
use crate::error::{Error, ErrorKind, Stage};

/// What a server gets of its parent's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inherit {
    /// The variables that programs need, and these names besides; `*` stands for any run of characters: `XDG_*`.
    Safe(Vec<OsString>),
    /// Everything.
    All,
    /// Nothing.
    None,
}

/// A server as it was described: checked, but not looked for yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    command: OsString,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
    inherit: Inherit,
}

impl Server {
    /// Describe a server. `cwd` is relative to this process's working directory; `env` comes on top of what is
    /// inherited, and of a repeated name the last value counts.
    ///
    /// # Errors
    /// `Config`: a blank command or working directory, a name of a variable that is blank or holds `=`, a NUL anywhere.
    /// The message never holds an argument or a value.
    pub fn new(
        command: OsString,
        args: Vec<OsString>,
        cwd: Option<PathBuf>,
        env: Vec<(OsString, OsString)>,
        inherit: Inherit,
    ) -> Result<Self, Error> {
        if is_blank(&command) {
            return Err(config("blank-command", "The command is blank.")
                .remedy("Give the name or the path of the program."));
        }
        if has_nul(&command) {
            return Err(nul(&format!("The command {}", quoted(&command))));
        }
        if let Some(position) = args.iter().position(|arg| has_nul(arg)) {
            return Err(nul(&format!("Argument {}", position + 1)));
        }
        if let Some(cwd) = &cwd {
            if is_blank(cwd.as_os_str()) {
                return Err(config("blank-cwd", "The working directory is blank.")
                    .remedy("Leave it out to use this process's own."));
            }
            if has_nul(cwd.as_os_str()) {
                return Err(nul(&format!("The working directory {}", quoted(cwd))));
            }
        }
        for (position, (name, value)) in env.iter().enumerate() {
            check_name(name, position, "env")?;
            if has_nul(value) {
                return Err(nul(&format!(
                    "The value of the environment variable {}",
                    quoted(name)
                )));
            }
        }
        if let Inherit::Safe(extra) = &inherit {
            for (position, name) in extra.iter().enumerate() {
                check_name(name, position, "inherit")?;
            }
        }
        Ok(Self {
            command,
            args,
            cwd,
            env,
            inherit,
        })
    }

    /// The command as it was written.
    #[must_use]
    pub fn command(&self) -> &OsStr {
        &self.command
    }

    /// Its arguments. They may hold secrets.
    #[must_use]
    pub fn args(&self) -> &[OsString] {
        &self.args
    }

    /// The working directory as it was written.
    #[must_use]
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// What it inherits.
    #[must_use]
    pub fn inherit(&self) -> &Inherit {
        &self.inherit
    }

    /// The environment that the server gets when its parent's is `parent`.
    #[must_use]
    pub fn environment(
        &self,
        parent: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Environment {
        Environment::compose(parent, &self.inherit, &self.env)
    }

    /// Whether the variable was given with the server, whatever is inherited.
    pub(super) fn sets(&self, name: &str) -> bool {
        self.env.iter().any(|(given, _)| given == name)
    }
}

/// Without arguments and values: they may hold secrets.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("command", &self.command)
            .field("arguments", &self.args.len())
            .field("cwd", &self.cwd)
            .field("variables", &self.env.len())
            .field("inherit", &self.inherit)
            .finish()
    }
}

fn check_name(name: &OsStr, position: usize, whose: &str) -> Result<(), Error> {
    let number = position + 1;
    if is_blank(name) {
        let message = format!("Name {number} in {whose} is blank.");
        return Err(config("env-name", message).remedy("Give each environment variable a name."));
    }
    // What stands behind it may be a value: someone wrote NAME=VALUE where a name belongs.
    let bytes = name.as_encoded_bytes();
    if let Some(at) = bytes.iter().position(|&byte| byte == b'=') {
        let before = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let message = format!(
            "Name {number} in {whose} holds \"=\", after {}.",
            quoted(before)
        );
        return Err(config("env-name", message).remedy("Give the name and the value apart."));
    }
    if has_nul(name) {
        return Err(nul(&format!("Name {number} in {whose}")));
    }
    Ok(())
}

fn config(code: &'static str, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, code, Stage::Resolve, message)
}

fn nul(subject: &str) -> Error {
    config(
        "nul",
        format!("{subject} holds a NUL character, which no program can be given."),
    )
    .remedy("Take the NUL character out.")
}

fn is_blank(text: &OsStr) -> bool {
    text.to_string_lossy().trim().is_empty()
}

fn has_nul(text: &OsStr) -> bool {
    text.as_encoded_bytes().contains(&0)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
