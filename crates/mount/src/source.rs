//! The file system that a URL names.

use std::sync::Arc;

use dfs::{FileSystem, Options};
use driver::Error;

use crate::options::MountSpec;

/// Opens it.
///
/// # Errors
/// A URL that names none, and what cannot be opened.
pub(crate) fn open(url: &str, spec: &MountSpec) -> Result<Arc<dyn FileSystem>, Error> {
    let options = Options { create: spec.create, container: spec.container.clone(), ..Options::default() };
    dfs::open(url, &options)
}
