//! What can fail, and what to do about it.

use std::fmt;
use std::path::PathBuf;

use crate::command::Candidate;

/// Which kind of failure it is; each becomes an exception class of its own in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What to start was described wrongly. Nothing was started.
    Config,
    /// No such command. Nothing was started.
    CommandNotFound,
    /// An argument can't be passed on without loss. Nothing was started.
    Quoting,
    /// The command was found but couldn't be started.
    Launch,
    /// The server wrote a frame over the limit; it is being ended.
    FrameTooLong,
    /// The server doesn't read its stdin any more.
    ServerClosedInput,
    /// Something that shouldn't happen, or use where it can't work (after a fork).
    Internal,
}

/// Where it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// While looking for the program.
    Resolve,
    /// While starting it.
    Launch,
    /// While it ran.
    Run,
    /// While it was ended.
    Close,
}

impl Stage {
    /// The stage's stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Resolve => "resolve",
            Stage::Launch => "launch",
            Stage::Run => "run",
            Stage::Close => "close",
        }
    }
}

/// One failure. `Display` is one or two plain sentences and never holds a secret.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Error {
    /// The kind.
    pub kind: ErrorKind,
    /// A stable name for programs, such as `"cwd-missing"`.
    pub code: &'static str,
    /// Where it failed.
    pub stage: Stage,
    /// What failed and why.
    pub message: String,
    /// What to do; empty where nothing can be said.
    pub remedy: String,
    /// The call to the operating system that failed.
    pub operation: Option<&'static str>,
    /// Its error number.
    pub native_code: Option<i32>,
    /// The file concerned.
    pub filename: Option<PathBuf>,
    /// Where the command was looked for.
    pub tried: Vec<Candidate>,
}

impl Error {
    /// An error without details.
    pub fn new(
        kind: ErrorKind,
        code: &'static str,
        stage: Stage,
        message: impl Into<String>,
    ) -> Self {
        Error {
            kind,
            code,
            stage,
            message: message.into(),
            remedy: String::new(),
            operation: None,
            native_code: None,
            filename: None,
            tried: Vec::new(),
        }
    }

    /// Says what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// Names the call that failed.
    #[must_use]
    pub fn operation(mut self, operation: &'static str) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Gives its error number.
    #[must_use]
    pub fn native_code(mut self, native_code: i32) -> Self {
        self.native_code = Some(native_code);
        self
    }

    /// Names the file concerned.
    #[must_use]
    pub fn filename(mut self, filename: impl Into<PathBuf>) -> Self {
        self.filename = Some(filename.into());
        self
    }

    /// Lists where the command was looked for.
    #[must_use]
    pub fn tried(mut self, tried: Vec<Candidate>) -> Self {
        self.tried = tried;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.remedy.is_empty() {
            write!(f, " {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
