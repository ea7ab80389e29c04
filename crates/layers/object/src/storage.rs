//! Object stores for loads that are made of operations of objects ([`layer::storage`]): each set is an array a number, an index a key-value
//! object, each in a driver of its own. A store without arrays (S3) keeps a numbered object as the value of a key.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Completions, Driver, Error, ErrorKind, FINDINGS_MAX, Opened, Submitted, Tally, Wait};
use layer::storage::{Storage, StorageCall, StorageFacts, StorageNeeds, StorageOperation, StorageSet};
use layer::{Phase, RunContext};
use units::ByteSize;
use vos::model::{Key, Names, ObjectId};
use vos::{ObjectClass, ObjectType};
use workload::spec::{Share, Spec};

use crate::load::{Store, Stores, directory_of, plan};
use crate::plan::{ObjectOp, ObjectPhase, ObjectPlan, ObjectSpec};
use crate::{ObjectOperation, OpenRequest};

/// Options of this layer that an application's target takes.
pub(crate) const OPTIONS: &[&str] = &[
    "container",
    "class",
    "first-id",
    "chunk-size",
    "scm",
    "nvme",
    "threshold",
    "store-targets",
    "durability",
    "flush",
    "allocate",
    "checksum",
    "zero-copy",
    "retries",
    "timeout",
    "s3-endpoint",
    "s3-region",
    "s3-addressing",
    "s3-signing",
    "s3-part-size",
    "s3-key-file",
    "rados-conf",
    "rados-user",
    "daos-system",
    "token-file",
];

/// Whether a target takes one of them: its driver honours it, or it is of all drivers.
pub(crate) fn takes_option(target: &str, option: &str) -> bool {
    let is_honoured =
        |options: &[&str]| options.contains(&option) || !crate::options::DRIVER_OPTIONS.contains(&option);
    OPTIONS.contains(&option)
        && crate::backend::driver_of(target).is_ok_and(|driver| is_honoured(driver.capabilities.options))
}

/// Smallest memory of a store that is made, in bytes, and what a record takes beside its value.
const SCM_BYTES_MIN: u64 = 256 << 20;
const RECORD_BYTES: u64 = 512;
/// Chunk of an array, in bytes: a record of the store.
const CHUNK_BYTES: u64 = 1 << 20;

/// An object store that serves the sets of a load.
pub(crate) struct ObjectStorage {
    stores: Stores,
    store: Arc<Store>,
    /// One a set.
    plans: Vec<Arc<ObjectPlan>>,
    needs: StorageNeeds,
    operations: &'static [&'static str],
}

/// Operations that a driver has.
fn has(operations: &[&str], operation: ObjectOp) -> bool {
    operations.contains(&operation.name())
}

/// Operations of the objects of a set; those of the container are made in the first.
fn operations_of(set: &StorageSet, is_first: bool, needs: &StorageNeeds, known: &[&str]) -> Vec<ObjectOp> {
    let wanted: &[ObjectOp] = match () {
        () if set.is_index => &[ObjectOp::Put, ObjectOp::Get, ObjectOp::List, ObjectOp::Remove],
        () if has(known, ObjectOp::Write) => {
            &[ObjectOp::Write, ObjectOp::Read, ObjectOp::Size, ObjectOp::OpenWithAttr, ObjectOp::Destroy]
        }
        () => &[ObjectOp::Put, ObjectOp::Get, ObjectOp::Stat, ObjectOp::Remove],
    };
    let container = [
        (StorageCall::OpenContainer, ObjectOp::OpenContainer),
        (StorageCall::AllocateIds, ObjectOp::AllocateIds),
    ];
    let container = container.iter().filter(|(call, _)| is_first && needs.calls.contains(call));
    let all = wanted.iter().copied().chain(container.map(|(_, operation)| *operation));
    all.filter(|&operation| has(known, operation)).collect()
}

