//! How a server ended, in numbers and in plain words.

use std::fmt::Write;
use std::time::Duration;

use crate::tree::lifecycle::{EndedBy, Fault, Lifecycle};

/// How a server ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// Its exit status, or minus the signal that killed it; None where it isn't known.
    pub returncode: Option<i32>,
    /// What ended it.
    pub ended_by: EndedBy,
    /// The same in plain words.
    pub cause: String,
    /// Processes of its tree that outlived it and were killed.
    pub descendants_killed: u32,
    /// Processes of its tree that still lived when the wait for them ended.
    pub unkillable: u32,
    /// The end of its stderr as printable text.
    pub stderr_tail: String,
    /// Lines of its stderr that the ring had to drop.
    pub stderr_dropped: u64,
    /// From its start to its exit.
    pub duration: Duration,
    /// Processor time in user mode, of it and what it has waited for.
    pub user_time: Duration,
    /// Processor time in the kernel.
    pub system_time: Duration,
}

/// What a wait status says, as Python's subprocess has it.
pub(crate) fn returncode(status: i32) -> i32 {
    match status & 0x7f {
        0 => status >> 8 & 0xff,
        signal => -signal,
    }
}

/// Why it ended. `out_of_memory`: the kernel's killer was at work meanwhile.
pub(crate) fn cause(life: &Lifecycle, out_of_memory: bool) -> String {
    let mut text = match life.exit.map(|exit| returncode(exit.status)) {
        Some(code) if code >= 0 => format!("exited with {code}"),
        Some(signal) => format!("killed by {}", signal_name(-signal)),
        None if life.owner_killed => "killed with its supervisor".to_owned(),
        None => "still there: the kernel has not ended it".to_owned(),
    };
    let killed = life.exit.is_some_and(|exit| exit.status & 0x7f == 9);
    match life.fault {
        Some(Fault::FrameTooLong) => text.push_str(" after it wrote a message over the limit"),
        Some(Fault::Panic) => text.push_str(" after a failure inside stockade"),
        None if killed && life.ended_by == EndedBy::Exit => {
            text.push_str(if out_of_memory {
                ", by the kernel for want of memory"
            } else {
                ", by somebody else"
            });
        }
        None => {}
    }
    let still_stopped = life.stopped && life.exit.is_none_or(|exit| exit.status & 0x7f == 9);
    if life.was_stopped || still_stopped {
        text.push_str("; it had been stopped (SIGSTOP)");
    }
    if life.owner_killed {
        text.push_str("; its supervisor was killed, so what it had started may still run");
    }
    if life.unkillable > 0 {
        let count = life.unkillable;
        let noun = if count == 1 { "process" } else { "processes" };
        // Writing to a string can't fail.
        let _ = write!(text, "; {count} unkillable {noun} left");
    }
    text
}

/// "SIGSEGV" for 11.
pub(crate) fn signal_name(signal: i32) -> String {
    let known = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGVTALRM, "SIGVTALRM"),
        (libc::SIGPROF, "SIGPROF"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    known
        .into_iter()
        .find(|(number, _)| *number == signal)
        .map_or_else(|| format!("signal {signal}"), |(_, name)| name.to_owned())
}

/// How often the kernel's out-of-memory killer has struck on this machine.
pub(crate) fn out_of_memory_kills() -> Option<u64> {
    use std::io::Read;
    // Its size isn't known beforehand; with room for all of it one read is enough.
    let mut text = String::with_capacity(8 * 1024);
    std::fs::File::open("/proc/vmstat")
        .ok()?
        .read_to_string(&mut text)
        .ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}
