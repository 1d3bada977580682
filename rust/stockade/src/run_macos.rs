//! `stockade run` on macOS: a server on this process's own stdin, stdout and stderr. This process waits for it, since
//! the helper that owns the server is a process of its own already.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use rustix::event::kqueue::{Event as Change, EventFilter, EventFlags, kevent, kqueue};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::Error;
use crate::command::Server;
use crate::launch::{Plan, Started, Stdio, start};
use crate::os_error::os_error;
use crate::owner::control::{Heard, hear, tell};
use crate::owner::protocol::{EMPTY, EXITED, KILL, Request, SIGNAL, TERMINATE};
use crate::runtime::runtime;
use crate::tree::report::returncode;
use crate::tree::session::find_command;

/// Passed on to the server.
const FORWARDED: [Signal; 6] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TERM,
];
/// How long a server may take to end by itself once nobody reads its stdout, and after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// The status where the server's isn't known.
const FAILED: i32 = 125;

/// Starts the server, passes signals on to it and returns its status (128 + n for signal n) when its process group has
/// gone. The death of this process, whatever the way, ends the group. (On Linux this doesn't return: this process
/// becomes another program.)
///
/// Signals of the whole process are ignored meanwhile.
pub fn run(server: &Server) -> Result<i32, Error> {
    let environment = server.environment(std::env::vars_os());
    let command = find_command(server, &environment)?;
    let plan = Plan::new(&command, &environment)?;
    let stdio = Stdio::own()?;
    let ground = &runtime()?.ground;
    let signals = Ignored::new();
    let queue = kqueue().map_err(|errno| os_error("kqueue", errno))?;
    for signal in FORWARDED {
        let filter = EventFilter::Signal { signal, times: 0 };
        watch(&queue, filter, EventFlags::ADD).map_err(|errno| os_error("kevent", errno))?;
    }
    let started = start(&plan, &stdio, ground, false, &AtomicI32::new(0))?;
    watch(
        &queue,
        EventFilter::Read(started.control.as_raw_fd()),
        EventFlags::ADD,
    )
    .map_err(|errno| os_error("kevent", errno))?;
    watch_reader(&queue, stdio.stdout);
    let status = wait(&queue, &started);
    let helper = started.supervisor;
    // At the end of its socket, the helper kills what there still is, and exits.
    drop(started);
    // SAFETY: takes a null pointer for a status that isn't wanted.
    unsafe { libc::waitpid(helper, std::ptr::null_mut(), 0) };
    drop(signals);
    Ok(status)
}

fn watch(queue: &OwnedFd, filter: EventFilter, flags: EventFlags) -> Result<(), Errno> {
    let change = Change::new(filter, flags, std::ptr::null_mut());
    // SAFETY: the descriptors outlive the queue, which is dropped first.
    unsafe { kevent(queue, &[change], &mut [] as &mut [Change], None) }.map(|_| ())
}

/// Hears when nobody can read the server's answers any more, where stdout is a pipe or a socket.
fn watch_reader(queue: &OwnedFd, stdout: BorrowedFd<'_>) {
    use rustix::fs::FileType;
    let kind = rustix::fs::fstat(stdout).map(|data| FileType::from_raw_mode(data.st_mode));
    if matches!(kind, Ok(FileType::Fifo | FileType::Socket)) {
        // CLEAR: only changes are told, not that there is room. Without it, the server itself hears of the end.
        let _ = watch(
            queue,
            EventFilter::Write(stdout.as_raw_fd()),
            EventFlags::ADD | EventFlags::CLEAR,
        );
    }
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    NotYet,
    Grace,
    Terminating,
    Killing,
}

fn wait(queue: &OwnedFd, started: &Started) -> i32 {
    let say = |kind, value| {
        tell(
            &started.control,
            Request {
                kind,
                value,
                flag: 0,
            },
        );
    };
    let mut status = FAILED;
    let mut end = End::NotYet;
    let mut deadline: Option<Instant> = None;
    loop {
        let limit = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let mut events: Vec<Change> = Vec::with_capacity(8);
        // SAFETY: the descriptors outlive the queue.
        let result = unsafe {
            kevent(
                queue,
                &[],
                rustix::buffer::spare_capacity(&mut events),
                limit,
            )
        };
        if matches!(result, Err(errno) if errno != Errno::INTR) {
            return status;
        }
        for event in &events {
            match event.filter() {
                EventFilter::Signal { signal, .. } => say(SIGNAL, signal.as_raw()),
                EventFilter::Write(_)
                    if event.flags().contains(EventFlags::EOF) && end == End::NotYet =>
                {
                    end = End::Grace;
                    deadline = Some(Instant::now() + GRACE);
                }
                _ => {}
            }
        }
        loop {
            match hear(&started.control) {
                Heard::Event(event) if event.kind == EXITED => status = shell_status(event.status),
                Heard::Event(event) if event.kind == EMPTY => return status,
                Heard::Event(_) => {}
                Heard::Nothing => break,
                Heard::End => {
                    started.supervisor_lost();
                    return status;
                }
            }
        }
        if deadline.is_some_and(|at| Instant::now() >= at) {
            if end == End::Grace {
                say(TERMINATE, 0);
                (end, deadline) = (End::Terminating, Some(Instant::now() + GRACE));
            } else {
                say(KILL, 0);
                (end, deadline) = (End::Killing, None);
            }
        }
    }
}

/// As a shell has it.
fn shell_status(status: i32) -> i32 {
    match returncode(status) {
        code if code >= 0 => code,
        signal => 128 - signal,
    }
}

/// The forwarded signals do nothing to this process while this lives; a kqueue hears of them all the same.
struct Ignored([libc::sigaction; FORWARDED.len()]);

impl Ignored {
    fn new() -> Self {
        Ignored(FORWARDED.map(|signal| {
            // SAFETY: both structures are locals; all zero but the handler is a valid value.
            unsafe {
                let (mut ignore, mut before): (libc::sigaction, libc::sigaction) =
                    (std::mem::zeroed(), std::mem::zeroed());
                ignore.sa_sigaction = libc::SIG_IGN;
                libc::sigaction(signal.as_raw(), &raw const ignore, &raw mut before);
                before
            }
        }))
    }
}

impl Drop for Ignored {
    fn drop(&mut self) {
        for (signal, before) in FORWARDED.iter().zip(&self.0) {
            // SAFETY: the structure is what the system gave for this signal.
            unsafe {
                libc::sigaction(
                    signal.as_raw(),
                    std::ptr::from_ref(before),
                    std::ptr::null_mut(),
                )
            };
        }
    }
}
