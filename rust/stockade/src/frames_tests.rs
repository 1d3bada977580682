use std::convert::Infallible;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Everything that comes out of a reader, the refusal too.
type Outcome = Vec<Result<Frame, FrameTooLong>>;

fn take(reader: &mut FrameReader, most: usize, outcome: &mut Outcome) {
    outcome.extend(std::iter::from_fn(|| reader.next()).take(most));
}

/// Give a reader some bytes, in as many reads as it wants.
fn feed(reader: &mut FrameReader, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let read = |room: &mut [u8]| {
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            Ok::<_, Infallible>(count)
        };
        let count = reader.fill(read).unwrap();
        bytes = &bytes[count..];
    }
}

fn end(reader: &mut FrameReader) {
    assert_eq!(reader.fill(|_| Ok::<_, Infallible>(0)), Ok(0));
}

/// Read the pieces and the end; `taken` says how many frames are taken after each piece.
fn read(limit: usize, pieces: &[&[u8]], taken: impl Fn(usize) -> usize) -> Outcome {
    let mut reader = FrameReader::new(limit);
    let mut outcome = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        feed(&mut reader, piece);
        take(&mut reader, taken(number), &mut outcome);
    }
    end(&mut reader);
    take(&mut reader, ALL, &mut outcome);
    assert!(reader.ended() && reader.known.is_empty());
    if outcome.iter().all(Result::is_ok) {
        assert_eq!(reader.base, reader.bytes_seen());
    }
    assert_eq!(
        reader.bytes_seen(),
        pieces.iter().map(|piece| piece.len() as u64).sum::<u64>()
    );
    assert_eq!((reader.queued_bytes(), reader.pending_bytes()), (0, 0));
    outcome
}

/// What the words of the contract say, on the whole input at once.
fn model(limit: usize, input: &[u8]) -> Outcome {
    let mut outcome = Vec::new();
    for line in input.split(|&byte| byte == b'\n') {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > limit {
            outcome.push(Err(FrameTooLong { limit }));
            break;
        }
        if line.iter().any(|byte| !b" \t\r".contains(byte)) {
            let valid_utf8 = std::str::from_utf8(line).is_ok();
            outcome.push(Ok(Frame {
                bytes: line.to_vec(),
                valid_utf8,
            }));
        }
    }
    outcome
}

fn texts(outcome: &Outcome) -> Vec<&[u8]> {
    outcome
        .iter()
        .map(|frame| frame.as_ref().unwrap().bytes.as_slice())
        .collect()
}

const NO_LIMIT: usize = usize::MAX;

const ALL: usize = usize::MAX;

#[test]
fn lines_are_frames_and_a_last_line_needs_no_newline() {
    let outcome = read(NO_LIMIT, &[b"{\"a\":1}\n{\"b\":2}\r\n{\"c\":3}"], |_| ALL);
    assert_eq!(
        texts(&outcome),
        [&b"{\"a\":1}"[..], b"{\"b\":2}", b"{\"c\":3}"]
    );
}

#[test]
fn blank_lines_are_skipped() {
    let outcome = read(
        NO_LIMIT,
        &[b"\n\r\n \t\r\n\xEF\xBB\xBF\n\xEF\xBB\xBF \r\na\n\n  \n \t"],
        |_| ALL,
    );
    assert_eq!(texts(&outcome), [b"a"]);
}

#[test]
fn only_0x0a_splits() {
    let line = "a\u{2028}b\u{2029}c\u{85}d\re\x0Bf\x0Cg\0h";
    let outcome = read(NO_LIMIT, &[line.as_bytes(), b"\n"], |_| ALL);
    assert_eq!(texts(&outcome), [line.as_bytes()]);
    assert!(outcome[0].as_ref().unwrap().valid_utf8);
}

#[test]
fn one_mark_and_one_cr_are_stripped_from_each_line() {
    let outcome = read(
        NO_LIMIT,
        &[b"\xEF\xBB\xBF{}\n\xEF\xBB\xBF\xEF\xBB\xBFx\r\r\n"],
        |_| ALL,
    );
    assert_eq!(texts(&outcome), [&b"{}"[..], b"\xEF\xBB\xBFx\r"]);
}

#[test]
fn a_code_point_across_reads_is_whole_and_a_cut_one_is_not() {
    let euro = "€".as_bytes();
    let outcome = read(
        NO_LIMIT,
        &[
            &euro[..1],
            &euro[1..2],
            &euro[2..],
            b"\n",
            &euro[..2],
            b"\nok",
        ],
        |_| ALL,
    );
    let valid: Vec<_> = outcome
        .iter()
        .map(|frame| frame.as_ref().unwrap().valid_utf8)
        .collect();
    assert_eq!(valid, [true, false, true]);
}

