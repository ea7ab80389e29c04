//! Several phases as one: for reports that show jobs of a group together.

use crate::sample::{ClassTotals, PhaseSamples, WorkerSamples};
use crate::series::Series;

/// Joins phases that ran at the same time; none without phases.
///
/// Classes are united by name, in the order in which they first appear. Workers follow each other and are numbered anew;
/// each has every class, and keeps its parts, tallies and origin. Series are added up on the grid of the coarsest, each phase moved to where it began after the
/// first one, to the nearest interval. CPU times are added. The phase is as long as the longest of them, and `window_ns`
/// is the longest window, none where one of them had none. Histograms are merged without loss.
#[must_use]
pub fn merge(parts: &[&PhaseSamples]) -> Option<PhaseSamples> {
    let started_ns = parts.iter().map(|part| part.started_ns).min()?;
    let mut classes: Vec<String> = Vec::new();
    for class in parts.iter().flat_map(|part| &part.classes) {
        if !classes.contains(class) {
            classes.push(class.clone());
        }
    }
    let windows: Option<Vec<u64>> = parts.iter().map(|part| part.window_ns).collect();
    let workers = parts.iter().flat_map(|part| &part.workers).enumerate();
    Some(PhaseSamples {
        window_ns: windows.and_then(|windows| windows.into_iter().max()),
        started_ns,
        elapsed_ns: parts.iter().map(|part| part.elapsed_ns).max()?,
        workers: workers.map(|(number, worker)| renumbered(worker, number, &classes)).collect(),
        series: merged_series(parts, started_ns, &classes),
        interrupted: parts.iter().find_map(|part| part.interrupted.clone()),
        process_cpu_user_ns: parts.iter().map(|part| part.process_cpu_user_ns).sum(),
        process_cpu_system_ns: parts.iter().map(|part| part.process_cpu_system_ns).sum(),
        classes,
    })
}

/// The worker under another number, with every class in the order given.
fn renumbered(worker: &WorkerSamples, number: usize, classes: &[String]) -> WorkerSamples {
    let totals = |class: &String| {
        let own = worker.classes.iter().find(|totals| totals.class == *class).cloned();
        own.unwrap_or_else(|| ClassTotals { class: class.clone(), ..ClassTotals::default() })
    };
    WorkerSamples { worker: number, classes: classes.iter().map(totals).collect(), ..worker.clone() }
}

fn merged_series(parts: &[&PhaseSamples], started_ns: u64, classes: &[String]) -> Series {
    let grid_ns = parts.iter().map(|part| part.series.interval_ns).max().unwrap_or(1).max(1);
    let capacity = parts.iter().map(|part| part.series.capacity).max().unwrap_or(2).max(2);
    let mut merged = Series::new(grid_ns, capacity, classes.len());
    let mut end_ns = 0;
    for part in parts {
        let late_ns = part.started_ns - started_ns;
        let moved_ns = late_ns.saturating_add(grid_ns / 2) / grid_ns * grid_ns;
        let places: Vec<_> =
            part.classes.iter().map(|class| classes.iter().position(|name| name == class)).collect();
        for point in &part.series.points {
            end_ns = end_ns.max(moved_ns.saturating_add(point.end_ns));
            if let Some(in_flight_ns) = point.in_flight_ns {
                merged.add_in_flight(moved_ns.saturating_add(point.start_ns), in_flight_ns);
            }
            for (class, place) in point.classes.iter().zip(&places) {
                if let Some(place) = place {
                    merged.add(moved_ns.saturating_add(point.start_ns), *place, class);
                }
            }
        }
    }
    merged.finish(end_ns);
    merged
}