/// The spec of a set: its objects, from `first_id` on.
fn spec_of(spec: &Spec, needs: &StorageNeeds, at: usize, first_id: u64, known: &[&str]) -> Spec {
    let set = &needs.sets[at];
    let operations = operations_of(set, at == 0, needs, known);
    let mut own = Spec {
        name: Some(set.name.clone()),
        threads: Some(needs.workers),
        share: Some(Share::Whole),
        ..spec.clone()
    };
    let is_array = operations.contains(&ObjectOp::Write);
    let to = ObjectSpec::of_mut(&mut own);
    to.one_pass = true;
    to.first_id = Some(first_id);
    to.value_size = Some(ByteSize(set.transfer_bytes.max(1)).to_string());
    if operations.contains(&ObjectOp::AllocateIds) {
        to.ids_per_call = Some(needs.ids_per_call.max(1));
    }
    to.sequence = operations;
    if is_array {
        to.objects = Some(set.objects.max(1));
        to.records = Some(set.object_bytes.div_ceil(set.transfer_bytes.max(1)).max(1));
    } else {
        to.dkey_prefix = Some(format!("{}-", set.name));
        (to.objects, to.dkeys) = match set.is_index {
            true => (Some(set.objects.max(1)), Some(set.keys.max(1))),
            false => (Some(1), Some(set.objects.max(1))),
        };
    }
    own
}

/// Memory of an embedded store that is made for the sets of a load, in bytes.
fn scm_bytes(needs: &StorageNeeds) -> u64 {
    let of = |set: &StorageSet| match set.is_index {
        true => set.keys.saturating_mul(set.object_bytes.saturating_mul(2) + RECORD_BYTES),
        false => {
            let chunks = set.object_bytes.div_ceil(set.transfer_bytes.clamp(1, CHUNK_BYTES)).max(1);
            set.objects
                .saturating_mul(set.object_bytes.saturating_mul(2) + chunks.saturating_mul(RECORD_BYTES))
        }
    };
    needs.sets.iter().fold(0u64, |sum, set| sum.saturating_add(of(set))).max(SCM_BYTES_MIN)
}

impl ObjectStorage {
    /// Opens the store of a spec of this layer, where it is there already, and plans its sets.
    ///
    /// # Errors
    /// Sets that it cannot have, and why it cannot be opened.
    pub(crate) fn open(spec: &Spec, needs: &StorageNeeds, context: &RunContext) -> Result<Self, Error> {
        let target = spec.targets.first().map_or("", String::as_str);
        let known = crate::backend::driver_of(target)?.capabilities.classes;
        let mut spec = spec.clone();
        let own = ObjectSpec::of(&spec);
        let is_made =
            directory_of(target).is_some_and(|path| vos::Pool::layout(&units::path_of(path)).is_none());
        if is_made && own.scm.is_none() && own.nvme.is_none() {
            let targets = u64::from(own.targets.unwrap_or(1).max(1));
            let unit = targets << 20;
            let bytes = scm_bytes(needs).div_ceil(unit).saturating_mul(unit);
            ObjectSpec::of_mut(&mut spec).scm = Some(ByteSize(bytes));
        }
        let mut first_id = ObjectSpec::of(&spec).first_id.unwrap_or(1);
        let mut specs = Vec::new();
        for (at, set) in needs.sets.iter().enumerate() {
            specs.push(spec_of(&spec, needs, at, first_id, known));
            first_id = first_id.saturating_add(set.objects);
        }
        let mut stores = Stores::new(context);
        stores.find(&mut specs.iter_mut().collect::<Vec<_>>())?;
        let first = specs.first().ok_or_else(|| Error::usage("plan", "the load has no objects"))?;
        let store = Arc::clone(stores.of(first)?);
        let planned = |spec: &Spec| {
            let phase = ObjectPhase::Sequence(ObjectSpec::of(spec).sequence.clone());
            let planned: Phase = plan::one(spec, &phase, &store, spec.seed.unwrap_or(0))?;
            let own = planned.plan.of::<ObjectPlan>().cloned().map(Arc::new);
            own.ok_or_else(|| Error::new(ErrorKind::Run, "plan", "a phase was planned for another layer"))
        };
        let plans = specs.iter().map(planned).collect::<Result<_, Error>>()?;
        Ok(Self { stores, store, plans, needs: needs.clone(), operations: known })
    }

