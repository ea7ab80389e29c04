//! The hosts that carry out a run together, as one of them sees the others.

mod meeting;
mod together;

use std::fmt;
use std::sync::Arc;

use driver::Error;
use workload::plan::HostPlace;

pub use fleet::{Figure, Met};
pub use meeting::Meeting;
pub use together::Together;

/// Way to the other hosts of a run.
pub trait HostLink: Send + Sync {
    /// Says figures at a meeting, and waits until all hosts have said theirs that are not gone. Each host comes to each meeting once, and all name it
    /// the same. Several threads may wait at different meetings at the same time.
    ///
    /// # Errors
    /// The run is being stopped, or the way to the others is lost: a wait never outlasts the run.
    fn meet(&self, meeting: &str, said: &[u64]) -> Result<Met, Error>;
}

/// The hosts that carry out a run together.
#[derive(Clone)]
pub struct Hosts {
    /// How many there are, and which of them this is.
    pub place: HostPlace,
    /// Way to the others.
    pub link: Arc<dyn HostLink>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("place", &self.place).finish_non_exhaustive()
    }
}
