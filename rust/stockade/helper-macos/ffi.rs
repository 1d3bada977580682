//! What the helper uses of macOS's C library, declared by hand: it is compiled without dependencies.
//!
//! The crate compiles this file as well, where `launch/helper_ffi.rs` compares it with the `libc` crate.

#![allow(non_camel_case_types, reason = "the names are those of the manual")]

use std::ffi::{c_char, c_int, c_long, c_short, c_uint, c_void};

pub(crate) type pid_t = c_int;
pub(crate) type sigset_t = u32;
pub(crate) type posix_spawnattr_t = *mut c_void;
pub(crate) type posix_spawn_file_actions_t = *mut c_void;

pub(crate) const SIGKILL: c_int = 9;
pub(crate) const SIGTERM: c_int = 15;
pub(crate) const SIGSTOP: c_int = 17;
pub(crate) const SIGCONT: c_int = 19;
pub(crate) const SIGCHLD: c_int = 20;
/// Signals are numbered from 1 to one less than this.
pub(crate) const NSIG: c_int = 32;

pub(crate) const EINTR: c_int = 4;
pub(crate) const EAGAIN: c_int = 35;
pub(crate) const ESRCH: c_int = 3;

pub(crate) const MSG_DONTWAIT: c_int = 0x80;

pub(crate) const WNOHANG: c_int = 1;
pub(crate) const WEXITED: c_int = 4;
pub(crate) const WSTOPPED: c_int = 8;
pub(crate) const WCONTINUED: c_int = 0x10;
pub(crate) const WNOWAIT: c_int = 0x20;
pub(crate) const P_PID: c_uint = 1;
pub(crate) const CLD_STOPPED: c_int = 5;

pub(crate) const POSIX_SPAWN_SETSIGDEF: c_int = 0x0004;
pub(crate) const POSIX_SPAWN_SETSIGMASK: c_int = 0x0008;
/// Not in the libc crate.
pub(crate) const POSIX_SPAWN_SETSID: c_int = 0x0400;
pub(crate) const POSIX_SPAWN_CLOEXEC_DEFAULT: c_int = 0x4000;

pub(crate) const EVFILT_READ: i16 = -1;
pub(crate) const EVFILT_PROC: i16 = -5;
pub(crate) const EVFILT_SIGNAL: i16 = -6;
pub(crate) const EV_ADD: u16 = 1;
pub(crate) const EV_DELETE: u16 = 2;
pub(crate) const NOTE_EXIT: u32 = 0x8000_0000;

/// Asks `proc_pidinfo` for 64 bytes about a process that isn't a zombie.
pub(crate) const PROC_PIDT_SHORTBSDINFO: c_int = 13;

#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub(crate) struct kevent {
    pub(crate) ident: usize,
    pub(crate) filter: i16,
    pub(crate) flags: u16,
    pub(crate) fflags: u32,
    pub(crate) data: isize,
    pub(crate) udata: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct timespec {
    pub(crate) tv_sec: i64,
    pub(crate) tv_nsec: c_long,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct timeval {
    pub(crate) tv_sec: i64,
    pub(crate) tv_usec: i32,
}

/// Only the times are of interest.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct rusage {
    pub(crate) ru_utime: timeval,
    pub(crate) ru_stime: timeval,
    rest: [c_long; 14],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct siginfo_t {
    si_signo: c_int,
    si_errno: c_int,
    pub(crate) si_code: c_int,
    pub(crate) si_pid: pid_t,
    si_uid: u32,
    pub(crate) si_status: c_int,
    rest: [usize; 10],
}

unsafe extern "C" {
    pub(crate) fn chdir(path: *const c_char) -> c_int;
    pub(crate) fn close(fd: c_int) -> c_int;
    pub(crate) fn getppid() -> pid_t;
    pub(crate) fn kevent(
        queue: c_int,
        changes: *const kevent,
        change_count: c_int,
        events: *mut kevent,
        event_count: c_int,
        timeout: *const timespec,
    ) -> c_int;
    pub(crate) fn kill(pid: pid_t, signal: c_int) -> c_int;
    pub(crate) fn kqueue() -> c_int;
    pub(crate) fn posix_spawn(
        pid: *mut pid_t,
        path: *const c_char,
        actions: *const posix_spawn_file_actions_t,
        attributes: *const posix_spawnattr_t,
        argv: *const *mut c_char,
        environment: *const *mut c_char,
    ) -> c_int;
    pub(crate) fn posix_spawn_file_actions_adddup2(
        actions: *mut posix_spawn_file_actions_t,
        from: c_int,
        to: c_int,
    ) -> c_int;
    pub(crate) fn posix_spawn_file_actions_destroy(
        actions: *mut posix_spawn_file_actions_t,
    ) -> c_int;
    pub(crate) fn posix_spawn_file_actions_init(actions: *mut posix_spawn_file_actions_t) -> c_int;
    pub(crate) fn posix_spawnattr_destroy(attributes: *mut posix_spawnattr_t) -> c_int;
    pub(crate) fn posix_spawnattr_init(attributes: *mut posix_spawnattr_t) -> c_int;
    pub(crate) fn posix_spawnattr_setflags(
        attributes: *mut posix_spawnattr_t,
        flags: c_short,
    ) -> c_int;
    pub(crate) fn posix_spawnattr_setsigdefault(
        attributes: *mut posix_spawnattr_t,
        signals: *const sigset_t,
    ) -> c_int;
    pub(crate) fn posix_spawnattr_setsigmask(
        attributes: *mut posix_spawnattr_t,
        signals: *const sigset_t,
    ) -> c_int;
    pub(crate) fn proc_listpgrppids(group: pid_t, buffer: *mut c_void, bytes: c_int) -> c_int;
    pub(crate) fn proc_pidinfo(
        pid: c_int,
        flavor: c_int,
        argument: u64,
        buffer: *mut c_void,
        bytes: c_int,
    ) -> c_int;
    pub(crate) fn recv(fd: c_int, buffer: *mut c_void, bytes: usize, flags: c_int) -> isize;
    pub(crate) fn send(fd: c_int, buffer: *const c_void, bytes: usize, flags: c_int) -> isize;
    pub(crate) fn wait4(
        pid: pid_t,
        status: *mut c_int,
        options: c_int,
        usage: *mut rusage,
    ) -> pid_t;
    pub(crate) fn waitid(kind: c_uint, id: c_uint, info: *mut siginfo_t, options: c_int) -> c_int;
}
