//! Targets side by side: the time and the I/O of each, and by what factor they differ from the first.

use report::chart::{Axis, Chart, Point, Scale, Series, Style as Drawn, Unit};
use report::page::{Cell, Page, Style, Table};
use report::recipes::factor_of;
use report::record::{PhaseRecord, RecipeFactor, Record};
use report::stack::bytes_in_calls;
use report::view::SideBySide;
use report::words::factor;
use units::human::{human_bytes_per_second, human_ns};
use units::{clean, without_password};

use crate::beside::{BesidePlan, TriedRemedy};
use crate::plan::AppPlan;

/// The plan of a stage of one of several targets.
fn plan_of(phase: &PhaseRecord) -> Option<(&AppPlan, &BesidePlan)> {
    let plan = phase.plan.of::<AppPlan>()?;
    Some((plan, plan.beside.as_ref()?))
}

/// Name of the stage that a phase is, without its target.
fn stage_of<'a>(plan: &'a AppPlan, beside: &BesidePlan) -> &'a str {
    plan.name.strip_suffix(&*beside.suffix()).unwrap_or(&plan.name)
}

/// Stages that stand side by side: those of several targets that did not fail.
pub(super) fn phases(record: &Record) -> Vec<usize> {
    let is_meant = |phase: &PhaseRecord| plan_of(phase).is_some() && phase.failure.is_none();
    (0..record.phases.len()).filter(|at| is_meant(&record.phases[*at])).collect()
}

/// A figure of a target, one a pass.
type Passes = Vec<(u32, f64)>;

/// Figures of a target in a stage.
#[derive(Default)]
struct Figures {
    time_ns: Passes,
    /// Bytes a second of the whole stage, where it moves data; else how often it would be done in a second.
    speed: Passes,
    /// Bytes a second while processes are in calls: without computing and waiting for each other.
    io: Passes,
}

impl Figures {
    fn add(&mut self, phase: &PhaseRecord, pass: u32) {
        let seconds = phase.samples.elapsed_ns.max(1) as f64 / 1e9;
        let classes = phase.samples.workers.iter().flat_map(|worker| &worker.classes);
        let bytes: u64 = classes.map(|class| class.bytes).sum();
        self.time_ns.push((pass, seconds * 1e9));
        self.speed.push((pass, if bytes > 0 { bytes as f64 } else { 1.0 } / seconds));
        self.io.extend(bytes_in_calls(phase).map(|io| (pass, io)));
    }
}

fn mean(passes: &Passes) -> Option<f64> {
    (!passes.is_empty()).then(|| passes.iter().map(|(_, figure)| figure).sum::<f64>() / passes.len() as f64)
}

/// Factor of `with` to `of` over the passes that both had.
fn factor_between(of: &Passes, with: &Passes) -> Option<RecipeFactor> {
    let same = |pass: u32| with.iter().find(|(other, _)| *other == pass).map(|(_, figure)| *figure);
    let pairs = of.iter().filter_map(|(pass, figure)| Some((*figure, same(*pass)?)));
    let (of, with): (Vec<f64>, Vec<f64>) = pairs.unzip();
    factor_of(&of, &with)
}

fn passes_words(passes: u32) -> String {
    if passes == 1 { "1 pass".to_owned() } else { format!("{passes} passes") }
}

fn is_sure(found: &RecipeFactor) -> bool {
    found.low > 1.0 || found.high < 1.0
}

fn interval(found: &RecipeFactor) -> String {
    format!("{} to {}", factor(found.low), factor(found.high))
}

/// A stage on all targets.
struct Stage {
    name: String,
    /// A remedy is tried that is compared by the time of the whole stage: I/O leaves waiting and what goes on meanwhile out.
    by_stage: bool,
    targets: Vec<Figures>,
}

impl Stage {
    /// The figure that counts: I/O where data are moved, or the speed of the whole stage.
    fn decisive(&self, at: usize) -> &Passes {
        if self.by_stage {
            return &self.targets[at].speed;
        }
        let moves = self.targets.iter().any(|figures| !figures.io.is_empty());
        if moves { &self.targets[at].io } else { &self.targets[at].speed }
    }

