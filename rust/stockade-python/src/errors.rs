//! The core's errors as the exceptions of `stockade._errors`.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stockade::{Error, ErrorKind};

use crate::resolved::Candidate;

fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Config => "config",
        ErrorKind::CommandNotFound => "command-not-found",
        ErrorKind::Quoting => "quoting",
        ErrorKind::Launch => "launch",
        ErrorKind::FrameTooLong => "frame-too-long",
        ErrorKind::ServerClosedInput => "server-closed-input",
        _ => "internal",
    }
}

/// The exception for an error; if that can't be made, the reason why.
pub(crate) fn raise(error: Error) -> PyErr {
    Python::attach(|py| make(py, error).unwrap_or_else(|failure| failure))
}

fn make(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    fields.set_item("code", error.code)?;
    fields.set_item("stage", error.stage.as_str())?;
    fields.set_item("remedy", error.remedy)?;
    fields.set_item("operation", error.operation)?;
    fields.set_item("native_code", error.native_code)?;
    fields.set_item(
        "filename",
        error.filename.map(std::path::PathBuf::into_os_string),
    )?;
    let tried: Vec<Candidate> = error.tried.into_iter().map(Candidate::from).collect();
    fields.set_item("tried", tried)?;
    let exception = py.import("stockade._errors")?.call_method1(
        "from_native",
        (kind_name(error.kind), error.message, fields),
    )?;
    Ok(PyErr::from_value(exception))
}
