//! `filecreate`: a write makes its file, empty, and closes it; no data is moved.

use std::ffi::CStr;

use driver::Registration;
use rustix::fs::{Mode, OFlags};

use crate::by_path::{self, PathCall};
use crate::{MediaClass, MediaOperation, OpenRequest};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> =
    by_path::registration::<Filecreate>();

struct Filecreate;

impl PathCall for Filecreate {
    const NAME: &'static str = "filecreate";
    const SUMMARY: &'static str = "open with O_CREAT, and close: a write makes its file; moves no data";
    const CLASS: MediaClass = MediaClass::Write;

    #[inline]
    fn call(path: &CStr) -> rustix::io::Result<()> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)).map(drop)
    }
}
