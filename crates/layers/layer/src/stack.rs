//! Rows of `strata stack` that a layer brings: one load each, and the rows that carry it.

use std::path::Path;

use driver::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::options;
use workload::spec::Spec;

/// Loads that several layers have, by the names of their columns.
pub mod loads {
    /// 1 MiB at a time, written in order.
    pub const WRITE_LARGE: &str = "write 1 MiB";
    /// 1 MiB at a time, read in order.
    pub const READ_LARGE: &str = "read 1 MiB";
    /// 4 KiB at a time, written at random.
    pub const WRITE_SMALL: &str = "write 4 KiB";
    /// 4 KiB at a time, read at random.
    pub const READ_SMALL: &str = "read 4 KiB";
    /// Files made, empty.
    pub const CREATE: &str = "create";
    /// Attributes of files.
    pub const STAT: &str = "stat";
    /// Files removed.
    pub const REMOVE: &str = "remove";
    /// All of them, in the order of columns.
    pub const ALL: &[&str] = &[WRITE_LARGE, READ_LARGE, WRITE_SMALL, READ_SMALL, CREATE, STAT, REMOVE];
}

/// Kind of a row of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StackKind {
    /// Overhead of strata itself: no layer at all.
    Floor,
    /// It is compared with memory, and called the limit where the layers above it use it up.
    Hardware,
    /// It can give what carries it gives; the rest is lost.
    Software,
    /// It only carries others, and is held against nothing.
    Carrier,
}

/// A row that carries another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackCarrier {
    /// Its layer.
    pub layer: String,
    /// Its load.
    pub load: String,
}

impl StackCarrier {
    /// The row of this layer and load.
    #[must_use]
    pub fn new(layer: &str, load: &str) -> Self {
        Self { layer: layer.to_owned(), load: load.to_owned() }
    }
}

/// A row of the stack: a load on a layer, as it is planned.
#[derive(Debug)]
pub struct StackRowSpec {
    /// Layer, as tables have it.
    pub layer: &'static str,
    /// Name of the layer in a sentence: `the drive`.
    pub called: String,
    /// Load, the column of tables.
    pub load: String,
    /// Name of what has this load, such as an application; none: it is one of those that every layer gets.
    pub load_of: Option<String>,
    /// Kind.
    pub kind: StackKind,
    /// Rows that carry it. Of those that were measured the slowest counts.
    pub stands_on: Vec<StackCarrier>,
    /// Reason why it may be faster than what carries it: a cache, a shared sync.
    pub faster_by: Option<&'static str>,
    /// Kinds of warnings that state what the row measures on purpose, such as the page cache in a row of files: they are not counted.
    pub by_design: &'static [&'static str],
    /// Whether it is compared by bandwidth; none: by the size of its operations.
    pub in_bytes: Option<bool>,
    /// Reason why it is compared with nothing, where that is none of its kind.
    pub uncompared: Option<String>,
    /// Length of one pass, in parts of the window of a drive: 1 for what varies as a drive does, less for what does not, 0 for what ends by itself.
    pub window_share: f64,
    /// Number of the phase of the spec that it is. Rows of one spec follow each other, and the first of them, of phase 0, brings it.
    pub stage: usize,
    /// Whether the user named the target: a refusal is for the user to decide then, and ends the run.
    pub is_named: bool,
    /// Why several hosts cannot carry it out at once, each as its part of one load; none: they can.
    pub one_host: Option<&'static str>,
    /// The load, or why it cannot be.
    pub spec: Result<Spec, Error>,
}

impl StackRowSpec {
    /// A row that is compared with nothing, as long as a window of the drive, for others to be made of.
    #[must_use]
    pub fn new(layer: &'static str, load: impl Into<String>, spec: Result<Spec, Error>) -> Self {
        Self {
            layer,
            called: layer.to_owned(),
            load: load.into(),
            load_of: None,
            kind: StackKind::Carrier,
            stands_on: Vec::new(),
            faster_by: None,
            by_design: &[],
            in_bytes: None,
            uncompared: None,
            window_share: 1.0,
            stage: 0,
            is_named: false,
            one_host: None,
            spec,
        }
    }

    /// The same on a load of another one: compared by bandwidth, whatever the size of its operations.
    #[must_use]
    pub fn at(self, load: &StackLoad) -> Self {
        Self { load: load.name.clone(), load_of: Some(load.of.clone()), in_bytes: Some(true), ..self }
    }
}

