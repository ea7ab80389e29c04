//! `dircreate`: a write makes a directory; no data is moved.

use std::ffi::CStr;

use driver::Registration;
use rustix::fs::Mode;

use crate::by_path::{self, PathCall};
use crate::{MediaClass, MediaOperation, OpenRequest};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> =
    by_path::registration::<Dircreate>();

struct Dircreate;

impl PathCall for Dircreate {
    const NAME: &'static str = "dircreate";
    const SUMMARY: &'static str = "mkdir: a write makes a directory; moves no data";
    const CLASS: MediaClass = MediaClass::Write;

    #[inline]
    fn call(path: &CStr) -> rustix::io::Result<()> {
        rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))
    }
}
