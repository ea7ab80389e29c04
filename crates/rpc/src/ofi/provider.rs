//! Which providers there are, and which one a load goes over.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use driver::{Error, ErrorKind};

use super::abi::{
    FI_CONTEXT, FI_CONTEXT2, FI_EP_RDM, FI_HMEM, FI_MR_ALLOCATED, FI_MR_ENDPOINT, FI_MR_HMEM, FI_MR_LOCAL,
    FI_MR_PROV_KEY, FI_MR_VIRT_ADDR, FI_MSG, FI_RMA, FI_THREAD_DOMAIN, FiInfo,
};
use super::library::{InfoList, api, text_of};
use crate::interface::ProviderFacts;

/// Settings of the fabric over which a port is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FabricSettings {
    /// The provider as people type it: `ofi+tcp`, `ofi+shm`, `ofi+verbs`, or `ofi+` and any other name that libfabric knows.
    pub provider: String,
    /// The domain (`OFI_DOMAIN`).
    pub domain: Option<String>,
    /// The interface (`OFI_INTERFACE`), by name or by address.
    pub interface: Option<String>,
    /// Where the peers are: without domain and interface, the one that the route to them goes through is taken.
    pub towards: Option<SocketAddr>,
    /// Whether memory of devices is to be registered, which the provider must take (`FI_HMEM`).
    pub device_memory: bool,
}

impl FabricSettings {
    /// libfabric's own name of the provider.
    ///
    /// # Errors
    /// Bad usage, when it is no name for this driver.
    pub fn provider_name(&self) -> Result<&str, Error> {
        self.provider.strip_prefix("ofi+").filter(|name| !name.is_empty()).ok_or_else(|| {
            Error::usage("libfabric", format!("provider \"{}\" does not exist", self.provider))
                .remedy("use ofi+tcp, ofi+shm, ofi+verbs, ofi+cxi, or ofi+ and another name of fi_info -l")
        })
    }
}

/// All that can carry RPCs here: reliable datagrams with RMA.
///
/// # Errors
/// When libfabric is not there, in a line that names its package.
pub fn providers() -> Result<Vec<ProviderFacts>, Error> {
    let mut facts: Vec<ProviderFacts> = Vec::new();
    for offer in offers()? {
        if !facts.contains(&offer.facts) {
            facts.push(offer.facts);
        }
    }
    Ok(facts)
}

fn offers() -> Result<Vec<Offer>, Error> {
    let Ok(list) = offered(None, false)? else { return Ok(Vec::new()) };
    let interfaces = interfaces();
    Ok(list.iter().map(|info| offer_of(info, &interfaces)).collect())
}

/// The names that users can type for what is offered here: `ofi+tcp`, `ofi+shm`; sorted, each once. The layers that libfabric puts
/// over a provider (`;ofi_rxm`) are chosen by itself.
#[must_use]
pub fn typed_names<'a>(offered: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let name_of = |name: &str| format!("ofi+{}", name.split(';').next().unwrap_or_default());
    let names: BTreeSet<String> = offered.into_iter().map(name_of).collect();
    names.into_iter().collect()
}

/// Version of the library: major and minor.
///
/// # Errors
/// When it is not there.
pub fn library_version() -> Result<(u32, u32), Error> {
    Ok(api()?.version())
}

/// Offers of libfabric under a name, or all of them; where they are to take memory of devices, those that say they do.
fn offered(name: Option<&str>, device_memory: bool) -> Result<Result<InfoList, i32>, Error> {
    let api = api()?;
    let mut hints = api.hints()?;
    let info = hints.first_mut();
    let for_devices = if device_memory { (FI_HMEM, FI_MR_HMEM) } else { (0, 0) };
    info.caps = FI_MSG | FI_RMA | for_devices.0;
    info.mode = FI_CONTEXT | FI_CONTEXT2;
    // SAFETY: fi_dupinfo makes an entry with all its parts.
    unsafe {
        (*info.ep_attr).kind = FI_EP_RDM;
        (*info.domain_attr).mr_mode =
            FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT | for_devices.1;
        (*info.domain_attr).threading = FI_THREAD_DOMAIN;
        if let Some(name) = name {
            // The library frees it with the hints, so it must be malloc's.
            let bytes = libc::calloc(1, name.len() + 1).cast::<u8>();
            if bytes.is_null() {
                return Err(api.error("out of memory", libc::ENOMEM));
            }
            std::ptr::copy_nonoverlapping(name.as_ptr(), bytes, name.len());
            (*info.fabric_attr).prov_name = bytes.cast();
        }
    }
    Ok(api.info(info))
}

