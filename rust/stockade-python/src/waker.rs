//! Waking an event loop.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stockade::Wake;

use crate::errors::raise;

/// What the executor's threads use to wake one event loop.
#[pyclass(frozen, module = "stockade._native")]
pub(crate) struct Waker(Arc<stockade::Waker>);

impl Waker {
    pub(crate) fn wake(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.0) as Arc<dyn Wake>
    }
}

#[pymethods]
impl Waker {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Waker(Arc::new(stockade::Waker::new().map_err(raise)?)))
    }

    fn fileno(&self) -> PyResult<i32> {
        self.0
            .fd()
            .ok_or_else(|| PyValueError::new_err("the waker is closed"))
    }

    fn take(&self) -> Vec<u64> {
        self.0.take()
    }

    fn close(&self) {
        self.0.close();
    }
}
