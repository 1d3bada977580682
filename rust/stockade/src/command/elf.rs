//! The loader that a Linux binary asks for. A binary whose loader is missing (one built for another C library) fails to
//! start as if it weren't there itself.

const PT_INTERP: u32 = 3;

/// The machines whose binaries this machine's own loaders start. Others run below an emulator, which may have loaders
/// of its own.
const NATIVE: &[u16] = if cfg!(target_arch = "x86_64") {
    &[62, 3]
} else if cfg!(target_arch = "aarch64") {
    &[183]
} else {
    &[]
};

/// The path of the loader, where a binary of this machine asks for one and `head` reaches as far.
pub(super) fn loader(head: &[u8]) -> Option<&[u8]> {
    loader_on(NATIVE, head)
}

fn loader_on<'a>(machines: &[u16], head: &'a [u8]) -> Option<&'a [u8]> {
    let file = File {
        head,
        wide: *head.get(4)? == 2,
        little: *head.get(5)? == 1,
    };
    if !head.starts_with(b"\x7FELF") || !machines.contains(&file.half(18)?) {
        return None;
    }
    let (table, entry_size, entries) = if file.wide {
        (file.word(32)?, file.half(54)?, file.half(56)?)
    } else {
        (file.word(28)?, file.half(42)?, file.half(44)?)
    };
    for number in 0..usize::from(entries) {
        let entry = table.checked_add(number.checked_mul(usize::from(entry_size))?)?;
        if file.quarter(entry)? == PT_INTERP {
            let (offset, size) = if file.wide { (8, 32) } else { (4, 16) };
            let start = file.word(entry.checked_add(offset)?)?;
            let path = head.get(start..start.checked_add(file.word(entry.checked_add(size)?)?)?)?;
            return path
                .split(|&byte| byte == 0)
                .next()
                .filter(|path| !path.is_empty());
        }
    }
    None
}

struct File<'a> {
    head: &'a [u8],
    wide: bool,
    little: bool,
}

impl File<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.head.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn half(&self, at: usize) -> Option<u16> {
        let bytes = self.bytes(at)?;
        Some(if self.little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    }

    fn quarter(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes(at)?;
        Some(if self.little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    }

    /// An address or a size, as wide as the file's class says.
    fn word(&self, at: usize) -> Option<usize> {
        if !self.wide {
            return usize::try_from(self.quarter(at)?).ok();
        }
        let bytes = self.bytes(at)?;
        usize::try_from(if self.little {
            u64::from_le_bytes(bytes)
        } else {
            u64::from_be_bytes(bytes)
        })
        .ok()
    }
}

#[cfg(test)]
#[path = "elf_tests.rs"]
mod tests;
