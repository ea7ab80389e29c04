//! Failures of a run in one line.

use report::record::PhaseRecord;

/// Failure of a run: that of a failed worker, before a phase that was stopped for it or interrupted, before failures of
/// operations that were only counted.
pub(crate) fn failure_of(phases: &[PhaseRecord]) -> Option<String> {
    let has_failed =
        |phase: &&PhaseRecord| phase.samples.workers.iter().any(|worker| worker.failure.is_some());
    let failed = phases.iter().filter(has_failed).chain(phases);
    let mut failures = failed.filter_map(|phase| phase.failure.clone());
    failures.next().or_else(|| phases.iter().find_map(counted_failures))
}

/// Endpoints named in one line.
const ENDPOINTS_NAMED_MAX: usize = 4;

/// Failures of operations in a phase that went on to its end (`--on-error continue`).
fn counted_failures(phase: &PhaseRecord) -> Option<String> {
    let errors =
        || phase.samples.workers.iter().flat_map(|worker| &worker.errors).filter(|error| !error.is_ignored);
    let count: u64 = errors().map(|error| error.count).sum();
    let first = errors().min_by_key(|error| error.first_at_ns)?;
    let (name, class, cause) = (phase.plan.name(), &first.class, &first.cause);
    let operations = phase.plan.terms().operations;
    Some(match failed_parts(phase) {
        Some(parts) => format!("{count} {operations} failed in phase {name}: {parts}"),
        None => format!("{count} {operations} failed in phase {name}: {class} failed: {cause}"),
    })
}

/// `endpoint 1:2: 12 (Connection reset by peer (os error 104))` for the endpoints that failed, the worst first; none where the target has
/// no parts that are told apart.
fn failed_parts(phase: &PhaseRecord) -> Option<String> {
    phase.plan.part_label(0)?;
    let mut failed = statistics::by_part(&phase.samples);
    failed.retain(|part| part.figures.errors > 0);
    failed.sort_by_key(|part| std::cmp::Reverse(part.figures.errors));
    let named = failed.iter().take(ENDPOINTS_NAMED_MAX).map(|part| {
        let label = phase.plan.part_label(part.part).unwrap_or("?");
        let causes = part.figures.causes.iter().max_by_key(|cause| cause.count);
        let cause = causes.map_or("unknown", |cause| cause.cause.as_str());
        format!("endpoint {label}: {} ({cause})", part.figures.errors)
    });
    let mut parts: Vec<String> = named.collect();
    if failed.len() > ENDPOINTS_NAMED_MAX {
        parts.push(format!("and {} more endpoints", failed.len() - ENDPOINTS_NAMED_MAX));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}
