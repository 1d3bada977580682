//! What the first bytes of a program say about how the kernel will start it.

use std::borrow::Cow;
use std::ffi::OsStr;

/// Bytes of a program that are looked at: the first line of a script, the headers of a binary.
pub(super) const HEAD: usize = 4096;

/// Longest first line that the kernel looks at.
const LINE: usize = if cfg!(target_os = "linux") { 256 } else { 512 };

/// A program's form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form<'a> {
    /// The kernel starts it, or says why not.
    Binary,
    /// A script and its interpreter; `carriage_return`: its first line ends as Windows writes lines.
    Script {
        interpreter: &'a [u8],
        argument: &'a [u8],
        carriage_return: bool,
    },
    /// Text that doesn't say which interpreter it is for.
    PlainText(PlainText),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainText {
    Empty,
    /// There is a `#!`, but behind a byte order mark the kernel doesn't see it.
    BehindMark,
    Other,
}

pub(super) fn form(head: &[u8]) -> Form<'_> {
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = &line[..line.len().min(LINE - 2)];
        let line = &line[..line
            .iter()
            .position(|&byte| byte == b'\n' || byte == 0)
            .unwrap_or(line.len())];
        let carriage_return = line.ends_with(b"\r");
        let line = trim(line);
        let space = line
            .iter()
            .position(|&byte| is_space(byte))
            .unwrap_or(line.len());
        let (interpreter, argument) = line.split_at(space);
        return Form::Script {
            interpreter,
            argument: trim(argument),
            carriage_return,
        };
    }
    if head.is_empty() {
        Form::PlainText(PlainText::Empty)
    } else if head.starts_with(b"\xEF\xBB\xBF#!") {
        Form::PlainText(PlainText::BehindMark)
    } else if !is_binary(head) {
        Form::PlainText(PlainText::Other)
    } else {
        Form::Binary
    }
}

/// What `env` will look for, where that can be told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EnvTarget<'a> {
    /// This name.
    Name(&'a [u8]),
    /// One name with spaces in it, since the kernel passes one argument and `-S` is missing.
    Unsplit(&'a [u8]),
    Unknown,
}

/// Whether the interpreter is `env`.
pub(super) fn is_env(interpreter: &[u8]) -> bool {
    interpreter.rsplit(|&byte| byte == b'/').next() == Some(b"env")
}

/// `one_argument`: the kernel passes the rest of the line as one argument, as Linux does.
pub(super) fn env_target(argument: &[u8], one_argument: bool) -> EnvTarget<'_> {
    let split = [&b"-S"[..], b"--split-string="]
        .iter()
        .find_map(|option| argument.strip_prefix(*option));
    let words = match split {
        Some(words) => words,
        None if argument.starts_with(b"-") || argument.contains(&b'=') => {
            return EnvTarget::Unknown;
        }
        None if one_argument && argument.iter().any(|&byte| is_space(byte)) => {
            return EnvTarget::Unsplit(argument);
        }
        None => argument,
    };
    let mut words = words
        .split(|&byte| is_space(byte))
        .filter(|word| !word.is_empty() && !word.contains(&b'='));
    match words.next() {
        // Options of env may take a word each, and quotes and variables are its own grammar: not judged.
        Some(word) if word[0] != b'-' && !word.iter().any(|byte| b"\"'\\$".contains(byte)) => {
            EnvTarget::Name(word)
        }
        _ => EnvTarget::Unknown,
    }
}

/// Known magic numbers, and whatever isn't text: other formats can be registered with the kernel.
fn is_binary(head: &[u8]) -> bool {
    const MAGIC: [&[u8]; 8] = [
        b"\x7FELF",
        b"MZ",
        b"\xFE\xED\xFA\xCE",
        b"\xFE\xED\xFA\xCF",
        b"\xCE\xFA\xED\xFE",
        b"\xCF\xFA\xED\xFE",
        b"\xCA\xFE\xBA\xBE",
        b"\xCA\xFE\xBA\xBF",
    ];
    let sample = &head[..head.len().min(LINE)];
    let is_text = |&byte: &u8| {
        byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0C' | b'\x1B' | b'\x08')
    };
    MAGIC.iter().any(|magic| head.starts_with(magic)) || !sample.iter().all(is_text)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim(line: &[u8]) -> &[u8] {
    let start = line
        .iter()
        .position(|&byte| !is_space(byte))
        .unwrap_or(line.len());
    let end = line
        .iter()
        .rposition(|&byte| !is_space(byte))
        .map_or(start, |last| last + 1);
    &line[start..end]
}

/// Bytes of a file as a name in the file system.
pub(super) fn as_name(bytes: &[u8]) -> Cow<'_, OsStr> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Cow::Borrowed(OsStr::from_bytes(bytes))
    }
    #[cfg(not(unix))]
    Cow::Owned(String::from_utf8_lossy(bytes).into_owned().into())
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
