//! A launch under way, a session, and what they give.

use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::Mutex;
use std::time::Duration;

use pyo3::exceptions::{PyEOFError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;
use stockade::frames::Frame;
use stockade::{Moment, Options, Received, Shutdown};

use crate::errors::raise;
use crate::resolved::ResolvedCommand;
use crate::server::Server;
use crate::waker::Waker;

/// From this size on a frame is made `bytes` off the event loop.
const LARGE: usize = 1024 * 1024;
/// How much of it is copied at once.
const PIECE: usize = 4 * 1024 * 1024;

fn seconds(value: f64) -> PyResult<Duration> {
    // A wait without end is written as infinity.
    if value == f64::INFINITY {
        return Ok(Duration::from_secs(u64::from(u32::MAX)));
    }
    Duration::try_from_secs_f64(value)
        .map(|wait| wait.min(Duration::from_secs(u64::from(u32::MAX))))
        .map_err(|_| PyValueError::new_err("a wait is a number of seconds, not negative"))
}

fn shutdown(
    close_grace: f64,
    terminate_grace: f64,
    kill_wait: f64,
    leave_descendants: bool,
) -> PyResult<Shutdown> {
    Ok(Shutdown {
        close_grace: seconds(close_grace)?,
        terminate_grace: seconds(terminate_grace)?,
        kill_wait: seconds(kill_wait)?,
        leave_descendants,
    })
}

#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "called from one place; a record would be one more class to keep in step"
)]
pub(crate) fn start(
    server: &Server,
    sink: &Bound<'_, PyAny>,
    max_frame_bytes: usize,
    close_grace: f64,
    terminate_grace: f64,
    kill_wait: f64,
    leave_descendants: bool,
    waker: &Waker,
    token: u64,
) -> PyResult<Pending> {
    let shutdown = shutdown(close_grace, terminate_grace, kill_wait, leave_descendants)?;
    let options = Options {
        sink: crate::sink::make(sink)?,
        max_frame_bytes,
        shutdown,
    };
    stockade::Session::launch_in_background(server.core(), options, waker.wake(), token)
        .map(Pending)
        .map_err(raise)
}

/// A launch under way.
#[pyclass(frozen, module = "stockade._native")]
pub(crate) struct Pending(stockade::Pending);

#[pymethods]
impl Pending {
    fn take(&self) -> PyResult<Option<Session>> {
        self.0
            .take()
            .map(|session| session.map(Session))
            .map_err(raise)
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

/// A line of stdout that can't be a message: it isn't UTF-8.
#[pyclass(frozen, module = "stockade._native")]
pub(crate) struct Noise(Vec<u8>);

#[pymethods]
impl Noise {
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0)
    }
}

/// A frame of a MiB or more.
#[pyclass(frozen, module = "stockade._native")]
pub(crate) struct LargeFrame(Mutex<Large>);

enum Large {
    Fresh(Vec<u8>),
    Made(Py<PyBytes>),
}

#[pymethods]
impl LargeFrame {
    fn to_bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        // Who comes second waits for the first one's copy, without the GIL.
        let mut state = self
            .0
            .lock_py_attached(py)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let length = match &*state {
            Large::Made(made) => return Ok(made.clone_ref(py)),
            Large::Fresh(bytes) => bytes.len(),
        };
        let made = unfilled(py, length)?;
        let Large::Fresh(bytes) = &mut *state else {
            unreachable!("asked above, under the same lock");
        };
        let mut bytes = std::mem::take(bytes);
        // SAFETY: nobody else knows this object yet, so its memory, of this length, may be filled while others run.
        let target = unsafe {
            let start = pyo3::ffi::PyBytes_AsString(made.as_ptr()).cast::<MaybeUninit<u8>>();
            std::slice::from_raw_parts_mut(start, bytes.len())
        };
        // From the back, giving back what was copied: two whole copies never exist.
        py.detach(|| {
            while !bytes.is_empty() {
                let from = bytes.len().saturating_sub(PIECE);
                for (to, byte) in target[from..].iter_mut().zip(&bytes[from..]) {
                    to.write(*byte);
                }
                bytes.truncate(from);
                bytes.shrink_to_fit();
            }
        });
        let made = made.unbind();
        *state = Large::Made(made.clone_ref(py));
        Ok(made)
    }
}

/// A bytes object whose content isn't there yet: zeroing many MiB would keep everybody waiting for the GIL.
fn unfilled(py: Python<'_>, length: usize) -> PyResult<Bound<'_, PyBytes>> {
    let length = pyo3::ffi::Py_ssize_t::try_from(length)?;
    // SAFETY: a null pointer asks for an uninitialised object, which is owned from here on; null is an error.
    let object = unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            pyo3::ffi::PyBytes_FromStringAndSize(std::ptr::null(), length),
        )?
    };
    Ok(object.cast_into()?)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Keeps the server's stdout open while an event loop watches its descriptor.
#[pyclass(frozen, module = "stockade._native")]
pub(crate) struct StdoutWatch(Mutex<Option<stockade::StdoutWatch>>);

#[pymethods]
impl StdoutWatch {
    fn fileno(&self) -> PyResult<RawFd> {
        let watch = lock(&self.0);
        let watch = watch
            .as_ref()
            .ok_or_else(|| PyValueError::new_err("the watch is closed"))?;
        watch.fd().map_err(raise)
    }

    fn close(&self) {
        let watch = lock(&self.0).take();
        drop(watch);
    }
}

