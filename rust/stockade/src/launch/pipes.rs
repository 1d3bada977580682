//! The three pipes of a server.
//!
//! Pipes, not socket pairs: a server may open `/dev/stdin` or `/dev/stderr`, which fails on a socket. A pipe is also
//! faster for a message there and back (7 against 10–12 µs); for bulk a socket pair would be (`benches/pipes.rs`).

use rustix::io;

use crate::fork::{HostFd, pipe};

/// Enough for a burst while the reader isn't running. Not more: an unprivileged user's pipes share 64 MiB, and whoever
/// is over that gets pipes of one page.
#[cfg(target_os = "linux")]
const CAPACITY: usize = 256 * 1024;

/// Both ends of the three pipes.
pub(crate) struct Pipes {
    pub(crate) stdin: HostFd,
    pub(crate) stdout: HostFd,
    pub(crate) stderr: HostFd,
    pub(crate) server: ServerEnds,
}

/// What becomes the server's 0, 1 and 2.
pub(crate) struct ServerEnds {
    pub(crate) stdin: HostFd,
    pub(crate) stdout: HostFd,
    pub(crate) stderr: HostFd,
}

impl Pipes {
    pub(crate) fn new() -> io::Result<Pipes> {
        let (server_stdin, stdin) = pipe()?;
        let (stdout, server_stdout) = pipe()?;
        let (stderr, server_stderr) = pipe()?;
        for fd in [&stdin, &stdout, &stderr] {
            // The flag belongs to this end alone: the server's ends stay blocking.
            io::ioctl_fionbio(fd, true)?;
        }
        #[cfg(target_os = "linux")]
        for fd in [&stdout, &stderr] {
            // Refused where the user has used up the share; the default size works as well.
            let _ = rustix::pipe::fcntl_setpipe_size(fd, CAPACITY);
        }
        let server = ServerEnds {
            stdin: server_stdin,
            stdout: server_stdout,
            stderr: server_stderr,
        };
        Ok(Pipes {
            stdin,
            stdout,
            stderr,
            server,
        })
    }
}
