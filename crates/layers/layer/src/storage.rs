//! Storage that a layer offers to loads that are made of its operations.
//!
//! No layer depends on another. One that is made of operations of others (applications) asks [`find`] for the layer that serves a target, gets
//! a [`Storage`] for its run and a driver for each of its workers, and speaks to all of them in [`StorageOperation`]s: numbered objects in
//! named sets. What an object is there (a file, an array, the value of a key) is the layer's that serves it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Error, Opened, Operation};
pub use hdf5::ElementType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::spec::Spec;

use crate::list::all;
use crate::measured::{Measured, RunContext};

/// Call on a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum StorageCall {
    /// Opens the container and closes it again.
    OpenContainer,
    /// Takes a block of object ids.
    AllocateIds,
    /// Makes an object and opens it.
    Create,
    /// Opens one.
    Open,
    /// Writes at an offset of the open object of a set.
    Write,
    /// Reads there.
    Read,
    /// Makes the open object durable.
    Sync,
    /// Closes it.
    Close,
    /// Asks for the size of an object.
    Stat,
    /// Gives an object that was made aside its name.
    Rename,
    /// Removes an object.
    Remove,
    /// Puts a value under a key of an index.
    Put,
    /// Gets it.
    Get,
    /// Lists the keys of an index.
    List,
}

/// Names of the calls, in the order of the enumeration.
pub const STORAGE_CALLS: &[&str] = &[
    "open-container",
    "allocate-ids",
    "create",
    "open",
    "write",
    "read",
    "sync",
    "close",
    "stat",
    "rename",
    "remove",
    "put",
    "get",
    "list",
];

impl StorageCall {
    /// All of them, in the order of [`STORAGE_CALLS`].
    pub const ALL: &'static [Self] = &[
        Self::OpenContainer,
        Self::AllocateIds,
        Self::Create,
        Self::Open,
        Self::Write,
        Self::Read,
        Self::Sync,
        Self::Close,
        Self::Stat,
        Self::Rename,
        Self::Remove,
        Self::Put,
        Self::Get,
        Self::List,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        STORAGE_CALLS[self as usize]
    }

    /// Whether it brings data to the storage.
    #[must_use]
    pub fn stores(self) -> bool {
        matches!(self, Self::Write | Self::Put)
    }

    /// Whether it is about a part of an object.
    #[must_use]
    pub fn is_part(self) -> bool {
        matches!(self, Self::Write | Self::Read)
    }

    /// Whether it brings data back.
    #[must_use]
    pub fn loads(self) -> bool {
        matches!(self, Self::Read | Self::Get)
    }
}

/// One call of a worker. Calls on the open object of a set are about the one that the worker opened last in that set.
#[derive(Clone, Copy, Debug)]
pub struct StorageOperation {
    /// Slot, and so buffer.
    pub slot: u32,
    /// Call.
    pub call: StorageCall,
    /// Number of the set.
    pub set: u16,
    /// Number of the object, or of the index, in its set.
    pub object: u64,
    /// Number of the key of an index.
    pub key: u64,
    /// First byte in the object.
    pub offset_bytes: u64,
    /// Bytes that it stores, or asks for.
    pub length_bytes: u64,
}

impl gpu::Transfers for StorageOperation {
    /// Data of objects; values of indexes stay in memory of the host.
    #[inline]
    fn transfer(&self) -> gpu::Transfer {
        match self.call {
            StorageCall::Read => gpu::Transfer::In,
            StorageCall::Write => gpu::Transfer::Out,
            _ => gpu::Transfer::None,
        }
    }
}

impl Operation for StorageOperation {
    const CLASSES: &'static [&'static str] = STORAGE_CALLS;

    #[inline]
    fn class(&self) -> usize {
        self.call as usize
    }

    #[inline]
    fn slot(&self) -> u32 {
        self.slot
    }

    #[inline]
    fn bytes(&self) -> u64 {
        if self.call.stores() || self.call.loads() { self.length_bytes } else { 0 }
    }

    #[inline]
    fn position(&self) -> u64 {
        self.offset_bytes
    }
}

/// Form of the objects of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectFormat {
    /// Bytes as they are.
    #[default]
    Raw,
    /// An HDF5 file with a group of datasets, made and read by libhdf5.
    Hdf5,
}

impl ObjectFormat {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Hdf5 => "hdf5",
        }
    }

    /// Whether objects are bytes as they are.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        *self == Self::Raw
    }
}

/// A dataset of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dataset {
    /// Name.
    pub name: String,
    /// Type of its elements.
    pub element: ElementType,
}

/// Place in the datasets of an object: they have the same number of bytes, and lie one behind the other in its offsets.
#[derive(Clone, Copy, Debug)]
pub struct DatasetPlace {
    /// Number of the dataset.
    pub dataset: usize,
    /// First byte in it.
    pub offset_bytes: u64,
}

impl DatasetPlace {
    /// That of an offset in an object of so many datasets.
    #[inline]
    #[must_use]
    pub fn of(offset_bytes: u64, object_bytes: u64, datasets: usize) -> Self {
        let each = (object_bytes / datasets.max(1) as u64).max(1);
        Self { dataset: (offset_bytes / each) as usize, offset_bytes: offset_bytes % each }
    }
}

/// Transfers of ranks that have an object open together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transfers {
    /// All ranks make each of them together.
    Collective,
    /// Each rank makes its own.
    Independent,
}

