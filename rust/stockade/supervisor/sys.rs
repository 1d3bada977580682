//! The system calls of the supervisor, made directly: there is no C library in it.

#[cfg(target_arch = "x86_64")]
mod number {
    pub(crate) const READ: usize = 0;
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const RT_SIGPROCMASK: usize = 14;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const SENDTO: usize = 44;
    pub(crate) const RECVFROM: usize = 45;
    pub(crate) const WAIT4: usize = 61;
    pub(crate) const KILL: usize = 62;
    pub(crate) const GETPGID: usize = 121;
    pub(crate) const PRCTL: usize = 157;
    pub(crate) const GETDENTS64: usize = 217;
    pub(crate) const CLOCK_GETTIME: usize = 228;
    pub(crate) const EXIT_GROUP: usize = 231;
    pub(crate) const OPENAT: usize = 257;
    pub(crate) const PPOLL: usize = 271;
    pub(crate) const SIGNALFD4: usize = 289;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub(crate) const OPENAT: usize = 56;
    pub(crate) const CLOSE: usize = 57;
    pub(crate) const GETDENTS64: usize = 61;
    pub(crate) const READ: usize = 63;
    pub(crate) const PPOLL: usize = 73;
    pub(crate) const SIGNALFD4: usize = 74;
    pub(crate) const EXIT_GROUP: usize = 94;
    pub(crate) const CLOCK_GETTIME: usize = 113;
    pub(crate) const KILL: usize = 129;
    pub(crate) const RT_SIGPROCMASK: usize = 135;
    pub(crate) const GETPGID: usize = 155;
    pub(crate) const PRCTL: usize = 167;
    pub(crate) const GETPID: usize = 172;
    pub(crate) const SENDTO: usize = 206;
    pub(crate) const RECVFROM: usize = 207;
    pub(crate) const WAIT4: usize = 260;
}

const PIDFD_SEND_SIGNAL: usize = 424;
const PIDFD_OPEN: usize = 434;

pub(crate) const EINTR: isize = -4;
pub(crate) const ECHILD: isize = -10;

pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGTERM: i32 = 15;
pub(crate) const SIGCHLD: i32 = 17;
pub(crate) const SIGCONT: i32 = 18;
pub(crate) const SIGSTOP: i32 = 19;

pub(crate) const POLLIN: i16 = 1;
pub(crate) const POLLERR: i16 = 8;
pub(crate) const POLLHUP: i16 = 16;
pub(crate) const POLLNVAL: i16 = 32;

pub(crate) const WNOHANG: i32 = 1;
pub(crate) const WUNTRACED: i32 = 2;
pub(crate) const WCONTINUED: i32 = 8;

const AT_FDCWD: isize = -100;
const O_CLOEXEC: usize = 0o2_000_000;
const SFD_NONBLOCK: usize = 0o4000;
const SFD_CLOEXEC: usize = O_CLOEXEC;
const MSG_DONTWAIT: usize = 0x40;
const MSG_NOSIGNAL: usize = 0x4000;
const PR_SET_DUMPABLE: usize = 4;
const PR_SET_NAME: usize = 15;
const SIG_SETMASK: usize = 2;

/// A system call with up to six arguments; negative results are error numbers.
///
/// # Safety
/// The arguments must be what call `n` takes; pointers must be valid for what it reads and writes.
#[cfg(target_arch = "x86_64")]
unsafe fn call(n: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention: it changes rax, rcx, r11 and the memory that the call is about.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") n as isize => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// A system call with up to six arguments; negative results are error numbers.
///
/// # Safety
/// The arguments must be what call `n` takes; pointers must be valid for what it reads and writes.
#[cfg(target_arch = "aarch64")]
unsafe fn call(n: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention: it changes x0 and the memory that the call is about.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") n,
            inlateout("x0") a[0] as isize => result,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5],
            options(nostack),
        );
    }
    result
}

/// As poll(2) has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PollFd {
    pub(crate) fd: i32,
    pub(crate) events: i16,
    pub(crate) revents: i16,
}

/// Seconds and microseconds or nanoseconds, as the kernel has them on 64-bit machines.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) fraction: i64,
}

/// As getrusage(2) has it; only the first fields are of interest.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) user: Time,
    pub(crate) system: Time,
    /// Its peak memory would count the host's, whose memory the server shared before its exec.
    rest: [i64; 14],
}

