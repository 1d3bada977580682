//! The operating system as the helper sees it.

use std::ffi::{CStr, c_char, c_int, c_short, c_void};
use std::io;
use std::time::Duration;

use super::ffi;
use super::keeper::World;
use super::protocol::Event;
use super::records::event_bytes;

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

pub(crate) fn parent() -> i32 {
    // SAFETY: takes nothing.
    unsafe { ffi::getppid() }
}

pub(crate) fn close(fd: c_int) {
    // SAFETY: takes a number; the descriptor is owned by nobody else in this program.
    unsafe { ffi::close(fd) };
}

pub(crate) fn change_directory(path: &CStr) -> Result<(), i32> {
    // SAFETY: the pointer is to a NUL-terminated string.
    if unsafe { ffi::chdir(path.as_ptr()) } == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}

pub(crate) fn kill(pid: i32, signal: i32) -> bool {
    // SAFETY: takes numbers.
    unsafe { ffi::kill(pid, signal) == 0 }
}

/// What was received: nothing for now is None, the end is an empty piece.
pub(crate) fn receive(fd: c_int, buffer: &mut [u8], wait: bool) -> Option<&[u8]> {
    let flags = if wait { 0 } else { ffi::MSG_DONTWAIT };
    loop {
        // SAFETY: the slice is valid for its length.
        let count = unsafe { ffi::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), flags) };
        match usize::try_from(count) {
            Ok(count) => return buffer.get(..count),
            Err(_) => match last_errno() {
                ffi::EINTR => {}
                ffi::EAGAIN => return None,
                // A broken socket is as good as a closed one.
                _ => return buffer.get(..0),
            },
        }
    }
}

/// Sends all of it; gives up when nobody can receive it any more, or, unless `wait` is set, when there is no room.
pub(crate) fn send(fd: c_int, mut bytes: &[u8], wait: bool) {
    let flags = if wait { 0 } else { ffi::MSG_DONTWAIT };
    while !bytes.is_empty() {
        // SAFETY: the slice is valid for its length. The standard library has SIGPIPE ignored.
        let count = unsafe { ffi::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
        match usize::try_from(count) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(_) if last_errno() == ffi::EINTR => {}
            Err(_) => return,
        }
    }
}

/// What the helper waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    Control,
    HostDied,
    Child,
}

/// A kqueue on the three.
pub(crate) struct Queue(c_int);

fn change(ident: usize, filter: i16, flags: u16, notes: u32) -> ffi::kevent {
    ffi::kevent {
        ident,
        filter,
        flags,
        fflags: notes,
        data: 0,
        udata: std::ptr::null_mut(),
    }
}

impl Queue {
    pub(crate) fn new(control: c_int) -> Result<Queue, i32> {
        // SAFETY: takes nothing.
        let queue = unsafe { ffi::kqueue() };
        if queue < 0 {
            return Err(last_errno());
        }
        let queue = Queue(queue);
        queue.apply(change(
            control.unsigned_abs() as usize,
            ffi::EVFILT_READ,
            ffi::EV_ADD,
            0,
        ))?;
        queue.apply(change(
            ffi::SIGCHLD.unsigned_abs() as usize,
            ffi::EVFILT_SIGNAL,
            ffi::EV_ADD,
            0,
        ))?;
        Ok(queue)
    }

    /// Watches the host. False: it is dead.
    pub(crate) fn watch_host(&self, host: i32) -> Result<bool, i32> {
        match self.apply(change(
            host.unsigned_abs() as usize,
            ffi::EVFILT_PROC,
            ffi::EV_ADD,
            ffi::NOTE_EXIT,
        )) {
            Err(ffi::ESRCH) => Ok(false),
            other => other.map(|()| true),
        }
    }

    pub(crate) fn forget_control(&self, control: c_int) {
        let _ = self.apply(change(
            control.unsigned_abs() as usize,
            ffi::EVFILT_READ,
            ffi::EV_DELETE,
            0,
        ));
    }

