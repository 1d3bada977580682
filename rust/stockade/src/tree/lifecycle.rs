//! What happens to a server from its start to its end: decisions only, no system calls.
//!
//! Inputs are what was asked for, what the operating system told and that a deadline passed; the answers are actions
//! for the reactor. So every path can be tested without a process.

use std::time::{Duration, Instant};

/// How an end goes: each wait is at most so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shutdown {
    /// After stdin was closed, for the server to end by itself.
    pub close_grace: Duration,
    /// After SIGTERM to the tree.
    pub terminate_grace: Duration,
    /// After SIGKILL to the tree, for the kernel to have done it.
    pub kill_wait: Duration,
    /// Don't kill what is left of the tree when the server itself has ended.
    pub leave_descendants: bool,
}

impl Default for Shutdown {
    fn default() -> Self {
        let wait = Duration::from_secs(2);
        Shutdown {
            close_grace: wait,
            terminate_grace: wait,
            kill_wait: wait,
            leave_descendants: false,
        }
    }
}

/// What ended the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedBy {
    /// It ended by itself, unasked.
    Exit,
    /// It ended when its stdin was closed.
    Close,
    /// SIGTERM was needed.
    Terminate,
    /// SIGKILL was needed, or asked for.
    Kill,
    /// It passed a limit.
    Limit,
}

impl EndedBy {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            EndedBy::Exit => "exit",
            EndedBy::Close => "close",
            EndedBy::Terminate => "terminate",
            EndedBy::Kill => "kill",
            EndedBy::Limit => "limit",
        }
    }
}

/// How the server's own process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    /// As of wait(2).
    pub(crate) status: i32,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

/// Why the executor ends a server on its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    FrameTooLong,
    Panic,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// Somebody wants it to end.
    Close(Shutdown),
    /// Somebody wants it dead.
    Kill,
    /// A write to its stdin was refused: it had closed it, or was dead.
    Refused,
    /// It can't go on.
    Fail(Fault),
    /// Its process has ended.
    Exited(Exit),
    /// Its process was stopped or continued.
    Stopped(bool),
    /// While killing: so many are still there.
    Left(u32),
    /// The tree is gone (or left alone); so many descendants were killed.
    Empty(u32),
    /// Whoever owns the tree was killed: no more news will come.
    OwnerGone,
    /// stderr has come to its end.
    StderrEnded,
    /// stderr has ended and its sink has all of it.
    Drained,
    /// The deadline has passed.
    Deadline,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Close stdin once what was accepted is written.
    CloseStdin,
    /// Close stdin now, written or not.
    DropStdin,
    /// Read stdout to its end and drop it.
    DrainStdout,
    /// Tell the tree's owner whether to leave descendants alone.
    SetLeave(bool),
    /// SIGTERM to the tree.
    Terminate,
    /// SIGKILL to the tree.
    KillTree,
    /// The exit status is known.
    TellExited,
    /// No more of stdout will come than what is in the pipe.
    EndStdout,
    /// Read no more of stderr.
    EndStderr,
    /// The report can be made.
    Finish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// stdin was closed.
    Grace,
    /// SIGTERM was sent.
    Terminating,
    /// SIGKILL was sent, or the server has ended and its descendants are being killed.
    Emptying,
    /// Only what is left in stderr is waited for.
    Draining,
    Ended,
}

/// How long the rest of stderr is waited for when the tree is gone. Only somebody who left the tree can still hold it.
const DRAIN: Duration = Duration::from_millis(250);
/// How long a slow sink is waited for after that.
const SINK_WAIT: Duration = Duration::from_secs(1);

/// A deadline. A wait too long for the clock is as good as a century.
pub(crate) fn after(now: Instant, wait: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
    now.checked_add(wait).unwrap_or(now + CENTURY)
}

/// One server's life.
#[derive(Debug, Clone)]
pub(crate) struct Lifecycle {
    phase: Phase,
    shutdown: Shutdown,
    deadline: Option<Instant>,
    stderr_ended: bool,
    drained: bool,
    refused: bool,
    pub(crate) ended_by: EndedBy,
    pub(crate) exit: Option<Exit>,
    pub(crate) fault: Option<Fault>,
    pub(crate) stopped: bool,
    /// It was when SIGTERM, and with it SIGCONT, was sent.
    pub(crate) was_stopped: bool,
    pub(crate) owner_killed: bool,
    pub(crate) descendants_killed: u32,
    /// Still there when the wait for them ended.
    pub(crate) unkillable: u32,
    left: u32,
    tree_gone: bool,
}

impl Lifecycle {
    /// A running server with the waits that apply when nobody says others.
    pub(crate) fn new(shutdown: Shutdown) -> Self {
        Lifecycle {
            phase: Phase::Running,
            shutdown,
            deadline: None,
            stderr_ended: false,
            drained: false,
            refused: false,
            ended_by: EndedBy::Exit,
            exit: None,
            fault: None,
            stopped: false,
            was_stopped: false,
            owner_killed: false,
            descendants_killed: 0,
            unkillable: 0,
            left: 0,
            tree_gone: false,
        }
    }

