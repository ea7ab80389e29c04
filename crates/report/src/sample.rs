//! Records for tests: made from declared rates and latencies, by the same statistics as real ones.
#![allow(missing_docs, reason = "the names say it; nothing but tests uses this")]

use driver::ClockSource;
use serde_json::json;
use statistics::{
    ClassPoint, ClassTotals, Histogram, KneeOptions, LadderPoint, PhaseSamples, Series, SparseHistogram,
    WarmUp, WorkerSamples, find_knee, summarise,
};
use workload::plan::{ContentChoice, ContentPlan, LimitPlan, LoadPlan, Pattern, PhasePlan};
use workload::spec::{LadderDimension, OnError, Operation, Refill, Share, Warmup};
use workload::target::TargetKind;

use crate::record::*;

mod environment;

pub use environment::environment;

pub const INTERVAL_NS: u64 = 100_000_000;
pub const INTERVALS: u64 = 40;

/// Properties of a phase that the tests make up.
#[derive(Clone, Copy)]
pub struct Shape {
    pub engine: &'static str,
    pub operation: Operation,
    pub kind: TargetKind,
    pub block_bytes: u64,
    pub threads: u32,
    pub depth: u32,
    pub direct: bool,
    pub operations_per_second: f64,
    pub latency_ns: u64,
    /// Largest deviation of an interval's rate, as a share of the rate.
    pub jitter: f64,
    /// CPU time an operation.
    pub cpu_ns: u64,
}

/// 4 KiB random reads of a drive: 400k/s at 320 us, 4 threads, depth 32.
pub const DRIVE: Shape = Shape {
    engine: "io_uring",
    operation: Operation::RandRead,
    kind: TargetKind::File,
    block_bytes: 4096,
    threads: 4,
    depth: 32,
    direct: true,
    operations_per_second: 400_000.0,
    latency_ns: 320_000,
    jitter: 0.02,
    cpu_ns: 2400,
};

/// Percent of reads, writes and discards.
fn mix(operation: Operation) -> [u8; 3] {
    match operation {
        Operation::Read | Operation::RandRead => [100, 0, 0],
        Operation::Write | Operation::RandWrite => [0, 100, 0],
        Operation::ReadWrite | Operation::RandRw => [70, 30, 0],
        Operation::Discard | Operation::RandDiscard => [0, 0, 100],
        Operation::DiscardWrite | Operation::RandDiscardWrite => [0, 50, 50],
        Operation::Nop => [0, 0, 0],
    }
}

/// A plan of media as records have it: the layer must have been added to those that there are.
pub fn plan(shape: &Shape) -> PhasePlan {
    #[cfg(test)]
    workload::layers::Layer::add(media::LAYER.definition());
    let [read, write, discard] = mix(shape.operation);
    let plan = json!({
        "layer": "media",
        "name": shape.operation.name(),
        "engine": shape.engine,
        "options": {
            "direct": shape.direct,
            "sync": "none", "memory_operation": "copy",
            "register_files": "auto", "register_buffers": "auto", "defer_taskrun": "auto",
            "sqpoll": false, "sqpoll_core": null, "iopoll": false, "hipri": false, "nowait": false,
            "rwf_dsync": false, "dontcache": false, "map_sync": false,
        },
        "targets": [{
            "path": "/data/file",
            "kind": shape.kind,
            "offset_bytes": 0,
            "size_bytes": 10u64 << 30,
            "direct_alignment_bytes": 512,
        }],
        "operation": shape.operation,
        "mix": { "read_percent": read, "write_percent": write, "discard_percent": discard },
        "pattern": if shape.operation.is_random() { Pattern::Permutation } else { Pattern::Sequential },
        "block_size": units::ByteSize(shape.block_bytes).to_string(),
        "block_size_bytes_max": shape.block_bytes,
        "align_bytes": shape.block_bytes,
        "share": Share::Partition,
        "content": content(),
        "verify_interval_bytes": null, "fsync_every": null, "end_fsync": false,
        "cache": "keep", "huge_pages": false,
        "load": load(shape),
    });
    serde_json::from_value(plan).expect("a plan of media")
}

