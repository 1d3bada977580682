//! The way to a server's stdin: written at once while the pipe takes it, queued by bytes when it doesn't.

use std::collections::VecDeque;
use std::io::IoSlice;

use rustix::io::{Errno, writev};

use crate::fork::HostFd;

/// Frames that wait for the server may hold so many bytes; one frame may always wait, whatever its size.
pub(crate) const QUEUE_LIMIT: usize = 1024 * 1024;

/// What became of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All of it is in the pipe.
    Written,
    /// It waits, and the pipe must be watched.
    Queued,
    /// Too much waits already.
    Full,
    /// The server doesn't read any more.
    Closed,
}

/// What became of the queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Nothing waits.
    All,
    /// Something still waits; `room` says whether another frame is welcome.
    Some { room: bool },
    /// The server doesn't read any more.
    Closed,
}

pub(crate) struct Outlet {
    fd: Option<HostFd>,
    /// What waits; of the first, `written` bytes are in the pipe.
    queue: VecDeque<Vec<u8>>,
    written: usize,
    queued_bytes: usize,
    closing: bool,
}

impl Outlet {
    pub(crate) fn new(fd: HostFd) -> Self {
        Outlet {
            fd: Some(fd),
            queue: VecDeque::new(),
            written: 0,
            queued_bytes: 0,
            closing: false,
        }
    }

    pub(crate) fn fd(&self) -> Option<&HostFd> {
        self.fd.as_ref()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.fd.is_some() && !self.closing
    }

    pub(crate) fn has_room(&self) -> bool {
        self.queued_bytes < QUEUE_LIMIT
    }

    /// Takes a frame and adds its newline.
    pub(crate) fn send(&mut self, frame: &[u8]) -> Sent {
        let Some(fd) = self.fd.as_ref().filter(|_| !self.closing) else {
            return Sent::Closed;
        };
        if !self.queue.is_empty() {
            if self.queued_bytes + frame.len() >= QUEUE_LIMIT {
                return Sent::Full;
            }
            self.push(frame, 0);
            return Sent::Queued;
        }
        match write(fd, &[IoSlice::new(frame), IoSlice::new(b"\n")]) {
            Ok(count) if count == frame.len() + 1 => Sent::Written,
            Ok(count) => {
                self.push(frame, count);
                Sent::Queued
            }
            Err(Errno::AGAIN) => {
                self.push(frame, 0);
                Sent::Queued
            }
            Err(_) => {
                self.drop_now();
                Sent::Closed
            }
        }
    }

    fn push(&mut self, frame: &[u8], written: usize) {
        // Copied once: what is in the pipe already isn't kept.
        let mut rest = Vec::with_capacity(frame.len() + 1 - written);
        rest.extend_from_slice(frame.get(written..).unwrap_or_default());
        rest.push(b'\n');
        self.queued_bytes += rest.len();
        self.queue.push_back(rest);
    }

    /// Writes what the pipe takes.
    pub(crate) fn flush(&mut self) -> Flushed {
        let Some(fd) = &self.fd else {
            return Flushed::Closed;
        };
        while !self.queue.is_empty() {
            let slices: Vec<IoSlice<'_>> = self
                .queue
                .iter()
                .take(16)
                .enumerate()
                .map(|(at, frame)| {
                    IoSlice::new(if at == 0 {
                        &frame[self.written..]
                    } else {
                        frame
                    })
                })
                .collect();
            match write(fd, &slices) {
                Ok(count) => self.written += count,
                Err(Errno::AGAIN) => {
                    return Flushed::Some {
                        room: self.has_room(),
                    };
                }
                Err(_) => {
                    self.drop_now();
                    return Flushed::Closed;
                }
            }
            while let Some(first) = self.queue.front()
                && self.written >= first.len()
            {
                self.written -= first.len();
                self.queued_bytes -= first.len();
                self.queue.pop_front();
            }
        }
        if self.closing {
            self.drop_now();
        }
        Flushed::All
    }

    /// Closes once everything is written. True: that is already so.
    pub(crate) fn close_when_flushed(&mut self) -> bool {
        self.closing = true;
        if self.queue.is_empty() {
            self.drop_now();
        }
        self.fd.is_none()
    }

    /// Closes now.
    pub(crate) fn drop_now(&mut self) {
        self.closing = true;
        self.fd = None;
        self.queue = VecDeque::new();
        self.written = 0;
        self.queued_bytes = 0;
    }
}

/// Writes without a SIGPIPE, whatever the host has made of that signal.
fn write(fd: &HostFd, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let _quiet = crate::signals::NoSigpipe::new();
    loop {
        match writev(fd, slices) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
