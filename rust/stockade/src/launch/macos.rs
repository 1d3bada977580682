//! Launching on macOS.
//!
//! The host starts the helper (`helper-macos/main.rs`), a process that is the parent of one server and kills its process
//! group when the host dies. `posix_spawn` copies nothing of the host's memory, and closes all descriptors but those
//! that are named. What to start goes to the helper over its socket; it answers with the pid or with the step that
//! failed.

use std::ffi::{c_int, c_short};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::AtomicI32;

use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd, ioctl_fionbio};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt,
};

use crate::fork::HostFd;
use crate::launch::failure::{At, start_error};
use crate::launch::program::Program;
use crate::launch::{Plan, Started, Stdio};
use crate::os_error::os_error;
use crate::owner::control::decode;
use crate::owner::protocol::{CONTROL, Event};
use crate::{Error, ErrorKind, Stage, lock};

#[path = "../../helper-macos/plan.rs"]
#[allow(dead_code, reason = "each side uses its half")]
mod plan;

/// What `posix_spawn` says of a file that is no program for this machine.
pub(crate) const NOT_PROGRAMS: &[Errno] = &[
    Errno::NOEXEC,
    Errno::from_raw_os_error(libc::EBADEXEC),
    Errno::from_raw_os_error(libc::EBADARCH),
    Errno::from_raw_os_error(libc::ESHLIBVERS),
    Errno::from_raw_os_error(libc::EBADMACHO),
];

/// The helper's descriptors: what becomes the server's 0, 1, 2. Its own 0 is the socket.
const HELPER_STDIO: [c_int; 3] = [3, 4, 5];

/// Missing in the libc crate: a session of its own.
const POSIX_SPAWN_SETSID: c_int = 0x0400;

/// Helpers started before it is given up that the program's file stays as it is.
const ATTEMPTS: u32 = 3;

/// What every launch needs, made once.
pub(crate) struct Ground {
    program: Mutex<Program>,
}

impl Ground {
    pub(crate) fn new() -> Result<Ground, Error> {
        Ok(Ground {
            program: Mutex::new(Program::make()?),
        })
    }

    /// Where the helper's program is.
    pub(crate) fn folder(&self) -> std::path::PathBuf {
        lock(&self.program).folder().to_owned()
    }

    /// Starts a helper that is surely ours.
    fn spawn(&self, control: &HostFd, stdio: [&HostFd; 3]) -> Result<c_int, Error> {
        let mut program = lock(&self.program);
        for _ in 0..ATTEMPTS {
            if !program.is_untouched() && !program.examine() {
                // Cleaned away, most likely: temporary folders are.
                *program = Program::make()?;
            }
            let helper = spawn_helper(&program, control, stdio)
                .map_err(|errno| os_error("posix_spawn", errno))?;
            if program.is_untouched() {
                return Ok(helper);
            }
            // The system itself may have attached an attribute at the first run. This one wasn't told anything.
            // SAFETY: takes numbers; the helper is our child, which nobody has reaped.
            unsafe { libc::kill(helper, libc::SIGKILL) };
            reap(helper);
        }
        Err(Error::new(
            ErrorKind::Launch,
            "helper-changed",
            Stage::Launch,
            format!(
                "The server was not started: somebody changes files in {}.",
                program.folder().display()
            ),
        )
        .remedy("Find out who; nothing but stockade has any business there."))
    }
}

/// Starts the server.
pub(crate) fn start(
    plan: &Plan,
    stdio: &Stdio<'_>,
    ground: &Ground,
    leave: bool,
    _under_way: &AtomicI32,
) -> Result<Started, Error> {
    let (control, theirs) =
        HostFd::make_pair(make_sockets).map_err(|errno| os_error("socketpair", errno))?;
    let copy = |fd: BorrowedFd<'_>| {
        // Out of the way of the helper's numbers, which are filled one after the other.
        HostFd::make(|| fcntl_dupfd_cloexec(fd, HELPER_STDIO[2] + 1))
            .map_err(|errno| os_error("fcntl", errno))
    };
    let theirs = copy(theirs.as_fd())?;
    let for_server = [copy(stdio.stdin)?, copy(stdio.stdout)?, copy(stdio.stderr)?];
    let helper = ground.spawn(&theirs, for_server.each_ref())?;
    drop((theirs, for_server));
    let pid = match ask(&control, plan, leave) {
        Ok(pid) => pid,
        Err(error) => {
            // It has failed and exits, or has died, or sees the end of its socket.
            drop(control);
            reap(helper);
            return Err(error);
        }
    };
    let started = Started {
        pid,
        supervisor: helper,
        control,
    };
    ioctl_fionbio(&started.control, true).map_err(|errno| os_error("ioctl", errno))?;
    Ok(started)
}

/// A stream: there are no sequenced packets here. Small records still go in whole or not at all (the low-water mark of
/// a socket's buffer).
fn make_sockets() -> rustix::io::Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::empty(),
        None,
    )?;
    for fd in [&ours, &theirs] {
        fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    sockopt::set_socket_nosigpipe(&ours, true)?;
    Ok((ours, theirs))
}

