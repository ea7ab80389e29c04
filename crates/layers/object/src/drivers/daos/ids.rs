//! Ids of objects in DAOS: type and class as the library sets them, and in the user's part what of an object cannot change once it holds
//! something, so that loads of different kinds meet different objects.
#![allow(unsafe_code)]

use std::ffi::c_int;

use driver::Error;
use vos::ObjectType;

use crate::plan::{ObjectPlan, ValueKind};

use vos::claims::Ids;

use crate::daos::abi::{Handle, OBJECT_READ_WRITE, Oid};
use crate::daos::calls::Patience;
use crate::daos::errors::{INVALID, failed};
use crate::daos::session::Container;

/// Bits of the upper half of an id that are the user's.
const USER_BITS: u64 = 0xffff_ffff;
/// Array values lie under akeys: an akey takes either these or a single value.
const ARRAY_VALUES: u64 = 1 << 31;

/// Objects of one type, class and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectIds {
    /// Upper half of all of their ids.
    pub(super) upper: u64,
    /// Lower halves.
    pub(super) ids: Ids,
}

impl ObjectIds {
    pub(super) fn oid(&self, lower: u64) -> Oid {
        Oid { lo: lower, hi: self.upper }
    }

    pub(super) fn has(&self, other: &Self, lower: u64) -> bool {
        self.upper == other.upper && (self.ids.first..=self.ids.last).contains(&lower)
    }
}

/// The user's part: whether akeys take array values; the size of a cell, which an array keeps.
fn kind(plan: &ObjectPlan) -> Result<u64, Error> {
    match plan.object_type {
        ObjectType::KvHashed | ObjectType::ArrayByte => Ok(0),
        ObjectType::MultiHashed | ObjectType::DkeyUint64 => match plan.dataset.value {
            ValueKind::Single => Ok(0),
            ValueKind::Array => Ok(ARRAY_VALUES),
        },
        ObjectType::Array | ObjectType::ArrayAttr if plan.cell_size_bytes <= USER_BITS => {
            Ok(plan.cell_size_bytes)
        }
        ObjectType::Array | ObjectType::ArrayAttr => {
            Err(Error::usage("daos", format!("a cell of {} bytes is too large", plan.cell_size_bytes))
                .remedy("use at most 4 GiB - 1"))
        }
    }
}

/// The upper half of the ids of a phase: type and class are the library's own, which also says whether the pool has room for the class.
///
/// # Errors
/// Refusal of what the pool or the container does not allow.
pub(super) fn upper(container: &Container, plan: &ObjectPlan) -> Result<u64, Error> {
    let kind = kind(plan)?;
    let api = container.pool.api;
    let mut oid = Oid::default();
    let (object_type, class) = (plan.object_type as c_int, plan.class.id());
    // SAFETY: a place for the id.
    let code =
        unsafe { (api.daos_obj_generate_oid2)(container.handle, &raw mut oid, object_type, class, 0, 0) };
    if code != 0 {
        return Err(no_class(container, plan, code));
    }
    let upper = oid.hi & !USER_BITS | kind;
    let (oid, mut handle) = (Oid { lo: plan.dataset.first_id, hi: upper }, Handle::default());
    let (place, wait) = (&raw mut handle, std::ptr::null_mut());
    // SAFETY: a place for the handle; opening an object asks no server, and holds its class against the container's redundancy.
    let code = unsafe { (api.daos_obj_open)(container.handle, oid, OBJECT_READ_WRITE, place, wait) };
    if code == 0 {
        // SAFETY: a handle of ours, closed once.
        unsafe { (api.daos_obj_close)(handle, wait) };
        return Ok(upper);
    }
    let label = container.label.to_string_lossy();
    let error = failed(format!("the container does not support objects of class {}", plan.class), code)
        .with("container", &label);
    Err(if code == INVALID {
        error.remedy(
            "its redundancy factor (daos container get-prop, rd_fac) requires more copies or parity: try --class RP_2GX or EC_2P1GX",
        )
    } else {
        error
    })
}

/// Why the library has no ids of a class.
fn no_class(container: &Container, plan: &ObjectPlan, code: c_int) -> Error {
    let class = plan.class;
    let error = failed(format!("the pool does not support objects of class {class}"), code);
    let Ok(facts) = container.pool.query(Patience::Brief) else { return error };
    let (size, nodes) = (class.group_size(), facts.nodes);
    if size > nodes {
        return error.with("engines", nodes).remedy(format!(
            "copies and cells of {class} need {size} engines: use S1 or SX, or a pool over {size} engines"
        ));
    }
    let targets = facts.targets - facts.disabled;
    if size > 1 && class.groups_over(targets).is_some() {
        return error.with("engines", nodes).remedy(
            "copies and cells must be on different nodes, and engines of one node count once: use a container with --properties=rd_lvl:1 (daos container create), or SX",
        );
    }
    error.with("targets", targets).remedy("a class needs as many targets as it has copies or cells: try SX")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_exclude_each_other_have_ids_of_their_own() {
        let mut plan = crate::fixture::plan(crate::plan::ObjectOp::Update);
        let mut of = |object_type, value, cell| {
            (plan.object_type, plan.dataset.value, plan.cell_size_bytes) = (object_type, value, cell);
            kind(&plan).map_err(|error| error.to_string())
        };
        assert_eq!(of(ObjectType::MultiHashed, ValueKind::Single, 1), Ok(0));
        assert_eq!(of(ObjectType::MultiHashed, ValueKind::Array, 1), Ok(1 << 31));
        assert_eq!(of(ObjectType::ArrayAttr, ValueKind::Array, 8), Ok(8));
        assert_eq!(of(ObjectType::Array, ValueKind::Array, 4096), Ok(4096));
        assert!(of(ObjectType::Array, ValueKind::Array, 1 << 32).unwrap_err().contains("too large"));
    }

    #[test]
    fn objects_are_of_one_kind() {
        let objects = ObjectIds { upper: 7, ids: Ids { first: 3, last: 5 } };
        assert!(objects.has(&objects, 5) && !objects.has(&objects, 6) && !objects.has(&objects, 2));
        assert!(!objects.has(&ObjectIds { upper: 8, ..objects }, 3));
    }
}
