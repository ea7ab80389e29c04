//! Decides what a worker does next: the calls on each of its items one after the other, or the blocks of its file.

use std::sync::Arc;

use driver::{Arena, Error, Fault, Source};
use units::random::derive_seed;
use workload::access::Access;
use workload::plan::Pattern;

use layer::memory::OnDevice;

use crate::content::Content;
use crate::operation::{FsClass, FsOperation, NameKind};
use crate::phases::{Call, FsOp, Over};
use crate::plan::{FsPlan, OffsetOrder};
use crate::progress::{AtBarriers, AtWall, Barriers, Progress, Wall, WearOut};
use crate::set::Shape;

/// Numbers below `count` in an order, each as often as the order says, `count` of them.
pub(crate) struct Order {
    access: Option<Access>,
    left: u64,
}

impl Order {
    /// All numbers below `count`.
    pub(crate) fn new(order: OffsetOrder, count: u64, seed: u64) -> Result<Self, Error> {
        let pattern = match order {
            OffsetOrder::Sequential => Pattern::Sequential,
            OffsetOrder::Backward => Pattern::Backward,
            OffsetOrder::Random => Pattern::Permutation,
            OffsetOrder::RandomRepeats => Pattern::Uniform,
        };
        let access = (count > 0).then(|| Access::new(&pattern, count, seed)).transpose();
        let access = access.map_err(|error| Error::usage("plan", error.to_string()))?;
        Ok(Self { access, left: count })
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        self.access.as_mut().map(|access| access.next().block)
    }
}

/// An item that a slot works on.
#[derive(Default)]
struct Current {
    item: u64,
    /// Number of its open file: an item that moves to another slot keeps it.
    handle: u32,
    is_in_flight: bool,
    is_active: bool,
    is_first: bool,
    has_failed: bool,
    is_open: bool,
    /// Place in the calls of the phase.
    call: usize,
    blocks: Option<Order>,
    writes: u64,
    sync_is_due: bool,
}

/// The one file of a worker whose blocks are read or written.
struct OneFile {
    blocks: Order,
    opening: bool,
    is_open: bool,
    has_failed: bool,
    sync_is_due: bool,
    has_final_sync: bool,
    writes: u64,
}

/// The operations of one worker.
pub(crate) struct FsSource {
    plan: Arc<FsPlan>,
    rank: u32,
    kind: NameKind,
    calls: &'static [Call],
    items: Order,
    /// Nodes are gone over from the last to the first.
    node_count: u64,
    slots: Vec<Current>,
    file: Option<OneFile>,
    content: Content,
    progress: Arc<Progress>,
    wall: Option<AtWall>,
    barriers: Option<AtBarriers>,
    has_phase_sync: bool,
    done: u64,
    is_waiting: bool,
    waits_at_wall: bool,
}

impl FsSource {
    /// The same with buffers on a device, or registered ones.
    pub(crate) fn on_device(mut self, device: OnDevice) -> Self {
        self.content.on_device(device);
        self
    }

