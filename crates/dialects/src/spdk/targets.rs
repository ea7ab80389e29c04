//! Which devices and files a command line means.

use driver::Error;

use super::table::TABLE;
use crate::words::{Words, quoted};
use crate::{NvmeNamespace, PathFacts, World};

/// A device or file to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Its path.
    pub(crate) path: String,
    /// As the table names it.
    pub(crate) name: String,
    /// The controller's address, for devices found by it.
    pub(crate) pci_address: Option<String>,
    /// Whether it was given as a path behind the options, which `-R` concerns.
    pub(crate) is_kernel_path: bool,
}

/// Domain, bus, device and function.
type Address = (u32, u32, u32, u32);

/// A PCI address in any of the forms that SPDK takes.
fn address(text: &str) -> Option<Address> {
    let parts: Vec<&str> = text.split([':', '.']).collect();
    let numbers: Vec<u32> = parts.iter().map(|part| hexadecimal(part)).collect::<Option<Vec<_>>>()?;
    let has_domain = text.matches(':').count() == 2 || numbers.len() == 4;
    let address = match (numbers.as_slice(), has_domain) {
        (&[domain, bus, device, function], _) => (domain, bus, device, function),
        (&[domain, bus, device], true) => (domain, bus, device, 0),
        (&[bus, device, function], false) => (0, bus, device, function),
        (&[bus, device], _) => (0, bus, device, 0),
        _ => return None,
    };
    (address.1 <= 0xff && address.2 <= 0x1f && address.3 <= 7).then_some(address)
}

/// Without signs, which the standard reader takes.
fn hexadecimal(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(text, 16).ok()).flatten()
}

/// Number of a namespace, from its node's name.
fn namespace_number(path: &str) -> Option<u32> {
    path.rsplit_once('n').and_then(|(_, number)| number.parse().ok())
}

impl Target {
    fn of_namespace(namespace: &NvmeNamespace) -> Self {
        let address = namespace.pci_address.clone().unwrap_or_default();
        let number = namespace_number(&namespace.path).unwrap_or(1);
        Self {
            path: namespace.path.clone(),
            name: format!("PCIE ({address}) NSID {number}"),
            pci_address: namespace.pci_address.clone(),
            is_kernel_path: false,
        }
    }

    fn of_path(path: &str, is_kernel_path: bool) -> Self {
        Self { path: path.to_owned(), name: path.to_owned(), pci_address: None, is_kernel_path }
    }
}

/// Fields of `-r`.
#[derive(Default)]
struct Transport {
    kind: Option<String>,
    address: Option<String>,
    namespace: Option<u32>,
}

fn transport(text: &str) -> Result<Transport, Error> {
    let mut transport = Transport::default();
    for part in text.split_ascii_whitespace() {
        let bad = || {
            TABLE.error(
                format!("-r/--transport {} is not a transport ID", quoted(text)),
                "give 'trtype:PCIe traddr:ADDRESS', or the path of a device or file",
            )
        };
        let (key, value) = part.split_once([':', '=']).ok_or_else(bad)?;
        match key.to_ascii_lowercase().as_str() {
            "trtype" => transport.kind = Some(value.to_ascii_lowercase()),
            "traddr" => transport.address = Some(value.to_owned()),
            "ns" => transport.namespace = Some(value.parse().map_err(|_| bad())?),
            "adrfam" | "trsvcid" | "subnqn" | "priority" | "hostnqn" | "hostaddr" | "hostsvcid"
            | "alt_traddr" => {}
            _ => return Err(bad()),
        }
    }
    Ok(transport)
}

/// The devices behind the PCIe transport, those that `-b` allows.
struct Drives {
    namespaces: Vec<NvmeNamespace>,
}

impl Drives {
    fn find(words: &Words, world: &dyn World) -> Result<Self, Error> {
        let mut namespaces = world.nvme_namespaces();
        namespaces.retain(|namespace| namespace.pci_address.is_some());
        let mut allowed = Vec::new();
        for text in words.values("allowed-pci-addr") {
            let wanted = parse_address("-b/--allowed-pci-addr", text)?;
            check_found(text, wanted, &namespaces)?;
            allowed.push(wanted);
        }
        if !allowed.is_empty() {
            namespaces.retain(|namespace| address_of(namespace).is_some_and(|own| allowed.contains(&own)));
        }
        Ok(Self { namespaces })
    }

