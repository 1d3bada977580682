//! How long a launch takes without Python: the call, and the whole life of a server; beside the standard library's way.
//!
//! Neither `cat` gets anything to do, so the call ends when both execs have happened, as it does for the standard library.

#[cfg(unix)]
use std::process::{Command, Stdio};
#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use criterion::{Criterion, criterion_group, criterion_main};
#[cfg(unix)]
use stockade::command::{Inherit, Server};
#[cfg(unix)]
use stockade::{Options, Session, Shutdown};

#[cfg(unix)]
fn launch(criterion: &mut Criterion) {
    let server = Server::new("cat".into(), vec![], None, vec![], Inherit::Safe(vec![]))
        .expect("the description is valid");
    let mut group = criterion.benchmark_group("launch");
    group.sample_size(20);
    group.bench_function("session", |bencher| {
        bencher.iter_custom(|times| {
            sum(times, || {
                let start = Instant::now();
                let session = start_session(&server);
                let spent = start.elapsed();
                end(&session);
                spent
            })
        });
    });
    group.bench_function("session, launched and ended", |bencher| {
        bencher.iter(|| end(&start_session(&server)));
    });
    group.bench_function("std::process", |bencher| {
        bencher.iter_custom(|times| {
            sum(times, || {
                let start = Instant::now();
                let child = start_command();
                let spent = start.elapsed();
                child.wait_with_output().expect("it can be waited for");
                spent
            })
        });
    });
    group.bench_function("std::process, launched and ended", |bencher| {
        bencher.iter(|| start_command().wait_with_output());
    });
    group.finish();
}

/// The part of each time that counts.
#[cfg(unix)]
fn sum(times: u64, mut once: impl FnMut() -> Duration) -> Duration {
    (0..times).map(|_| once()).sum()
}

#[cfg(unix)]
fn start_session(server: &Server) -> Session {
    Session::launch(server, Options::default()).expect("cat can be started")
}

#[cfg(unix)]
fn end(session: &Session) {
    session.close(Shutdown::default());
    session
        .wait(Some(Duration::from_secs(10)))
        .expect("cat ends with its input");
}

#[cfg(unix)]
fn start_command() -> std::process::Child {
    Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cat can be started")
}

#[cfg(unix)]
criterion_group!(benches, launch);
#[cfg(unix)]
criterion_main!(benches);

#[cfg(not(unix))]
fn main() {}
