//! What Linux offers.

use std::path::Path;

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::Feature;

pub(super) fn features() -> Vec<Feature> {
    let supervisor = crate::runtime::runtime().map(|runtime| runtime.ground.kept.clone());
    let (works, detail, remedy) = match supervisor {
        Ok(crate::launch::Kept::Memory) => (true, "runs from memory".to_owned(), String::new()),
        Ok(crate::launch::Kept::Unnamed(folder)) => {
            (true, format!("runs from a file without a name in {}", folder.display()), String::new())
        }
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
            if pidfd { "the death of this process is seen at once" } else { "the death of this process is seen by the end of a socket" },
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
        cgroup(),
    ]
}

/// The cgroup of this process, when it could make one below for a server.
fn cgroup() -> Feature {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("0::").map(str::to_owned))
    });
    let root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .into_iter()
        .find(|root| Path::new(root).join("cgroup.procs").exists());
    let (Some(own), Some(root)) = (own, root) else {
        return Feature::new("cgroup v2", false, "not mounted; process trees are owned without it", "");
    };
    let folder = format!("{root}{own}");
    let writable = rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).is_ok();
    let detail = if writable { format!("{folder} is writable") } else { format!("{folder} isn't writable; process trees are owned without it") };
    Feature::new("cgroup v2", writable, detail, "")
}
