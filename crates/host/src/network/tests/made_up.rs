//! A made-up `/sys/class` with the devices behind it. Stands on `std` alone: other crates' tests build theirs with it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The tree.
pub(crate) struct Tree {
    root: PathBuf,
}

/// Facts of an interface of the tree.
pub(crate) struct Nic<'a> {
    pub(crate) name: &'a str,
    pub(crate) index: u32,
    /// `None`: without a device.
    pub(crate) numa_node: Option<i32>,
    pub(crate) speed: &'a str,
    pub(crate) operstate: &'a str,
    pub(crate) flags: u32,
}

impl<'a> Nic<'a> {
    /// A card at 100 Gbit/s that is up.
    pub(crate) fn card(name: &'a str, index: u32, numa_node: i32) -> Self {
        Self { name, index, numa_node: Some(numa_node), speed: "100000", operstate: "up", flags: 0x1003 }
    }
}

impl Tree {
    /// An empty tree with loopback in it.
    pub(crate) fn new(root: &Path) -> Self {
        let tree = Self { root: root.to_owned() };
        tree.add(&Nic {
            numa_node: None,
            speed: "",
            operstate: "unknown",
            flags: 0x9,
            ..Nic::card("lo", 1, -1)
        });
        tree
    }

    /// Directory that stands for `/sys/class`.
    pub(crate) fn class(&self) -> PathBuf {
        self.root.join("class")
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("directory");
        fs::write(path, format!("{text}\n")).expect("file");
    }

    /// Adds an interface; a card gets a PCI device of its own.
    pub(crate) fn add(&self, nic: &Nic<'_>) {
        let directory = PathBuf::from("class/net").join(nic.name);
        self.write(directory.join("ifindex"), &nic.index.to_string());
        self.write(directory.join("flags"), &format!("{:#x}", nic.flags));
        self.write(directory.join("operstate"), nic.operstate);
        self.write(directory.join("carrier"), if nic.operstate == "down" { "0" } else { "1" });
        self.write(directory.join("mtu"), "9000");
        self.write(directory.join("speed"), nic.speed);
        self.write(directory.join("uevent"), &format!("INTERFACE={}", nic.name));
        if let Some(node) = nic.numa_node {
            let device = self.device(nic.name);
            self.write(device.join("numa_node"), &node.to_string());
            self.write(device.join("net").join(nic.name).join("ifindex"), &nic.index.to_string());
            self.link(&PathBuf::from("bus/drivers/example"), &device.join("driver"));
            self.link(&device, &directory.join("device"));
        }
    }

    /// Makes `upper` of `lower`.
    pub(crate) fn stack(&self, upper: &str, device_type: &str, lower: &[&str]) {
        let directory = PathBuf::from("class/net").join(upper);
        self.write(directory.join("uevent"), &format!("DEVTYPE={device_type}\nINTERFACE={upper}"));
        for name in lower {
            self.link(&PathBuf::from("class/net").join(name), &directory.join(format!("lower_{name}")));
        }
    }

    /// Adds an RDMA device with one port to a card.
    pub(crate) fn rdma(&self, name: &str, card: &str, state: &str) {
        let directory = PathBuf::from("class/infiniband").join(name);
        self.link(&self.device(card), &directory.join("device"));
        self.write(directory.join("ports/1/state"), state);
        self.write(directory.join("ports/1/rate"), "100 Gb/sec (4X EDR)");
        self.write(directory.join("ports/1/link_layer"), "InfiniBand");
    }

    fn device(&self, card: &str) -> PathBuf {
        PathBuf::from("devices/pci0000:00").join(format!("device-of-{card}"))
    }

    fn link(&self, to: &Path, at: &Path) {
        let at = self.root.join(at);
        fs::create_dir_all(at.parent().expect("below the root")).expect("directory");
        fs::create_dir_all(self.root.join(to)).expect("directory");
        symlink(self.root.join(to), at).expect("link");
    }
}
