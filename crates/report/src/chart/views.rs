//! The charts of records: which phases share one, and what each shows.

mod events;
mod groups;
mod ladder;
mod latency;
mod rate;

use statistics::{Histogram, IntervalPoint};

use super::model::{Chart, Dash};
use super::scene::PALETTE_LEN;
use crate::record::{PhaseRecord, Record};
use crate::view;
use crate::words::{clean, load};

pub(crate) use groups::rung_name;
use groups::{Kind, groups};

/// A record and what it is called in legends.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    /// Its name.
    pub name: &'a str,
    /// The record.
    pub record: &'a Record,
}

/// A chart with a name for its file.
#[derive(Clone, Debug)]
pub struct NamedChart {
    /// Lower-case letters, digits and hyphens; no two charts of a call have the same.
    pub file_stem: String,
    /// Section of the chart: charts that follow each other with the same section belong to one.
    pub section: String,
    /// The chart.
    pub chart: Chart,
}

/// One line of a chart: a phase and its name there.
struct Line<'a> {
    name: String,
    phase: &'a PhaseRecord,
    /// How long after the start of the chart's time it began.
    begins_ns: u64,
    /// Its rate over all passes, and its number among the layers of its stack.
    of_stack: Option<OfStack<'a>>,
}

/// A row of a stack in its charts.
struct OfStack<'a> {
    /// Mean rate of its passes, bytes or operations a second.
    speed: f64,
    /// 95 % interval of the mean; none of a single pass.
    interval: Option<(f64, f64)>,
    /// Whether the rate is in bytes.
    in_bytes: bool,
    /// Number of its layer, which is the number of its colour in all charts.
    layer: usize,
    /// Kinds of warnings that state what it measures on purpose.
    by_design: &'a [String],
}

impl<'a> Line<'a> {
    fn new(name: String, phase: &'a PhaseRecord) -> Self {
        Self { name, phase, begins_ns: 0, of_stack: None }
    }

    /// Number of its colour, if it is line number `at` of its chart.
    fn colour(&self, at: usize) -> usize {
        self.of_stack.as_ref().map_or(at, |row| row.layer)
    }

    /// A time of the phase on the chart's axis.
    fn seconds(&self, ns: f64) -> f64 {
        (self.begins_ns as f64 + ns) / 1e9
    }
}

/// Every chart of these records.
///
/// Phases with the same layer and name share their charts across records, in the order in which they ran. The rungs of a ladder share
/// theirs, and so do the layers of `strata stack` at one load. Phases that ran at the same time also have charts together.
#[must_use]
pub fn charts(records: &[Named<'_>]) -> Vec<NamedChart> {
    let mut made = Vec::new();
    let ladder = ladder::chart(records);
    made.extend(ladder.map(|chart| ("ladder".to_owned(), "Ladder".to_owned(), chart)));
    records.iter().for_each(|named| made.extend(overviews(named, records.len() > 1)));
    for group in groups(records) {
        let slug = slug(&group.title);
        let mut push = |kind: &str, chart: Option<Chart>| {
            let warning = group.warning();
            made.extend(
                chart
                    .map(|chart| (format!("{slug}-{kind}"), group.title.clone(), Chart { warning, ..chart })),
            );
        };
        if group.kind == Kind::Stack {
            push("waterfall", rate::waterfall(&group));
        }
        if group.kind != Kind::Stack {
            push("rate", rate::over_time(&group));
        }
        if matches!(group.kind, Kind::Phase | Kind::Together | Kind::Beside) {
            push("latency", latency::over_time(&group));
        }
        if group.kind == Kind::Phase {
            push("latencies", latency::heat(&group));
        }
        if group.kind == Kind::Phase {
            push("histogram", latency::histogram(&group));
        }
        push("percentiles", latency::percentiles(&group));
        for (kind, chart) in own(&group) {
            push(kind, Some(chart));
        }
    }
    let digits = made.len().to_string().len();
    made.into_iter()
        .enumerate()
        .map(|(at, (stem, section, chart))| NamedChart {
            file_stem: format!("{:0digits$}-{stem}", at + 1),
            section,
            chart,
        })
        .collect()
}

/// Charts of phases that a layer shows together.
fn overviews(named: &Named<'_>, several: bool) -> Vec<(String, String, Chart)> {
    let mut made = Vec::new();
    for view in view::all() {
        let phases = view.together(named.record).into_iter().filter_map(|at| named.record.phases.get(at));
        let lines: Vec<Line<'_>> = phases.map(|phase| Line::new(phase.plan.name().clone(), phase)).collect();
        for (kind, mut chart) in view.overview_charts(named.record) {
            chart.warning = warning(&lines);
            if several {
                chart.title = format!("{}: {}", named.name, chart.title);
            }
            made.push((kind.to_owned(), chart.title.clone(), chart));
        }
    }
    made
}

/// Charts of the phases of a group one by one: those of their layers, and where the time went.
fn own(group: &groups::Group<'_>) -> Vec<(&'static str, Chart)> {
    let mut made = Vec::new();
    let is_alone = matches!(group.kind, Kind::Phase | Kind::Beside);
    for line in group.lines.iter().filter(|_| is_alone || group.kind == Kind::Ladder) {
        let title = match line.name.as_str() {
            "" => group.title.clone(),
            name => format!("{}: {name}", group.title),
        };
        let view = view::of(line.phase.plan.layer());
        let charts = if is_alone { view.charts(line.phase, &title) } else { Vec::new() };
        let charts = charts.into_iter().chain(crate::profile::charts(line.phase, &title));
        made.extend(charts.into_iter().map(|(kind, chart)| {
            (kind, Chart { note: format!("{}. {}", group.note(), chart.note), ..chart })
        }));
    }
    made
}

/// A name as a part of a file's name.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(60) {
        match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() => slug.push(letter),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "phase".to_owned() } else { slug.to_owned() }
}

