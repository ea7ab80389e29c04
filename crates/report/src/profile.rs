//! Where the time of workers went (`--profile`): a table for each group, remedies for expensive calls, and charts.

mod charts;

pub(crate) use charts::charts;

use layer::observations::{GroupProfile, Profile, ProfilePart};
use layer::profile::EXPENSIVE_SHARE_MIN;
use units::human::human_ns;
use units::{clean, count};
use workload::plan::LoadPlan;

use crate::page::{Cell, Page, Style, Table};
use crate::record::PhaseRecord;
use crate::view;

/// A kind of call, and what helps where it takes much of the time.
pub struct ProfileRemedy {
    /// Its class.
    pub part: &'static str,
    /// Told only beside calls of another class, where it has at least so many for each of them: `(that, at least)`.
    pub against: Option<(&'static str, f64)>,
    /// Advice: the words after the share.
    pub text: &'static str,
}

impl ProfileRemedy {
    /// Of object stores and of applications on them.
    pub const OPEN_CONTAINER: Self = Self {
        part: "open-container",
        against: None,
        text: "open the container in one process and pass its handle to the others",
    };
    /// The same.
    pub const LIST: Self =
        Self { part: "list", against: None, text: "list once and keep the result, or look keys up by name" };
}

/// The word of a layer for a worker.
pub struct WorkerNoun {
    /// One: `worker`.
    pub one: &'static str,
    /// Several: `workers`.
    pub several: &'static str,
    /// The head of a column: `a worker`.
    pub each: &'static str,
}

impl WorkerNoun {
    /// That of layers that say nothing else.
    pub const COMMON: Self = Self { one: "worker", several: "workers", each: "a worker" };
}

/// Writes the breakdown of a phase, where it has one.
pub fn block(page: &mut Page, phase: &PhaseRecord) {
    let Some(profile) = &phase.observations.profile else { return };
    let view = view::of(phase.plan.layer());
    for group in &profile.groups {
        breakdown(page, group, &view.worker_noun());
    }
    if profile.groups.iter().any(|group| group.is_shared) {
        page.field("shared", shared_words(phase.plan.load()), Style::Plain);
    }
    for line in expensive(profile, view.profile_remedies(), &|group| phase.plan.works_behind(group)) {
        page.field("expensive", &line, Style::Doubt);
    }
}

/// The same below the name of a phase that has no block of its own.
pub fn titled(page: &mut Page, name: &str, phase: &PhaseRecord) {
    if phase.observations.profile.is_some() {
        page.gap();
        page.line(&clean(name), Style::Strong);
        block(page, phase);
    }
}

/// Why latencies overlap.
fn shared_words(load: &LoadPlan) -> &'static str {
    if load.arrivals.is_some() {
        "latencies count from when calls were due: the time in flight is divided in proportion to them"
    } else {
        "several calls in flight: their time is divided in proportion to their latencies"
    }
}

/// Parts of a group, the largest first.
fn by_share(group: &GroupProfile) -> Vec<&ProfilePart> {
    let mut parts: Vec<&ProfilePart> = group.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.time_ns));
    parts
}

/// Shares in tenths of a percent that add up to 1000: what rounding leaves goes to the parts that lost most by it.
fn tenths(group: &GroupProfile, parts: &[&ProfilePart]) -> Vec<u64> {
    let exact: Vec<f64> = parts.iter().map(|part| group.share_of(part) * 1000.0).collect();
    let mut shares: Vec<u64> = exact.iter().map(|share| *share as u64).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let left = 1000u64.saturating_sub(shares.iter().sum());
    for &at in order.iter().take(left as usize) {
        shares[at] += 1;
    }
    shares
}

/// `writers: 2 processes`; the one group that all workers are in has no name of its own.
fn heading(group: &GroupProfile, noun: &WorkerNoun) -> String {
    let workers = if group.processes == 1 {
        format!("1 {}", noun.one)
    } else {
        format!("{} {}", group.processes, noun.several)
    };
    if group.name == noun.several { workers } else { format!("{}: {workers}", clean(&group.name)) }
}

/// The table of a group.
fn breakdown(page: &mut Page, group: &GroupProfile, noun: &WorkerNoun) {
    let workers = u64::from(group.processes.max(1));
    let wall = human_ns(group.wall_ns as f64 / workers as f64);
    let mut table = Table::new(&["where the time goes", "share", noun.each, "calls", "a call"]);
    table.heading(format!("{}, {wall} each", heading(group, noun)));
    let parts = by_share(group);
    for (part, tenths) in parts.iter().zip(tenths(group, &parts)) {
        let calls = if part.calls == 0 { String::new() } else { count(part.calls) };
        // A share of the time in flight is no latency.
        let each = match part.calls {
            0 => String::new(),
            _ if group.is_shared => String::new(),
            calls => human_ns(part.time_ns as f64 / calls as f64),
        };
        table.row(vec![
            Cell::from(clean(&part.name).into_owned()),
            Cell::from(format!("{}.{} %", tenths / 10, tenths % 10)),
            Cell::from(human_ns(part.time_ns as f64 / workers as f64)),
            Cell::from(calls),
            Cell::from(each),
        ]);
    }
    page.gap();
    page.table(&table);
}

