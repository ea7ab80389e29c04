//! `filedelete`: a write removes its file; no data is moved.

use std::ffi::CString;

use driver::{Capabilities, Error, Opened, Registration};

use crate::descriptor::{self, Bounds, INVALID, UNSUPPORTED, completed};
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "filedelete";

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
    summary: "unlink: a write removes its file; moves no data",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let paths = descriptor::paths_of(request, NAME)?;
    let driver = Filedelete { paths, bounds: Bounds::new(request) };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes: Vec::new() })
}

struct Filedelete {
    paths: Vec<CString>,
    bounds: Bounds,
}

impl CarryOut for Filedelete {
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        if operation.class != MediaClass::Write {
            return UNSUPPORTED;
        }
        let path = &self.paths[usize::from(operation.target)];
        completed(rustix::fs::unlink(path).map(|_| operation.length))
    }
}
