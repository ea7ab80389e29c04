//! A directory of records, with an index of their figures in SQLite.
//!
//! The records are what counts: files of JSON, packed by gzip where strata put them there. The index (`history.sqlite`) is made from them, and follows them: records that others
//! put into the directory or removed from it are found each time it is opened. It may be deleted at any time.

mod files;
mod index;
mod store;
#[cfg(test)]
mod tests;

pub use index::INDEX_NAME;
pub use store::{Added, Store, run_of};
