//! Where a server's stderr goes besides the ring.
//!
//! A sink may be slow or block: it is served by a thread of its own, which exists only while there is something to
//! hand over. The server never waits for it; what leaves the ring before the sink took it is counted.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::os_error::{os_error, plain};
use crate::signals::spawn_open_thread;
use crate::tree::lifecycle::Input;
use crate::tree::shared::Core;
use crate::{Error, ErrorKind, Stage, lock};

/// Where stderr goes besides the ring.
#[derive(Default)]
#[non_exhaustive]
#[allow(
    clippy::type_complexity,
    reason = "an alias would hide from a user what to give"
)]
pub enum Sink {
    /// Nowhere.
    #[default]
    None,
    /// To a function, which gets lines without their newlines on a thread of its own.
    Lines(Box<dyn FnMut(&[Vec<u8>]) + Send>),
    /// To a file, a line each.
    File(File),
    /// To the file of this name, a line each, behind what is there. It is opened when the server is launched.
    Path(PathBuf),
}

impl Sink {
    /// Opens what is to be opened. Blocks on the file system.
    pub(crate) fn opened(self) -> Result<Sink, Error> {
        let Sink::Path(path) = self else {
            return Ok(self);
        };
        // Not waiting: a named pipe without a reader would hold up the launch for ever.
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        openat(CWD, &path, flags, mode)
            .map(|fd| Sink::File(fd.into()))
            .map_err(|errno| sink_error(&path.to_string_lossy(), &errno.into()))
    }
}

/// The error for a sink that can't be opened.
#[must_use]
pub fn sink_error(what: &str, error: &std::io::Error) -> Error {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    if matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM) {
        return os_error("open", errno);
    }
    Error::new(
        ErrorKind::Config,
        "sink-unusable",
        Stage::Launch,
        format!("The server's stderr can't go to {what}: {}.", plain(error)),
    )
    .remedy("Give a file that can be written, an open descriptor, a callable or a logger.")
    .native_code(errno.raw_os_error())
}

/// A thread without work ends after this time.
const LINGER: Duration = Duration::from_secs(1);
const BATCH_LINES: usize = 1024;
const BATCH_BYTES: usize = 256 * 1024;

pub(crate) struct Runner {
    state: Mutex<State>,
    more: Condvar,
}

struct State {
    /// None while the thread uses it, and where there is none.
    sink: Option<Sink>,
    present: bool,
    running: bool,
    waiting: bool,
    /// The number of the next line to hand over.
    next: u64,
    lost: u64,
    /// stderr has ended.
    finished: bool,
    /// Nothing is handed over any more.
    stopped: bool,
}

impl Runner {
    pub(crate) fn new(sink: Sink) -> Self {
        let present = !matches!(sink, Sink::None);
        let state = State {
            sink: Some(sink),
            present,
            running: false,
            waiting: false,
            next: 0,
            lost: 0,
            finished: false,
            stopped: false,
        };
        Runner {
            state: Mutex::new(state),
            more: Condvar::new(),
        }
    }

    pub(crate) fn lost(&self) -> u64 {
        lock(&self.state).lost
    }

    /// There is more in the ring.
    pub(crate) fn kick(&self, core: &Arc<Core>) {
        let mut state = lock(&self.state);
        if !state.present || state.stopped {
            return;
        }
        if state.running {
            if state.waiting {
                self.more.notify_one();
            }
            return;
        }
        let of = Arc::clone(core);
        core.sinking(true);
        // Without a thread now, the next line or the end tries again.
        state.running = spawn_open_thread("stockade-sink", move || {
            of.sink.serve(&of);
            of.sinking(false);
        })
        .is_ok();
        if !state.running {
            core.sinking(false);
        }
    }

    /// There will be no more in the ring.
    pub(crate) fn finish(&self, core: &Arc<Core>) {
        let mut state = lock(&self.state);
        state.finished = true;
        let pending = lock(&core.stderr).lines_seen() > state.next;
        if state.running || (state.present && !state.stopped && pending) {
            drop(state);
            self.kick(core);
            if lock(&self.state).running {
                // It says so when it has handed over the rest.
                return;
            }
            // No thread can be made: what it would have handed over is lost, but not unseen.
            let mut state = lock(&self.state);
            let seen = lock(&core.stderr).lines_seen();
            state.lost += seen.saturating_sub(state.next);
            state.next = seen;
        } else {
            // A thread for nothing would only delay the end. A file is closed now, whoever keeps the session.
            state.present = false;
            let sink = state.sink.take();
            drop(state);
            drop(sink);
        }
        core.post(Input::Drained);
    }

    /// Hands over nothing any more, from now on.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.more.notify_all();
    }

    /// The thread.
    fn serve(&self, core: &Arc<Core>) {
        let mut state = lock(&self.state);
        let Some(mut sink) = state.sink.take() else {
            return;
        };
        loop {
            if state.stopped {
                break;
            }
            // The lock stays: nobody may think that this thread has seen a line that it hasn't.
            let batch = lock(&core.stderr).lines_from(state.next, BATCH_LINES, BATCH_BYTES);
            state.next = batch.next;
            state.lost += batch.lost;
            if batch.lines.is_empty() {
                if state.finished {
                    break;
                }
                state.waiting = true;
                let (next, waited) = self
                    .more
                    .wait_timeout(state, LINGER)
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                state = next;
                state.waiting = false;
                let quiet = lock(&core.stderr).lines_seen() <= state.next;
                if waited.timed_out() && quiet && !state.finished {
                    break;
                }
                continue;
            }
            drop(state);
            // A sink that panics loses what it was given, not what follows.
            let refused = catch_unwind(AssertUnwindSafe(|| self.deliver(&mut sink, &batch.lines)));
            state = lock(&self.state);
            state.lost += refused.unwrap_or(batch.lines.len()) as u64;
        }
        let done = state.finished || state.stopped;
        state.running = false;
        if done {
            state.present = false;
            drop(state);
            drop(sink);
            core.post(Input::Drained);
        } else {
            state.sink = Some(sink);
        }
    }
}

/// How often a sink that takes nothing is asked whether it is wanted any more.
const ASK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

impl Runner {
    /// How many of the lines were not taken.
    fn deliver(&self, sink: &mut Sink, lines: &[Vec<u8>]) -> usize {
        match sink {
            Sink::None => 0,
            Sink::Lines(take) => {
                take(lines);
                0
            }
            Sink::File(file) => self.write(file, lines),
            // Opened before the server was started.
            Sink::Path(_) => lines.len(),
        }
    }

    fn write(&self, file: &File, lines: &[Vec<u8>]) -> usize {
        let mut text = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        for line in lines {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        let mut written = 0;
        while written < text.len() {
            match rustix::io::write(file, &text[written..]) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                // Whoever shares the descriptor has made it so; the waiting is done here then.
                Err(Errno::AGAIN) if !lock(&self.state).stopped => {
                    let mut fds = [PollFd::new(file, PollFlags::OUT)];
                    let _ = poll(&mut fds, Some(&ASK));
                }
                // A full disk or a closed terminal must not disturb the server; the ring has the lines.
                Err(_) => break,
            }
        }
        memchr::memchr_iter(b'\n', &text[written..]).count()
    }
}
