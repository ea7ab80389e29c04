//! Machines of clients, of which nothing is known here.

use std::io;

use crate::world::NvmeNamespace;
use crate::{PathFacts, World};

/// Another machine: job files, logs and variables are those of this one, what jobs measure is there.
pub(super) struct Elsewhere<'a>(pub(super) &'a dyn World);

impl World for Elsewhere<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        self.0.read(path)
    }

    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0.read_bytes(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.variable(name)
    }

    fn look(&self, _: &str) -> PathFacts {
        PathFacts::Other
    }

    fn image_bytes(&self, target: &str) -> Result<u64, String> {
        self.0.image_bytes(target)
    }

    fn processors(&self) -> Vec<u32> {
        self.0.processors()
    }

    fn page_size_bytes(&self) -> u64 {
        self.0.page_size_bytes()
    }

    fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        Vec::new()
    }

    fn host_name(&self) -> String {
        self.0.host_name()
    }

    fn process_id(&self) -> u32 {
        self.0.process_id()
    }

    fn engines(&self) -> Vec<&'static str> {
        self.0.engines()
    }
}
