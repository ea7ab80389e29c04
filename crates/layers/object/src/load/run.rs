//! One stage: jobs for the runner, what is seen around them, and their outcomes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Error};
use gpu::{GpuWatch, WorkerNotes};
use host::block::DeviceNumber;
use host::traffic::{self, Traffic};
use layer::memory::{Attached, WorkerMemory};
use layer::observations::{AcknowledgedFile, Observations, StoreActivity, StoreSpace};
use layer::{CacheBefore, Part, Seen, device_activity};
use runner::{GRACE_NS, Job, Opener, Outcome, WorkerSetup};

use super::Store;
use crate::acknowledged::{Cost, Recorder};
use crate::plan::ObjectPlan;
use crate::{Backend, ObjectSource, OpenRequest};

/// Time beyond the longest wait of an operation that a driver may take to give it up, in nanoseconds.
const GIVE_UP_NS: u64 = 5_000_000_000;

/// A phase with the store that it is on.
pub(super) struct Ready {
    pub(super) plan: ObjectPlan,
    pub(super) store: Arc<Store>,
    /// Number that verified values carry, and whether those of other runs are good too.
    pub(super) run: u64,
    pub(super) accepts_foreign: bool,
    /// Series of writes that are older versions for it.
    pub(super) replaced: Vec<u64>,
    /// Notes of its workers about their devices.
    pub(super) gpu_notes: WorkerNotes,
}

/// The runner's job for a phase.
fn job(
    ready: &Ready,
    backend: Arc<dyn Backend>,
    recorder: Option<Arc<Recorder>>,
    interrupt: Arc<AtomicBool>,
) -> Result<Job, Error> {
    let plan = Arc::new(ready.plan.clone());
    let (run, accepts_foreign, flag) = (ready.run, ready.accepts_foreign, Arc::clone(&interrupt));
    let (replaced, gpu_notes) = (ready.replaced.clone(), ready.gpu_notes.clone());
    let mut classes: Vec<usize> = plan.operations().map(|operation| operation as usize).collect();
    classes.sort_unstable();
    classes.dedup();
    let shared = Arc::clone(&plan);
    let recorder = match recorder {
        Some(recorder) => Some((recorder.begin_phase(&plan)?, recorder)),
        None => None,
    };
    let open = move |worker: u32| {
        let plan = Arc::clone(&shared);
        let needs = shared.worker_needs(worker);
        let arena = Arc::new(Arena::new(needs.depth, slot_bytes(&plan), needs.pages())?);
        let memory = WorkerMemory::take(&needs, &arena, &gpu_notes)?;
        let worker = plan.part_of(worker);
        let source = ObjectSource::new(&plan, worker, Arc::clone(&arena), run, accepts_foreign)?;
        let mut source = source.without(&replaced);
        if let Some((phase, recorder)) = &recorder {
            source = source.recording(Arc::clone(recorder), *phase, worker);
        }
        let request = OpenRequest { worker, plan, arena: Arc::clone(&arena), interrupt: Arc::clone(&flag) };
        let opened = backend.open(&request)?;
        let Attached { driver, device, notes } = memory.attach(&needs, opened, &arena)?;
        Ok(WorkerSetup { driver, source: source.on_device(&shared, device), notes, parts: Vec::new() })
    };
    Ok(Job {
        expected_operations: crate::operations_of(&plan),
        grace_ns: GRACE_NS.max(plan.options.timeout_ns.saturating_add(GIVE_UP_NS)),
        ..Job::new(&plan.name, &plan.load, classes, Opener::new(open), interrupt)
    })
}

/// Bytes of a worker's buffers: the largest value, or what a short read asks for.
fn slot_bytes(plan: &ObjectPlan) -> usize {
    plan.dataset.value_size_bytes_max.max(plan.short_read_bytes.unwrap_or(0)).max(1) as usize
}

/// Phases on object stores that are ready to run.
pub(super) struct ObjectPart {
    stage: Vec<Ready>,
    jobs: Vec<Job>,
    recorders: Vec<Option<(Cost, Arc<Recorder>)>>,
    watches: Vec<StoreWatch>,
    /// Processor time of engines that this process has started, when the phases began.
    children_cpu_ns: Option<u64>,
}

