//! From the number of a place to object, keys and extent.

use driver::Error;
use vos::{ObjectClass, ObjectType};

use crate::plan::{ObjectOp, ObjectPlan, Scope, ValueKind};

use vos::model::{Key, Names, ObjectId};

use super::{Grain, is_private};
use crate::ObjectOperation;

/// Where an operation works: numbers of object, dkey, akey and record, counted over all that was stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) object: u64,
    pub(crate) dkey: u64,
    pub(crate) akey: u64,
    pub(crate) record: u64,
}

/// Keys and range of an operation.
pub(crate) struct Target {
    /// Number of the record, in the dataset of one worker.
    pub(crate) number: u64,
    pub(crate) object: ObjectId,
    pub(crate) dkey: Key,
    pub(crate) akey: Key,
    pub(crate) offset_bytes: u64,
}

/// Objects, dkeys, akeys and records of a phase.
pub(crate) struct Dataset {
    /// Counts that this phase works on, from `first` on.
    counts: [u64; 4],
    first: [u64; 4],
    /// Counts that were stored in all.
    whole: [u64; 4],
    object_type: ObjectType,
    class: ObjectClass,
    first_id: u64,
    record_base: u64,
    dkey_names: Option<Names>,
    /// Reads are of ranges of a key's value.
    reads_ranges: bool,
    akey_prefix: Key,
    constant_akey: bool,
    value: ValueKind,
    stride_bytes: u64,
    offset_bytes: u64,
}

impl Dataset {
    /// The dataset of worker `worker`.
    ///
    /// # Errors
    /// Bad usage: a prefix of keys that leaves no room for a number, or numbers beyond 64 bits.
    pub(crate) fn new(plan: &ObjectPlan, worker: u32) -> Result<Self, Error> {
        let data = &plan.dataset;
        let prefix = |text: &str| {
            Key::new(text.as_bytes()).filter(Key::has_room).ok_or_else(|| {
                Error::usage("plan", format!("a key prefix of {} bytes is too long", text.len()))
                    .remedy("use at most 27 bytes")
            })
        };
        let counts = [data.objects, data.dkeys, data.akeys, data.records];
        let whole = data.whole.unwrap_or(counts);
        let too_many = || Error::usage("plan", "the records cannot be numbered in 64 bits");
        let stored = whole.iter().try_fold(1u64, |all, &one| all.checked_mul(one)).ok_or_else(too_many)?;
        let worker = u64::from(worker);
        let record_base =
            if is_private(plan) { worker.checked_mul(stored).ok_or_else(too_many)? } else { 0 };
        // Private containers keep the ids apart already.
        let id_base = if plan.object_scope == Scope::Private { worker.saturating_mul(whole[0]) } else { 0 };
        Ok(Self {
            counts,
            first: data.first,
            whole,
            object_type: plan.object_type,
            class: plan.class,
            first_id: data.first_id.wrapping_add(id_base),
            record_base,
            dkey_names: if data.integer_dkeys {
                None
            } else {
                Some(names(&data.dkey_prefix, if plan.reads_ranges() { [1, whole[1], 1, 1] } else { whole })?)
            },
            reads_ranges: plan.reads_ranges(),
            akey_prefix: prefix(&data.akey_prefix)?,
            constant_akey: data.constant_akey,
            value: data.value,
            stride_bytes: if data.stride_bytes == 0 { data.value_size_bytes_max } else { data.stride_bytes },
            offset_bytes: data.offset_bytes,
        })
    }

    /// Number that is added to that of a record, to tell it from those of other workers.
    #[inline]
    pub(crate) fn record_base(&self) -> u64 {
        self.record_base
    }

    /// The position of a place: objects run fastest and dkeys slowest; of lists, the pieces of one object follow each other.
    #[inline]
    pub(crate) fn position(&self, grain: Grain, place: u64) -> Position {
        let [objects, dkeys, akeys, records] = self.counts;
        let [dkeys, akeys, records] = match grain {
            Grain::Record => [dkeys, akeys, records],
            Grain::Akey => [dkeys, akeys, 1],
            Grain::Dkey => [dkeys, 1, 1],
            Grain::Store | Grain::Object | Grain::List(_) => [1, 1, 1],
        };
        if let Grain::List(pieces) = grain {
            return self.beyond_first([place / pieces, 0, 0, 0]);
        }
        let (rest, object) = split(place, objects);
        let (rest, record) = split(rest, records);
        let (dkey, akey) = split(rest, akeys);
        debug_assert!(dkey < dkeys);
        self.beyond_first([object, dkey, akey, record])
    }

