//! Plans of object stores: operations, datasets, options as typed and as resolved, and how the one becomes the other.

mod body;
mod grammar;
mod made;
mod operation;
mod phase;
mod resolve;
mod spec;
mod store;

pub use grammar::{parse_mix, parse_operations};
pub use made::{Made, MadeInStore};
pub use operation::{Interface, OBJECT_OPERATIONS, ObjectOp};
pub use phase::{DatasetPlan, ObjectPlan, OpShare, PunchScope, Scope, ValueKind};
pub use resolve::{
    ObjectFacts, ObjectPhase, fill_phases, needs_fill, object_options, object_phases, resolve_object,
};
pub use spec::{ObjectSpec, S3Key};
pub use store::{Addressing, ObjectOptions, Signing};
