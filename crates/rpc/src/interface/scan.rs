//! Scan of a machine's means to send: its interfaces, and the providers that libfabric offers on each.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use driver::Error;
use host::network::{self, FabricClass, Interface, Link};
use serde::{Deserialize, Serialize};

/// Form of the scan; one of another form is not read.
const FORM: u32 = 1;
/// Variables that change what libfabric offers.
const VARIABLES: &[&str] = &["FI_PROVIDER", "FI_PROVIDER_PATH", "LD_LIBRARY_PATH"];

/// A domain that a provider of libfabric offers (`fi_getinfo`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProviderFacts {
    /// Name of the provider, such as `tcp`, `verbs;ofi_rxm`, `shm`.
    pub name: String,
    /// Name of the domain: an interface's, an RDMA device's with or without a suffix (`mlx5_0-rdm`), or none of both.
    pub domain: String,
}

impl ProviderFacts {
    /// The provider without the layers over it.
    #[must_use]
    pub fn base(&self) -> &str {
        self.name.split(';').next().unwrap_or(&self.name)
    }
}

/// Asks libfabric for its providers; a sentence says why there are none.
pub type Providers<'a> = &'a dyn Fn() -> Result<Vec<ProviderFacts>, String>;

/// An interface and what libfabric offers on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScannedInterface {
    /// The interface.
    #[serde(flatten)]
    pub interface: Interface,
    /// Domains that providers offer on it.
    pub providers: Vec<ProviderFacts>,
}

impl ScannedInterface {
    /// Whether plain sockets can use it.
    #[must_use]
    pub fn has_sockets(&self) -> bool {
        !self.interface.addresses.is_empty()
    }

    /// Whether a domain of this name belongs to it.
    #[must_use]
    pub fn has_domain(&self, domain: &str) -> bool {
        let of_device = |name: &str| {
            domain.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.interface.name == domain
            || self.interface.fabric_devices.iter().any(|device| of_device(&device.name))
    }

    /// Its active device of a class.
    #[must_use]
    pub fn device(&self, class: FabricClass) -> Option<&str> {
        let mut devices = self.interface.fabric_devices.iter();
        devices.find(|device| device.class == class && device.is_active()).map(|device| device.name.as_str())
    }
}

/// Key of a scan, cheap to read: while it is the same, so is the scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanKey {
    form: u32,
    strata_version: String,
    boot_id: String,
    namespace: u64,
    environment: Vec<(String, String)>,
    links: Vec<Link>,
    /// Speeds change only while a carrier is away.
    carrier_changes: Vec<Option<u64>>,
}

impl ScanKey {
    /// Whether both are scans of the same place: the newer takes the older's.
    pub(super) fn same_place(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.environment == other.environment
    }
}

/// Result of a scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricScan {
    /// Its key.
    pub key: ScanKey,
    /// When it was made, in nanoseconds since 1970.
    pub scanned_at_unix_ns: u64,
    /// How long it took, in nanoseconds.
    pub cost_ns: u64,
    /// The interfaces, by index.
    pub interfaces: Vec<ScannedInterface>,
    /// Domains that belong to no interface, such as `shm`.
    pub other_providers: Vec<ProviderFacts>,
    /// Why libfabric's providers are not known, where they are not.
    pub providers_unknown: Option<String>,
}

impl FabricScan {
    /// The interface called `name`.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<&ScannedInterface> {
        self.interfaces.iter().find(|found| found.interface.name == name)
    }
}

/// Where the facts of a machine are read: this one, or one that a test made up.
pub struct Machine<'a> {
    sys_class: PathBuf,
    links: Box<dyn Fn() -> io::Result<Vec<Link>> + Send + Sync + 'a>,
}

impl Default for Machine<'_> {
    fn default() -> Self {
        Self::new(Path::new(network::SYS_CLASS), network::links)
    }
}

impl<'a> Machine<'a> {
    /// A machine whose sysfs classes lie below `sys_class` and whose kernel lists these links.
    pub fn new(sys_class: &Path, links: impl Fn() -> io::Result<Vec<Link>> + Send + Sync + 'a) -> Self {
        Self { sys_class: sys_class.to_owned(), links: Box::new(links) }
    }

    /// Key of a scan of it now.
    ///
    /// # Errors
    /// When the kernel does not list the interfaces.
    pub fn key(&self) -> Result<ScanKey, Error> {
        let links = (self.links)()
            .map_err(|error| Error::system("network interfaces", "the kernel does not list them", error))?;
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let variable = |name: &&str| std::env::var(name).ok().map(|value| ((*name).to_owned(), value));
        Ok(ScanKey {
            form: FORM,
            strata_version: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: boot_id.trim().to_owned(),
            namespace: network::namespace(),
            environment: VARIABLES.iter().filter_map(variable).collect(),
            carrier_changes: links.iter().map(|link| self.carrier_changes(&link.name)).collect(),
            links,
        })
    }

    fn carrier_changes(&self, name: &str) -> Option<u64> {
        let path = self.sys_class.join("net").join(name).join("carrier_changes");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    /// Looks at everything. `key` is what [`Machine::key`] gave just before.
    #[must_use]
    pub fn scan(&self, key: ScanKey, providers: Providers<'_>) -> FabricScan {
        let begun = Instant::now();
        let (offered, providers_unknown) = match providers() {
            Ok(offered) => (offered, None),
            Err(why) => (vec![], Some(why)),
        };
        let mut other_providers: Vec<ProviderFacts> = offered.clone();
        let with_providers = |interface: Interface| {
            let mut scanned = ScannedInterface { interface, providers: vec![] };
            scanned.providers =
                offered.iter().filter(|facts| scanned.has_domain(&facts.domain)).cloned().collect();
            scanned.providers.sort_unstable();
            scanned.providers.dedup();
            other_providers.retain(|facts| !scanned.has_domain(&facts.domain));
            scanned
        };
        let interfaces = network::interfaces_in(&self.sys_class, &key.links);
        let interfaces = interfaces.into_iter().map(with_providers).collect();
        other_providers.sort_unstable();
        other_providers.dedup();
        FabricScan {
            key,
            scanned_at_unix_ns: unix_ns(),
            cost_ns: begun.elapsed().as_nanos() as u64,
            interfaces,
            other_providers,
            providers_unknown,
        }
    }
}

/// Nanoseconds since 1970.
pub(super) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
