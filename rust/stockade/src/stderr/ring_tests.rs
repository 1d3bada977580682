use std::convert::Infallible;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Give a ring some bytes, in as many reads as it wants.
fn feed(ring: &mut Ring, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let count = read_once(ring, bytes);
        bytes = &bytes[count..];
    }
}

fn read_once(ring: &mut Ring, bytes: &[u8]) -> usize {
    let read = |room: &mut [u8]| {
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        Ok::<_, Infallible>(count)
    };
    ring.fill(read).unwrap()
}

fn end(ring: &mut Ring) {
    assert_eq!(ring.fill(|_| Ok::<_, Infallible>(0)), Ok(0));
}

fn with(bytes: &[u8]) -> Ring {
    let mut ring = Ring::default();
    feed(&mut ring, bytes);
    ring
}

#[test]
fn lines_are_kept_without_newline_and_cr() {
    let ring = with(b"one\ntwo\r\n\nfour\r\r\n");
    assert_eq!(ring.tail(10), [&b"one"[..], b"two", b"", b"four\r"]);
    assert_eq!(
        (ring.lines_seen(), ring.bytes_seen(), ring.dropped()),
        (4, 17, 0)
    );
}

#[test]
fn a_prompt_belongs_to_the_tail_and_becomes_a_line_at_the_end() {
    let mut ring = with(b"one\ntwo\nPassword: ");
    assert_eq!(ring.tail(2), [&b"two"[..], b"Password: "]);
    assert_eq!(ring.tail(1), [b"Password: "]);
    assert!(ring.tail(0).is_empty());
    assert_eq!(
        (ring.lines_seen(), ring.partial()),
        (2, Some(b"Password: ".to_vec()))
    );
    end(&mut ring);
    assert_eq!(
        (ring.lines_seen(), ring.partial(), ring.ended()),
        (3, None, true)
    );
    assert_eq!(ring.tail(1), [b"Password: "]);
    end(&mut ring);
    assert_eq!(ring.lines_seen(), 3);
}

#[test]
fn nothing_is_read_after_the_end() {
    let mut ring = with(b"");
    end(&mut ring);
    assert_eq!(
        ring.fill(|_| -> Result<usize, Infallible> { panic!("read after the end") }),
        Ok(0)
    );
    assert_eq!(ring.lines_seen(), 0);
}

#[test]
fn an_error_of_the_read_changes_nothing() {
    let mut ring = with(b"one\ntw");
    assert_eq!(ring.fill(|_| Err::<usize, _>("again")), Err("again"));
    feed(&mut ring, b"o\n");
    assert_eq!(ring.tail(10), [b"one", b"two"]);
}

#[test]
fn the_oldest_lines_make_room_and_are_counted() {
    let mut ring = Ring::new(DEFAULT_BYTES, 3);
    feed(&mut ring, b"1\n2\n3\n4\n5\n");
    assert_eq!(ring.tail(10), [b"3", b"4", b"5"]);
    assert_eq!((ring.lines_seen(), ring.dropped()), (5, 2));
    assert_eq!(ring.line(1), Err(Overwritten));
    assert_eq!(ring.line(2).unwrap().unwrap(), &b"3"[..]);
    assert_eq!(ring.line(5), Ok(None));
    assert_eq!(ring.line(u64::MAX), Ok(None));
}

#[test]
fn lines_are_read_on_from_a_number_and_the_lost_ones_are_told() {
    let mut ring = Ring::new(DEFAULT_BYTES, 4);
    feed(&mut ring, b"0\n1\n2\n3\n4\n5\nunfinished");
    let batch = ring.lines_from(1, 2, 100);
    assert_eq!(
        batch,
        Batch {
            lines: vec![b"2".to_vec(), b"3".to_vec()],
            next: 4,
            lost: 1
        }
    );
    let batch = ring.lines_from(batch.next, 10, 100);
    assert_eq!(
        batch,
        Batch {
            lines: vec![b"4".to_vec(), b"5".to_vec()],
            next: 6,
            lost: 0
        }
    );
    assert_eq!(
        ring.lines_from(6, 10, 100),
        Batch {
            lines: vec![],
            next: 6,
            lost: 0
        }
    );
    assert_eq!(
        ring.lines_from(9, 10, 100),
        Batch {
            lines: vec![],
            next: 9,
            lost: 0
        }
    );
    assert_eq!(
        ring.lines_from(2, 0, 100),
        Batch {
            lines: vec![],
            next: 2,
            lost: 0
        }
    );
}

