//! Changes that depend on what is there: an entry that is made only where there is none, a value that is replaced only while it is the one that was
//! read, and several of these in one go. For objects without copies and parity.
//!
//! Whoever changes dkeys so takes their turns ([`super::Order`]), looks, and changes: two that make the same name exclude each other.
//! A step that fails takes those before it back. A failure of the machine may leave the first steps without the later ones: what has to be
//! finished after it is what the caller has stored as the first step and removes by the last.

use std::sync::Arc;

use super::error::StoreError;
use super::types::{Ack, ContainerId, KeyPath, Largest, Punch, Write};
use super::{Pool, Target};
use crate::Redundancy;
use crate::model::{Epoch, ObjectId};
use crate::placement::Placement;

/// What has to be there for a step to be made, of the single value of its akey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing in particular.
    Any,
    /// There is no value ([`StoreError::Exists`] else).
    Absent,
    /// There is a value ([`StoreError::NotFound`] else).
    Present,
    /// The value is the one of this epoch ([`StoreError::NotFound`] where there is none, [`StoreError::Changed`] where it is another).
    Version(Epoch),
}

/// Effect of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// None: the condition is looked at when the steps before it are made.
    Check,
    /// The single value of the akey becomes this.
    Update(&'a [u8]),
    /// It, or what it lies under, is removed. Nothing there, with [`Condition::Any`], is no error.
    Punch(Punch),
}

/// A conditional change of one key.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Its object, which has neither copies nor parity.
    pub object: ObjectId,
    /// Its dkey.
    pub dkey: &'a [u8],
    /// The akey that the condition is about.
    pub akey: &'a [u8],
    /// When it is made.
    pub condition: Condition,
    /// What it does.
    pub action: Action<'a>,
}

impl Condition {
    /// Holds it against the version that is there.
    fn check(self, version: Option<Epoch>) -> Result<(), StoreError> {
        match (self, version) {
            (Self::Any, _) | (Self::Absent, None) | (Self::Present, Some(_)) => Ok(()),
            (Self::Absent, Some(_)) => Err(StoreError::Exists),
            (Self::Present | Self::Version(_), None) => Err(StoreError::NotFound),
            (Self::Version(wanted), Some(version)) if wanted == version => Ok(()),
            (Self::Version(_), Some(_)) => Err(StoreError::Changed),
        }
    }
}

/// A step with its place.
struct Placed<'a> {
    target: &'a Arc<Target>,
    place: KeyPath<'a>,
    step: &'a Step<'a>,
}

impl Placed<'_> {
    fn check(&self) -> Result<(), StoreError> {
        match self.step.condition {
            Condition::Any => Ok(()),
            condition => condition.check(self.target.version_of(&self.place)?),
        }
    }

    fn is_change(&self) -> bool {
        self.step.action != Action::Check
    }

    /// Makes it; the epoch of what was changed.
    fn make(&self, ack: Ack) -> Result<Option<Epoch>, StoreError> {
        match self.step.action {
            Action::Check => self.check().map(|()| None),
            Action::Update(value) => self.target.update(&self.place, Write::Single, value, ack).map(Some),
            Action::Punch(what) => match self.target.punch(&self.place, what, ack) {
                Err(StoreError::NotFound) if self.step.condition == Condition::Any => Ok(None),
                punched => punched.map(Some),
            },
        }
    }
}

impl Pool {
    /// Makes all of the steps, in their order, or none; conditions of changes are looked at before the first is made. Their dkeys are to be
    /// changed by this call alone.
    ///
    /// # Errors
    /// The condition that does not hold, and as [`Target::update`] and [`Target::punch`].
    pub fn apply(&self, container: ContainerId, steps: &[Step<'_>], ack: Ack) -> Result<(), StoreError> {
        if let [step] = steps {
            let placed = self.placed(container, step)?;
            let _turn = self.order().of(step.object, step.dkey);
            placed.check()?;
            return placed.make(ack).map(drop);
        }
        let all = steps.iter().map(|step| self.placed(container, step)).collect::<Result<Vec<_>, _>>()?;
        let dkeys = all.iter().filter(|placed| placed.is_change());
        let _turns = self.order().several(dkeys.map(|placed| (placed.step.object, placed.step.dkey)));
        all.iter().filter(|placed| placed.is_change()).try_for_each(Placed::check)?;
        let mut done: Vec<(&Placed<'_>, Epoch)> = Vec::with_capacity(all.len());
        for placed in &all {
            match placed.make(ack) {
                Ok(epoch) => done.extend(epoch.map(|epoch| (placed, epoch))),
                Err(error) => {
                    let mut made = done.iter().rev();
                    // What cannot be taken back stays, with what was stored before it.
                    let _ =
                        made.try_for_each(|(placed, epoch)| placed.target.take_back(&placed.place, *epoch));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn placed<'a>(&'a self, container: ContainerId, step: &'a Step<'a>) -> Result<Placed<'a>, StoreError> {
        let Step { object, dkey, akey, .. } = *step;
        let target = self.target_of(object, dkey)?;
        Ok(Placed { target, place: KeyPath { container, object, dkey, akey }, step })
    }

    /// Placement of an object without copies and parity.
    ///
    /// # Errors
    /// [`StoreError::InvalidKey`]: its class is another, or takes more targets.
    pub fn flat_placement(&self, object: ObjectId) -> Result<Placement, StoreError> {
        let class = object.class().filter(|class| class.redundancy == Redundancy::None);
        let placement = class.and_then(|class| Placement::new(class, self.targets().len() as u32).ok());
        placement.ok_or(StoreError::InvalidKey)
    }

    /// The target that a dkey of an object without copies and parity lies on.
    ///
    /// # Errors
    /// As [`Pool::flat_placement`].
    pub fn target_of(&self, object: ObjectId, dkey: &[u8]) -> Result<&Arc<Target>, StoreError> {
        let placement = self.flat_placement(object)?;
        Ok(self.target(placement.target(object, placement.group(dkey), 0) as usize))
    }

    /// The targets of an object without copies and parity, group by group.
    ///
    /// # Errors
    /// As [`Pool::flat_placement`].
    pub fn targets_of(&self, object: ObjectId) -> Result<impl Iterator<Item = &Arc<Target>>, StoreError> {
        let placement = self.flat_placement(object)?;
        let target = move |group| self.target(placement.target(object, group, 0) as usize);
        Ok((0..placement.groups()).map(target))
    }

    /// The largest integer dkey of an object on all its targets, and the end of the records under it; none where it has no such dkey.
    ///
    /// # Errors
    /// As [`Target::largest`].
    pub fn largest_of(
        &self,
        container: ContainerId,
        object: ObjectId,
        akey: &[u8],
    ) -> Result<Option<Largest>, StoreError> {
        let mut best: Option<Largest> = None;
        for target in self.targets_of(object)? {
            match target.largest(container, object, akey, None) {
                Ok(found) if best.is_none_or(|best| best.dkey < found.dkey) => best = Some(found),
                Ok(_) | Err(StoreError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(best)
    }

    /// Removes an object from all its targets; false where there was nothing of it.
    ///
    /// # Errors
    /// As [`Target::punch`].
    pub fn punch_object(
        &self,
        container: ContainerId,
        object: ObjectId,
        ack: Ack,
    ) -> Result<bool, StoreError> {
        let place = KeyPath { container, object, dkey: &[], akey: &[] };
        let mut has_any = false;
        for target in self.targets_of(object)? {
            match target.punch(&place, Punch::Object, ack) {
                Ok(_) => has_any = true,
                Err(StoreError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(has_any)
    }
}
