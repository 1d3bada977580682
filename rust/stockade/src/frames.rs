//! A server's stdout, split into frames: one line each, at 0x0A and nowhere else.
//!
//! The reader is a pure state machine. It is given bytes by [`FrameReader::fill`] and gives frames back with
//! [`FrameReader::next`]; it knows no descriptor and no protocol. Each byte is searched once and checked once, however
//! the bytes arrive, and one call never does more work than what it was just given (or hands out).

use std::collections::VecDeque;
use std::ops::Range;

use memchr::{memchr, memrchr};

/// Size of the buffer of a server that sends small frames; also the size from which a frame keeps the buffer it
/// arrived in.
const CHUNK: usize = 64 * 1024;

/// Most that one `fill` offers.
const MAX_OFFER: usize = 1024 * 1024;

/// Least that one `fill` offers. Below `CHUNK`, so that an unfinished short frame doesn't make the buffer grow.
const MIN_OFFER: usize = CHUNK / 2;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One line of stdout: never blank, without its newline, one trailing CR and a leading byte order mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The line itself.
    pub bytes: Vec<u8>,
    /// Whether `bytes` is UTF-8 from end to end.
    pub valid_utf8: bool,
}

/// A frame was longer than the limit. Nothing can be read after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTooLong {
    /// The limit that was passed, in bytes.
    pub limit: usize,
}

/// What is known about the beginning of a line that isn't complete yet. Offsets count from the line's start.
#[derive(Debug, Clone, Copy)]
struct Progress {
    /// No newline before here.
    searched: usize,
    /// Whole UTF-8 before here.
    checked: usize,
    /// Only spaces, tabs and CRs before `searched`.
    blank: bool,
}

impl Progress {
    const NEW: Self = Self {
        searched: 0,
        checked: 0,
        blank: true,
    };

    /// Take note of the line as far as it is known now: `line` begins at its start and holds no newline.
    fn advance(&mut self, line: &[u8]) {
        self.blank = self.blank && is_blank(&line[self.searched..]);
        self.searched = line.len();
        self.checked += match std::str::from_utf8(&line[self.checked..]) {
            Ok(text) => text.len(),
            // Here it stays if the byte is wrong; a code point may go on in the next chunk.
            Err(error) => error.valid_up_to(),
        };
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// A frame passed the limit while it arrived; to be told after the frames before it.
    TooLong,
    /// It was told. Whatever comes now is dropped.
    Failed,
}

/// Splits a stream of bytes into [`Frame`]s.
///
/// Memory: nothing before the first `fill`, 64 KiB for short frames, and a frame's own length plus at most 1 MiB while a
/// long one arrives. A long frame is handed out in the buffer it was read into.
#[derive(Debug)]
pub struct FrameReader {
    limit: usize,
    /// `start..complete` are complete lines that nobody took yet, `complete..end` is the unfinished line, the rest is
    /// room to read into.
    buffer: Vec<u8>,
    start: usize,
    complete: usize,
    end: usize,
    /// Position in the stream of `buffer[0]`.
    base: u64,
    /// What is known of the unfinished line.
    tail: Progress,
    /// What is known of complete lines that arrived in several pieces, with their positions in the stream. One a `fill`
    /// at most; empty when frames are taken as they come.
    known: VecDeque<(u64, Progress)>,
    state: State,
    ended: bool,
    bytes_seen: u64,
}

impl FrameReader {
    /// A reader that refuses frames of more than `max_frame_bytes` (without newline, CR and byte order mark).
    #[must_use]
    pub fn new(max_frame_bytes: usize) -> Self {
        Self {
            limit: max_frame_bytes,
            buffer: Vec::new(),
            start: 0,
            complete: 0,
            end: 0,
            base: 0,
            tail: Progress::NEW,
            known: VecDeque::new(),
            state: State::Open,
            ended: false,
            bytes_seen: 0,
        }
    }

    /// Read once. `read` gets 32 KiB to 1 MiB of room, more while a long frame arrives, and says how many bytes it
    /// put at its beginning; 0 means the end, which makes an unfinished last line a frame.
    ///
    /// After the end `read` isn't called any more. After a frame that was too long, what is read is dropped.
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
        self.make_room();
        let offered = self.buffer.len().min(self.end + MAX_OFFER);
        let room = &mut self.buffer[self.end..offered];
        let size = room.len();
        let count = read(room)?;
        assert!(count <= size, "read {count} bytes into room for {size}");
        if count == 0 {
            self.finish();
            return Ok(0);
        }
        self.bytes_seen += count as u64;
        if self.state == State::Open {
            let from = self.end;
            self.end += count;
            self.look_at(from);
        }
        Ok(count)
    }

