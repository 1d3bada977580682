//! The socket to the supervisor: sequenced packets, one a record.

use std::os::fd::BorrowedFd;

use rustix::io::Result;
use rustix::net::{RecvFlags, SendFlags};

/// Sends a record; never blocks, never raises SIGPIPE.
pub(super) fn send(fd: BorrowedFd<'_>, record: &[u8]) -> Result<usize> {
    rustix::net::send(fd, record, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

/// Receives a record; never blocks. 0: the other end is closed.
pub(super) fn receive(fd: BorrowedFd<'_>, record: &mut [u8]) -> Result<usize> {
    rustix::net::recv(fd, record, RecvFlags::DONTWAIT).map(|(_, length)| length)
}