/// Changes a field of a plan, by its JSON pointer.
pub fn change(plan: &mut PhasePlan, pointer: &str, to: impl serde::Serialize) {
    let mut fields = serde_json::to_value(&*plan).expect("a plan");
    *fields.pointer_mut(pointer).expect(pointer) = json!(to);
    *plan = serde_json::from_value(fields).expect("a plan");
}

/// Incompressible data, new with each write.
pub fn content() -> ContentPlan {
    ContentPlan {
        content: ContentChoice::Random,
        compress_percent: 0,
        dedupe_percent: 0,
        dedupe_set_chunks: None,
        dedupe_set_seed: None,
        refill: Refill::Full,
    }
}

pub fn load(shape: &Shape) -> LoadPlan {
    LoadPlan {
        place: None,
        schedule: None,
        threads: shape.threads,
        depth: shape.depth,
        batch: shape.depth,
        batch_min: 1,
        batch_max: shape.depth,
        limit: LimitPlan { time_ns: Some(INTERVALS * INTERVAL_NS), operations: None, bytes: None },
        warmup: Warmup::Auto,
        arrivals: None,
        interval_ns: INTERVAL_NS,
        on_error: OnError::Stop,
        think: None,
        start_delay_ns: 0,
        end_others: false,
        split_latency: false,
        profile: false,
        cores: vec![],
        cores_policy: Default::default(),
        numa: vec![],
        control: workload::control::Control::default(),
        seed: 42,
    }
}

/// Equally spread values from -1 to 1, the same in every run.
fn noise(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
}

/// Latencies from 0.8 to 1.2 of the mean, and one in a hundred at four times that.
pub fn latencies(count: u64, mean_ns: u64) -> SparseHistogram {
    let mut histogram = Histogram::new();
    let slow = count / 100;
    let rest = count - slow;
    for step in 0..5 {
        let share = if step < 4 { rest / 5 } else { rest - 4 * (rest / 5) };
        histogram.record_n(mean_ns * (8 + step) / 10, share);
    }
    histogram.record_n(mean_ns * 4, slow);
    SparseHistogram::from(&histogram)
}

/// The classes of a shape with their share of the operations.
fn classes(operation: Operation) -> Vec<(&'static str, f64)> {
    let used: Vec<_> = ["read", "write", "discard"]
        .into_iter()
        .zip(mix(operation))
        .filter(|(_, share)| *share > 0)
        .map(|(name, share)| (name, f64::from(share) / 100.0))
        .collect();
    if used.is_empty() { vec![("nop", 1.0)] } else { used }
}

