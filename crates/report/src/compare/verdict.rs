//! Which figure decides about a phase, and the verdict by it.

use statistics::{Difference, Direction, Verdict, adjust_for_many, decide};

use super::matched::phases;
use super::{ClassComparison, FigureName, Method, PhaseComparison, Runs};

/// The figures that may decide about a phase, the one that stands for it first; never empty.
///
/// Of a closed loop that is the rate, of an open one p99. One run each tells less than repeats, and the mean latency of the same runs
/// may tell more: where both loops hold equally many operations of one size in flight, it is the rate in other words (Little's law); in
/// an open loop every operation counts in it, and in p99 one of a hundred. An open loop without enough operations for a p99 has the
/// mean alone.
pub(super) fn considered(
    classes: &[ClassComparison],
    (a, b): (&Runs<'_>, &Runs<'_>),
    method: Method,
    is_open: bool,
) -> Vec<FigureName> {
    let total = || classes.first().into_iter().flat_map(|total| &total.figures);
    let rate = total().map(|figure| figure.figure).next().unwrap_or(FigureName::Rate);
    let first = if is_open { FigureName::P99 } else { rate };
    let has_difference = total().any(|figure| figure.figure == first && figure.difference.is_some());
    let load = |runs: &Runs<'_>| {
        let plan = &phases(runs).next()?.plan;
        let load = plan.load();
        Some((load.threads, load.depth, load.think, plan.operation_size()))
    };
    let is_alike = is_open || (rate == FigureName::Rate && load(a) == load(b));
    let is_single = method == Method::SingleRuns && is_alike;
    let with_mean = is_single || (is_open && !has_difference);
    std::iter::once(first).chain(with_mean.then_some(FigureName::Mean)).collect()
}

/// The headlines' verdicts, held to a level that neither their number nor that of the figures considered dilutes.
pub(super) fn settle(phases: &mut [PhaseComparison]) {
    let decide_phase = |phase: &PhaseComparison| {
        let found = |name: &FigureName| Some((*name, phase.total(*name)?.difference?));
        let found: Vec<(FigureName, Difference)> =
            phase.headline.considered.iter().filter_map(found).collect();
        let figures: Vec<(Direction, Difference)> =
            found.iter().map(|(name, difference)| (name.direction(), *difference)).collect();
        decide(&figures).map(|(at, p_value)| (found[at].0, found[at].1, p_value))
    };
    let decided: Vec<_> =
        phases.iter().enumerate().filter_map(|(at, phase)| Some((at, decide_phase(phase)?))).collect();
    let adjusted = adjust_for_many(&decided.iter().map(|(_, (_, _, p_value))| *p_value).collect::<Vec<_>>());
    for ((at, (figure, difference, _)), p_value) in decided.into_iter().zip(adjusted) {
        let headline = &mut phases[at].headline;
        headline.figure = figure;
        headline.verdict = difference.verdict_at(figure.direction(), p_value);
        headline.p_value_adjusted = Some(p_value);
        debug_assert_ne!(headline.verdict, Verdict::TooLittle);
    }
}
