//! What Linux offers.

use std::path::Path;

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::Feature;

pub(super) fn features() -> Vec<Feature> {
    let supervisor = crate::runtime::runtime().map(|runtime| runtime.ground.kept.clone());
    let (works, detail, remedy) = match supervisor {
        Ok(crate::launch::Kept::Memory) => (true, "runs from memory".to_owned(), String::new()),
        Ok(crate::launch::Kept::Unnamed(folder)) => (
            true,
            format!("runs from a file without a name in {}", folder.display()),
            String::new(),
        ),
        Err(error) => (false, error.message.clone(), error.remedy.clone()),
    };
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).is_ok();
    let children = Path::new("/proc/thread-self/children").exists();
    let processes = Path::new("/proc/self/stat").exists();
    vec![
        Feature::new("supervisor", works, detail, &remedy),
        Feature::new(
            "pidfd",
            pidfd,
            if pidfd {
                "the death of this process is seen at once"
            } else {
                "the death of this process is seen by the end of a socket"
            },
            "Use Linux 5.3 or newer.",
        ),
        Feature::new(
            "process list",
            processes,
            match (processes, children) {
                (true, true) => "/proc lists the children of a process",
                (true, false) => "/proc has no lists of children: all processes are looked through",
                _ => "/proc is missing: only the server itself can be ended, not what it started",
            },
            "Mount /proc.",
        ),
    ]
}
