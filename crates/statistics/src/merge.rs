//! Several phases as one: for reports that show jobs of a group together, and for what many hosts measured.

use crate::histogram::{Histogram, SparseHistogram};
use crate::sample::{ClassTotals, PhaseSamples, WorkerSamples};
use crate::series::{ClassPoint, Series};

/// Parts that wait until their series are added up together.
const BATCH: usize = 32;

/// Joins phases that ran at the same time; none without phases.
///
/// Classes are united by name, in the order in which they first appear. Workers follow each other and are numbered anew;
/// each has every class, and keeps its parts, tallies and origin. Series are added up on the grid of the coarsest, each phase moved to where it began after the
/// first one, to the nearest interval. CPU times are added. The phase is as long as the longest of them, and `window_ns`
/// is the longest window, none where one of them had none. Histograms are merged without loss.
#[must_use]
pub fn merge(parts: &[&PhaseSamples]) -> Option<PhaseSamples> {
    let mut merger = Merger::new(parts.iter().map(|part| part.started_ns).min()?);
    let series: Vec<Laid<'_>> = parts.iter().map(|part| Laid::of(part, merger.started_ns)).collect();
    for part in parts {
        merger.add_facts(part, part.workers.iter().cloned());
    }
    merger.series = merged_series(&series, merger.grid_ns, &merger.classes);
    Some(merger.into_samples())
}

/// Joins phases of many processes as they come in, as [`merge`] does: of each it keeps the workers and what they add to the common series.
#[derive(Debug)]
pub struct Merger {
    started_ns: u64,
    classes: Vec<String>,
    workers: Vec<WorkerSamples>,
    /// Series of the parts so far that do not wait; its classes are the first ones of `classes`.
    series: Series,
    /// Parts whose series are still to be added, without their workers.
    waiting: Vec<PhaseSamples>,
    /// Longest interval of a part as it came in.
    grid_ns: u64,
    window_ns: Option<u64>,
    has_parts: bool,
    elapsed_ns: u64,
    interrupted: Option<String>,
    cpu_user_ns: u64,
    cpu_system_ns: u64,
}

impl Merger {
    /// No part so far, of a phase that begins at `started_ns`: what began before counts as begun then.
    #[must_use]
    pub fn new(started_ns: u64) -> Self {
        Self {
            started_ns,
            classes: Vec::new(),
            workers: Vec::new(),
            series: Series::new(1, 2, 0),
            waiting: Vec::new(),
            grid_ns: 1,
            window_ns: Some(0),
            has_parts: false,
            elapsed_ns: 0,
            interrupted: None,
            cpu_user_ns: 0,
            cpu_system_ns: 0,
        }
    }

    /// Adds what one process measured.
    pub fn add(&mut self, mut part: PhaseSamples) {
        let workers = std::mem::take(&mut part.workers);
        self.add_facts(&part, workers);
        self.waiting.push(part);
        if self.waiting.len() >= BATCH {
            self.fold();
        }
    }

    /// All of them as one phase; none where there were none.
    #[must_use]
    pub fn finish(mut self) -> Option<PhaseSamples> {
        self.fold();
        self.has_parts.then(|| self.into_samples())
    }

    fn add_facts(&mut self, part: &PhaseSamples, workers: impl IntoIterator<Item = WorkerSamples>) {
        self.has_parts = true;
        self.grid_ns = self.grid_ns.max(part.series.interval_ns);
        for class in &part.classes {
            if !self.classes.contains(class) {
                self.classes.push(class.clone());
            }
        }
        self.workers.extend(workers);
        self.window_ns = self.window_ns.zip(part.window_ns).map(|(mine, theirs)| mine.max(theirs));
        self.elapsed_ns = self.elapsed_ns.max(part.elapsed_ns);
        if self.interrupted.is_none() {
            self.interrupted.clone_from(&part.interrupted);
        }
        self.cpu_user_ns += part.process_cpu_user_ns;
        self.cpu_system_ns += part.process_cpu_system_ns;
    }

    /// Adds the series that wait to the common one.
    fn fold(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let known: Vec<_> = (0..self.series.class_count).map(Some).collect();
        let mut laid = vec![Laid { series: &self.series, places: Places::Numbers(known), late_ns: 0 }];
        laid.extend(self.waiting.iter().map(|part| Laid::of(part, self.started_ns)));
        if self.series.points.is_empty() {
            laid.remove(0);
        }
        self.series = merged_series(&laid, self.grid_ns, &self.classes);
        self.waiting.clear();
    }

    fn into_samples(self) -> PhaseSamples {
        let Self { classes, workers, .. } = self;
        let workers = workers.into_iter().enumerate();
        PhaseSamples {
            window_ns: self.window_ns,
            started_ns: self.started_ns,
            elapsed_ns: self.elapsed_ns,
            workers: workers.map(|(number, worker)| renumbered(worker, number, &classes)).collect(),
            series: self.series,
            interrupted: self.interrupted,
            process_cpu_user_ns: self.cpu_user_ns,
            process_cpu_system_ns: self.cpu_system_ns,
            classes,
        }
    }
}