impl ObjectPart {
    /// Gets the phases of a stage ready: stores are connected to and prepared.
    ///
    /// # Errors
    /// When a phase cannot begin.
    pub(super) fn new(stage: Vec<Ready>, interrupt: &Arc<AtomicBool>) -> Result<Self, Error> {
        let mut jobs = Vec::with_capacity(stage.len());
        let mut recorders = Vec::with_capacity(stage.len());
        for ready in &stage {
            let backend = ready.store.connect()?;
            backend.prepare(&ready.plan)?;
            if ready.plan.options.cache == CacheBefore::Drop {
                backend.drop_cache()?;
            }
            let recorder = ready.store.recorder(ready.run)?;
            recorders.push(recorder.clone().map(|recorder| (recorder.cost(), recorder)));
            jobs.push(job(ready, backend, recorder, Arc::clone(interrupt))?);
        }
        Ok(Self { stage, jobs, recorders, watches: Vec::new(), children_cpu_ns: None })
    }
}

impl Part for ObjectPart {
    fn jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }

    fn begin(&mut self) -> Result<(), Error> {
        let is_served = self.stage.iter().any(|ready| ready.plan.engine == "engine");
        self.children_cpu_ns = host::activity::children_cpu_ns().filter(|_| is_served);
        self.watches = self.stage.iter().map(StoreWatch::begin).collect();
        Ok(())
    }

    /// Engines that this process has started serve the load.
    fn stop(&mut self) -> u64 {
        let now = host::activity::children_cpu_ns();
        self.children_cpu_ns.zip(now).map_or(0, |(before, now)| now.saturating_sub(before))
    }

    fn end(self: Box<Self>, mut outcomes: Vec<Outcome>, machine: &Observations) -> Vec<Seen> {
        for (outcome, ready) in outcomes.iter_mut().zip(&self.stage) {
            outcome.notes.splice(0..0, ready.store.notes());
        }
        let mut seen = Vec::with_capacity(outcomes.len());
        for (((mut outcome, ready), watch), recorder) in
            outcomes.into_iter().zip(&self.stage).zip(self.watches).zip(self.recorders)
        {
            let mut observed = watch.end(ready, machine);
            if let (Some((before, recorder)), Some(store)) = (recorder, &mut observed.store) {
                store.acknowledged = Some(settle(&recorder, before, &mut outcome));
            }
            seen.push((outcome, observed));
        }
        seen
    }
}

/// Has what was acknowledged in the phase written; what that cost. A file that cannot be written fails the phase.
fn settle(recorder: &Recorder, before: Cost, outcome: &mut Outcome) -> AcknowledgedFile {
    if let Err(error) = recorder.settle() {
        outcome.failure.get_or_insert_with(|| error.to_string());
    }
    let cost = recorder.cost() - before;
    AcknowledgedFile {
        file: recorder.path().display().to_string(),
        updates: cost.updates,
        bytes: cost.bytes,
        write_ns: cost.write_ns,
        waited_ns: cost.waited_ns,
    }
}

/// A store, the drive under one in this process, and the GPUs that its values lie on, just before a stage.
struct StoreWatch {
    before: Option<StoreSpace>,
    device: Option<(DeviceNumber, Traffic)>,
    gpu: Option<GpuWatch>,
}

impl StoreWatch {
    fn begin(ready: &Ready) -> Self {
        let store = &ready.store;
        let device = store.directory().and_then(traffic::device_of);
        let device = device.and_then(|device| Some((device, Traffic::read(device)?)));
        let gpu = ready.plan.memory.gpu().filter(|_| ready.plan.moves_values());
        Self { before: space(store), device, gpu: gpu.and_then(|gpu| GpuWatch::begin(&gpu.devices)) }
    }

    fn end(self, ready: &Ready, common: &Observations) -> Observations {
        let store = &ready.store;
        let device = self.device.and_then(|(device, before)| device_activity(device, &before));
        let told = store.told();
        Observations {
            store: Some(StoreActivity {
                targets: told.targets,
                durable_by: told.durable_by,
                before: self.before,
                after: space(store),
                acknowledged: None,
            }),
            device_read_bytes: device.as_ref().map(|device| device.read_bytes),
            device_written_bytes: device.as_ref().map(|device| device.written_bytes),
            devices: device.into_iter().collect(),
            gpu: self.gpu.map(|watch| watch.end(&ready.gpu_notes)),
            ..common.clone()
        }
    }
}

/// The space of a store, where it can be told.
fn space(store: &Store) -> Option<StoreSpace> {
    let info = store.connect().ok()?.pool().ok()??;
    Some(StoreSpace {
        scm_bytes: info.scm_bytes,
        scm_free_bytes: info.scm_free_bytes,
        nvme_bytes: info.nvme_bytes,
        nvme_free_bytes: info.nvme_free_bytes,
        index_bytes: info.index_bytes,
        grown_bytes: info.grown_bytes,
        containers: info.containers,
    })
}