#[test]
fn a_frame_at_the_limit_passes_and_one_byte_more_is_the_end() {
    let outcome = read(4, &[b"1234\r\n\xEF\xBB\xBF1234\n12345\nok\n"], |_| ALL);
    assert_eq!(
        outcome[..2],
        [b"1234"; 2].map(|bytes| Ok(Frame {
            bytes: bytes.to_vec(),
            valid_utf8: true
        }))
    );
    assert_eq!(outcome[2..], [Err(FrameTooLong { limit: 4 })]);
}

#[test]
fn a_line_without_end_is_refused_while_it_arrives_and_its_memory_is_given_back() {
    let mut reader = FrameReader::new(1024 * 1024);
    feed(&mut reader, b"first\n");
    let chunk = vec![b'x'; 64 * 1024];
    for number in 0..4096 {
        feed(&mut reader, &chunk);
        assert!(number < 16 || reader.pending_bytes() == 0);
        assert!(
            reader.buffer.capacity() <= 3 * 1024 * 1024,
            "{}",
            reader.buffer.capacity()
        );
    }
    assert_eq!(
        reader.next(),
        Some(Ok(Frame {
            bytes: b"first".to_vec(),
            valid_utf8: true
        }))
    );
    assert_eq!(
        reader.next(),
        Some(Err(FrameTooLong { limit: 1024 * 1024 }))
    );
    assert_eq!(reader.next(), None);
    assert_eq!(reader.buffer.capacity(), 0);
    feed(&mut reader, b"\nmore\n");
    end(&mut reader);
    assert_eq!(reader.next(), None);
    assert_eq!(reader.bytes_seen(), 6 + 4096 * 64 * 1024 + 6);
}

#[test]
fn a_mark_that_arrives_in_pieces_does_not_count() {
    let outcome = read(1, &[b"\xEF", b"\xBB", b"\xBF", b"a", b"\r", b"\n"], |_| ALL);
    assert_eq!(texts(&outcome), [b"a"]);
    let outcome = read(1, &[b"\xEF", b"\xBB", b"\n"], |_| ALL);
    assert_eq!(outcome, [Err(FrameTooLong { limit: 1 })]);
}

#[test]
fn an_error_of_the_read_changes_nothing() {
    let mut reader = FrameReader::new(NO_LIMIT);
    feed(&mut reader, b"ab");
    let error = reader.fill(|room| {
        room.fill(b'\n');
        Err::<usize, _>("again")
    });
    assert_eq!(error, Err("again"));
    assert_eq!(
        (reader.bytes_seen(), reader.pending_bytes(), reader.next()),
        (2, 2, None)
    );
    feed(&mut reader, b"c\n");
    assert_eq!(reader.queued_bytes(), 4);
    assert_eq!(reader.next().unwrap().unwrap().bytes, b"abc");
}

#[test]
fn nothing_is_read_after_the_end() {
    let mut reader = FrameReader::new(NO_LIMIT);
    end(&mut reader);
    let count = reader.fill(|_| -> Result<usize, Infallible> { panic!("read after the end") });
    assert_eq!(
        (count, reader.next(), reader.buffer.capacity()),
        (Ok(0), None, 0)
    );
}

#[test]
fn a_long_frame_keeps_the_buffer_that_it_arrived_in() {
    let mut reader = FrameReader::new(NO_LIMIT);
    assert_eq!(reader.buffer.capacity(), 0);
    feed(&mut reader, b"small\n");
    assert!(reader.next().is_some());
    let (piece, mut capacities) = (vec![b'x'; 50_000], vec![]);
    for _ in 0..400 {
        feed(&mut reader, &piece);
        capacities.push(reader.buffer.capacity());
    }
    capacities.dedup();
    assert!(capacities.len() < 18, "grew too often: {capacities:?}");
    let place = reader.buffer.as_ptr();
    feed(&mut reader, b"\n{\"next\"");
    let frame = reader.next().unwrap().unwrap();
    assert_eq!(
        (frame.bytes.as_ptr(), frame.bytes.len()),
        (place, 20_000_000)
    );
    assert!(reader.buffer.capacity() <= 64 * 1024);
    feed(&mut reader, b":1}\n");
    assert_eq!(reader.next().unwrap().unwrap().bytes, b"{\"next\":1}");
    assert_eq!(reader.next(), None);
    assert!(reader.buffer.capacity() <= 64 * 1024);
}

