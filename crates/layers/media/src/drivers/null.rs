//! `null`: completes every operation at once. What remains is what strata itself costs.

use driver::{Capabilities, Completions, Driver, Error, Opened, Operation, Registration, Submitted};

use crate::{MediaOperation, OpenRequest};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: "null",
    summary: "does nothing: strata's own overhead, a lower bound",
    capabilities: Capabilities {
        classes: MediaOperation::CLASSES,
        asynchronous: true,
        depth_max: 65_536,
        targetless: true,
        direct: false,
        options: &[],
    },
    open: |_| Ok(Opened { driver: Box::new(Null), notes: Vec::new() }),
};

struct Null;

impl Driver<MediaOperation> for Null {
    #[inline]
    fn submit(&mut self, batch: &[MediaOperation], done: &mut Completions) -> Result<Submitted, Error> {
        for operation in batch {
            done.push(operation.slot, i64::from(operation.length));
        }
        Ok(Submitted { accepted: batch.len() })
    }
}
