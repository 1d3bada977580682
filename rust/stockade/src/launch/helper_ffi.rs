//! The helper is compiled without the `libc` crate: what it declares by hand is compared with that crate here.

#[path = "../../helper-macos/ffi.rs"]
#[allow(dead_code, reason = "only what can be compared is used")]
mod ffi;

use std::mem::offset_of;

macro_rules! same_numbers {
    ($($name:ident)*) => { $(const _: () = assert!(ffi::$name as i64 == libc::$name as i64);)* };
}

same_numbers! {
    SIGKILL SIGTERM SIGSTOP SIGCONT SIGCHLD EINTR EAGAIN ESRCH MSG_DONTWAIT
    WNOHANG WEXITED WSTOPPED WCONTINUED WNOWAIT P_PID CLD_STOPPED
    POSIX_SPAWN_SETSIGDEF POSIX_SPAWN_SETSIGMASK POSIX_SPAWN_CLOEXEC_DEFAULT
    EVFILT_READ EVFILT_PROC EVFILT_SIGNAL EV_ADD EV_DELETE NOTE_EXIT
}

macro_rules! same_layout {
    ($name:ident: $($field:ident)*) => {
        const _: () = assert!(size_of::<ffi::$name>() == size_of::<libc::$name>());
        const _: () = assert!(align_of::<ffi::$name>() == align_of::<libc::$name>());
        $(const _: () = assert!(offset_of!(ffi::$name, $field) == offset_of!(libc::$name, $field));)*
    };
}

same_layout!(kevent: ident filter flags fflags data udata);
same_layout!(timespec: tv_sec tv_nsec);
same_layout!(timeval: tv_sec tv_usec);
same_layout!(rusage: ru_utime ru_stime);
same_layout!(siginfo_t: si_code si_pid si_status);
same_layout!(sigset_t:);
same_layout!(posix_spawnattr_t:);
same_layout!(posix_spawn_file_actions_t:);
