//! Launching on Linux.
//!
//! The calling thread makes a child that shares its memory (`CLONE_VM | CLONE_VFORK`), the future supervisor. That one
//! makes the server's process the same way, sees whether its exec worked, and then becomes the supervisor by an exec of
//! its own. Until then the calling thread is suspended, so both may use its memory, and failures come back in a
//! variable. Between clone and exec there are only system calls: no allocation, no lock, no panic.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::Error;
use crate::fork::HostFd;
use crate::launch::failure::{At, start_error};
use crate::launch::image::{self, Kept};
use crate::launch::{Plan, Started, Stdio};
use crate::os_error::os_error;
use crate::owner::protocol;
use crate::signals::AllBlocked;

/// What execve(2) says of a file that is no program for this machine.
pub(crate) const NOT_PROGRAMS: &[Errno] = &[Errno::NOEXEC];

/// What every launch needs, made once.
pub(crate) struct Ground {
    program: HostFd,
    /// How the supervisor's program is kept.
    pub(crate) kept: Kept,
    /// Tells a supervisor of this process's death; None where the kernel has no pidfd (the socket's end tells as well).
    host: Option<HostFd>,
}

impl Ground {
    pub(crate) fn new() -> Result<Ground, Error> {
        use rustix::process::{PidfdFlags, getpid, pidfd_open};
        let (program, kept) = image::make()?;
        let host = HostFd::make(|| pidfd_open(getpid(), PidfdFlags::empty())).ok();
        Ok(Ground {
            program,
            kept,
            host,
        })
    }

    /// The supervisor's program, to be executed.
    pub(crate) fn program(&self) -> RawFd {
        self.program.as_raw_fd()
    }
}

/// Bytes of stack for each of the two; they call little and nothing deep.
const STACK: usize = 32 * 1024;

/// The steps that can fail in a child.
#[derive(Clone, Copy)]
enum Step {
    None,
    Session,
    Subreaper,
    Clone,
    DeathSignal,
    Directory,
    Descriptors,
    Exec,
    Supervisor,
}

impl Step {
    fn operation(self) -> &'static str {
        match self {
            Step::None => "launch",
            Step::Session => "setsid",
            Step::Subreaper | Step::DeathSignal => "prctl",
            Step::Clone => "clone",
            Step::Directory => "chdir",
            Step::Descriptors => "dup2",
            Step::Exec => "execve",
            Step::Supervisor => "execveat",
        }
    }
}

/// What the children read and write while the calling thread is suspended.
struct Shared<'a> {
    plan: &'a Plan,
    /// What becomes the server's 0, 1, 2.
    stdio: [RawFd; 3],
    /// The supervisor's end of the socket, the host's pidfd or -1, the supervisor's program.
    control: RawFd,
    host: RawFd,
    program: RawFd,
    /// All of the above, ascending: everything else is closed at once.
    needed: [RawFd; 6],
    server_stack: *mut c_void,
    /// The pids of the two, known as soon as they exist; the first one to whoever gives the launch up as well.
    supervisor: &'a AtomicI32,
    server: AtomicI32,
    step: AtomicI32,
    errno: AtomicI32,
}

impl Shared<'_> {
    /// Notes the first failure; the children have nothing else to tell it with.
    fn fail(&self, step: Step) {
        // SAFETY: errno is the suspended thread's, which the children share.
        self.errno
            .store(unsafe { *libc::__errno_location() }, Ordering::Relaxed);
        self.step.store(step as i32, Ordering::Relaxed);
    }
}