/// Objects of one kind that a load has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageSet {
    /// Name, of lower-case letters, digits and hyphens.
    pub name: String,
    /// Whether its objects are indexes: key-values.
    pub is_index: bool,
    /// How many there are.
    pub objects: u64,
    /// Largest object in bytes, or largest value of an index.
    pub object_bytes: u64,
    /// Most bytes that one call moves.
    pub transfer_bytes: u64,
    /// Keys of all indexes together.
    pub keys: u64,
    /// Objects are made aside and get their name by [`StorageCall::Rename`].
    pub is_renamed: bool,
    /// [`StorageCall::Sync`] makes data and sizes durable, and need not do so with times.
    pub data_sync: bool,
    /// Form of its objects.
    pub format: ObjectFormat,
    /// Datasets of an object that is no bytes as they are.
    pub datasets: Vec<Dataset>,
    /// Objects that are there already are opened to be written.
    pub is_updated: bool,
    /// The hosts are ranks of MPI and have its objects open together.
    pub parallel: Option<Transfers>,
}

/// Demands of a load on its storage.
#[derive(Clone, Debug, Default)]
pub struct StorageNeeds {
    /// Number of its first phase in the run: loads on one target keep apart by it.
    pub number: usize,
    /// Its sets.
    pub sets: Vec<StorageSet>,
    /// Workers that will ask for a driver at the same time, at most.
    pub workers: u32,
    /// Ids that one [`StorageCall::AllocateIds`] takes.
    pub ids_per_call: u32,
    /// Calls that it makes.
    pub calls: Vec<StorageCall>,
}

impl StorageNeeds {
    /// Most bytes that one call moves.
    #[must_use]
    pub fn transfer_bytes_max(&self) -> u64 {
        self.sets.iter().map(|set| set.transfer_bytes).max().unwrap_or(0).max(1)
    }

    /// Sum of `count` over the sets of the same kind before set `set`: its objects are numbered from there.
    #[must_use]
    pub fn base_of(&self, set: usize, count: impl Fn(&StorageSet) -> u64) -> u64 {
        let is_index = self.sets[set].is_index;
        self.sets[..set].iter().filter(|other| other.is_index == is_index).map(count).sum()
    }
}

/// Facts of a storage, for planning and for the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageFacts {
    /// Name of the driver that serves it: `posix`, `dfs`, `vos`, `s3`.
    pub engine: String,
    /// Calls that have no counterpart there, and that loads leave out: an S3 object is not opened.
    pub left_out: Vec<StorageCall>,
    /// Calls that it cannot carry out.
    pub refused: Vec<StorageCall>,
    /// Objects are written and read as a whole, by one call.
    pub only_whole: bool,
    /// Offsets and lengths are multiples of this many bytes.
    pub granularity_bytes: u64,
    /// Free space in bytes, where it could be told.
    pub free_bytes: Option<u64>,
    /// Whether what is written stays in memory until it is synced.
    pub is_cached: bool,
    /// Whether it works in this process alone: it keeps processors busy by its nature.
    pub is_in_process: bool,
}

/// A storage during a run. Nothing is made before [`Storage::prepare`].
pub trait Storage: Send + Sync {
    /// Its facts.
    fn facts(&self) -> StorageFacts;

    /// Makes what the load needs, noted before: containers, claims to objects, directories. More than once changes nothing.
    ///
    /// # Errors
    /// What could not be made, and what is others'.
    fn prepare(&self) -> Result<(), Error>;

    /// Drops what memory keeps of the data, so that they are read from the storage; where nothing can be dropped, nothing is.
    ///
    /// # Errors
    /// When an interruption ended it, or the storage failed.
    fn drop_cache(&self, _interrupt: &AtomicBool) -> Result<(), Error> {
        Ok(())
    }

    /// Opens the driver of one worker, on its thread. Its buffers are those of `arena`.
    ///
    /// # Errors
    /// Why it cannot.
    fn open(
        &self,
        worker: u32,
        arena: &Arc<Arena>,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Opened<StorageOperation>, Error>;

    /// Name of an object, or of a key of an index, for people.
    fn name(&self, operation: &StorageOperation) -> String;

    /// Notes on its place.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Removes what the run made, unless it shall stay, and closes it.
    ///
    /// # Errors
    /// Things that are left.
    fn end(&self) -> Result<(), Error>;
}

/// The layer that serves a target.
///
/// # Errors
/// A target that no layer serves, with the forms that there are.
pub fn find(target: &str) -> Result<&'static dyn Measured, Error> {
    let layers = all();
    let found = layers.iter().copied().find(|layer| layer.serves_storage(target));
    found.ok_or_else(|| {
        let forms = layers.iter().flat_map(|layer| layer.storage_targets().iter().copied());
        Error::usage("plan", "no layer provides the target for applications")
            .with("target", target)
            .remedy(format!("use {}", forms.collect::<Vec<_>>().join(", ")))
    })
}

/// Opens the storage of the target of a spec, which is one of the layer that serves it.
///
/// # Errors
/// Options that the layer does not take, and why it cannot be opened.
pub fn open(spec: &Spec, needs: &StorageNeeds, context: &RunContext) -> Result<Arc<dyn Storage>, Error> {
    let target = spec.targets.first().map_or("", String::as_str);
    find(target)?.storage(spec, needs, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datasets_follow_each_other_in_the_offsets_of_an_object() {
        let place = |offset| {
            let place = DatasetPlace::of(offset, 800, 8);
            (place.dataset, place.offset_bytes)
        };
        assert_eq!([place(0), place(99), place(100), place(799)], [(0, 0), (0, 99), (1, 0), (7, 99)]);
        // A raw object has none, and one without bytes has no place.
        assert_eq!(DatasetPlace::of(5, 10, 0).offset_bytes, 5);
        assert_eq!(DatasetPlace::of(0, 0, 3).dataset, 0);
        for (name, element) in ElementType::NAMES {
            assert_eq!(serde_json::to_value(element).unwrap(), *name);
        }
    }
}