    /// The source of worker `worker` of this host.
    ///
    /// # Errors
    /// Orders and content that cannot be made.
    pub(crate) fn new(
        plan: &Arc<FsPlan>,
        worker: u32,
        arena: &Arc<Arena>,
        progress: &Arc<Progress>,
        meets: (Option<&Arc<WearOut>>, Option<&Arc<Barriers>>),
    ) -> Result<Self, Error> {
        let number = plan.load.worker(worker);
        let syncs_here = plan.operation.phase().over == Over::Targets && plan.load.place.is_some();
        // Each host has data of its own in memory, of all targets.
        let rank = if syncs_here { worker } else { plan.rank_of(number) };
        let seed = derive_seed(plan.load.seed, &[u64::from(number)]);
        let (kind, items) = share(plan, rank, progress);
        // Directories of a tree have an order of their own.
        let item_order = if kind == NameKind::Node { OffsetOrder::Sequential } else { plan.item_order };
        let is_one_file = plan.set.shape != Shape::Tree && plan.operation.moves_data();
        let file = if is_one_file {
            let all = plan.geometry.blocks();
            let blocks = match plan.operation {
                FsOp::Read => progress.blocks_of(rank, plan.geometry.block_size_bytes, all),
                _ => all,
            };
            let mut order = Order::new(plan.geometry.order, blocks, seed)?;
            let moved = plan.blocks_to_move();
            let repeats = plan.geometry.order == OffsetOrder::RandomRepeats || moved > all;
            order.left = if repeats && blocks > 0 { moved } else { blocks.min(moved) };
            Some(OneFile {
                blocks: order,
                opening: false,
                is_open: false,
                has_failed: false,
                sync_is_due: false,
                has_final_sync: plan.end_fsync && plan.operation == FsOp::Write,
                writes: 0,
            })
        } else {
            None
        };
        Ok(Self {
            rank,
            kind,
            calls: plan.operation.phase().calls,
            items: Order {
                left: items.saturating_mul(plan.item_passes),
                ..Order::new(item_order, items, seed)?
            },
            node_count: items,
            slots: (0..plan.load.depth).map(|handle| Current { handle, ..Current::default() }).collect(),
            file,
            content: Content::new(plan, arena, number)?,
            progress: Arc::clone(progress),
            wall: meets.0.map(AtWall::new),
            barriers: meets.1.map(AtBarriers::new),
            has_phase_sync: plan.phase_sync,
            done: 0,
            is_waiting: false,
            waits_at_wall: false,
            plan: Arc::clone(plan),
        })
    }

    fn operation(&self, class: FsClass, slot: u32, item: u64) -> FsOperation {
        let handle = self.slots[slot as usize].handle;
        FsOperation { handle, rank: self.rank, ..FsOperation::new(class, self.kind, slot, item) }
    }

    /// Whether another item, or block, begins.
    fn passes_wall(&mut self) -> bool {
        let Some(wall) = &mut self.wall else { return true };
        match wall.step(self.done) {
            Wall::Go => true,
            Wall::End => false,
            Wall::Wait => {
                self.waits_at_wall = true;
                self.is_waiting = true;
                false
            }
        }
    }

    /// The next call on the item of a slot; none where it is done with.
    fn step(&mut self, slot: u32) -> Option<FsOperation> {
        loop {
            let current = &mut self.slots[slot as usize];
            if current.has_failed && current.is_open {
                // What was opened is closed all the same.
                current.call = self.calls.iter().position(|(class, _)| *class == FsClass::Close)?;
                current.has_failed = false;
            } else if current.has_failed {
                return None;
            }
            let (class, is_second) = *self.calls.get(current.call)?;
            let (item, is_first) = (current.item, current.is_first);
            match class {
                FsClass::Read | FsClass::Write => match self.next_block(slot, class) {
                    Some(operation) => return Some(operation),
                    None => self.slots[slot as usize].call += 1,
                },
                FsClass::Fsync if !self.plan.end_fsync => current.call += 1,
                _ => {
                    current.call += 1;
                    current.is_first = false;
                    current.is_open &= class != FsClass::Close;
                    let is_last = current.call == self.calls.len();
                    return Some(FsOperation {
                        is_second,
                        is_first,
                        is_last,
                        ..self.operation(class, slot, item)
                    });
                }
            }
        }
    }

    /// The next block of the file of a slot.
    fn next_block(&mut self, slot: u32, class: FsClass) -> Option<FsOperation> {
        let current = &mut self.slots[slot as usize];
        let item = current.item;
        if std::mem::take(&mut current.sync_is_due) {
            return Some(self.operation(FsClass::Fsync, slot, item));
        }
        let block = current.blocks.as_mut()?.next()?;
        if class == FsClass::Write {
            current.writes += 1;
            current.sync_is_due =
                self.plan.fsync_every.is_some_and(|every| current.writes.is_multiple_of(every));
        }
        let (offset_bytes, length_bytes) = self.plan.place(self.rank, item, block);
        Some(FsOperation { offset_bytes, length_bytes, ..self.operation(class, slot, item) })
    }

