//! A [`dfs::FileSystem`] mounted by FUSE.
//!
//! [`Mounted`] serves requests of the kernel from threads of this process until it is unmounted; [`command`] is `strata mount`.

mod adapter;
mod appending;
mod attributes;
mod command;
mod library;
mod listing;
mod options;
mod requests;
mod session;
mod setid;
mod source;

pub use adapter::{CACHE_ATTRIBUTE, CACHE_DROP, ENDPOINT_ATTRIBUTE};
pub use command::command;
pub use library::intercept_library;
pub use options::{Caching, DataCaching, MOUNT, MountSpec};
pub use session::{Mounted, Unmounted, check, clear_dead, missing};
