//! The figures of a phase on both sides, and their differences.

use statistics::{
    ClassSummary, Difference, Figure, LatencySummary, Verdict, latency_resolution, mean_latency,
    percentile_latency, rate_over, window_points,
};

use super::matched::{Run, phases};
use super::{ClassComparison, FigureComparison, FigureName, Method, Runs};
use crate::record::PhaseRecord;

/// Latency figures, in the order of the table.
const LATENCIES: &[FigureName] =
    &[FigureName::Mean, FigureName::P50, FigureName::P90, FigureName::P99, FigureName::P999];

/// `total`, and each class that both sides have where a side has several.
pub(super) fn classes(a: &Runs<'_>, b: &Runs<'_>, method: Method) -> Vec<ClassComparison> {
    let mut found = vec![class(a, b, method, None)];
    let (in_a, in_b) = (used(a), used(b));
    if in_a.len() > 1 || in_b.len() > 1 {
        let shared = in_a.iter().filter(|name| in_b.contains(name));
        found.extend(shared.map(|name| class(a, b, method, Some(name))));
    }
    found
}

/// Classes of which a side has completed operations.
fn used<'a>(runs: &Runs<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for class in phases(runs).flat_map(|phase| &phase.summary.classes) {
        if class.operations > 0 && !names.contains(&class.class.as_str()) {
            names.push(&class.class);
        }
    }
    names
}

fn class(a: &Runs<'_>, b: &Runs<'_>, method: Method, class: Option<&str>) -> ClassComparison {
    let block_size = |runs: &Runs<'_>| phases(runs).next().map(|phase| phase.plan.operation_size());
    let moves_bytes = |runs: &Runs<'_>| {
        phases(runs).all(|phase| summary_of(phase, class).is_some_and(|class| class.bytes > 0))
    };
    let is_row_in_bytes = a.iter().chain(b).any(|run| run.in_bytes);
    let in_bytes = (block_size(a) != block_size(b) || is_row_in_bytes) && moves_bytes(a) && moves_bytes(b);
    let mut names = vec![if in_bytes { FigureName::Bandwidth } else { FigureName::Rate }];
    names.extend(LATENCIES);
    if class.is_none() {
        names.push(FigureName::Cpu);
    }
    ClassComparison {
        class: class.unwrap_or("total").to_owned(),
        figures: names.into_iter().map(|name| figure(name, a, b, method, class)).collect(),
    }
}

fn summary_of<'a>(phase: &'a PhaseRecord, class: Option<&str>) -> Option<&'a ClassSummary> {
    match class {
        None => Some(&phase.summary.total),
        Some(name) => phase.summary.classes.iter().find(|class| class.class == name),
    }
}

/// The value of a figure in one record; none where nothing completed.
fn value(phase: &PhaseRecord, figure: FigureName, class: Option<&str>) -> Option<f64> {
    let summary = summary_of(phase, class)?;
    let latency = |part: fn(&LatencySummary) -> Option<f64>| summary.latency.as_ref().and_then(part);
    let value = match figure {
        FigureName::Rate => Some(summary.operations_per_second),
        FigureName::Bandwidth => Some(summary.bytes_per_second),
        FigureName::Mean => latency(|latency| Some(latency.mean_ns)),
        FigureName::P50 => latency(|latency| Some(latency.p50_ns as f64)),
        FigureName::P90 => latency(|latency| latency.p90_ns.map(|ns| ns as f64)),
        FigureName::P99 => latency(|latency| latency.p99_ns.map(|ns| ns as f64)),
        FigureName::P999 => latency(|latency| latency.p99_9_ns.map(|ns| ns as f64)),
        FigureName::Cpu => phase.summary.cpu_ns_per_operation,
    };
    value.filter(|value| value.is_finite() && *value > 0.0)
}

/// The value of a figure in one record; of several passes the geometric mean.
pub(super) fn value_of(run: &Run<'_>, figure: FigureName, class: Option<&str>) -> Option<f64> {
    let values: Vec<f64> = run.passes.iter().filter_map(|phase| value(phase, figure, class)).collect();
    geometric_mean(&values)
}

fn percent_of(figure: FigureName) -> Option<f64> {
    match figure {
        FigureName::P50 => Some(50.0),
        FigureName::P90 => Some(90.0),
        FigureName::P99 => Some(99.0),
        FigureName::P999 => Some(99.9),
        FigureName::Rate | FigureName::Bandwidth | FigureName::Mean | FigureName::Cpu => None,
    }
}

