//! From what was typed to operations on objects: the plan of a phase of the object layer.

mod checks;
mod dataset;
mod fill;
mod options;

use std::fmt;

use vos::{Groups, ObjectClass, ObjectType};
use workload::access::Access;
use workload::content::Refill;
use workload::plan::{
    Amount, HostTargets, LimitPlan, Pattern, PlanError, buffer_bytes_max, check_depth, check_pairs, content,
    load, refuse,
};
use workload::spec::{OnError, Share, Spec};

use super::{Interface, ObjectOp, ObjectPlan, ObjectSpec, OpShare, Scope, parse_mix};

pub use fill::{fill_phases, needs_fill};
pub use options::object_options;

/// How long a phase without a natural end is measured when no limit is given.
const TIME_NS: u64 = 10_000_000_000;
/// Label of the container, where nothing names one.
const CONTAINER: &str = "strata";
/// Buffers of a slot begin at pages.
const PAGE_BYTES: u64 = 4096;

/// Facts of a driver and its store that planning needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectFacts {
    /// Name of the driver: `vos`, `engine`, `rados`, `s3`, `daos`, `null`.
    pub engine: String,
    /// Operations that it has, by name.
    pub operations: &'static [&'static str],
    /// Whether it takes a depth above 1.
    pub asynchronous: bool,
    /// Its largest depth.
    pub depth_max: u32,
    /// Options that it honours, of [`crate::options::DRIVER_OPTIONS`].
    pub options: &'static [&'static str],
    /// Targets of its store; 0 before it was opened, or where it does not tell. What is planned with 0 serves to open it, and is planned
    /// again with the number that it tells.
    pub targets: u32,
    /// Memory of the machine, in bytes, where it is known: buffers get at most half of it.
    pub memory_bytes: Option<u64>,
}

impl ObjectFacts {
    fn has(&self, operation: ObjectOp) -> bool {
        self.operations.contains(&operation.name())
    }

    fn honours(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    /// Whether `read` reads a range of a key's value: of drivers without arrays.
    fn reads_ranges(&self) -> bool {
        self.has(ObjectOp::Read) && !self.has(ObjectOp::Write)
    }

    /// The interface that an operation is of with this driver.
    fn interface(&self, operation: ObjectOp) -> Option<Interface> {
        match operation {
            ObjectOp::Read if self.reads_ranges() => Some(Interface::KeyValue),
            _ => operation.interface(),
        }
    }
}

/// Operations of one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectPhase {
    /// One operation.
    Operation(ObjectOp),
    /// Several, interleaved.
    Mix(Vec<OpShare>),
    /// Several for each record, one after the other.
    Sequence(Vec<ObjectOp>),
}

impl ObjectPhase {
    fn operations(&self) -> Vec<ObjectOp> {
        match self {
            Self::Operation(operation) => vec![*operation],
            Self::Mix(mix) => mix.iter().map(|share| share.operation).collect(),
            Self::Sequence(sequence) => sequence.clone(),
        }
    }
}

impl fmt::Display for ObjectPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = match self {
            Self::Mix(mix) => {
                mix.iter().map(|share| format!("{}={}", share.operation.name(), share.percent)).collect()
            }
            _ => self.operations().iter().map(|operation| operation.name().to_owned()).collect(),
        };
        f.write_str(&words.join(","))
    }
}

/// The phases of a spec: one for each operation of `--op`, or that of `--mix`, or that of `--sequence`.
///
/// # Errors
/// None of the three, or two of them.
pub fn object_phases(spec: &Spec) -> Result<Vec<ObjectPhase>, PlanError> {
    let own = ObjectSpec::of(spec);
    match (&own.operations[..], &own.mix, &own.sequence[..]) {
        ([], None, []) => refuse(
            "no operation is specified: use --op such as put,get, --mix such as get=70,put=30, or --sequence such as open,read"
                .to_owned(),
        ),
        (operations, None, []) => Ok(operations.iter().map(|&one| ObjectPhase::Operation(one)).collect()),
        ([], Some(mix), []) => Ok(vec![ObjectPhase::Mix(parse_mix(mix)?)]),
        ([], None, sequence) => Ok(vec![ObjectPhase::Sequence(sequence.to_vec())]),
        _ => refuse("--op, --mix and --sequence exclude each other: use one of them".to_owned()),
    }
}

/// Arguments of several parts of planning.
struct Request<'a> {
    spec: &'a Spec,
    own: &'a ObjectSpec,
    facts: &'a ObjectFacts,
    /// Operations of the phase.
    operations: Vec<ObjectOp>,
    /// Operations of all phases of the spec.
    all: Vec<ObjectOp>,
    /// Interface of all of them; none where all work on containers.
    interface: Option<Interface>,
    phase: &'a ObjectPhase,
}

