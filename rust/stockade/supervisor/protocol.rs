//! What the host and the supervisor say to each other over a `SOCK_SEQPACKET` pair: one fixed-size record a packet.
//!
//! Compiled into both sides, so it knows neither the standard library nor the rest of the crate.

/// The supervisor's end of the socket pair.
pub(crate) const CONTROL: i32 = 0;
/// A pidfd of the host, or nothing where the kernel has none (then the end of `CONTROL` alone tells).
pub(crate) const HOST: i32 = 1;
/// In front of a terminal or client (`stockade run`): the server's stdout, watched for a reader that has gone.
pub(crate) const STDOUT: i32 = 1;

/// Host to supervisor: the first record. `value` is the server's pid, `flag` 1 = leave descendants alone.
pub(crate) const START: u32 = 1;
/// Send signal `value` to the server's own process.
pub(crate) const SIGNAL: u32 = 2;
/// SIGTERM (and SIGCONT) to every process of the tree.
pub(crate) const TERMINATE: u32 = 3;
/// SIGKILL to every process of the tree until none is left, whatever `LEAVE` said.
pub(crate) const KILL: u32 = 4;
/// `flag` 1: when the server has ended, leave its descendants alone; 0: kill them.
pub(crate) const LEAVE: u32 = 5;

/// A request of the host.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// One of the constants above.
    pub(crate) kind: u32,
    /// The server's pid or a signal number.
    pub(crate) value: i32,
    /// A boolean.
    pub(crate) flag: u32,
}

/// Supervisor to host: the server's process has ended; `status` as of wait(2), with its resource use.
pub(crate) const EXITED: u32 = 1;
/// The server's process was stopped (`count` 1) or continued (`count` 0).
pub(crate) const STOPPED: u32 = 2;
/// While killing: so many processes are still there.
pub(crate) const LEFT: u32 = 3;
/// The tree is gone, or was left alone; `count` descendants had to be killed. The last event.
pub(crate) const EMPTY: u32 = 4;

/// What the supervisor reports.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// One of the constants above.
    pub(crate) kind: u32,
    /// Wait status.
    pub(crate) status: i32,
    /// A number of processes, or a boolean.
    pub(crate) count: u32,
    /// Always 0; keeps the layout free of padding.
    pub(crate) reserved: u32,
    /// Microseconds of user time.
    pub(crate) user_us: u64,
    /// Microseconds of system time.
    pub(crate) system_us: u64,
}
