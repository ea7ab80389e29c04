//! NVMe namespaces that the kernel drives, and where their controllers sit.

use std::path::Path;

use crate::source;

/// One namespace with a device node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Name of its block device, such as `nvme0n1`.
    pub name: String,
    /// How its controller is reached: `pcie`, `tcp`, `rdma`, `fc` or `loop`.
    pub transport: Option<String>,
    /// Address of its controller: for `pcie` the PCI address, such as `0000:3b:00.0`.
    pub address: Option<String>,
    /// NVMe qualified name of its subsystem.
    pub subsystem: Option<String>,
    /// Model of the drive.
    pub model: Option<String>,
    /// Serial number of the drive.
    pub serial: Option<String>,
}

/// All namespaces, by controller and number.
#[must_use]
pub fn namespaces() -> Vec<Namespace> {
    namespaces_below(Path::new("/sys/class/nvme"))
}

/// The namespaces below a directory of controllers laid out like `/sys/class/nvme`.
fn namespaces_below(controllers: &Path) -> Vec<Namespace> {
    let mut found: Vec<Namespace> = Vec::new();
    for controller in source::names(controllers) {
        let directory = controllers.join(&controller);
        let fact = |name: &str| source::text(directory.join(name));
        for entry in source::names(&directory) {
            let Some(name) = block_device(&entry) else { continue };
            // A namespace with several paths is listed with the first of them.
            if found.iter().all(|known| known.name != name) {
                found.push(Namespace {
                    name,
                    transport: fact("transport"),
                    address: fact("address"),
                    subsystem: fact("subsysnqn"),
                    model: fact("model"),
                    serial: fact("serial"),
                });
            }
        }
    }
    found
}

/// The block device of an entry in a controller's directory: `nvme0n1` itself, or, where the kernel joins several paths
/// (`nvme_core.multipath`), the head `nvme0n1` of the path `nvme0c3n1`.
fn block_device(entry: &str) -> Option<String> {
    let (subsystem, rest) = digits(entry.strip_prefix("nvme")?)?;
    let rest = match rest.strip_prefix('c') {
        Some(path) => digits(path)?.1,
        None => rest,
    };
    let (namespace, rest) = digits(rest.strip_prefix('n')?)?;
    rest.is_empty().then(|| format!("nvme{subsystem}n{namespace}"))
}

/// The digits that a text begins with, and what follows them.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_of_paths_lead_to_the_head() {
        assert_eq!(block_device("nvme0n1").as_deref(), Some("nvme0n1"));
        assert_eq!(block_device("nvme12c3n45").as_deref(), Some("nvme12n45"));
        for other in ["nvme0", "nvme0n1p1", "nvmen1", "ng0n1", "nvme0c1", "hwmon1", "nvme0cn1", ""] {
            assert_eq!(block_device(other), None, "{other}");
        }
    }

    #[test]
    fn controllers_and_their_namespaces_are_found() {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        make("nvme0/transport", "pcie\n");
        make("nvme0/address", "0000:3b:00.0\n");
        make("nvme0/model", "Example SSD 980   \n");
        make("nvme0/nvme0n1/size", "1\n");
        make("nvme0/nvme0n2/size", "1\n");
        make("nvme1/transport", "tcp\n");
        make("nvme1/address", "traddr=10.0.0.1,trsvcid=4420\n");
        make("nvme1/nvme1c1n1/size", "1\n");
        make("nvme2/nvme1c2n1/size", "1\n");
        let found = namespaces_below(root.path());
        let names: Vec<_> = found.iter().map(|namespace| namespace.name.as_str()).collect();
        assert_eq!(names, ["nvme0n1", "nvme0n2", "nvme1n1"]);
        assert_eq!(found[0].address.as_deref(), Some("0000:3b:00.0"));
        assert_eq!(found[1].model.as_deref(), Some("Example SSD 980"));
        assert_eq!((found[2].transport.as_deref(), found[2].serial.as_deref()), (Some("tcp"), None));
        assert!(namespaces_below(&root.path().join("missing")).is_empty());
    }
}