impl Request<'_> {
    /// Whether any operation of the phase is such.
    fn any(&self, is_such: fn(ObjectOp) -> bool) -> bool {
        self.operations.iter().any(|&operation| is_such(operation))
    }

    /// Whether any phase of the spec has the operation.
    fn uses(&self, operation: ObjectOp) -> bool {
        self.all.contains(&operation)
    }

    fn is_array(&self) -> bool {
        self.interface == Some(Interface::Array)
    }

    /// Whether what the phase reads may be stored before it: not where that is said to be there, and not at a snapshot, which is older.
    fn may_fill(&self) -> bool {
        !self.own.no_fill && self.own.snapshot.is_none()
    }

    /// Workers that share the store.
    fn workers(&self) -> u64 {
        let place = self.spec.place.filter(|_| self.spec.host_targets != Some(HostTargets::Own));
        let threads = self.spec.threads.unwrap_or(1);
        u64::from(place.map_or(threads, |place| place.workers_of_all(threads)))
    }

    /// Whether each worker has records of its own.
    fn is_private(&self) -> bool {
        self.own.object_scope == Some(Scope::Private) || self.own.containers == Some(Scope::Private)
    }
}

/// Resolves one phase of a spec.
///
/// # Errors
/// Whatever the request asks for that cannot be.
pub fn resolve_object(
    spec: &Spec,
    phase: &ObjectPhase,
    facts: &ObjectFacts,
    seed: u64,
) -> Result<ObjectPlan, PlanError> {
    check_pairs(spec)?;
    let own = ObjectSpec::of(spec);
    let operations = phase.operations();
    let all: Vec<ObjectOp> =
        object_phases(spec)?.iter().flat_map(ObjectPhase::operations).chain(operations.clone()).collect();
    let mut request = Request { spec, own, facts, operations, all, interface: None, phase };
    checks::check_operations(&mut request)?;
    checks::check_words(&request)?;
    let (target, container) = place(spec)?;
    let dataset = dataset::dataset(&request)?;
    let (cell_size_bytes, chunk_size_cells) = dataset::cells(&request)?;
    let class = class(&request)?;
    let depth = spec.depth.unwrap_or(1);
    check_depth(depth, &facts.engine, facts.asynchronous, facts.depth_max, "")?;
    let mut plan = ObjectPlan {
        name: spec.name.clone().unwrap_or_else(|| phase.to_string()),
        engine: facts.engine.clone(),
        target,
        container,
        containers: own.containers.unwrap_or_default(),
        object_scope: own.object_scope.unwrap_or_default(),
        mix: match phase {
            ObjectPhase::Operation(operation) => vec![OpShare { operation: *operation, percent: 100 }],
            ObjectPhase::Mix(mix) => mix.clone(),
            ObjectPhase::Sequence(_) => Vec::new(),
        },
        sequence: if let ObjectPhase::Sequence(sequence) = phase { sequence.clone() } else { Vec::new() },
        dataset,
        rank_shift: own.rank_shift.unwrap_or(0),
        pattern: pattern(&request)?,
        share: Share::Partition,
        class,
        object_type: object_type(&request, cell_size_bytes),
        cell_size_bytes,
        chunk_size_cells,
        punch: own.punch.unwrap_or_default(),
        list_max: own.list_max.unwrap_or(1000),
        ids_per_call: own.ids_per_call.unwrap_or(1),
        short_read_bytes: None,
        snapshot: own.snapshot,
        keeps_handles: !own.reopen,
        memory: own.memory.plan(Some(gpu::GpuPath::Staged)).map_err(PlanError)?,
        content: content(spec, Refill::Stamp)?,
        verify: spec.verify || own.acknowledged.is_some(),
        options: options::options(&request)?,
        is_fill: false,
        load: load(spec, depth, None, seed)?,
    };
    plan.short_read_bytes = dataset::short_read(&request, &plan.dataset);
    plan.share = share(&request, &plan)?;
    plan.load = load(spec, depth, default_time_ns(&request, &plan), seed)?;
    plan.load.on_error = spec.on_error.unwrap_or(OnError::Stop);
    checks::check_records(&request, &plan)?;
    check_memory(&plan, facts.memory_bytes)?;
    options::size_store(&request, &mut plan);
    Ok(plan)
}

/// The target and the container in it.
fn place(spec: &Spec) -> Result<(String, String), PlanError> {
    let [target] = &spec.targets[..] else {
        return refuse(format!(
            "{} targets, but exactly one is required: use one of vos:DIR, engine://HOST:PORT/POOL/CONTAINER, rados://POOL, s3://BUCKET, daos://POOL/CONTAINER or null:",
            spec.targets.len()
        ));
    };
    // engine://HOST:PORT/POOL/CONTAINER and daos://POOL/CONTAINER.
    let named = match target.split_once("://") {
        Some(("engine", rest)) => rest.split('/').nth(2),
        Some(("daos", rest)) => rest.split('/').nth(1),
        _ => None,
    };
    let named = named.filter(|name| !name.is_empty());
    match (named, &ObjectSpec::of(spec).container) {
        (Some(named), Some(asked)) if named != asked => refuse(format!(
            "--container {asked} differs from the container of {target}: leave out one of the two"
        )),
        (Some(named), _) => Ok((target.clone(), named.to_owned())),
        // What has names of its own lies in no container, unless it is told which.
        (None, None) if !ObjectSpec::of(spec).object_names.is_empty() => Ok((target.clone(), String::new())),
        (None, asked) => Ok((target.clone(), asked.clone().unwrap_or_else(|| CONTAINER.to_owned()))),
    }
}

