//! A phase of files and directories that is ready: its job, what its workers are going to do, and what they have done.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Error};
use gpu::WorkerNotes;
use layer::memory::{Attached, WorkerMemory};
use layer::observations::{FileActivity, FoundFiles, StonewallActivity};
use layer::{Hosts, RunContext};
use runner::{Job, Opener, WorkerSetup};

use crate::drivers::{self, OpenRequest};
use crate::find::{self, Search};
use crate::operation::FsClass;
use crate::phases::{FsOp, Over};
use crate::plan::FsPlan;
use crate::progress::{self, Barriers, Progress, WearOut};
use crate::set::Shape;
use crate::source::FsSource;
use crate::stock;

/// The hosts that a phase works with on the same targets; none where it is alone with its targets.
fn guests<'a>(context: &'a RunContext, plan: &FsPlan) -> Option<&'a Hosts> {
    context.hosts.as_ref().filter(|_| plan.has_guests())
}

/// The items that a phase makes, as later phases count them; none where it makes nothing that they work on.
fn made_by<'a>(plan: &FsPlan, progress: &'a Progress) -> Option<&'a progress::Made> {
    match (plan.operation, plan.set.shape) {
        (FsOp::Mkdir, _) => Some(&progress.directories),
        (FsOp::Write, Shape::Private | Shape::Shared) => Some(&progress.blocks),
        (FsOp::Create | FsOp::Mknod | FsOp::Write, _) => Some(&progress.files),
        _ => None,
    }
}

/// How many of a rank there are once all is made, as [`made_by`] counts them.
fn all_of(plan: &FsPlan, rank: u32) -> u64 {
    match (plan.operation, plan.set.shape) {
        (FsOp::Mkdir, _) => plan.set.items,
        (_, Shape::Private | Shape::Shared) => plan.geometry.blocks(),
        _ => plan.set.items_of(rank, plan.operation.moves_data()),
    }
}

/// Notes that a phase makes items: later phases work on as many as it made.
pub(super) fn begin_making(plan: &FsPlan, progress: &Progress) {
    if let Some(made) = made_by(plan, progress) {
        made.begin(plan.ranks_here());
        if plan.operation == FsOp::Write && plan.set.shape != Shape::Tree {
            progress.count_blocks_of(plan.geometry.block_size_bytes);
        }
    }
}

/// A phase that is ready.
pub(super) struct Ready {
    pub(super) plan: Arc<FsPlan>,
    pub(super) stores: Vec<Arc<dyn dfs::FileSystem>>,
    /// Functions of the C library that the driver calls; none: those of the process.
    pub(super) functions: Option<Arc<drivers::Functions>>,
    pub(super) progress: Arc<Progress>,
    pub(super) search: Option<Arc<Search>>,
    pub(super) wear_out: Option<Arc<WearOut>>,
    pub(super) barriers: Option<Arc<Barriers>>,
    pub(super) notes: Vec<String>,
    /// Notes of its workers about their devices.
    pub(super) gpu_notes: WorkerNotes,
    /// Name under which hosts meet in it.
    pub(super) meeting: String,
}

impl Ready {
    pub(super) fn job(&self, interrupt: &Arc<AtomicBool>) -> Job {
        let plan = &self.plan;
        let load = &plan.load;
        let classes = classes(plan);
        if let Some(search) = &self.search {
            let search = Arc::clone(search);
            let open = Opener::new(move |_| {
                let (source, driver) = find::worker(&search);
                Ok(WorkerSetup { driver: Box::new(driver), source, notes: Vec::new(), parts: Vec::new() })
            });
            return Job::new(&plan.name, load, classes, open, Arc::clone(interrupt));
        }
        let (shared, progress, wear_out) =
            (Arc::clone(plan), Arc::clone(&self.progress), self.wear_out.clone());
        let (barriers, gpu_notes) = (self.barriers.clone(), self.gpu_notes.clone());
        let (stores, functions) = (self.stores.clone(), self.functions.clone());
        let open = Opener::new(move |worker| {
            let slot_bytes = if shared.operation.moves_data() { shared.geometry.block_size_bytes } else { 1 };
            let needs = shared.worker_needs(worker);
            let arena = Arc::new(Arena::new(needs.depth, slot_bytes as usize, needs.pages())?);
            let memory = WorkerMemory::take(&needs, &arena, &gpu_notes)?;
            let request = OpenRequest {
                plan: Arc::clone(&shared),
                arena: Arc::clone(&arena),
                stores: stores.clone(),
                functions: functions.clone(),
                device: memory.request.clone(),
            };
            let opened = (drivers::find(&shared.engine)?.open)(&request)?;
            let Attached { driver, device, notes } = memory.attach(&needs, opened, &arena)?;
            let meets = (wear_out.as_ref(), barriers.as_ref());
            let source = FsSource::new(&shared, worker, &arena, &progress, meets)?.on_device(device);
            Ok(WorkerSetup { driver, source, notes, parts: Vec::new() })
        });
        let is_one_file = plan.set.shape != Shape::Tree && plan.operation.moves_data();
        Job {
            expected_operations: Some(self.expected_operations()),
            finishes: is_one_file || plan.phase_sync,
            has_items: !is_one_file && plan.operation.phase().calls.len() > 1,
            ..Job::new(&plan.name, load, classes, open, Arc::clone(interrupt))
        }
    }

