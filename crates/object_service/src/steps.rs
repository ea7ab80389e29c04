//! Conditional changes as they stand in messages: behind the head of a request, each 12 bytes, its object, and its keys and value behind their
//! lengths.
//!
//! ```text
//!  0 action u8       4 version u64     12 object lo u64   28 dkey bytes u16, dkey, akey bytes u16, akey
//!  1 condition u8                      20 object hi u64      value bytes u32, value
//!  2 zero u16
//! ```

use vos::model::ObjectId;
use vos::{Action, Condition, Punch, Step};

use super::wire::{Malformed, Reader, put_counted};

/// Most steps of a request.
pub const STEPS_MAX: usize = 16;

/// Actions by their numbers; an update has a value.
const CHECK: u8 = 0;
const UPDATE: u8 = 1;
const PUNCH_AKEY: u8 = 2;
const PUNCH_DKEY: u8 = 3;

/// Adds steps. False, and `to` is of no use, where one has a key of more than 65535 bytes, or removes something else than an akey or a dkey.
#[must_use]
pub fn put_steps(to: &mut Vec<u8>, steps: &[Step<'_>]) -> bool {
    steps.iter().all(|step| {
        let (action, value) = match step.action {
            Action::Check => (CHECK, &[][..]),
            Action::Update(value) => (UPDATE, value),
            Action::Punch(Punch::Akey) => (PUNCH_AKEY, &[][..]),
            Action::Punch(Punch::Dkey) => (PUNCH_DKEY, &[][..]),
            Action::Punch(Punch::Record { .. } | Punch::Object) => return false,
        };
        let (condition, version) = match step.condition {
            Condition::Any => (0, 0),
            Condition::Absent => (1, 0),
            Condition::Present => (2, 0),
            Condition::Version(version) => (3, version),
        };
        to.extend_from_slice(&[action, condition, 0, 0]);
        to.extend_from_slice(&version.to_le_bytes());
        to.extend_from_slice(&step.object.lo.to_le_bytes());
        to.extend_from_slice(&step.object.hi.to_le_bytes());
        let has_keys = put_counted(to, step.dkey) && put_counted(to, step.akey);
        let Ok(length) = u32::try_from(value.len()) else { return false };
        to.extend_from_slice(&length.to_le_bytes());
        to.extend_from_slice(value);
        has_keys
    })
}

/// Reads steps to the end of the bytes.
///
/// # Errors
/// When they are none, or more than [`STEPS_MAX`].
pub fn steps_of(bytes: &[u8]) -> Result<Vec<Step<'_>>, Malformed> {
    let mut reader = Reader(bytes);
    let mut steps = Vec::new();
    while !reader.0.is_empty() {
        if steps.len() == STEPS_MAX {
            return Err(Malformed);
        }
        let [action, condition, 0, 0] = *reader.bytes(4)? else { return Err(Malformed) };
        let version = reader.long()?;
        let object = ObjectId { lo: reader.long()?, hi: reader.long()? };
        let (dkey, akey) = (reader.counted()?, reader.counted()?);
        let length = reader.word()? as usize;
        let value = reader.bytes(length)?;
        let condition = match (condition, version) {
            (0, 0) => Condition::Any,
            (1, 0) => Condition::Absent,
            (2, 0) => Condition::Present,
            (3, version) => Condition::Version(version),
            _ => return Err(Malformed),
        };
        let action = match action {
            UPDATE => Action::Update(value),
            _ if length > 0 => return Err(Malformed),
            CHECK => Action::Check,
            PUNCH_AKEY => Action::Punch(Punch::Akey),
            PUNCH_DKEY => Action::Punch(Punch::Dkey),
            _ => return Err(Malformed),
        };
        steps.push(Step { object, dkey, akey, condition, action });
    }
    if steps.is_empty() { Err(Malformed) } else { Ok(steps) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..40)
    }

    proptest! {
        #[test]
        fn steps_travel(all in prop::collection::vec((key(), key(), key(), any::<(u64, u64, u64)>(), 0..4u8, 0..4u8), 1..STEPS_MAX)) {
            let steps: Vec<Step<'_>> = all.iter().map(|(dkey, akey, value, (lo, hi, version), condition, action)| Step {
                object: ObjectId { lo: *lo, hi: *hi },
                dkey,
                akey,
                condition: [Condition::Any, Condition::Absent, Condition::Present, Condition::Version(*version)][*condition as usize],
                action: [
                    Action::Check, Action::Update(value), Action::Punch(Punch::Akey), Action::Punch(Punch::Dkey),
                ][*action as usize],
            }).collect();
            let mut bytes = Vec::new();
            prop_assert!(put_steps(&mut bytes, &steps));
            let read = steps_of(&bytes).expect("steps");
            let again = |steps: &[Step<'_>]| { let mut bytes = Vec::new(); put_steps(&mut bytes, steps).then_some(bytes) };
            prop_assert_eq!(again(&read), Some(bytes.clone()));
            prop_assert_eq!(steps_of(&bytes[..bytes.len() - 1]).err(), Some(Malformed));
        }

        #[test]
        fn any_bytes_are_steps_or_malformed(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(steps) = steps_of(&bytes) {
                let mut again = Vec::new();
                prop_assert!(put_steps(&mut again, &steps));
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn what_cannot_travel_is_told() {
        let step = Step {
            object: ObjectId::default(),
            dkey: b"d",
            akey: b"a",
            condition: Condition::Any,
            action: Action::Punch(Punch::Object),
        };
        assert!(!put_steps(&mut Vec::new(), &[step]));
        assert_eq!(steps_of(&[]).err(), Some(Malformed));
    }
}