/// The worker under another number, with every class in the order given.
fn renumbered(mut worker: WorkerSamples, number: usize, classes: &[String]) -> WorkerSamples {
    worker.worker = number;
    if worker.classes.iter().map(|totals| &totals.class).eq(classes) {
        return worker;
    }
    let mut own = std::mem::take(&mut worker.classes);
    let totals = |class: &String| {
        let place = own.iter().position(|totals| totals.class == *class);
        place.map_or_else(
            || ClassTotals { class: class.clone(), ..ClassTotals::default() },
            |place| own.swap_remove(place),
        )
    };
    worker.classes = classes.iter().map(totals).collect();
    worker
}

/// Places of the classes of a series among those of all.
#[derive(Debug)]
enum Places<'a> {
    Names(&'a [String]),
    Numbers(Vec<Option<usize>>),
}

/// A series and how long after the first it begins.
#[derive(Debug)]
struct Laid<'a> {
    series: &'a Series,
    places: Places<'a>,
    late_ns: u64,
}

impl<'a> Laid<'a> {
    fn of(part: &'a PhaseSamples, started_ns: u64) -> Self {
        let late_ns = part.started_ns.saturating_sub(started_ns);
        Self { series: &part.series, places: Places::Names(&part.classes), late_ns }
    }
}

/// Points that fall into one interval of the common grid.
#[derive(Default)]
struct Slot<'a> {
    in_flight_ns: Option<u64>,
    classes: Vec<(usize, &'a ClassPoint)>,
}

/// Adds series up, interval by interval, so that each histogram is unpacked once. Each is moved by whole intervals of `grid_ns`.
fn merged_series(parts: &[Laid<'_>], grid_ns: u64, classes: &[String]) -> Series {
    let interval_ns = parts.iter().map(|part| part.series.interval_ns).max().unwrap_or(1).max(grid_ns);
    let capacity = parts.iter().map(|part| part.series.capacity).max().unwrap_or(2).max(2);
    let moved = |part: &Laid<'_>| part.late_ns.saturating_add(grid_ns / 2) / grid_ns * grid_ns;
    let points = || {
        parts.iter().flat_map(|part| {
            let moved_ns = moved(part);
            part.series.points.iter().map(move |point| {
                (moved_ns.saturating_add(point.start_ns), moved_ns.saturating_add(point.end_ns))
            })
        })
    };
    let mut merged = Series::new(interval_ns, capacity, classes.len());
    let Some(last_ns) = points().map(|(start_ns, _)| start_ns).max() else { return merged };
    let end_ns = points().map(|(_, end_ns)| end_ns).max().unwrap_or(0);
    merged.make_room(last_ns.max(end_ns.saturating_sub(1)));
    let slots = slots_of(parts, &moved, merged.interval_ns, classes);
    let mut scratch = Histogram::new();
    for (number, slot) in slots.iter().enumerate() {
        let at_ns = number as u64 * merged.interval_ns;
        merged.add_in_flight(at_ns, slot.in_flight_ns.unwrap_or(0));
        for class in 0..classes.len() {
            let own: Vec<_> = slot.classes.iter().filter(|(place, _)| *place == class).collect();
            if !own.is_empty() {
                merged.add(at_ns, class, &sum(own.into_iter().map(|(_, point)| *point), &mut scratch));
            }
        }
    }
    merged.finish(end_ns);
    merged
}

/// The points of all series by the interval that they begin in.
fn slots_of<'a>(
    parts: &[Laid<'a>],
    moved: &dyn Fn(&Laid<'_>) -> u64,
    interval_ns: u64,
    classes: &[String],
) -> Vec<Slot<'a>> {
    let mut slots: Vec<Slot<'a>> = Vec::new();
    for part in parts {
        let places: Vec<Option<usize>> = match &part.places {
            Places::Names(names) => {
                names.iter().map(|class| classes.iter().position(|name| name == class)).collect()
            }
            Places::Numbers(places) => places.clone(),
        };
        let moved_ns = moved(part);
        for point in &part.series.points {
            let at = (moved_ns.saturating_add(point.start_ns) / interval_ns) as usize;
            slots.resize_with(slots.len().max(at + 1), Slot::default);
            let slot = &mut slots[at];
            if let Some(in_flight_ns) = point.in_flight_ns.filter(|ns| *ns > 0) {
                *slot.in_flight_ns.get_or_insert(0) += in_flight_ns;
            }
            let named = point.classes.iter().zip(&places);
            slot.classes.extend(named.filter_map(|(class, place)| Some(((*place)?, class))));
        }
    }
    slots
}

/// Class points as one.
fn sum<'a>(points: impl Iterator<Item = &'a ClassPoint> + Clone, scratch: &mut Histogram) -> ClassPoint {
    let mut sum = ClassPoint::default();
    for point in points.clone() {
        sum.operations = sum.operations.saturating_add(point.operations);
        sum.bytes = sum.bytes.saturating_add(point.bytes);
        sum.errors = sum.errors.saturating_add(point.errors);
    }
    sum.latency = SparseHistogram::sum(points.clone().map(|point| &point.latency), scratch);
    sum.unfinished = SparseHistogram::sum(points.map(|point| &point.unfinished), scratch);
    sum
}
