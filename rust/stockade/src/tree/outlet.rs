//! The way to a server's stdin: written at once while the pipe takes it, queued by bytes when it doesn't.

use std::collections::VecDeque;
use std::io::IoSlice;

use rustix::io::{Errno, writev};

use crate::fork::HostFd;

/// Once so many bytes wait for the server, no further frame is taken; the last one may have any size.
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
            // The same question that `has_room` answers: else whoever waits for room could be told of it in vain.
            if !self.has_room() {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outlet() -> (HostFd, Outlet) {
        let (reader, writer) = crate::fork::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&writer, true).expect("a flag");
        (reader, Outlet::new(writer))
    }

    fn read(reader: &HostFd, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let mut filled = 0;
        while filled < count {
            filled += rustix::io::read(reader, &mut bytes[filled..]).expect("readable");
        }
        bytes
    }

    #[test]
    fn a_frame_is_refused_only_while_there_is_no_room() {
        let (_reader, mut outlet) = outlet();
        for size in [10, 300_000, 70_000, 900_000, 5_000_000] {
            let room = outlet.has_room();
            let sent = outlet.send(&vec![b'x'; size]);
            assert_eq!(room, sent != Sent::Full, "{size}");
        }
        assert!(!outlet.has_room());
    }

    #[test]
    fn what_was_queued_comes_in_order_and_whole() {
        let (reader, mut outlet) = outlet();
        let frames: Vec<Vec<u8>> = (0u8..40)
            .map(|mark| vec![b'a' + mark % 26; 20_000 + usize::from(mark)])
            .collect();
        let mut expected = Vec::new();
        for frame in &frames {
            assert_ne!(outlet.send(frame), Sent::Full);
            expected.extend_from_slice(frame);
            expected.push(b'\n');
        }
        assert!(!outlet.close_when_flushed());
        let mut got = Vec::new();
        while got.len() < expected.len() {
            let some = (expected.len() - got.len()).min(4096);
            got.extend(read(&reader, some));
            outlet.flush();
        }
        assert!(got == expected);
        assert!(!outlet.is_open() && outlet.fd().is_none());
    }

    #[test]
    fn a_reader_that_has_gone_closes_it() {
        let (reader, mut outlet) = outlet();
        drop(reader);
        assert_eq!(outlet.send(b"x"), Sent::Closed);
        assert!(!outlet.is_open());
    }
}
