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
    let secret = layer::secret::shared_or_environment(spec.token_file.as_deref())?;
    let (create, container) = (spec.create, spec.container.clone());
    let options = Options { create, container, secret, ..Options::default() };
    dfs::open(url, &options)
}
