//! Code that the synchronous drivers share: one operation a call, done when the call returns.

use driver::{Completions, Driver, Error, Submitted};

use crate::MediaOperation;

/// Carries one operation out. The outcome is the number of bytes moved, or a negated errno.
pub(crate) trait CarryOut: Send {
    /// Carries `operation` out; its slot is the driver's until this returns.
    fn carry_out(&self, operation: &MediaOperation) -> i64;
}

/// A driver made of something that carries one operation out.
pub(crate) struct OneByOne<T>(pub(crate) T);

impl<T: CarryOut> Driver<MediaOperation> for OneByOne<T> {
    #[inline]
    fn submit(&mut self, batch: &[MediaOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(operation) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        done.push(operation.slot, self.0.carry_out(operation));
        Ok(Submitted { accepted: 1 })
    }
}
