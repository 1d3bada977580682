//! The helper of macOS: a small process between the host and one server, since nothing there ends a server when its
//! host dies.
//!
//! It is the parent of the server, which leads a session and a process group of its own. It learns of the host's death
//! from a kqueue (`NOTE_EXIT`) and from the end of its socket, and then kills the group. A descendant that made a group
//! or session of its own isn't found: macOS has nothing like a subreaper.
//!
//! The build script compiles this program without dependencies and embeds it. The host starts it with its socket as
//! descriptor 0, what becomes the server's 0, 1 and 2 as 3, 4 and 5, a session of its own, all signals but SIGCHLD
//! blocked, and an empty environment.

mod ffi;
mod keeper;
#[allow(dead_code, reason = "each side uses its half")]
mod plan;
#[path = "../supervisor/protocol.rs"]
#[allow(dead_code, reason = "each side uses its half")]
mod protocol;
mod records;
mod sys;

use std::sync::atomic::{AtomicI32, Ordering};

use keeper::{Keeper, Next};
use protocol::{CONTROL, Event};
use records::{Requests, event_bytes};
use sys::{Happened, Queue, Server};

/// What becomes the server's 0, 1, 2.
const STDIO: [i32; 3] = [3, 4, 5];
const FAILURE: i32 = 125;

/// For a panic, which must not leave the server alone.
static SERVER: AtomicI32 = AtomicI32::new(0);

fn main() {
    let host = sys::parent();
    std::panic::set_hook(Box::new(|_| kill_all()));
    let Some(body) = receive_plan() else { return };
    let Some(plan) = plan::decode(&body) else {
        std::process::exit(FAILURE)
    };

    let queue = Queue::new(CONTROL).unwrap_or_else(|errno| fail(plan::WATCH, errno));
    match queue.watch_host(host) {
        // Watched before it was asked for: if it is the parent still, it is the right one.
        Ok(true) if sys::parent() == host => {}
        Ok(_) => return,
        Err(errno) => fail(plan::WATCH, errno),
    }
    // Here and not in posix_spawn, which wouldn't say which of the two had failed.
    if !plan.directory.is_empty()
        && let Err(errno) = sys::change_directory(plan.directory)
    {
        fail(plan::DIRECTORY, errno);
    }
    let pid = sys::spawn(plan.program, &plan.argv, &plan.environment, STDIO).unwrap_or_else(
        |(executed, errno)| fail(if executed { plan::EXEC } else { plan::PREPARE }, errno),
    );
    SERVER.store(pid, Ordering::Relaxed);
    for fd in STDIO {
        sys::close(fd);
    }
    let _ = sys::change_directory(c"/");
    let mut server = Server {
        pid,
        control: CONTROL,
    };
    let keeper = Keeper::new(plan.leave);
    drop(body);
    sys::send(
        CONTROL,
        &event_bytes(&Event {
            kind: plan::STARTED,
            status: pid,
            ..Event::default()
        }),
        true,
    );
    keep(keeper, &mut server, &queue);
}

fn receive_plan() -> Option<Vec<u8>> {
    let mut header = [0; plan::HEADER];
    fill(&mut header)?;
    let mut body = vec![0; plan::body_length(header)];
    fill(&mut body)?;
    Some(body)
}

fn fill(mut buffer: &mut [u8]) -> Option<()> {
    while !buffer.is_empty() {
        let count = sys::receive(CONTROL, buffer, true)?.len();
        if count == 0 {
            return None;
        }
        buffer = &mut buffer[count..];
    }
    Some(())
}

fn fail(step: u32, errno: i32) -> ! {
    let event = Event {
        kind: plan::FAILED,
        count: step,
        status: errno,
        ..Event::default()
    };
    sys::send(CONTROL, &event_bytes(&event), true);
    std::process::exit(FAILURE)
}

fn keep(mut keeper: Keeper, server: &mut Server, queue: &Queue) {
    let mut requests = Requests::default();
    while let Next::Wait(limit) = keeper.step(server) {
        let Ok(happened) = queue.wait(limit) else {
            kill_all();
            std::process::exit(FAILURE);
        };
        for event in happened {
            match event {
                // The keeper looks for itself.
                Happened::Child => {}
                Happened::HostDied => {
                    keeper.host_gone();
                    remove_program();
                }
                Happened::Control => {
                    let mut buffer = [0; 512];
                    match sys::receive(CONTROL, &mut buffer, false) {
                        None => {}
                        Some([]) => {
                            queue.forget_control(CONTROL);
                            keeper.host_gone();
                        }
                        Some(piece) => requests.add(piece),
                    }
                    while let Some(request) = requests.next() {
                        keeper.request(request, server);
                    }
                }
            }
        }
    }
}

/// The host would have removed this program's file.
fn remove_program() {
    if let Ok(file) = std::env::current_exe() {
        let _ = std::fs::remove_file(&file);
        if let Some(folder) = file.parent() {
            // Only where it is empty.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

fn kill_all() {
    let server = SERVER.load(Ordering::Relaxed);
    if server > 0 {
        sys::kill(-server, ffi::SIGKILL);
    }
}
