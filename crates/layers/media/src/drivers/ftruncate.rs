//! `ftruncate`: a write sets the length of its file to the position of its block; no data is moved.

use driver::{Capabilities, Error, Opened, Registration};
use rustix::io::retry_on_intr;

use crate::descriptor::{self, Bounds, Descriptor, INVALID, UNSUPPORTED, completed};
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "ftruncate";

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["write"],
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: false,
    options: &[],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "ftruncate: a write sets the length of its file to its position; moves no data",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let targets = descriptor::open_all(request, NAME)?;
    let driver = Ftruncate { targets, bounds: Bounds::new(request) };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes: Vec::new() })
}

struct Ftruncate {
    targets: Vec<Descriptor>,
    bounds: Bounds,
}

impl CarryOut for Ftruncate {
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        if operation.class != MediaClass::Write {
            return UNSUPPORTED;
        }
        let target = &self.targets[usize::from(operation.target)];
        let cut = retry_on_intr(|| rustix::fs::ftruncate(&target.fd, operation.offset));
        completed(cut.map(|()| operation.length))
    }
}