fn spawn_helper(program: &Program, control: &HostFd, stdio: [&HostFd; 3]) -> Result<c_int, Errno> {
    let checked = |result: c_int| {
        if result == 0 {
            Ok(())
        } else {
            Err(Errno::from_raw_os_error(result))
        }
    };
    let mut attributes = Attributes::new()?;
    let mut actions = Actions::new()?;
    // SAFETY: the objects are initialised; all pointers are to locals and to NULL-terminated arrays of strings, none of
    // which is changed.
    unsafe {
        for (to, from) in HELPER_STDIO.into_iter().zip(stdio) {
            checked(libc::posix_spawn_file_actions_adddup2(
                &raw mut actions.0,
                from.as_raw_fd(),
                to,
            ))?;
        }
        checked(libc::posix_spawn_file_actions_adddup2(
            &raw mut actions.0,
            control.as_raw_fd(),
            CONTROL,
        ))?;
        let (mut defaults, mut blocked) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut defaults);
        // These two always are at their defaults, and asking for it may be refused.
        libc::sigdelset(&raw mut defaults, libc::SIGKILL);
        libc::sigdelset(&raw mut defaults, libc::SIGSTOP);
        libc::sigfillset(&raw mut blocked);
        libc::sigdelset(&raw mut blocked, libc::SIGCHLD);
        checked(libc::posix_spawnattr_setsigdefault(
            &raw mut attributes.0,
            &raw const defaults,
        ))?;
        checked(libc::posix_spawnattr_setsigmask(
            &raw mut attributes.0,
            &raw const blocked,
        ))?;
        let flags = libc::POSIX_SPAWN_CLOEXEC_DEFAULT
            | libc::POSIX_SPAWN_SETSIGDEF
            | libc::POSIX_SPAWN_SETSIGMASK
            | POSIX_SPAWN_SETSID;
        let flags = c_short::try_from(flags).unwrap_or_default();
        checked(libc::posix_spawnattr_setflags(&raw mut attributes.0, flags))?;
        let argv = [c"stockade".as_ptr().cast_mut(), ptr::null_mut()];
        let environment = [ptr::null_mut()];
        let mut pid = 0;
        checked(libc::posix_spawn(
            &raw mut pid,
            program.path().as_ptr(),
            &raw const actions.0,
            &raw const attributes.0,
            argv.as_ptr(),
            environment.as_ptr(),
        ))?;
        Ok(pid)
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> Result<Self, Errno> {
        let mut attributes = ptr::null_mut();
        // SAFETY: the pointer is to a local, which is initialised.
        match unsafe { libc::posix_spawnattr_init(&raw mut attributes) } {
            0 => Ok(Attributes(attributes)),
            errno => Err(Errno::from_raw_os_error(errno)),
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> Result<Self, Errno> {
        let mut actions = ptr::null_mut();
        // SAFETY: the pointer is to a local, which is initialised.
        match unsafe { libc::posix_spawn_file_actions_init(&raw mut actions) } {
            0 => Ok(Actions(actions)),
            errno => Err(Errno::from_raw_os_error(errno)),
        }
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

/// Tells the helper what to start and takes its answer: the server's pid.
fn ask(control: &HostFd, plan: &Plan, leave: bool) -> Result<i32, Error> {
    let message = plan::Plan {
        leave,
        program: &plan.program,
        directory: plan.directory().unwrap_or_default(),
        argv: plan.argv.strings().collect(),
        environment: plan.environment.strings().collect(),
    };
    let too_long = || start_error(At::Execution, "posix_spawn", Errno::TOOBIG, plan);
    let message = message.encode().ok_or_else(too_long)?;
    let mut rest = message.as_slice();
    while !rest.is_empty() {
        match send(control, rest, SendFlags::empty()) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // It may have said why.
            Err(_) => break,
        }
    }
    let event = answer(control).ok_or_else(|| {
        os_error("recv", Errno::CONNRESET).remedy("The helper of stockade was killed. Try again.")
    })?;
    let errno = Errno::from_raw_os_error(event.status);
    match (event.kind, event.count) {
        (plan::STARTED, _) => Ok(event.status),
        (_, plan::EXEC) => Err(start_error(At::Execution, "posix_spawn", errno, plan)),
        (_, plan::DIRECTORY) => Err(start_error(At::Directory, "chdir", errno, plan)),
        (_, plan::WATCH) => Err(start_error(At::Preparation, "kevent", errno, plan)),
        _ => Err(start_error(At::Preparation, "posix_spawn", errno, plan)),
    }
}

fn answer(control: &HostFd) -> Option<Event> {
    let mut bytes = [0; size_of::<Event>()];
    let mut have = 0;
    while have < bytes.len() {
        match recv(control, &mut bytes[have..], RecvFlags::empty()) {
            Ok((_, 0)) => return None,
            Ok((_, count)) => have += count,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(decode(&bytes))
}

/// Waits for a child that is about to exit.
fn reap(pid: c_int) {
    // SAFETY: takes a null pointer for a status that isn't wanted.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), 0) } < 0
        && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
}

impl Started {
    /// Has the helper go on where somebody has stopped it. To be called before it is reaped.
    pub(crate) fn wake_up(&self) {
        // SAFETY: takes numbers only; the child isn't reaped yet, so the number is its own.
        unsafe { libc::kill(self.supervisor, libc::SIGCONT) };
    }

    /// The helper was killed without its last word: nobody else will kill the server.
    pub(crate) fn supervisor_lost(&self) {
        // SAFETY: both take numbers. Only a process that leads a session of its own still is the server, or else a
        // stranger that came within moments and did the same.
        unsafe {
            if libc::getsid(self.pid) == self.pid {
                libc::kill(-self.pid, libc::SIGKILL);
            }
        }
    }
}
