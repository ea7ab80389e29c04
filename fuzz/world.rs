//! The machine that fuzzed command lines are read on.

use std::io;

use dialects::{NvmeNamespace, PathFacts, World};

/// A machine with one drive, and files and devices by the length of their path; each file that can be read holds the input.
pub struct Machine<'a>(pub &'a str);

impl World for Machine<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        // A file that names itself would be read without end.
        if path.len() == 1 { Ok(self.0.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "A").then(|| "4k".to_owned())
    }

    fn look(&self, path: &str) -> PathFacts {
        match (path, path.len() % 3) {
            ("/", _) => PathFacts::Directory,
            (_, 0) => PathFacts::BlockDevice { size_bytes: 1 << 40 },
            (_, 1) => PathFacts::File { size_bytes: 12_345_678 },
            _ => PathFacts::Missing,
        }
    }

    fn processors(&self) -> Vec<u32> {
        vec![0, 1]
    }

    fn page_size_bytes(&self) -> u64 {
        4096
    }

    fn memory_bytes(&self) -> u64 {
        1 << 34
    }

    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        vec![NvmeNamespace {
            path: "/dev/nvme0n1".to_owned(),
            pci_address: Some("0000:3b:00.0".to_owned()),
            subsystem: None,
            model: None,
            serial: None,
        }]
    }

    fn host_name(&self) -> String {
        "host".to_owned()
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn engines(&self) -> Vec<&'static str> {
        vec!["psync", "libaio", "io_uring"]
    }
}
