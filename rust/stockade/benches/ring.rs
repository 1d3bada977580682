//! How fast stderr is drained and indexed: from memory, and from a pipe beside a drain that looks at nothing.

#[cfg(unix)]
use std::fs::File;
use std::io::Read;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use stockade::stderr::Ring;

const LINES: [usize; 3] = [20, 80, 200];

fn lines(length: usize, bytes: usize) -> Vec<u8> {
    let line = [vec![b'x'; length - 1], vec![b'\n']].concat();
    line.repeat(bytes / length)
}

fn from_memory(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring/memory");
    for length in LINES {
        let data = lines(length, 1 << 20);
        let mut ring = Ring::default();
        group.throughput(Throughput::Bytes(data.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(length), |bencher| {
            bencher.iter(|| {
                let mut rest = data.as_slice();
                while !rest.is_empty() {
                    ring.fill(|room| {
                        let size = room.len().min(64 * 1024);
                        rest.read(&mut room[..size])
                    })
                    .expect("memory is readable");
                }
            });
        });
    }
    group.finish();
}

#[cfg(unix)]
fn from_pipe(criterion: &mut Criterion) {
    use std::time::Duration;

    let mut group = criterion.benchmark_group("ring/pipe");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for length in LINES {
        let data = lines(length, 64 * 1024);
        group.throughput(Throughput::Bytes(data.len() as u64));
        group.bench_function(BenchmarkId::new("ring", length), |bencher| {
            bencher.iter_custom(|times| {
                let mut ring = Ring::default();
                drain(&data, times, |mut pipe| ring.fill(|room| pipe.read(room)))
            });
        });
        group.bench_function(BenchmarkId::new("raw drain", length), |bencher| {
            let mut buffer = vec![0; 256 * 1024];
            bencher.iter_custom(|times| drain(&data, times, |mut pipe| pipe.read(&mut buffer)));
        });
    }
    group.finish();
}

/// The time it takes to read `data` so many times, until the end, while another thread writes it.
#[cfg(unix)]
fn drain(
    data: &[u8],
    times: u64,
    mut read: impl FnMut(&File) -> std::io::Result<usize>,
) -> std::time::Duration {
    use std::io::Write;

    let (reader, writer) = rustix::pipe::pipe().expect("a pipe can be made");
    let (reader, mut writer) = (File::from(reader), File::from(writer));
    std::thread::scope(|scope| {
        let start = std::time::Instant::now();
        scope.spawn(move || (0..times).for_each(|_| writer.write_all(data).expect("it is read")));
        while read(&reader).expect("the pipe is readable") > 0 {}
        start.elapsed()
    })
}

#[cfg(unix)]
criterion_group!(benches, from_memory, from_pipe);
#[cfg(not(unix))]
criterion_group!(benches, from_memory);
criterion_main!(benches);
