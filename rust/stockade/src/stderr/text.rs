//! Text for people, from bytes that a server wrote.
//!
//! What is left can be printed on a terminal, put into a log or shown to a model: it can't move the cursor, reorder what
//! is read, hide itself, or forge a line of its own.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// One line as printable text: invalid UTF-8 becomes U+FFFD, escape sequences are taken out whole, so are control,
/// bidirectional and invisible characters (tabs stay), and what would break the line becomes a space.
#[must_use]
pub fn sanitise(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    if text
        .bytes()
        .all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
    {
        return text.into_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // Looked for to the end and not found: there is no use in looking again.
    let mut endless = false;
    while let Some(char) = chars.next() {
        match char {
            '\x1B' => skip_escape(&mut chars, &mut endless),
            // The same introducers as single characters.
            '\u{9B}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9D}'..='\u{9F}' => skip_string(&mut chars, &mut endless),
            '\n' | '\x0B' | '\x0C' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => clean.push(' '),
            '\t' => clean.push('\t'),
            char if char.is_control() || is_invisible(char) => {}
            char => clean.push(char),
        }
    }
    clean
}

/// The end of a server's output: its last lines as printable text, at most `max_lines` of them and at most `max_bytes`
/// bytes in all. Whole lines, except that of a very long last line the end is kept.
#[must_use]
pub fn tail<L: AsRef<[u8]>>(lines: &[L], max_lines: usize, max_bytes: usize) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut room = max_bytes;
    // What is taken out counts as well: a server can't make this last long with what nobody sees.
    let mut raw_room = max_bytes.saturating_mul(4);
    for line in lines.iter().rev().take(max_lines) {
        let line = line.as_ref();
        let line = &line[line.len().saturating_sub(raw_room)..];
        raw_room -= line.len();
        let clean = sanitise(line);
        let separator = usize::from(!kept.is_empty());
        if clean.len() + separator > room {
            if kept.is_empty() {
                kept.push(end_of(&clean, room));
            }
            break;
        }
        if raw_room == 0 && clean.is_empty() {
            break;
        }
        room -= clean.len() + separator;
        kept.push(clean);
    }
    kept.reverse();
    kept.join("\n")
}

/// All lines as printable text, separated by newlines.
#[must_use]
pub fn join<L: AsRef<[u8]>>(lines: &[L]) -> String {
    tail(lines, usize::MAX, usize::MAX)
}

/// The last part of a text that fits, behind an ellipsis.
fn end_of(text: &str, max_bytes: usize) -> String {
    const ELLIPSIS: char = '…';
    let Some(room) = max_bytes.checked_sub(ELLIPSIS.len_utf8()) else {
        return String::new();
    };
    let mut start = text.len().saturating_sub(room);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let mut end = String::with_capacity(max_bytes);
    let _ = write!(end, "{ELLIPSIS}{}", &text[start..]);
    end
}

/// After ESC.
fn skip_escape(chars: &mut Peekable<Chars<'_>>, endless: &mut bool) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars, endless);
        }
        Some(' '..='/') => {
            while chars.next_if(|char| (' '..='/').contains(char)).is_some() {}
            chars.next_if(|char| ('0'..='~').contains(char));
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

/// After CSI: parameters, intermediates, one final character. A broken sequence ends before what doesn't belong to it.
fn skip_control_sequence(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|char| ('0'..='?').contains(char)).is_some() {}
    while chars.next_if(|char| (' '..='/').contains(char)).is_some() {}
    chars.next_if(|char| ('@'..='~').contains(char));
}

/// After OSC, DCS and their like: a text up to BEL or ST. Without that end only the introducer goes, so that a server
/// can't hide the rest of its line.
fn skip_string(chars: &mut Peekable<Chars<'_>>, endless: &mut bool) {
    if *endless {
        return;
    }
    let mut ahead = chars.clone();
    while let Some(char) = ahead.next() {
        let ends = match char {
            '\x07' | '\u{9C}' => true,
            '\x1B' => ahead.next_if_eq(&'\\').is_some(),
            _ => false,
        };
        if ends {
            *chars = ahead;
            return;
        }
    }
    *endless = true;
}

/// Characters that reorder the text around them, or that nobody sees. The joiners stay: scripts and emoji need them.
fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{206F}' // direction
        | '\u{200B}' | '\u{2060}'..='\u{2065}' | '\u{FEFF}' | '\u{180E}' | '\u{FFF9}'..='\u{FFFB}' // no width
        | '\u{E0000}'..='\u{E0FFF}' // tags, which can carry a whole hidden text
    )
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
