//! `filestat`: a read asks for what the file system knows of its file; no data is moved.

use std::ffi::CString;

use driver::{Capabilities, Error, Opened, Registration};

use crate::descriptor::{self, Bounds, INVALID, UNSUPPORTED, completed};
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "filestat";

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["read"],
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: false,
    options: &[],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "stat: a read asks for what is known of its file; moves no data",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let paths = descriptor::paths_of(request, NAME)?;
    let driver = Filestat { paths, bounds: Bounds::new(request) };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes: Vec::new() })
}

struct Filestat {
    paths: Vec<CString>,
    bounds: Bounds,
}

impl CarryOut for Filestat {
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        if operation.class != MediaClass::Read {
            return UNSUPPORTED;
        }
        let path = &self.paths[usize::from(operation.target)];
        completed(rustix::fs::stat(path).map(|_| operation.length))
    }
}