fn line(group: &GroupProfile, remedy: &ProfileRemedy) -> Option<String> {
    let part = group.parts.iter().find(|part| part.name == remedy.part)?;
    let share = group.share_of(part);
    let of = |name: &str| group.parts.iter().find(|part| part.name == name).map_or(0, |part| part.calls);
    // A load of nothing else measures it on purpose.
    let is_often = remedy.against.is_none_or(|(other, least)| {
        let others = of(other);
        others > 0 && part.calls as f64 >= least * others as f64
    });
    (share >= EXPENSIVE_SHARE_MIN && is_often).then(|| {
        format!(
            "{}: {} takes {:.1} % of the time; {}",
            clean(&group.name),
            part.name,
            share * 100.0,
            remedy.text
        )
    })
}

/// One line for each part that is large and has a remedy, the largest share of each group first. Waiting costs nothing in groups that work behind others.
fn expensive(
    profile: &Profile,
    remedies: &[ProfileRemedy],
    works_behind: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    for group in &profile.groups {
        let is_loss = |part: &&ProfilePart| part.name != "wait" || !works_behind(&group.name);
        for part in by_share(group).into_iter().filter(is_loss) {
            let of_part = remedies.iter().filter(|remedy| remedy.part == part.name);
            lines.extend(of_part.filter_map(|remedy| line(group, remedy)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(parts: &[(&str, u64, u64)]) -> GroupProfile {
        let part = |&(name, calls, time_ns): &(&str, u64, u64)| ProfilePart {
            name: name.to_owned(),
            calls,
            time_ns,
        };
        GroupProfile {
            name: "writers".to_owned(),
            processes: 2,
            wall_ns: parts.iter().map(|(.., ns)| ns).sum(),
            is_shared: false,
            parts: parts.iter().map(part).collect(),
        }
    }

    #[test]
    fn shares_add_up_to_a_hundred_percent() {
        let group = group(&[("write", 1, 333), ("sync", 1, 333), ("wait", 1, 334), ("strata", 0, 1)]);
        let parts = by_share(&group);
        assert_eq!(parts[0].name, "wait");
        let shares = tenths(&group, &parts);
        assert_eq!(shares.iter().sum::<u64>(), 1000);
        assert_eq!(shares.last(), Some(&1), "0.1 % is shown");
    }

    #[test]
    fn large_parts_have_remedies_and_small_ones_are_not_told() {
        const REMEDIES: &[ProfileRemedy] = &[
            ProfileRemedy { part: "put", against: None, text: "an index each" },
            ProfileRemedy { part: "stat", against: None, text: "an index with sizes" },
            ProfileRemedy { part: "sync", against: Some(("write", 0.5)), text: "sync once" },
        ];
        let told = |parts: &[(&str, u64, u64)]| {
            expensive(&Profile { groups: vec![group(parts)] }, REMEDIES, &|_| false)
        };
        let lines = told(&[("put", 100, 40), ("write", 100, 58), ("stat", 100, 2)]);
        assert_eq!(lines, ["writers: put takes 40.0 % of the time; an index each"]);
        let rare = told(&[("sync", 1, 50), ("write", 100, 50)]);
        assert!(rare.is_empty(), "one sync for many writes is as it should be: {rare:?}");
        assert_eq!(told(&[("sync", 100, 50), ("write", 100, 50)]).len(), 1);
        assert!(told(&[("sync", 100, 100)]).is_empty(), "a load of syncs alone measures them on purpose");
    }

    #[test]
    fn waiting_is_no_loss_of_those_who_work_behind_others() {
        const WAIT: &[ProfileRemedy] = &[ProfileRemedy { part: "wait", against: None, text: "shift work" }];
        let profile = Profile { groups: vec![group(&[("wait", 9, 90), ("write", 1, 10)])] };
        assert_eq!(expensive(&profile, WAIT, &|_| false).len(), 1);
        assert!(expensive(&profile, WAIT, &|group| group == "writers").is_empty());
    }

    #[test]
    fn the_group_of_all_workers_is_named_by_their_number() {
        let named = |name: &str, processes| GroupProfile {
            name: name.to_owned(),
            processes,
            ..GroupProfile::default()
        };
        assert_eq!(heading(&named("workers", 4), &WorkerNoun::COMMON), "4 workers");
        assert_eq!(heading(&named("workers", 1), &WorkerNoun::COMMON), "1 worker");
        assert_eq!(heading(&named("readers", 3), &WorkerNoun::COMMON), "readers: 3 workers");
    }
}
