//! What a command was resolved to.

use std::ffi::OsString;

use pyo3::prelude::*;

/// A place where the command was looked for.
#[pyclass(frozen, get_all, module = "stockade._native")]
#[derive(Clone)]
pub(crate) struct Candidate {
    path: OsString,
    reason: String,
}

impl From<stockade::command::Candidate> for Candidate {
    fn from(candidate: stockade::command::Candidate) -> Self {
        Candidate {
            path: candidate.path.into_os_string(),
            reason: candidate.reason.into_owned(),
        }
    }
}

#[pymethods]
impl Candidate {
    fn __repr__(&self) -> String {
        format!(
            "Candidate({:?}, {:?})",
            self.path.to_string_lossy(),
            self.reason
        )
    }
}

/// What will be started, and how it was found.
#[pyclass(frozen, module = "stockade._native")]
pub(crate) struct ResolvedCommand(pub(crate) stockade::command::ResolvedCommand);

#[pymethods]
impl ResolvedCommand {
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.as_str()
    }

    #[getter]
    fn program(&self) -> OsString {
        self.0.program.clone().into_os_string()
    }

    #[getter]
    fn argv(&self) -> Vec<OsString> {
        self.0.argv.clone()
    }

    #[getter]
    fn command_line(&self) -> Option<String> {
        self.0.command_line.clone()
    }

    #[getter]
    fn tried(&self) -> Vec<Candidate> {
        self.0.tried.iter().cloned().map(Candidate::from).collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "ResolvedCommand(kind={:?}, program={:?})",
            self.0.kind.as_str(),
            self.0.program.to_string_lossy()
        )
    }
}
