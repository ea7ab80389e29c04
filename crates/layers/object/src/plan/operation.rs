//! Operations of the object layer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operation of the object layer. Three interfaces over one model: objects with dkeys and akeys (`update`, `fetch`, ...), key-value
/// objects (`put`, `get`, ...) and array objects (`write`, `read`, ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum ObjectOp {
    /// Writes a single value or an extent under a dkey and an akey.
    Update,
    /// Reads one.
    Fetch,
    /// Removes what the phase's punch scope says: the record, the akey, the dkey or the object.
    Punch,
    /// Puts a value under a key.
    Put,
    /// Gets it.
    Get,
    /// Removes a key.
    Remove,
    /// Lists keys, from where the last list of the slot ended.
    List,
    /// Asks for the size of a value without reading it (S3: HEAD).
    Stat,
    /// Writes cells of an array.
    Write,
    /// Reads cells of an array. Where the plan says `short_reads`, it may find fewer than it asks for.
    Read,
    /// Asks for the size of an array.
    Size,
    /// Creates an array object with its attributes.
    Create,
    /// Opens an array object by reading its attributes from the store.
    Open,
    /// Opens an array object with attributes that the caller knows: nothing is read.
    OpenWithAttr,
    /// Destroys an array object.
    Destroy,
    /// Asks for the largest dkey and the largest record index under it.
    Query,
    /// Opens the container and closes it again.
    OpenContainer,
    /// Takes a block of object ids.
    AllocateIds,
    /// Visits all that an object holds, down to records.
    Iterate,
    /// Merges versions that no snapshot needs, and gives their space back.
    Aggregate,
    /// Drops all versions of a range of epochs.
    Discard,
    /// Gives back the space of what was punched.
    Collect,
}

/// Names of the operations, in the order of the enumeration; class names of the figures too.
pub const OBJECT_OPERATIONS: &[&str] = &[
    "update",
    "fetch",
    "punch",
    "put",
    "get",
    "remove",
    "list",
    "stat",
    "write",
    "read",
    "size",
    "create",
    "open",
    "open-with-attr",
    "destroy",
    "query",
    "open-container",
    "allocate-ids",
    "iterate",
    "aggregate",
    "discard",
    "collect",
];

impl ObjectOp {
    /// All of them, in the order of [`OBJECT_OPERATIONS`].
    pub const ALL: &'static [Self] = &[
        Self::Update,
        Self::Fetch,
        Self::Punch,
        Self::Put,
        Self::Get,
        Self::Remove,
        Self::List,
        Self::Stat,
        Self::Write,
        Self::Read,
        Self::Size,
        Self::Create,
        Self::Open,
        Self::OpenWithAttr,
        Self::Destroy,
        Self::Query,
        Self::OpenContainer,
        Self::AllocateIds,
        Self::Iterate,
        Self::Aggregate,
        Self::Discard,
        Self::Collect,
    ];

    /// The name users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        OBJECT_OPERATIONS[self as usize]
    }

    /// Whether it stores a value.
    #[must_use]
    pub fn stores(self) -> bool {
        matches!(self, Self::Update | Self::Put | Self::Write)
    }

    /// Whether it brings a value back.
    #[must_use]
    pub fn loads(self) -> bool {
        matches!(self, Self::Fetch | Self::Get | Self::Read)
    }

    /// Whether it changes the store.
    #[must_use]
    pub fn changes(self) -> bool {
        self.stores()
            || matches!(
                self,
                Self::Punch
                    | Self::Remove
                    | Self::Create
                    | Self::Destroy
                    | Self::AllocateIds
                    | Self::Aggregate
                    | Self::Discard
                    | Self::Collect
            )
    }

    /// Whether it reads versions, and so can be asked what a snapshot shows.
    #[must_use]
    pub fn reads_versions(self) -> bool {
        self.loads()
            || matches!(
                self,
                Self::List
                    | Self::Stat
                    | Self::Size
                    | Self::Open
                    | Self::OpenWithAttr
                    | Self::Query
                    | Self::Iterate
            )
    }

    /// Whether it needs what was stored before.
    #[must_use]
    pub fn needs_data(self) -> bool {
        self.loads()
            || matches!(
                self,
                Self::Punch
                    | Self::Remove
                    | Self::List
                    | Self::Stat
                    | Self::Size
                    | Self::Open
                    | Self::Destroy
                    | Self::Query
                    | Self::Iterate
            )
    }
}

/// The interface that an operation is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Objects with dkeys and akeys.
    Keys,
    /// Key-value objects: one value a key.
    KeyValue,
    /// Arrays.
    Array,
}

impl Interface {
    /// Name of its objects, in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Keys => "objects with dkeys and akeys",
            Self::KeyValue => "key-value objects",
            Self::Array => "arrays",
        }
    }

    /// Operation that stores a record of it.
    #[must_use]
    pub fn store(self) -> ObjectOp {
        match self {
            Self::Keys => ObjectOp::Update,
            Self::KeyValue => ObjectOp::Put,
            Self::Array => ObjectOp::Write,
        }
    }
}

impl ObjectOp {
    /// The interface that it is of; none of those that work on a container.
    #[must_use]
    pub fn interface(self) -> Option<Interface> {
        match self {
            Self::Update | Self::Fetch | Self::Punch | Self::Query | Self::Iterate => Some(Interface::Keys),
            Self::Put | Self::Get | Self::Remove | Self::List | Self::Stat => Some(Interface::KeyValue),
            Self::Write
            | Self::Read
            | Self::Size
            | Self::Create
            | Self::Open
            | Self::OpenWithAttr
            | Self::Destroy => Some(Interface::Array),
            Self::OpenContainer | Self::AllocateIds | Self::Aggregate | Self::Discard | Self::Collect => None,
        }
    }

    /// Whether it takes away what it works on.
    #[must_use]
    pub fn takes_away(self) -> bool {
        matches!(self, Self::Punch | Self::Remove | Self::Destroy)
    }
}
