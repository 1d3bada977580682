//! Waking somebody who waits for a session: a trait, and an implementation for event loops.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Mutex;

use crate::fork::{self, HostFd};
use crate::{Error, lock};

/// Somebody who wants to hear that something has happened.
pub trait Wake: Send + Sync {
    /// Called from any thread, quickly and without blocking. `token` is what was given with the wish.
    fn wake(&self, token: u64);
}

/// Wakes an event loop: a descriptor that it watches, and the tokens that fired.
#[derive(Debug)]
pub struct Waker {
    state: Mutex<State>,
    generation: u32,
}

#[derive(Debug)]
struct State {
    /// None once closed. The second is the writing end where the kernel has no eventfd.
    fds: Option<(HostFd, Option<HostFd>)>,
    tokens: Vec<u64>,
}

impl Waker {
    /// Makes the descriptor.
    pub fn new() -> Result<Waker, Error> {
        let fds = make_fds().map_err(|errno| crate::os_error::os_error("eventfd", errno))?;
        Ok(Waker {
            state: Mutex::new(State {
                fds: Some(fds),
                tokens: Vec::new(),
            }),
            generation: fork::generation(),
        })
    }

    /// The descriptor to watch for reading; None once closed.
    pub fn fd(&self) -> Option<RawFd> {
        fork::check(self.generation).ok()?;
        lock(&self.state).fds.as_ref().map(|(fd, _)| fd.as_raw_fd())
    }

    /// The tokens that fired since the last call; the descriptor is quiet afterwards.
    pub fn take(&self) -> Vec<u64> {
        if fork::check(self.generation).is_err() {
            return Vec::new();
        }
        let mut state = lock(&self.state);
        let tokens = std::mem::take(&mut state.tokens);
        if let (false, Some((fd, _))) = (tokens.is_empty(), &state.fds) {
            let mut buffer = [0u8; 64];
            while matches!(
                rustix::io::read(fd, &mut buffer),
                Ok(64) | Err(rustix::io::Errno::INTR)
            ) {}
        }
        tokens
    }

    /// Waits until a token has fired or `other` is readable, at most so long.
    pub(crate) fn wait_with(&self, other: impl AsFd, limit: Option<std::time::Duration>) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(fd) = self.fd() else { return };
        // SAFETY: this waker isn't closed while it is borrowed here: only its owner closes it.
        let own = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        let mut fds = [
            PollFd::from_borrowed_fd(own, PollFlags::IN),
            PollFd::new(&other, PollFlags::IN),
        ];
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        // An error is as good as a wake-up: the caller looks for itself.
        let _ = poll(&mut fds, limit.as_ref());
    }

    /// Closes the descriptor; later tokens are dropped.
    pub fn close(&self) {
        if fork::check(self.generation).is_ok() {
            let mut state = lock(&self.state);
            state.fds = None;
            state.tokens = Vec::new();
        }
    }
}

impl Wake for Waker {
    fn wake(&self, token: u64) {
        if fork::check(self.generation).is_err() {
            return;
        }
        let mut state = lock(&self.state);
        let quiet = state.tokens.is_empty();
        let Some((reader, writer)) = &state.fds else {
            return;
        };
        if quiet {
            let fd = writer.as_ref().unwrap_or(reader).as_fd();
            // A full counter or pipe is readable already, which is all that is wanted.
            while rustix::io::write(fd, &1u64.to_ne_bytes()) == Err(rustix::io::Errno::INTR) {}
        }
        state.tokens.push(token);
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn make_fds() -> rustix::io::Result<(HostFd, Option<HostFd>)> {
    use rustix::event::{EventfdFlags, eventfd};
    let fd = HostFd::make(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))?;
    Ok((fd, None))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn make_fds() -> rustix::io::Result<(HostFd, Option<HostFd>)> {
    let (reader, writer) = crate::fork::pipe()?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    rustix::io::ioctl_fionbio(&writer, true)?;
    Ok((reader, Some(writer)))
}