    #[inline]
    fn beyond_first(&self, at: [u64; 4]) -> Position {
        let [object, dkey, akey, record] = self.first;
        Position { object: object + at[0], dkey: dkey + at[1], akey: akey + at[2], record: record + at[3] }
    }

    /// Keys and range of an operation at a position.
    #[inline]
    pub(crate) fn target(&self, operation: ObjectOp, at: &Position) -> Target {
        use ObjectOp as Op;
        let [objects, _, akeys, records] = self.whole;
        // All records of a single value are the same value.
        let is_keyed = matches!(operation, Op::Update | Op::Fetch | Op::Punch);
        let record = if is_keyed && self.value == ValueKind::Single { 0 } else { at.record };
        let in_object = (at.dkey * akeys + at.akey) * records + record;
        let object = ObjectId::new(self.object_type, self.class, self.first_id.wrapping_add(at.object));
        let mut target = Target {
            number: in_object * objects + at.object,
            object,
            dkey: Key::EMPTY,
            akey: Key::EMPTY,
            offset_bytes: 0,
        };
        match operation {
            Op::Update | Op::Fetch | Op::Punch => {
                target.dkey = self.dkey(at.dkey);
                let akey = if self.constant_akey { at.akey } else { at.dkey * akeys + at.akey };
                target.akey = self.akey_prefix.followed_by(akey);
                if self.value == ValueKind::Array {
                    target.offset_bytes = record * self.stride_bytes + self.offset_bytes;
                }
            }
            // The largest dkey of an object, and the end of the array under its first akey.
            Op::Query if self.has_akeys() => {
                let [_, dkeys, akeys, _] = self.whole;
                let akey = if self.constant_akey { 0 } else { (dkeys - 1) * akeys };
                target.akey = self.akey_prefix.followed_by(akey);
            }
            Op::Put | Op::Get | Op::Remove | Op::Stat => target.dkey = self.dkey(in_object),
            Op::Read if self.reads_ranges => {
                target.dkey = self.dkey(at.dkey);
                target.offset_bytes = at.record * self.stride_bytes;
            }
            Op::Write | Op::Read => target.offset_bytes = in_object * self.stride_bytes + self.offset_bytes,
            _ => {}
        }
        target
    }

    /// Whether its objects have akeys of names; keys and arrays have one of no name.
    fn has_akeys(&self) -> bool {
        matches!(self.object_type, ObjectType::MultiHashed | ObjectType::DkeyUint64)
    }

    #[inline]
    fn dkey(&self, number: u64) -> Key {
        match &self.dkey_names {
            Some(names) => names.of(number),
            None => Key::integer(number),
        }
    }

    /// Object, keys and extent of an operation, for people.
    pub(crate) fn name(&self, operation: &ObjectOperation) -> String {
        let ObjectOperation { object, dkey, akey, offset_bytes, .. } = operation;
        let place = match operation.operation {
            ObjectOp::Write | ObjectOp::Read => format!("array offset {offset_bytes}"),
            ObjectOp::Put | ObjectOp::Get => format!("key {dkey}"),
            _ if self.value == ValueKind::Array => format!("dkey {dkey} akey {akey} offset {offset_bytes}"),
            _ => format!("dkey {dkey} akey {akey}"),
        };
        format!("object {object} {place}")
    }
}

/// Names of dkeys: all that an object holds has a number, and keys of key-value objects and arrays are numbered through.
fn names(text: &str, whole: [u64; 4]) -> Result<Names, Error> {
    let last = whole[1..].iter().fold(1u64, |all, &one| all.saturating_mul(one)).saturating_sub(1);
    Names::new(text, last).map_err(|error| Error::usage("plan", error.to_string()))
}

/// Quotient and remainder; most counts are 1, and a division is dear.
#[inline]
fn split(number: u64, by: u64) -> (u64, u64) {
    if by == 1 { (number, 0) } else { (number / by, number % by) }
}
