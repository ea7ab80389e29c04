//! Samples on their way to another process: interval series and histograms as bytes, everything else as it is.
//!
//! What is packed is taken out of the samples, which then become JSON with empty places. A histogram that is not listed here stays in the JSON and
//! loses nothing.

use std::fmt;

use crate::histogram::{SparseHistogram, push_varint, read_varint};
use crate::sample::{PhaseSamples, WorkerSamples};
use crate::series::{ClassPoint, IntervalPoint, Series};
use crate::snapshot::Snapshot;

/// Most intervals of a series that another process may send.
const CAPACITY_MAX: usize = 1 << 20;

/// Why bytes are not those of packed samples: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPacked(String);

impl fmt::Display for InvalidPacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid packed samples: {}", self.0)
    }
}

impl std::error::Error for InvalidPacked {}

/// Figures that can be packed.
pub trait Pack {
    /// Takes histograms and series out and appends them to `bytes`.
    fn pack(&mut self, bytes: &mut Vec<u8>);

    /// Puts back what [`Pack::pack`] took out, and leaves in `bytes` what follows.
    ///
    /// # Errors
    /// Bytes that are not of these figures.
    fn unpack(&mut self, bytes: &mut &[u8]) -> Result<(), InvalidPacked>;
}

/// Histograms of a worker, in one order for both directions.
fn histograms_of(worker: &mut WorkerSamples) -> impl Iterator<Item = &mut SparseHistogram> {
    let classes = worker.classes.iter_mut().flat_map(|class| {
        let timed_apart = class.submission.iter_mut().chain(class.completion.iter_mut());
        let parts = class.latency_parts.iter_mut().map(|part| &mut part.latency);
        [&mut class.latency, &mut class.unfinished].into_iter().chain(timed_apart).chain(parts)
    });
    let parts = worker.parts.iter_mut().map(|part| &mut part.latency);
    classes.chain(parts).chain(worker.items.iter_mut()).chain(worker.lateness.iter_mut())
}

impl Pack for WorkerSamples {
    fn pack(&mut self, bytes: &mut Vec<u8>) {
        for histogram in histograms_of(self) {
            std::mem::take(histogram).write(bytes);
        }
    }

    fn unpack(&mut self, bytes: &mut &[u8]) -> Result<(), InvalidPacked> {
        for histogram in histograms_of(self) {
            *histogram = read_histogram(bytes)?;
        }
        Ok(())
    }
}

impl Pack for PhaseSamples {
    fn pack(&mut self, bytes: &mut Vec<u8>) {
        self.workers.iter_mut().for_each(|worker| worker.pack(bytes));
        pack_series(&mut self.series, bytes);
    }

    fn unpack(&mut self, bytes: &mut &[u8]) -> Result<(), InvalidPacked> {
        self.workers.iter_mut().try_for_each(|worker| worker.unpack(bytes))?;
        unpack_series(&mut self.series, bytes)
    }
}

impl Pack for Snapshot {
    fn pack(&mut self, bytes: &mut Vec<u8>) {
        std::mem::take(&mut self.latency).write(bytes);
    }

    fn unpack(&mut self, bytes: &mut &[u8]) -> Result<(), InvalidPacked> {
        self.latency = read_histogram(bytes)?;
        Ok(())
    }
}

fn pack_series(series: &mut Series, bytes: &mut Vec<u8>) {
    let points = std::mem::take(&mut series.points);
    push_varint(bytes, points.len() as u64);
    for point in points {
        push_varint(bytes, point.start_ns);
        push_varint(bytes, point.end_ns);
        // 0 stands for none.
        push_varint(bytes, point.in_flight_ns.map_or(0, |ns| ns.saturating_add(1)));
        push_varint(bytes, point.classes.len() as u64);
        for class in point.classes {
            [class.operations, class.bytes, class.errors]
                .into_iter()
                .for_each(|number| push_varint(bytes, number));
            class.latency.write(bytes);
            class.unfinished.write(bytes);
        }
    }
}

fn unpack_series(series: &mut Series, bytes: &mut &[u8]) -> Result<(), InvalidPacked> {
    if series.interval_ns == 0 || !(2..=CAPACITY_MAX).contains(&series.capacity) {
        let Series { interval_ns, capacity, .. } = series;
        return Err(InvalidPacked(format!("a series of {capacity} intervals of {interval_ns} ns")));
    }
    let count = read(bytes)?;
    if count > series.capacity as u64 {
        return Err(InvalidPacked(format!("{count} intervals in a series of at most {}", series.capacity)));
    }
    for _ in 0..count {
        let (start_ns, end_ns, in_flight, classes) = (read(bytes)?, read(bytes)?, read(bytes)?, read(bytes)?);
        if classes != series.class_count as u64 {
            return Err(InvalidPacked(format!("{classes} classes in a series of {}", series.class_count)));
        }
        let classes = (0..classes).map(|_| read_class(bytes)).collect::<Result<_, _>>()?;
        series.points.push(IntervalPoint {
            start_ns,
            end_ns,
            classes,
            in_flight_ns: in_flight.checked_sub(1),
        });
    }
    Ok(())
}

fn read_class(bytes: &mut &[u8]) -> Result<ClassPoint, InvalidPacked> {
    Ok(ClassPoint {
        operations: read(bytes)?,
        bytes: read(bytes)?,
        errors: read(bytes)?,
        latency: read_histogram(bytes)?,
        unfinished: read_histogram(bytes)?,
    })
}

fn read(bytes: &mut &[u8]) -> Result<u64, InvalidPacked> {
    read_varint(bytes).ok_or_else(|| InvalidPacked("they are truncated".to_owned()))
}

fn read_histogram(bytes: &mut &[u8]) -> Result<SparseHistogram, InvalidPacked> {
    SparseHistogram::read(bytes).map_err(|error| InvalidPacked(error.to_string()))
}
