//! Who stores what in a container. A run claims the ids of its objects before it stores the first of them; the claim lies in the
//! container, so that every other run finds it, and at the end tells what is whose.

use driver::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::model::ObjectId;

/// Objects, by the lower halves of their ids ([`ObjectId::lo`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// The first.
    pub first: u64,
    /// The last, which is one of them.
    pub last: u64,
}

impl Ids {
    /// Those of all objects.
    pub const ALL: Self = Self { first: 0, last: u64::MAX };

    /// Whether an object is one of them.
    #[must_use]
    pub fn has(&self, object: ObjectId) -> bool {
        (self.first..=self.last).contains(&object.lo)
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn covers(&self, other: &Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// Request of a run for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Number of the run.
    pub run: u64,
    /// Number of whoever runs it: the same for all runs of a user of a machine.
    pub owner: u64,
    /// Objects that it is going to store, or take away.
    pub ids: Ids,
    /// Also what others stored.
    pub destroys: bool,
}

/// Objects of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    #[serde(flatten)]
    ids: Ids,
    /// None of them was there before.
    is_fresh: bool,
}

/// Claim of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    run: u64,
    owner: u64,
    /// The run has ended and its objects were to stay: its owner's later runs may change them.
    kept: bool,
    held: Vec<Held>,
}

/// Objects and claims in the way of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The object that was found, as people read it; none: a claim alone.
    pub object: Option<String>,
    /// The run that claims it; none where it is not known.
    pub run: Option<u64>,
    /// That run has ended, and kept it.
    pub is_kept: bool,
}

/// All claims of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Claims(Vec<Claim>);

impl Claims {
    /// Whether the run claims all that it asks for already.
    pub fn has(&self, asked: &Asked) -> bool {
        let own = self.0.iter().filter(|claim| claim.run == asked.run).flat_map(|claim| &claim.held);
        own.into_iter().any(|held| held.ids.covers(&asked.ids))
    }

    /// Whether a claim leaves its objects to the run that asks.
    fn yields(claim: &Claim, asked: &Asked) -> bool {
        claim.run == asked.run || (claim.kept && claim.owner == asked.owner)
    }

    /// Another's claim of objects that are asked for.
    pub fn collision(&self, asked: &Asked) -> Option<Found> {
        let others = self.0.iter().filter(|claim| !Self::yields(claim, asked));
        let mut others = others.filter(|claim| claim.held.iter().any(|held| held.ids.overlaps(&asked.ids)));
        others.next().map(|claim| Found { object: None, run: Some(claim.run), is_kept: claim.kept })
    }

    /// Whether an object that was found is left to the run that asks.
    pub fn leaves(&self, object: ObjectId, asked: &Asked) -> bool {
        self.0
            .iter()
            .any(|claim| Self::yields(claim, asked) && claim.held.iter().any(|held| held.ids.has(object)))
    }

    /// Enters what was asked for. `found_any`: some of it was there before, and this run did not store it.
    pub fn enter(&mut self, asked: &Asked, found_any: bool) {
        let is_touched =
            |held: &Held, is_own: bool| held.ids.overlaps(&asked.ids) && !(is_own && held.is_fresh);
        let is_touched =
            self.0.iter().any(|claim| claim.held.iter().any(|held| is_touched(held, claim.run == asked.run)));
        let held = Held { ids: asked.ids, is_fresh: !found_any && !is_touched };
        match self.0.iter_mut().find(|claim| claim.run == asked.run) {
            Some(claim) => {
                claim.kept = false;
                claim.held.push(held);
                join(&mut claim.held);
            }
            None => {
                let Asked { run, owner, .. } = *asked;
                self.0.push(Claim { run, owner, kept: false, held: vec![held] });
            }
        }
    }

    /// Another run that claims something.
    pub fn other(&self, run: u64) -> Option<u64> {
        self.0.iter().map(|claim| claim.run).find(|other| *other != run)
    }

    /// Whether a run claims an object.
    pub fn is_of(&self, run: u64, object: ObjectId) -> bool {
        self.0.iter().any(|claim| claim.run == run && claim.held.iter().any(|held| held.ids.has(object)))
    }

    /// Whether the object is there because of this run alone.
    pub fn is_fresh(&self, run: u64, object: ObjectId) -> bool {
        let own = self.0.iter().filter(|claim| claim.run == run);
        own.flat_map(|claim| &claim.held).any(|held| held.is_fresh && held.ids.has(object))
            && !self
                .0
                .iter()
                .any(|claim| claim.run != run && claim.held.iter().any(|held| held.ids.has(object)))
    }

    /// Whether a run claims anything.
    pub fn names(&self, run: u64) -> bool {
        self.0.iter().any(|claim| claim.run == run)
    }

    /// Gives up what a run claims.
    pub fn release(&mut self, run: u64) {
        self.0.retain(|claim| claim.run != run);
    }

