//! Searches for the most accelerators that a storage feeds: each number that was tried, and the answer.

use layer::observations::{AcceleratorSearch, Utilisation};
use report::page::{Cell, Page, Style, Table};
use report::record::{PhaseRecord, Record};
use units::clean;
use units::human::human_bytes;

use crate::feeding::interval;

/// Utilisation and search of a phase that is a run of one.
fn run_of(phase: &PhaseRecord) -> Option<(&Utilisation, &AcceleratorSearch)> {
    let seen = phase.observations.utilisation.as_ref()?;
    Some((seen, seen.search.as_ref()?))
}

/// Phases that are runs of searches and did not fail.
pub(super) fn phases(record: &Record) -> Vec<usize> {
    let is_run = |phase: &PhaseRecord| run_of(phase).is_some() && phase.failure.is_none();
    (0..record.phases.len()).filter(|at| is_run(&record.phases[*at])).collect()
}

/// Writes the searches: the last run of each has all of it.
pub(super) fn block(page: &mut Page, record: &Record) {
    let runs: Vec<(&Utilisation, &AcceleratorSearch)> = record.phases.iter().filter_map(run_of).collect();
    let count = |search: &AcceleratorSearch| search.tries.iter().map(|one| one.runs).sum::<u32>();
    for (at, (seen, search)) in runs.iter().enumerate() {
        // The next search begins with one run again.
        if runs.get(at + 1).is_none_or(|(_, next)| count(next) <= count(search)) {
            let rates = |accelerators: u64| {
                runs[..=at]
                    .iter()
                    .rev()
                    .find(|(run, _)| u64::from(run.accelerators) == accelerators)
                    .map(|(run, _)| *run)
            };
            table(page, search, seen.limit_fraction, rates);
            answer(page, search);
        }
    }
}

fn table<'a>(
    page: &mut Page,
    search: &AcceleratorSearch,
    limit: f64,
    run_of: impl Fn(u64) -> Option<&'a Utilisation>,
) {
    let mut table =
        Table::new(&["accelerators", "utilisation", "95 % CI", "runs", "samples/s", "throughput", "verdict"]);
    table.heading(format!("accelerators that this storage feeds at {:.1} % utilisation", limit * 100.0));
    for one in &search.tries {
        let verdict = match (one.is_met, one.is_near) {
            (true, false) => Cell::from("passes"),
            (false, false) => Cell::from("below"),
            (true, true) => Cell::styled("passes, within noise", Style::Doubt),
            (false, true) => Cell::styled("below, within noise", Style::Doubt),
        };
        let run = run_of(one.accelerators);
        table.row(vec![
            Cell::from(one.accelerators.to_string()),
            Cell::from(format!("{:.1} %", one.fraction * 100.0)),
            Cell::from(interval(one).unwrap_or_default()),
            Cell::from(one.runs.to_string()),
            Cell::from(run.map_or(String::new(), |run| format!("{:.1}", run.samples_per_second))),
            Cell::from(run.map_or(String::new(), |run| format!("{}/s", human_bytes(run.bytes_per_second)))),
            verdict,
        ]);
    }
    page.table(&table);
}

/// The answer and how sure it is.
fn answer(page: &mut Page, search: &AcceleratorSearch) {
    let Some(ended) = &search.ended else {
        page.field("feeds", &format!("at least {}: the search did not finish", search.most), Style::Doubt);
        return;
    };
    let is_limit = search.tries.iter().any(|one| !one.is_met);
    let most = if is_limit { search.most.to_string() } else { format!("at least {}", search.most) };
    page.field("feeds", &format!("{most} ({})", clean(ended)), Style::Plain);
    let high = search.surely_not_fed.map(|missed| missed.saturating_sub(1));
    let is_sure = search.surely_fed == search.most && (!is_limit || high == Some(search.most));
    if is_sure {
        page.field("sure", "yes: no neighbouring number is within noise of the limit", Style::Plain);
        return;
    }
    let range = match high {
        Some(high) => format!("{} to {high}", search.surely_fed),
        None => format!("{} or more", search.surely_fed),
    };
    let text = format!("no: {range}; numbers within noise of the limit can change between runs");
    page.field("sure", &text, Style::Doubt);
}
