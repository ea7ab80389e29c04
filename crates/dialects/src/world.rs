//! Facts of the machine that a dialect may ask for while it reads a command line.

use std::io;

/// Facts of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFacts {
    /// Nothing.
    Missing,
    /// A regular file.
    File {
        /// Its length in bytes.
        size_bytes: u64,
    },
    /// A directory.
    Directory,
    /// A block device.
    BlockDevice {
        /// Its size in bytes.
        size_bytes: u64,
    },
    /// A character device.
    CharacterDevice,
    /// A socket, a pipe, or something that cannot be looked at.
    Other,
}

/// A namespace of an NVMe drive that the kernel drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvmeNamespace {
    /// Its device node, such as `/dev/nvme0n1`.
    pub path: String,
    /// PCI address of its controller, such as `0000:3b:00.0`; none for drives on a fabric.
    pub pci_address: Option<String>,
    /// NVMe qualified name of its subsystem.
    pub subsystem: Option<String>,
    /// Model of the drive.
    pub model: Option<String>,
    /// Serial number of the drive.
    pub serial: Option<String>,
}

/// The machine, as far as a command line may depend on it.
pub trait World {
    /// The text of a file; `-` is standard input.
    ///
    /// # Errors
    /// As the system says.
    fn read(&self, path: &str) -> io::Result<String>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// As the system says.
    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        self.read(path).map(String::into_bytes)
    }

    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// Facts of a path.
    fn look(&self, path: &str) -> PathFacts;

    /// Size of an image of Ceph (`rbd:POOL/IMAGE`), in bytes.
    ///
    /// # Errors
    /// Why it cannot be reached, in words.
    fn image_bytes(&self, _target: &str) -> Result<u64, String> {
        Err("Ceph images are not accessible here".to_owned())
    }

    /// Processors that this process may use, by number.
    fn processors(&self) -> Vec<u32>;

    /// NUMA nodes, by number; empty where the machine does not tell.
    fn numa_nodes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Size of a page in bytes.
    fn page_size_bytes(&self) -> u64;

    /// Memory of the machine in bytes.
    fn memory_bytes(&self) -> u64;

    /// NVMe namespaces, by their node's name.
    fn nvme_namespaces(&self) -> Vec<NvmeNamespace>;

    /// Name of the machine.
    fn host_name(&self) -> String;

    /// Number of this process.
    fn process_id(&self) -> u32;

    /// Processes that a launcher (mpirun, srun) has started together, this one among them; 1 where it is alone.
    fn ranks(&self) -> u32 {
        1
    }

    /// Whether all of them are on this machine.
    fn has_all_ranks(&self) -> bool {
        true
    }

    /// Whether somebody can be asked: standard input is a terminal.
    fn is_interactive(&self) -> bool {
        false
    }

    /// Names of the engines that can be measured with; io_uring is not among them where this process may not use it.
    fn engines(&self) -> Vec<&'static str>;
}
