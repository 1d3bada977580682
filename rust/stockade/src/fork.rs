//! What happens to this process's descriptors when somebody forks it.
//!
//! `fork` copies every descriptor, whatever its close-on-exec flag says. A worker made by `os.fork()` would so keep the
//! pipes of all servers open, and no server would see the end of its stdin. So the crate notes its descriptors, and a
//! handler of `pthread_atfork` closes them in the child. What a child still holds of the parent's sessions refuses to
//! work (`generation`).

use std::cell::UnsafeCell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use rustix::io;

use crate::{Error, ErrorKind, Stage};

/// One bit a descriptor number; pages that are never touched cost nothing.
static NOTED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
const WORDS: usize = 16 * 1024;
/// Words from here on were never used.
static WORDS_USED: AtomicUsize = AtomicUsize::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between this process and the one that loaded the crate.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Refuses what belongs to another generation.
pub(crate) fn check(of: u32) -> Result<(), Error> {
    if of == generation() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Internal,
        "forked",
        Stage::Run,
        "This server was started by the process that forked this one, and only that process can use it.",
    )
    .remedy("Start the server after the fork, in the process that uses it."))
}

/// Held while descriptors are made and noted, or un-noted and closed, so that no fork falls between the two.
struct ForkLock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex is made for use by many threads; it is only touched through the functions below.
unsafe impl Sync for ForkLock {}

static FORK_LOCK: ForkLock = ForkLock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

extern "C" fn lock() {
    // SAFETY: the mutex is statically initialised and never destroyed.
    unsafe { libc::pthread_mutex_lock(FORK_LOCK.0.get()) };
}

extern "C" fn unlock() {
    // SAFETY: called by the thread that holds the lock only; the fork handlers run on one thread.
    unsafe { libc::pthread_mutex_unlock(FORK_LOCK.0.get()) };
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    crate::runtime::forget_after_fork();
    for (index, word) in NOTED
        .iter()
        .enumerate()
        .take(WORDS_USED.load(Ordering::Relaxed))
    {
        let mut bits = word.swap(0, Ordering::Relaxed);
        while bits != 0 {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            let fd = RawFd::try_from(index * 64).unwrap_or(0) + RawFd::try_from(bit).unwrap_or(0);
            // SAFETY: the number is of a descriptor of this crate; its owners check the generation and never use it
            // again. close(2) may be called here.
            unsafe { libc::close(fd) };
        }
    }
    unlock();
}

/// Makes forks safe from here on. Done by itself with the first descriptor; better done while there is one thread.
pub fn prepare_for_forks() {
    install();
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handlers call nothing but async-signal-safe functions and this module's lock.
        unsafe { libc::pthread_atfork(Some(lock), Some(unlock), Some(in_child)) };
    });
}

/// Runs `work` with no fork in between. `work` must be short and must neither drop a `HostFd` nor call `guarded`.
pub(crate) fn guarded<T>(work: impl FnOnce(&Guard) -> T) -> T {
    struct Unlock;
    impl Drop for Unlock {
        fn drop(&mut self) {
            unlock();
        }
    }
    install();
    lock();
    let _unlock = Unlock;
    work(&Guard(()))
}

/// Proof that no fork can happen.
pub(crate) struct Guard(());

/// A descriptor of this process that a fork doesn't hand on. Always close-on-exec, always above 2.
#[derive(Debug)]
pub(crate) struct HostFd {
    /// None only while it is being dropped.
    fd: Option<OwnedFd>,
    generation: u32,
}

impl HostFd {
    /// Notes a descriptor that has just been made.
    pub(crate) fn note(fd: OwnedFd, _guard: &Guard) -> HostFd {
        let number = usize::try_from(fd.as_raw_fd()).unwrap_or(0);
        if let Some(word) = NOTED.get(number / 64) {
            word.fetch_or(1 << (number % 64), Ordering::Relaxed);
            WORDS_USED.fetch_max(number / 64 + 1, Ordering::Relaxed);
        }
        HostFd {
            fd: Some(fd),
            generation: generation(),
        }
    }

    /// Makes a descriptor and notes it.
    pub(crate) fn make(make: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<HostFd> {
        guarded(|guard| Ok(HostFd::note(above_stdio(make()?)?, guard)))
    }

    /// Makes two descriptors and notes them.
    pub(crate) fn make_pair(
        make: impl FnOnce() -> io::Result<(OwnedFd, OwnedFd)>,
    ) -> io::Result<(HostFd, HostFd)> {
        guarded(|guard| {
            let (first, second) = make()?;
            let (first, second) = (above_stdio(first)?, above_stdio(second)?);
            Ok((HostFd::note(first, guard), HostFd::note(second, guard)))
        })
    }
}

/// Where the host has closed 0, 1 or 2, new descriptors land there: moves one up, out of the way of a server's own.
fn above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        Ok(fd)
    } else {
        io::fcntl_dupfd_cloexec(&fd, 3)
    }
}

impl HostFd {
    /// Refuses in a forked child.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check(self.generation)
    }
}

impl AsFd for HostFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("present until dropped").as_fd()
    }
}

impl AsRawFd for HostFd {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Drop for HostFd {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        let raw = fd.into_raw_fd();
        guarded(|_| {
            if self.generation != generation() {
                // The fork handler has closed it; the number may be somebody else's by now.
                return;
            }
            let number = usize::try_from(raw).unwrap_or(0);
            if let Some(word) = NOTED.get(number / 64) {
                word.fetch_and(!(1 << (number % 64)), Ordering::Relaxed);
            }
            // SAFETY: it came out of the OwnedFd above.
            drop(unsafe { OwnedFd::from_raw_fd(raw) });
        });
    }
}

/// A pipe: reading end, writing end.
pub(crate) fn pipe() -> io::Result<(HostFd, HostFd)> {
    HostFd::make_pair(make_pipe)
}

#[cfg(target_os = "linux")]
fn make_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
}

/// Without pipe2, an exec of another thread of the host may fall between the two calls; our own launches can't.
#[cfg(not(target_os = "linux"))]
fn make_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe()?;
    for fd in [&reader, &writer] {
        io::fcntl_setfd(fd, io::FdFlags::CLOEXEC)?;
    }
    Ok((reader, writer))
}
