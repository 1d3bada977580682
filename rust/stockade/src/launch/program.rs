//! The helper's program as a file that can be executed.
//!
//! macOS executes files with a path only, and looks through every new one before its first run, which takes long. So
//! there is one for this process, not one for each server, in a folder of its own that nobody else may enter. It is
//! removed when this process exits; if it is killed, by the helpers that still run, or else by the next process that
//! makes one. Somebody with the same user's rights could change the file meanwhile: so it must be found untouched before
//! a helper was started and after that, before the helper is told anything.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::Error;
use crate::fork::HostFd;
use crate::os_error::os_error;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/helper.rs"));
}

const PREFIX: &str = "stockade-";

/// What changes when a file or its folder is tampered with: the last two can't be set back without privileges.
type Identity = (u64, u64, u32, u64, i64, i64);

/// The file.
pub(crate) struct Program {
    path: CString,
    file: PathBuf,
    identity: (Identity, Identity),
}

/// What is to be removed when the process exits, and the process that made it. No lock: a fork would copy it as it is.
static KEPT: AtomicPtr<(u32, PathBuf)> = AtomicPtr::new(ptr::null_mut());

impl Program {
    pub(crate) fn make() -> Result<Program, Error> {
        let failed = |operation| {
            move |errno| {
                os_error(operation, errno).remedy(
                    "Set TMPDIR to a folder that programs can be written to and executed from.",
                )
            }
        };
        let base = std::env::temp_dir();
        if !base.is_absolute() {
            return Err(failed("mkdtemp")(Errno::NOENT));
        }
        remove_stale(&base);
        let folder = make_folder(&base).map_err(failed("mkdtemp"))?;
        let file = folder.join("helper");
        remember(&file);
        // Noted: a fork at this moment must not leave it open for writing.
        let fd = HostFd::make(|| create(&file)).map_err(failed("open"))?;
        write_all(&fd, embedded::program()).map_err(failed("write"))?;
        rustix::fs::fchmod(&fd, Mode::RUSR | Mode::XUSR).map_err(failed("fchmod"))?;
        drop(fd);
        let identity = identify(&file).ok_or_else(|| failed("stat")(Errno::NOENT))?;
        let path = crate::launch::block::c_string(file.as_os_str().as_bytes().to_vec())?;
        Ok(Program {
            path,
            file,
            identity,
        })
    }

    pub(crate) fn path(&self) -> &CStr {
        &self.path
    }

    /// It is what was written, and was all the time.
    pub(crate) fn is_untouched(&self) -> bool {
        self.is(self.identity)
    }

    fn is(&self, identity: (Identity, Identity)) -> bool {
        identify(&self.file) == Some(identity)
    }

    /// Looks at a file that was touched. True: its content is what it was, as when the system has attached an attribute.
    pub(crate) fn examine(&mut self) -> bool {
        let before = identify(&self.file);
        let same = std::fs::read(&self.file).is_ok_and(|bytes| bytes == embedded::program());
        match before {
            Some(now) if same && self.is(now) => {
                self.identity = now;
                true
            }
            _ => false,
        }
    }

    /// Where it is: for `stockade doctor`.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }
}

fn create(file: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, file, flags, Mode::RUSR | Mode::WUSR)
}

fn write_all(fd: &HostFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn make_folder(base: &Path) -> rustix::io::Result<PathBuf> {
    let name = base.join(format!("{PREFIX}{}-XXXXXX", std::process::id()));
    let mut template = name.into_os_string().into_encoded_bytes();
    template.push(0);
    // SAFETY: the template is NUL-terminated and is changed in place. The folder gets mode 0700.
    if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    template.pop();
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(&template)))
}

fn identify(file: &Path) -> Option<(Identity, Identity)> {
    let of = |path: &Path| {
        let data = path.symlink_metadata().ok()?;
        // Reading it would change the time of last access only.
        Some((
            data.dev(),
            data.ino(),
            data.mode(),
            data.size(),
            data.ctime(),
            data.ctime_nsec(),
        ))
    };
    Some((of(file.parent()?)?, of(file)?))
}

/// Removes what this process made before, and will remove this one.
fn remember(file: &Path) {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function takes nothing and doesn't unwind.
        unsafe { libc::atexit(forget_at_exit) };
    });
    let kept = Box::new((std::process::id(), file.to_owned()));
    remove_kept(KEPT.swap(Box::into_raw(kept), Ordering::AcqRel));
}

extern "C" fn forget_at_exit() {
    remove_kept(KEPT.swap(ptr::null_mut(), Ordering::AcqRel));
}

fn remove_kept(kept: *mut (u32, PathBuf)) {
    if !kept.is_null() {
        // SAFETY: it came from Box::into_raw above, and whoever swapped it out is the only one who has it.
        let (pid, file) = *unsafe { Box::from_raw(kept) };
        // A forked child has a copy; the file is its parent's.
        if pid == std::process::id() {
            remove(&file);
        }
    }
}

fn remove(file: &Path) {
    let _ = std::fs::remove_file(file);
    if let Some(folder) = file.parent() {
        let _ = std::fs::remove_dir(folder);
    }
}

/// Removes what processes left that were killed.
fn remove_stale(base: &Path) {
    let Ok(entries) = base.read_dir() else { return };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| {
            name.strip_prefix(PREFIX)?
                .split('-')
                .next()?
                .parse::<i32>()
                .ok()
        });
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else {
            continue;
        };
        let gone = rustix::process::test_kill_process(pid) == Err(Errno::SRCH);
        if gone
            && entry
                .metadata()
                .is_ok_and(|data| data.is_dir() && data.uid() == own)
        {
            remove(&entry.path().join("helper"));
        }
    }
}
