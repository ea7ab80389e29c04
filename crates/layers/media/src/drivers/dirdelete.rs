//! `dirdelete`: a write removes an empty directory; no data is moved.

use std::ffi::CStr;

use driver::Registration;

use crate::by_path::{self, PathCall};
use crate::{MediaClass, MediaOperation, OpenRequest};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> =
    by_path::registration::<Dirdelete>();

struct Dirdelete;

impl PathCall for Dirdelete {
    const NAME: &'static str = "dirdelete";
    const SUMMARY: &'static str = "rmdir: a write removes its directory; moves no data";
    const CLASS: MediaClass = MediaClass::Write;

    #[inline]
    fn call(path: &CStr) -> rustix::io::Result<()> {
        rustix::fs::rmdir(path)
    }
}
