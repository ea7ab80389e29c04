//! The ranks of a group, and the attach-info file that says where they are: `DIR/GROUP.attach_info_tmp`.
//!
//! ```text
//! name daos_server
//! size 2
//! all
//! 0 tcp://127.0.0.1:31416 control=127.0.0.1:31417 tags=22 targets=16 helpers=4 pid=4711 provider=tcp
//! 1 tcp://127.0.0.1:31418 ...
//! ```
//!
//! The name, the first lines and the two first words of a rank's line are CaRT's, whose own files are read as well.

mod file;
mod publish;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use driver::Error;

use crate::EndpointPlan;
use crate::tags::TagMap;
pub use file::{attach_info_dir, attach_info_path};
pub use publish::{Publication, publish};
pub use text::{GroupFile, parse, print};

/// Name of a group that has none of its own: that of DAOS.
pub const GROUP_DEFAULT: &str = "daos_server";
/// Longest name of a group, in bytes.
pub const GROUP_NAME_BYTES_MAX: usize = 64;

/// Entry of a rank in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    /// Where it is: `tcp://127.0.0.1:31416`.
    pub uri: String,
    /// Where it is told what to do, `host:port`; none for engines that are not ours.
    pub control: Option<String>,
    /// Number of its tags.
    pub tags: Option<u32>,
    /// Number of its targets.
    pub targets: Option<u32>,
    /// Number of its helpers.
    pub helpers: Option<u32>,
    /// Its process.
    pub pid: Option<u32>,
    /// How it is reached: `tcp`, `ofi+shm`.
    pub provider: Option<String>,
    /// Keys that this version does not know, and their values.
    pub others: Vec<(String, String)>,
}

/// A group as its file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its ranks.
    pub ranks: BTreeMap<u32, Rank>,
}

impl Group {
    /// Entry of `rank` in the file.
    ///
    /// # Errors
    /// When the group has no such rank.
    pub fn rank(&self, rank: u32) -> Result<&Rank, Error> {
        self.ranks.get(&rank).ok_or_else(|| {
            Error::usage("group", format!("rank {rank} does not exist in group {}", self.name))
                .with("path", self.path.display())
                .remedy(format!("its ranks are {}", ranges(self.ranks.keys().copied())))
        })
    }

    /// The endpoint `rank:tag`.
    ///
    /// # Errors
    /// When the group has no such rank, or the rank no such tag. Files that are not ours say nothing about tags.
    pub fn endpoint(&self, rank: u32, tag: u32) -> Result<EndpointPlan, Error> {
        let entry = self.rank(rank)?;
        if let Some(tags) = entry.tags.filter(|&tags| tag >= tags) {
            let map = TagMap::new(entry.targets.unwrap_or(0), entry.helpers.unwrap_or(0)).ok();
            let has = match map.filter(|map| map.tags() == tags) {
                Some(map) => map.to_string(),
                None => format!("{tags} tags: 0-{}", tags.saturating_sub(1)),
            };
            return Err(Error::usage(
                "group",
                format!("rank {rank} of group {} has no tag {tag}", self.name),
            )
            .with("path", self.path.display())
            .remedy(format!("it has {has}")));
        }
        Ok(EndpointPlan { rank, tag, uri: entry.uri.clone(), label: format!("{rank}:{tag}") })
    }
}

/// Finds a group by its file in `dir`, else in `$CRT_ATTACH_INFO_PATH`, else in `/tmp`.
///
/// # Errors
/// When there is no such file, when somebody else may have planted it, or when a line of it is none.
pub fn lookup(dir: Option<&Path>, group: &str) -> Result<Group, Error> {
    check_name(group)?;
    let path = attach_info_path(&attach_info_dir(dir), group);
    let Some(text) = file::read(&path)? else {
        let dir = path.parent().unwrap_or(Path::new("/tmp")).display();
        return Err(Error::usage("group", format!("group {group} does not exist"))
            .with("path", path.display())
            .remedy(format!("start engines with strata engine --group {group} --path {dir}")));
    };
    let file = parse(&text).map_err(|error| error.with("path", path.display()))?;
    if file.ranks.is_empty() {
        return Err(Error::usage("group", format!("group {group} has no ranks")).with("path", path.display()));
    }
    Ok(Group { name: group.to_owned(), path, ranks: file.ranks })
}

/// A group's name is part of a file's name.
pub(crate) fn check_name(group: &str) -> Result<(), Error> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !group.is_empty()
        && group.len() <= GROUP_NAME_BYTES_MAX
        && !group.starts_with('.')
        && group.chars().all(good)
    {
        return Ok(());
    }
    Err(Error::usage("group", format!("{group:?} is not a valid group name")).remedy(format!(
        "accepted: 1-{GROUP_NAME_BYTES_MAX} letters, digits, _, - and ., not starting with ."
    )))
}

/// `0-2, 5`.
fn ranges(ranks: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let show = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(show).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_found_or_refused_with_what_there_is() {
        let entry = Rank {
            uri: "tcp://127.0.0.1:5".to_owned(),
            tags: Some(6),
            targets: Some(3),
            helpers: Some(1),
            ..Rank::default()
        };
        let foreign = Rank { uri: "ofi+tcp://10.0.0.1:1".to_owned(), ..Rank::default() };
        let ranks = [(0, entry.clone()), (1, entry), (4, foreign)].into();
        let group = Group { name: "g".to_owned(), path: PathBuf::from("/x"), ranks };
        let endpoint = group.endpoint(1, 5).expect("an endpoint");
        assert_eq!((endpoint.label.as_str(), endpoint.uri.as_str()), ("1:5", "tcp://127.0.0.1:5"));
        assert!(group.endpoint(4, 99).is_ok());
        let text = |rank, tag| group.endpoint(rank, tag).expect_err("none").to_string();
        assert_eq!(text(2, 0), "group: rank 2 does not exist in group g (path=/x); its ranks are 0-1, 4");
        assert!(
            text(0, 6).ends_with("6 tags: 0 metadata, 1 monitoring, 2-4 targets, 5 helper"),
            "{}",
            text(0, 6)
        );
    }

    #[test]
    fn names_of_groups_stay_in_their_directory() {
        for name in ["daos_server", "a", "A-1.b"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "../x", "a/b", "a b", "a\n", "é", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
