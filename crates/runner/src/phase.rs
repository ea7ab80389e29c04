//! One phase from its barrier to its last completion.

use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use driver::{Clock, Error, ErrorKind, Operation, Source};
use host::activity::Usage;
use statistics::{PhaseSamples, Snapshot, WorkerSamples};
use units::Rate;
use workload::arrival::Arrivals;
use workload::plan::LoadPlan;
use workload::spec::Warmup;

use crate::collector::Collector;
use crate::exchange::{Exchange, Interval};
use crate::job::{ArrivalTally, Job, Outcome, Station};
use crate::placement::Placement;
use crate::worker::{Shared, Window, Worker, WorkerEnd};

/// How often the coordinator looks after its workers.
const TICK: Duration = Duration::from_millis(10);
/// Time between two snapshots.
const SNAPSHOT_NS: u64 = 100_000_000;
/// How long operations in flight may take to come back after the end, before their worker is given up.
const GRACE_NS: u64 = 30_000_000_000;

/// The start that workers wait for: set once, to the absolute start time or to "do not start".
#[derive(Default)]
struct Gate {
    state: Mutex<Option<Option<u64>>>,
    opened: Condvar,
}

impl Gate {
    fn open(&self, start: Option<u64>) {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *state = Some(start);
        self.opened.notify_all();
    }

    fn wait(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        loop {
            match *state {
                Some(start) => return start,
                None => state = self.opened.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner),
            }
        }
    }
}

/// What a worker's thread tells the coordinator.
enum Message {
    Ready(Vec<String>),
    Refused(Error),
    Ended(u32, Box<WorkerEnd>),
    Panicked(u32, String),
}

/// What a worker's thread needs; shared by all of them.
struct Floor<Op, S, C> {
    job: Job<Op, S>,
    clock: C,
    shared: Shared,
    exchanges: Vec<Exchange>,
    gate: Gate,
}

/// Runs one phase: opens a station for each worker on its own thread, lets all begin at once, collects what they measure and gives
/// it back. `observe` is called on this thread about ten times a second.
///
/// # Errors
/// When a station could not be opened: nothing was measured then. What fails later is in the outcome.
pub fn run_phase<Op, S, C>(
    job: Job<Op, S>,
    clock: C,
    observe: &mut dyn FnMut(&Snapshot),
) -> Result<Outcome, Error>
where
    Op: Operation,
    S: Source<Op> + 'static,
    C: Clock + 'static,
{
    let places = Placement::plan(&job.load)?;
    let mut collector = Collector::new(&job);
    let (exchanges, buffers): (Vec<_>, Vec<_>) =
        (0..job.load.threads).map(|_| Exchange::new(job.classes.len())).unzip();
    let shared = Shared {
        interrupt: Arc::clone(&job.interrupt),
        stop: AtomicBool::new(false),
        interval_ns: AtomicU64::new(job.load.interval_ns),
    };
    let floor = Arc::new(Floor { job, clock, shared, exchanges, gate: Gate::default() });
    let (sender, receiver) = channel();
    for ((number, place), buffer) in (0u32..).zip(places.clone()).zip(buffers) {
        let (shared_floor, sender) = (Arc::clone(&floor), sender.clone());
        let spawned = std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || work(&shared_floor, number, &place, buffer, &sender));
        if let Err(error) = spawned {
            floor.gate.open(None);
            return Err(Error::system("threads", "cannot start a worker", error).with("worker", number));
        }
    }
    drop(sender);
    let notes = await_ready(&floor, &receiver)?;
    collector.open_window();
    let open_ns = floor.clock.now_ns() + ramp_ns(&floor.job.load);
    floor.gate.open(Some(open_ns));
    let ends = watch(&floor, &receiver, &mut collector, open_ns, observe);
    let usage = collector.usage();
    Ok(conclude(&floor, collector, ends, &places, notes, usage, open_ns))
}

fn ramp_ns(load: &LoadPlan) -> u64 {
    if let Warmup::Fixed(ns) = load.warmup { ns } else { 0 }
}

/// Waits until every worker has opened its station; lets nobody begin when one could not.
fn await_ready<Op, S, C>(
    floor: &Floor<Op, S, C>,
    receiver: &Receiver<Message>,
) -> Result<Vec<String>, Error> {
    let mut notes: Vec<String> = Vec::new();
    let mut refusal = None;
    for _ in 0..floor.job.load.threads {
        match receiver.recv() {
            Ok(Message::Ready(more)) => more.into_iter().for_each(|note| {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }),
            Ok(Message::Refused(error)) => refusal = refusal.or(Some(error)),
            Ok(Message::Panicked(worker, text)) => {
                let error = Error::new(ErrorKind::Run, "open", format!("worker {worker} panicked: {text}"));
                refusal = refusal.or(Some(error));
            }
            Ok(Message::Ended(..)) | Err(_) => {}
        }
    }
    match refusal {
        Some(error) => {
            floor.gate.open(None);
            Err(error)
        }
        None => Ok(notes),
    }
}

