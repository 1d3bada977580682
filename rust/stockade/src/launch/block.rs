//! A NULL-terminated array of C strings, as execve(2) takes for arguments and environment.

use std::ffi::{CStr, CString, c_char};

use crate::{Error, ErrorKind, Stage};

#[derive(Debug)]
pub(crate) struct Block {
    /// Points into `strings`, whose buffers don't move.
    pointers: Vec<*const c_char>,
    strings: Vec<CString>,
}

// SAFETY: the pointers are to buffers that the block owns and never changes.
unsafe impl Send for Block {}
// SAFETY: as above; all access is reading.
unsafe impl Sync for Block {}

impl Block {
    pub(crate) fn new(items: impl Iterator<Item = Vec<u8>>) -> Result<Block, Error> {
        let strings = items.map(c_string).collect::<Result<Vec<_>, _>>()?;
        let pointers = strings
            .iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect();
        Ok(Block { pointers, strings })
    }

    #[allow(
        dead_code,
        reason = "for where a start needs an array in memory: Linux"
    )]
    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    #[allow(dead_code, reason = "for where the strings are sent on: macOS")]
    pub(crate) fn strings(&self) -> impl Iterator<Item = &CStr> {
        self.strings.iter().map(CString::as_c_str)
    }
}

pub(crate) fn c_string(bytes: Vec<u8>) -> Result<CString, Error> {
    // Checked when the server was described; here once more, since the alternative is a truncated string.
    CString::new(bytes).map_err(|_| {
        Error::new(
            ErrorKind::Config,
            "nul",
            Stage::Launch,
            "A string for the server holds a NUL character.",
        )
    })
}