/// The entry to open a port with.
pub(super) fn choose(settings: &FabricSettings) -> Result<InfoList, Error> {
    let api = api()?;
    let name = settings.provider_name()?;
    let list = match offered(Some(name), settings.device_memory)? {
        Ok(list) => list,
        Err(_) if settings.device_memory && offered(Some(name), false)?.is_ok() => {
            return Err(without_device_memory(&settings.provider));
        }
        Err(_) => return Err(missing(&settings.provider, name)),
    };
    let interfaces = interfaces();
    let source = settings.towards.and_then(source_towards);
    let fits = |info: &&FiInfo| {
        let offer = offer_of(info, &interfaces);
        let domain_fits = settings.domain.as_ref().is_none_or(|domain| {
            let own = &offer.facts.domain;
            own == domain || own.strip_suffix("-rdm") == Some(domain)
        });
        let interface_fits = settings.interface.as_ref().is_none_or(|interface| {
            offer.facts.domain == *interface
                || offer.interface.as_ref() == Some(interface)
                || offer.source.is_some_and(|source| source.to_string() == *interface)
                || (offer.source.is_none() && offer.interface.is_none())
        });
        domain_fits && interface_fits
    };
    let routed = |info: &&FiInfo| source.is_some() && address_of(info).map(|a| a.ip()) == source;
    let chosen = list.iter().filter(fits).find(routed).or_else(|| list.iter().find(fits));
    match chosen {
        Some(info) => api.copy(info),
        None => Err(unfit(settings, &list)),
    }
}

/// The error of a provider that does not register memory of devices.
pub(super) fn without_device_memory(provider: &str) -> Error {
    let message = format!("{provider} does not support GPU memory (FI_HMEM)");
    Error::new(ErrorKind::Unsupported, "libfabric", message).remedy(
        "use --gpu-path staged, or a libfabric built with CUDA and a provider that supports it (verbs, cxi, efa, shm)",
    )
}

fn missing(provider: &str, name: &str) -> Error {
    let facts = providers().unwrap_or_default();
    let names = typed_names(facts.iter().map(|facts| facts.name.as_str()));
    let error = Error::new(
        ErrorKind::Unsupported,
        "libfabric",
        format!("no provider for {provider} on this machine"),
    );
    let needs = match name {
        "verbs" | "verbs;ofi_rxm" => "it needs an RDMA device with its kernel driver, and rdma-core",
        "cxi" => "it needs a Slingshot device (hsn0), its driver, and a libfabric built with it",
        _ => "fi_info -l lists the providers of libfabric",
    };
    error.remedy(format!("{needs}; offered here: {}", names.join(", ")))
}

fn unfit(settings: &FabricSettings, list: &InfoList) -> Error {
    let mut there: Vec<String> = list.iter().map(|info| facts_of(info).domain).collect();
    there.dedup();
    let mut error = Error::new(
        ErrorKind::Unsupported,
        "libfabric",
        format!("{} does not have this domain or interface", settings.provider),
    );
    if let Some(domain) = &settings.domain {
        error = error.with("domain", domain);
    }
    if let Some(interface) = &settings.interface {
        error = error.with("interface", interface);
    }
    error.remedy(format!("use one of {}", there.join(", ")))
}

/// Offer of libfabric on one domain, and the address and interface of that domain.
#[derive(Debug)]
struct Offer {
    facts: ProviderFacts,
    /// The address that it sends from, where that is an internet address.
    source: Option<IpAddr>,
    /// The interface that this address belongs to.
    interface: Option<String>,
}

fn offer_of(info: &FiInfo, interfaces: &[(String, IpAddr)]) -> Offer {
    let source = address_of(info).map(|address| address.ip());
    let interface = source.and_then(|source| interfaces.iter().find(|(_, address)| *address == source));
    Offer { facts: facts_of(info), source, interface: interface.map(|(name, _)| name.clone()) }
}

fn facts_of(info: &FiInfo) -> ProviderFacts {
    // SAFETY: the library fills these parts of an entry.
    unsafe {
        ProviderFacts {
            name: text_of((*info.fabric_attr).prov_name),
            domain: text_of((*info.domain_attr).name),
        }
    }
}

/// The internet address that an entry sends from.
pub(super) fn address_of(info: &FiInfo) -> Option<SocketAddr> {
    if info.src_addr.is_null() {
        return None;
    }
    // SAFETY: the library says how long the address is.
    let bytes = unsafe { std::slice::from_raw_parts(info.src_addr.cast::<u8>(), info.src_addrlen) };
    parse_address(info.addr_format, bytes)
}