pub fn samples(shape: &Shape) -> PhaseSamples {
    let classes = classes(shape.operation);
    let mut series = Series::new(INTERVAL_NS, Series::CAPACITY_DEFAULT, classes.len());
    let mut state = 7;
    let elapsed_ns = INTERVALS * INTERVAL_NS;
    let mut workers = vec![];
    for worker in 0..shape.threads as usize {
        let mut totals: Vec<ClassTotals> = classes
            .iter()
            .map(|(name, _)| ClassTotals { class: (*name).to_owned(), ..ClassTotals::default() })
            .collect();
        let mut due = vec![0.0; classes.len()];
        let mut deviation = 0.0;
        for interval in 0..INTERVALS {
            // Every deviation is made good by the next interval, so that the rate over all is the one declared.
            deviation = if interval % 2 == 0 { shape.jitter * noise(&mut state) } else { -deviation };
            let rate = shape.operations_per_second / f64::from(shape.threads) * (1.0 + deviation);
            for (at, (_, share)) in classes.iter().enumerate() {
                due[at] += rate * share * INTERVAL_NS as f64 / 1e9;
                let operations = (due[at] + 1e-6) as u64 - totals[at].operations;
                let bytes =
                    if shape.operation == Operation::Nop { 0 } else { operations * shape.block_bytes };
                let latency = latencies(operations, shape.latency_ns);
                totals[at].operations += operations;
                totals[at].bytes += bytes;
                totals[at].latency.merge(&latency);
                series.add(
                    interval * INTERVAL_NS,
                    at,
                    &ClassPoint { operations, bytes, latency, ..ClassPoint::default() },
                );
            }
        }
        let operations: u64 = totals.iter().map(|class| class.operations).sum();
        workers.push(WorkerSamples {
            worker,
            started_ns: 1000,
            first_completion_ns: Some(1000 + shape.latency_ns),
            finished_ns: elapsed_ns - 100 * worker as u64,
            classes: totals,
            cpu_user_ns: operations * shape.cpu_ns / 4,
            cpu_system_ns: operations * shape.cpu_ns * 3 / 4,
            tool_ns: operations * 60,
            ..WorkerSamples::default()
        });
    }
    series.finish(elapsed_ns);
    PhaseSamples {
        classes: classes.iter().map(|(name, _)| (*name).to_owned()).collect(),
        window_ns: Some(elapsed_ns),
        started_ns: 0,
        elapsed_ns,
        process_cpu_user_ns: workers.iter().map(|worker| worker.cpu_user_ns).sum(),
        process_cpu_system_ns: workers.iter().map(|worker| worker.cpu_system_ns).sum(),
        workers,
        series,
        interrupted: None,
    }
}

pub fn phase(shape: &Shape) -> PhaseRecord {
    phase_of(plan(shape), shape)
}

/// A phase of this shape with a plan of any layer.
pub fn phase_of(plan: PhasePlan, shape: &Shape) -> PhaseRecord {
    let samples = samples(shape);
    let summary = summarise(&samples, WarmUp::Auto);
    PhaseRecord {
        plan,
        stage: 0,
        request: 0,
        is_read_back: false,
        started_at: "2026-01-02T03:04:06Z".to_owned(),
        notes: vec![],
        samples,
        summary,
        arrivals: None,
        steady_ending: None,
        host_starts: vec![],
        observations: Observations {
            machine_cpus_busy: Some(1.1),
            other_cpus_busy: Some(0.05),
            unwritten_fraction: Some(0.0),
            cached_before_fraction: Some(0.0),
            ..Observations::default()
        },
        doubts: vec![],
        failure: None,
    }
}

/// A complete record of these phases.
pub fn record(phases: Vec<PhaseRecord>) -> Record {
    Record {
        schema_version: SCHEMA_VERSION,
        strata_version: "0.1.0".to_owned(),
        debug_build: false,
        optimized_build: true,
        command_line: ["strata", "media", "/data/file", "--op", "randread"].map(str::to_owned).to_vec(),
        run_id: "00c0ffee00c0ffee".to_owned(),
        seed: 42,
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        status: Status::Complete,
        failure: None,
        environment: environment(),
        hosts: vec![],
        tool_cost: Some(ToolCost {
            null_ns_per_operation: 38.25,
            clock_read_ns: 9.8,
            clock_source: ClockSource::TimeStampCounter,
            clock_drift_ppm: 3.0,
        }),
        peak_rss_bytes: 24 << 20,
        phases,
        ladder: None,
        stack: None,
        recipes: None,
        suite: None,
        preset: None,
        made: Vec::new(),
    }
}

/// A ladder over depth of one worker on a server with `unloaded_ns` and at most `rate_max` operations a second.
pub fn ladder(depths: &[u32], unloaded_ns: f64, rate_max: f64) -> Record {
    ladder_of(plan, depths, unloaded_ns, rate_max)
}

