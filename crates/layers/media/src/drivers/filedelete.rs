//! `filedelete`: a write removes its file; no data is moved.

use std::ffi::CStr;

use driver::Registration;

use crate::by_path::{self, PathCall};
use crate::{MediaClass, MediaOperation, OpenRequest};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> =
    by_path::registration::<Filedelete>();

struct Filedelete;

impl PathCall for Filedelete {
    const NAME: &'static str = "filedelete";
    const SUMMARY: &'static str = "unlink: a write removes its file; moves no data";
    const CLASS: MediaClass = MediaClass::Write;

    #[inline]
    fn call(path: &CStr) -> rustix::io::Result<()> {
        rustix::fs::unlink(path)
    }
}