/// A load that a layer needs measured on the layers below it, so that its own rows can be compared with theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackLoad {
    /// Its name, the column of tables; it begins with `of`.
    pub name: String,
    /// Name of what has it.
    pub of: String,
    /// It writes; else it reads.
    pub writes: bool,
    /// In random order; else from the first byte to the last.
    pub is_random: bool,
    /// Bytes that all workers move in a pass: what is below moves as many.
    pub bytes: u64,
    /// Bytes that one operation moves.
    pub transfer_bytes: u64,
    /// Workers, each with one operation at a time.
    pub workers: u32,
    /// Writes of a worker after which it makes them durable; none: never.
    pub writes_per_sync: Option<u64>,
}

/// Loads that layers need measured below them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackLoads {
    /// The loads.
    pub loads: Vec<StackLoad>,
    /// Bytes that lie on each target of the rows that have them at a time, at most.
    pub stored_bytes: u64,
}

impl StackLoad {
    /// Longest pass of a row below, in nanoseconds: on what is so slow, a part of the data says as much.
    pub const TIME_NS_MAX: u64 = 5_000_000_000;

    /// Operations of each worker in a pass.
    #[must_use]
    pub fn transfers(&self) -> u64 {
        let all = self.bytes.div_ceil(self.transfer_bytes.max(1));
        all.div_ceil(u64::from(self.workers.max(1))).max(1)
    }
}

impl StackLoads {
    /// Memory of a pool that the data lie in: what is removed is given back later.
    #[must_use]
    pub fn pool_bytes(&self) -> u64 {
        const UNIT: u64 = 256 << 20;
        self.stored_bytes.saturating_mul(4).div_ceil(UNIT).max(2).saturating_mul(UNIT)
    }

    /// Room that the data need, in bytes: in files, in two pools for files over objects, in the store of the rows, and in one of their own.
    #[must_use]
    pub fn room_bytes(&self) -> u64 {
        if self.stored_bytes == 0 {
            return 0;
        }
        self.pool_bytes().saturating_mul(4).saturating_add(self.stored_bytes)
    }
}

/// Why several hosts cannot carry out a row on a store in a directory.
pub const ONE_PROCESS_OPENS: &str = "only one process can open the store of a directory";

/// Hosts that carry rows out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackHosts {
    /// How many.
    pub count: u32,
    /// Whether all of them are processes that this one starts on its own machine: they reach what it serves over loopback, and the scratch path is one for all.
    pub are_local: bool,
}

impl StackHosts {
    /// Room that the data of all hosts need in a store which one process serves them, in bytes: what a row stores for one host, it stores for each.
    #[must_use]
    pub fn store_bytes(self) -> u64 {
        const OF_HOST: u64 = 128 << 20;
        OF_HOST.saturating_mul(u64::from(self.count))
    }
}

/// Facts that layers make their rows of.
#[derive(Clone, Debug)]
pub struct StackRequest<'a> {
    /// Hosts that carry out the rows which several hosts can; none: this process carries out all of them.
    pub hosts: Option<StackHosts>,
    /// Path that nothing has; layers may make things there, and beside it under names that begin with its own.
    pub scratch: &'a Path,
    /// Size of the scratch file, and of each store, in bytes.
    pub size_bytes: u64,
    /// A block device that is measured in place of the scratch file.
    pub device: Option<&'a str>,
    /// Object store of the user's.
    pub object: Option<&'a str>,
    /// Options of the load on it, by name.
    pub object_options: &'a [(String, String)],
    /// Memory of GPUs whose rows are wanted, as `--memory` has it.
    pub gpu: Option<&'a str>,
    /// Engine of the user's: control address, or URI.
    pub engine: Option<&'a str>,
    /// File with the secret of the way there.
    pub token_file: Option<&'a Path>,
    /// Application whose rows are wanted: a name, or the path of a description.
    pub app: Option<&'a str>,
    /// Values of its parameters, by name.
    pub app_settings: &'a [(String, String)],
    /// Options of its targets, by name.
    pub app_options: &'a [(String, String)],
    /// Loads that layers need measured below them.
    pub loads: &'a StackLoads,
    /// The user allows writes to what carries data.
    pub destroy_data: bool,
    /// Things that layers serve to each other's rows; none before the run has begun.
    pub served: Option<&'a [StackServed]>,
}