/// The class: over all targets, where there are several.
fn class(request: &Request<'_>) -> Result<ObjectClass, PlanError> {
    let targets = options::targets(request)?;
    let class = match request.own.class {
        Some(class) => class,
        None if targets == 1 || !request.facts.honours("class") => ObjectClass::S1,
        None => ObjectClass::SX,
    };
    if targets == 0 || class.groups_over(targets).is_some() || !request.facts.honours("class") {
        return Ok(class);
    }
    let groups = match class.groups {
        Groups::All => 1,
        Groups::Count(count) => u32::from(count),
    };
    let fitting = match targets {
        targets if targets >= class.group_size() => ObjectClass { groups: Groups::All, ..class }.to_string(),
        1 => "S1".to_owned(),
        _ => "SX or RP_2GX".to_owned(),
    };
    refuse(format!(
        "class {class} needs {} targets, but the store has {targets}: use {fitting}, or a store with more targets",
        u64::from(groups) * u64::from(class.group_size())
    ))
}

/// The type: it is a part of an object's id, so all phases of a spec have the same.
fn object_type(request: &Request<'_>, cell_size_bytes: u64) -> ObjectType {
    match request.interface {
        Some(Interface::KeyValue) => ObjectType::KvHashed,
        Some(Interface::Array) if request.uses(ObjectOp::Create) || request.uses(ObjectOp::Open) => {
            ObjectType::Array
        }
        Some(Interface::Array) if cell_size_bytes == 1 => ObjectType::ArrayByte,
        Some(Interface::Array) => ObjectType::ArrayAttr,
        Some(Interface::Keys) | None if request.own.integer_dkeys => ObjectType::DkeyUint64,
        Some(Interface::Keys) | None => ObjectType::MultiHashed,
    }
}

fn pattern(request: &Request<'_>) -> Result<Pattern, PlanError> {
    match &request.spec.pattern {
        Some(text) => Ok(text.parse()?),
        None if matches!(request.phase, ObjectPhase::Mix(_)) => Ok(Pattern::Permutation),
        None => Ok(Pattern::Sequential),
    }
}

fn share(request: &Request<'_>, plan: &ObjectPlan) -> Result<Share, PlanError> {
    if request.is_private() {
        return match request.spec.share {
            Some(Share::Partition) => refuse(
                "--share partition divides shared records, but each worker has its own records: leave it out"
                    .to_owned(),
            ),
            _ => Ok(Share::Whole),
        };
    }
    let unit = dataset::unit(request);
    let changes = request.any(ObjectOp::changes);
    let is_whole = unit == dataset::Unit::Container || (unit == dataset::Unit::Object && !changes);
    Ok(request.spec.share.unwrap_or(if is_whole && plan.load.workers() > 1 {
        Share::Whole
    } else {
        Share::Partition
    }))
}

/// The time that is measured when no limit is given; none where one pass over the records is.
fn default_time_ns(request: &Request<'_>, plan: &ObjectPlan) -> Option<u64> {
    let is_maintenance =
        |operation| matches!(operation, ObjectOp::Aggregate | ObjectOp::Discard | ObjectOp::Collect);
    let stores_alone = request.any(ObjectOp::stores) && !request.any(ObjectOp::needs_data);
    let ends =
        request.own.one_pass || stores_alone || request.any(is_maintenance) || plan.takes_or_creates_once();
    (!ends).then_some(TIME_NS)
}

fn check_memory(plan: &ObjectPlan, memory_bytes: Option<u64>) -> Result<(), PlanError> {
    let slot_bytes = plan.dataset.value_size_bytes_max.max(plan.short_read_bytes.unwrap_or(0));
    let slot_bytes = slot_bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX);
    let slots = u64::from(plan.load.threads) * u64::from(plan.load.depth);
    let accepted = buffer_bytes_max(memory_bytes);
    if slots.saturating_mul(slot_bytes) <= accepted {
        return Ok(());
    }
    let option = if slot_bytes > plan.dataset.value_size_bytes_max.next_multiple_of(PAGE_BYTES) {
        "--read-size"
    } else {
        "--value-size"
    };
    let remedy = match accepted / slot_bytes.max(1) {
        0 => format!("use a smaller {option}"),
        fitting => format!("use {fitting} or fewer in flight, or a smaller {option}"),
    };
    refuse(format!(
        "{slots} operations in flight with buffers of {} each need more than half of the memory: {remedy}",
        Amount(slot_bytes)
    ))
}

/// A limit is none at all.
fn is_unlimited(plan: &ObjectPlan) -> bool {
    plan.load.limit == LimitPlan::default()
}

/// Refuses a pattern that the records cannot serve.
fn check_pattern(plan: &ObjectPlan, records: u64) -> Result<(), PlanError> {
    let share = if plan.share == Share::Partition { u64::from(plan.load.workers()) } else { 1 };
    Access::new(&plan.pattern, records / share, 0)?;
    Ok(())
}

#[cfg(test)]
mod tests;
