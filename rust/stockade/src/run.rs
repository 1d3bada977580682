//! `stockade run`: a server on this process's own stdin, stdout and stderr, without an interpreter beside it.

use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicI32;

use crate::command::Server;
use crate::launch::{Plan, Started, Stdio, start};
use crate::os_error::os_error;
use crate::owner::protocol::CONTROL;
use crate::runtime::runtime;
use crate::signals::AllBlocked;
use crate::tree::session::find_command;
use crate::{Error, fork};

/// Starts the server, then becomes its front by exec: it passes signals on, ends with the server's status (128 + n for
/// signal n), and its own death, whatever the way, ends the tree. Returns only when that failed; no server runs then.
/// (Where a process can't become another program's parent, on macOS, it returns the status instead.)
///
/// To be called where no other thread of this process is needed any more.
pub fn run(server: &Server) -> Result<i32, Error> {
    Err(become_front(&prepare(server)?))
}

fn prepare(server: &Server) -> Result<Started, Error> {
    let environment = server.environment(std::env::vars_os());
    let command = find_command(server, &environment)?;
    let plan = Plan::new(&command, &environment)?;
    let stdio = Stdio::own()?;
    let ground = &runtime()?.ground;
    // The front takes what comes meanwhile.
    std::mem::forget(AllBlocked::new());
    start(&plan, &stdio, ground, false, &AtomicI32::new(0))
}

fn become_front(started: &Started) -> Error {
    let ground = match runtime() {
        Ok(runtime) => &runtime.ground,
        Err(error) => return error,
    };
    let errno = fork::guarded(|_| {
        // SAFETY: system calls on numbers, on constants and on arrays that live until they return. Only descriptors that
        // the new program must not have are marked.
        unsafe {
            if libc::dup2(started.control.as_raw_fd(), CONTROL) < 0 {
                return rustix::io::Errno::from_io_error(&std::io::Error::last_os_error());
            }
            // Everything but the socket and stdout, stderr included: the server has its own copy.
            if libc::syscall(
                libc::SYS_close_range,
                2,
                c_int::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            ) != 0
            {
                for fd in 2..1024 {
                    libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
                }
            }
            libc::chdir(c"/".as_ptr());
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut before);
            let hangup = if before.sa_sigaction == libc::SIG_IGN {
                c"nohup".as_ptr()
            } else {
                std::ptr::null()
            };
            let argv = [
                c"stockade".as_ptr(),
                c"run".as_ptr(),
                hangup,
                std::ptr::null(),
            ];
            let environment = [std::ptr::null::<libc::c_char>()];
            libc::syscall(
                libc::SYS_execveat,
                ground.program(),
                c"".as_ptr(),
                argv.as_ptr(),
                environment.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
        }
        rustix::io::Errno::from_io_error(&std::io::Error::last_os_error())
    });
    // The socket's end, when `started` and this copy of it go, ends the server.
    // SAFETY: takes a number only; it is the copy that was made above, or was the server's own stdin, which has a copy.
    unsafe { libc::close(CONTROL) };
    os_error("execveat", errno.unwrap_or(rustix::io::Errno::IO))
}