/// How a server ended.
#[pyclass(frozen, get_all, module = "stockade._native")]
pub(crate) struct Report {
    returncode: Option<i32>,
    ended_by: &'static str,
    cause: String,
    descendants_killed: u32,
    unkillable: u32,
    stderr_tail: String,
    stderr_dropped: u64,
    duration: f64,
    user_time: f64,
    system_time: f64,
}

impl From<stockade::Report> for Report {
    fn from(report: stockade::Report) -> Self {
        Report {
            returncode: report.returncode,
            ended_by: report.ended_by.as_str(),
            cause: report.cause,
            descendants_killed: report.descendants_killed,
            unkillable: report.unkillable,
            stderr_tail: report.stderr_tail,
            stderr_dropped: report.stderr_dropped,
            duration: report.duration.as_secs_f64(),
            user_time: report.user_time.as_secs_f64(),
            system_time: report.system_time.as_secs_f64(),
        }
    }
}

/// One launched server and its process tree.
#[pyclass(frozen, module = "stockade._native")]
pub(crate) struct Session(stockade::Session);

fn moment(what: &str) -> PyResult<Moment> {
    Ok(match what {
        "readable" => Moment::Readable,
        "writable" => Moment::Writable,
        "exited" => Moment::Exited,
        "ended" => Moment::Ended,
        _ => {
            return Err(PyValueError::new_err(
                "one of readable, writable, exited, ended",
            ));
        }
    })
}

#[pymethods]
impl Session {
    #[getter]
    fn pid(&self) -> i32 {
        self.0.pid()
    }

    #[getter]
    fn command(&self) -> ResolvedCommand {
        ResolvedCommand(self.0.command().clone())
    }

    #[getter]
    fn returncode(&self) -> PyResult<Option<i32>> {
        self.0.returncode().map_err(raise)
    }

    #[getter]
    fn closing(&self) -> bool {
        self.0.closing()
    }

    #[getter]
    fn bytes_received(&self) -> PyResult<u64> {
        self.0.bytes_received().map_err(raise)
    }

    fn receive<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match py.detach(|| self.0.receive()).map_err(raise)? {
            Received::Frame(Frame {
                bytes,
                valid_utf8: false,
            }) => Ok(Bound::new(py, Noise(bytes))?.into_any()),
            Received::Frame(Frame { bytes, .. }) if bytes.len() >= LARGE => {
                Ok(Bound::new(py, LargeFrame(Mutex::new(Large::Fresh(bytes))))?.into_any())
            }
            Received::Frame(Frame { bytes, .. }) => Ok(PyBytes::new(py, &bytes).into_any()),
            Received::End => Err(PyEOFError::new_err("the server's stdout has ended")),
            _ => Ok(py.None().into_bound(py)),
        }
    }

    fn watch_stdout(&self) -> PyResult<Option<StdoutWatch>> {
        let watch = self.0.watch_stdout().map_err(raise)?;
        Ok(watch.map(|watch| StdoutWatch(Mutex::new(Some(watch)))))
    }

    fn send(&self, py: Python<'_>, frame: &Bound<'_, PyBytes>) -> PyResult<bool> {
        let bytes = frame.as_bytes();
        py.detach(|| {
            if bytes.contains(&b'\n') {
                None
            } else {
                Some(self.0.send(bytes))
            }
        })
        .ok_or_else(|| PyValueError::new_err("a frame holds no newline"))?
        .map_err(raise)
    }

    fn notify(&self, what: &str, waker: &Waker, token: u64) -> PyResult<()> {
        self.0
            .notify(moment(what)?, waker.wake(), token)
            .map_err(raise)
    }

    fn forget(&self, waker: &Waker, token: u64) {
        self.0.forget(&waker.wake(), token);
    }

    fn close(
        &self,
        close_grace: f64,
        terminate_grace: f64,
        kill_wait: f64,
        leave_descendants: bool,
    ) -> PyResult<()> {
        self.0.close(shutdown(
            close_grace,
            terminate_grace,
            kill_wait,
            leave_descendants,
        )?);
        Ok(())
    }

    fn kill(&self) {
        self.0.kill();
    }

    fn report(&self) -> PyResult<Option<Report>> {
        Ok(self.0.report().map_err(raise)?.map(Report::from))
    }

    fn stderr_tail<'py>(
        &self,
        py: Python<'py>,
        lines: usize,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let lines = py
            .detach(|| self.0.stderr(|ring| ring.tail(lines)))
            .map_err(raise)?;
        Ok(lines.iter().map(|line| PyBytes::new(py, line)).collect())
    }

    fn stderr_text(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            self.0
                .stderr(|ring| ring.tail(usize::MAX))
                .map(|lines| stockade::stderr::text::join(&lines))
        })
        .map_err(raise)
    }

    #[getter]
    fn stderr_lines_seen(&self) -> PyResult<u64> {
        self.0
            .stderr(stockade::stderr::Ring::lines_seen)
            .map_err(raise)
    }

    #[getter]
    fn stderr_bytes_seen(&self) -> PyResult<u64> {
        self.0
            .stderr(stockade::stderr::Ring::bytes_seen)
            .map_err(raise)
    }

    #[getter]
    fn stderr_dropped(&self) -> PyResult<u64> {
        self.0
            .stderr(stockade::stderr::Ring::dropped)
            .map_err(raise)
    }

    #[getter]
    fn sink_lost(&self) -> PyResult<u64> {
        self.0.sink_lost().map_err(raise)
    }

    #[cfg(feature = "faults")]
    fn inject_panic(&self) {
        self.0.inject_panic();
    }
}