    fn row(&self, at: usize, target: &str) -> Vec<Cell> {
        let dash = || Cell::styled("-", Style::Faint);
        let figures = &self.targets[at];
        let to_first = |first: &Passes, own: &Passes| match factor_between(first, own) {
            _ if at == 0 && !own.is_empty() => Cell::from("1"),
            Some(found) => Cell::from(format!("{} ({})", factor(found.factor), interval(&found))),
            None => dash(),
        };
        let result = match factor_between(self.decisive(0), self.decisive(at)) {
            _ if at == 0 => Cell::from(""),
            None => dash(),
            Some(found) if !is_sure(&found) => Cell::styled("cannot tell", Style::Faint),
            Some(found) if found.factor > 1.0 => Cell::styled("faster", Style::Strong),
            Some(_) => Cell::styled("slower", Style::Strong),
        };
        vec![
            Cell::from(clean(target).into_owned()),
            mean(&figures.time_ns).map_or_else(dash, |ns| Cell::from(human_ns(ns))),
            to_first(&self.targets[0].speed, &figures.speed),
            mean(&figures.io).map_or_else(dash, |rate| Cell::from(human_bytes_per_second(rate))),
            to_first(&self.targets[0].io, &figures.io),
            result,
        ]
    }

    /// The effect of a remedy on the stage.
    fn verdict(&self, set: &str) -> String {
        let stage = clean(&self.name);
        match factor_between(self.decisive(0), self.decisive(1)) {
            Some(found) if is_sure(&found) => {
                let word = if found.factor > 1.0 { "faster" } else { "slower" };
                format!(
                    "{stage}: {word} with {set}, {}x (95 % CI {})",
                    factor(found.factor),
                    interval(&found)
                )
            }
            Some(found) => format!(
                "{stage}: no effect of {set} detected (95 % CI {}x): use more --passes or a larger load",
                interval(&found)
            ),
            None => format!("{stage}: {set} has no results to compare"),
        }
    }

    /// The fastest target, and whether that is sure; none where fewer than two have figures.
    fn fastest(&self, targets: &[String]) -> Option<String> {
        let means = (0..targets.len()).filter_map(|at| Some((at, mean(self.decisive(at))?)));
        let mut order: Vec<(usize, f64)> = means.collect();
        order.sort_by(|one, other| other.1.total_cmp(&one.1));
        let [(first, _), (second, _), ..] = order[..] else { return None };
        let (name, other) = (clean(&targets[first]), clean(&targets[second]));
        let stage = clean(&self.name);
        Some(match factor_between(self.decisive(second), self.decisive(first)) {
            Some(found) if is_sure(&found) && found.factor > 1.0 => format!(
                "{stage}: {name}, {}x as fast as {other} (95 % CI {})",
                factor(found.factor),
                interval(&found)
            ),
            Some(found) => format!(
                "{stage}: no difference detected between {name} and {other} (95 % CI {}x): use more --passes or a larger load",
                interval(&found)
            ),
            None => {
                format!(
                    "{stage}: {name} faster than {other} in a single pass, which gives no confidence interval"
                )
            }
        })
    }
}

/// The remedy that the phases of a record are about.
fn remedy(record: &Record) -> Option<&TriedRemedy> {
    let mut plans = phases(record).into_iter().filter_map(|at| plan_of(record.phases.get(at)?));
    plans.find_map(|(_, beside)| beside.remedy.as_ref())
}

/// The targets of a record that stand side by side, its stages, and how many passes there were.
fn stages(record: &Record) -> (Vec<String>, Vec<Stage>, u32) {
    let (mut targets, mut stages, mut passes) = (Vec::new(), Vec::<Stage>::new(), 0);
    for phase in phases(record).into_iter().filter_map(|at| record.phases.get(at)) {
        let Some((plan, beside)) = plan_of(phase) else { continue };
        targets = beside.names();
        passes = passes.max(beside.pass);
        let name = stage_of(plan, beside);
        let at = stages.iter().position(|stage| stage.name == name).unwrap_or(stages.len());
        if at == stages.len() {
            let figures = targets.iter().map(|_| Figures::default()).collect();
            let by_stage = beside.remedy.as_ref().is_some_and(|tried| tried.by_stage);
            stages.push(Stage { name: name.to_owned(), by_stage, targets: figures });
        }
        if let Some(figures) = stages[at].targets.get_mut(beside.at as usize) {
            figures.add(phase, beside.pass);
        }
    }
    stages.retain(|stage| stage.targets.len() == targets.len());
    (targets, stages, passes)
}

