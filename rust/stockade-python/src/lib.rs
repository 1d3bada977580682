//! `stockade._native`: the executor for Python. Thin: it converts, and lets go of the GIL where something may take time.

mod errors;
mod resolved;
mod server;
mod session;
mod sink;
mod waker;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _native {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::resolved::{Candidate, ResolvedCommand};
    #[pymodule_export]
    use crate::server::Server;
    #[pymodule_export]
    use crate::session::{LargeFrame, Noise, Pending, Report, Session, StdoutWatch, start};
    #[pymodule_export]
    use crate::waker::Waker;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        stockade::prepare_for_forks();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pyfunction]
    fn build_info() -> BTreeMap<&'static str, String> {
        let profile = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        let features = if cfg!(feature = "faults") {
            "faults"
        } else {
            ""
        };
        BTreeMap::from([
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("target", stockade::TARGET.to_owned()),
            ("profile", profile.to_owned()),
            ("features", features.to_owned()),
        ])
    }

    #[pyfunction]
    fn run(py: Python<'_>, server: &Server) -> PyResult<i32> {
        let server = server.core();
        py.detach(|| stockade::run(&server))
            .map_err(crate::errors::raise)
    }

    /// One thing that this machine offers, or lacks.
    #[pyclass(frozen, get_all, module = "stockade._native")]
    struct Feature {
        name: String,
        available: bool,
        detail: String,
        remedy: String,
    }

    #[pyfunction]
    fn probe(py: Python<'_>) -> Vec<Feature> {
        let features = py.detach(stockade::probe);
        features
            .into_iter()
            .map(|feature| Feature {
                name: feature.name.to_owned(),
                available: feature.available,
                detail: feature.detail,
                remedy: feature.remedy,
            })
            .collect()
    }

    #[pyfunction]
    fn end_all(py: Python<'_>, seconds: f64) -> usize {
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let left = py.detach(|| stockade::end_all(limit));
        crate::sink::silence();
        left
    }

    /// One line as printable text.
    #[pyfunction]
    fn sanitise(data: &[u8]) -> String {
        stockade::stderr::text::sanitise(data)
    }

    #[pyfunction]
    fn live_sessions() -> usize {
        stockade::live_sessions()
    }
}
