//! The front of `stockade run`: what the command line's own process becomes once the server runs.
//!
//! It holds the supervisor's socket in the host's place, passes signals on to the server, ends with its status, and
//! begins an orderly end when nobody can read the server's answers any more. When it dies, whatever the way, the
//! supervisor kills the tree.

use crate::protocol::{CONTROL, EMPTY, EXITED, Event, KILL, Request, SIGNAL, STDOUT, TERMINATE};
use crate::sys::{self, EINTR, POLLIN, PollFd};

/// SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM: passed on to the server. So is SIGHUP, except under nohup(1).
const FORWARDED: u64 = 1 << 1 | 1 << 2 | 1 << 9 | 1 << 11 | 1 << 14;
const HANGUP: u64 = 1 << 0;
/// How long a server may take to end by itself once nobody reads its stdout, and after SIGTERM.
const GRACE_MS: u64 = 2000;
const FAILED: i32 = 125;

fn request(kind: u32, value: i32) {
    sys::send(
        CONTROL,
        &Request {
            kind,
            value,
            flag: 0,
        },
    );
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    NotYet,
    Grace,
    Terminating,
    Killing,
}

pub(crate) fn main(ignore_hangup: bool) -> ! {
    sys::set_name(c"stockade run");
    sys::set_undumpable();
    let forwarded = if ignore_hangup {
        FORWARDED
    } else {
        FORWARDED | HANGUP
    };
    let Some(signals) = sys::signal_fd(forwarded) else {
        sys::exit(FAILED)
    };
    // What isn't taken here stays blocked, and so without effect, where it is the hangup.
    sys::set_signal_mask(FORWARDED | HANGUP);
    let mut fds = [
        PollFd {
            fd: CONTROL,
            events: POLLIN,
            revents: 0,
        },
        PollFd {
            fd: STDOUT,
            events: 0,
            revents: 0,
        },
        PollFd {
            fd: signals.0,
            events: POLLIN,
            revents: 0,
        },
    ];
    let mut status = None;
    let mut end = End::NotYet;
    let mut deadline = None;
    loop {
        let timeout = deadline.map(|at: u64| at.saturating_sub(sys::now_ms()));
        let ready = sys::poll(&mut fds, timeout);
        if ready < 0 && ready != EINTR {
            sys::exit(FAILED);
        }
        if ready >= 0 {
            if fds[0].revents != 0 {
                take_events(&mut status);
            }
            if fds[1].revents & crate::GONE != 0 && end == End::NotYet {
                fds[1].fd = -1;
                end = End::Grace;
                deadline = Some(sys::now_ms() + GRACE_MS);
            }
            if fds[2].revents != 0 {
                forward(&signals);
            }
        }
        for fd in &mut fds {
            fd.revents = 0;
        }
        if deadline.is_some_and(|at| sys::now_ms() >= at) {
            if end == End::Grace {
                request(TERMINATE, 0);
                (end, deadline) = (End::Terminating, Some(sys::now_ms() + GRACE_MS));
            } else {
                request(KILL, 0);
                (end, deadline) = (End::Killing, None);
            }
        }
    }
}

/// Takes what the supervisor says; doesn't return after its last word.
fn take_events(status: &mut Option<i32>) {
    loop {
        let mut event = Event::default();
        let count = sys::receive(CONTROL, &mut event);
        if count < 0 {
            return;
        }
        if count == 0 || event.kind == EMPTY {
            // Without a status the supervisor was killed, and the server with it.
            sys::exit(status.unwrap_or(FAILED));
        }
        if event.kind == EXITED {
            let signal = event.status & 0x7f;
            *status = Some(if signal == 0 {
                event.status >> 8 & 0xff
            } else {
                128 + signal
            });
        }
    }
}

fn forward(signals: &sys::Fd) {
    // A signalfd_siginfo each, whose first field is the number.
    let mut buffer = [0u8; 128 * 4];
    let count = sys::read(signals, &mut buffer);
    for info in buffer[..usize::try_from(count).unwrap_or(0)].chunks_exact(128) {
        request(
            SIGNAL,
            i32::from_ne_bytes([info[0], info[1], info[2], info[3]]),
        );
    }
}