/// One worker's thread.
fn work<Op, S, C>(
    floor: &Floor<Op, S, C>,
    number: u32,
    place: &Placement,
    buffer: Box<Interval>,
    sender: &Sender<Message>,
) where
    Op: Operation,
    S: Source<Op>,
    C: Clock,
{
    let result = catch_unwind(AssertUnwindSafe(|| {
        let station = match place.apply().and_then(|()| (floor.job.open)(number)) {
            Ok(station) => station,
            Err(error) => return Some(Message::Refused(error)),
        };
        let Station { mut driver, source, notes } = station;
        // The receiver lives as long as the phase; when it is gone nobody waits for this worker.
        sender.send(Message::Ready(notes)).ok()?;
        let open_ns = floor.gate.wait()?;
        let window = window(&floor.job.load, number, open_ns);
        let Floor { job, clock, shared, exchanges, .. } = floor;
        let mut worker = Worker::new(
            driver.as_mut(),
            source,
            clock.clone(),
            &job.load,
            &job.classes,
            window,
            shared,
            &exchanges[number as usize],
            buffer,
        );
        let result = run(&mut worker, &job.load, number, open_ns);
        let end = worker.into_end(result);
        if end.failure.is_some() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        Some(Message::Ended(number, Box::new(end)))
    }));
    let message = result.unwrap_or_else(|panic| {
        floor.shared.stop.store(true, Ordering::Relaxed);
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        Some(Message::Panicked(number, text))
    });
    if let Some(message) = message {
        // Nobody listens any more when the phase was given up.
        let _ = sender.send(message);
    }
}

/// The worker's share of the limits: counts are dealt out evenly, the first workers take the remainder.
fn window(load: &LoadPlan, number: u32, open_ns: u64) -> Window {
    let deal = |total: Option<u64>| {
        total.map_or(u64::MAX, |total| {
            let threads = u64::from(load.threads);
            total / threads + u64::from(u64::from(number) < total % threads)
        })
    };
    Window {
        open_ns,
        close_ns: load.limit.time_ns.map_or(u64::MAX, |time_ns| open_ns.saturating_add(time_ns)),
        operations: deal(load.limit.operations),
        bytes: deal(load.limit.bytes),
    }
}

fn run<Op: Operation, S: Source<Op>, C: Clock>(
    worker: &mut Worker<'_, Op, S, C>,
    load: &LoadPlan,
    number: u32,
    open_ns: u64,
) -> Result<(), Error> {
    let Some(plan) = load.arrivals else { return worker.run_closed() };
    // One nanosecond of slack instead of 50 us: a sleeping worker comes back when its operation is due.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let arrivals = Rate::new(plan.rate_per_second)
        .and_then(|rate| Arrivals::new(plan.kind, rate, number, load.threads, load.seed));
    let mut arrivals = arrivals.map_err(|error| Error::usage("rate", error.to_string()))?;
    worker.run_open(&mut arrivals, open_ns - ramp_ns(load))
}

