//! `null`: every operation is done at once; the floor that strata itself costs.

use driver::{Capabilities, Completions, Driver, Error, Opened, Operation, Registration, Submitted};

use super::OpenRequest;
use crate::operation::FsOperation;

const CAPABILITIES: Capabilities =
    Capabilities { direct: true, ..Capabilities::plain(FsOperation::CLASSES, 65_536) };

/// The table line.
pub(super) const REGISTRATION: Registration<FsOperation, OpenRequest> = Registration {
    name: "null",
    summary: "Completes at once and touches nothing",
    capabilities: CAPABILITIES,
    open,
};

fn open(_request: &OpenRequest) -> Result<Opened<FsOperation>, Error> {
    Ok(Opened { driver: Box::new(Null), notes: Vec::new() })
}

struct Null;

impl Driver<FsOperation> for Null {
    #[inline]
    fn submit(&mut self, batch: &[FsOperation], done: &mut Completions) -> Result<Submitted, Error> {
        batch.iter().for_each(|operation| done.push(operation.slot, operation.bytes() as i64));
        Ok(Submitted { accepted: batch.len() })
    }
}
