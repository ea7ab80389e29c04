//! HDF5 files of one-dimensional datasets, by libhdf5, which is loaded at run time.
//!
//! The library of most distributions is not thread-safe, so one lock is around every call of it, and threads that work on one file share one handle
//! ([`File`]). That is what a thread-safe libhdf5 does too.

mod element;
mod failure;
mod file;
mod library;
mod mpi;

pub use element::ElementType;
pub use failure::Failure;
pub use file::{Access, Dataset, File, MemorySpace};
pub use library::{Hdf5, Way};
pub use mpi::{ENDED_MAX, Ranks};
