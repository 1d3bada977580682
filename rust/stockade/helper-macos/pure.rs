//! What of the helper touches no operating system, for tests on any.

#![allow(dead_code, reason = "each side uses its half")]

mod keeper;
mod plan;
mod records;

use crate::owner::protocol;

#[test]
fn the_host_reads_events_as_the_helper_writes_them() {
    let event = protocol::Event {
        kind: protocol::EXITED,
        status: -9,
        count: 3,
        reserved: 0,
        user_us: 1 << 40,
        system_us: 77,
    };
    let read = crate::owner::control::decode(&records::event_bytes(&event));
    assert_eq!(
        (read.kind, read.status, read.count),
        (event.kind, event.status, event.count)
    );
    assert_eq!(
        (read.user_us, read.system_us),
        (event.user_us, event.system_us)
    );
}
