//! What the reactor's thread does: one turn after the other, one session's step after the other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
#[cfg(feature = "faults")]
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::launch::Started;
use crate::lock;
use crate::owner::control::{Heard, hear, tell};
use crate::owner::protocol::{self, Event, Request};
use crate::tree::lifecycle::{Action, Exit, Fault, Input};
use crate::tree::outlet::Flushed;
use crate::tree::poller::Interest;
use crate::tree::reactor::{Command, INBOX, Reactor};
use crate::tree::report;
use crate::tree::shared::Core;
use crate::tree::watchers::Moment;

/// Which descriptor of a session an event is about; the rest of the token is the session's number.
#[derive(Clone, Copy)]
enum Source {
    Control,
    Stderr,
    Stdin,
    Stdout,
}

const SOURCES: u64 = 4;
/// Reads of one stderr before others get their turn.
const STDERR_READS: usize = 8;
/// The kernel takes its time to tell of its out-of-memory killer: not while somebody waits for a launch.
const NOTE_AFTER: Duration = Duration::from_millis(20);
/// A supervisor is about to exit when its socket ends: how often it is looked at until it has, at first and later.
const REAP_YIELDS: u32 = 50;
const REAP_INTERVAL: Duration = Duration::from_millis(1);

fn token(id: u64, source: Source) -> u64 {
    id * SOURCES + source as u64
}

/// A session as the thread sees it.
struct Served {
    core: Arc<Core>,
    started: Started,
    /// The supervisor's last word: how many descendants it killed.
    empty: Option<u32>,
    reaped: bool,
}

impl Served {
    fn tell(&self, kind: u32, flag: u32) {
        // A server can stop what is above it.
        self.started.wake_up();
        tell(
            &self.started.control,
            Request {
                kind,
                flag,
                ..Request::default()
            },
        );
    }
}

pub(crate) struct Loop {
    reactor: &'static Reactor,
    sessions: HashMap<u64, Served>,
    deadlines: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Sessions whose supervisor is about to exit.
    to_reap: Vec<u64>,
    /// Sessions for which the state of the machine is still to be noted, and when.
    to_note: Vec<u64>,
    note_at: Option<Instant>,
    /// For bytes that nobody wants.
    scratch: Vec<u8>,
}

impl Loop {
    pub(crate) fn new(reactor: &'static Reactor) -> Self {
        Loop {
            reactor,
            sessions: HashMap::new(),
            deadlines: BinaryHeap::new(),
            to_reap: Vec::new(),
            to_note: Vec::new(),
            note_at: None,
            scratch: vec![0; 64 * 1024],
        }
    }

    pub(crate) fn run(mut self) {
        loop {
            // What panics outside one session's step must not end the thread that all depend on.
            let _ = catch_unwind(AssertUnwindSafe(|| self.turn()));
        }
    }

    fn turn(&mut self) {
        let timeout = self.timeout(Instant::now());
        let Ok(tokens) = self.reactor.poller.ready(timeout) else {
            // Can't happen with a valid descriptor; without it nothing can be served, and a spin would help nobody.
            std::thread::sleep(REAP_INTERVAL);
            return;
        };
        for ready in tokens {
            if ready == INBOX {
                let mut buffer = [0u8; 64];
                while matches!(
                    rustix::io::read(&self.reactor.bell.0, &mut buffer),
                    Ok(64) | Err(Errno::INTR)
                ) {}
            } else {
                self.guarded(ready / SOURCES, |me, id| me.serve(id, ready % SOURCES));
            }
        }
        // Also without its token: commands may have come since.
        let commands = std::mem::take(&mut lock(&self.reactor.inbox).commands);
        for command in commands {
            self.obey(command);
        }
        for id in std::mem::take(&mut self.to_reap) {
            self.guarded(id, Loop::reap);
        }
        self.meet_deadlines();
    }

    fn timeout(&self, now: Instant) -> Option<Duration> {
        let deadline = self.deadlines.peek().map(|Reverse((at, _))| *at);
        let next = deadline
            .into_iter()
            .chain(self.note_at)
            .min()
            .map(|at| at.saturating_duration_since(now));
        if self.to_reap.is_empty() {
            next
        } else {
            Some(next.map_or(REAP_INTERVAL, |next| next.min(REAP_INTERVAL)))
        }
    }