    fn apply(&self, change: ffi::kevent) -> Result<(), i32> {
        // SAFETY: one change from a local, no events.
        let result = unsafe {
            ffi::kevent(
                self.0,
                &raw const change,
                1,
                std::ptr::null_mut(),
                0,
                std::ptr::null(),
            )
        };
        if result < 0 {
            Err(last_errno())
        } else {
            Ok(())
        }
    }

    /// What has happened; nothing after `limit`.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Result<Vec<Happened>, i32> {
        let mut events = [change(0, 0, 0, 0); 8];
        let limit = limit.map(|limit| ffi::timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: no changes; room for as many events as said; the time lives until the call returns.
        let count =
            unsafe { ffi::kevent(self.0, std::ptr::null(), 0, events.as_mut_ptr(), 8, limit) };
        let Ok(count) = usize::try_from(count) else {
            return if last_errno() == ffi::EINTR {
                Ok(Vec::new())
            } else {
                Err(last_errno())
            };
        };
        Ok(events
            .iter()
            .take(count)
            .map(|event| match event.filter {
                ffi::EVFILT_READ => Happened::Control,
                ffi::EVFILT_PROC => Happened::HostDied,
                _ => Happened::Child,
            })
            .collect())
    }
}

/// Starts the server: its own session, all signals at their defaults, none blocked, and descriptors 0, 1, 2 made of
/// `stdio` and nothing else. Err: the error number, and whether it was the execution that failed.
pub(crate) fn spawn(
    program: &CStr,
    argv: &[&CStr],
    environment: &[&CStr],
    stdio: [c_int; 3],
) -> Result<i32, (bool, i32)> {
    let pointers = |texts: &[&CStr]| -> Vec<*mut c_char> {
        texts
            .iter()
            .map(|text| text.as_ptr().cast_mut())
            .chain([std::ptr::null_mut()])
            .collect()
    };
    let (argv, environment) = (pointers(argv), pointers(environment));
    let mut attributes: ffi::posix_spawnattr_t = std::ptr::null_mut();
    let mut actions: ffi::posix_spawn_file_actions_t = std::ptr::null_mut();
    // SAFETY: both objects are initialised before they are used and destroyed once; all pointers are to locals and to
    // NULL-terminated arrays of NUL-terminated strings, none of which posix_spawn changes.
    unsafe {
        let prepared = |result: c_int| {
            if result == 0 {
                Ok(())
            } else {
                Err((false, result))
            }
        };
        prepared(ffi::posix_spawnattr_init(&raw mut attributes))?;
        let result = (|| {
            prepared(ffi::posix_spawn_file_actions_init(&raw mut actions))?;
            let result = (|| {
                for (to, from) in (0..).zip(stdio) {
                    prepared(ffi::posix_spawn_file_actions_adddup2(
                        &raw mut actions,
                        from,
                        to,
                    ))?;
                }
                // SIGKILL and SIGSTOP always are at their defaults, and asking for it may be refused.
                let all =
                    (1..ffi::NSIG).filter(|signal| ![ffi::SIGKILL, ffi::SIGSTOP].contains(signal));
                let all: ffi::sigset_t = all.fold(0, |set, signal| set | 1 << (signal - 1));
                let none: ffi::sigset_t = 0;
                prepared(ffi::posix_spawnattr_setsigdefault(
                    &raw mut attributes,
                    &raw const all,
                ))?;
                prepared(ffi::posix_spawnattr_setsigmask(
                    &raw mut attributes,
                    &raw const none,
                ))?;
                let flags = ffi::POSIX_SPAWN_SETSID
                    | ffi::POSIX_SPAWN_CLOEXEC_DEFAULT
                    | ffi::POSIX_SPAWN_SETSIGDEF
                    | ffi::POSIX_SPAWN_SETSIGMASK;
                let flags = c_short::try_from(flags).unwrap_or(0);
                prepared(ffi::posix_spawnattr_setflags(&raw mut attributes, flags))?;
                let mut pid = 0;
                let result = ffi::posix_spawn(
                    &raw mut pid,
                    program.as_ptr(),
                    &raw const actions,
                    &raw const attributes,
                    argv.as_ptr(),
                    environment.as_ptr(),
                );
                if result == 0 {
                    Ok(pid)
                } else {
                    Err((true, result))
                }
            })();
            ffi::posix_spawn_file_actions_destroy(&raw mut actions);
            result
        })();
        ffi::posix_spawnattr_destroy(&raw mut attributes);
        result
    }
}