/// The same with plans of any layer.
pub fn ladder_of(
    plan: impl Fn(&Shape) -> PhasePlan,
    depths: &[u32],
    unloaded_ns: f64,
    rate_max: f64,
) -> Record {
    let rung = |&depth: &u32| {
        let rate = rate_max.min(f64::from(depth) * 1e9 / unloaded_ns);
        let shape = Shape {
            threads: 1,
            depth,
            operations_per_second: rate,
            // The sample's slow hundredth makes its mean 1.03 of the latency asked for.
            latency_ns: (f64::from(depth) / rate * 1e9 / 1.03) as u64,
            jitter: 0.005,
            ..DRIVE
        };
        phase_of(plan(&shape), &shape)
    };
    let phases: Vec<_> = depths.iter().map(rung).collect();
    let points: Vec<_> = phases.iter().map(point).collect();
    let mut record = record(phases);
    record.ladder = Some(LadderRecord {
        refined: Vec::new(),
        dimension: Some(LadderDimension::Depth),
        phases: (0..depths.len()).collect(),
        knee: find_knee(&points, &KneeOptions::default()),
    });
    record
}

fn point(phase: &PhaseRecord) -> LadderPoint {
    let total = &phase.summary.total;
    let latency = total.latency.as_ref().expect("the sample has latencies");
    LadderPoint {
        concurrency: f64::from(phase.plan.load().threads * phase.plan.load().depth),
        operations_per_second: total.operations_per_second,
        latency_ns_mean: latency.mean_ns,
        latency_ns_p50: latency.p50_ns,
        latency_ns_p99: latency.p99_ns,
    }
}

/// One row of a stack of the tests: layer, operation, block size in bytes, operations a second.
pub type StackShape = (&'static str, Operation, u64, f64);

/// A stack of these rows, every phase steady to 1 %.
pub fn stack(rows: &[StackShape]) -> Record {
    let shape = |&(layer, operation, block_bytes, operations_per_second): &StackShape| Shape {
        engine: match layer {
            "null" => "null",
            "memory" => "mem",
            _ => "psync",
        },
        kind: match layer {
            "null" => TargetKind::Null,
            "memory" => TargetKind::Memory,
            _ => TargetKind::File,
        },
        operation,
        block_bytes,
        threads: 1,
        depth: 1,
        direct: layer == "media",
        operations_per_second,
        latency_ns: (1e9 / operations_per_second) as u64,
        jitter: 0.01,
        cpu_ns: 2000,
    };
    let row = |(at, shape): (usize, &StackShape)| {
        let size = if shape.2 >= 1 << 20 { "1 MiB sequential" } else { "4 KiB random" };
        let writes = matches!(shape.1, Operation::Write | Operation::RandWrite);
        StackRow {
            layer: shape.0.to_owned(),
            load: format!("{size} {}", if writes { "write" } else { "read" }),
            phase: Some(at),
            ..StackRow::default()
        }
    };
    let mut record = record(rows.iter().map(|row| phase(&shape(row))).collect());
    record.stack =
        Some(StackRecord { rows: rows.iter().enumerate().map(row).collect(), ..StackRecord::default() });
    record
}

/// A recipe that matters, one that does not, and one that could not be tested.
pub fn recipes() -> RecipesRecord {
    let recipe = |name: &str, factor: f64, finding| RecipeRecord {
        name: name.to_owned(),
        question: "is it faster?".to_owned(),
        without: "one index for all".to_owned(),
        with: "an index of each worker's own".to_owned(),
        unit: "records".to_owned(),
        advice: "give each process an index of its own".to_owned(),
        pairs: vec![],
        factor: Some(RecipeFactor {
            factor,
            low: factor * 0.95,
            high: factor * 1.05,
            without_per_second: 1000.0,
            with_per_second: factor * 1000.0,
        }),
        finding,
        reason: None,
    };
    let untested = RecipeRecord {
        factor: None,
        reason: Some("the store has one target".to_owned()),
        ..recipe("class", 1.0, RecipeFinding::NotTested)
    };
    RecipesRecord {
        target: "vos:/mnt/pmem".to_owned(),
        rounds: 8,
        recipes: vec![
            recipe("index-kv", 3.0, RecipeFinding::Matters),
            recipe("value-size", 1.01, RecipeFinding::DoesNotMatter),
            untested,
        ],
    }
}