    /// When [`Input::Deadline`] is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    #[cfg(test)]
    pub(crate) fn ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Takes what happened; says what to do, in this order.
    pub(crate) fn handle(&mut self, input: Input, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.phase == Phase::Ended {
            return actions;
        }
        match input {
            Input::Close(shutdown) => self.close(shutdown, now, &mut actions),
            Input::Kill => self.kill(now, &mut actions),
            Input::Refused => self.refused |= self.phase == Phase::Running,
            Input::Fail(fault) => {
                self.fault.get_or_insert(fault);
                if self.phase == Phase::Running {
                    actions.push(Action::DrainStdout);
                }
                self.kill(now, &mut actions);
                if fault == Fault::FrameTooLong && self.exit.is_none() {
                    self.ended_by = EndedBy::Limit;
                }
            }
            Input::Exited(exit) => self.exited(exit, now, &mut actions),
            Input::Stopped(stopped) => self.stopped = stopped,
            Input::Left(count) => self.left = count,
            Input::Empty(killed) => {
                self.descendants_killed = killed;
                self.tree_is_gone(now, &mut actions);
            }
            Input::OwnerGone => {
                if !self.tree_gone {
                    self.owner_killed = true;
                    self.tree_is_gone(now, &mut actions);
                }
            }
            Input::StderrEnded => {
                self.stderr_ended = true;
                if self.phase == Phase::Draining {
                    self.deadline = Some(now + SINK_WAIT);
                }
            }
            Input::Drained => {
                self.drained = true;
                if self.phase == Phase::Draining {
                    self.finish(&mut actions);
                }
            }
            Input::Deadline => {
                if self.deadline.is_some_and(|deadline| now >= deadline) {
                    self.deadline_passed(now, &mut actions);
                }
            }
        }
        actions
    }

    fn close(&mut self, shutdown: Shutdown, now: Instant, actions: &mut Vec<Action>) {
        if self.phase == Phase::Running {
            self.shutdown = shutdown;
            self.phase = Phase::Grace;
            self.deadline = Some(after(now, shutdown.close_grace));
            actions.extend([
                Action::SetLeave(shutdown.leave_descendants),
                Action::CloseStdin,
                Action::DrainStdout,
            ]);
            return;
        }
        // Once more: only faster.
        let mine = &mut self.shutdown;
        mine.close_grace = mine.close_grace.min(shutdown.close_grace);
        mine.terminate_grace = mine.terminate_grace.min(shutdown.terminate_grace);
        mine.kill_wait = mine.kill_wait.min(shutdown.kill_wait);
        let wait = match self.phase {
            Phase::Grace => mine.close_grace,
            Phase::Terminating => mine.terminate_grace,
            Phase::Emptying => mine.kill_wait,
            // Nearly over, and soon enough.
            Phase::Draining => DRAIN + SINK_WAIT,
            Phase::Running | Phase::Ended => return,
        };
        self.deadline = self.deadline.map(|deadline| deadline.min(after(now, wait)));
        if self.exit.is_some() {
            // It ended by itself before; what is left of its output isn't wanted any more.
            actions.extend([Action::DropStdin, Action::DrainStdout]);
            if self.tree_gone {
                actions.push(Action::EndStdout);
            }
        }
    }

    fn kill(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if matches!(
            self.phase,
            Phase::Running | Phase::Grace | Phase::Terminating
        ) {
            self.phase = Phase::Emptying;
            self.deadline = Some(after(now, self.shutdown.kill_wait));
            if self.exit.is_none() {
                self.ended_by = EndedBy::Kill;
            }
            // stdin stays until it is dead: a server that ends with its input would seem to have ended by itself.
            actions.push(Action::KillTree);
        }
    }

    fn exited(&mut self, exit: Exit, now: Instant, actions: &mut Vec<Action>) {
        self.exit = Some(exit);
        match self.phase {
            Phase::Running => self.ended_by = EndedBy::Exit,
            // Whoever met a closed stdin may close before the death is heard of.
            Phase::Grace if self.refused => self.ended_by = EndedBy::Exit,
            Phase::Grace => self.ended_by = EndedBy::Close,
            Phase::Terminating => self.ended_by = EndedBy::Terminate,
            _ => {}
        }
        if self.phase == Phase::Terminating {
            // A wrapper may die of SIGTERM at once; what it wraps has the rest of the grace.
        } else if self.phase != Phase::Emptying {
            // The owner kills what is left, or lets it be, without being told.
            self.phase = Phase::Emptying;
            self.deadline = Some(after(now, self.shutdown.kill_wait));
            actions.push(Action::DropStdin);
        }
        actions.push(Action::TellExited);
    }

    fn tree_is_gone(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.tree_gone = true;
        self.phase = Phase::Draining;
        self.deadline = Some(now + if self.stderr_ended { SINK_WAIT } else { DRAIN });
        actions.extend([Action::DropStdin, Action::EndStdout]);
        if self.drained {
            self.finish(actions);
        }
    }

    fn deadline_passed(&mut self, now: Instant, actions: &mut Vec<Action>) {
        match self.phase {
            Phase::Grace => {
                self.was_stopped = self.stopped;
                self.phase = Phase::Terminating;
                self.deadline = Some(after(now, self.shutdown.terminate_grace));
                actions.extend([Action::DropStdin, Action::Terminate]);
            }
            Phase::Terminating => self.kill(now, actions),
            Phase::Emptying => {
                // The kernel hasn't done it. The owner goes on; nobody waits for it any longer.
                self.unkillable = self.left.max(1);
                self.tree_is_gone(now, actions);
            }
            Phase::Draining if !self.stderr_ended => {
                self.stderr_ended = true;
                self.deadline = Some(now + SINK_WAIT);
                actions.push(Action::EndStderr);
            }
            Phase::Draining => self.finish(actions),
            Phase::Running | Phase::Ended => self.deadline = None,
        }
    }

    fn finish(&mut self, actions: &mut Vec<Action>) {
        self.phase = Phase::Ended;
        self.deadline = None;
        actions.push(Action::Finish);
    }
}

#[cfg(test)]
#[path = "lifecycle_tests.rs"]
mod tests;
