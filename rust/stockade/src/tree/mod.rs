//! Owning what was started: the process tree, its pipes, its end.
//!
//! [`lifecycle`] decides what happens when, without touching anything; [`reactor`] is the one thread that does it for
//! all sessions; [`session`] is what a user holds.

#[cfg(target_os = "linux")]
#[path = "channel_linux.rs"]
mod channel;
#[cfg(target_os = "macos")]
#[path = "channel_macos.rs"]
mod channel;
// What only macOS uses is tested wherever it can run.
#[cfg(all(test, target_os = "linux"))]
mod channel_macos;
pub(crate) mod control;
pub(crate) mod lifecycle;
pub(crate) mod outlet;
pub(crate) mod poller;
#[path = "../../supervisor/protocol.rs"]
#[allow(dead_code, reason = "each side uses its half")]
pub(crate) mod protocol;
pub(crate) mod reactor;
pub(crate) mod report;
pub(crate) mod session;
pub(crate) mod sink;
pub(crate) mod watchers;
