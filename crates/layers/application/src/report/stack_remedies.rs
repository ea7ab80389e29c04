//! Remedies for an application that is slower than what carries it: where the time of its calls goes.

use report::record::PhaseRecord;
use report::stack::{Remedy, RemedyCase};
use units::clean;

use crate::operation::AppClass;
use crate::plan::AppPlan;

/// Part of the time in calls from which on one kind of call is worth a remedy.
const SHARE_MIN: f64 = 0.2;

/// Remedies, the most promising first. All are for the user: they are changes of the application.
pub(super) fn remedies(case: &RemedyCase<'_>) -> Vec<Remedy> {
    let shares = shares(case.phase).into_iter().filter(|(_, share)| *share >= SHARE_MIN);
    let mut found: Vec<Remedy> = shares.filter_map(|(class, share)| remedy(&class, share)).collect();
    if let Some(plan) = case.phase.plan.of::<AppPlan>() {
        let app = clean(&plan.application);
        let line = format!("use larger transfers, or more processes: parameters of {app} (--app-set)");
        found.push(Remedy::told(line));
    }
    found
}

/// Kinds of calls with their parts of the time in calls, the largest first.
fn shares(phase: &PhaseRecord) -> Vec<(String, f64)> {
    let is_idle = |class: &str| [AppClass::Compute.name(), AppClass::Wait.name()].contains(&class);
    let mut sums: Vec<(String, u128)> = Vec::new();
    for class in phase.samples.workers.iter().flat_map(|worker| &worker.classes) {
        match sums.iter_mut().find(|(known, _)| *known == class.class) {
            _ if is_idle(&class.class) => {}
            Some((_, sum)) => *sum += class.latency.sum_ns(),
            None => sums.push((class.class.clone(), class.latency.sum_ns())),
        }
    }
    let all = sums.iter().map(|(_, sum)| sum).sum::<u128>().max(1);
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums.into_iter().map(|(class, sum)| (class, sum as f64 / all as f64)).collect()
}

/// The remedy for a kind of call that is not the transfer itself.
fn remedy(class: &str, share: f64) -> Option<Remedy> {
    let what = match class {
        "sync" | "commit" => "use more data per call, or fewer calls",
        "create" | "open" | "close" | "rename" | "remove" | "stat" => "use fewer and larger files or objects",
        "put" | "get" | "list" => "use fewer index entries, or one entry for several items",
        _ => return None,
    };
    Some(Remedy::told(format!("{:.0} % of the time in calls is {class}: {what}", 100.0 * share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_around_the_data_have_remedies_and_transfers_have_none() {
        assert!(remedy("sync", 0.616).unwrap().line.starts_with("62 % of the time in calls is sync"));
        assert!(remedy("create", 0.3).unwrap().line.ends_with("use fewer and larger files or objects"));
        assert_eq!(remedy("write", 0.9), None);
        assert_eq!(remedy("read", 0.9), None);
    }
}
