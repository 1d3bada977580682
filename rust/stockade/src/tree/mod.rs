//! Owning what was started: the process tree, its pipes, its end.
//!
//! [`lifecycle`] decides what happens when, without touching anything; [`reactor`] and [`serve`] are the one thread that
//! does it for all sessions; [`session`] is what a user holds.

pub(crate) mod background;
pub(crate) mod lifecycle;
pub(crate) mod outlet;
pub(crate) mod poller;
pub(crate) mod reactor;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod sink;
pub(crate) mod watchers;