/// The server, this process's only child.
pub(crate) struct Server {
    pub(crate) pid: i32,
    pub(crate) control: c_int,
}

impl Server {
    fn id(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Looks for a change without waiting; None: there is none.
    fn wait_id(&self, options: c_int) -> Option<ffi::siginfo_t> {
        let mut info = ffi::siginfo_t::default();
        // SAFETY: the structure is a local of the type that the call fills; it is left alone when nothing has changed.
        let result =
            unsafe { ffi::waitid(ffi::P_PID, self.id(), &raw mut info, options | ffi::WNOHANG) };
        (result == 0 && info.si_pid == self.pid).then_some(info)
    }
}

impl World for Server {
    const KILL: i32 = ffi::SIGKILL;
    const TERMINATE: i32 = ffi::SIGTERM;
    const CONTINUE: i32 = ffi::SIGCONT;

    fn signal_server(&mut self, signal: i32) {
        kill(self.pid, signal);
    }

    fn signal_group(&mut self, signal: i32) -> bool {
        // Fails where the group is gone (ESRCH) or has only zombies (EPERM).
        kill(-self.pid, signal)
    }

    fn others(&mut self) -> Vec<i32> {
        let mut pids = vec![0i32; 1024];
        // SAFETY: the buffer is valid for the bytes that are said.
        let count = unsafe {
            let bytes = c_int::try_from(size_of_val(pids.as_slice())).unwrap_or(0);
            ffi::proc_listpgrppids(self.pid, pids.as_mut_ptr().cast(), bytes)
        };
        pids.truncate(usize::try_from(count).unwrap_or(0));
        pids.retain(|pid| *pid > 0 && *pid != self.pid && is_alive(*pid));
        pids
    }

    fn has_exited(&mut self) -> bool {
        self.wait_id(ffi::WEXITED | ffi::WNOWAIT).is_some()
    }

    fn stop_or_continue(&mut self) -> Option<(bool, i32)> {
        let info = self.wait_id(ffi::WSTOPPED | ffi::WCONTINUED)?;
        // As wait(2) would say it: the signal and the mark of a stop.
        Some((
            info.si_code == ffi::CLD_STOPPED,
            (info.si_status & 0xff) << 8 | 0x7f,
        ))
    }

    fn reap(&mut self) -> Event {
        let mut status = 0;
        let mut usage = ffi::rusage::default();
        // SAFETY: both pointers are to locals of the types that the call fills.
        while unsafe { ffi::wait4(self.pid, &raw mut status, 0, &raw mut usage) } < 0
            && last_errno() == ffi::EINTR
        {}
        let microseconds = |time: ffi::timeval| {
            u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000
                + u64::try_from(time.tv_usec).unwrap_or(0)
        };
        Event {
            status,
            user_us: microseconds(usage.ru_utime),
            system_us: microseconds(usage.ru_stime),
            ..Event::default()
        }
    }

    fn tell(&mut self, event: &Event) {
        use super::protocol::{EMPTY, EXITED};
        // A host that doesn't read must not stop the rest; but these two must not be lost.
        send(
            self.control,
            &event_bytes(event),
            matches!(event.kind, EXITED | EMPTY),
        );
    }
}

/// It exists and isn't a zombie.
fn is_alive(pid: i32) -> bool {
    let mut info = [0u64; 8];
    // SAFETY: the buffer is valid for the bytes that are said; what is written are plain numbers and text.
    let count = unsafe {
        ffi::proc_pidinfo(
            pid,
            ffi::PROC_PIDT_SHORTBSDINFO,
            0,
            info.as_mut_ptr().cast::<c_void>(),
            64,
        )
    };
    count > 0
}