/// An address of the formats `FI_SOCKADDR`, `FI_SOCKADDR_IN` and `FI_SOCKADDR_IN6`.
fn parse_address(format: u32, bytes: &[u8]) -> Option<SocketAddr> {
    if !(1..=3).contains(&format) || bytes.len() < 16 {
        return None;
    }
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    match i32::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
        libc::AF_INET => Some(SocketAddr::from(([bytes[4], bytes[5], bytes[6], bytes[7]], port))),
        libc::AF_INET6 => {
            let address: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some(SocketAddr::from((address, port)))
        }
        _ => None,
    }
}

/// The address that the kernel would send from to a peer. Nothing is sent.
fn source_towards(peer: SocketAddr) -> Option<IpAddr> {
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Interfaces and their addresses (getifaddrs(3)); none when the system does not tell.
fn interfaces() -> Vec<(String, IpAddr)> {
    let mut found = Vec::new();
    let mut first = std::ptr::null_mut();
    // SAFETY: it fills a list that is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return found;
    }
    let mut next = first;
    // SAFETY: entries of the list, whose addresses are as long as their family says.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: as above; null for interfaces without an address.
        let family = unsafe { entry.ifa_addr.as_ref() }.map(|address| i32::from(address.sa_family));
        let length = match family {
            Some(libc::AF_INET) => size_of::<libc::sockaddr_in>(),
            Some(libc::AF_INET6) => size_of::<libc::sockaddr_in6>(),
            _ => continue,
        };
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(entry.ifa_addr.cast::<u8>(), length) };
        if let Some(address) = parse_address(1, bytes) {
            found.push((text_of(entry.ifa_name), address.ip()));
        }
    }
    // SAFETY: the list from above, freed once.
    unsafe { libc::freeifaddrs(first) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let mut v4 = [0; 16];
        v4[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        v4[2..8].copy_from_slice(&[0x1f, 0x90, 10, 1, 2, 3]);
        assert_eq!(parse_address(2, &v4), Some("10.1.2.3:8080".parse().expect("address")));
        assert_eq!(parse_address(9, &v4), None, "another format");
        assert_eq!(parse_address(2, &v4[..8]), None, "too short");
        let mut v6 = [0; 28];
        v6[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        v6[23] = 1;
        assert_eq!(parse_address(3, &v6), Some("[::1]:0".parse().expect("address")));
        assert_eq!(parse_address(3, &v6[..20]), None, "too short");
    }

    #[test]
    fn names_are_those_that_can_be_typed() {
        let offered = ["tcp;ofi_rxm", "shm", "net;ofi_rxm", "tcp", "net"];
        assert_eq!(typed_names(offered), ["ofi+net", "ofi+shm", "ofi+tcp"]);
        for name in typed_names(offered) {
            let settings = FabricSettings { provider: name, ..FabricSettings::default() };
            assert!(settings.provider_name().is_ok());
        }
    }

    #[test]
    fn loopback_is_an_interface() {
        assert!(interfaces().iter().any(|(name, address)| name == "lo" && address.is_loopback()));
        assert_eq!(
            source_towards("127.0.0.1:9".parse().expect("address")),
            Some(IpAddr::from([127, 0, 0, 1]))
        );
    }

    #[test]
    fn names_without_the_scheme_are_refused() {
        for name in ["tcp", "ofi+", "", "ofi"] {
            let settings = FabricSettings { provider: name.into(), ..FabricSettings::default() };
            assert_eq!(settings.provider_name().expect_err("refused").exit_code(), 2, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_says_what_there_is() {
        let settings =
            |provider: &str| FabricSettings { provider: provider.into(), ..FabricSettings::default() };
        if let Err(error) = providers() {
            assert!(error.to_string().contains("libfabric1"), "{error}");
            return println!("skipped: {error}");
        }
        let Err(error) = choose(&settings("ofi+nonsense")) else { panic!("there is no such provider") };
        assert!(error.to_string().contains("ofi+tcp"), "{error}");
        let Err(error) = choose(&FabricSettings { domain: Some("nowhere7".into()), ..settings("ofi+tcp") })
        else {
            panic!("there is no such domain")
        };
        assert!(error.to_string().contains("domain=nowhere7") && error.to_string().contains("lo"), "{error}");
    }

    #[test]
    fn tcp_is_offered_on_loopback() {
        match offers() {
            Ok(offers) => assert!(
                offers
                    .iter()
                    .any(|o| o.facts.name.starts_with("tcp") && o.interface.as_deref() == Some("lo")),
                "{offers:?}"
            ),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
