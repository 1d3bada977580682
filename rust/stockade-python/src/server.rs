//! What to start.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stockade::command::Inherit;

use crate::errors::raise;
use crate::resolved::ResolvedCommand;

/// What to start, checked when built.
#[pyclass(frozen, module = "stockade._native")]
pub(crate) struct Server(Arc<stockade::command::Server>);

impl Server {
    pub(crate) fn core(&self) -> Arc<stockade::command::Server> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Server {
    #[new]
    fn new(
        command: OsString,
        args: Vec<OsString>,
        cwd: Option<PathBuf>,
        env: Vec<(OsString, OsString)>,
        inherit: &str,
        extra: Vec<OsString>,
    ) -> PyResult<Self> {
        let inherit = match inherit {
            "safe" => Inherit::Safe(extra),
            "all" => Inherit::All,
            "none" => Inherit::None,
            _ => {
                return Err(PyValueError::new_err(
                    "inherit is \"safe\", \"all\" or \"none\"",
                ));
            }
        };
        let server =
            stockade::command::Server::new(command, args, cwd, env, inherit).map_err(raise)?;
        Ok(Server(Arc::new(server)))
    }

    fn resolve(&self, py: Python<'_>) -> PyResult<ResolvedCommand> {
        // With the GIL: Python code changes the environment with it only.
        let environment = self.0.environment(std::env::vars_os());
        py.detach(|| stockade::find_command(&self.0, &environment))
            .map(ResolvedCommand)
            .map_err(raise)
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let environment = self.0.environment(std::env::vars_os());
        environment
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}
