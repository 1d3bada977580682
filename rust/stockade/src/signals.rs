//! Signals of the calling thread: kept away while a child shares the memory, and SIGPIPE kept away altogether.

/// No signal reaches this thread while it lives. New threads and children inherit that.
pub(crate) struct AllBlocked(libc::sigset_t);

impl AllBlocked {
    pub(crate) fn new() -> Self {
        // SAFETY: both sets are locals; the functions fill them.
        unsafe {
            let mut all = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            AllBlocked(before)
        }
    }
}

impl Drop for AllBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is the one that this thread had.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}

/// A thread of the crate's own: none of the host's signals is ever handled on it.
pub(crate) fn spawn_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let _blocked = AllBlocked::new();
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
}

/// A thread that runs a user's code: as any thread of the host's, with no signal blocked, since whatever it starts
/// inherits that.
pub(crate) fn spawn_open_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let opened = move || {
        // SAFETY: the set is a local that the first call fills.
        unsafe {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        }
        work();
    };
    std::thread::Builder::new()
        .name(name.into())
        .spawn(opened)
        .map(drop)
}

/// A write to a pipe without a reader fails with EPIPE and nothing else: the host may have SIGPIPE at its default,
/// which would end it.
pub(crate) struct NoSigpipe {
    before: libc::sigset_t,
    pending_before: bool,
}

impl NoSigpipe {
    pub(crate) fn new() -> Self {
        // SAFETY: the sets are locals; the functions fill them.
        unsafe {
            let pending_before = sigpipe_pending();
            let mut before = std::mem::zeroed();
            libc::pthread_sigmask(
                libc::SIG_BLOCK,
                &raw const *sigpipe_set(&mut std::mem::zeroed()),
                &raw mut before,
            );
            NoSigpipe {
                before,
                pending_before,
            }
        }
    }
}

impl Drop for NoSigpipe {
    fn drop(&mut self) {
        // SAFETY: the sets are locals or were filled by the system.
        unsafe {
            if !self.pending_before && sigpipe_pending() {
                let mut taken = 0;
                libc::sigwait(
                    &raw const *sigpipe_set(&mut std::mem::zeroed()),
                    &raw mut taken,
                );
            }
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                std::ptr::null_mut(),
            );
        }
    }
}

unsafe fn sigpipe_set(set: &mut libc::sigset_t) -> &libc::sigset_t {
    // SAFETY: the set is valid for writing.
    unsafe {
        libc::sigemptyset(&raw mut *set);
        libc::sigaddset(&raw mut *set, libc::SIGPIPE);
    }
    set
}

unsafe fn sigpipe_pending() -> bool {
    // SAFETY: the set is a local that the call fills.
    unsafe {
        let mut pending = std::mem::zeroed();
        libc::sigpending(&raw mut pending);
        libc::sigismember(&raw const pending, libc::SIGPIPE) == 1
    }
}