/// Starts the server under a supervisor of its own.
pub(crate) fn start(
    plan: &Plan,
    stdio: &Stdio<'_>,
    ground: &Ground,
    leave: bool,
    under_way: &AtomicI32,
) -> Result<Started, Error> {
    let (control, their_control) = HostFd::make_pair(|| {
        socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
    })
    .map_err(|errno| os_error("socketpair", errno))?;
    // One allocation for both stacks; pages that aren't used aren't there.
    let mut stacks = vec![0u128; 2 * STACK / 16];
    let [server_stack, supervisor_stack] = {
        // SAFETY: both are within the allocation or at its end; stacks grow down from there.
        unsafe {
            [
                stacks.as_mut_ptr().add(STACK / 16),
                stacks.as_mut_ptr().add(2 * STACK / 16),
            ]
        }
    };
    let host = ground.host.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    let stdio = [
        stdio.stdin.as_raw_fd(),
        stdio.stdout.as_raw_fd(),
        stdio.stderr.as_raw_fd(),
    ];
    let mut needed = [
        stdio[0],
        stdio[1],
        stdio[2],
        their_control.as_raw_fd(),
        if host < 0 { stdio[0] } else { host },
        ground.program.as_raw_fd(),
    ];
    needed.sort_unstable();
    let shared = Shared {
        plan,
        stdio,
        control: their_control.as_raw_fd(),
        host,
        program: ground.program.as_raw_fd(),
        needed,
        server_stack: server_stack.cast(),
        supervisor: under_way,
        server: AtomicI32::new(0),
        step: AtomicI32::new(Step::None as i32),
        errno: AtomicI32::new(0),
    };
    let supervisor = {
        let _blocked = AllBlocked::new();
        // SAFETY: the stack is ours and large enough; `shared` outlives the child's use of it, since CLONE_VFORK
        // suspends this thread until the child has executed or exited. No signal handler runs in the child.
        unsafe {
            libc::clone(
                become_supervisor,
                supervisor_stack.cast(),
                libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
                (&raw const shared).cast_mut().cast(),
            )
        }
    };
    if supervisor < 0 {
        return Err(os_error(
            "clone",
            Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO),
        ));
    }
    // From here on it may be reaped, and the number is nobody else's business.
    under_way.store(0, Ordering::Relaxed);
    let server = shared.server.load(Ordering::Relaxed);
    // It failed, or somebody killed it. In that case the server's process may still be on its way to its exec, in this
    // memory: its death signal is on its way as well.
    if has_exited(supervisor) && !wait_until_gone(server) {
        std::mem::forget(std::mem::take(&mut stacks));
    }
    drop(stacks);
    let step = shared.step.load(Ordering::Relaxed);
    if step != Step::None as i32 {
        reap(supervisor);
        let errno = Errno::from_raw_os_error(shared.errno.load(Ordering::Relaxed));
        return Err(failure(step, errno, plan));
    }
    let started = Started {
        pid: server,
        supervisor,
        control,
    };
    let request = protocol::Request {
        kind: protocol::START,
        value: started.pid,
        flag: u32::from(leave),
    };
    started.tell(request);
    Ok(started)
}

impl Started {
    /// Says something to the supervisor. Failures show as the end of its socket.
    pub(crate) fn tell(&self, request: protocol::Request) {
        crate::owner::control::tell(&self.control, request);
    }

    /// Has the supervisor go on where somebody has stopped it. To be called before it is reaped.
    pub(crate) fn wake_up(&self) {
        // SAFETY: takes numbers only; the child isn't reaped yet, so the number is its own.
        unsafe { libc::kill(self.supervisor, libc::SIGCONT) };
    }

    /// The supervisor was killed, and the server with it; what else was below it can't be told from other processes.
    #[allow(clippy::unused_self, reason = "there is something to do elsewhere")]
    pub(crate) fn supervisor_lost(&self) {}
}

/// A child that somebody has waited for, or that the host's way with SIGCHLD has reaped, has exited as well.
fn has_exited(pid: c_int) -> bool {
    // SAFETY: the structure is a local that the call fills; all zero is a valid value of it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid.unsigned_abs(), &raw mut info, options) != 0
            || info.si_pid() == pid
    }
}

