use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// How a program is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CommandKind {
    /// By itself.
    Executable,
    /// An npm shim: node is started on its target.
    NodeShim,
    /// A batch file: cmd.exe is started on it.
    Batch,
}

impl CommandKind {
    /// The kind's stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executable => "executable",
            Self::NodeShim => "node-shim",
            Self::Batch => "batch",
        }
    }
}

/// A place where a command was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The place.
    pub path: PathBuf,
    /// Why it was or wasn't taken, in a few plain words.
    pub reason: Cow<'static, str>,
}

impl Candidate {
    pub(super) fn new(path: impl Into<PathBuf>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
        }
    }
}

/// What will be started, and how it was found.
#[derive(Clone, PartialEq, Eq)]
pub struct ResolvedCommand {
    /// How it is started.
    pub kind: CommandKind,
    /// The program's absolute path.
    pub program: PathBuf,
    /// What the program gets; the first is the command as it was written.
    pub argv: Vec<OsString>,
    /// The same as one line, where the system takes a line.
    pub command_line: Option<String>,
    /// Where the command was looked for, in order.
    pub tried: Vec<Candidate>,
    /// The server's working directory, absolute, where one was given.
    pub working_directory: Option<PathBuf>,
}

/// Without the arguments: they may hold secrets.
impl fmt::Debug for ResolvedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedCommand")
            .field("kind", &self.kind)
            .field("program", &self.program)
            .field("arguments", &self.argv.len().saturating_sub(1))
            .field("working_directory", &self.working_directory)
            .finish_non_exhaustive()
    }
}