    /// Gives a slot its next item; false where none is left.
    fn begin_item(&mut self, slot: u32) -> bool {
        let over = self.plan.operation.phase().over;
        // A directory is made after the one that it lies in, and removed before it: one at a time.
        let is_tree = matches!(over, Over::Nodes | Over::NodesReversed);
        if (is_tree && self.slots.iter().any(|other| other.is_active)) || !self.passes_wall() {
            return false;
        }
        let Some(mut item) = self.items.next() else { return false };
        match over {
            Over::Nodes => item += self.plan.set.first_node(),
            Over::NodesReversed => item = self.node_count - 1 - item + self.plan.set.first_node(),
            _ => {}
        }
        let blocks = if self.plan.operation.moves_data() {
            let seed = derive_seed(self.plan.load.seed, &[u64::from(self.rank), item]);
            Order::new(self.plan.geometry.order, self.plan.blocks_of(self.rank, item), seed).ok()
        } else {
            None
        };
        let handle = self.slots[slot as usize].handle;
        self.slots[slot as usize] =
            Current { item, handle, is_active: true, is_first: true, blocks, ..Current::default() };
        true
    }

    /// The next call on the item of a slot, on its next item, or on one of another slot that goes on.
    fn next_of_items(&mut self, slot: u32) -> Option<FsOperation> {
        let at = slot as usize;
        loop {
            if self.slots[at].is_active {
                if let Some(operation) = self.step(slot) {
                    self.slots[at].is_in_flight = true;
                    return Some(operation);
                }
                self.slots[at].is_active = false;
                self.done += 1;
            }
            if self.begin_item(slot) {
                continue;
            }
            match self.slots.iter().position(|other| other.is_active && !other.is_in_flight) {
                Some(other) => self.slots.swap(at, other),
                None => {
                    self.is_waiting |= self.slots.iter().any(|other| other.is_active);
                    return None;
                }
            }
        }
    }

    /// Nothing to do until other workers have come as far.
    fn wait_for_others(&mut self) -> Option<FsOperation> {
        (self.is_waiting, self.waits_at_wall) = (true, true);
        None
    }

    /// The next block of the one file.
    fn next_of_file(&mut self, slot: u32) -> Option<FsOperation> {
        let handle = self.plan.load.depth;
        let writes = self.plan.operation == FsOp::Write;
        let file = self.file.as_mut()?;
        if file.has_failed {
            self.barriers.iter_mut().for_each(|barriers| {
                barriers.all_moved();
            });
            return None;
        }
        if !file.is_open {
            self.is_waiting = file.opening;
            if std::mem::replace(&mut file.opening, true) {
                return None;
            }
            let class = if writes { FsClass::Create } else { FsClass::Open };
            return Some(FsOperation { handle, ..self.operation(class, slot, 0) });
        }
        if std::mem::take(&mut file.sync_is_due) {
            return Some(FsOperation { handle, ..self.operation(FsClass::Fsync, slot, 0) });
        }
        if self.barriers.as_mut().is_some_and(|barriers| !barriers.all_opened()) {
            return self.wait_for_others();
        }
        let passes = self.passes_wall();
        if !passes && self.waits_at_wall {
            return None;
        }
        let file = self.file.as_mut()?;
        let Some(block) = passes.then(|| file.blocks.next()).flatten() else {
            if let Some(wall) = &mut self.wall {
                wall.arrive(self.done);
            }
            let is_last = self.barriers.as_mut().is_none_or(AtBarriers::all_moved);
            return if is_last { None } else { self.wait_for_others() };
        };
        if writes {
            file.writes += 1;
            file.sync_is_due = self.plan.fsync_every.is_some_and(|every| file.writes.is_multiple_of(every));
        }
        self.done += 1;
        let (offset_bytes, length_bytes) = self.plan.geometry.place(&self.plan.set, self.rank, block);
        let class = if writes { FsClass::Write } else { FsClass::Read };
        Some(FsOperation {
            handle,
            is_first: true,
            offset_bytes,
            length_bytes,
            ..self.operation(class, slot, 0)
        })
    }