#[test]
fn a_batch_is_bounded_by_bytes_but_never_stuck() {
    let ring = with(b"aaaa\nbbbb\ncccc\n");
    assert_eq!(ring.lines_from(0, 10, 8).lines.len(), 2);
    assert_eq!(ring.lines_from(0, 10, 7).lines.len(), 1);
    assert_eq!(ring.lines_from(0, 10, 0).lines.len(), 1);
}

#[test]
fn a_line_at_the_limit_is_whole_and_a_longer_one_is_cut() {
    let mut ring = Ring::new(4 * MAX_LINE, 10);
    let line = |extra: &str| [vec![b'x'; MAX_LINE], extra.as_bytes().to_vec()].concat();
    for extra in ["\n", "\r\n", "y\n", "yz\n", "\r\r\n"] {
        feed(&mut ring, &line(extra));
        let shown = ring.tail(1).remove(0);
        let (kept, marker) = shown.split_at(MAX_LINE);
        let expected = match extra {
            "\n" | "\r\n" => "",
            "y\n" => " … [stockade: cut, 1 byte more]",
            _ => " … [stockade: cut, 2 bytes more]",
        };
        assert_eq!(String::from_utf8_lossy(marker), expected, "after {extra:?}");
        assert!(kept.iter().all(|&byte| byte == b'x'));
    }
}

#[test]
fn a_line_without_end_keeps_its_beginning_and_the_lines_before_it() {
    let mut ring = Ring::new(DEFAULT_BYTES, 100);
    feed(&mut ring, b"before\nbegins here");
    let chunk = vec![b'x'; 1024 * 1024];
    for _ in 0..100 {
        feed(&mut ring, &chunk);
    }
    let kept = |line: &[u8]| {
        assert!(line.starts_with(b"begins herexxx"));
        let more = 11 + 100 * 1024 * 1024 - MAX_LINE;
        assert!(line.ends_with(format!("xxx … [stockade: cut, {more} bytes more]").as_bytes()));
    };
    kept(&ring.partial().unwrap());
    feed(&mut ring, b"\nafter\n");
    let lines = ring.tail(10);
    assert_eq!(
        (&lines[0][..], &lines[2][..], lines.len()),
        (&b"before"[..], &b"after"[..], 3)
    );
    kept(&lines[1]);
    assert_eq!(ring.dropped(), 0);
    assert!(ring.arena.capacity() <= DEFAULT_BYTES);
}

#[test]
fn memory_does_not_grow() {
    let mut ring = Ring::new(1 << 16, 64);
    assert_eq!((ring.arena.capacity(), ring.lines.capacity()), (0, 0));
    for _ in 0..100_000 {
        feed(
            &mut ring,
            b"a line like any other, a little longer than most\n",
        );
    }
    assert_eq!(
        (ring.arena.capacity(), ring.lines.capacity()),
        (1 << 16, 64)
    );
    assert_eq!(
        (ring.lines_seen(), ring.dropped(), ring.tail(1000).len()),
        (100_000, 99_936, 64)
    );
}

#[test]
fn a_debug_print_shows_no_bytes() {
    assert!(!format!("{:?}", with(b"secret\n")).contains("secret"));
}

/// The same promises without an arena: all lines for ever, and from where the arena has overwritten them.
#[derive(Default)]
struct Model {
    /// Each complete line, and the stored position at which it begins.
    lines: Vec<(Vec<u8>, u64)>,
    unfinished: Vec<u8>,
    start: u64,
    position: u64,
    furthest: u64,
    first: usize,
}