/// Writes the table, and below it the breakdown of each target where there is one.
pub(super) fn block(page: &mut Page, record: &Record) {
    let (targets, stages, passes) = stages(record);
    if stages.is_empty() {
        return;
    }
    let tried = remedy(record);
    let title = if tried.is_some() { "test of the first remedy" } else { "targets side by side" };
    page.line(title, Style::Strong);
    let plans = phases(record).into_iter().filter_map(|at| plan_of(record.phases.get(at)?));
    if let Some((plan, beside)) = plans.take(1).last() {
        page.field("application", &super::application_words(plan), Style::Plain);
        let labels = beside.labels.iter().filter(|_| beside.remedy.is_none());
        for (label, target) in labels.zip(&beside.targets).filter(|(label, target)| label != target) {
            page.field(&clean(label), &clean(&without_password(target)), Style::Plain);
        }
    }
    let (over, first) = match tried {
        Some(tried) => {
            page.field("tried", &clean(&format!("{}: {}", tried.set, tried.words())), Style::Plain);
            ("both", "the unchanged load")
        }
        None => ("all targets", "the first target"),
    };
    let how = format!(
        "{} over {over}, alternating; speed is of the whole stage, I/O speed only of the calls; both are relative to {first} (95 % CI)",
        passes_words(passes)
    );
    page.field("how", &how, Style::Plain);
    page.gap();
    let (side, than) = if tried.is_some() { ("load", "than before") } else { ("target", "than the first") };
    let mut table = Table::new(&[side, "time", "speed", "I/O", "I/O speed", than]);
    for stage in &stages {
        table.heading(clean(&stage.name));
        for (at, target) in targets.iter().enumerate() {
            table.row(stage.row(at, target));
        }
    }
    page.table(&table);
    page.gap();
    for stage in &stages {
        match tried {
            Some(tried) => page.field("result", &stage.verdict(&tried.set), Style::Strong),
            None => stage
                .fastest(&targets)
                .into_iter()
                .for_each(|line| page.field("fastest", &line, Style::Plain)),
        }
    }
    details(page, record);
}

/// Where the time went, commits and the like in the first pass: one of each stage and target.
fn details(page: &mut Page, record: &Record) {
    for phase in phases(record).into_iter().filter_map(|at| record.phases.get(at)) {
        let Some((plan, _)) = plan_of(phase).filter(|(_, beside)| beside.pass == 1) else { continue };
        let seen = &phase.observations;
        if seen.profile.is_some()
            || seen.utilisation.is_some()
            || seen.checkpoint.is_some()
            || seen.commits.is_some()
        {
            page.gap();
            page.line(&format!("{}, the first pass", clean(&plan.name)), Style::Strong);
            super::seen(page, phase);
            report::profile::block(page, phase);
        }
    }
}

/// The stages on all targets, by the first pass that each has.
pub(super) fn side_by_side(record: &Record) -> Vec<SideBySide> {
    let mut all: Vec<(String, SideBySide)> = Vec::new();
    for at in phases(record) {
        let Some((plan, beside)) = record.phases.get(at).and_then(plan_of) else { continue };
        let (stage, name) = (stage_of(plan, beside), beside.name());
        let known = all.iter().position(|(known, _)| known == stage).unwrap_or_else(|| {
            let title = format!("{}, side by side", clean(stage));
            all.push((stage.to_owned(), SideBySide { title, ..SideBySide::default() }));
            all.len() - 1
        });
        let sides = &mut all[known].1;
        match sides.lines.iter().any(|(other, _)| *other == name) {
            true => sides.left_out.push(at),
            false => sides.lines.push((name, at)),
        }
    }
    all.into_iter().map(|(_, sides)| sides).collect()
}

/// Bars of the I/O of each target, in a colour for each stage.
pub(super) fn chart(record: &Record) -> Option<Chart> {
    let (targets, stages, passes) = stages(record);
    let unit = Unit::BytesPerSecond;
    let names = targets.iter().map(|target| clean(target).into_owned()).collect();
    let (side, title) = match remedy(record) {
        Some(_) => ("load", "Test of the first remedy: I/O"),
        None => ("target", "Targets side by side: I/O"),
    };
    let x = Axis::new(side, Unit::Plain, Scale::Names(names));
    let y = Axis::new("I/O of all processes", unit, Scale::Linear);
    let mut chart = Chart::new(title, x, y);
    for (number, stage) in stages.iter().enumerate() {
        let bar = |(at, figures): (usize, &Figures)| {
            let y = mean(&figures.io)?;
            Some(Point { label: Some(human_bytes_per_second(y)), ..Point::new(at as f64, y) })
        };
        let points: Vec<Point> = stage.targets.iter().enumerate().filter_map(bar).collect();
        if !points.is_empty() {
            chart.series.push(Series::new(clean(&stage.name), Drawn::Bars, number, points));
        }
    }
    chart.note = format!(
        "Means of {}; bytes per second during calls, without computing and waiting",
        passes_words(passes)
    );
    (!chart.series.is_empty()).then_some(chart)
}
