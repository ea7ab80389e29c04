//! The file system that a URL names.

use std::sync::Arc;

use dfs::FileSystem;
use driver::{Error, ErrorKind};

use crate::options::MountSpec;

/// Opens it.
///
/// # Errors
/// A URL that names none, and what cannot be opened.
pub(crate) fn open(url: &str, _spec: &MountSpec) -> Result<Arc<dyn FileSystem>, Error> {
    Err(Error::new(ErrorKind::Unsupported, "mount", "this build has no file system").with("url", url))
}
