//! The jobs of a group together: the lines under `Run status`, and what shares of bandwidth are taken of.

use super::entry::{Entry, WAYS, Way};
use super::number::{milliseconds, per_second};

/// One direction of a group.
#[derive(Clone, Copy)]
pub(super) struct Total {
    pub(super) bytes: u64,
    /// All bytes over the longest time.
    pub(super) bytes_per_second: u64,
    /// Slowest and fastest entry.
    pub(super) slowest: u64,
    pub(super) fastest: u64,
    /// Shortest and longest time, milliseconds.
    pub(super) shortest_ms: u64,
    pub(super) longest_ms: u64,
}

/// A group.
pub(super) struct Group {
    pub(super) number: usize,
    pub(super) is_binary: bool,
    pub(super) unit_base: u32,
    /// By direction, and of all as one; none where nothing was done or it is not shown.
    pub(super) totals: [Option<Total>; WAYS.len()],
}

/// The groups of these entries, ascending.
pub(super) fn groups(entries: &[Entry<'_>]) -> Vec<Group> {
    let mut numbers: Vec<_> = entries.iter().map(|entry| entry.job.group).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let group = |number| {
        let members: Vec<_> = entries.iter().filter(|entry| entry.job.group == number).collect();
        Group {
            number,
            is_binary: members[0].job.kb_base == 1024,
            unit_base: members[0].job.unit_base,
            totals: std::array::from_fn(|direction| {
                let shown = members.iter().flat_map(|entry| entry.shown());
                let ways: Vec<_> = shown.filter(|(at, _)| *at == direction).map(|(_, way)| way).collect();
                total(&ways)
            }),
        }
    };
    numbers.into_iter().map(group).collect()
}

fn total(ways: &[&Way]) -> Option<Total> {
    let used = || ways.iter().filter(|way| way.operations > 0);
    let bytes = used().map(|way| way.bytes).sum();
    let longest_ns = used().map(|way| way.elapsed_ns).max()?;
    Some(Total {
        bytes,
        bytes_per_second: per_second(bytes, longest_ns) as u64,
        slowest: used().map(|way| way.bytes_per_second()).min()?,
        fastest: used().map(|way| way.bytes_per_second()).max()?,
        shortest_ms: milliseconds(used().map(|way| way.elapsed_ns).min()?),
        longest_ms: milliseconds(longest_ns),
    })
}

/// The group of an entry.
pub(super) fn group_of<'g>(groups: &'g [Group], entry: &Entry<'_>) -> Option<&'g Group> {
    groups.iter().find(|group| group.number == entry.job.group)
}

/// Mean bandwidth of an entry in percent of its group's.
pub(super) fn share_of_group(group: Option<&Group>, direction: usize, bytes_per_second: f64) -> f64 {
    let total = group.and_then(|group| group.totals[direction]).map_or(0, |total| total.bytes_per_second);
    super::number::percent_of(bytes_per_second, total as f64)
}
