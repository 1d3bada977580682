//! Speaking with the process above a server, its supervisor: requests one way, events the other.

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
#[path = "../../supervisor/protocol.rs"]
#[allow(dead_code, reason = "each side uses its half")]
pub(crate) mod protocol;
