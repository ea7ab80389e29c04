//! From the options of a job to a spec.

mod amount;
mod bucket;
mod control;
mod data;
mod dfs;
mod driver;
mod gpu;
mod object_options;
mod objects;
mod pace;
mod replay;
mod shape;
mod state;
mod targets;
mod work;
mod zoned;

use units::ByteSize;
use workload::options;
use workload::spec::{OnError, Operation, Spec};

use crate::World;
use crate::fio::draft::{Access, Draft, Engine, OnErrors};
use crate::fio::engines::layer_of;
use crate::fio::fault::{Fault, Origin};
use crate::fio::settle::Settled;
use crate::fio::value::Triple;

pub(crate) use shape::Blocks;

/// fio's generator starts here unless it is told otherwise.
const SEED: u64 = 0x89;

/// Clones of a job that become one spec.
#[derive(Clone, Copy)]
pub(crate) struct Clones<'a> {
    pub(crate) job: &'a Settled,
    /// The first of them, from 0.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Number of the first of them among all clones of the run, from 0.
    pub(crate) index: usize,
    pub(crate) world: &'a dyn World,
}

/// A spec, and what its results are shown with.
pub(crate) struct Built {
    pub(crate) spec: Spec,
    pub(crate) access: Access,
    pub(crate) engine: Engine,
    pub(crate) depth: u32,
    pub(crate) blocks: Blocks,
    /// Deviations from fio.
    pub(crate) warnings: Vec<String>,
    /// Whether objects are read back when all are written.
    pub(crate) reads_back: bool,
    /// Where the range of each file ends.
    pub(crate) end_bytes: u64,
}

/// A job on its way.
struct Site<'a> {
    clones: Clones<'a>,
    draft: &'a Draft,
    operation: Operation,
    engine: Engine,
    blocks: Blocks,
    spec: Spec,
    /// Options that were said by name, with their values.
    said: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    /// Whether threads of the kernel carry the operations out.
    draws_threads: bool,
    /// Whether objects are read back when all are written.
    reads_back: bool,
}

/// Makes the spec of some clones of a job.
///
/// # Errors
/// A request of the job that cannot be met, or that fio would do silently wrong.
pub(crate) fn build(clones: Clones<'_>) -> Result<Built, Fault> {
    let draft = &clones.job.draft;
    let locate = |fault: Fault| {
        let given = fault.key.as_deref().and_then(|key| draft.place(key)).cloned();
        fault.at(&given.unwrap_or_else(|| Origin::Job(clones.job.section.clone())))
    };
    build_unplaced(clones, draft).map_err(locate)
}

fn build_unplaced(clones: Clones<'_>, draft: &Draft) -> Result<Built, Fault> {
    let mut access = shape::access(draft);
    let psync = || Engine { typed: "psync".to_owned(), ours: "psync", difference: None };
    let engine = draft.engine.clone().unwrap_or_else(psync);
    access.operation = control::of_engine(engine.ours, access.operation);
    let replayed = replay::read(clones, draft)?;
    if let Some(replay) = &replayed {
        access = Access { operation: replay::operation(replay), gap_bytes: 0, run: 1 };
    }
    let mut site = Site {
        clones,
        draft,
        operation: access.operation,
        engine,
        blocks: match &replayed {
            Some(replay) => replay::blocks(replay),
            None => shape::blocks(draft, access.operation)?,
        },
        spec: Spec::of_layer("media").map_err(|error| Fault::of("ioengine", error.to_string()))?,
        said: Vec::new(),
        warnings: draft.notes.clone(),
        draws_threads: false,
        reads_back: false,
    };
    site.spec.name = Some(draft.name.clone().unwrap_or_else(|| clones.job.section.to_string()));
    site.spec.threads = Some(clones.count);
    site.spec.split_latency = true;
    let depth = match layer_of(site.engine.ours) {
        "object" => Some(site.stored(access)?),
        "filesystem" => Some(site.filed(access)?),
        _ => None,
    };
    if let Some(depth) = depth {
        return Ok(site.built(access, depth));
    }
    object_options::refuse_options(draft, site.engine.ours)?;
    site.set("rw", "op", access.operation.name())?;
    let depth = match replayed {
        Some(replay) => {
            let depth = site.driver()?;
            let files = site.replay(replay)?;
            site.data(&files)?;
            depth
        }
        None => site.drawn(access)?,
    };
    site.place()?;
    site.control()?;
    site.rest()?;
    Ok(site.built(access, depth))
}

