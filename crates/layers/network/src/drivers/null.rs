//! `null`: answers every RPC at once. What remains is what strata itself costs.

use driver::{Capabilities, Completions, Driver, Error, Opened, Operation, Registration, Submitted};

use crate::{OpenRequest, Rpc};

/// The table line.
pub(super) const REGISTRATION: Registration<Rpc, OpenRequest> = Registration {
    name: "null",
    summary: "sends nothing: strata's own overhead",
    capabilities: Capabilities {
        classes: Rpc::CLASSES,
        asynchronous: true,
        depth_max: 65_536,
        targetless: true,
        direct: false,
        options: &[],
    },
    open: |_| Ok(Opened { driver: Box::new(Null), notes: Vec::new() }),
};

struct Null;

impl Driver<Rpc> for Null {
    #[inline]
    fn submit(&mut self, batch: &[Rpc], done: &mut Completions) -> Result<Submitted, Error> {
        for rpc in batch {
            done.push(rpc.slot, rpc.bytes as i64);
        }
        Ok(Submitted { accepted: batch.len() })
    }
}
