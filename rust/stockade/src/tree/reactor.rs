//! The one thread that serves all sessions, as everybody else sees it: what it is told, and what it holds.
//!
//! What it does is in [`serve`](crate::tree::serve).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rustix::io::Errno;

use crate::fork::HostFd;
use crate::os_error::os_error;
use crate::signals::spawn_thread;
use crate::tree::lifecycle::Input;
use crate::tree::poller::{Interest, Poller};
use crate::tree::serve::Loop;
use crate::tree::shared::Core;
use crate::wake::make_fds;
use crate::{Error, lock};

/// The token of the reactor's own descriptor.
pub(crate) const INBOX: u64 = u64::MAX;

pub(crate) enum Command {
    Adopt(Arc<Core>),
    Input(u64, Input),
    Flush(u64),
}

pub(crate) struct Reactor {
    pub(crate) poller: Poller,
    pub(crate) inbox: Mutex<Inbox>,
    pub(crate) bell: (HostFd, Option<HostFd>),
    /// Sessions that haven't ended, for everybody to see.
    pub(crate) live: Mutex<HashMap<u64, Arc<Core>>>,
    /// Sessions whose sink has a thread, ended ones included.
    sinking: Mutex<HashMap<u64, Arc<Core>>>,
    quiet: Condvar,
    next_id: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) commands: Vec<Command>,
    running: bool,
}

impl Reactor {
    pub(crate) fn new() -> Result<Reactor, Error> {
        let poller = Poller::new().map_err(|errno| os_error("epoll_create", errno))?;
        let bell = make_fds().map_err(|errno| os_error("eventfd", errno))?;
        poller
            .watch(&bell.0, INBOX, Interest::Readable)
            .map_err(|errno| os_error("epoll_ctl", errno))?;
        Ok(Reactor {
            poller,
            inbox: Mutex::default(),
            bell,
            live: Mutex::default(),
            sinking: Mutex::default(),
            quiet: Condvar::new(),
            next_id: AtomicU64::new(0),
        })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts the thread where there is none yet: before a server that would need it.
    pub(crate) fn ensure_running(&'static self) -> Result<(), Error> {
        let mut inbox = lock(&self.inbox);
        if !inbox.running {
            spawn_thread("stockade", move || Loop::new(self).run()).map_err(|error| {
                os_error(
                    "pthread_create",
                    Errno::from_io_error(&error).unwrap_or(Errno::AGAIN),
                )
            })?;
            inbox.running = true;
        }
        Ok(())
    }

    /// Serves a session from now on, until it has ended. The thread hears of it with the next `ring`: whoever waits for
    /// the launch is told first.
    pub(crate) fn adopt(&self, core: &Arc<Core>) {
        lock(&self.live).insert(core.id, Arc::clone(core));
        lock(&self.inbox)
            .commands
            .push(Command::Adopt(Arc::clone(core)));
    }

    pub(crate) fn post(&self, id: u64, input: Input) {
        self.tell(Command::Input(id, input));
    }

    pub(crate) fn flush(&self, id: u64) {
        self.tell(Command::Flush(id));
    }

    fn tell(&self, command: Command) {
        lock(&self.inbox).commands.push(command);
        self.ring();
    }

    pub(crate) fn ring(&self) {
        let fd = self.bell.1.as_ref().unwrap_or(&self.bell.0);
        while rustix::io::write(fd, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }

    pub(crate) fn sinking(&self, core: &Arc<Core>, begins: bool) {
        let mut sinking = lock(&self.sinking);
        if begins {
            sinking.insert(core.id, Arc::clone(core));
        } else {
            sinking.remove(&core.id);
            self.quiet.notify_all();
        }
    }

    /// Has no sink called any more, and waits for those that are being called.
    pub(crate) fn stop_sinks(&self, deadline: Instant) {
        // Not under the lock: a sink's own comes before it elsewhere.
        let cores: Vec<Arc<Core>> = lock(&self.sinking).values().cloned().collect();
        for core in cores {
            core.sink.stop();
        }
        let mut sinking = lock(&self.sinking);
        while !sinking.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sinking = self
                .quiet
                .wait_timeout(sinking, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
    }

    pub(crate) fn live(&self) -> usize {
        lock(&self.live).len()
    }

    pub(crate) fn sessions(&self) -> Vec<Arc<Core>> {
        lock(&self.live).values().cloned().collect()
    }
}
