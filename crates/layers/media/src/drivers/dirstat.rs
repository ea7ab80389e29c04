//! `dirstat`: a read asks for what the file system knows of a directory; no data is moved.

use std::ffi::CStr;

use driver::Registration;

use crate::by_path::{self, PathCall};
use crate::{MediaClass, MediaOperation, OpenRequest};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = by_path::registration::<Dirstat>();

struct Dirstat;

impl PathCall for Dirstat {
    const NAME: &'static str = "dirstat";
    const SUMMARY: &'static str = "stat: a read gets the metadata of a directory; moves no data";
    const CLASS: MediaClass = MediaClass::Read;

    #[inline]
    fn call(path: &CStr) -> rustix::io::Result<()> {
        rustix::fs::stat(path).map(drop)
    }
}
