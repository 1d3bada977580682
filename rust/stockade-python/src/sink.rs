//! Where stderr goes: a Python callable, a path or a descriptor.

use std::fs::File;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use stockade::{Sink, sink_error};

use crate::errors::raise;

/// Set when the interpreter is about to end: no thread may enter it any more.
static SILENT: AtomicBool = AtomicBool::new(false);

pub(crate) fn silence() {
    SILENT.store(true, Ordering::Release);
}

/// The core's sink for what Python gave.
pub(crate) fn make(sink: &Bound<'_, PyAny>) -> PyResult<Sink> {
    if sink.is_none() {
        return Ok(Sink::None);
    }
    if sink.is_callable() {
        return Ok(lines(sink.clone().unbind()));
    }
    if let Ok(fd) = sink.extract::<RawFd>() {
        let file = duplicate(fd).map_err(|error| unusable(&format!("descriptor {fd}"), &error))?;
        return Ok(Sink::File(file));
    }
    Ok(Sink::Path(sink.extract()?))
}

fn unusable(what: &str, error: &std::io::Error) -> PyErr {
    raise(sink_error(what, error))
}

fn duplicate(fd: RawFd) -> std::io::Result<File> {
    if fd < 0 {
        return Err(std::io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the number is borrowed for this call only, which fails where nothing is open under it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(borrowed.try_clone_to_owned()?.into())
}

/// Lines that are handed over at once: between two such calls the end of the interpreter is looked for.
const AT_ONCE: usize = 16;

fn lines(callable: Py<PyAny>) -> Sink {
    let mut callable = Some(callable);
    Sink::Lines(Box::new(move |lines: &[Vec<u8>]| {
        for some in lines.chunks(AT_ONCE) {
            if SILENT.load(Ordering::Acquire) {
                // A reference can't be given back without the interpreter: it is leaked, at the end of the process.
                std::mem::forget(callable.take());
                return;
            }
            if let Some(callable) = &callable {
                hand_over(callable, some);
            }
        }
    }))
}

/// Whoever is inside the interpreter while it ends is ended with it when he needs the GIL again (before Python 3.14, by
/// `pthread_exit`). That must not unwind into Rust, which would end the process: the thread waits for the end here.
struct WaitsForTheEnd;

impl Drop for WaitsForTheEnd {
    fn drop(&mut self) {
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}

#[inline(never)]
fn hand_over(callable: &Py<PyAny>, lines: &[Vec<u8>]) {
    let guard = WaitsForTheEnd;
    call(callable, lines);
    std::mem::forget(guard);
}

#[inline(never)]
fn call(callable: &Py<PyAny>, lines: &[Vec<u8>]) {
    Python::try_attach(|py| {
        let delivered = PyList::new(py, lines.iter().map(|line| PyBytes::new(py, line)))
            .and_then(|batch| callable.call1(py, (batch,)));
        if let Err(error) = delivered {
            error.write_unraisable(py, Some(callable.bind(py)));
        }
    });
}
