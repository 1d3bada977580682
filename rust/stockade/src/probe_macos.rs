//! What macOS offers.

use super::Feature;

pub(super) fn features() -> Vec<Feature> {
    let helper = match crate::runtime::runtime() {
        Ok(runtime) => Feature::new(
            "helper",
            true,
            format!(
                "runs from {}; the death of this process is seen by a kqueue",
                runtime.ground.folder().display()
            ),
            "",
        ),
        Err(error) => Feature::new("helper", false, error.message.clone(), &error.remedy),
    };
    let tree = Feature::new(
        "process tree",
        true,
        "owned as a process group: a descendant that calls setsid or setpgid may escape and outlive its server",
        "",
    );
    vec![helper, tree]
}
