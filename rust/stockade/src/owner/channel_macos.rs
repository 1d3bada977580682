//! The socket to the helper: a stream of records, all of one size, which may arrive in pieces.

use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SendFlags, recv};

/// Sends a record; never blocks. The socket never raises SIGPIPE (`SO_NOSIGPIPE`).
#[cfg_attr(test, allow(dead_code, reason = "tests run where this isn't the way"))]
pub(super) fn send(fd: BorrowedFd<'_>, record: &[u8]) -> Result<usize> {
    rustix::net::send(fd, record, SendFlags::DONTWAIT)
}

/// Receives a record; never blocks. 0: the other end is closed. A piece stays in the socket until the rest is there.
pub(super) fn receive(fd: BorrowedFd<'_>, record: &mut [u8]) -> Result<usize> {
    match recv(fd, &mut *record, RecvFlags::DONTWAIT | RecvFlags::PEEK)? {
        (_, 0) => Ok(0),
        (_, length) if length < record.len() => Err(Errno::AGAIN),
        _ => recv(fd, record, RecvFlags::DONTWAIT).map(|(_, length)| length),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn records_come_out_whole_whatever_the_pieces_were() {
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let mut record = [0; 4];
        assert_eq!(receive(reader.as_fd(), &mut record), Err(Errno::AGAIN));
        writer.write_all(b"abcdef").unwrap();
        assert_eq!(
            (receive(reader.as_fd(), &mut record), record),
            (Ok(4), *b"abcd")
        );
        assert_eq!(receive(reader.as_fd(), &mut record), Err(Errno::AGAIN));
        writer.write_all(b"gh").unwrap();
        assert_eq!(
            (receive(reader.as_fd(), &mut record), record),
            (Ok(4), *b"efgh")
        );
        drop(writer);
        assert_eq!(receive(reader.as_fd(), &mut record), Ok(0));
    }
}
