//! The line ring.
//!
//! The bytes are read straight into one arena; a line is an entry of where it lies there. Bytes are copied again only
//! when somebody asks for lines. The oldest lines make room, by bytes and by number of lines, and are counted.

use std::borrow::Cow;
use std::collections::VecDeque;

use memchr::memchr_iter;

/// Bytes that a ring holds unless told otherwise.
pub const DEFAULT_BYTES: usize = 1024 * 1024;

/// Lines that a ring holds unless told otherwise.
pub const DEFAULT_LINES: usize = 4096;

/// Longest line that is kept whole (a quarter of a small ring); of a longer one this much is kept.
pub const MAX_LINE: usize = 64 * 1024;

/// Most that one `fill` offers.
const MAX_OFFER: usize = 256 * 1024;

/// Smallest ring, so that a line and room to read into always fit.
const MIN_BYTES: usize = 64;

/// The line has left the ring, or some of its bytes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overwritten;

/// Consecutive lines that were copied out of a ring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The lines, without their newlines.
    pub lines: Vec<Vec<u8>>,
    /// The number to ask for next.
    pub next: u64,
    /// Lines before the first one that were asked for and had left the ring.
    pub lost: u64,
}

/// What a ring has after its first bytes.
const FIRST_BYTES: usize = 32 * 1024;

/// Where a line lies. Positions count stored bytes since the beginning; `position % capacity` is the place.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    /// Bytes that the server wrote, without the newline; more than are stored when the line was too long.
    length: u64,
}

/// A bounded memory of the last lines that were written. Lines are numbered from 0.
pub struct Ring {
    /// Grows while the first bytes come; then its length is `capacity` for good.
    arena: Vec<u8>,
    capacity: usize,
    lines: VecDeque<Entry>,
    max_lines: usize,
    max_line: usize,
    max_offer: usize,
    /// Where the next byte is stored.
    head: u64,
    /// The line that has no newline yet.
    unfinished: Entry,
    dropped: u64,
    bytes_seen: u64,
    ended: bool,
}

impl Ring {
    /// A ring of so many bytes and lines (64 bytes and one line at least). A server that writes little costs little:
    /// memory comes with the first bytes, doubling until all of it is there.
    #[must_use]
    pub fn new(bytes: usize, lines: usize) -> Self {
        let bytes = bytes.max(MIN_BYTES);
        let lines = lines.max(1);
        Self {
            arena: Vec::new(),
            capacity: bytes,
            lines: VecDeque::new(),
            max_lines: lines,
            max_line: MAX_LINE.min(bytes / 4),
            max_offer: MAX_OFFER.min(bytes / 4),
            head: 0,
            unfinished: Entry {
                start: 0,
                length: 0,
            },
            dropped: 0,
            bytes_seen: 0,
            ended: false,
        }
    }

