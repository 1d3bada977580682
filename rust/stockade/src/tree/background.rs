//! Launching on threads of the crate's own: finding a program may hang on a dead network drive, and executing it may
//! wait for a slow disk; neither may stop the caller.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::command::Server;
use crate::os_error::os_error;
use crate::runtime::runtime;
use crate::signals::spawn_thread;
use crate::tree::session::{Options, Session};
use crate::wake::Wake;
use crate::{Error, fork, lock};

/// A thread that has nothing to do ends after this time.
const LINGER: Duration = Duration::from_secs(1);
/// More launches than this wait for one of those under way, all of which may hang.
const MAX_THREADS: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

/// The threads.
#[derive(Default)]
pub(crate) struct Launchers {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl Launchers {
    fn submit(&'static self, job: Job) -> Result<(), Error> {
        let mut state = lock(&self.state);
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.more.notify_one();
        } else if state.threads < MAX_THREADS {
            let spawned = spawn_thread("stockade-launch", || self.work());
            match spawned {
                Ok(()) => state.threads += 1,
                // Those that are busy may hang: nobody is promised to take it.
                Err(error) => {
                    state.jobs.pop_back();
                    let errno = rustix::io::Errno::from_io_error(&error)
                        .unwrap_or(rustix::io::Errno::AGAIN);
                    return Err(os_error("pthread_create", errno));
                }
            }
        }
        Ok(())
    }

    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            while let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A panic ends this launch with an error, not the thread's bookkeeping.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                state = lock(&self.state);
            }
            state.idle += 1;
            let (next, waited) = self
                .more
                .wait_timeout(state, LINGER)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            state = next;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

/// A launch under way.
pub struct Pending {
    state: Arc<Mutex<Outcome>>,
    /// The process that the launch hangs on, or 0.
    under_way: Arc<AtomicI32>,
    generation: u32,
}

enum Outcome {
    Waiting(Arc<dyn Wake>, u64),
    Cancelled,
    Ready(Box<Result<Session, Error>>),
    Taken,
}

impl Session {
    /// Launches in the background; wakes `wake` with `token` when [`Pending::take`] has an answer.
    pub fn launch_in_background(
        server: Arc<Server>,
        options: Options,
        wake: Arc<dyn Wake>,
        token: u64,
    ) -> Result<Pending, Error> {
        let state = Arc::new(Mutex::new(Outcome::Waiting(wake, token)));
        let under_way = Arc::new(AtomicI32::new(0));
        let pending = Pending {
            state: Arc::clone(&state),
            under_way: Arc::clone(&under_way),
            generation: fork::generation(),
        };
        let environment = server.environment(std::env::vars_os());
        let guard = Answer(state);
        let runtime = runtime()?;
        runtime.launchers.submit(Box::new(move || {
            if guard.wanted() {
                guard.give(Session::launch_with(
                    &server,
                    &environment,
                    options,
                    &under_way,
                ));
                runtime.reactor.ring();
            }
        }))?;
        Ok(pending)
    }
}

/// Gives the answer, also when the launching panics.
struct Answer(Arc<Mutex<Outcome>>);

impl Answer {
    fn wanted(&self) -> bool {
        matches!(*lock(&self.0), Outcome::Waiting(..))
    }

    fn give(&self, result: Result<Session, Error>) {
        let mut state = lock(&self.0);
        match std::mem::replace(&mut *state, Outcome::Taken) {
            Outcome::Waiting(wake, token) => {
                *state = Outcome::Ready(Box::new(result));
                drop(state);
                wake.wake(token);
            }
            // Nobody wants it any more: dropping a session ends its server.
            _ => *state = Outcome::Cancelled,
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.wanted() {
            self.give(Err(crate::tree::session::internal(
                "The launch ended with a panic of a stockade thread.",
            )));
        }
    }
}

impl Pending {
    /// The session; None while it isn't ready.
    pub fn take(&self) -> Result<Option<Session>, Error> {
        fork::check(self.generation)?;
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, Outcome::Taken) {
            Outcome::Ready(result) => result.map(Some),
            other => {
                *state = other;
                Ok(None)
            }
        }
    }

    /// Gives it up: what was started, or will have been, is ended in the background.
    pub fn cancel(&self) {
        if fork::check(self.generation).is_err() {
            return;
        }
        let before = std::mem::replace(&mut *lock(&self.state), Outcome::Cancelled);
        let waits = matches!(before, Outcome::Waiting(..));
        drop(before);
        let pid = self.under_way.load(Ordering::Relaxed);
        if waits && pid > 0 {
            // A hostile server may have stopped it on the way; then only this lets the launching thread go on.
            // SAFETY: takes numbers only; the pid is of an unreaped child while it stands there.
            unsafe { libc::kill(pid, libc::SIGCONT) };
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.cancel();
    }
}
