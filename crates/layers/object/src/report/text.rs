//! Fields of a phase of the object layer besides its classes.

use std::collections::BTreeMap;

use report::page::{Page, Style};
use report::record::PhaseRecord;
use units::human::human_bytes;
use units::{clean, count, rate};

use super::words::{data, place, store};
use crate::plan::ObjectPlan;

/// Where the data lies, and what it is.
pub(super) fn places_of(page: &mut Page, plan: &ObjectPlan) {
    page.field("on", &place(plan), Style::Plain);
    page.field("data", &data(plan), Style::Plain);
}

/// Facts that the store reports, and counters of its driver.
pub(super) fn detail(page: &mut Page, phase: &PhaseRecord, plan: &ObjectPlan) {
    if !plan.sequence.is_empty() {
        let per_record = phase.summary.total.operations_per_second / plan.sequence.len() as f64;
        let text = format!("{} with {} operations each", rate(per_record), plan.sequence.len());
        page.field("records", &text, Style::Strong);
    }
    if let Some(seen) = &phase.observations.store {
        page.field("store", &store(seen), Style::Plain);
    }
    let mut tallies: BTreeMap<&str, f64> = BTreeMap::new();
    let all = phase.samples.workers.iter().flat_map(|worker| &worker.tallies);
    // The line about where the time goes has it, and a sum over workers says nothing.
    for tally in all.filter(|tally| tally.name != "tcp_round_trip_min_ns") {
        *tallies.entry(&tally.name).or_default() += tally.value;
    }
    let counted = tallies.iter().filter(|(_, value)| **value > 0.0);
    let words: Vec<String> = counted
        .map(|(name, value)| match name.strip_suffix("_bytes") {
            Some(what) => format!("{} {}", clean(&what.replace('_', " ")), human_bytes(*value)),
            None => format!("{} {}", clean(&name.replace('_', " ")), count(*value as u64)),
        })
        .collect();
    if !words.is_empty() {
        page.field("counted", &words.join(", "), Style::Plain);
    }
}