/// False: it is still there after a time in which every killed process should be gone.
fn wait_until_gone(pid: c_int) -> bool {
    let start = std::time::Instant::now();
    // SAFETY: signal 0 only asks.
    while pid > 0 && unsafe { libc::kill(pid, 0) } == 0 {
        if start.elapsed() > std::time::Duration::from_secs(1) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Waits for a child that has exited or is about to.
fn reap(pid: c_int) {
    // SAFETY: takes a null pointer for a status that isn't wanted.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0
        && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
}

fn failure(step: i32, errno: Errno, plan: &Plan) -> Error {
    let steps = [
        Step::Session,
        Step::Subreaper,
        Step::Clone,
        Step::DeathSignal,
        Step::Directory,
        Step::Descriptors,
        Step::Exec,
        Step::Supervisor,
    ];
    let step = steps
        .into_iter()
        .find(|candidate| *candidate as i32 == step)
        .unwrap_or(Step::None);
    let at = match step {
        Step::Exec => At::Execution,
        Step::Directory => At::Directory,
        _ => At::Preparation,
    };
    start_error(at, step.operation(), errno, plan)
}

/// Closes first..=last. False: the kernel has no `close_range` (before 5.9).
fn close_range(first: c_int, last: c_int) -> bool {
    // SAFETY: takes numbers only. The descriptors are this process's own copies.
    first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
}

fn exit(status: c_int) -> ! {
    // SAFETY: ends this process alone, without running anything of the host's.
    unsafe { libc::_exit(status) }
}

/// The child that becomes the supervisor. Runs in the host's memory until its exec.
extern "C" fn become_supervisor(argument: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to its `Shared` and is suspended while this runs.
    let shared = unsafe { &*argument.cast::<Shared<'_>>() };
    // A slow exec must not hold the pipes of other servers.
    let mut from = 0;
    let mut closed = true;
    for fd in shared.needed {
        closed &= close_range(from, fd - 1);
        from = from.max(fd + 1);
    }
    if !(closed && close_range(from, c_int::MAX)) {
        // SAFETY: system calls alone.
        unsafe { close_listed(&shared.needed) };
    }
    // SAFETY: plain system calls on numbers and on pointers into `shared` and the program's constants.
    unsafe {
        shared.supervisor.store(libc::getpid(), Ordering::Relaxed);
        if libc::setsid() < 0 {
            shared.fail(Step::Session);
            exit(127);
        }
        // A server may stop it, even now: it goes on when its parent dies.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT, 0, 0, 0);
        // An ignored SIGCHLD outlives an exec, and nobody would hear of a death. This table is the child's own.
        default_signal(libc::SIGCHLD);
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 {
            shared.fail(Step::Subreaper);
            exit(127);
        }
        let server = libc::clone(
            become_server,
            shared.server_stack,
            libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT_SETTID | libc::SIGCHLD,
            argument,
            shared.server.as_ptr(),
        );
        if server < 0 {
            shared.fail(Step::Clone);
            exit(127);
        }
        if shared.step.load(Ordering::Relaxed) != Step::None as i32 {
            libc::waitpid(server, std::ptr::null_mut(), 0);
            exit(127);
        }
        // The order matters: the numbers below 3 may be in use by what comes later only when the host had closed them,
        // and all of ours lie above.
        let ready = libc::dup2(shared.control, protocol::CONTROL) >= 0
            && (shared.host < 0 || libc::dup2(shared.host, protocol::HOST) >= 0);
        if ready {
            // What is left of the host's own 0, 1 and 2, where the server has inherited them.
            if shared.host < 0 {
                libc::close(protocol::HOST);
            }
            libc::close(2);
            libc::chdir(c"/".as_ptr());
            // It holds a few descriptors for each level of the tree; the host may have little to spare.
            let mut limit: libc::rlimit = std::mem::zeroed();
            if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            }
            let argv = [c"stockade".as_ptr(), std::ptr::null()];
            let environment = [std::ptr::null::<libc::c_char>()];
            libc::syscall(
                libc::SYS_execveat,
                shared.program,
                c"".as_ptr(),
                argv.as_ptr(),
                environment.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
        }
        shared.fail(Step::Supervisor);
        libc::kill(server, libc::SIGKILL);
        libc::waitpid(server, std::ptr::null_mut(), 0);
    }
    exit(127)
}

/// The child that becomes the server. Runs in the host's memory until its exec.
extern "C" fn become_server(argument: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to its `Shared` and is suspended while this runs.
    let shared = unsafe { &*argument.cast::<Shared<'_>>() };
    let failed = |step| -> ! {
        shared.fail(step);
        exit(127)
    };
    // SAFETY: plain system calls on numbers, locals, and pointers into `shared`.
    unsafe {
        // The server dies with its supervisor, whose only thread is its parent.
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) != 0
            || libc::getppid() != shared.supervisor.load(Ordering::Relaxed)
        {
            failed(Step::DeathSignal);
        }
        if libc::setsid() < 0 {
            failed(Step::Session);
        }
        if let Some(directory) = shared.plan.directory()
            && libc::chdir(directory.as_ptr()) != 0
        {
            failed(Step::Directory);
        }
        for (target, fd) in (0..).zip(shared.stdio) {
            // All of ours lie above 2, except where the server inherits the host's own 0, 1 and 2 in place.
            let result = if fd == target {
                libc::fcntl(fd, libc::F_SETFD, 0)
            } else {
                libc::dup2(fd, target)
            };
            if result < 0 {
                failed(Step::Descriptors);
            }
        }
        if !close_range(3, c_int::MAX) {
            close_listed(&[0, 1, 2]);
        }
        default_signals();
        libc::execve(
            shared.plan.program.as_ptr(),
            shared.plan.argv.as_ptr(),
            shared.plan.environment.as_ptr(),
        );
    }
    failed(Step::Exec)
}

/// Closes what is open, as /proc lists it, but for what is kept: for kernels without `close_range`.
unsafe fn close_listed(kept: &[RawFd]) {
    // SAFETY: system calls on a local buffer and numbers; the folder's entries are read as the kernel lays them out.
    unsafe {
        let folder = libc::open(
            c"/proc/self/fd".as_ptr(),
            libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC,
        );
        if folder < 0 {
            let limit = libc::sysconf(libc::_SC_OPEN_MAX).clamp(1024, 1 << 20) as c_int;
            for fd in (0..limit).filter(|fd| !kept.contains(fd)) {
                libc::close(fd);
            }
            return;
        }
        let mut buffer = [0u8; 2048];
        loop {
            let count = libc::syscall(
                libc::SYS_getdents64,
                folder,
                buffer.as_mut_ptr(),
                buffer.len(),
            );
            let count = usize::try_from(count).unwrap_or(0);
            if count == 0 {
                break;
            }
            let mut at = 0usize;
            while at < count {
                let length = usize::from(u16::from_ne_bytes([buffer[at + 16], buffer[at + 17]]));
                let mut fd = 0;
                let mut digits = 0;
                while buffer[at + 19 + digits].is_ascii_digit() {
                    fd = fd * 10 + c_int::from(buffer[at + 19 + digits] - b'0');
                    digits += 1;
                }
                if digits > 0 && fd != folder && !kept.contains(&fd) {
                    libc::close(fd);
                }
                at += length;
            }
        }
        libc::close(folder);
    }
}

unsafe fn default_signal(signal: c_int) {
    // The kernel's own structure, all zero: SIG_DFL, no flags. libc's functions refuse the two signals that they use.
    let default = [0u64; 4];
    // SAFETY: the pointer is to a local of the size that the kernel reads.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            default.as_ptr(),
            std::ptr::null_mut::<c_void>(),
            8usize,
        );
    }
}

/// Every signal to its default, none blocked: what the host handles, ignores or blocks is its own affair.
unsafe fn default_signals() {
    let none = 0u64;
    // SAFETY: pointers to locals of the size that the kernel reads.
    unsafe {
        for signal in 1..=64 {
            default_signal(signal);
        }
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            std::ptr::null_mut::<c_void>(),
            8usize,
        );
    }
}
