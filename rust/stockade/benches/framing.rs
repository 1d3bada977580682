//! How fast stdout is split into frames: many short ones, and one that is very long.

use std::io::Read;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use stockade::frames::FrameReader;

const MIB: usize = 1024 * 1024;

/// `total` bytes of frames of `length` bytes each, newlines included.
fn frames(length: usize, total: usize) -> Vec<u8> {
    let frame = [vec![b'x'; length - 1], vec![b'\n']].concat();
    frame.repeat(total / length)
}

/// Reads all of `data` as it comes out of a pipe: at most 64 KiB at a time. How many frames that were.
fn read(reader: &mut FrameReader, data: &[u8]) -> usize {
    let mut rest = data;
    let mut count = 0;
    while !rest.is_empty() {
        reader
            .fill(|room| {
                let size = room.len().min(64 * 1024);
                rest.read(&mut room[..size])
            })
            .expect("memory is readable");
        while let Some(frame) = reader.next() {
            assert!(frame.expect("within the limit").valid_utf8);
            count += 1;
        }
    }
    count
}

fn short(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frames/short");
    for length in [64, 512, 4096] {
        let data = frames(length, MIB);
        let mut reader = FrameReader::new(64 * MIB);
        group.throughput(Throughput::Bytes(data.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(length), |bencher| {
            bencher.iter(|| assert_eq!(read(&mut reader, &data), data.len() / length));
        });
    }
    group.finish();
}

fn long(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frames/long");
    group.sample_size(10);
    for mib in [1, 10, 50] {
        let data = frames(mib * MIB, mib * MIB);
        let mut reader = FrameReader::new(64 * MIB);
        group.throughput(Throughput::Bytes(data.len() as u64));
        group.bench_function(BenchmarkId::new("MiB", mib), |bencher| {
            bencher.iter(|| assert_eq!(read(&mut reader, &data), 1));
        });
    }
    group.finish();
}

criterion_group!(benches, short, long);
criterion_main!(benches);
