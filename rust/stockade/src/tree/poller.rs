//! Waiting for many descriptors: epoll on Linux, poll(2) elsewhere.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io;

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Readable,
    Writable,
}

#[cfg(target_os = "linux")]
mod platform {
    use std::os::fd::BorrowedFd;
    use std::time::Duration;

    use rustix::event::{Timespec, epoll};
    use rustix::io;

    use super::Interest;
    use crate::fork::HostFd;

    pub(crate) struct Poller(HostFd);

    impl Poller {
        pub(crate) fn new() -> io::Result<Self> {
            HostFd::make(|| epoll::create(epoll::CreateFlags::CLOEXEC)).map(Poller)
        }

        pub(super) fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
            let flags = match interest {
                Interest::Readable => epoll::EventFlags::IN,
                Interest::Writable => epoll::EventFlags::OUT,
            };
            match epoll::add(&self.0, fd, epoll::EventData::new_u64(token), flags) {
                Err(io::Errno::EXIST) => Ok(()),
                other => other,
            }
        }

        pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
            // Not there is as good.
            let _ = epoll::delete(&self.0, fd);
        }

        pub(super) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
            // A bit late is right, early would spin.
            let timeout = timeout.map(|time| time + Duration::from_micros(50));
            let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
            let mut events = Vec::with_capacity(64);
            match epoll::wait(&self.0, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            Ok(events.iter().map(|event| event.data.u64()).collect())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
    use std::sync::Mutex;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io;

    use super::Interest;
    use crate::lock;

    /// Registered descriptors. Their owners remove them before they close them.
    pub(crate) struct Poller(Mutex<Vec<(RawFd, u64, Interest)>>);

    impl Poller {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Poller(Mutex::new(Vec::new())))
        }

        pub(super) fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
            let mut registered = lock(&self.0);
            if !registered.iter().any(|(raw, ..)| *raw == fd.as_raw_fd()) {
                registered.push((fd.as_raw_fd(), token, interest));
            }
            Ok(())
        }

        pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
            lock(&self.0).retain(|(raw, ..)| *raw != fd.as_raw_fd());
        }

        pub(super) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
            let registered = lock(&self.0).clone();
            let mut fds: Vec<PollFd<'_>> = registered
                .iter()
                .map(|(raw, _, interest)| {
                    let flags = match interest {
                        Interest::Readable => PollFlags::IN,
                        Interest::Writable => PollFlags::OUT,
                    };
                    // SAFETY: a descriptor is removed by the polling thread itself before it is closed.
                    PollFd::from_borrowed_fd(unsafe { BorrowedFd::borrow_raw(*raw) }, flags)
                })
                .collect();
            let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            let ready = fds.iter().zip(&registered).filter(|(fd, _)| !fd.revents().is_empty());
            Ok(ready.map(|(_, (_, token, _))| *token).collect())
        }
    }
}

pub(crate) use platform::Poller;

impl Poller {
    /// Waits for a descriptor from now on. Adding it twice is fine.
    pub(crate) fn watch(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.add(fd.as_fd(), token, interest)
    }

    /// Waits for it no more. To be called before it is closed.
    pub(crate) fn unwatch(&self, fd: impl AsFd) {
        self.remove(fd.as_fd());
    }

    /// The tokens of what is ready, at the latest after `timeout`.
    pub(crate) fn ready(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        self.wait(timeout)
    }
}
