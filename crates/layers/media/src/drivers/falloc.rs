//! `falloc`: a write allocates the space of its block, a discard gives it back; no data is moved.

use driver::{Capabilities, Error, Opened, Registration};
use rustix::fs::FallocateFlags;
use rustix::io::retry_on_intr;

use crate::descriptor::{self, Bounds, Descriptor, INVALID, UNSUPPORTED, completed};
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "falloc";

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["write", "discard"],
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: false,
    options: &[],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "fallocate: a write allocates its block, a discard punches it out; moves no data",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let targets = descriptor::open_all(request, NAME)?;
    let driver = Falloc { targets, bounds: Bounds::new(request) };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes: Vec::new() })
}

struct Falloc {
    targets: Vec<Descriptor>,
    bounds: Bounds,
}

impl CarryOut for Falloc {
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        let target = &self.targets[usize::from(operation.target)];
        let MediaOperation { offset, length, .. } = *operation;
        match operation.class {
            MediaClass::Write => {
                let allocate =
                    || rustix::fs::fallocate(&target.fd, FallocateFlags::empty(), offset, u64::from(length));
                completed(retry_on_intr(allocate).map(|()| length))
            }
            MediaClass::Discard => descriptor::discard(target, offset, length),
            _ => UNSUPPORTED,
        }
    }
}