    fn all(&self, namespace: Option<u32>) -> Result<Vec<Target>, Error> {
        let fits = |own: &&NvmeNamespace| namespace.is_none() || namespace == namespace_number(&own.path);
        let targets: Vec<Target> = self.namespaces.iter().filter(fits).map(Target::of_namespace).collect();
        if targets.is_empty() {
            return TABLE.refuse(
                "no PCIe NVMe drive with a kernel driver was found",
                "give a device or a file: `spdk_nvme_perf ... /dev/nvme0n1` (SPDK's setup.sh reset returns a drive from vfio-pci or uio to the kernel)",
            );
        }
        Ok(targets)
    }

    fn at(&self, text: &str, namespace: Option<u32>) -> Result<Vec<Target>, Error> {
        let wanted = parse_address("traddr", text)?;
        check_found(text, wanted, &self.namespaces)?;
        let mut here = self.namespaces.clone();
        here.retain(|own| address_of(own) == Some(wanted));
        Self { namespaces: here }.all(namespace)
    }
}

fn address_of(namespace: &NvmeNamespace) -> Option<Address> {
    namespace.pci_address.as_deref().and_then(address)
}

fn parse_address(option: &str, text: &str) -> Result<Address, Error> {
    address(text).ok_or_else(|| {
        TABLE.error(
            format!("{option} {} is not a PCI address", quoted(text)),
            "give an address such as 0000:3b:00.0",
        )
    })
}

fn check_found(text: &str, wanted: Address, namespaces: &[NvmeNamespace]) -> Result<(), Error> {
    if namespaces.iter().any(|namespace| address_of(namespace) == Some(wanted)) {
        return Ok(());
    }
    let known: Vec<&str> =
        namespaces.iter().filter_map(|namespace| namespace.pci_address.as_deref()).collect();
    TABLE.refuse(
        format!("no NVMe drive with a kernel driver was found at {}", quoted(text)),
        if known.is_empty() {
            "give the path of a device or file".to_owned()
        } else {
            format!("available addresses: {}", known.join(", "))
        },
    )
}

fn check_path(path: &str, world: &dyn World) -> Result<(), Error> {
    let shown = quoted(path);
    match world.look(path) {
        PathFacts::BlockDevice { .. } => Ok(()),
        PathFacts::File { size_bytes: 0 } => {
            TABLE.refuse(format!("{shown} is empty"), "give a file that has data, or a block device")
        }
        PathFacts::File { .. } => Ok(()),
        PathFacts::Missing => TABLE.refuse(
            format!("{shown} does not exist"),
            "give an existing file or a block device: spdk_nvme_perf creates no files",
        ),
        PathFacts::CharacterDevice => TABLE.refuse(
            format!("{shown} is a character device, which has no size"),
            "give a block device, such as /dev/nvme0n1, or a file",
        ),
        PathFacts::Directory | PathFacts::Other => TABLE
            .refuse(format!("{shown} is neither a file nor a block device"), "give a file or a block device"),
    }
}

/// The targets, in the order given; all drives where none is given.
///
/// # Errors
/// A target that cannot be measured, or a drive that is not there.
pub(crate) fn find(words: &Words, world: &dyn World) -> Result<Vec<Target>, Error> {
    let drives = Drives::find(words, world)?;
    let mut targets = Vec::new();
    for text in words.values("transport") {
        if text.starts_with('/') || !text.contains([':', '=']) {
            check_path(text, world)?;
            targets.push(Target::of_path(text, false));
            continue;
        }
        let transport = transport(text)?;
        match (transport.kind.as_deref(), &transport.address) {
            (Some("pcie"), Some(address)) => targets.extend(drives.at(address, transport.namespace)?),
            (Some("pcie"), None) => targets.extend(drives.all(transport.namespace)?),
            (Some(kind), _) => {
                return TABLE.refuse(
                    format!(
                        "-r/--transport: {} is supported only through the kernel",
                        quoted(&format!("trtype:{kind}"))
                    ),
                    "connect with `nvme connect` and give the /dev node",
                );
            }
            (None, _) => {
                return TABLE.refuse(
                    format!("-r/--transport {} has no trtype", quoted(text)),
                    "give trtype:PCIe, or the path of a device or file",
                );
            }
        }
    }
    for path in &words.paths {
        check_path(path, world)?;
        targets.push(Target::of_path(path, true));
    }
    if targets.is_empty() {
        targets = drives.all(None)?;
    }
    let twice = targets
        .iter()
        .enumerate()
        .find(|(at, target)| targets[..*at].iter().any(|other| other.path == target.path));
    match twice {
        Some((_, target)) => TABLE.refuse(format!("{} is given twice", quoted(&target.path)), "give it once"),
        None => Ok(targets),
    }
}
