//! The verdict on a stack: one rule over all losses of all loads.

use layer::StackKind;
use statistics::RUNS_FURTHER;
use units::percent;

use super::hosts::{OnHosts, on_hosts, own_losses};
use super::remedy::{self, Remedy};
use super::rows::{Disturbance, Row, rows};
use super::scaling;
use super::step::{Finding, IDLE, LOSS_FACTOR_MIN, Step, VARIES, further_runs, steps};
use crate::record::{Record, StackVerdict, StackVerdictKind};
use crate::view;
use crate::words::{clean, factor};

/// Part of the rows that others may disturb before nothing is said.
const DISTURBED_PART_MAX: f64 = 0.25;
/// Part of the rows that a quota of processor time must have stopped for it to be the limit.
const QUOTA_PART_MIN: f64 = 0.5;
/// How far below the leading loss a disturbed row may be seen and still be taken for one that may lose more.
const DISTURBED_MARGIN: f64 = 1.5;

/// The verdict, with what to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The part that the record keeps.
    pub found: StackVerdict,
    /// Index of the row that it is about.
    pub row: Option<usize>,
    /// Whether all that keeps it from a conclusion are passes that differ: more of them may settle it.
    pub varies: bool,
    /// Remedies, the most promising first.
    pub remedies: Vec<Remedy>,
}

/// The verdict on the stack of a record, from its rows alone.
///
/// Every row is compared with the slowest that carries it, a drive or a link with memory. Losses are rows of software that are slower by a factor of
/// [`LOSS_FACTOR_MIN`] or more, hardware that the software above it uses up, and rows that several hosts have at less than so many times the rate of one
/// host, unless what carries the row loses as much on that way. The largest factor is the verdict; of those that
/// cannot be told apart from it, the first in the order of the table. Nothing is said where others loaded the machine in more than a quarter of
/// the rows, or where a row of which nothing can be said may lose more, or decides whether hardware that is slower than the leader is used up.
#[must_use]
pub fn verdict(record: &Record) -> Verdict {
    let rows = rows(record);
    let steps = steps(&rows);
    let mut verdict = of_steps(record, &rows, &steps);
    verdict.found.chains = chains(&rows, &steps);
    verdict.found.spent = spent(&rows, &steps, verdict.row);
    verdict
}

