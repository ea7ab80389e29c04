//! The file-system layer: data and metadata of files and directories, and the drivers that carry them out.

mod cache;
mod calls;
mod content;
mod doors;
mod drivers;
mod find;
mod help;
mod listed;
mod made;
mod names;
mod operation;
mod options;
mod phases;
mod plan;
mod progress;
mod report;
mod resolve;
mod run;
mod set;
mod source;
mod spec;
mod stack;
mod storage;
mod stores;
mod suite;

pub use doors::AccessPath;
pub use drivers::{DRIVERS, OpenRequest};
pub use listed::ListedTree;
pub use operation::{FsClass, FsOperation, NameKind};
pub use options::LAYER;
pub use phases::{FsOp, PHASES};
pub use plan::{FsPlan, Geometry, OffsetOrder, PathForm, RankShift};
pub use report::VIEW;
pub use run::Filesystem;
pub use set::{FileSet, Naming, Shape};
pub use spec::FsSpec;
