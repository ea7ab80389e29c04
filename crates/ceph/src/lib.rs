//! Ceph clusters: librados at run time, the connection, and the completions that its libraries call back with. Block images and objects stand on
//! it.

mod cluster;
pub mod library;
mod queue;

use std::ffi::{CString, c_void};

use driver::Error;

pub use cluster::{Access, Cluster, Context};
pub use queue::{CompletionEntry, Queue};

/// `rados_t`, `rados_ioctx_t`, `rbd_image_t`, a completion, ...: pointers that only the libraries look behind.
pub type Handle = *mut c_void;

/// Words for a library.
///
/// # Errors
/// Bad usage: a NUL in them.
pub fn text(words: &str) -> Result<CString, Error> {
    CString::new(words).map_err(|_| Error::usage("rados", format!("{words:?} contains a NUL byte")))
}

/// An error of a call of a library that returned `-errno`.
#[must_use]
pub fn refused(message: impl Into<String>, code: i32) -> Error {
    Error::system("rados", message, std::io::Error::from_raw_os_error(-code))
}