    /// Trees whose directories the workers of this host go over.
    fn trees_here(&self) -> u64 {
        let plan = &self.plan;
        if plan.set.shared_tree { u64::from(!plan.load.is_guest()) } else { u64::from(plan.load.threads) }
    }

    /// Operations of a whole pass of this host's workers.
    fn expected_operations(&self) -> u64 {
        let plan = &self.plan;
        let ranks = u64::from(plan.load.threads);
        let blocks = plan.geometry.blocks();
        if plan.set.shape != Shape::Tree && plan.operation.moves_data() {
            let others = 2 + u64::from(plan.end_fsync);
            return ranks.saturating_mul(plan.blocks_to_move().saturating_add(others));
        }
        let calls = plan.operation.phase().calls.iter();
        let calls: u64 = calls
            .map(|(class, _)| match class {
                FsClass::Read | FsClass::Write => blocks,
                FsClass::Fsync => u64::from(plan.end_fsync),
                _ => 1,
            })
            .sum();
        let items = match plan.operation.phase().over {
            Over::Nodes | Over::NodesReversed => self.trees_here() * plan.set.counted_nodes(),
            Over::Targets => ranks.min(plan.targets.len() as u64),
            Over::Directories if !plan.operation.makes() => {
                self.progress.directories.sum(plan.ranks_here(), plan.set.items)
            }
            Over::Files if !plan.operation.makes() && plan.set.listed.is_none() => {
                self.progress.files.sum(plan.ranks_here(), plan.set.items)
            }
            _ => self.items_here(),
        };
        if plan.set.listed.is_some() && plan.operation.moves_data() {
            let others = calls.saturating_sub(blocks);
            return items.saturating_mul(others).saturating_add(plan.blocks_here());
        }
        items.saturating_mul(calls)
    }

    /// Items of the ranks that the workers of this host work on.
    fn items_here(&self) -> u64 {
        let plan = &self.plan;
        let of = |rank| plan.set.items_of(rank, plan.operation.moves_data());
        plan.ranks_here().map(of).fold(0, u64::saturating_add)
    }

    /// Has all hosts know how much each has made, where later phases work on what others have.
    pub(super) fn exchange(&self, context: &RunContext) -> Result<(), Error> {
        let plan = &self.plan;
        let (Some(hosts), Some(made)) = (guests(context, plan), made_by(plan, &self.progress)) else {
            return Ok(());
        };
        let here: Vec<u32> = plan.ranks_here().collect();
        made.exchange((hosts, &format!("{}.made", self.meeting)), (plan.set.ranks, &here), |rank| {
            all_of(plan, rank)
        })
    }

    pub(super) fn activity(&self) -> FileActivity {
        let set = &self.plan.set;
        let items = match (self.plan.operation.phase().over, set.shape) {
            (Over::Nodes | Over::NodesReversed, _) => self.trees_here() * set.counted_nodes(),
            (Over::Directories, _) => self.progress.directories.sum(self.plan.ranks_here(), set.items),
            (Over::Walk | Over::Targets, _) => 0,
            (_, Shape::Tree) if set.listed.is_some() => self.items_here(),
            (_, Shape::Tree) => self.progress.files.sum(self.plan.ranks_here(), set.items),
            _ => {
                let (bytes, all) = (self.plan.geometry.block_size_bytes, self.plan.geometry.blocks());
                let of = |rank| self.progress.blocks_of(rank, bytes, all);
                self.plan.ranks_here().map(of).fold(0, u64::saturating_add)
            }
        };
        let stonewall = self.wear_out.as_ref().and_then(|wall| {
            let (items_max, items_min, items) = wall.seen()?;
            Some(StonewallActivity { after_ns: wall.after_ns(), items_max, items_min, items })
        });
        let found = self.search.as_ref().map(|search| {
            let (entries, matched) = search.found();
            FoundFiles { entries, matched }
        });
        FileActivity { items, stonewall, found, grown_bytes: stock::grown_bytes(&self.stores) }
    }
}

/// Classes that the operations of a plan can be of.
fn classes(plan: &FsPlan) -> Vec<usize> {
    let calls = plan.operation.phase().calls.iter().map(|(class, _)| *class);
    let syncs = plan.end_fsync || plan.fsync_every.is_some();
    let mut classes: Vec<usize> =
        calls.filter(|class| *class != FsClass::Fsync || syncs).map(|class| class as usize).collect();
    classes.extend(plan.phase_sync.then_some(FsClass::Syncfs as usize));
    classes.sort_unstable();
    classes.dedup();
    classes
}