/// A descriptor that closes itself.
pub(crate) struct Fd(pub(crate) i32);

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: takes a number only.
        unsafe { call(number::CLOSE, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

fn owned(result: isize) -> Option<Fd> {
    i32::try_from(result).ok().filter(|fd| *fd >= 0).map(Fd)
}

pub(crate) fn exit(status: i32) -> ! {
    loop {
        // SAFETY: takes a number only, and doesn't return.
        unsafe { call(number::EXIT_GROUP, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

pub(crate) fn getpid() -> i32 {
    // SAFETY: takes nothing.
    unsafe { call(number::GETPID, [0; 6]) as i32 }
}

pub(crate) fn getpgid(pid: i32) -> i32 {
    // SAFETY: takes a number only.
    unsafe { call(number::GETPGID, [pid as usize, 0, 0, 0, 0, 0]) as i32 }
}

pub(crate) fn kill(pid: i32, signal: i32) -> isize {
    // SAFETY: takes numbers only.
    unsafe {
        call(
            number::KILL,
            [pid as isize as usize, signal as usize, 0, 0, 0, 0],
        )
    }
}

pub(crate) fn pidfd_open(pid: i32) -> Option<Fd> {
    // SAFETY: takes numbers only.
    owned(unsafe { call(PIDFD_OPEN, [pid as usize, 0, 0, 0, 0, 0]) })
}

pub(crate) fn pidfd_send_signal(pidfd: &Fd, signal: i32) {
    // SAFETY: takes numbers and a null pointer, which is allowed here.
    unsafe {
        call(
            PIDFD_SEND_SIGNAL,
            [pidfd.0 as usize, signal as usize, 0, 0, 0, 0],
        )
    };
}

/// Takes the state of any child: (pid or error, wait status, resource use).
pub(crate) fn wait_any(options: i32) -> (isize, i32, Usage) {
    let mut status = 0i32;
    let mut usage = Usage::default();
    // SAFETY: both pointers are to locals of the types that the call fills.
    let pid = unsafe {
        call(
            number::WAIT4,
            [
                usize::MAX,
                &raw mut status as usize,
                options as usize,
                &raw mut usage as usize,
                0,
                0,
            ],
        )
    };
    (pid, status, usage)
}

/// Waits for events; `timeout_ms` of None is for ever.
pub(crate) fn poll(fds: &mut [PollFd], timeout_ms: Option<u64>) -> isize {
    let time = timeout_ms.map(|ms| Time {
        seconds: (ms / 1000) as i64,
        fraction: (ms % 1000 * 1_000_000) as i64,
    });
    let time_pointer = time.as_ref().map_or(0, |t| core::ptr::from_ref(t) as usize);
    // SAFETY: the slice and the time live until the call returns.
    unsafe {
        call(
            number::PPOLL,
            [fds.as_mut_ptr() as usize, fds.len(), time_pointer, 0, 8, 0],
        )
    }
}

/// Milliseconds of the monotonic clock.
pub(crate) fn now_ms() -> u64 {
    let mut time = Time::default();
    // SAFETY: the pointer is to a local of the type that the call fills.
    unsafe {
        call(
            number::CLOCK_GETTIME,
            [1, &raw mut time as usize, 0, 0, 0, 0],
        )
    };
    time.seconds as u64 * 1000 + time.fraction as u64 / 1_000_000
}

/// Blocks exactly the signals of `mask` (bit n - 1 = signal n).
pub(crate) fn set_signal_mask(mask: u64) {
    // SAFETY: the pointer is to a local; the size is that of the kernel's signal set.
    unsafe {
        call(
            number::RT_SIGPROCMASK,
            [SIG_SETMASK, &raw const mask as usize, 0, 8, 0, 0],
        )
    };
}

/// A descriptor that delivers the signals of `mask`.
pub(crate) fn signal_fd(mask: u64) -> Option<Fd> {
    // SAFETY: the pointer is to a local; the size is that of the kernel's signal set.
    owned(unsafe {
        call(
            number::SIGNALFD4,
            [
                usize::MAX,
                &raw const mask as usize,
                8,
                SFD_NONBLOCK | SFD_CLOEXEC,
                0,
                0,
            ],
        )
    })
}

/// The name shown by ps(1).
pub(crate) fn set_name(name: &core::ffi::CStr) {
    // SAFETY: the pointer is to a NUL-terminated string.
    unsafe {
        call(
            number::PRCTL,
            [PR_SET_NAME, name.as_ptr() as usize, 0, 0, 0, 0],
        )
    };
}

/// Keeps the server's hands off this process's memory and program, which all servers share.
pub(crate) fn set_undumpable() {
    // SAFETY: takes numbers only.
    unsafe { call(number::PRCTL, [PR_SET_DUMPABLE, 0, 0, 0, 0, 0]) };
}

pub(crate) fn open(path: &core::ffi::CStr) -> Option<Fd> {
    // SAFETY: the pointer is to a NUL-terminated string.
    owned(unsafe {
        call(
            number::OPENAT,
            [
                AT_FDCWD as usize,
                path.as_ptr() as usize,
                O_CLOEXEC,
                0,
                0,
                0,
            ],
        )
    })
}

pub(crate) fn read(fd: &Fd, buffer: &mut [u8]) -> isize {
    // SAFETY: the slice is valid for its length.
    unsafe {
        call(
            number::READ,
            [
                fd.0 as usize,
                buffer.as_mut_ptr() as usize,
                buffer.len(),
                0,
                0,
                0,
            ],
        )
    }
}

pub(crate) fn read_directory(fd: &Fd, buffer: &mut [u8]) -> isize {
    // SAFETY: the slice is valid for its length.
    unsafe {
        call(
            number::GETDENTS64,
            [
                fd.0 as usize,
                buffer.as_mut_ptr() as usize,
                buffer.len(),
                0,
                0,
                0,
            ],
        )
    }
}

/// Sends one record; never blocks, never raises SIGPIPE.
pub(crate) fn send<T: Copy>(fd: i32, record: &T) {
    let pointer = core::ptr::from_ref(record) as usize;
    // SAFETY: the pointer is to a record of that size.
    unsafe {
        call(
            number::SENDTO,
            [
                fd as usize,
                pointer,
                size_of::<T>(),
                MSG_DONTWAIT | MSG_NOSIGNAL,
                0,
                0,
            ],
        )
    };
}

/// Receives one record; never blocks. 0: the other end is closed.
pub(crate) fn receive<T: Copy>(fd: i32, record: &mut T) -> isize {
    let pointer = core::ptr::from_mut(record) as usize;
    // SAFETY: the pointer is to a record of that size, made of integers for which every bit pattern is valid.
    unsafe {
        call(
            number::RECVFROM,
            [fd as usize, pointer, size_of::<T>(), MSG_DONTWAIT, 0, 0],
        )
    }
}
