//! Speaking with the supervisor.

use std::os::fd::AsFd;

use rustix::io::Errno;

use crate::owner::channel::{receive, send};
use crate::owner::protocol::{Event, Request};

/// What came from the supervisor.
pub(crate) enum Heard {
    /// Something.
    Event(Event),
    /// Nothing for now.
    Nothing,
    /// It has gone.
    End,
}

/// Says something. A supervisor that has gone shows as [`Heard::End`], so errors need no answer here.
pub(crate) fn tell(control: impl AsFd, request: Request) {
    let bytes: Vec<u8> = [request.kind, request.value.cast_unsigned(), request.flag]
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    while send(control.as_fd(), &bytes) == Err(Errno::INTR) {}
}

/// Takes one event; never blocks.
pub(crate) fn hear(control: impl AsFd) -> Heard {
    let mut bytes = [0u8; size_of::<Event>()];
    loop {
        return match receive(control.as_fd(), &mut bytes) {
            Ok(length) if length == bytes.len() => Heard::Event(decode(&bytes)),
            // Reset: it went without having read everything. What it said is still there.
            Err(Errno::INTR | Errno::CONNRESET) => continue,
            Err(Errno::AGAIN) => Heard::Nothing,
            // Its end is closed, or it is broken.
            Ok(_) | Err(_) => Heard::End,
        };
    }
}

/// An event from its bytes.
pub(crate) fn decode(bytes: &[u8; size_of::<Event>()]) -> Event {
    let u32_at = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
    let u64_at = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
    Event {
        kind: u32_at(0),
        status: u32_at(4).cast_signed(),
        count: u32_at(8),
        reserved: 0,
        user_us: u64_at(16),
        system_us: u64_at(24),
    }
}
