//! Events of a phase, for the lanes below its charts over time.

use statistics::IntervalPoint;
use units::human_ns;

use super::rate::stalls;
use crate::chart::model::{Band, Lane};
use crate::record::{PhaseRecord, TimelinePoint};
use crate::words::{counted, processors};

/// CPUs that programs of others use in a part of a phase from which on it is an event: the kernel's ticks alone make a tenth.
const OTHERS_CPUS_MIN: f64 = 0.25;
/// Share of the intervals with syncs from which on they are no events, but a part of the load.
const SYNC_SHARE_MAX: f64 = 0.5;
/// Classes of operations that make data durable.
const SYNCS: &[&str] = &["sync", "fsync", "syncfs"];

/// Events of a kind that a phase has.
type Find = fn(&PhaseRecord) -> Vec<Band>;

/// Kinds of events: the name of the lane, its colour, and how they are found.
const KINDS: &[(&str, usize, Find)] = &[
    ("stalls", 5, of_stalls),
    ("syncs", 2, of_syncs),
    ("others", 1, of_others),
    ("resent", 3, of_retransmits),
];

/// A lane for each kind of event that the phase has.
pub(super) fn lanes(phase: &PhaseRecord) -> Vec<Lane> {
    let lane = |(name, colour, find): &(&str, usize, Find)| {
        let events = find(phase);
        (!events.is_empty()).then(|| Lane { name: (*name).to_owned(), colour: *colour, events })
    };
    KINDS.iter().filter_map(lane).collect()
}

fn band(from_ns: u64, to_ns: u64, label: String) -> Band {
    Band { from: from_ns as f64 / 1e9, to: to_ns as f64 / 1e9, label }
}

fn of_stalls(phase: &PhaseRecord) -> Vec<Band> {
    let told = |(from, to): (u64, u64)| {
        band(from, to, format!("stall: nothing completed for {}", human_ns((to - from) as f64)))
    };
    stalls(phase).into_iter().map(told).collect()
}

/// Intervals in which data were made durable, where that is rare.
fn of_syncs(phase: &PhaseRecord) -> Vec<Band> {
    let classes = phase.samples.classes.iter().enumerate();
    let syncs: Vec<usize> =
        classes.filter(|(_, class)| SYNCS.contains(&class.as_str())).map(|(at, _)| at).collect();
    let count = |point: &IntervalPoint| -> u64 {
        syncs.iter().filter_map(|at| point.classes.get(*at)).map(|class| class.operations).sum()
    };
    let points = &phase.samples.series.points;
    let found: Vec<&IntervalPoint> = points.iter().filter(|point| count(point) > 0).collect();
    // A load of syncs alone, or one that syncs all the time, has no such events.
    if found.len() as f64 > SYNC_SHARE_MAX * points.len() as f64 {
        return Vec::new();
    }
    let told = |point: &IntervalPoint| {
        band(point.start_ns, point.end_ns, format!("made durable: {}", counted(count(point), "sync")))
    };
    found.into_iter().map(told).collect()
}

fn of_others(phase: &PhaseRecord) -> Vec<Band> {
    let told = |point: &TimelinePoint| {
        let used = point.other_cpus_user.filter(|used| *used >= OTHERS_CPUS_MIN)?;
        Some(band(point.start_ns, point.end_ns, format!("other processes used {}", processors(used))))
    };
    phase.observations.timeline.iter().filter_map(told).collect()
}

fn of_retransmits(phase: &PhaseRecord) -> Vec<Band> {
    let told = |point: &TimelinePoint| {
        let again = point.tcp_retransmitted_segments.filter(|again| *again > 0)?;
        let words = format!("this machine retransmitted {}", counted(again, "TCP segment"));
        Some(band(point.start_ns, point.end_ns, words))
    };
    phase.observations.timeline.iter().filter_map(told).collect()
}