/// Description of the measured load: `4KiB random reads, 4 threads x depth 32, io_uring, direct`.
fn described(phase: &PhaseRecord) -> String {
    format!("{}, {}", phase.plan.operation_words(), load(&phase.plan))
}

/// Description of the load that all lines share; the rest is told by their names, or listed where `each` asks for it.
fn note(lines: &[Line<'_>], each: bool) -> String {
    let all: Vec<String> = lines.iter().map(|line| described(line.phase)).collect();
    let parts = |text: &str| text.split(", ").map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = all.iter().map(|text| parts(text)).collect();
    let is_common = |part: &String| all.iter().all(|other| other.contains(part));
    let first = all.first().map_or(&[][..], Vec::as_slice);
    let mut told = vec![first.iter().filter(|part| is_common(part)).cloned().collect::<Vec<_>>().join(", ")];
    for (line, parts) in lines.iter().zip(&all).filter(|_| each) {
        let own: Vec<&str> = parts.iter().filter(|part| !is_common(part)).map(String::as_str).collect();
        if !own.is_empty() {
            told.push(format!("{}: {}", line.name, own.join(", ")));
        }
    }
    told.retain(|part| !part.is_empty());
    told.join("; ")
}

/// Most lines that a warning names.
const NAMES_MAX: usize = 3;

/// Doubts and failures of the lines, each kind once; empty when there are none.
fn warning(lines: &[Line<'_>]) -> String {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for line in lines {
        let by_design = line.of_stack.as_ref().map_or(&[][..], |row| row.by_design);
        let doubts = line.phase.doubts.iter().filter(|doubt| !by_design.contains(&doubt.kind));
        let doubts = doubts.map(|doubt| clean(&doubt.kind).replace('_', " "));
        for kind in
            doubts.chain(line.phase.failure.iter().map(|failure| format!("failed: {}", clean(failure))))
        {
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, names)) => names.push(&line.name),
                None => kinds.push((kind, vec![&line.name])),
            }
        }
    }
    let told = kinds.into_iter().map(|(kind, mut names)| {
        let is_everywhere = names.len() == lines.len();
        names.dedup();
        (kind, names, is_everywhere)
    });
    let told = told.map(|(kind, names, is_everywhere)| match names.len() {
        _ if is_everywhere => kind,
        count if count > NAMES_MAX => {
            format!("{kind} ({} and {} more)", names[..NAMES_MAX].join(", "), count - NAMES_MAX)
        }
        _ => format!("{kind} ({})", names.join(", ")),
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { String::new() } else { format!("Warnings: {}", told.join("; ")) }
}

/// The stroke of a line by its number: colours that come round again differ in their strokes.
fn dash_of(number: usize) -> Dash {
    [Dash::Solid, Dash::Dashed, Dash::Dotted][number / PALETTE_LEN % 3]
}

/// Latencies of all classes together within the window that the figures of the phase come from.
fn window_latency(phase: &PhaseRecord) -> Histogram {
    let (samples, summary) = (&phase.samples, &phase.summary);
    let mut histogram = Histogram::new();
    // The workers' own totals are exact where the window is all of the phase.
    if summary.total.window_operations == summary.total.operations {
        let classes = samples.workers.iter().flat_map(|worker| &worker.classes);
        classes.for_each(|class| histogram.merge_sparse(&class.latency));
        return histogram;
    }
    let is_within = |start_ns, end_ns| summary.window_start_ns <= start_ns && end_ns <= summary.window_end_ns;
    for point in samples.series.points.iter().filter(|point| is_within(point.start_ns, point.end_ns)) {
        merge(point, &mut histogram);
    }
    histogram
}

/// Adds the latencies of all classes of an interval.
fn merge(point: &IntervalPoint, histogram: &mut Histogram) {
    point.classes.iter().for_each(|class| histogram.merge_sparse(&class.latency));
}
