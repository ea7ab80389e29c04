//! Where objects lie: class, object id and dkey give the group of shards, and the targets of its shards. Pure, and the same on every
//! machine: what was placed is found again.

use crate::{ObjectClass, Redundancy};
use driver::Error;
use units::random::mix64;

use crate::model::ObjectId;

/// How objects of one class are spread over the targets of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    redundancy: Redundancy,
    group_size: u32,
    groups: u32,
    targets: u32,
}

impl Placement {
    /// For objects of `class` over `targets` targets.
    ///
    /// # Errors
    /// Bad usage: there are fewer targets than the class takes.
    pub fn new(class: ObjectClass, targets: u32) -> Result<Self, Error> {
        let Some(groups) = class.groups_over(targets) else {
            let needed = match class.groups {
                crate::Groups::All => class.group_size(),
                crate::Groups::Count(count) => class.group_size() * u32::from(count),
            };
            return Err(Error::usage(
                "class",
                format!("{class} needs {needed} targets, but the store has {targets}"),
            )
            .remedy("use a class with fewer targets, such as S1 or SX, or a store with more --targets"));
        };
        Ok(Self { redundancy: class.redundancy, group_size: class.group_size(), groups, targets })
    }

    /// How values are kept.
    #[inline]
    #[must_use]
    pub fn redundancy(&self) -> Redundancy {
        self.redundancy
    }

    /// Redundancy groups.
    #[inline]
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// Shards of a group: copies, or cells of data and parity.
    #[inline]
    #[must_use]
    pub fn group_size(&self) -> u32 {
        self.group_size
    }

    /// Shards of an object: each on a target of its own.
    #[inline]
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.groups * self.group_size
    }

    /// The group that a dkey belongs to.
    #[inline]
    #[must_use]
    pub fn group(&self, dkey: &[u8]) -> u32 {
        if self.groups == 1 { 0 } else { reduce(hash_key(dkey), self.groups) }
    }

    /// The target of shard `shard` of group `group` of an object.
    #[inline]
    #[must_use]
    pub fn target(&self, object: ObjectId, group: u32, shard: u32) -> u32 {
        if self.targets == 1 {
            return 0;
        }
        let first = reduce(mix64(object.lo ^ mix64(object.hi)), self.targets);
        let target = first + group * self.group_size + shard;
        if target < self.targets { target } else { target - self.targets }
    }
}

/// Spreads 64 bits over `0..below`: the upper bits of the product, cheaper than a remainder and as even.
#[inline]
fn reduce(hash: u64, below: u32) -> u32 {
    ((u128::from(hash) * u128::from(below)) >> 64) as u32
}

/// Hash of a key: its words of 8 bytes, little endian, folded one after the other.
#[inline]
fn hash_key(key: &[u8]) -> u64 {
    let mut hash = key.len() as u64;
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = mix64(hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = mix64(hash ^ u64::from_le_bytes(word));
    }
    mix64(hash)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::ObjectType;
    use proptest::prelude::*;

    use super::*;
    use crate::model::Key;

    const CLASSES: &[&str] =
        &["S1", "S3", "SX", "RP_2G1", "RP_2GX", "RP_3GX", "EC_2P1GX", "EC_4P2G1", "EC_8P2GX"];

    fn placement(class: &str, targets: u32) -> Placement {
        Placement::new(class.parse().expect("a class"), targets).expect("enough targets")
    }

    fn id(class: &str, number: u64) -> ObjectId {
        ObjectId::new(ObjectType::MultiHashed, class.parse().expect("a class"), number)
    }

    /// Chi-square of counts against even shares, divided by its degrees of freedom: about 1 when draws are fair.
    fn unevenness(counts: &[u64]) -> f64 {
        let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let sum: f64 = counts.iter().map(|&count| (count as f64 - mean).powi(2) / mean).sum();
        sum / (counts.len() - 1) as f64
    }

    #[test]
    fn dkeys_spread_evenly_over_groups() {
        let prefix = Key::new(b"blade-").expect("short");
        for targets in [2, 3, 7, 16] {
            let placement = placement("SX", targets);
            for key in [|_, n| Key::integer(n), |prefix: Key, n| prefix.followed_by(n)] {
                let mut counts = vec![0; targets as usize];
                for number in 0..20_000 {
                    counts[placement.group(key(prefix, number).as_bytes()) as usize] += 1;
                }
                let found = unevenness(&counts);
                assert!(found < 5.0, "{targets} targets: {found} {counts:?}");
            }
        }
    }

    #[test]
    fn objects_spread_evenly_over_targets() {
        for class in ["S1", "RP_3G1", "EC_4P2G1"] {
            let placement = placement(class, 11);
            let mut counts = vec![0; 11];
            for number in 0..20_000 {
                counts[placement.target(id(class, number), 0, 0) as usize] += 1;
            }
            let found = unevenness(&counts);
            assert!(found < 5.0, "{class}: {found} {counts:?}");
        }
    }

    /// A store that was written keeps its data where it is: these must never change.
    #[test]
    fn places_are_pinned() {
        let spread = placement("SX", 8);
        let groups: Vec<_> = (0..8).map(|n| spread.group(Key::integer(n).as_bytes())).collect();
        let named: Vec<_> = ["", "a", "blade-0", "blade-1", "blade-10", "akey--0123456789"]
            .map(|key| spread.group(key.as_bytes()))
            .into();
        let single = placement("S1", 8);
        let targets: Vec<_> = (0..8).map(|n| single.target(id("S1", n), 0, 0)).collect();
        assert_eq!(
            (&groups[..], &named[..], &targets[..]),
            (&[0, 6, 0, 1, 1, 4, 0, 5][..], &[0, 2, 6, 2, 5, 4][..], &[6, 4, 4, 7, 7, 0, 2, 6][..])
        );
    }

    #[test]
    fn too_few_targets_are_refused_with_both_numbers() {
        let refuse =
            |class: &str, targets| Placement::new(class.parse().expect("a class"), targets).expect_err(class);
        let error = refuse("EC_4P2G2", 8);
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("EC_4P2G2 needs 12 targets, but the store has 8"), "{error}");
        assert!(refuse("RP_3GX", 2).to_string().contains("needs 3 targets, but the store has 2"));
    }

    proptest! {
        #[test]
        fn shards_of_an_object_lie_on_targets_of_their_own(
            class in prop::sample::select(CLASSES), targets in 10u32..64, number: u64,
        ) {
            let placement = placement(class, targets);
            let mut used = BTreeSet::new();
            for group in 0..placement.groups() {
                for shard in 0..placement.group_size() {
                    let target = placement.target(id(class, number), group, shard);
                    prop_assert!(target < targets && used.insert(target));
                }
            }
            prop_assert_eq!(used.len() as u32, placement.shards());
        }

        #[test]
        fn any_key_has_a_group(key in prop::collection::vec(any::<u8>(), 0..100), targets in 1u32..64) {
            prop_assert!(placement("SX", targets).group(&key) < targets);
        }
    }
}
