//! The supervisor's program as a descriptor that can be executed: no file of it is ever left anywhere.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, openat};
use rustix::io::Errno;

use crate::Error;
use crate::fork::HostFd;
use crate::os_error::os_error;

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/supervisor"));

/// As the kernel has it; not in libc yet.
const F_SEAL_EXEC: u32 = 0x20;

/// How the program is kept: for `stockade doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    /// In memory, sealed.
    Memory,
    /// In a file without a name, in this folder.
    Unnamed(PathBuf),
}

pub(crate) fn make() -> Result<(HostFd, Kept), Error> {
    match HostFd::make(in_memory) {
        Ok(fd) => Ok((fd, Kept::Memory)),
        Err(scarce @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
            Err(os_error("memfd_create", scarce))
        }
        // vm.memfd_noexec=2 refuses executable memory files: a file without a name does as well.
        Err(refusal) => unnamed_file().ok_or_else(|| {
            os_error("memfd_create", refusal)
                .remedy("Set vm.memfd_noexec to 0 or 1, or make a temporary folder that programs may be executed from.")
        }),
    }
}

fn in_memory() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match memfd_create(c"stockade", flags | MemfdFlags::EXEC) {
        // Before Linux 6.3 there is no such flag, and every memory file is executable.
        Err(Errno::INVAL) => memfd_create(c"stockade", flags)?,
        other => other?,
    };
    let fd = write_program(fd)?;
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    // Its mode as well, from Linux 6.3 on: a server could make it unfit for the next one.
    let _ = fcntl_add_seals(&fd, SealFlags::from_bits_retain(F_SEAL_EXEC));
    fcntl_add_seals(&fd, SealFlags::SEAL)?;
    Ok(fd)
}

fn unnamed_file() -> Option<(HostFd, Kept)> {
    let folders = [
        std::env::var_os("XDG_RUNTIME_DIR"),
        Some("/dev/shm".into()),
        std::env::var_os("TMPDIR"),
        Some("/tmp".into()),
        Some("/var/tmp".into()),
    ];
    folders
        .into_iter()
        .flatten()
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .find_map(|folder| {
            let fd = HostFd::make(|| unnamed_in(&folder)).ok()?;
            Some((fd, Kept::Unnamed(folder)))
        })
}

fn unnamed_in(folder: &Path) -> rustix::io::Result<OwnedFd> {
    if rustix::fs::statvfs(folder)?
        .f_flag
        .contains(rustix::fs::StatVfsMountFlags::NOEXEC)
    {
        return Err(Errno::ACCESS);
    }
    let writable = openat(
        CWD,
        folder,
        OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
        Mode::RUSR | Mode::XUSR,
    )?;
    let writable = write_program(writable)?;
    // A file that is open for writing can't be executed.
    let path = format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&writable)
    );
    openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

fn write_program(fd: OwnedFd) -> rustix::io::Result<OwnedFd> {
    let mut file = std::fs::File::from(fd);
    file.write_all(PROGRAM)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(file.into())
}
