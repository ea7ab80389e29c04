//! A machine that exists in tests alone.

use std::collections::BTreeMap;
use std::io;

use crate::{NvmeNamespace, PathFacts, World};

/// Facts of the machine that the tests set.
#[derive(Clone, Default)]
pub(crate) struct Machine {
    pub(crate) paths: BTreeMap<String, PathFacts>,
    pub(crate) texts: BTreeMap<String, String>,
    pub(crate) processors: Vec<u32>,
    pub(crate) namespaces: Vec<NvmeNamespace>,
    pub(crate) engines: Vec<&'static str>,
}

impl Machine {
    /// Eight processors, io_uring, and nothing else.
    pub(crate) fn new() -> Self {
        registry::register();
        Self {
            processors: (0..8).collect(),
            engines: vec!["psync", "libaio", "io_uring", "mmap"],
            ..Self::default()
        }
    }

    pub(crate) fn file(mut self, path: &str, size_bytes: u64) -> Self {
        self.paths.insert(path.to_owned(), PathFacts::File { size_bytes });
        self
    }

    pub(crate) fn device(mut self, path: &str, size_bytes: u64) -> Self {
        self.paths.insert(path.to_owned(), PathFacts::BlockDevice { size_bytes });
        self
    }

    pub(crate) fn directory(mut self, path: &str) -> Self {
        self.paths.insert(path.to_owned(), PathFacts::Directory);
        self
    }

    pub(crate) fn text(mut self, path: &str, text: &str) -> Self {
        self.texts.insert(path.to_owned(), text.to_owned());
        self.file(path, text.len() as u64)
    }

    pub(crate) fn namespace(mut self, path: &str, address: Option<&str>) -> Self {
        self.namespaces.push(NvmeNamespace {
            path: path.to_owned(),
            pci_address: address.map(str::to_owned),
            subsystem: None,
            model: None,
            serial: None,
        });
        self.device(path, 1 << 40)
    }
}

impl World for Machine {
    fn read(&self, path: &str) -> io::Result<String> {
        self.texts.get(path).cloned().ok_or_else(|| io::Error::from_raw_os_error(2))
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn look(&self, path: &str) -> PathFacts {
        self.paths.get(path).copied().unwrap_or(PathFacts::Missing)
    }

    fn processors(&self) -> Vec<u32> {
        self.processors.clone()
    }

    fn page_size_bytes(&self) -> u64 {
        4096
    }

    fn memory_bytes(&self) -> u64 {
        64 << 30
    }

    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        self.namespaces.clone()
    }

    fn host_name(&self) -> String {
        "store1".to_owned()
    }

    fn process_id(&self) -> u32 {
        4711
    }

    fn engines(&self) -> Vec<&'static str> {
        self.engines.clone()
    }
}

/// The words of a line, split at blanks.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// All that a piece holds, as text.
pub(crate) fn text_of(pieces: &[crate::Piece], place: &crate::Destination) -> String {
    let here = pieces.iter().filter(|piece| piece.place == *place);
    here.map(|piece| String::from_utf8_lossy(&piece.content).into_owned()).collect()
}
