//! What this machine offers of what the executor uses: for `stockade doctor`.

#[cfg(target_os = "linux")]
#[path = "probe_linux.rs"]
mod platform;
#[cfg(target_os = "macos")]
#[path = "probe_macos.rs"]
mod platform;

/// One thing that this machine offers, or lacks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Feature {
    /// What it is.
    pub name: &'static str,
    /// Whether it is here.
    pub available: bool,
    /// What was found, and what follows.
    pub detail: String,
    /// What to do where it is missing; empty where nothing needs doing.
    pub remedy: String,
}

impl Feature {
    fn new(name: &'static str, available: bool, detail: impl Into<String>, remedy: &str) -> Self {
        let remedy = if available {
            String::new()
        } else {
            remedy.to_owned()
        };
        Feature {
            name,
            available,
            detail: detail.into(),
            remedy,
        }
    }
}

/// Looks at this machine.
pub fn probe() -> Vec<Feature> {
    let mut features = vec![system()];
    features.extend(platform::features());
    features.push(open_files());
    features
}

fn system() -> Feature {
    let names = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let detail = format!(
        "{} {} on {}",
        text(names.sysname()),
        text(names.release()),
        text(names.machine())
    );
    Feature::new("system", true, detail, "")
}

fn open_files() -> Feature {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let current = limit
        .current
        .map_or_else(|| "unlimited".to_owned(), |count| count.to_string());
    let enough = limit.current.is_none_or(|count| count >= 256);
    Feature::new(
        "open files",
        enough,
        format!("{current} allowed; a server takes 4"),
        "Raise the limit: ulimit -n 1024.",
    )
}
