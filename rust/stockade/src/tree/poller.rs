//! Waiting for many descriptors: epoll on Linux, a kqueue on macOS.

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

        pub(super) fn add(
            &self,
            fd: BorrowedFd<'_>,
            token: u64,
            interest: Interest,
        ) -> io::Result<()> {
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
            match epoll::wait(
                &self.0,
                rustix::buffer::spare_capacity(&mut events),
                timeout.as_ref(),
            ) {
                Ok(_) | Err(io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            Ok(events.iter().map(|event| event.data.u64()).collect())
        }
    }
}

#[cfg(target_os = "macos")]
mod platform {
    use std::ffi::c_void;
    use std::os::fd::{AsRawFd, BorrowedFd};
    use std::time::Duration;

    use rustix::event::kqueue::{Event, EventFilter, EventFlags, kevent, kqueue};
    use rustix::io;

    use super::Interest;
    use crate::fork::HostFd;

    pub(crate) struct Poller(HostFd);

    /// A token as the pointer that the kernel keeps for us.
    fn pointer(token: u64) -> *mut c_void {
        std::ptr::without_provenance_mut(usize::try_from(token).unwrap_or(usize::MAX))
    }

    impl Poller {
        pub(crate) fn new() -> io::Result<Self> {
            HostFd::make(|| {
                let queue = kqueue()?;
                io::fcntl_setfd(&queue, io::FdFlags::CLOEXEC)?;
                Ok(queue)
            })
            .map(Poller)
        }

        fn change(&self, event: Event) -> io::Result<()> {
            // SAFETY: a descriptor is removed before it is closed, and its closing would remove it as well.
            unsafe { kevent(&self.0, &[event], &mut [] as &mut [Event], None) }.map(|_| ())
        }

        pub(super) fn add(
            &self,
            fd: BorrowedFd<'_>,
            token: u64,
            interest: Interest,
        ) -> io::Result<()> {
            let filter = match interest {
                Interest::Readable => EventFilter::Read(fd.as_raw_fd()),
                Interest::Writable => EventFilter::Write(fd.as_raw_fd()),
            };
            self.change(Event::new(filter, EventFlags::ADD, pointer(token)))
        }

        pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
            for filter in [
                EventFilter::Read(fd.as_raw_fd()),
                EventFilter::Write(fd.as_raw_fd()),
            ] {
                // Not there is as good.
                let _ = self.change(Event::new(filter, EventFlags::DELETE, pointer(0)));
            }
        }

        pub(super) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
            let mut events = Vec::with_capacity(64);
            // SAFETY: as above.
            match unsafe {
                kevent(
                    &self.0,
                    &[],
                    rustix::buffer::spare_capacity(&mut events),
                    timeout,
                )
            } {
                Ok(_) | Err(io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            Ok(events
                .iter()
                .map(|event: &Event| event.udata().addr() as u64)
                .collect())
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
