//! Hosts that have HDF5 files open together, as ranks of MPI.

use driver::{Error, ErrorKind};
use hdf5::Ranks;
use layer::Hosts;

/// Name of the meeting before MPI begins.
const MEETING: &str = "mpi";

/// The hosts of a run as ranks.
pub(super) struct Together {
    hosts: Hosts,
}

impl Together {
    pub(super) fn new(hosts: Hosts) -> Self {
        Self { hosts }
    }

    /// How many hosts there are.
    pub(super) fn count(&self) -> u32 {
        self.hosts.place.hosts
    }

    /// Makes what all share, on the host that does, and begins MPI. That waits for all others without a limit: the hosts meet before, and none begins
    /// where one cannot.
    ///
    /// # Errors
    /// Where what all share cannot be made, a host is gone, or MPI cannot begin.
    pub(super) fn prepare(&self, make: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let count = self.count();
        let ready = make();
        let met = self.hosts.link.meet(MEETING, &[u64::from(ready.is_err())])?;
        ready?;
        if met.hosts != count || met.figures.first().is_none_or(|failed| failed.most > 0) {
            let what = "another host ended or failed to prepare; see its own error message";
            return Err(Error::new(ErrorKind::Run, "mpi", what));
        }
        match Ranks::begun() {
            Some(_) => Ok(()),
            None => Ranks::begin(count).map(drop),
        }
    }
}