impl Model {
    fn read(&mut self, bytes: &[u8], arena: usize, most: usize, longest: usize) {
        for &byte in bytes {
            self.position += 1;
            if byte == b'\n' {
                self.lines
                    .push((std::mem::take(&mut self.unfinished), self.start));
                self.start = self.position;
            } else {
                self.unfinished.push(byte);
            }
        }
        self.furthest = self.furthest.max(self.position);
        // A read that ends inside a line that is too long gives the rest of the line back.
        self.position = self.position.min(self.start + longest as u64 + 1);
        let gone = self
            .lines
            .partition_point(|&(_, start)| start + (arena as u64) < self.furthest);
        self.first = self
            .first
            .max(gone)
            .max(self.lines.len().saturating_sub(most));
    }

    fn shown(line: &[u8], longest: usize) -> Vec<u8> {
        // Only a CR that is stored can be told from the rest of a line.
        let short = line
            .strip_suffix(b"\r")
            .filter(|line| line.len() <= longest)
            .unwrap_or(line);
        if short.len() <= longest {
            return short.to_vec();
        }
        let more = line.len() - longest;
        let unit = if more == 1 { "byte" } else { "bytes" };
        [
            &line[..longest],
            format!(" … [stockade: cut, {more} {unit} more]").as_bytes(),
        ]
        .concat()
    }
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let token = prop_oneof![
        4 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        3 => vec(any::<u8>(), 1..8),
        3 => "[a-z ]{1,20}".prop_map(String::into_bytes),
        1 => (20..300_usize).prop_map(|length| vec![b'x'; length]),
    ];
    vec(vec(token, 1..10).prop_map(|tokens| tokens.concat()), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn the_ring_is_its_model(pieces in pieces(), arena in 64..600_usize, most in 1..20_usize, ends in any::<bool>()) {
        let mut ring = Ring::new(arena, most);
        let longest = ring.max_line;
        let mut model = Model::default();
        for piece in &pieces {
            let mut rest = piece.as_slice();
            while !rest.is_empty() {
                let count = read_once(&mut ring, rest);
                model.read(&rest[..count], arena, most, longest);
                rest = &rest[count..];

                let seen = model.lines.len() as u64;
                prop_assert_eq!((ring.lines_seen(), ring.dropped()), (seen, model.first as u64));
                let held: Vec<_> = model.lines[model.first..].iter().map(|(line, _)| Model::shown(line, longest)).collect();
                let batch = ring.lines_from(0, usize::MAX, usize::MAX);
                prop_assert_eq!(&batch, &Batch { lines: held.clone(), next: seen, lost: model.first as u64 });
                let partial = (!model.unfinished.is_empty()).then(|| Model::shown(&model.unfinished, longest));
                prop_assert_eq!(&ring.partial(), &partial);
                let tail: Vec<_> = held.into_iter().chain(partial).collect();
                for count in [0, 1, 2, most, usize::MAX] {
                    prop_assert_eq!(&ring.tail(count), &tail[tail.len().saturating_sub(count)..]);
                }
                if let Some(gone) = model.first.checked_sub(1) {
                    prop_assert_eq!(ring.line(gone as u64), Err(Overwritten));
                }
                for (number, (line, _)) in model.lines.iter().enumerate().skip(model.first) {
                    let shown = Model::shown(line, longest);
                    prop_assert_eq!(ring.line(number as u64).unwrap().unwrap(), shown);
                }
            }
        }
        if ends {
            end(&mut ring);
            let unfinished = usize::from(!model.unfinished.is_empty());
            prop_assert_eq!(ring.lines_seen(), (model.lines.len() + unfinished) as u64);
            prop_assert_eq!(ring.dropped(), ring.lines_seen() - ring.tail(usize::MAX).len() as u64);
            prop_assert_eq!(ring.partial(), None);
        }
        prop_assert_eq!(ring.bytes_seen(), pieces.iter().map(|piece| piece.len() as u64).sum::<u64>());
        // However long it was, the last line is there.
        prop_assert!(model.lines.is_empty() || ring.tail(1).len() == 1);
    }
}