/// Something that a layer serves to rows while the run goes on.
pub struct StackServed {
    /// Its name, known to those whose rows need it: see [`StackServed::ENGINE`].
    pub name: &'static str,
    /// Its target, or why it is not there.
    pub target: Result<String, String>,
    /// Ends it and removes what it made, when the layers of the run have ended.
    pub end: Option<StackEnd>,
}

/// End of something that was served.
pub type StackEnd = Box<dyn FnOnce() -> Result<(), Error>>;

impl StackServed {
    /// An engine of this machine, `tcp://HOST:PORT`, whose pool of [`StackServed::ENGINE_POOL`] holds objects.
    pub const ENGINE: &'static str = "engine";
    /// Label of that pool.
    pub const ENGINE_POOL: &'static str = "stack";
    /// An empty pool of the embedded store, the path of its directory: one process may have it open, once.
    pub const POOL: &'static str = "pool";
    /// Another one, for what opens it beside that.
    pub const SECOND_POOL: &'static str = "second pool";
    /// One for the data of rows that have loads of their own ([`StackLoads`]); only where there are such.
    pub const LOADS_POOL: &'static str = "pool of loads";
}

impl std::fmt::Debug for StackServed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackServed")
            .field("name", &self.name)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl StackRequest<'_> {
    /// Target of what is served under this name.
    ///
    /// # Errors
    /// Why it is not there.
    pub fn served(&self, name: &str) -> Result<&str, Error> {
        let missing = |why: &str| Error::new(driver::ErrorKind::Run, "stack", why);
        let served = self.served.ok_or_else(|| missing("the run has not begun"))?;
        match served.iter().find(|served| served.name == name) {
            Some(StackServed { target: Ok(target), .. }) => Ok(target),
            Some(StackServed { target: Err(why), .. }) => Err(missing(why)),
            None => Err(missing("this build does not provide it")),
        }
    }

    /// Whether the hosts are elsewhere and cannot reach what this run serves over loopback.
    #[must_use]
    pub fn loopback_is_out_of_reach(&self) -> bool {
        self.hosts.is_some_and(|hosts| !hosts.are_local)
    }

    /// The scratch path with an end.
    #[must_use]
    pub fn beside(&self, suffix: &str) -> std::path::PathBuf {
        let mut name = self.scratch.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }
}

/// A spec of a layer with these options.
///
/// # Errors
/// An option that is none of the layer's, and values that it does not take.
pub fn spec(
    layer: workload::layers::Layer,
    target: &str,
    name: String,
    words: &[(&str, &str)],
) -> Result<Spec, Error> {
    let mut spec = Spec { layer, targets: vec![target.to_owned()], name: Some(name), ..Spec::default() };
    for (key, value) in words {
        options::apply(&mut spec, key, value).map_err(|error| Error::usage("stack", error.to_string()))?;
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_moves_its_part_of_the_data() {
        let load = StackLoad {
            name: "a s, write 4 MiB x 2".to_owned(),
            of: "a".to_owned(),
            writes: true,
            is_random: false,
            bytes: 64 << 20,
            transfer_bytes: 4 << 20,
            workers: 2,
            writes_per_sync: Some(8),
        };
        assert_eq!(load.transfers(), 8);
        assert_eq!(StackLoad { workers: 3, ..load.clone() }.transfers(), 6, "the rest has a place too");
        assert_eq!(StackLoad { bytes: 1, ..load }.transfers(), 1);
    }

    #[test]
    fn room_is_needed_in_files_in_pools_and_in_stores() {
        let of = |stored_bytes| StackLoads { stored_bytes, ..StackLoads::default() };
        assert_eq!(of(0).room_bytes(), 0);
        assert_eq!(of(64 << 20).pool_bytes(), 512 << 20, "no pool is smaller");
        assert_eq!(of(200 << 20).pool_bytes(), 1 << 30, "four times the data, in units of 256 MiB");
        assert_eq!(of(200 << 20).room_bytes(), (4 << 30) + (200 << 20));
        assert_eq!(of(u64::MAX).room_bytes(), u64::MAX, "more than there can be");
    }
}