    /// Read once. `read` gets up to 256 KiB of room and says how many bytes it put at its beginning (it must not write
    /// further: old lines lie there); 0 means the end, which makes an unfinished last line a line.
    ///
    /// After the end `read` isn't called any more.
    ///
    /// # Errors
    /// Those of `read`; nothing has changed then, and `fill` can be called again.
    ///
    /// # Panics
    /// When `read` claims more bytes than it had room for.
    pub fn fill<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        if self.ended {
            return Ok(0);
        }
        let place = self.place(self.head);
        self.make_room(place);
        let size = self.max_offer.min(self.arena.len() - place);
        let count = read(&mut self.arena[place..place + size])?;
        assert!(count <= size, "read {count} bytes into room for {size}");
        if count == 0 {
            self.ended = true;
            if self.unfinished.length > 0 {
                let next = self.head;
                Self::push(
                    &mut self.lines,
                    &mut self.dropped,
                    self.max_lines,
                    self.unfinished,
                );
                self.unfinished = Entry {
                    start: next,
                    length: 0,
                };
            }
            return Ok(0);
        }
        self.bytes_seen += count as u64;
        self.index(place, count);
        Ok(count)
    }

    /// Lines that were ever complete.
    #[must_use]
    pub fn lines_seen(&self) -> u64 {
        self.dropped + self.lines.len() as u64
    }

    /// Bytes that were ever read.
    #[must_use]
    pub fn bytes_seen(&self) -> u64 {
        self.bytes_seen
    }

    /// Lines that have left the ring: those seen, less those still here. Also the number of the oldest line held.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The end of the input was seen.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The last `count` lines, oldest first. A line that isn't complete yet, such as a prompt, is the last of them.
    #[must_use]
    pub fn tail(&self, count: usize) -> Vec<Vec<u8>> {
        let partial = if count > 0 { self.partial() } else { None };
        let complete = count - usize::from(partial.is_some());
        let skipped = self.lines.len().saturating_sub(complete);
        let lines = self
            .lines
            .iter()
            .skip(skipped)
            .map(|&entry| self.read_out(entry).into_owned());
        lines.chain(partial).collect()
    }

    /// The line that isn't complete yet, as far as it is known.
    #[must_use]
    pub fn partial(&self) -> Option<Vec<u8>> {
        (self.unfinished.length > 0).then(|| self.read_out(self.unfinished).into_owned())
    }

    /// Complete lines from number `first` on, at most so many, and at most so many bytes (but one line at least).
    #[must_use]
    pub fn lines_from(&self, first: u64, max_lines: usize, max_bytes: usize) -> Batch {
        let lost = self.dropped.saturating_sub(first);
        let mut batch = Batch {
            lines: Vec::new(),
            next: first + lost,
            lost,
        };
        let Ok(skipped) = usize::try_from(batch.next - self.dropped) else {
            return batch;
        };
        let mut bytes = 0;
        for &entry in self.lines.iter().skip(skipped).take(max_lines) {
            let line = self.read_out(entry);
            bytes += line.len();
            if bytes > max_bytes && !batch.lines.is_empty() {
                break;
            }
            batch.lines.push(line.into_owned());
            batch.next += 1;
        }
        batch
    }

    /// One complete line by its number; `None` where it hasn't come yet.
    ///
    /// # Errors
    /// [`Overwritten`] when it has left the ring.
    pub fn line(&self, number: u64) -> Result<Option<Cow<'_, [u8]>>, Overwritten> {
        let index = number.checked_sub(self.dropped).ok_or(Overwritten)?;
        let entry = usize::try_from(index)
            .ok()
            .and_then(|index| self.lines.get(index));
        Ok(entry.map(|&entry| self.read_out(entry)))
    }

    /// Find the lines in what was read at `place`.
    fn index(&mut self, place: usize, count: usize) {
        let mut from = 0;
        for newline in memchr_iter(b'\n', &self.arena[place..place + count]) {
            let length = self.unfinished.length + (newline - from) as u64;
            let entry = Entry {
                start: self.unfinished.start,
                length,
            };
            Self::push(&mut self.lines, &mut self.dropped, self.max_lines, entry);
            from = newline + 1;
            self.unfinished = Entry {
                start: self.head + from as u64,
                length: 0,
            };
        }
        self.unfinished.length += (count - from) as u64;
        self.head += count as u64;
        // What lies a whole arena behind was written over.
        let oldest = self.head.saturating_sub(self.capacity as u64);
        while self.lines.front().is_some_and(|entry| entry.start < oldest) {
            self.lines.pop_front();
            self.dropped += 1;
        }
        // What won't be kept of a line gives its place back, so that a line without end doesn't push the others out.
        self.head = self
            .head
            .min(self.unfinished.start + self.stored(self.unfinished) as u64);
    }

    /// Before the whole capacity is there nothing has been written over, so every position is still its own place.
    fn make_room(&mut self, place: usize) {
        let length = self.arena.len();
        if length < self.capacity && length - place < FIRST_BYTES / 2 {
            self.arena
                .resize((2 * length).max(FIRST_BYTES).min(self.capacity), 0);
        }
    }

    /// Not a method, so that it can be called while the arena is borrowed.
    fn push(lines: &mut VecDeque<Entry>, dropped: &mut u64, max_lines: usize, entry: Entry) {
        if lines.len() == max_lines {
            lines.pop_front();
            *dropped += 1;
        }
        lines.push_back(entry);
    }

    /// How many bytes of a line are in the arena. One more than a line may have, which may be a CR.
    fn stored(&self, entry: Entry) -> usize {
        let most = self.max_line + 1;
        usize::try_from(entry.length).map_or(most, |length| length.min(most))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the remainder is less than a usize"
    )]
    fn place(&self, position: u64) -> usize {
        (position % self.capacity as u64) as usize
    }

    /// A line as it is shown: without its CR, cut where it is too long.
    fn read_out(&self, entry: Entry) -> Cow<'_, [u8]> {
        let start = self.place(entry.start);
        let stored = self.stored(entry);
        let (before, after) = self.arena.split_at(start);
        let mut line = if stored <= after.len() {
            Cow::Borrowed(&after[..stored])
        } else {
            Cow::Owned([after, &before[..stored - after.len()]].concat())
        };
        let whole = entry.length == stored as u64;
        if whole && line.ends_with(b"\r") {
            truncate(&mut line, stored - 1);
        }
        if line.len() <= self.max_line {
            return line;
        }
        truncate(&mut line, self.max_line);
        let more = entry.length - self.max_line as u64;
        let unit = if more == 1 { "byte" } else { "bytes" };
        line.to_mut()
            .extend_from_slice(format!(" … [stockade: cut, {more} {unit} more]").as_bytes());
        line
    }
}

fn truncate(line: &mut Cow<'_, [u8]>, length: usize) {
    match line {
        Cow::Borrowed(line) => *line = &line[..length],
        Cow::Owned(line) => line.truncate(length),
    }
}

impl Default for Ring {
    fn default() -> Self {
        Self::new(DEFAULT_BYTES, DEFAULT_LINES)
    }
}

/// Without the bytes: they may hold secrets.
impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("lines_seen", &self.lines_seen())
            .field("bytes_seen", &self.bytes_seen)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