    fn is_array(&self, set: &StorageSet) -> bool {
        !set.is_index && has(self.operations, ObjectOp::Write)
    }

    /// Names and ids of a set.
    fn names_of(&self, at: usize) -> Result<SetNames, Error> {
        let (plan, set) = (&self.plans[at], &self.needs.sets[at]);
        let last = set.keys.max(set.objects);
        let keys = Names::new(&plan.dataset.dkey_prefix, last)
            .map_err(|error| Error::usage("plan", error.to_string()))?;
        Ok(SetNames {
            is_array: self.is_array(set),
            is_index: set.is_index,
            objects: plan.dataset.objects.max(1),
            object_type: plan.object_type,
            class: plan.class,
            first_id: plan.dataset.first_id,
            keys,
        })
    }
}

/// Ids and keys of the objects of a set.
struct SetNames {
    is_array: bool,
    is_index: bool,
    objects: u64,
    object_type: ObjectType,
    class: ObjectClass,
    first_id: u64,
    keys: Names,
}

impl SetNames {
    /// The operation of this layer that a call is; none where it has no counterpart.
    #[inline]
    fn operation(&self, call: &StorageOperation) -> Option<ObjectOperation> {
        use StorageCall as Call;
        let operation = match (call.call, self.is_array) {
            (Call::Create | Call::Open, true) => ObjectOp::OpenWithAttr,
            (Call::Write, true) => ObjectOp::Write,
            (Call::Read, true) => ObjectOp::Read,
            (Call::Stat, true) => ObjectOp::Size,
            (Call::Remove, true) => ObjectOp::Destroy,
            (Call::Write | Call::Put, false) => ObjectOp::Put,
            (Call::Read | Call::Get, false) => ObjectOp::Get,
            (Call::Stat, false) => ObjectOp::Stat,
            (Call::Remove, false) => ObjectOp::Remove,
            (Call::List, _) => ObjectOp::List,
            (Call::OpenContainer, _) => ObjectOp::OpenContainer,
            (Call::AllocateIds, _) => ObjectOp::AllocateIds,
            (Call::Create | Call::Open | Call::Close | Call::Sync | Call::Rename, _)
            | (Call::Put | Call::Get, true) => return None,
        };
        let (object, key) = match (self.is_array, self.is_index) {
            (false, false) => (0, call.object),
            _ => (call.object, call.key),
        };
        Some(ObjectOperation {
            slot: call.slot,
            operation,
            is_short_good: false,
            record: if self.is_array { object } else { key.saturating_mul(self.objects) + object },
            object: ObjectId::new(self.object_type, self.class, self.first_id.wrapping_add(object)),
            dkey: if self.is_array { Key::EMPTY } else { self.keys.of(key) },
            akey: Key::EMPTY,
            offset_bytes: call.offset_bytes,
            value_bytes: call.length_bytes,
        })
    }
}

