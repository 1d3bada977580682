//! The executor of stockade: it starts a stdio server, owns its whole process tree, and ends it so that nothing is
//! left. It knows neither Python nor the Model Context Protocol.
//!
//! ```no_run
//! use std::time::Duration;
//! use stockade::command::{Inherit, Server};
//! use stockade::{Options, Received, Session};
//!
//! let server = Server::new("cat".into(), vec![], None, vec![], Inherit::Safe(vec![]))?;
//! let session = Session::launch(&server, Options::default())?;
//! session.send(b"{\"jsonrpc\": \"2.0\"}")?;
//! while let Received::Frame(frame) = session.receive_blocking(Some(Duration::from_secs(5)))? {
//!     println!("{}", String::from_utf8_lossy(&frame.bytes));
//!     session.close(stockade::Shutdown::default());
//! }
//! println!("{}", session.wait(Some(Duration::from_secs(10))).expect("it has ended").cause);
//! # Ok::<(), stockade::Error>(())
//! ```
//!
//! The rooms, from the bottom: [`command`], [`frames`] and [`stderr`] are pure; `launch` starts a process; `tree` owns
//! what was started. A [`Session`] is one server; every method of it returns at once or says that it blocks. One thread
//! of the crate's own serves all sessions.
//!
//! On Linux the whole tree is owned, whatever its processes do. On macOS it is the server's process group: a descendant
//! that calls `setsid` or `setpgid` may escape and outlive its server, as [`probe()`] says.

#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
compile_error!(
    "stockade owns process trees on Linux and macOS; on this system it would have no means to do so"
);

pub mod command;
mod error;
#[cfg(unix)]
mod fork;
pub mod frames;
// The rooms of the macOS helper that touch no operating system: tested wherever the crate is.
#[cfg(all(test, unix))]
#[path = "../helper-macos/pure.rs"]
mod helper_macos;
#[cfg(unix)]
mod launch;
#[cfg(unix)]
mod os_error;
#[cfg(unix)]
mod owner;
#[cfg(unix)]
mod probe;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "macos")]
#[path = "run_macos.rs"]
mod run;
#[cfg(unix)]
mod runtime;
#[cfg(unix)]
mod signals;
pub mod stderr;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod wake;

pub use error::{Error, ErrorKind, Stage};
#[cfg(unix)]
pub use fork::prepare_for_forks;
#[cfg(unix)]
pub use probe::{Feature, probe};
#[cfg(unix)]
pub use run::run;
#[cfg(unix)]
pub use runtime::{end_all, live_sessions};
#[cfg(unix)]
pub use tree::background::Pending;
#[cfg(unix)]
pub use tree::{
    lifecycle::{EndedBy, Shutdown},
    report::Report,
    session::{Options, Received, Session, StdoutWatch, find_command},
    sink::{Sink, sink_error},
    watchers::Moment,
};
#[cfg(unix)]
pub use wake::{Wake, Waker};

/// The target that this build is for.
pub const TARGET: &str = env!("STOCKADE_TARGET");

/// Takes a lock although a thread that held it has panicked: the panic ended its session, and what it guards is valid
/// at every step.
#[cfg(unix)]
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
