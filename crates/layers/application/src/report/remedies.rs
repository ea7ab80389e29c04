//! Remedies for calls that take much of the time of an application.

use layer::observations::{GroupProfile, Profile};
use units::clean;

/// Share of a group's time from which on a part is told.
const SHARE_MIN: f64 = 0.05;

/// A part of the time, and what helps where it is large.
struct Remedy {
    part: &'static str,
    /// Told only where it has at least so many calls for each call of another part: `(that, at least)`.
    against: Option<(&'static str, f64)>,
    text: &'static str,
}

/// The remedies, as the tutorials of DAOS and of file systems have them.
const REMEDIES: &[Remedy] = &[
    Remedy {
        part: "open-container",
        against: None,
        text: "open the container in one process and hand its handle to the others",
    },
    Remedy {
        part: "allocate-ids",
        against: Some(("write", 0.05)),
        text: "take many object ids in one call and keep them: one call for 100 objects or more (fdb-hammer: --set ids=1000)",
    },
    Remedy {
        part: "create",
        against: Some(("write", 0.5)),
        text: "open arrays with known attributes instead of creating them, and put several items into one object",
    },
    Remedy {
        part: "open",
        against: Some(("read", 0.5)),
        text: "keep objects open between reads, or put several items into one object",
    },
    Remedy {
        part: "stat",
        against: None,
        text: "store sizes in the index, or read with a buffer that is large enough",
    },
    Remedy {
        part: "put",
        against: None,
        text: "give each process an index of its own: one shared key-value object is a point of contention (fdb-hammer: --index process)",
    },
    Remedy {
        part: "get",
        against: None,
        text: "keep index entries in memory, and give each writer an index of its own (fdb-hammer: --index process)",
    },
    Remedy { part: "list", against: None, text: "list once and keep the result, or look keys up by name" },
    Remedy {
        part: "sync",
        against: Some(("write", 0.5)),
        text: "sync once after several writes: each sync waits for the device",
    },
    Remedy {
        part: "wait",
        against: None,
        text: "processes wait for others: shift work from the group that is waited for, or let writers run further ahead",
    },
];

fn line(group: &GroupProfile, remedy: &Remedy) -> Option<String> {
    let part = group.parts.iter().find(|part| part.name == remedy.part)?;
    let share = super::share(group, part);
    let of = |name: &str| group.parts.iter().find(|part| part.name == name).map_or(0, |part| part.calls);
    let is_often = remedy.against.is_none_or(|(other, least)| part.calls as f64 >= least * of(other) as f64);
    (share >= SHARE_MIN && is_often).then(|| {
        format!(
            "{}: {} takes {:.1} % of the time; {}",
            clean(&group.name),
            part.name,
            share * 100.0,
            remedy.text
        )
    })
}

/// One line for each part that is large and has a remedy, the largest share of each group first.
pub(super) fn of(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    for group in &profile.groups {
        for part in super::by_share(group) {
            lines.extend(
                REMEDIES
                    .iter()
                    .filter(|remedy| remedy.part == part.name)
                    .filter_map(|remedy| line(group, remedy)),
            );
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use layer::observations::ProfilePart;

    use super::*;

    fn profile(parts: &[(&str, u64, u64)]) -> Profile {
        let wall_ns = parts.iter().map(|(.., ns)| ns).sum();
        let parts =
            parts.iter().map(|&(name, calls, time_ns)| ProfilePart { name: name.to_owned(), calls, time_ns });
        Profile {
            groups: vec![GroupProfile {
                name: "writers".to_owned(),
                processes: 2,
                wall_ns,
                parts: parts.collect(),
            }],
        }
    }

    #[test]
    fn large_parts_have_remedies_and_small_ones_are_not_told() {
        let lines = of(&profile(&[("put", 100, 40), ("write", 100, 58), ("stat", 100, 2)]));
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].starts_with("writers: put takes 40.0 %") && lines[0].contains("--index process"),
            "{lines:?}"
        );
        let rare = of(&profile(&[("sync", 1, 50), ("write", 100, 50)]));
        assert!(rare.is_empty(), "one sync for many writes is as it should be: {rare:?}");
        assert_eq!(of(&profile(&[("sync", 100, 50), ("write", 100, 50)])).len(), 1);
    }
}