impl Storage for ObjectStorage {
    fn facts(&self) -> StorageFacts {
        use StorageCall as Call;
        let engine = self.plans.first().map_or_else(String::new, |plan| plan.engine.clone());
        let mut left_out = vec![Call::Sync, Call::Close];
        let is_kept = |operation| has(self.operations, operation);
        if !is_kept(ObjectOp::Write) || !is_kept(ObjectOp::OpenWithAttr) {
            left_out.extend([Call::Create, Call::Open]);
        }
        for (call, operation) in
            [(Call::OpenContainer, ObjectOp::OpenContainer), (Call::AllocateIds, ObjectOp::AllocateIds)]
        {
            if !is_kept(operation) {
                left_out.push(call);
            }
        }
        let info = self.store.open_facts();
        StorageFacts {
            left_out,
            refused: vec![Call::Rename],
            only_whole: !is_kept(ObjectOp::Write),
            granularity_bytes: 1,
            free_bytes: info.map(|info| match info.nvme_bytes {
                0 => info.scm_free_bytes,
                _ => info.nvme_free_bytes.max(info.scm_free_bytes),
            }),
            is_cached: false,
            is_in_process: matches!(engine.as_str(), "vos" | "null"),
            engine,
        }
    }

    fn prepare(&self) -> Result<(), Error> {
        let backend = self.store.connect()?;
        self.plans.iter().try_for_each(|plan| backend.prepare(plan))
    }

    fn drop_cache(&self, _interrupt: &AtomicBool) -> Result<(), Error> {
        self.store.connect()?.drop_cache()
    }

    fn open(
        &self,
        worker: u32,
        arena: &Arc<Arena>,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Opened<StorageOperation>, Error> {
        let backend = self.store.connect()?;
        let (mut drivers, mut notes) = (Vec::new(), Vec::new());
        for (at, plan) in self.plans.iter().enumerate() {
            let request = OpenRequest {
                worker,
                plan: Arc::clone(plan),
                arena: Arc::clone(arena),
                interrupt: Arc::clone(interrupt),
            };
            let opened = backend.open(&request)?;
            notes.extend(opened.notes);
            drivers.push((opened.driver, self.names_of(at)?));
        }
        Ok(Opened { driver: Box::new(SetDrivers { drivers, busy: 0 }), notes })
    }

    fn name(&self, operation: &StorageOperation) -> String {
        let found =
            self.names_of(usize::from(operation.set)).ok().and_then(|names| names.operation(operation));
        let at = found.map_or_else(String::new, |found| match found.dkey == Key::EMPTY {
            true => format!("object {} offset {}", found.object, found.offset_bytes),
            false => format!("object {} key {}", found.object, found.dkey),
        });
        format!("{} {at}", self.plans.first().map_or("", |plan| &plan.target))
    }

    fn notes(&self) -> Vec<String> {
        self.store.notes()
    }

    fn end(&self) -> Result<(), Error> {
        self.stores.end()
    }
}

/// Drivers of the sets of one worker. One operation is in flight at a time.
struct SetDrivers {
    drivers: Vec<(Box<dyn Driver<ObjectOperation>>, SetNames)>,
    /// Set of the operation in flight.
    busy: usize,
}

impl Driver<StorageOperation> for SetDrivers {
    #[inline]
    fn submit(&mut self, batch: &[StorageOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(call) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        self.busy = usize::from(call.set);
        let (driver, names) = &mut self.drivers[self.busy];
        let Some(operation) = names.operation(call) else {
            done.push(call.slot, -i64::from(libc::EOPNOTSUPP));
            return Ok(Submitted { accepted: 1 });
        };
        driver.submit(&[operation], done)
    }

    #[inline]
    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        self.drivers[self.busy].0.reap(wait, done)
    }

    fn cause(&self, slot: u32, result: i64) -> Option<String> {
        self.drivers[self.busy].0.cause(slot, result)
    }

    fn tallies(&mut self) -> Vec<Tally> {
        let mut sums: Vec<Tally> = Vec::new();
        for tally in self.drivers.iter_mut().flat_map(|(driver, _)| driver.tallies()) {
            match sums.iter_mut().find(|sum| sum.name == tally.name && sum.part == tally.part) {
                Some(sum) => sum.value += tally.value,
                None => sums.push(tally),
            }
        }
        sums
    }

    fn findings(&mut self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.drivers.iter_mut().flat_map(|(driver, _)| driver.findings()).collect();
        lines.truncate(FINDINGS_MAX);
        lines
    }
}
