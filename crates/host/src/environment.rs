//! Everything about this machine that a record keeps.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::activity;
use crate::memory::{self, MemoryFacts};
use crate::network::{self, Interface};
use crate::processor::{self, Processor};
use crate::system::{self, System};
use crate::target::TargetEnvironment;
use crate::topology::{self, NumaNode};

/// The machine and the targets as they were when the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The operating system.
    pub system: System,
    /// The processors.
    pub processor: Processor,
    /// NUMA nodes; empty where the kernel knows of none.
    pub numa_nodes: Vec<NumaNode>,
    /// Memory.
    pub memory: MemoryFacts,
    /// Network interfaces that have a device below or an address that others can reach.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load_averages: Option<[f64; 3]>,
    /// The targets, in the order given.
    pub targets: Vec<TargetEnvironment>,
}

impl Environment {
    /// Gathers the facts about this machine and the targets. Takes some milliseconds; fails never.
    #[must_use]
    pub fn gather(target_paths: &[PathBuf]) -> Self {
        Self {
            system: system::system(),
            processor: processor::processor(),
            numa_nodes: topology::numa_nodes(),
            memory: memory::memory(),
            interfaces: interfaces(),
            load_averages: activity::load_averages(),
            targets: target_paths.iter().map(|path| TargetEnvironment::gather(path)).collect(),
        }
    }
}

fn interfaces() -> Vec<Interface> {
    network::interfaces().unwrap_or_default().into_iter().filter(Interface::is_notable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_json() {
        let environment =
            Environment::gather(&[std::env::temp_dir().join("none"), "/dev/null".into(), "null:".into()]);
        assert_eq!(environment.targets.len(), 3);
        let json = serde_json::to_string_pretty(&environment).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&json).unwrap(), environment);
        let mut older = serde_json::to_value(&environment).unwrap();
        older.as_object_mut().unwrap().remove("interfaces");
        let older: Environment = serde_json::from_value(older).unwrap();
        assert_eq!(older, Environment { interfaces: vec![], ..environment });
        let schema = serde_json::to_string(&schemars::schema_for!(Environment)).unwrap();
        assert!(schema.contains("logical_block_size_bytes"));
    }
}