    /// Runs one step of one session. A panic ends that session with an error, and no other.
    fn guarded(&mut self, id: u64, step: impl FnOnce(&mut Self, u64)) {
        let result = catch_unwind(AssertUnwindSafe(|| {
            #[cfg(feature = "faults")]
            if let Some(served) = self.sessions.get(&id) {
                assert!(
                    !served.core.panic_next.swap(false, Ordering::AcqRel),
                    "injected"
                );
            }
            step(self, id);
        }));
        if result.is_err() {
            let again = catch_unwind(AssertUnwindSafe(|| {
                self.input(id, Input::Fail(Fault::Panic));
            }));
            if again.is_err()
                && let Some(served) = self.sessions.get(&id)
            {
                served.tell(protocol::KILL, 0);
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Adopt(core) => {
                let id = core.id;
                let Some(started) = lock(&core.started).take() else {
                    return;
                };
                self.sessions.insert(
                    id,
                    Served {
                        core,
                        started,
                        empty: None,
                        reaped: false,
                    },
                );
                self.guarded(id, Loop::adopt);
            }
            Command::Input(id, input) => self.guarded(id, |me, id| me.input(id, input)),
            Command::Flush(id) => self.guarded(id, Loop::flush),
        }
    }

    fn adopt(&mut self, id: u64) {
        let Some(served) = self.sessions.get(&id) else {
            return;
        };
        let core = Arc::clone(&served.core);
        let poller = &self.reactor.poller;
        let mut watched = poller
            .watch(
                &served.started.control,
                token(id, Source::Control),
                Interest::Readable,
            )
            .is_ok();
        if let Some(fd) = &*lock(&core.stderr_fd) {
            watched &= poller
                .watch(fd, token(id, Source::Stderr), Interest::Readable)
                .is_ok();
        }
        self.to_note.push(id);
        let later = Instant::now() + NOTE_AFTER;
        self.note_at.get_or_insert(later);
        if !watched {
            // Out of kernel memory or watches: a server that can't be served must not run.
            self.input(id, Input::Fail(Fault::Panic));
        }
    }

    fn serve(&mut self, id: u64, source: u64) {
        let Some(served) = self.sessions.get(&id) else {
            return;
        };
        let core = Arc::clone(&served.core);
        match source {
            s if s == Source::Control as u64 => self.hear(id),
            s if s == Source::Stderr as u64 => self.read_stderr(id, &core),
            s if s == Source::Stdin as u64 => self.flush(id),
            _ => self.drop_stdout(&core),
        }
    }

    fn hear(&mut self, id: u64) {
        while let Some(served) = self.sessions.get(&id) {
            match hear(&served.started.control) {
                Heard::Event(event) => self.event(id, &event),
                Heard::Nothing => return,
                Heard::End => {
                    self.reactor.poller.unwatch(&served.started.control);
                    self.reap(id);
                    return;
                }
            }
        }
    }

    fn event(&mut self, id: u64, event: &Event) {
        match event.kind {
            protocol::EXITED => {
                let exit = Exit {
                    status: event.status,
                    user: Duration::from_micros(event.user_us),
                    system: Duration::from_micros(event.system_us),
                };
                self.input(id, Input::Exited(exit));
            }
            protocol::STOPPED => self.input(id, Input::Stopped(event.count != 0)),
            protocol::LEFT => self.input(id, Input::Left(event.count)),
            protocol::EMPTY => {
                if let Some(served) = self.sessions.get_mut(&id) {
                    served.empty = Some(event.count);
                }
            }
            _ => {}
        }
    }

    /// The supervisor's socket has ended: takes its exit status, so that no zombie is left. The tree counts as gone only
    /// then.
    fn reap(&mut self, id: u64) {
        let Some(served) = self.sessions.get_mut(&id) else {
            return;
        };
        if served.reaped {
            return;
        }
        // It is inside its exit: a moment that isn't worth a sleep.
        if !(0..REAP_YIELDS).any(|_| has_been_reaped(served.started.supervisor)) {
            self.to_reap.push(id);
            return;
        }
        // Done, or somebody else of this process has waited for any child.
        served.reaped = true;
        if served.empty.is_none() {
            served.started.supervisor_lost();
        }
        let input = served.empty.map_or(Input::OwnerGone, Input::Empty);
        self.input(id, input);
        self.forget_if_over(id);
    }

    fn read_stderr(&mut self, id: u64, core: &Arc<Core>) {
        let held = lock(&core.stderr_fd);
        let Some(fd) = held.as_ref() else { return };
        let mut over = false;
        for _ in 0..STDERR_READS {
            match lock(&core.stderr).fill(|room| rustix::io::read(fd, room)) {
                Ok(0) => over = true,
                Ok(_) | Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(_) => over = true,
            }
            break;
        }
        drop(held);
        core.sink.kick(core);
        if over {
            self.end_stderr(id);
        }
    }

    fn end_stderr(&mut self, id: u64) {
        let Some(core) = self.core(id) else { return };
        if let Some(fd) = lock(&core.stderr_fd).take() {
            self.reactor.poller.unwatch(&fd);
            // Its last line may have no newline.
            let _ = lock(&core.stderr).fill(|_| Ok::<_, Errno>(0));
            self.input(id, Input::StderrEnded);
            core.sink.finish(&core);
        }
    }

    fn flush(&mut self, id: u64) {
        let Some(core) = self.core(id) else { return };
        let mut outlet = lock(&core.outlet);
        let Some(fd) = outlet.fd() else { return };
        self.reactor.poller.unwatch(fd);
        let was_open = outlet.is_open();
        let flushed = outlet.flush();
        if let (Flushed::Some { .. }, Some(fd)) = (&flushed, outlet.fd()) {
            let _ = self
                .reactor
                .poller
                .watch(fd, token(id, Source::Stdin), Interest::Writable);
        }
        drop(outlet);
        if was_open && flushed == Flushed::Closed {
            self.input(id, Input::Refused);
        }
        if flushed != (Flushed::Some { room: false }) {
            core.wake(Moment::Writable);
        }
    }

    fn drop_stdout(&mut self, core: &Arc<Core>) {
        if let Some(fd) = core.stdout_fd()
            && core.drop_stdout(&mut self.scratch)
        {
            self.reactor.poller.unwatch(&*fd);
        }
    }

    fn core(&self, id: u64) -> Option<Arc<Core>> {
        self.sessions
            .get(&id)
            .map(|served| Arc::clone(&served.core))
    }

    fn input(&mut self, id: u64, input: Input) {
        let Some(core) = self.core(id) else { return };
        let now = Instant::now();
        let (actions, before, deadline) = core.with_state(|state| {
            let before = state.life.deadline();
            (state.life.handle(input, now), before, state.life.deadline())
        });
        if let Some(deadline) = deadline
            && Some(deadline) != before
        {
            self.deadlines.push(Reverse((deadline, id)));
        }
        for action in actions {
            self.act(id, &core, action);
        }
    }

    fn act(&mut self, id: u64, core: &Arc<Core>, action: Action) {
        let say = |kind, flag| {
            if let Some(served) = self.sessions.get(&id) {
                served.tell(kind, flag);
            }
        };
        let poller = &self.reactor.poller;
        match action {
            Action::SetLeave(leave) => say(protocol::LEAVE, u32::from(leave)),
            Action::Terminate => say(protocol::TERMINATE, 0),
            Action::KillTree => say(protocol::KILL, 0),
            Action::CloseStdin | Action::DropStdin => {
                let mut outlet = lock(&core.outlet);
                if let Some(fd) = outlet.fd() {
                    poller.unwatch(fd);
                }
                if action == Action::DropStdin {
                    outlet.drop_now();
                } else if !outlet.close_when_flushed()
                    && let Some(fd) = outlet.fd()
                {
                    let _ = poller.watch(fd, token(id, Source::Stdin), Interest::Writable);
                }
                drop(outlet);
                core.wake(Moment::Writable);
            }
            Action::DrainStdout => {
                if let Some(fd) = core.start_dropping_stdout() {
                    let _ = poller.watch(&*fd, token(id, Source::Stdout), Interest::Readable);
                }
                core.wake(Moment::Readable);
            }
            Action::EndStdout => {
                if let Some(fd) = core.end_stdout() {
                    poller.unwatch(&*fd);
                }
                core.wake(Moment::Readable);
            }
            Action::EndStderr => self.end_stderr(id),
            Action::TellExited => {
                core.note_exit();
                core.wake(Moment::Exited);
            }
            Action::Finish => {
                if let Some(fd) = lock(&core.stderr_fd).take() {
                    poller.unwatch(&fd);
                }
                lock(&self.reactor.live).remove(&id);
                core.finish();
                self.forget_if_over(id);
            }
        }
    }

    /// A session is served until it has ended and its supervisor is gone: an unkillable tree keeps it here.
    fn forget_if_over(&mut self, id: u64) {
        if self
            .sessions
            .get(&id)
            .is_some_and(|served| served.reaped && served.core.ended())
        {
            self.sessions.remove(&id);
        }
    }

    fn meet_deadlines(&mut self) {
        let now = Instant::now();
        if self.note_at.is_some_and(|at| at <= now) {
            self.note_at = None;
            let kills = report::out_of_memory_kills();
            for id in std::mem::take(&mut self.to_note) {
                if let Some(core) = self.core(id) {
                    core.with_state(|state| state.out_of_memory_before = kills);
                }
            }
        }
        while let Some(Reverse((at, id))) = self.deadlines.peek().copied()
            && at <= now
        {
            self.deadlines.pop();
            self.guarded(id, |me, id| me.input(id, Input::Deadline));
        }
    }
}

/// Takes the exit status of a child, if it is there. Between two looks the child may run.
fn has_been_reaped(pid: i32) -> bool {
    // SAFETY: takes a null pointer for a status that isn't wanted.
    let reaped = unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } != 0;
    if !reaped {
        std::thread::yield_now();
    }
    reaped
}
