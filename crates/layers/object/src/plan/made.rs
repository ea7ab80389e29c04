//! Objects that a run made in stores, as its manifest and its record name them: these may be removed again, and nothing else.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ObjectOptions;

/// One thing that a run made in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Made {
    /// S3: the bucket of the target. It goes when it is empty, and only then.
    Bucket {
        /// Its name.
        bucket: String,
        /// The server has said that it was made for this run. False: it was asked to, and its answer is not known.
        is_certain: bool,
    },
    /// S3: objects under names of a load. Of these, the ones go that carry the mark of the run (`x-amz-meta-strata-run`).
    Objects {
        /// Prefix of their names.
        prefix: String,
        /// `oN/` stands between the prefix and the key.
        names_objects: bool,
        /// The key as the load names it: its number stands behind it, or where it has braces.
        key: String,
        /// Uploads in parts under these names that were under way before the load: others' own. None: the load has none of its own, or the
        /// server does not list them; then none is touched.
        #[serde(default)]
        uploads_of_others: Option<Vec<String>>,
    },
    /// A container. It goes when all that is in it is the run's own; else the run's own objects go.
    Container {
        /// Its label.
        label: String,
        /// By what it is known again; none: it was asked for, and whether it was made is not known.
        id: Option<String>,
    },
    /// Objects in a container that was there before: the ones that the run claims in it, and that were not there.
    Stored {
        /// Label of the container.
        label: String,
        /// By what the container is known again.
        id: String,
    },
    /// RADOS: objects under names that a load gave them. Of these, the ones go that carry the mark of the run (`strata.run`).
    NamedObjects {
        /// Namespace of the pool; empty: none.
        namespace: String,
        /// Their names.
        names: Vec<String>,
    },
    /// Objects in a container that was there before, of a store that keeps no claims (DAOS): they held nothing then, and go by their ids.
    ObjectIds {
        /// Label of the container.
        label: String,
        /// By what the container is known again.
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
        /// Its UUID, which was drawn before it was made; none: of a release before, which was about to make it.
        id: Option<String>,
        /// Its directory is one of the run's own, whose name nobody else knew: all that is in it goes with it.
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

/// Objects that a run made in one store, and how that store is reached. Keys and tokens stand nowhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MadeInStore {
    /// Where it is: the whole URL.
    pub target: String,
    /// Options of its driver.
    pub options: ObjectOptions,
    /// Objects made there, in the order in which they were made.
    pub made: Vec<Made>,
}
