//! Who wants to hear of a session.

use std::sync::Arc;

use crate::wake::Wake;

/// What can be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Moment {
    /// stdout has come to its end although its descriptor is silent.
    Readable,
    /// There is room for another frame, or there never will be.
    Writable,
    /// The server's own process has ended: its exit status is known.
    Exited,
    /// The report is complete.
    Ended,
}

/// The wishes, each for one waking.
#[derive(Default)]
pub(crate) struct Watchers(Vec<(Moment, Arc<dyn Wake>, u64)>);

impl Watchers {
    pub(crate) fn add(&mut self, moment: Moment, wake: Arc<dyn Wake>, token: u64) {
        self.0.push((moment, wake, token));
    }

    /// Takes out those for a moment; to be woken without a lock.
    pub(crate) fn take(&mut self, moment: Moment) -> Vec<(Arc<dyn Wake>, u64)> {
        let (taken, kept) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(wished, ..)| *wished == moment);
        self.0 = kept;
        let taken: Vec<(Moment, Arc<dyn Wake>, u64)> = taken;
        taken
            .into_iter()
            .map(|(_, wake, token)| (wake, token))
            .collect()
    }

    pub(crate) fn forget(&mut self, wake: &Arc<dyn Wake>, token: u64) {
        let address = Arc::as_ptr(wake).cast::<()>();
        self.0.retain(|(_, kept, kept_token)| {
            *kept_token != token || Arc::as_ptr(kept).cast::<()>() != address
        });
    }
}

pub(crate) fn wake_all(wishes: Vec<(Arc<dyn Wake>, u64)>) {
    for (wake, token) in wishes {
        wake.wake(token);
    }
}