impl Site<'_> {
    fn built(self, access: Access, depth: u32) -> Built {
        let bytes = |option| self.said_bytes(option).unwrap_or(0);
        let end_bytes = bytes("offset").saturating_add(bytes("size"));
        let Self { engine, blocks, spec, warnings, reads_back, .. } = self;
        Built { spec, access, engine, depth, blocks, warnings, reads_back, end_bytes }
    }

    /// Builds the load of a job that draws its operations; its depth.
    fn drawn(&mut self, access: Access) -> Result<u32, Fault> {
        self.shape(access)?;
        self.zones()?;
        let depth = self.driver()?;
        let files = self.targets()?;
        if ["cpu", "exec"].contains(&self.engine.ours) {
            self.work()?;
        } else {
            self.amount(&files)?;
            self.pace(depth)?;
        }
        self.data(&files)?;
        Ok(depth)
    }

    /// Gives a spec one of its options; `key` is the option of fio that asks for it.
    fn set(&mut self, key: &str, option: &'static str, text: &str) -> Result<(), Fault> {
        options::apply(&mut self.spec, option, text).map_err(|error| Fault::of(key, error.to_string()))?;
        self.said.retain(|(said, _)| *said != option);
        self.said.push((option, text.to_owned()));
        Ok(())
    }

    /// The value of an option that was said by name.
    fn said(&self, option: &str) -> Option<&str> {
        self.said.iter().find(|(said, _)| *said == option).map(|(_, text)| text.as_str())
    }

    /// The same in bytes.
    fn said_bytes(&self, option: &str) -> Option<u64> {
        self.said(option)?.parse::<ByteSize>().ok().map(ByteSize::bytes)
    }

    /// Makes options of the layer as if they had not been said.
    fn unsay(&mut self, options: &[&str]) -> Result<(), Fault> {
        self.said.retain(|(said, _)| !options.contains(said));
        let mut anew = Spec { layer: self.spec.layer, ..Spec::default() };
        for (option, text) in &self.said {
            options::apply(&mut anew, option, text).map_err(|error| Fault::of(option, error.to_string()))?;
        }
        self.spec.own = anew.own;
        Ok(())
    }

    fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    fn writes(&self) -> bool {
        matches!(self.operation, Operation::Write | Operation::RandWrite)
            || self.operation.is_mixed()
            || self.operation.is_pair()
    }

    fn trims(&self) -> bool {
        matches!(self.operation, Operation::Discard | Operation::RandDiscard) || self.operation.is_pair()
    }

    fn reads(&self) -> bool {
        matches!(self.operation, Operation::Read | Operation::RandRead) || self.operation.is_mixed()
    }

    fn place(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if let Some(nodes) = &draft.numa_cpu_nodes {
            self.check_nodes("numa_cpu_nodes", nodes)?;
            self.spec.numa = Some(nodes.clone());
        }
        if let Some(policy) = &draft.numa_mem_policy {
            self.set("numa_mem_policy", "numa-memory", &policy.to_ascii_lowercase())?;
            let nodes = self.spec.control.memory.as_ref().map_or(&[][..], |memory| &memory.nodes);
            self.check_nodes("numa_mem_policy", nodes)?;
        }
        if let Some(cores) = &draft.cpus_allowed {
            if draft.numa_cpu_nodes.is_some() {
                return Err(Fault::of(
                    "numa_cpu_nodes",
                    "it conflicts with cpus_allowed: give only one of them",
                ));
            }
            let policy = draft.cpus_allowed_policy.unwrap_or(workload::spec::CoresPolicy::Shared);
            let is_split = policy == workload::spec::CoresPolicy::Split;
            // A clone in a spec of its own takes the processor that is its turn.
            let own = self.clones.first as usize % cores.len();
            let is_alone = is_split && self.clones.count == 1;
            self.spec.cores = Some(if is_alone { vec![cores[own]] } else { cores.clone() });
            self.spec.cores_policy = Some(policy);
        }
        Ok(())
    }

    /// Refuses a NUMA node that the machine does not have.
    fn check_nodes(&self, key: &str, asked: &[u32]) -> Result<(), Fault> {
        let nodes = self.clones.world.numa_nodes();
        let missing = asked.iter().find(|node| !nodes.is_empty() && !nodes.contains(node));
        let list = || nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match missing {
            Some(node) => {
                Err(Fault::of(key, format!("there is no NUMA node {node}: this machine has {}", list())))
            }
            None => Ok(()),
        }
    }

    fn rest(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        self.common();
        if draft.verifies() {
            let is_fatal = draft.verify_fatal.unwrap_or(false);
            self.spec.control.on_mismatch = Some(if is_fatal { OnError::Stop } else { OnError::Continue });
        }
        // A queue may be deeper than a verified file has blocks.
        if draft.serialize_overlap.unwrap_or(false) || self.spec.verify {
            self.set("serialize_overlap", "serialize-overlap", "true")?;
        }
        Ok(())
    }

    /// Options that jobs of every engine have.
    fn common(&mut self) {
        let draft = self.draft;
        let continues = match draft.continue_on_error.unwrap_or(OnErrors::None) {
            OnErrors::None => false,
            OnErrors::All => true,
            OnErrors::Reads => !self.writes() && !self.trims(),
            OnErrors::Writes => !self.reads(),
        };
        self.spec.on_error = Some(if continues { OnError::Continue } else { OnError::Stop });
        self.spec.keep = !draft.removes_files();
        let repeats = draft.randrepeat.unwrap_or(true);
        self.spec.seed = draft.randseed.or(repeats.then_some(SEED));
        let interval_ms = draft.log_avg_msec.or(draft.log_hist_msec).filter(|&length| length > 0);
        self.spec.interval = interval_ms.and_then(|length| format!("{length}ms").parse().ok());
    }
}

/// Value that holds for an operation: that of its direction; of a mixed job's two, which must be the same.
fn of_direction<T: Clone + PartialEq>(
    key: &str,
    triple: Option<&Triple<T>>,
    operation: Operation,
) -> Result<Option<T>, Fault> {
    let Some([read, write, trim]) = triple else { return Ok(None) };
    match operation {
        Operation::Read | Operation::RandRead | Operation::Nop => Ok(read.clone()),
        Operation::Write | Operation::RandWrite => Ok(write.clone()),
        Operation::Discard
        | Operation::RandDiscard
        | Operation::DiscardWrite
        | Operation::RandDiscardWrite => Ok(trim.clone()),
        Operation::ReadWrite | Operation::RandRw if read == write => Ok(read.clone()),
        Operation::ReadWrite | Operation::RandRw => Err(Fault::of(
            key,
            "different values for reads and writes of one job are not supported; alternative: two jobs at the same time",
        )),
    }
}
