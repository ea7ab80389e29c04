//! Changes of several targets: copies, cells of data and parity. Each target has a log of its own, and a failure may leave what was written to
//! one of them without what was written to another. So each record of such a change says which one it is a part of and how many parts that
//! has: what is not there whole when the logs are read is taken back on all targets.
//!
//! A change of a part of a stripe is computed from what was there, and says so: where that is lost as a whole, it goes, too.
//!
//! A part may be missing for another reason: newer ones have replaced it, and it was aggregated. Aggregation therefore ends at an epoch up to
//! which all changes are whole and durable on all targets, and which is on the medium before anything goes ([`super::settled`]).

use std::sync::Arc;

use super::error::StoreError;
use super::order::Held;
use super::storage_target::{Reservation, Target};
use super::types::{Ack, KeyPath, Punch, Write};
use crate::model::Epoch;

/// Which change of several targets a record is a part of, how many parts it has, and what it was computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transaction {
    number: Epoch,
    parts: u8,
    after: Epoch,
}

/// How it stands in a record, in bytes: number and parts in the first 8, what it comes after in the others.
pub(super) const TRANSACTION_BYTES: usize = 16;

impl Transaction {
    /// Of a change that has no other parts.
    pub(crate) const NONE: Self = Self { number: 0, parts: 0, after: 0 };

    /// `number` is an epoch: none of its parts has one before it.
    pub(super) fn new(number: Epoch, parts: usize) -> Self {
        let parts = u8::try_from(parts).unwrap_or(u8::MAX);
        debug_assert!(parts > 0 && parts < u8::MAX, "no class has as many shards");
        Self { number, parts, after: 0 }
    }

    /// The same, computed from what the array of the first shard of parity was at an epoch.
    pub(super) fn following(self, after: Epoch) -> Self {
        Self { after, ..self }
    }

    pub(super) fn of_bytes(bytes: [u8; TRANSACTION_BYTES]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let [word, after] = [0, 1].map(|at| u64::from_le_bytes(words[at]));
        Self { number: word >> 8, parts: (word & 0xff) as u8, after }
    }

    /// As it stands in a record.
    pub(super) fn bytes(self) -> [u8; TRANSACTION_BYTES] {
        let mut bytes = [0; TRANSACTION_BYTES];
        bytes[..8].copy_from_slice(&(self.number << 8 | u64::from(self.parts)).to_le_bytes());
        bytes[8..].copy_from_slice(&self.after.to_le_bytes());
        bytes
    }

    pub(super) fn is_some(self) -> bool {
        self.parts != 0
    }

    /// In the order in which changes of a dkey were made.
    pub(super) fn number(self) -> Epoch {
        self.number
    }

    pub(super) fn parts(self) -> usize {
        usize::from(self.parts)
    }

    /// Epoch of the change that it was computed from; 0: from none.
    pub(super) fn after(self) -> Epoch {
        self.after
    }
}

/// A change that is being made, part by part.
pub struct Change<'a> {
    place: KeyPath<'a>,
    transaction: Transaction,
    done: Vec<(&'a Arc<Target>, Epoch)>,
}

impl<'a> Change<'a> {
    /// As [`Target::update`].
    pub fn update(
        &mut self,
        target: &'a Arc<Target>,
        write: Write,
        data: &[u8],
        ack: Ack,
    ) -> Result<(), StoreError> {
        let epoch = target.update_in(&self.place, write, data, ack, self.transaction)?;
        self.done.push((target, epoch));
        Ok(())
    }

    /// As [`Target::punch`].
    pub fn punch(&mut self, target: &'a Arc<Target>, what: Punch, ack: Ack) -> Result<(), StoreError> {
        let epoch = target.punch_in(&self.place, what, ack, self.transaction)?;
        self.done.push((target, epoch));
        Ok(())
    }

    /// As [`Reservation::publish`], of room on `target`.
    pub fn publish(
        &mut self,
        target: &'a Arc<Target>,
        room: Reservation,
        ack: Ack,
    ) -> Result<(), StoreError> {
        let epoch = room.publish_in(ack, self.transaction)?;
        self.done.push((target, epoch));
        Ok(())
    }

    /// Takes back what was made of it.
    #[cold]
    fn take_back(&self) -> Result<(), StoreError> {
        self.done.iter().try_for_each(|(target, epoch)| target.take_back(&self.place, *epoch))
    }
}

/// Makes a change of `parts` parts in the turn of its dkey: all of them, or none. `after`: see `Transaction::following`. One that failed and cannot be taken back closes the turn:
/// nothing may be built on it, and the next open takes it back.
///
/// # Errors
/// As `work`.
pub fn change<'a>(
    turn: &Held<'_>,
    place: KeyPath<'a>,
    (parts, after): (usize, Epoch),
    work: impl FnOnce(&mut Change<'a>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let transaction = turn.begin(parts)?.following(after);
    let mut change = Change { place, transaction, done: Vec::with_capacity(parts) };
    let done = work(&mut change);
    debug_assert!(done.is_err() || change.done.len() == parts, "parts that were reported and not made");
    if done.is_ok() || change.take_back().is_ok() {
        turn.end();
    }
    done
}

/// Writes the same to all targets, in their order.
///
/// # Errors
/// As [`Target::update`]; the values before stay then.
pub fn update_all<'a>(
    turn: &Held<'_>,
    place: KeyPath<'a>,
    targets: &[&'a Arc<Target>],
    (write, data): (Write, &[u8]),
    ack: Ack,
) -> Result<(), StoreError> {
    change(turn, place, (targets.len(), 0), |change| {
        targets.iter().try_for_each(|target| change.update(target, write, data, ack))
    })?;
    commit_earlier(targets, ack)
}

/// Who is told that a change is durable is told so of all before it.
fn commit_earlier(targets: &[&Arc<Target>], ack: Ack) -> Result<(), StoreError> {
    match ack {
        Ack::Deferred => Ok(()),
        Ack::AsConfigured => targets.iter().try_for_each(|target| target.commit_earlier()),
    }
}

/// Removes the same from all targets that have any of it.
///
/// # Errors
/// As [`Target::punch`]: [`StoreError::NotFound`] where none of them has; all is as it was then.
pub fn punch_all<'a>(
    turn: &Held<'_>,
    place: KeyPath<'a>,
    targets: &[&'a Arc<Target>],
    what: Punch,
    ack: Ack,
) -> Result<(), StoreError> {
    let mut having = Vec::with_capacity(targets.len());
    for target in targets {
        if target.has(&place, what)? {
            having.push(*target);
        }
    }
    if having.is_empty() {
        return Err(StoreError::NotFound);
    }
    change(turn, place, (having.len(), 0), |change| {
        having.iter().try_for_each(|target| change.punch(target, what, ack))
    })?;
    commit_earlier(targets, ack)
}