/// Resolution of the histogram for a figure, relative to it.
fn resolution(figure: FigureName, value: f64) -> f64 {
    if percent_of(figure).is_some() { latency_resolution(value) } else { 0.0 }
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    match values {
        [] => None,
        // As it is, without the rounding of a logarithm.
        [only] => Some(*only),
        _ => Some((values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()),
    }
}

fn figure(
    name: FigureName,
    a: &Runs<'_>,
    b: &Runs<'_>,
    method: Method,
    class: Option<&str>,
) -> FigureComparison {
    // One record each has its passes alone; of several, each has one value.
    let by_pass = a.len() == 1 && b.len() == 1;
    let each = |runs: &Runs<'_>| -> Vec<Option<f64>> {
        if by_pass {
            return phases(runs).map(|phase| value(phase, name, class)).collect();
        }
        runs.iter().map(|run| value_of(run, name, class)).collect()
    };
    let (each_a, each_b) = (each(a), each(b));
    let known = |values: &[Option<f64>]| values.iter().copied().flatten().collect::<Vec<_>>();
    let (mut values_a, mut values_b) = (known(&each_a), known(&each_b));
    let difference = match method {
        Method::SingleRuns => single(name, a, b, class),
        Method::Repeats | Method::History => repeats(name, &values_a, &values_b),
        Method::Pairs => {
            let pairs: (Vec<f64>, Vec<f64>) =
                each_a.iter().zip(&each_b).filter_map(|(a, b)| (*a).zip(*b)).unzip();
            // Without a single pair, the side that has values shows them.
            if !pairs.0.is_empty() {
                (values_a, values_b) = pairs;
            }
            let resolution =
                |values: &[f64]| geometric_mean(values).map_or(0.0, |value| resolution(name, value));
            Difference::of_pairs(&values_a, &values_b, resolution(&values_a) + resolution(&values_b))
        }
    };
    let verdict = difference.map_or(Verdict::TooLittle, |difference| difference.verdict(name.direction()));
    FigureComparison {
        figure: name,
        a: geometric_mean(&values_a),
        b: geometric_mean(&values_b),
        missing: difference.is_none().then(|| missing(name, &values_a, &values_b, method).to_owned()),
        difference,
        verdict,
    }
}

fn repeats(name: FigureName, a: &[f64], b: &[f64]) -> Option<Difference> {
    let side = |own: &[f64], other: &[f64]| {
        let figure = match own {
            [only] => Figure::of_single(*only, other),
            several => Figure::of_repeats(several),
        }?;
        Some(figure.widened(resolution(name, figure.value)))
    };
    Difference::of_independent(&side(a, b)?, &side(b, a)?)
}

fn single(name: FigureName, a: &Runs<'_>, b: &Runs<'_>, class: Option<&str>) -> Option<Difference> {
    let side = |runs: &Runs<'_>| {
        let phase = phases(runs).next()?;
        let at = match class {
            None => None,
            Some(name) => Some(phase.samples.classes.iter().position(|own| own == name)?),
        };
        let points = window_points(&phase.samples, &phase.summary);
        match name {
            FigureName::Rate => rate_over(points, at, |class| class.operations),
            FigureName::Bandwidth => rate_over(points, at, |class| class.bytes),
            FigureName::Mean => mean_latency(points, at),
            FigureName::Cpu => None,
            _ => percentile_latency(points, at, percent_of(name)?),
        }
    };
    Difference::of_independent(&side(a)?, &side(b)?)
}

/// Why there is no interval.
fn missing(name: FigureName, a: &[f64], b: &[f64], method: Method) -> &'static str {
    match (method, name) {
        _ if (a.is_empty() || b.is_empty()) && percent_of(name).is_some() => {
            "a side has no value, or fewer than 10 operations beyond this percentile"
        }
        _ if a.is_empty() || b.is_empty() => "a side has no value",
        (Method::SingleRuns, FigureName::Cpu) => "one value per run: --repeat measures how it varies",
        (Method::SingleRuns, _) if percent_of(name).is_some() => {
            "a run is too short, or has too few operations beyond this percentile"
        }
        (Method::SingleRuns, _) => "a run is too short, or varies too much",
        (Method::History, _) if a.len() < 2 => "fewer than 2 runs before it have a value",
        (Method::History, _) => "the runs before it differ too much",
        (Method::Repeats | Method::Pairs, _) if a.len().min(b.len()) > 1 => "the repeats differ too much",
        (Method::Repeats | Method::Pairs, _) => "too few repeats have a value",
    }
}