/// Collects until every worker has ended or was given up; the ends by worker.
fn watch<Op: Operation, S, C: Clock>(
    floor: &Floor<Op, S, C>,
    receiver: &Receiver<Message>,
    collector: &mut Collector,
    open_ns: u64,
    observe: &mut dyn FnMut(&Snapshot),
) -> Vec<Result<Box<WorkerEnd>, String>> {
    let threads = floor.job.load.threads as usize;
    let close_ns = floor.job.load.limit.time_ns.map(|time_ns| open_ns.saturating_add(time_ns));
    let mut ends: Vec<Option<Result<Box<WorkerEnd>, String>>> = (0..threads).map(|_| None).collect();
    let mut next_snapshot_ns = open_ns + SNAPSHOT_NS;
    let mut over_since = close_ns;
    let mut is_warming_up = ramp_ns(&floor.job.load) > 0;
    while ends.iter().any(Option::is_none) {
        match receiver.recv_timeout(TICK) {
            Ok(Message::Ended(worker, end)) => {
                collector.ended(worker as usize);
                ends[worker as usize] = Some(Ok(end));
            }
            Ok(Message::Panicked(worker, text)) => {
                collector.ended(worker as usize);
                ends[worker as usize] = Some(Err(format!("worker {worker} panicked: {text}")));
            }
            Ok(Message::Ready(_) | Message::Refused(_)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        collector.poll(&floor.exchanges, &floor.shared);
        let now = floor.clock.now_ns();
        if is_warming_up && now >= open_ns {
            is_warming_up = false;
            collector.open_window();
        }
        if now >= next_snapshot_ns {
            next_snapshot_ns = now + SNAPSHOT_NS;
            observe(&collector.snapshot(now.saturating_sub(open_ns)));
        }
        let stopped =
            floor.shared.stop.load(Ordering::Relaxed) || floor.shared.interrupt.load(Ordering::Relaxed);
        if stopped && over_since.is_none_or(|since| since > now) {
            over_since = Some(now);
        }
        if over_since.is_some_and(|since| now > since + GRACE_NS) {
            break;
        }
    }
    collector.poll(&floor.exchanges, &floor.shared);
    let lost = |worker: usize| {
        format!("worker {worker} did not come back within 30 s of the end: an operation hangs")
    };
    ends.into_iter().enumerate().map(|(worker, end)| end.unwrap_or_else(|| Err(lost(worker)))).collect()
}

/// Puts the workers' accounts and what was collected together.
fn conclude<Op: Operation, S, C: Clock>(
    floor: &Floor<Op, S, C>,
    mut collector: Collector,
    ends: Vec<Result<Box<WorkerEnd>, String>>,
    places: &[Placement],
    notes: Vec<String>,
    usage: Usage,
    open_ns: u64,
) -> Outcome {
    let load = &floor.job.load;
    for (worker, end) in ends.iter().enumerate() {
        if let Ok(end) = end {
            collector.absorb(worker, &end.last);
        }
    }
    let interrupted = floor.shared.interrupt.load(Ordering::Relaxed);
    let finished_ns = ends.iter().flatten().map(|end| end.finished_ns).max().unwrap_or(0);
    let is_whole = !interrupted && ends.iter().all(|end| end.as_ref().is_ok_and(|end| end.failure.is_none()));
    // A window that somebody worked in until it closed lasts as long as planned, even when the last completion fell short of it.
    let reached_close = ends.iter().flatten().any(|end| end.reached_close);
    let elapsed_ns = match load.limit.time_ns {
        Some(time_ns) if is_whole && reached_close => time_ns,
        _ => finished_ns,
    };
    let elapsed_ns = elapsed_ns.max(1).min(floor.clock.now_ns().saturating_sub(open_ns).max(1));
    let (classes, totals, series) = collector.finish(elapsed_ns);
    let mut arrivals = load.arrivals.map(|_| ArrivalTally::default());
    let mut workers = Vec::with_capacity(ends.len());
    for (worker, (end, totals)) in ends.into_iter().zip(totals).enumerate() {
        let core = places[worker].core();
        workers.push(match end {
            Ok(end) => {
                if let Some(arrivals) = &mut arrivals {
                    *arrivals += end.arrivals;
                }
                account(worker, core, *end, totals)
            }
            Err(failure) => WorkerSamples {
                worker,
                core,
                classes: totals,
                failure: Some(failure),
                ..WorkerSamples::default()
            },
        });
    }
    let failure = workers.iter().find_map(|worker| worker.failure.clone());
    let failure = failure.or_else(|| interrupted.then(|| "interrupted".to_owned()));
    let samples = PhaseSamples {
        classes,
        window_ns: load.limit.time_ns,
        started_ns: open_ns,
        elapsed_ns,
        workers,
        series,
        interrupted: interrupted.then(|| "interrupted by a signal".to_owned()),
        process_cpu_user_ns: usage.user_ns,
        process_cpu_system_ns: usage.system_ns,
    };
    Outcome { samples, notes, arrivals, failure }
}

fn account(
    worker: usize,
    core: Option<usize>,
    end: WorkerEnd,
    classes: Vec<statistics::ClassTotals>,
) -> WorkerSamples {
    WorkerSamples {
        worker,
        core,
        started_ns: end.started_ns,
        first_completion_ns: end.first_completion_ns,
        finished_ns: end.finished_ns,
        classes,
        errors: end.errors,
        drained_operations: end.drained_operations,
        cpu_user_ns: end.usage.user_ns,
        cpu_system_ns: end.usage.system_ns,
        tool_ns: end.tool_ns,
        fill_ns: end.fill_ns,
        verify_ns: end.verify_ns,
        failure: end.failure,
    }
}
