//! Operations on objects, in fio's directions.

use std::borrow::Cow;

use report::record::PhaseRecord;
use statistics::PhaseSamples;

use super::entry::CLASSES;

/// The direction of an operation: its place in [`CLASSES`].
fn direction(operation: &str) -> Option<usize> {
    match operation {
        "get" | "read" | "fetch" => Some(0),
        "put" | "write" | "update" => Some(1),
        "remove" | "punch" => Some(2),
        _ => None,
    }
}

/// Results of a phase, with its operations named as those on files. To fio a trim moves the bytes of its block.
pub(super) fn directed(phase: &PhaseRecord) -> Cow<'_, PhaseSamples> {
    if phase.plan.layer() != "object" {
        return Cow::Borrowed(&phase.samples);
    }
    let mut samples = phase.samples.clone();
    for own in &phase.samples.classes {
        let Some(at) = direction(own) else { continue };
        let trimmed_bytes = if at == 2 { phase.plan.operation_bytes_max() } else { 0 };
        let place = samples.classes.iter().position(|name| name == own);
        for class in samples.classes.iter_mut().filter(|class| *class == own) {
            CLASSES[at].clone_into(class);
        }
        let totals = samples.workers.iter_mut().flat_map(|worker| &mut worker.classes);
        for totals in totals.filter(|totals| totals.class == *own) {
            CLASSES[at].clone_into(&mut totals.class);
            totals.bytes += totals.operations * trimmed_bytes;
        }
        for error in samples.workers.iter_mut().flat_map(|worker| &mut worker.errors) {
            if error.class == *own {
                CLASSES[at].clone_into(&mut error.class);
            }
        }
        let points = samples.series.points.iter_mut();
        for point in points.filter_map(|point| point.classes.get_mut(place?)) {
            point.bytes += point.operations * trimmed_bytes;
        }
    }
    Cow::Owned(samples)
}
