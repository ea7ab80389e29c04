//! Drivers that make one system call on the path of a target: they open none of it and move no data.

use std::ffi::{CStr, CString};
use std::marker::PhantomData;

use driver::{Capabilities, Error, Opened, Registration};

use crate::descriptor::{self, Bounds, INVALID, UNSUPPORTED, completed};
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

/// The system call of a driver.
pub(crate) trait PathCall: Send + 'static {
    /// Name of the driver.
    const NAME: &'static str;
    /// Its line in lists.
    const SUMMARY: &'static str;
    /// The only class of operations that it carries out, a read or a write.
    const CLASS: MediaClass;

    /// Makes the call.
    ///
    /// # Errors
    /// The system's.
    fn call(path: &CStr) -> rustix::io::Result<()>;
}

/// The table line of the driver of a call.
pub(crate) const fn registration<C: PathCall>() -> Registration<MediaOperation, OpenRequest> {
    Registration { name: C::NAME, summary: C::SUMMARY, capabilities: capabilities::<C>(), open: open::<C> }
}

const fn capabilities<C: PathCall>() -> Capabilities {
    Capabilities {
        classes: if matches!(C::CLASS, MediaClass::Read) { &["read"] } else { &["write"] },
        asynchronous: false,
        depth_max: 1,
        targetless: false,
        direct: false,
        options: &[],
    }
}

fn open<C: PathCall>(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, C::NAME, &capabilities::<C>())?;
    let paths = descriptor::paths_of(request, C::NAME)?;
    let driver = ByPath::<C> { paths, bounds: Bounds::new(request), call: PhantomData };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes: Vec::new() })
}

struct ByPath<C> {
    paths: Vec<CString>,
    bounds: Bounds,
    call: PhantomData<C>,
}

impl<C: PathCall> CarryOut for ByPath<C> {
    #[inline]
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        if operation.class != C::CLASS {
            return UNSUPPORTED;
        }
        let path = &self.paths[usize::from(operation.target)];
        completed(C::call(path).map(|()| operation.length))
    }
}