/// Where the time of requests goes in the row `named`; else in the one with the largest factor of those whose requests are timed in parts.
fn spent(rows: &[Row<'_>], steps: &[Step], named: Option<usize>) -> Option<String> {
    let told = |at: usize| {
        let phase = rows[at].phase()?;
        let classes = view::of(phase.plan.layer()).spent(phase);
        // The class of most operations stands for all.
        let (_, words) = classes.into_iter().max_by_key(|(class, _)| class.operations)?;
        Some(format!("{}: {words}", place(&rows[at])))
    };
    let mut others: Vec<&Step> = steps.iter().collect();
    others.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    named.and_then(told).or_else(|| others.into_iter().find_map(|step| told(step.row)))
}

fn of_steps(record: &Record, rows: &[Row<'_>], steps: &[Step]) -> Verdict {
    let bare = |found: StackVerdict| Verdict { found, row: None, varies: false, remedies: Vec::new() };
    if steps.is_empty() {
        let sentence = "nothing to compare: no row and a row below it were measured at the same load";
        return bare(nothing(StackVerdictKind::None, sentence));
    }
    if let Some(found) = quota(record, rows) {
        return bare(found);
    }
    if let Some(found) = others(rows) {
        return bare(found);
    }
    let hosts = on_hosts(record, rows);
    let losses = losses(rows, steps, hosts.as_ref());
    let leader = losses.iter().map(|loss| loss.step).max_by(|a, b| a.factor.total_cmp(&b.factor));
    let most = leader.map_or(LOSS_FACTOR_MIN, |leader| leader.factor);
    let from_one = hosts.iter().flat_map(|hosts| hosts.steps.iter().map(|step| (hosts.of[step.row], step)));
    let mut unsure = steps.iter().map(|step| (step.row, step)).chain(from_one);
    if let Some((row, step)) = unsure.find(|(_, step)| may_lose_more(step, most)) {
        return unsure_of(record, step, |why| {
            format!("{} may be the largest loss, but it is inconclusive: {why}", place(&rows[row]))
        });
    }
    if let Some((limit, user)) = unsure_limit(rows, steps, most) {
        let user_is = format!("{} uses all of it", clean(&rows[user.row].row.layer));
        return unsure_of(record, user, |why| {
            format!(
                "{} may be the limit, but it is inconclusive whether {user_is}: {why}",
                place(&rows[limit.row])
            )
        });
    }
    let Some(leader) = leader else {
        let sentence = "no layer is measurably slower than the layer below it";
        return bare(nothing(StackVerdictKind::None, sentence));
    };
    let is_alike = |loss: &&Loss<'_>| {
        holds(loss.step.interval, leader.factor) || holds(leader.interval, loss.step.factor)
    };
    let chosen = losses.iter().find(is_alike);
    if let (Some(loss), Some(hosts)) = (chosen.filter(|loss| loss.is_from_one), &hosts) {
        return scaling::verdict(loss.step, hosts, rows);
    }
    let chosen = chosen.map_or(leader, |loss| loss.step);
    let row = &rows[chosen.row];
    Verdict {
        found: found(chosen, rows, steps),
        row: Some(chosen.row),
        varies: false,
        remedies: remedy::remedies(row, chosen, rows, record),
    }
}

/// `engine at read 4 KiB`.
fn place(row: &Row<'_>) -> String {
    format!("{} at {}", clean(&row.row.layer), clean(&row.row.load))
}

/// The verdict that nothing can be said because of a step that is inconclusive.
fn unsure_of(record: &Record, step: &Step, sentence: impl FnOnce(&str) -> String) -> Verdict {
    let Finding::Inconclusive(word, why) = &step.finding else { unreachable!("it was looked for") };
    let remedies = match *word {
        VARIES => remedy::more_passes(record),
        IDLE => remedy::longer_passes(record),
        _ => None,
    };
    let found = nothing(StackVerdictKind::Inconclusive, &sentence(why));
    Verdict { found, row: None, varies: *word == VARIES, remedies: remedies.into_iter().collect() }
}

/// Hardware that is slower than memory by more than `most` times and would be the limit if the row above it, which is inconclusive, used all of it.
fn unsure_limit<'s>(rows: &[Row<'_>], steps: &'s [Step], most: f64) -> Option<(&'s Step, &'s Step)> {
    let is_limit = |step: &&Step| {
        let is_hardware = rows[step.row].kind == StackKind::Hardware && step.finding == Finding::Loss;
        is_hardware && step.factor > most && !is_ranked(step, rows, steps)
    };
    let user = |limit: &'s Step| {
        let mut above = steps.iter().filter(|other| other.below == limit.row);
        above.find(|other| matches!(other.finding, Finding::Inconclusive(..)))
    };
    steps.iter().filter(is_limit).find_map(|limit| Some((limit, user(limit)?)))
}

/// A loss that takes part in the ranking.
struct Loss<'s> {
    /// Index of its row.
    row: usize,
    step: &'s Step,
    /// Whether it is one on the way from one host to all, and not against what carries the row.
    is_from_one: bool,
}

/// All losses, in the order of their rows.
fn losses<'s>(rows: &[Row<'_>], steps: &'s [Step], hosts: Option<&'s OnHosts<'_>>) -> Vec<Loss<'s>> {
    let ranked = steps.iter().filter(|step| is_ranked(step, rows, steps));
    let mut all: Vec<Loss<'_>> =
        ranked.map(|step| Loss { row: step.row, step, is_from_one: false }).collect();
    if let Some(hosts) = hosts {
        let own = own_losses(hosts, rows).into_iter();
        all.extend(own.map(|step| Loss { row: hosts.of[step.row], step, is_from_one: true }));
    }
    all.sort_by_key(|loss| loss.row);
    all
}

fn holds(interval: Option<(f64, f64)>, factor: f64) -> bool {
    interval.is_some_and(|(low, high)| (low..=high).contains(&factor))
}

