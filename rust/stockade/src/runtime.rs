//! What all sessions of this process share: one thread that serves them, threads that launch, and what launching needs.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use crate::Error;
use crate::launch::Ground;
use crate::tree::background::Launchers;
use crate::tree::lifecycle::{Shutdown, after};
use crate::tree::reactor::Reactor;

pub(crate) struct Runtime {
    pub(crate) reactor: Reactor,
    pub(crate) launchers: Launchers,
    pub(crate) ground: Ground,
}

/// Null before the first session, and in a forked child until its first one: the parent's is of no use there, since
/// its threads don't exist and its locks may be held for ever.
static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());

/// The runtime, made when it is first needed.
pub(crate) fn runtime() -> Result<&'static Runtime, Error> {
    if let Some(runtime) = existing() {
        return Ok(runtime);
    }
    let made = Box::into_raw(Box::new(Runtime {
        reactor: Reactor::new()?,
        launchers: Launchers::default(),
        ground: Ground::new()?,
    }));
    match RUNTIME.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the box was leaked on purpose: the runtime lives as long as the process.
        Ok(_) => Ok(unsafe { &*made }),
        Err(other) => {
            // SAFETY: `made` came from Box::into_raw above and nobody else has seen it.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: as above; what is in RUNTIME was leaked on purpose.
            Ok(unsafe { &*other })
        }
    }
}

/// The runtime, where there has been a session.
pub(crate) fn existing() -> Option<&'static Runtime> {
    // SAFETY: RUNTIME holds null or a leaked box.
    unsafe { RUNTIME.load(Ordering::Acquire).as_ref() }
}

/// For the fork handler: async-signal-safe.
pub(crate) fn forget_after_fork() {
    RUNTIME.store(ptr::null_mut(), Ordering::Release);
}

/// Sessions of this process that haven't ended.
pub fn live_sessions() -> usize {
    existing().map_or(0, |runtime| runtime.reactor.live())
}

/// Ends every session of this process and waits for that, at most `limit`; how many still live. Sinks are called no
/// more afterwards. For a process that is about to exit.
pub fn end_all(limit: Duration) -> usize {
    let Some(runtime) = existing() else { return 0 };
    let quarter = limit / 4;
    let shutdown = Shutdown {
        close_grace: quarter,
        terminate_grace: quarter,
        kill_wait: quarter,
        ..Shutdown::default()
    };
    let deadline = after(Instant::now(), limit);
    let sessions = runtime.reactor.sessions();
    for session in &sessions {
        session.request_close(shutdown);
    }
    for session in &sessions {
        session.wait_ended(Some(deadline.saturating_duration_since(Instant::now())));
    }
    for session in &sessions {
        session.sink.stop();
    }
    runtime.reactor.stop_sinks(deadline);
    live_sessions()
}
