//! The object layer's words: operations, classes, types, values, what durable means, and the plan of a phase.

mod body;
mod class;
mod grammar;
mod made;
mod operation;
mod plan;
mod spec;
mod store;

pub use class::{Groups, ObjectClass, ObjectType, Redundancy};
pub use grammar::{parse_mix, parse_operations};
pub use made::{Made, MadeInStore, without_password};
pub use operation::{Interface, OBJECT_OPERATIONS, ObjectOp};
pub use plan::{DatasetPlan, ObjectPlan, OpShare, PunchScope, Scope, ValueKind};
pub use spec::{ObjectSpec, S3Key};
pub use store::{Addressing, Allocation, Checksum, Durability, Flush, ObjectOptions, Signing};
