//! What the host says first: what to start. It goes over the socket, since a command line and an environment can be
//! read by everybody. And the helper's answer.

use std::ffi::CStr;

/// Helper to host, the first event: the server runs; `status` is its pid.
pub(crate) const STARTED: u32 = 16;
/// Helper to host, the only event: step `count` (below) failed with error number `status`. No server runs.
pub(crate) const FAILED: u32 = 17;

/// Entering the working directory.
pub(crate) const DIRECTORY: u32 = 1;
/// Preparing the start.
pub(crate) const PREPARE: u32 = 2;
/// Executing the program.
pub(crate) const EXEC: u32 = 3;
/// Getting ready to watch host and server.
pub(crate) const WATCH: u32 = 4;

/// Bytes before the body: its length.
pub(crate) const HEADER: usize = 4;

/// What to start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    /// What of the tree outlives the server is left alone.
    pub(crate) leave: bool,
    pub(crate) program: &'a CStr,
    /// Empty: the directory that the helper was started in, which is the host's.
    pub(crate) directory: &'a CStr,
    pub(crate) argv: Vec<&'a CStr>,
    pub(crate) environment: Vec<&'a CStr>,
}

impl Plan<'_> {
    /// Header and body; None where that is over 4 GiB.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; HEADER];
        bytes.push(u8::from(self.leave));
        bytes.extend(u32::try_from(self.argv.len()).ok()?.to_ne_bytes());
        for text in [self.program, self.directory]
            .iter()
            .chain(&self.argv)
            .chain(&self.environment)
        {
            bytes.extend_from_slice(text.to_bytes_with_nul());
        }
        let length = u32::try_from(bytes.len() - HEADER).ok()?;
        bytes[..HEADER].copy_from_slice(&length.to_ne_bytes());
        Some(bytes)
    }
}

/// How long the body is.
pub(crate) fn body_length(header: [u8; HEADER]) -> usize {
    u32::from_ne_bytes(header) as usize
}

/// Reads a body; None where it is cut.
pub(crate) fn decode(body: &[u8]) -> Option<Plan<'_>> {
    let (leave, rest) = body.split_first()?;
    let (count, mut rest) = rest.split_first_chunk()?;
    let count = u32::from_ne_bytes(*count) as usize;
    let mut texts = Vec::new();
    while !rest.is_empty() {
        let text = CStr::from_bytes_until_nul(rest).ok()?;
        rest = &rest[text.to_bytes_with_nul().len()..];
        texts.push(text);
    }
    let (&[program, directory], rest) = texts.split_first_chunk()?;
    let (argv, environment) = rest.split_at_checked(count)?;
    Some(Plan {
        leave: *leave != 0,
        program,
        directory,
        argv: argv.to_vec(),
        environment: environment.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan<'static> {
        Plan {
            leave: true,
            program: c"/bin/echo",
            directory: c"/tmp",
            argv: vec![c"echo", c"", c"two\nlines"],
            environment: vec![c"A=1", c"B="],
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_with_empty_strings_in_place() {
        for plan in [
            plan(),
            Plan {
                leave: false,
                argv: vec![c""],
                environment: vec![],
                ..plan()
            },
        ] {
            let bytes = plan.encode().unwrap();
            let (header, body) = bytes.split_first_chunk().unwrap();
            assert_eq!(body_length(*header), body.len());
            assert_eq!(decode(body), Some(plan));
        }
    }

    #[test]
    fn a_body_that_is_cut_inside_a_string_or_has_too_few_is_refused() {
        let bytes = plan().encode().unwrap();
        let body = &bytes[HEADER..];
        assert_eq!(decode(&body[..body.len() - 1]), None);
        assert_eq!(decode(&[0, 9, 0, 0, 0, b'p', 0, b'd', 0]), None);
        assert_eq!(decode(&[0, 0, 0, 0, 0, b'p', 0]), None);
        assert_eq!(decode(&[]), None);
    }
}