    /// The run has ended, and its objects stay. Where they were kept before by the same owner they are still that run's. False where
    /// nothing changes.
    pub fn keep(&mut self, run: u64) -> bool {
        let Some(at) = self.0.iter().position(|claim| claim.run == run && !claim.kept) else { return false };
        let claim = &self.0[at];
        let is_kept = |held: &Held| {
            let earlier = |other: &&Claim| other.run != run && other.kept && other.owner == claim.owner;
            let mut earlier = self.0.iter().filter(earlier).flat_map(|other| &other.held);
            !held.is_fresh && earlier.any(|other| other.ids.covers(&held.ids))
        };
        if claim.held.iter().all(is_kept) {
            self.0.remove(at);
        } else {
            self.0[at].kept = true;
        }
        true
    }
}

/// Makes one of neighbours.
fn join(all: &mut Vec<Held>) {
    all.sort_unstable_by_key(|held| held.ids.first);
    let mut joined: Vec<Held> = Vec::with_capacity(all.len());
    for held in all.drain(..) {
        match joined.last_mut() {
            Some(last)
                if last.is_fresh == held.is_fresh && held.ids.first <= last.ids.last.saturating_add(1) =>
            {
                last.ids.last = last.ids.last.max(held.ids.last);
            }
            _ => joined.push(held),
        }
    }
    *all = joined;
}

/// Fate of a container at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The run made it, and nothing in it is others': it goes with all that is in it.
    Destroyed,
    /// Others have something in it, or made it: so many objects of the run go, and the rest stays.
    Cleared {
        /// Objects that go.
        objects: u64,
        /// Why the container stays although the run made it.
        why: Option<String>,
    },
    /// It is not there, or there is nothing of the run in it.
    Nothing,
}

impl Found {
    /// Refuses a load. `owner` is as for [`Asked`].
    #[must_use]
    pub fn refusal(&self, operation: &'static str, label: &str, ids: Ids) -> Error {
        let message = "the container holds objects with ids of this load that this run did not create";
        let Ids { first, last } = ids;
        let mut error = Error::new(ErrorKind::Unsafe, operation, message).with("container", label);
        error = match &self.object {
            Some(object) => error.with("object", object),
            None => error.with("ids", format!("{first} to {last}")),
        };
        if let Some(run) = self.run {
            error = error.with("run", format!("{run:016x}"));
        }
        let ended = match self.is_kept || self.run.is_none() {
            true => "--no-fill to read the existing data",
            false => "wait for that run (if it was killed, strata clean removes its objects)",
        };
        error.remedy(format!(
            "use another container (--container LABEL), other ids (--first-id N), {ended}, or --destroy-data to \
             overwrite and remove the existing objects"
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::{ObjectClass, ObjectType};

    use super::*;

    fn asked(run: u64, owner: u64, first: u64, last: u64) -> Asked {
        Asked { run, owner, ids: Ids { first, last }, destroys: false }
    }

    fn object(lo: u64) -> ObjectId {
        ObjectId::new(ObjectType::ArrayByte, ObjectClass::S1, lo)
    }

    #[test]
    fn ids_of_others_collide_and_kept_ones_are_their_owners() {
        let mut claims = Claims::default();
        claims.enter(&asked(1, 7, 10, 19), false);
        assert!(claims.has(&asked(1, 7, 12, 13)) && claims.collision(&asked(1, 7, 5, 25)).is_none());
        for (first, last) in [(0, 10), (19, 19), (12, 13), (0, u64::MAX)] {
            // Of the same owner, but under way.
            let found = claims.collision(&asked(2, 7, first, last)).expect("it collides");
            assert_eq!((found.run, found.is_kept), (Some(1), false));
        }
        assert!(claims.collision(&asked(2, 8, 20, 30)).is_none());
        assert!(claims.keep(1) && !claims.keep(1));
        assert!(claims.collision(&asked(2, 7, 0, 12)).is_none());
        assert!(
            claims.leaves(object(12), &asked(2, 7, 0, 12)) && !claims.leaves(object(9), &asked(2, 7, 0, 12))
        );
        assert!(claims.collision(&asked(2, 8, 0, 12)).is_some_and(|found| found.is_kept));
    }

    #[test]
    fn only_what_was_not_there_before_is_fresh() {
        let mut claims = Claims::default();
        claims.enter(&asked(1, 7, 1, 5), false);
        claims.enter(&asked(1, 7, 6, 9), false);
        claims.enter(&asked(1, 7, 20, 29), true);
        assert_eq!(claims.0[0].held.len(), 2, "neighbours are one");
        assert!(claims.is_fresh(1, object(9)) && !claims.is_fresh(1, object(20)));
        assert!(claims.is_of(1, object(20)) && !claims.is_of(1, object(10)));
        assert!(claims.keep(1));
        // An update of what was kept is not the later run's.
        claims.enter(&asked(2, 7, 1, 9), true);
        claims.enter(&asked(2, 7, 40, 41), false);
        assert!(!claims.is_fresh(2, object(1)) && claims.is_fresh(2, object(41)));
        assert_eq!(claims.other(2), Some(1));
        claims.release(2);
        claims.enter(&asked(3, 7, 2, 3), true);
        assert!(claims.keep(3) && !claims.names(3), "it is the earlier run's");
    }

    #[test]
    fn claims_travel() {
        let mut claims = Claims::default();
        claims.enter(&asked(u64::MAX, 1 << 63, 0, u64::MAX), true);
        let text = serde_json::to_string(&claims).expect("JSON");
        assert_eq!(serde_json::from_str::<Claims>(&text).expect("claims"), claims);
    }
}
