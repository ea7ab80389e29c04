//! `filestat`: a read asks for what the file system knows of its file; no data is moved.

use std::ffi::CStr;

use driver::Registration;

use crate::by_path::{self, PathCall};
use crate::{MediaClass, MediaOperation, OpenRequest};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> =
    by_path::registration::<Filestat>();

struct Filestat;

impl PathCall for Filestat {
    const NAME: &'static str = "filestat";
    const SUMMARY: &'static str = "stat: a read gets the metadata of its file; moves no data";
    const CLASS: MediaClass = MediaClass::Read;

    #[inline]
    fn call(path: &CStr) -> rustix::io::Result<()> {
        rustix::fs::stat(path).map(drop)
    }
}
