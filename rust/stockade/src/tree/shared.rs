//! What a session shares with the thread that serves it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::command::ResolvedCommand;
use crate::fork::{self, HostFd};
use crate::frames::FrameReader;
use crate::launch::Started;
use crate::runtime::existing;
use crate::stderr::{Ring, text};
use crate::tree::lifecycle::{Input, Lifecycle, Shutdown, after};
use crate::tree::outlet::Outlet;
use crate::tree::report::{self, Report};
use crate::tree::sink::Runner;
use crate::tree::watchers::{Moment, Watchers, wake_all};
use crate::{Error, lock};

/// The end of stderr that goes into a report.
const TAIL_LINES: usize = 50;
const TAIL_BYTES: usize = 16 * 1024;

/// What the session shares with the thread that serves it.
pub(crate) struct Core {
    pub(crate) id: u64,
    pub(crate) generation: u32,
    pub(crate) pid: i32,
    /// For the serving thread, which takes it: it closes the descriptor when the tree is gone, whoever holds the session.
    pub(crate) started: Mutex<Option<Started>>,
    pub(crate) command: ResolvedCommand,
    pub(crate) start_time: Instant,
    pub(crate) shutdown: Shutdown,
    pub(crate) outlet: Mutex<Outlet>,
    pub(crate) stdout: Mutex<Stdout>,
    pub(crate) stderr: Mutex<Ring>,
    /// Used by the serving thread alone.
    pub(crate) stderr_fd: Mutex<Option<HostFd>>,
    pub(crate) sink: Runner,
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
    /// The end was asked for; known at once, before the serving thread has heard of it.
    pub(crate) closing: AtomicBool,
    #[cfg(feature = "faults")]
    pub(crate) panic_next: AtomicBool,
}

pub(crate) struct Stdout {
    /// None once its end was read. Kept open by whoever watches it.
    pub(crate) fd: Option<Arc<HostFd>>,
    pub(crate) frames: FrameReader,
    /// Nothing more will come than what is in the pipe, whoever else may hold it.
    pub(crate) over: bool,
    /// Nobody wants what comes.
    pub(crate) dropped: bool,
    pub(crate) too_long: bool,
}

pub(crate) struct State {
    pub(crate) life: Lifecycle,
    pub(crate) watchers: Watchers,
    /// When its own process ended.
    pub(crate) exit_time: Option<Instant>,
    pub(crate) out_of_memory_before: Option<u64>,
    pub(crate) report: Option<Report>,
}

impl Stdout {
    pub(crate) fn read(&mut self) -> Result<usize, Errno> {
        let Stdout { fd, frames, .. } = self;
        let Some(fd) = fd.as_deref() else {
            return frames.fill(|_| Ok(0));
        };
        loop {
            match frames.fill(|room| rustix::io::read(fd, room)) {
                Err(Errno::INTR) => {}
                other => return other,
            }
        }
    }
}