fn nothing(kind: StackVerdictKind, sentence: &str) -> StackVerdict {
    StackVerdict {
        kind,
        layer: None,
        load: None,
        below: None,
        hosts: None,
        factor: None,
        low: None,
        high: None,
        prediction_low: None,
        prediction_high: None,
        sentence: sentence.to_owned(),
        chains: Vec::new(),
        spent: None,
    }
}

/// How many rows were measured, those that completed nothing among them: they are disturbed as others are.
fn measured(rows: &[Row<'_>]) -> usize {
    rows.iter().filter(|row| !row.passes.is_empty() || row.idle_s.is_some()).count()
}

/// The verdict that a quota of processor time is the limit, where it stopped most rows.
fn quota(record: &Record, rows: &[Row<'_>]) -> Option<StackVerdict> {
    let measured = measured(rows);
    let stopped = rows.iter().filter(|row| matches!(row.disturbance, Some(Disturbance::Quota(_)))).count();
    if stopped as f64 <= QUOTA_PART_MIN * measured as f64 {
        return None;
    }
    let quota = record.environment.system.cpu_limit_cores;
    let quota = quota.map_or_else(String::new, |cores| format!(" of {cores:.2} CPUs"));
    let sentence = format!(
        "the CPU quota is the limit: the control group's quota{quota} stopped threads in {stopped} of {measured} rows"
    );
    let found = nothing(StackVerdictKind::Limit, &sentence);
    Some(StackVerdict { layer: Some("processor".to_owned()), load: Some("all".to_owned()), ..found })
}

/// The verdict that nothing can be said, where others loaded the machine.
fn others(rows: &[Row<'_>]) -> Option<StackVerdict> {
    let measured = measured(rows);
    let used = rows.iter().filter_map(|row| match row.disturbance {
        Some(Disturbance::Others(cpus)) => Some(cpus),
        _ => None,
    });
    let used: Vec<f64> = used.collect();
    if used.len() as f64 <= DISTURBED_PART_MAX * measured as f64 {
        return None;
    }
    let mean = used.iter().sum::<f64>() / used.len() as f64;
    let sentence = format!(
        "other processes loaded this machine: they used {mean:.2} CPUs in {} of {measured} rows; stop them and run again",
        used.len()
    );
    Some(nothing(StackVerdictKind::Inconclusive, &sentence))
}

/// Whether a row gives all that what carries it gives. One that gives more, for a reason that is known, does.
fn keeps_up(step: &Step) -> bool {
    matches!(step.finding, Finding::Keeps | Finding::Faster)
}

/// Whether a row is a loss: software that is slower, or hardware that what stands on it uses up.
fn is_ranked(step: &Step, rows: &[Row<'_>], steps: &[Step]) -> bool {
    if step.finding != Finding::Loss {
        return false;
    }
    let mut above = steps.iter().filter(|other| other.below == step.row).peekable();
    match rows[step.row].kind {
        StackKind::Hardware => above.peek().is_none() || above.any(keeps_up),
        _ => true,
    }
}

/// Whether nothing can be said of a row, and it may be the one that loses most.
fn may_lose_more(step: &Step, most: f64) -> bool {
    match &step.finding {
        // Nothing says how much slower it is at most.
        Finding::Inconclusive(IDLE, _) if step.interval.is_none() => true,
        Finding::Inconclusive("others" | "quota" | "stalled", _) => step.factor * DISTURBED_MARGIN >= most,
        Finding::Inconclusive(..) => step.interval.map_or(step.factor, |(_, high)| high) >= most,
        _ => false,
    }
}

/// The verdict about the factor of a row among those of all; `sentence` gets the intervals of the factor in words.
pub(super) fn about(
    (row, step): (&Row<'_>, &Step),
    all: &[Step],
    kind: StackVerdictKind,
    sentence: impl FnOnce(&str) -> String,
) -> StackVerdict {
    let further = further_runs(step, all);
    StackVerdict {
        layer: Some(row.row.layer.clone()),
        load: Some(row.row.load.clone()),
        factor: Some(step.factor),
        low: step.interval.map(|(low, _)| low),
        high: step.interval.map(|(_, high)| high),
        prediction_low: further.map(|(low, _)| low),
        prediction_high: further.map(|(_, high)| high),
        ..nothing(kind, &sentence(&intervals(step.interval, further)))
    }
}

/// Both intervals of a factor in words, where there are such: of its true value, and of the values that further runs will find.
fn intervals(of_value: Option<(f64, f64)>, of_runs: Option<(f64, f64)>) -> String {
    let Some((low, high)) = of_value else { return String::new() };
    let runs = of_runs.map_or_else(String::new, |(low, high)| {
        format!("; {RUNS_FURTHER} more runs: {} to {}", factor(low), factor(high))
    });
    format!(" (95% CI {} to {}{runs})", factor(low), factor(high))
}

/// The verdict about one loss.
fn found(step: &Step, rows: &[Row<'_>], steps: &[Step]) -> StackVerdict {
    let (row, below) = (&rows[step.row], &rows[step.below]);
    let (layer, load) = (clean(&row.row.layer), clean(&row.row.load));
    let times = factor(step.factor);
    let found = if row.kind == StackKind::Hardware {
        let above = steps.iter().filter(|other| other.below == step.row && keeps_up(other));
        let best = above.min_by(|a, b| a.factor.total_cmp(&b.factor));
        let used = best.map_or_else(String::new, |best| {
            let part = if best.factor > 1.0 { percent(1.0 / best.factor) } else { "all".to_owned() };
            format!("; {} uses {part} of it", clean(&rows[best.row].row.layer))
        });
        let limited = limit_of(row).map_or_else(String::new, |why| format!(" ({why})"));
        about((row, step), steps, StackVerdictKind::Limit, |interval| {
            format!(
                "{} is the limit at {load}{limited}: {times}x slower than memory{interval}{used}",
                row.called()
            )
        })
    } else {
        about((row, step), steps, StackVerdictKind::Loss, |interval| {
            format!(
                "{layer} is the largest loss, at {load}: {times}x slower than {}{interval}",
                clean(&below.row.layer)
            )
        })
    };
    StackVerdict { below: Some(below.row.layer.clone()), ..found }
}

/// Distances down to the hardware at the loads that are stages of an application: from each row that nothing stands on, a step at a time.
///
/// `vpic restart: app 1.9x under file 1.2x under media; app-object 1.1x under object`. A step that several share is said once.
fn chains(rows: &[Row<'_>], steps: &[Step]) -> Vec<String> {
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    let mut said: Vec<usize> = Vec::new();
    for top in steps {
        let row = rows[top.row].row;
        let is_top =
            rows[top.row].kind != StackKind::Hardware && steps.iter().all(|other| other.below != top.row);
        if row.load_of.is_none() || !is_top {
            continue;
        }
        let mut words = clean(&row.layer).into_owned();
        let mut step = Some(top);
        // A carrier of its own cannot be in a record of strata's, but in one that was edited.
        for _ in 0..rows.len() {
            let is_new =
                |step: &&Step| rows[step.row].kind != StackKind::Hardware && !said.contains(&step.row);
            let Some(here) = step.filter(is_new) else { break };
            said.push(here.row);
            let distance = match &here.finding {
                Finding::Inconclusive(..) => "?".to_owned(),
                Finding::Void(_) => "void".to_owned(),
                _ => format!("{}x", factor(here.factor)),
            };
            words += &format!(" {distance} under {}", clean(&rows[here.below].row.layer));
            step = steps.iter().find(|step| step.row == here.below);
        }
        match lines.iter_mut().find(|(load, _)| *load == row.load) {
            Some((_, chains)) => chains.push(words),
            None => lines.push((&row.load, vec![words])),
        }
    }
    let stage = |load: &str| clean(load.split(',').next().unwrap_or(load)).into_owned();
    lines.into_iter().map(|(load, chains)| format!("{}: {}", stage(load), chains.join("; "))).collect()
}

/// A limit that somebody set on the hardware of a row.
fn limit_of(row: &Row<'_>) -> Option<&'static str> {
    let has =
        |kind: &str| row.passes.iter().any(|(_, phase)| phase.doubts.iter().any(|doubt| doubt.kind == kind));
    has("io_throttled").then_some("limited by a control group's io.max")
}
