//! What the helper does when: decisions only. Everything that touches the operating system is a [`World`].
//!
//! The server's number is that of its process group. It can't become anybody else's while the server is unreaped, nor
//! while the group has a member. So a server that has died is reaped only after its group was killed, and the group is
//! signalled for the last time when nobody was found in it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::protocol::{
    EMPTY, EXITED, Event, KILL, LEAVE, LEFT, Request, SIGNAL, STOPPED, TERMINATE,
};

/// Processes die within moments of their SIGKILL: so long they are looked at often, while the server waits to be reaped.
const QUICK_ROUNDS: u32 = 4;
const QUICK: Duration = Duration::from_millis(1);
/// What refuses to die is killed again at this interval.
const SLOW: Duration = Duration::from_millis(50);

/// The server and its group.
pub(crate) trait World {
    const KILL: i32;
    const TERMINATE: i32;
    const CONTINUE: i32;

    /// Signals the server's own process. It must not have been reaped.
    fn signal_server(&mut self, signal: i32);
    /// Signals everybody in the group. False: there was nobody.
    fn signal_group(&mut self, signal: i32) -> bool;
    /// The living processes of the group besides the server.
    fn others(&mut self) -> Vec<i32>;
    /// Whether the server has ended. Doesn't reap it.
    fn has_exited(&mut self) -> bool;
    /// Takes a stop (true) or continuation (false) of the server, with its wait status.
    fn stop_or_continue(&mut self) -> Option<(bool, i32)>;
    /// Reaps the server, which has ended: status and times of the event are filled.
    fn reap(&mut self) -> Event;
    /// Tells the host.
    fn tell(&mut self, event: &Event);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Server {
    Running,
    /// It has ended and holds its number.
    Unreaped,
    Reaped,
}

/// What follows.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Wait for something to happen, at most so long.
    Wait(Option<Duration>),
    /// All is done.
    Exit,
}

pub(crate) struct Keeper {
    server: Server,
    leave: bool,
    killing: bool,
    host_gone: bool,
    rounds: u32,
    /// Everybody but the server who was in the group while it was killed.
    killed: BTreeSet<i32>,
    told_left: u32,
}

impl Keeper {
    pub(crate) fn new(leave: bool) -> Self {
        Keeper {
            server: Server::Running,
            leave,
            killing: false,
            host_gone: false,
            rounds: 0,
            killed: BTreeSet::new(),
            told_left: 0,
        }
    }

    /// The host has died, or let go.
    pub(crate) fn host_gone(&mut self) {
        self.host_gone = true;
        self.killing = true;
    }

    /// The host says something.
    pub(crate) fn request<W: World>(&mut self, request: Request, world: &mut W) {
        match request.kind {
            SIGNAL if self.server == Server::Running => world.signal_server(request.value),
            TERMINATE if self.server == Server::Running => {
                world.signal_group(W::TERMINATE);
                // So that stopped ones get to see it.
                world.signal_group(W::CONTINUE);
            }
            KILL => self.killing = true,
            LEAVE => self.leave = request.flag != 0,
            _ => {}
        }
    }

