//! Objects that a run made in stores, as its manifest and its record name them: these may be removed again, and nothing else.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ObjectOptions;

/// Something that a run created in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Made {
    /// S3: the bucket of the target. It is removed only if it is empty.
    Bucket {
        /// Its name.
        bucket: String,
        /// The server confirmed that it was created for this run. False: creation was requested, but the answer is unknown.
        is_certain: bool,
    },
    /// S3: objects with names of a load. Those with the mark of the run (`x-amz-meta-strata-run`) are removed.
    Objects {
        /// Prefix of their names.
        prefix: String,
        /// The names contain `oN/` between the prefix and the key.
        names_objects: bool,
        /// Format of the key: its number follows it, or replaces braces.
        key: String,
        /// Multipart uploads with these names that existed before the load and belong to others. None: the load has no uploads, or the
        /// server does not list them; no upload is aborted then.
        #[serde(default)]
        uploads_of_others: Option<Vec<String>>,
    },
    /// A container. It is removed if all its contents belong to the run; otherwise only the run's objects are removed.
    Container {
        /// Its label.
        label: String,
        /// Identity of the container; none: creation was requested, but the result is unknown.
        id: Option<String>,
    },
    /// Objects in a container that existed before: objects that the run claims and that did not exist.
    Stored {
        /// Label of the container.
        label: String,
        /// Identity of the container.
        id: String,
    },
    /// RADOS: objects with user-defined names. Those with the mark of the run (`strata.run`) are removed.
    NamedObjects {
        /// Namespace of the pool; empty: none.
        namespace: String,
        /// Their names.
        names: Vec<String>,
    },
    /// Objects in a container that existed before, in a store without claims (DAOS): they were empty, and are removed by their ids.
    ObjectIds {
        /// Label of the container.
        label: String,
        /// Identity of the container.
        id: String,
        /// Upper half of the ids, as 16 hexadecimal digits: type, class and kind.
        upper: String,
        /// Lower half of the first.
        first: u64,
        /// Lower half of the last, which is one of them.
        last: u64,
    },
    /// The directory of a pool in this machine.
    Pool {
        /// UUID of the pool, chosen before its creation; none: recorded by an earlier release that was about to create it.
        id: Option<String>,
        /// The directory is private to the run: it is removed with all its contents.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_private: bool,
    },
}

impl Made {
    /// Its name, in a few words.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Bucket { bucket, .. } => format!("bucket {bucket}"),
            Self::Objects { prefix, names_objects, key, .. } => {
                let number = if key.contains('{') { "" } else { "N" };
                format!("objects {prefix}{}{key}{number}", if *names_objects { "oN/" } else { "" })
            }
            Self::Container { label, .. } => format!("container {label}"),
            Self::Stored { label, .. } => format!("objects in container {label}"),
            Self::NamedObjects { names, .. } => match names.as_slice() {
                [only] => format!("object {only}"),
                all => {
                    format!("{} objects, {} and others", all.len(), all.first().map_or("", String::as_str))
                }
            },
            Self::ObjectIds { label, first, last, .. } => {
                format!("objects {first} to {last} in container {label}")
            }
            Self::Pool { .. } => "pool".to_owned(),
        }
    }
}

/// Objects that a run created in one store, and how to reach that store. Keys and tokens are not included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MadeInStore {
    /// Where it is: the whole URL.
    pub target: String,
    /// Options of its driver.
    pub options: ObjectOptions,
    /// Created objects, in the order of their creation.
    pub made: Vec<Made>,
}