impl Core {
    pub(crate) fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        fork::check(self.generation)?;
        Ok(lock(&self.state))
    }

    pub(crate) fn stdout(&self) -> Result<MutexGuard<'_, Stdout>, Error> {
        fork::check(self.generation)?;
        Ok(lock(&self.stdout))
    }

    /// Tells the serving thread.
    pub(crate) fn post(self: &Arc<Self>, input: Input) {
        if fork::check(self.generation).is_ok()
            && let Some(runtime) = existing()
        {
            runtime.reactor.post(self.id, input);
        }
    }

    /// A thread of its sink begins or ends.
    pub(crate) fn sinking(self: &Arc<Self>, begins: bool) {
        if let Some(runtime) = existing().filter(|_| fork::check(self.generation).is_ok()) {
            runtime.reactor.sinking(self, begins);
        }
    }

    pub(crate) fn flush_soon(&self) {
        if let Some(runtime) = existing() {
            runtime.reactor.flush(self.id);
        }
    }

    pub(crate) fn request_close(self: &Arc<Self>, shutdown: Shutdown) {
        if fork::check(self.generation).is_ok() {
            self.closing.store(true, Ordering::Release);
            self.post(Input::Close(shutdown));
            if self.ended() {
                // It had ended by itself, and nobody serves it any more.
                self.start_dropping_stdout();
                self.end_stdout();
            }
        }
    }

    pub(crate) fn wake(&self, moment: Moment) {
        wake_all(lock(&self.state).watchers.take(moment));
    }

    pub(crate) fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut lock(&self.state))
    }

    pub(crate) fn ended(&self) -> bool {
        lock(&self.state).report.is_some()
    }

    pub(crate) fn wait_ended(&self, limit: Option<Duration>) {
        if fork::check(self.generation).is_err() {
            return;
        }
        let deadline = limit.map(|limit| after(Instant::now(), limit));
        let mut state = lock(&self.state);
        while state.report.is_none() {
            let left = match deadline {
                None => Duration::from_secs(3600),
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            };
            if left.is_zero() {
                return;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
    }

    pub(crate) fn stdout_fd(&self) -> Option<Arc<HostFd>> {
        lock(&self.stdout).fd.clone()
    }

    /// From now on what comes from stdout is dropped; gives the descriptor to read it from.
    pub(crate) fn start_dropping_stdout(&self) -> Option<Arc<HostFd>> {
        let mut stdout = lock(&self.stdout);
        stdout.dropped = true;
        stdout.frames = FrameReader::new(0);
        stdout.fd.clone()
    }

    /// Reads and drops. True: that was the end.
    pub(crate) fn drop_stdout(&self, buffer: &mut [u8]) -> bool {
        let mut stdout = lock(&self.stdout);
        let Some(fd) = stdout.fd.clone() else {
            return true;
        };
        for _ in 0..16 {
            match rustix::io::read(&*fd, &mut *buffer) {
                Ok(0) => {}
                Ok(_) | Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return false,
                Err(_) => {}
            }
            stdout.fd = None;
            return true;
        }
        false
    }

    /// No more will be written to stdout than what is in the pipe. Gives its descriptor where it is being dropped.
    pub(crate) fn end_stdout(&self) -> Option<Arc<HostFd>> {
        let mut stdout = lock(&self.stdout);
        stdout.over = true;
        if stdout.dropped {
            stdout.fd.take()
        } else {
            None
        }
    }

    pub(crate) fn note_exit(&self) {
        lock(&self.state).exit_time = Some(Instant::now());
    }

    pub(crate) fn finish(&self) {
        let (lines, stderr_dropped) = {
            let ring = lock(&self.stderr);
            (ring.tail(TAIL_LINES), ring.dropped())
        };
        let stderr_tail = text::tail(&lines, TAIL_LINES, TAIL_BYTES);
        let mut state = lock(&self.state);
        let life = &state.life;
        let out_of_memory = life
            .exit
            .is_some_and(|exit| exit.status & 0x7f == libc::SIGKILL)
            && state
                .out_of_memory_before
                .is_some_and(|before| report::out_of_memory_kills() > Some(before));
        state.report = Some(Report {
            returncode: life.exit.map(|exit| report::returncode(exit.status)),
            ended_by: life.ended_by,
            cause: report::cause(life, out_of_memory),
            descendants_killed: life.descendants_killed,
            unkillable: life.unkillable,
            stderr_tail,
            stderr_dropped,
            duration: state
                .exit_time
                .unwrap_or_else(Instant::now)
                .duration_since(self.start_time),
            user_time: life.exit.map(|exit| exit.user).unwrap_or_default(),
            system_time: life.exit.map(|exit| exit.system).unwrap_or_default(),
        });
        let mut wishes = state.watchers.take(Moment::Ended);
        for moment in [Moment::Exited, Moment::Writable, Moment::Readable] {
            wishes.extend(state.watchers.take(moment));
        }
        drop(state);
        self.changed.notify_all();
        wake_all(wishes);
    }
}
