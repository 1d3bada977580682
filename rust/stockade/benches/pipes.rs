//! Pipes or a socket pair for a server's stdin and stdout? A short message there and back, and bytes in bulk.

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::io::{Read, Write};
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// One way: what is written to the second comes out of the first.
#[cfg(unix)]
type Way = (File, File);

#[cfg(unix)]
type MakeWay = fn() -> Way;

#[cfg(unix)]
fn pipe() -> Way {
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe can be made");
    (reader.into(), writer.into())
}

/// A pipe of the size that a server's stdout gets.
#[cfg(target_os = "linux")]
fn large_pipe() -> Way {
    let (reader, writer) = pipe();
    // Refused where this user's share is used up; then both pipes measure the same.
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, 256 * 1024);
    (reader, writer)
}

#[cfg(unix)]
fn socket_pair() -> Way {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (reader, writer): (OwnedFd, OwnedFd) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::empty(),
        None,
    )
    .expect("a socket pair can be made");
    (reader.into(), writer.into())
}

#[cfg(unix)]
fn kinds() -> Vec<(&'static str, MakeWay)> {
    vec![
        ("pipe", pipe as MakeWay),
        #[cfg(target_os = "linux")]
        ("pipe of 256 KiB", large_pipe),
        ("socket pair", socket_pair),
    ]
}

#[cfg(unix)]
fn round_trip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipes/round trip");
    for (name, make) in kinds() {
        group.bench_function(name, |bencher| {
            let (mut their_reader, mut writer) = make();
            let (mut reader, mut their_writer) = make();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let mut message = [0; 64];
                    while their_reader.read_exact(&mut message).is_ok() {
                        their_writer.write_all(&message).expect("it is read");
                    }
                });
                let mut message = [b'x'; 64];
                bencher.iter(|| {
                    writer.write_all(&message).expect("it is read");
                    reader.read_exact(&mut message).expect("it comes back");
                });
                drop(writer);
            });
        });
    }
    group.finish();
}

#[cfg(unix)]
fn bulk(criterion: &mut Criterion) {
    const CHUNK: usize = 64 * 1024;
    let mut group = criterion.benchmark_group("pipes/bulk");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3))
        .throughput(Throughput::Bytes(CHUNK as u64));
    for (name, make) in kinds() {
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let mut buffer = vec![0; 256 * 1024];
            bencher.iter_custom(|times| {
                let (mut reader, mut writer) = make();
                std::thread::scope(|scope| {
                    let start = Instant::now();
                    scope.spawn(move || {
                        let chunk = vec![b'x'; CHUNK];
                        (0..times).for_each(|_| writer.write_all(&chunk).expect("it is read"));
                    });
                    while reader.read(&mut buffer).expect("it is readable") > 0 {}
                    start.elapsed()
                })
            });
        });
    }
    group.finish();
}

#[cfg(unix)]
criterion_group!(benches, round_trip, bulk);
#[cfg(unix)]
criterion_main!(benches);

#[cfg(not(unix))]
fn main() {}