    /// Notes what an operation has made.
    fn note(&mut self, operation: &FsOperation) {
        let progress = &self.progress;
        match operation.class {
            FsClass::Create | FsClass::Open => match &mut self.file {
                Some(file) => file.is_open = true,
                None => {
                    self.slots[operation.slot as usize].is_open = true;
                    progress.files.reach(operation.rank, operation.item + 1);
                }
            },
            FsClass::Mknod => progress.files.reach(operation.rank, operation.item + 1),
            FsClass::Mkdir if operation.kind == NameKind::Directory => {
                progress.directories.reach(operation.rank, operation.item + 1);
            }
            FsClass::Write if self.file.is_some() => progress.blocks.reach(self.rank, self.done),
            _ => {}
        }
    }
}

/// Kind of the names of a worker's share, and how many there are of the rank that it works on.
fn share(plan: &FsPlan, rank: u32, progress: &Progress) -> (NameKind, u64) {
    let set = &plan.set;
    let makes = plan.operation.makes();
    let items = set.items_of(rank, plan.operation.moves_data());
    match plan.operation.phase().over {
        Over::Nodes | Over::NodesReversed => {
            // One rank of each shared tree makes and removes it, so that parents are there before their children.
            let is_owner = !set.shared_tree || (rank as usize) < plan.targets.len();
            (NameKind::Node, if is_owner { set.counted_nodes() } else { 0 })
        }
        Over::Directories if makes => (NameKind::Directory, set.items),
        Over::Directories => (NameKind::Directory, progress.directories.of(rank, set.items)),
        Over::Files if set.shape == Shape::Shared => {
            let is_owner = (rank as usize) < plan.targets.len() || !plan.operation.phase().changes;
            (NameKind::File, u64::from(is_owner))
        }
        Over::Files if makes => (NameKind::File, items),
        Over::Files => (NameKind::File, progress.files.of(rank, items)),
        Over::Walk => (NameKind::Found, 0),
        Over::Targets => (NameKind::Node, u64::from((rank as usize) < plan.targets.len())),
    }
}

impl Source<FsOperation> for FsSource {
    #[inline]
    fn next(&mut self, slot: u32) -> Option<FsOperation> {
        (self.is_waiting, self.waits_at_wall) = (false, false);
        let operation = if self.file.is_some() { self.next_of_file(slot) } else { self.next_of_items(slot) };
        if operation.is_none() && !self.is_waiting {
            let done = self.done;
            self.wall.iter_mut().for_each(|wall| wall.arrive(done));
        }
        operation
    }

    fn waits(&self) -> bool {
        self.is_waiting
    }

    fn waits_for_others(&self) -> bool {
        self.waits_at_wall
    }

    fn finish(&mut self, slot: u32) -> Option<FsOperation> {
        let handle = self.plan.load.depth;
        let Some(file) = self.file.as_mut().filter(|file| file.is_open) else {
            let syncs = std::mem::take(&mut self.has_phase_sync);
            return syncs.then(|| self.operation(FsClass::Syncfs, slot, 0));
        };
        let class = if std::mem::take(&mut file.has_final_sync) {
            FsClass::Fsync
        } else {
            file.is_open = false;
            FsClass::Close
        };
        Some(FsOperation { handle, ..self.operation(class, slot, 0) })
    }

    fn prepares(&self) -> bool {
        self.content.prepares()
    }

    fn prepare(&mut self, operation: &FsOperation) {
        self.content.fill(operation);
    }

    fn checks(&self) -> bool {
        true
    }

    fn abandon(&mut self, operation: &FsOperation) {
        match &mut self.file {
            Some(file) => file.has_failed |= matches!(operation.class, FsClass::Open | FsClass::Create),
            None => {
                let current = &mut self.slots[operation.slot as usize];
                (current.has_failed, current.is_in_flight) = (true, false);
            }
        }
    }

    fn check(&mut self, operation: &FsOperation, bytes: u64) -> Result<(), Fault> {
        self.slots[operation.slot as usize].is_in_flight = false;
        self.note(operation);
        self.content.check(operation, bytes)
    }
}
