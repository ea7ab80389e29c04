//! Facts about this machine that dialects may ask for.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;

use dialects::{NvmeNamespace, PathFacts, World};
use driver::Error;
use units::path_of;
use workload::layers::Layer;

use crate::commands::INPUT_BYTES_MAX;
use crate::hosts::launcher;

/// This machine.
#[derive(Default)]
pub(crate) struct ThisMachine {
    /// Sizes of images that were asked for, in bytes: each takes a connection to its cluster.
    images: RefCell<HashMap<String, Result<u64, String>>>,
}

impl World for ThisMachine {
    fn read(&self, path: &str) -> io::Result<String> {
        read_text(path)
    }

    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        read_file(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn look(&self, path: &str) -> PathFacts {
        if layer::all().iter().any(|layer| layer.is_image(path)) {
            let found = self.image_bytes(path);
            return found.map_or(PathFacts::Other, |size_bytes| PathFacts::BlockDevice { size_bytes });
        }
        let metadata = match fs::metadata(path_of(path)) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return PathFacts::Missing,
            Err(_) => return PathFacts::Other,
        };
        let kind = metadata.file_type();
        if kind.is_file() {
            PathFacts::File { size_bytes: metadata.len() }
        } else if kind.is_dir() {
            PathFacts::Directory
        } else if kind.is_block_device() {
            let size_bytes = device_bytes(path).unwrap_or(0);
            PathFacts::BlockDevice { size_bytes }
        } else if kind.is_char_device() {
            PathFacts::CharacterDevice
        } else {
            PathFacts::Other
        }
    }

    fn image_bytes(&self, target: &str) -> Result<u64, String> {
        self.images.borrow_mut().entry(target.to_owned()).or_insert_with(|| device_bytes(target)).clone()
    }

    fn processors(&self) -> Vec<u32> {
        host::topology::current_affinity().unwrap_or_default()
    }

    fn numa_nodes(&self) -> Vec<u32> {
        host::topology::numa_nodes().iter().map(|node| node.node).collect()
    }

    fn page_size_bytes(&self) -> u64 {
        rustix::param::page_size() as u64
    }

    fn memory_bytes(&self) -> u64 {
        host::memory::memory().total_bytes.unwrap_or(0)
    }

    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        let namespaces = host::nvme::namespaces().into_iter();
        let view = |namespace: host::nvme::Namespace| {
            let on_pci = namespace.transport.as_deref() == Some("pcie");
            NvmeNamespace {
                path: format!("/dev/{}", namespace.name),
                pci_address: namespace.address.filter(|_| on_pci),
                subsystem: namespace.subsystem,
                model: namespace.model,
                serial: namespace.serial,
            }
        };
        namespaces.map(view).collect()
    }

    fn host_name(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }

    fn ranks(&self) -> u32 {
        launcher::ranks()
    }

    fn has_all_ranks(&self) -> bool {
        launcher::are_here()
    }

    fn is_interactive(&self) -> bool {
        io::stdin().is_terminal()
    }

    fn engines(&self) -> Vec<&'static str> {
        // A load has this layer where its words name none.
        let Ok(layer) = layer::find(Layer::default().name) else { return Vec::new() };
        let names = layer.drivers().into_iter().map(|driver| driver.name);
        names.filter(|name| layer.is_available(name)).collect()
    }
}

/// Size of a block device or an image.
fn device_bytes(target: &str) -> Result<u64, String> {
    let found = layer::all().into_iter().find_map(|layer| layer.device_bytes(target));
    found
        .unwrap_or_else(|| {
            Err(Error::usage("probe", "no layer of this build supports such targets").with("target", target))
        })
        .map_err(|error| error.to_string())
}

/// The text of a file, or of standard input for `-`.
pub(crate) fn read_text(path: &str) -> io::Result<String> {
    String::from_utf8(read_whole(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// All that a file has, or standard input for `-`.
pub(crate) fn read_whole(path: &str) -> io::Result<Vec<u8>> {
    if path != "-" {
        return read_file(path);
    }
    let mut bytes = Vec::new();
    io::stdin().take(INPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_file(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path_of(path))?.take(INPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
