//! The operation of this layer: a call of an application.

use driver::Operation;
use layer::storage::{STORAGE_CALLS, StorageCall, StorageOperation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Classes of calls. The first are those of storages, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum AppClass {
    /// Opens the container and closes it again.
    OpenContainer,
    /// Takes a block of object ids.
    AllocateIds,
    /// Makes an object and opens it.
    Create,
    /// Opens one.
    Open,
    /// Writes an item, or a part of it.
    Write,
    /// Reads it.
    Read,
    /// Makes an object durable.
    Sync,
    /// Closes it.
    Close,
    /// Asks for the size of an object.
    Stat,
    /// Gives an object its name.
    Rename,
    /// Removes an object.
    Remove,
    /// Puts the place of an item into an index.
    Put,
    /// Gets it.
    Get,
    /// Lists an index.
    List,
    /// Computes.
    Compute,
    /// Waits for other processes.
    Wait,
    /// Writes a record at the next free place of a log.
    Append,
    /// Makes records durable, with those of other processes in one sync where these wait at the same time.
    Commit,
    /// Reads the record at a place of a log.
    Recover,
    /// Fills segments of a log with zeros.
    Allocate,
    /// Writes an item again that another step wrote.
    Update,
    /// Copies an item into memory that another step writes it from.
    Copy,
}

/// Names of the classes, in the order of the enumeration.
pub const APP_CLASSES: &[&str] = &[
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
    "compute",
    "wait",
    "append",
    "commit",
    "recover",
    "allocate",
    "update",
    "copy",
];

/// Classes that are calls on storages in other words, with the call that each makes.
const OTHER_CALLS: &[(AppClass, StorageCall)] = &[
    (AppClass::Append, StorageCall::Write),
    (AppClass::Commit, StorageCall::Sync),
    (AppClass::Recover, StorageCall::Read),
    (AppClass::Allocate, StorageCall::Write),
    (AppClass::Update, StorageCall::Write),
];

impl AppClass {
    /// The class of this name; `wait` is none that a description may ask for.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if let Some(class) = [Self::Compute, Self::Copy].into_iter().find(|class| class.name() == name) {
            return Some(class);
        }
        if let Some((class, _)) = OTHER_CALLS.iter().find(|(class, _)| class.name() == name) {
            return Some(*class);
        }
        let at = STORAGE_CALLS.iter().position(|known| *known == name)?;
        StorageCall::ALL.get(at).map(|call| Self::of(*call))
    }

    /// The class of a call on a storage.
    #[must_use]
    pub fn of(call: StorageCall) -> Self {
        match call {
            StorageCall::OpenContainer => Self::OpenContainer,
            StorageCall::AllocateIds => Self::AllocateIds,
            StorageCall::Create => Self::Create,
            StorageCall::Open => Self::Open,
            StorageCall::Write => Self::Write,
            StorageCall::Read => Self::Read,
            StorageCall::Sync => Self::Sync,
            StorageCall::Close => Self::Close,
            StorageCall::Stat => Self::Stat,
            StorageCall::Rename => Self::Rename,
            StorageCall::Remove => Self::Remove,
            StorageCall::Put => Self::Put,
            StorageCall::Get => Self::Get,
            StorageCall::List => Self::List,
        }
    }

    /// The call on a storage that it is; none of those that are none.
    #[inline]
    #[must_use]
    pub fn call(self) -> Option<StorageCall> {
        match self {
            Self::Append | Self::Allocate | Self::Update => Some(StorageCall::Write),
            Self::Recover => Some(StorageCall::Read),
            Self::Commit => Some(StorageCall::Sync),
            _ => StorageCall::ALL.get(self as usize).copied(),
        }
    }

    /// Whether its sets are logs.
    #[must_use]
    pub fn is_of_log(self) -> bool {
        matches!(self, Self::Append | Self::Commit | Self::Recover | Self::Allocate)
    }

    /// Whether it brings content of items to the storage.
    #[inline]
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Append | Self::Allocate | Self::Update)
    }

    /// Whether it brings content of items back.
    #[inline]
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::Recover)
    }

    /// Whether it is about the bytes of items, one transfer after the other.
    #[inline]
    #[must_use]
    pub fn is_on_bytes(self) -> bool {
        self.moves() || self == Self::Copy
    }

    /// Whether it moves data to the storage, or from there.
    #[inline]
    #[must_use]
    pub fn moves(self) -> bool {
        self.writes() || self.reads() || matches!(self, Self::Put | Self::Get)
    }

    /// Whether it is about a set.
    #[must_use]
    pub fn has_set(self) -> bool {
        !matches!(self, Self::OpenContainer | Self::AllocateIds | Self::Compute | Self::Wait)
    }

    /// Whether its sets are indexes.
    #[must_use]
    pub fn is_of_index(self) -> bool {
        matches!(self, Self::Put | Self::Get | Self::List)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        APP_CLASSES[self as usize]
    }
}

/// One operation of a process.
#[derive(Clone, Copy, Debug)]
pub struct AppOperation {
    /// Class.
    pub class: AppClass,
    /// Slot, and so buffer.
    pub slot: u32,
    /// Number of its set.
    pub set: u16,
    /// Step of the process.
    pub step: u16,
    /// Number of the item.
    pub item: u64,
    /// Number of the object, or of the index.
    pub object: u64,
    /// First byte in the object.
    pub offset_bytes: u64,
    /// First byte in the item.
    pub item_offset_bytes: u64,
    /// Bytes that it moves.
    pub length_bytes: u64,
    /// Length of a computation, in nanoseconds; the iteration of a wait.
    pub amount: u64,
}

impl AppOperation {
    /// The call on a storage that it is.
    #[inline]
    #[must_use]
    pub fn storage(&self) -> Option<StorageOperation> {
        Some(StorageOperation {
            slot: self.slot,
            call: self.class.call()?,
            set: self.set,
            object: self.object,
            key: self.item,
            offset_bytes: self.offset_bytes,
            length_bytes: self.length_bytes,
        })
    }
}

impl Operation for AppOperation {
    const CLASSES: &'static [&'static str] = APP_CLASSES;

    #[inline]
    fn class(&self) -> usize {
        self.class as usize
    }

    #[inline]
    fn slot(&self) -> u32 {
        self.slot
    }

    #[inline]
    fn bytes(&self) -> u64 {
        // A commit of a group has its part of the bytes that the group is written with.
        if self.class.moves() || self.class == AppClass::Commit { self.length_bytes } else { 0 }
    }

    #[inline]
    fn position(&self) -> u64 {
        self.offset_bytes
    }

    #[inline]
    fn is_whole(&self, result: i64) -> bool {
        if self.class.moves() { result == self.length_bytes as i64 } else { result >= 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_storages_stand_in_their_order() {
        for call in StorageCall::ALL {
            let class = AppClass::of(*call);
            assert_eq!(
                (class as usize, class.name(), class.call()),
                (*call as usize, call.name(), Some(*call))
            );
            assert_eq!(AppClass::named(call.name()), Some(class));
        }
        assert_eq!((AppClass::Compute.call(), AppClass::named("compute")), (None, Some(AppClass::Compute)));
        assert_eq!(AppClass::named("wait"), None);
        for (class, call) in OTHER_CALLS {
            assert_eq!((class.call(), AppClass::named(class.name())), (Some(*call), Some(*class)));
        }
        assert_eq!((AppClass::Copy.call(), AppClass::named("copy")), (None, Some(AppClass::Copy)));
        assert_eq!(APP_CLASSES.len(), AppClass::Copy as usize + 1);
    }
}
