//! The loads of `strata drive`, and the figures that each gives.

use driver::Error;
use report::record::{PhaseRecord, PresetFigure};
use units::Span;
use workload::options;
use workload::spec::{Spec, Warmup};

use super::sheet::{Sheet, unit_of};

/// Requests in flight and workers of loads that are not of latencies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Many {
    /// Requests in flight a worker.
    pub(super) depth: u64,
    /// Workers of random loads.
    pub(super) threads: u64,
}

/// A load, and what is computed from it.
pub(super) struct Test {
    /// Name of its phases.
    pub(super) name: &'static str,
    op: &'static str,
    block: &'static str,
    words: &'static str,
    /// Whether several requests are in flight.
    is_deep: bool,
    is_random: bool,
    /// Whether its rounds go on until they are steady: those that write.
    pub(super) writes: bool,
    /// Keys of its figures, each with its value in a round.
    figures: &'static [(&'static str, ValueOf)],
}

/// Value of a figure in a round; none where the round has too few operations for it.
pub(super) type ValueOf = fn(&PhaseRecord) -> Option<f64>;

const BANDWIDTH: ValueOf = |phase| Some(phase.summary.total.bytes_per_second);
const RATE: ValueOf = |phase| Some(phase.summary.total.operations_per_second);
const MEAN: ValueOf = |phase| Some(phase.summary.total.latency.as_ref()?.mean_ns);
const P99_99: ValueOf = |phase| Some(phase.summary.total.latency.as_ref()?.p99_99_ns? as f64);

/// All of them, in their order: sequential writes first, random ones behind them, as SNIA orders them, for each leaves the drive in its own state.
pub(super) static TESTS: &[Test] = &[
    Test {
        name: "seq_write",
        op: "write",
        block: "128k",
        words: "sequential write 128 KiB",
        is_deep: true,
        is_random: false,
        writes: true,
        figures: &[("seq_write", BANDWIDTH)],
    },
    Test {
        name: "seq_read",
        op: "read",
        block: "128k",
        words: "sequential read 128 KiB",
        is_deep: true,
        is_random: false,
        writes: false,
        figures: &[("seq_read", BANDWIDTH)],
    },
    Test {
        name: "rand_write",
        op: "randwrite",
        block: "4k",
        words: "random write 4 KiB",
        is_deep: true,
        is_random: true,
        writes: true,
        figures: &[("rand_write", RATE)],
    },
    Test {
        name: "rand_read",
        op: "randread",
        block: "4k",
        words: "random read 4 KiB",
        is_deep: true,
        is_random: true,
        writes: false,
        figures: &[("rand_read", RATE)],
    },
    Test {
        name: "write_latency",
        op: "randwrite",
        block: "4k",
        words: "random write 4 KiB",
        is_deep: false,
        is_random: true,
        writes: true,
        figures: &[("write_latency", MEAN), ("write_p99_99", P99_99)],
    },
    Test {
        name: "read_latency",
        op: "randread",
        block: "4k",
        words: "random read 4 KiB",
        is_deep: false,
        is_random: true,
        writes: false,
        figures: &[("read_latency", MEAN), ("read_p99_99", P99_99)],
    },
];

impl Test {
    fn depth_and_threads(&self, many: Many) -> (u64, u64) {
        let depth = if self.is_deep { many.depth } else { 1 };
        (depth, if self.is_deep && self.is_random { many.threads } else { 1 })
    }

    /// The load of one round.
    pub(super) fn spec(&self, named: &Spec, many: Many, round: Span, number: u64) -> Result<Spec, Error> {
        let mut spec = load(named, self.op, self.block, &format!("{} {number}", self.name))?;
        let (depth, threads) = self.depth_and_threads(many);
        (spec.depth, spec.threads) = (u32::try_from(depth).ok(), u32::try_from(threads).ok());
        spec.time = Some(round);
        Ok(spec)
    }

    /// Figures of it that are not measured yet, each with its value in a round.
    pub(super) fn figures(&self, sheet: &Sheet, many: Many) -> impl Iterator<Item = (PresetFigure, ValueOf)> {
        let (depth, threads) = self.depth_and_threads(many);
        let load = format!("{}, {threads} x QD {depth}", self.words);
        let stated: Vec<_> = self.figures.iter().map(|(key, _)| sheet.of(key)).collect();
        self.figures.iter().zip(stated).map(move |((key, value), stated)| {
            let mut figure = PresetFigure::new(key, load.clone(), unit_of(key), stated);
            figure.source = stated.map(|_| "--spec".to_owned());
            (figure, *value)
        })
    }
}

/// Sequential writes of 128 KiB over this many bytes: preconditioning that depends on no workload.
pub(super) fn preconditioning(named: &Spec, many: Many, bytes: u64) -> Result<Spec, Error> {
    let mut spec = load(named, "write", "128k", "precondition")?;
    (spec.depth, spec.threads) = (u32::try_from(many.depth).ok(), Some(1));
    spec.bytes = Some(units::ByteSize(bytes));
    Ok(spec)
}

/// A load of direct requests, none of which counts as warm-up.
fn load(named: &Spec, op: &str, block: &str, name: &str) -> Result<Spec, Error> {
    let mut spec = named.clone();
    for (key, value) in [("op", op), ("block-size", block), ("direct", "true")] {
        options::apply(&mut spec, key, value).map_err(|error| Error::usage("drive", error.to_string()))?;
    }
    spec.name = Some(name.to_owned());
    spec.warmup = Some(Warmup::None);
    Ok(spec)
}