    /// The next complete frame, in order. `None`: nothing now, and nothing ever if [`ended`](Self::ended).
    ///
    /// Lines of spaces, tabs and CRs only are skipped. `FrameTooLong` comes once, and then only `None`.
    #[expect(
        clippy::should_implement_trait,
        reason = "None isn't the end: more can follow the next fill"
    )]
    pub fn next(&mut self) -> Option<Result<Frame, FrameTooLong>> {
        while self.start < self.complete {
            let lines = &self.buffer[self.start..self.complete];
            let position = self.base + self.start as u64;
            let mut progress = match self.known.front() {
                Some(&(at, progress)) if at == position => {
                    self.known.pop_front();
                    progress
                }
                _ => Progress::NEW,
            };
            // Without a newline it is the last line of a stream that has ended.
            let length = memchr(b'\n', &lines[progress.searched..])
                .map_or(lines.len(), |at| progress.searched + at);
            let line = &lines[..length];
            let payload = payload(line);
            let after = (self.start + length + 1).min(self.complete);
            if payload.len() > self.limit {
                return Some(Err(self.fail()));
            }
            progress.advance(line);
            // The check from the start is needed after a byte order mark only, which isn't blank itself.
            if progress.blank || (payload.start > 0 && is_blank(&line[payload.clone()])) {
                self.start = after;
                continue;
            }
            let valid_utf8 = progress.checked == length;
            let bytes = self.take(self.start + payload.start..self.start + payload.end, after);
            self.release();
            return Some(Ok(Frame { bytes, valid_utf8 }));
        }
        self.release();
        (self.state == State::TooLong).then(|| Err(self.fail()))
    }

    /// The end of the input was seen. Frames may still wait in [`next`](Self::next).
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Bytes read so far, dropped ones included.
    #[must_use]
    pub fn bytes_seen(&self) -> u64 {
        self.bytes_seen
    }

    /// Bytes of complete lines that [`next`](Self::next) hasn't handed out, their newlines included.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.complete - self.start
    }

    /// Bytes of the line that isn't complete yet.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.end - self.complete
    }

    /// Take note of what was read at `from..end`.
    fn look_at(&mut self, from: usize) {
        // From the back: lines that are complete are searched when they are handed out.
        if let Some(at) = memrchr(b'\n', &self.buffer[from..self.end]) {
            self.complete_tail(from + at + 1);
        }
        let tail = &self.buffer[self.complete..self.end];
        self.tail.advance(tail);
        if pending_length(tail) > self.limit {
            self.state = State::TooLong;
            self.end = self.complete;
            self.tail = Progress::NEW;
        }
    }

    /// The unfinished line is complete; the next one begins at `complete`.
    fn complete_tail(&mut self, complete: usize) {
        if self.tail.searched > 0 {
            self.known
                .push_back((self.base + self.complete as u64, self.tail));
        }
        self.tail = Progress::NEW;
        self.complete = complete;
    }

    fn finish(&mut self) {
        self.ended = true;
        if self.end > self.complete {
            self.complete_tail(self.end);
        }
        self.release();
    }

    /// Make sure that there is room after `end`.
    fn make_room(&mut self) {
        // Each byte moves once at most: a tail that begins the buffer stays, and otherwise half the buffer is gained.
        if self.start > 0 && (self.start == self.complete || self.start >= self.buffer.len() / 2) {
            self.buffer.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.complete -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end >= MIN_OFFER {
            return;
        }
        let needed = self.end + self.pending_bytes().clamp(CHUNK, MAX_OFFER);
        let capacity = self.buffer.capacity();
        if needed > capacity {
            // Growth by halves keeps it linear; past the limit there is nothing to keep.
            let most = self
                .queued_bytes()
                .saturating_add(self.limit)
                .saturating_add(MAX_OFFER);
            let target = (capacity + capacity / 2).min(most).max(needed);
            self.buffer.reserve_exact(target - self.buffer.len());
        }
        self.buffer.resize(needed, 0);
    }

    /// The bytes at `payload`; what is left begins at `after`.
    fn take(&mut self, payload: Range<usize>, after: usize) -> Vec<u8> {
        let rest = self.end - after;
        if payload.len() < CHUNK || payload.len() < rest {
            self.start = after;
            return self.buffer[payload].to_vec();
        }
        let rest = self.buffer[after..self.end].to_vec();
        self.base += after as u64;
        self.start = 0;
        self.complete -= after;
        self.end = rest.len();
        let mut frame = std::mem::replace(&mut self.buffer, rest);
        frame.truncate(payload.end);
        frame.drain(..payload.start);
        frame
    }

    /// With nothing left to keep: begin anew, and don't hold more memory than short frames need.
    fn release(&mut self) {
        if self.start < self.end {
            return;
        }
        self.base += self.end as u64;
        (self.start, self.complete, self.end) = (0, 0, 0);
        if self.ended || self.buffer.capacity() > CHUNK {
            self.buffer = Vec::new();
        }
    }

    fn fail(&mut self) -> FrameTooLong {
        self.state = State::Failed;
        self.known = VecDeque::new();
        self.start = self.end;
        self.release();
        FrameTooLong { limit: self.limit }
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Where a complete line's own bytes are: after a byte order mark, before a CR.
fn payload(line: &[u8]) -> Range<usize> {
    let start = if line.starts_with(BOM) { BOM.len() } else { 0 };
    let end = line.len() - usize::from(line.ends_with(b"\r"));
    start..end
}

/// How long the frame will be at least, of which `line` has arrived.
fn pending_length(line: &[u8]) -> usize {
    if BOM.starts_with(line) {
        0
    } else {
        payload(line).len()
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
