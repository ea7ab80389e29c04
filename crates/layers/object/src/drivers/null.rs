//! `null:`: completes every operation at once. What remains is what strata itself costs.

use std::sync::Arc;

use driver::{Capabilities, Completions, Driver, Error, Opened, Operation, Submitted};

use crate::backend::Removing;
use crate::plan::{Made, ObjectPlan};
use crate::{Backend, BackendFacts, ObjectOperation, OpenRequest, Registration};

/// The table line.
pub(super) const REGISTRATION: Registration = Registration {
    name: "null",
    target: "null:",
    summary: "does nothing: strata's own overhead",
    capabilities: Capabilities {
        classes: ObjectOperation::CLASSES,
        asynchronous: true,
        depth_max: 65_536,
        targetless: true,
        direct: false,
        options: &[],
    },
    connect: |_| Ok(Arc::new(Null)),
};

struct Null;

impl Backend for Null {
    fn facts(&self) -> BackendFacts {
        BackendFacts { targets: 1, durable_by: "nothing: data is discarded".to_owned(), notes: Vec::new() }
    }

    fn prepare(&self, _plan: &ObjectPlan) -> Result<(), Error> {
        Ok(())
    }

    fn open(&self, _request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error> {
        Ok(Opened { driver: Box::new(NullDriver), notes: Vec::new() })
    }

    fn clean(&self, _: Removing<'_>) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn take_over(&self, _: &[Made]) -> Result<(), Error> {
        Ok(())
    }

    fn look(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn close(&self) -> Result<(), Error> {
        Ok(())
    }
}

struct NullDriver;

impl Driver<ObjectOperation> for NullDriver {
    #[inline]
    fn submit(&mut self, batch: &[ObjectOperation], done: &mut Completions) -> Result<Submitted, Error> {
        for operation in batch {
            done.push(operation.slot, operation.bytes() as i64);
        }
        Ok(Submitted { accepted: batch.len() })
    }
}