#[test]
fn a_long_frame_is_looked_at_as_it_arrives_and_not_again() {
    let mut reader = FrameReader::new(NO_LIMIT);
    feed(&mut reader, b"untaken\n");
    for _ in 0..16 {
        feed(&mut reader, "ü".repeat(32 * 1024).as_bytes());
    }
    let length = 16 * 64 * 1024;
    assert_eq!(
        (reader.tail.searched, reader.tail.checked),
        (length, length)
    );
    feed(&mut reader, b"\nnext");
    let known: Vec<_> = reader
        .known
        .iter()
        .map(|(at, line)| (*at, line.searched))
        .collect();
    assert_eq!(known, [(8, length)]);
    assert_eq!(reader.tail.searched, 4);
    assert!(reader.next().is_some() && reader.next().unwrap().unwrap().valid_utf8);
    assert!(reader.known.is_empty());
}

#[test]
fn a_long_frame_behind_others_that_nobody_took_arrives_whole() {
    let long = vec![b'y'; 300_000];
    let pieces: [&[u8]; 4] = [b"\xEF\xBB\xBFa\nb\n", &long, b"\nc\n", b"d"];
    assert_eq!(
        texts(&read(NO_LIMIT, &pieces, |_| 0)),
        [&b"a"[..], b"b", &long, b"c", b"d"]
    );
}

#[test]
fn room_is_offered_in_bounds() {
    let mut reader = FrameReader::new(NO_LIMIT);
    for _ in 0..100 {
        reader
            .fill(|room| {
                assert!(
                    (32 * 1024..=1024 * 1024).contains(&room.len()),
                    "{}",
                    room.len()
                );
                let count = room.len().min(61_441);
                room[..count].fill(b'z');
                Ok::<_, Infallible>(count)
            })
            .unwrap();
    }
}

/// Lines of what matters: marks, returns, blanks, code points whole and cut, and the newline itself.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r".to_vec()),
        2 => Just(b"\xEF\xBB\xBF".to_vec()),
        1 => Just(b"\xEF\xBB".to_vec()),
        2 => Just(b" ".to_vec()),
        1 => Just(b"\t".to_vec()),
        3 => Just("€".as_bytes().to_vec()),
        1 => Just("😀".as_bytes().to_vec()),
        1 => Just(b"\xF0\x9F".to_vec()),
        1 => Just("\u{2028}".as_bytes().to_vec()),
        3 => vec(any::<u8>(), 1..6),
        3 => "[a-z{}\":]{1,12}".prop_map(String::into_bytes),
    ];
    vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

fn split<'a>(input: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
    cuts.extend([0, input.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &input[pair[0]..pair[1]])
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_split_in_two_gives_the_same_frames(input in input(), limit in prop_oneof![0..24_usize, Just(NO_LIMIT)]) {
        let expected = model(limit, &input);
        for cut in 0..=input.len() {
            let (one, two) = input.split_at(cut);
            prop_assert_eq!(&read(limit, &[one, two], |_| ALL), &expected, "taken as they come, cut at {}", cut);
            prop_assert_eq!(&read(limit, &[one, two], |_| 0), &expected, "taken at the end, cut at {}", cut);
        }
    }

    #[test]
    fn byte_by_byte_gives_the_same_frames(input in input(), limit in prop_oneof![0..24_usize, Just(NO_LIMIT)]) {
        let pieces: Vec<&[u8]> = input.chunks(1).collect();
        let expected = model(limit, &input);
        prop_assert_eq!(&read(limit, &pieces, |_| ALL), &expected);
        prop_assert_eq!(&read(limit, &pieces, |_| 0), &expected);
    }

    #[test]
    fn many_splits_and_late_takers_give_the_same_frames(
        input in input(),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
        taken in vec(prop_oneof![0..3_usize, Just(ALL)], 16),
    ) {
        let pieces = split(&input, &cuts);
        prop_assert_eq!(read(NO_LIMIT, &pieces, |number| taken[number]), model(NO_LIMIT, &input));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Sizes around those where buffers grow, move and change hands.
    #[test]
    fn long_frames_are_exact(
        lines in vec((prop_oneof![0..200_usize, 60_000..70_000_usize, 120_000..300_000_usize], any::<[u8; 4]>()), 1..8),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
        taken in vec(prop_oneof![0..3_usize, Just(ALL)], 16),
    ) {
        let mut input = Vec::new();
        for (length, pattern) in lines {
            input.extend(pattern.iter().cycle().take(length));
            input.push(b'\n');
        }
        let pieces = split(&input, &cuts);
        let (found, expected) = (read(NO_LIMIT, &pieces, |number| taken[number]), model(NO_LIMIT, &input));
        prop_assert!(found == expected, "{} frames for {}", found.len(), expected.len());
    }
}