    /// Looks at the server and does what is due; to be called whenever something may have happened.
    pub(crate) fn step<W: World>(&mut self, world: &mut W) -> Next {
        if self.server == Server::Running {
            while let Some((stopped, status)) = world.stop_or_continue() {
                world.tell(&Event {
                    kind: STOPPED,
                    status,
                    count: u32::from(stopped),
                    ..Event::default()
                });
            }
            if world.has_exited() {
                self.server = Server::Unreaped;
                self.killing |= !self.leave;
                if !self.killing {
                    self.reap(world);
                    return self.finish(world);
                }
            }
        }
        if !self.killing {
            return Next::Wait(None);
        }
        let others = world.others();
        let found = world.signal_group(W::KILL);
        if found {
            self.killed.extend(&others);
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.server == Server::Unreaped && (!found || self.rounds > QUICK_ROUNDS) {
            self.reap(world);
        }
        if !found && self.server == Server::Reaped {
            return self.finish(world);
        }
        let running = u32::from(self.server == Server::Running);
        // Somebody was found, whatever the list says.
        let left = (u32::try_from(others.len())
            .unwrap_or(u32::MAX)
            .saturating_add(running))
        .max(1);
        if left != self.told_left && !self.host_gone {
            self.told_left = left;
            world.tell(&Event {
                kind: LEFT,
                count: left,
                ..Event::default()
            });
        }
        Next::Wait(Some(if self.rounds > QUICK_ROUNDS {
            SLOW
        } else {
            QUICK
        }))
    }

    fn reap<W: World>(&mut self, world: &mut W) {
        let event = Event {
            kind: EXITED,
            ..world.reap()
        };
        self.server = Server::Reaped;
        world.tell(&event);
    }

    fn finish<W: World>(&mut self, world: &mut W) -> Next {
        let count = u32::try_from(self.killed.len()).unwrap_or(u32::MAX);
        world.tell(&Event {
            kind: EMPTY,
            count,
            ..Event::default()
        });
        Next::Exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server, number 1, and others in its group.
    #[derive(Default)]
    struct Fake {
        running: bool,
        reaped: bool,
        others: Vec<i32>,
        /// SIGKILLs that the others survive.
        tough: u32,
        stops: Vec<(bool, i32)>,
        signals: Vec<(bool, i32)>,
        told: Vec<(u32, u32)>,
        /// Nobody was found in the group: once the server is reaped, its number may be a stranger's.
        empty: bool,
    }

    impl Fake {
        fn new(others: &[i32]) -> Self {
            Fake {
                running: true,
                others: others.to_vec(),
                ..Fake::default()
            }
        }
    }

    impl World for Fake {
        const KILL: i32 = 9;
        const TERMINATE: i32 = 15;
        const CONTINUE: i32 = 19;

        fn signal_server(&mut self, signal: i32) {
            assert!(!self.reaped, "a reaped process was signalled");
            self.signals.push((false, signal));
        }

        fn signal_group(&mut self, signal: i32) -> bool {
            assert!(
                !(self.reaped && self.empty),
                "a number that may be a stranger's was signalled"
            );
            let found = self.running || !self.others.is_empty();
            self.empty = !found;
            self.signals.push((true, signal));
            if signal == Self::KILL {
                self.running = false;
                if self.tough == 0 {
                    self.others.clear();
                }
                self.tough = self.tough.saturating_sub(1);
            }
            found
        }

        fn others(&mut self) -> Vec<i32> {
            self.others.clone()
        }

        fn has_exited(&mut self) -> bool {
            !self.running
        }

        fn stop_or_continue(&mut self) -> Option<(bool, i32)> {
            self.stops.pop()
        }

        fn reap(&mut self) -> Event {
            assert!(!self.running && !self.reaped);
            self.reaped = true;
            Event {
                status: 256,
                user_us: 5,
                ..Event::default()
            }
        }

        fn tell(&mut self, event: &Event) {
            self.told.push((event.kind, event.count));
        }
    }

    fn run(keeper: &mut Keeper, world: &mut Fake) -> Vec<Next> {
        let mut all = Vec::new();
        loop {
            let next = keeper.step(world);
            let waits = matches!(next, Next::Wait(Some(_)));
            all.push(next);
            if !waits {
                return all;
            }
        }
    }

    #[test]
    fn a_server_without_descendants_is_reported_at_once() {
        let (mut keeper, mut world) = (Keeper::new(false), Fake::new(&[]));
        assert_eq!(keeper.step(&mut world), Next::Wait(None));
        world.running = false;
        assert_eq!(keeper.step(&mut world), Next::Exit);
        assert_eq!(world.told, [(EXITED, 0), (EMPTY, 0)]);
    }

    #[test]
    fn what_outlives_the_server_is_killed_before_its_number_is_given_up() {
        let (mut keeper, mut world) = (Keeper::new(false), Fake::new(&[7, 8]));
        world.running = false;
        assert_eq!(run(&mut keeper, &mut world).last(), Some(&Next::Exit));
        assert_eq!(world.signals[0], (true, Fake::KILL));
        assert_eq!(world.told, [(LEFT, 2), (EXITED, 0), (EMPTY, 2)]);
    }

    #[test]
    fn the_exit_is_told_soon_although_somebody_refuses_to_die() {
        let (mut keeper, mut world) = (Keeper::new(false), Fake::new(&[7]));
        world.running = false;
        world.tough = 10;
        let nexts = run(&mut keeper, &mut world);
        assert_eq!(
            nexts
                .iter()
                .filter(|next| **next == Next::Wait(Some(QUICK)))
                .count(),
            QUICK_ROUNDS as usize
        );
        assert_eq!(world.told, [(LEFT, 1), (EXITED, 0), (EMPTY, 1)]);
        assert!(nexts.contains(&Next::Wait(Some(SLOW))));
    }

    #[test]
    fn descendants_are_left_alone_on_request_unless_everything_is_to_be_killed() {
        let (mut keeper, mut world) = (Keeper::new(false), Fake::new(&[7]));
        keeper.request(
            Request {
                kind: LEAVE,
                value: 0,
                flag: 1,
            },
            &mut world,
        );
        world.running = false;
        assert_eq!(keeper.step(&mut world), Next::Exit);
        assert_eq!(
            (world.told, world.signals),
            (vec![(EXITED, 0), (EMPTY, 0)], vec![])
        );

        let (mut keeper, mut world) = (Keeper::new(true), Fake::new(&[7]));
        keeper.request(
            Request {
                kind: KILL,
                ..Request::default()
            },
            &mut world,
        );
        assert_eq!(run(&mut keeper, &mut world).last(), Some(&Next::Exit));
        assert_eq!(world.told, [(LEFT, 2), (EXITED, 0), (EMPTY, 1)]);
    }

    #[test]
    fn the_death_of_the_host_kills_the_group() {
        let (mut keeper, mut world) = (Keeper::new(true), Fake::new(&[7]));
        keeper.host_gone();
        assert_eq!(run(&mut keeper, &mut world).last(), Some(&Next::Exit));
        assert!(!world.running && world.others.is_empty() && world.reaped);
    }

    #[test]
    fn a_polite_end_wakes_those_who_are_stopped() {
        let (mut keeper, mut world) = (Keeper::new(false), Fake::new(&[7]));
        keeper.request(
            Request {
                kind: TERMINATE,
                ..Request::default()
            },
            &mut world,
        );
        keeper.request(
            Request {
                kind: SIGNAL,
                value: 2,
                flag: 0,
            },
            &mut world,
        );
        assert_eq!(world.signals, [(true, 15), (true, 19), (false, 2)]);
        assert_eq!(keeper.step(&mut world), Next::Wait(None));
    }

    #[test]
    fn nobody_is_signalled_for_the_server_after_it_was_reaped() {
        let (mut keeper, mut world) = (Keeper::new(false), Fake::new(&[7]));
        world.running = false;
        world.tough = 20;
        while !world.reaped {
            keeper.step(&mut world);
        }
        let before = world.signals.len();
        keeper.request(
            Request {
                kind: SIGNAL,
                value: 2,
                flag: 0,
            },
            &mut world,
        );
        keeper.request(
            Request {
                kind: TERMINATE,
                ..Request::default()
            },
            &mut world,
        );
        assert_eq!(world.signals.len(), before);
    }

    #[test]
    fn stops_are_told() {
        let (mut keeper, mut world) = (Keeper::new(false), Fake::new(&[]));
        world.stops = vec![(false, 0x137f), (true, 0x117f)];
        assert_eq!(keeper.step(&mut world), Next::Wait(None));
        assert_eq!(world.told, [(STOPPED, 1), (STOPPED, 0)]);
    }
}
