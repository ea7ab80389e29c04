//! Rate against latency over a ladder, with the knee.

use statistics::{Knee, LadderShape, LatencySummary};
use workload::spec::LadderDimension;

use super::super::model::{Axis, Chart, Dash, Mark, Point, Scale, Series, Style, Unit};
use super::groups::{rung_label, rung_name};
use super::rate::{axis, is_bandwidth, of_phase};
use super::{Line, Named, warning};
use crate::record::{LadderRecord, PhaseRecord};

/// A figure of the latency, nanoseconds.
type Figure = fn(&LatencySummary) -> Option<u64>;

/// A ladder of one record: its name, its rungs in the order of the climb.
struct Climb<'a> {
    name: &'a str,
    ladder: &'a LadderRecord,
    rungs: Vec<&'a PhaseRecord>,
}

fn climbs<'a>(records: &[Named<'a>]) -> Vec<Climb<'a>> {
    let climb = |named: &Named<'a>| {
        let ladder = named.record.ladder.as_ref()?;
        let rungs: Vec<_> = ladder.phases.iter().filter_map(|at| named.record.phases.get(*at)).collect();
        (!rungs.is_empty()).then_some(Climb { name: named.name, ladder, rungs })
    };
    records.iter().filter_map(climb).collect()
}

/// The ladders of all records in one chart; none when there is none.
pub(super) fn chart(records: &[Named<'_>]) -> Option<Chart> {
    let climbs = climbs(records);
    let is_bandwidth = is_bandwidth(climbs.iter().flat_map(|climb| climb.rungs.iter().copied()));
    let latency = Axis::new("latency", Unit::Nanoseconds, Scale::Log);
    let mut chart = Chart::new("Ladder: latency against rate", axis(is_bandwidth), latency);
    let figures: [(&str, Dash, Figure); 2] = [
        ("p50", Dash::Solid, |latency| Some(latency.p50_ns)),
        ("p99", Dash::Dashed, |latency| latency.p99_ns),
    ];
    let mut notes = Vec::new();
    for (number, climb) in climbs.iter().enumerate() {
        for (at, (name, dash, figure)) in figures.iter().enumerate() {
            let is_alone = climbs.len() == 1;
            let name = if is_alone { (*name).to_owned() } else { format!("{}: {name}", climb.name) };
            let colour = if is_alone { at } else { number };
            let points = climb.rungs.iter().map(|phase| {
                let ns =
                    phase.summary.total.latency.as_ref().and_then(figure).map_or(f64::NAN, |ns| ns as f64);
                let label = (at == 0).then(|| rung_label(climb.ladder, phase));
                Point { label, ..Point::new(of_phase(phase, is_bandwidth), ns) }
            });
            let series = Series::new(name, Style::Points, colour, points.collect());
            chart.series.push(Series { dash: *dash, ..series });
        }
        let name = if climbs.len() > 1 { format!("{}: ", climb.name) } else { String::new() };
        let knee = climb.ladder.knee.as_ref();
        chart.marks.extend(knee.and_then(|knee| mark(climb, knee, is_bandwidth)));
        let said = knee.map_or_else(String::new, |knee| format!("; {}", told(knee)));
        notes.push(format!("{name}{}{said}", points_are(climb)));
    }
    chart.note = notes.join(". ");
    let lines: Vec<Line<'_>> = climbs
        .iter()
        .flat_map(|climb| climb.rungs.iter().map(|phase| Line::new(rung_name(climb.ladder, phase), phase)))
        .collect();
    chart.warning = warning(&lines);
    (!climbs.is_empty()).then_some(chart)
}

/// Meaning of the labels of the points.
fn points_are(climb: &Climb<'_>) -> String {
    let Some(terms) = climb.rungs.first().map(|phase| phase.plan.terms()) else { return String::new() };
    let are = match climb.ladder.dimension {
        Some(LadderDimension::Depth) => terms.depth_points,
        Some(LadderDimension::Threads) => "numbers of threads",
        Some(LadderDimension::BlockSize) => terms.size_points,
        Some(LadderDimension::Rate) => "requested rates",
        None => return format!("points are threads x {}", terms.depth),
    };
    format!("points are {are}")
}

fn is_found(knee: &Knee) -> bool {
    matches!(knee.shape, LadderShape::Plateau | LadderShape::FallsAfterPeak)
}

/// Points the knee out where the ladder has one.
fn mark(climb: &Climb<'_>, knee: &Knee, is_bandwidth: bool) -> Option<Mark> {
    let is_knee =
        |phase: &&&PhaseRecord| phase.summary.total.operations_per_second == knee.operations_per_second;
    let phase = climb.rungs.iter().find(is_knee).filter(|_| is_found(knee))?;
    Some(Mark {
        x: of_phase(phase, is_bandwidth),
        y: knee.latency_ns_p50 as f64,
        label: format!("knee: {}", rung_name(climb.ladder, phase)),
    })
}

/// Findings of the ladder, in words.
fn told(knee: &Knee) -> String {
    match knee.shape {
        LadderShape::Plateau | LadderShape::FallsAfterPeak => format!(
            "knee at {} in flight: {}/s, p50 {}{}",
            knee.concurrency,
            units::human_rate(knee.operations_per_second),
            units::human_ns(knee.latency_ns_p50 as f64),
            knee.latency_ns_p99
                .map_or_else(String::new, |ns| format!(", p99 {}", units::human_ns(ns as f64)))
        ),
        LadderShape::StillClimbing => "no knee: the rate still climbs at the last rung".to_owned(),
        LadderShape::FlatFromStart => "no knee: the first rung already reaches the highest rate".to_owned(),
        LadderShape::SinglePoint => "no knee: the ladder has only one rung".to_owned(),
    }
}
