//! Command lines and job files, and the specs that they must become.

mod clients;
mod documents;
mod files;
mod lines;
mod plans;
mod random;
mod refusals;

use std::collections::BTreeMap;
use std::io;

use workload::spec::Spec;

use super::fault::Fault;
use super::jobs::Assembled;
use crate::{NvmeNamespace, PathFacts, Request, World};

/// A machine of two processors with nothing on it but what a test puts there.
#[derive(Default)]
pub(super) struct Machine {
    pub(super) texts: BTreeMap<String, String>,
    pub(super) paths: BTreeMap<String, PathFacts>,
    pub(super) variables: BTreeMap<String, String>,
}

impl Machine {
    pub(super) fn with_job(text: &str) -> Self {
        Self { texts: [("a.fio".to_owned(), text.to_owned())].into(), ..Self::default() }
    }
}

impl World for Machine {
    fn read(&self, path: &str) -> io::Result<String> {
        self.texts.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn look(&self, path: &str) -> PathFacts {
        if let Some(size_bytes) = path.strip_prefix("rbd:").and_then(|_| self.image_bytes(path).ok()) {
            return PathFacts::BlockDevice { size_bytes };
        }
        self.paths.get(path).copied().unwrap_or(PathFacts::Missing)
    }

    fn image_bytes(&self, target: &str) -> Result<u64, String> {
        if target.contains("/absent") { Err("rbd: the image does not exist".to_owned()) } else { Ok(1 << 30) }
    }

    fn processors(&self) -> Vec<u32> {
        vec![0, 1]
    }

    fn numa_nodes(&self) -> Vec<u32> {
        vec![0]
    }

    fn page_size_bytes(&self) -> u64 {
        4096
    }

    fn memory_bytes(&self) -> u64 {
        8 << 30
    }

    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        Vec::new()
    }

    fn host_name(&self) -> String {
        "machine".to_owned()
    }

    fn process_id(&self) -> u32 {
        77
    }

    fn engines(&self) -> Vec<&'static str> {
        vec!["psync", "pvsync2", "libaio", "io_uring", "mmap", "null", "mem"]
    }
}

pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The request of a line on an empty machine.
pub(super) fn request(line: &str) -> Result<Request, Fault> {
    super::request(&words(line), &Machine::default())
}

/// The specs, model and warnings of a line.
pub(super) fn assembled(line: &str, machine: &Machine) -> Result<Assembled, Fault> {
    let line = super::command::read(&words(line))?;
    let settled = super::settle::settle(&super::sections(&line, machine)?, machine)?;
    super::jobs::assemble(&settled.jobs, machine)
}

/// The specs of a line on an empty machine.
#[track_caller]
pub(super) fn specs(line: &str) -> Vec<Spec> {
    assembled(line, &Machine::default()).unwrap_or_else(|fault| panic!("{line}: {fault}")).specs
}

/// The only spec of a job `--name=x --filename=f --size=1g` with more options.
#[track_caller]
pub(super) fn spec(options: &str) -> Spec {
    let mut specs = specs(&format!("--name=x --filename=f --size=1g {options}"));
    assert_eq!(specs.len(), 1, "{options}");
    specs.remove(0)
}

/// The specs of a job file.
#[track_caller]
pub(super) fn job(text: &str) -> Vec<Spec> {
    assembled("a.fio", &Machine::with_job(text)).unwrap_or_else(|fault| panic!("{text}: {fault}")).specs
}
