//! The choice: interfaces that fit, near the client's NUMA node, in turn.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use driver::Error;
use host::network::{self, FabricClass};
use host::topology::NumaPlace;
use serde::{Deserialize, Serialize};

use super::overrides::{Asked, Overrides};
use super::scan::{FabricScan, ScannedInterface};
use super::turns::Turns;
use crate::InterfacePlan;

/// Message of the DAOS agent when it finds nothing.
pub const NONE_MESSAGE: &str =
    "No network devices detected in fabric scan; default AttachInfo response may be incorrect";
/// Operation of errors.
const OPERATION: &str = "choice of interface";

/// Where RPCs will go, as the kernel sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address.
    pub address: IpAddr,
    /// The interface that the kernel's route takes; none without a route.
    pub interface: Option<String>,
    /// Whether it is an address of this machine.
    pub is_local: bool,
}

/// Requirements of a client for the choice of its interface.
#[derive(Clone, Copy, Debug)]
pub struct Want<'a> {
    /// `tcp`, `ofi+tcp`, `ofi+verbs`, `ofi+verbs;ofi_rxm`, `ofi+cxi`, `ofi+shm`, `null`, ...
    pub provider: &'a str,
    /// Where the client runs.
    pub place: NumaPlace,
    /// Where it will send; empty while that is not known.
    pub targets: &'a [Target],
    /// Names that a person asked for.
    pub overrides: &'a Overrides,
}

/// The interface of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// The fabric's name for it.
    pub domain: String,
    /// Its NUMA node.
    pub numa_node: Option<u32>,
    /// Its address: in the network of the first target where it has one there.
    pub address: Option<IpAddr>,
    /// Nominal speed in bits a second; none for loopback and where the driver tells none.
    pub speed_bits_per_second: Option<u64>,
    /// Largest packet in bytes.
    pub mtu_bytes: Option<u64>,
    /// Whether nothing leaves the machine: it is loopback, or sockets are given another one for targets on this machine.
    pub is_loopback: bool,
    /// Whether sockets must be bound to it: left to itself the kernel might take another one.
    pub needs_binding: bool,
    /// Why this one, in words.
    pub why: String,
}

impl Choice {
    /// The choice as a plan keeps it.
    #[must_use]
    pub fn plan(&self) -> InterfacePlan {
        InterfacePlan {
            name: self.name.clone(),
            domain: self.domain.clone(),
            numa_node: self.numa_node,
            speed_bits_per_second: self.speed_bits_per_second,
            mtu_bytes: self.mtu_bytes,
            is_loopback: self.is_loopback,
            chosen: self.why.clone(),
        }
    }
}

/// Outcome of the choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The interface; none where there is none that fits, or the provider needs none (`shm`, `null`).
    pub choice: Option<Choice>,
    /// Messages for a person, those of the DAOS agent word for word.
    pub messages: Vec<String>,
}

/// Need of a provider for an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need<'a> {
    Nothing,
    /// An address; from libfabric too where `ofi` is set.
    Sockets {
        ofi: Option<&'a str>,
    },
    Device(FabricClass, &'a str),
    /// That libfabric offers it there.
    Offer(&'a str),
}

impl<'a> Need<'a> {
    fn of(provider: &'a str) -> Self {
        let ofi = provider.strip_prefix("ofi+");
        let base = ofi.unwrap_or(provider).split(';').next().unwrap_or_default();
        match base {
            "null" | "shm" | "sm" => Self::Nothing,
            "tcp" | "sockets" | "udp" | "net" => Self::Sockets { ofi: ofi.map(|_| base) },
            "verbs" => Self::Device(FabricClass::Rdma, base),
            "cxi" => Self::Device(FabricClass::Cxi, base),
            _ => Self::Offer(base),
        }
    }

    fn in_words(self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Sockets { ofi: None } => "an address".to_owned(),
            Self::Sockets { ofi: Some(base) } => format!("an address and libfabric's provider {base}"),
            Self::Device(FabricClass::Rdma, _) => "an active RDMA device".to_owned(),
            Self::Device(FabricClass::Cxi, _) => "a Slingshot device".to_owned(),
            Self::Offer(base) => format!("libfabric's provider {}", base.escape_debug()),
        }
    }

    /// Whether an interface that is up has what is needed.
    fn is_met_by(self, scan: &FabricScan, found: &ScannedInterface) -> bool {
        // Where libfabric cannot be asked, the device alone decides: the driver says what is missing.
        let offers = |base: &str| {
            scan.providers_unknown.is_some() || found.providers.iter().any(|facts| facts.base() == base)
        };
        match self {
            Self::Nothing => false,
            Self::Sockets { ofi } => found.has_sockets() && ofi.is_none_or(offers),
            Self::Device(class, base) => found.device(class).is_some() && offers(base),
            Self::Offer(base) => found.providers.iter().any(|facts| facts.base() == base),
        }
    }

    /// The fabric's name for the interface, where nobody asked for another.
    fn domain(self, found: &ScannedInterface) -> String {
        let device = match self {
            Self::Device(class, _) => found.device(class).map(str::to_owned),
            Self::Offer(base) => {
                found.providers.iter().find(|facts| facts.base() == base).map(|facts| facts.domain.clone())
            }
            _ => None,
        };
        device.unwrap_or_else(|| found.interface.name.clone())
    }
}

/// The targets of these URIs or `host:port`s, for what an address can be told; names are resolved, each address stands once.
#[must_use]
pub fn targets<'a>(uris: impl IntoIterator<Item = &'a str>) -> Vec<Target> {
    let mut found: Vec<Target> = vec![];
    for uri in uris {
        let place = uri.split_once("://").map_or(uri, |(_, rest)| rest);
        let place = place.split('/').next().unwrap_or(place);
        let address = place.to_socket_addrs().or_else(|_| (place, 0).to_socket_addrs());
        let Some(address) = address.ok().and_then(|mut addresses| addresses.next()) else { continue };
        if found.iter().all(|known| known.address != address.ip()) {
            found.push(target(address));
        }
    }
    found
}

fn target(address: SocketAddr) -> Target {
    let route = network::route_to(address).ok();
    Target {
        address: address.ip(),
        is_local: route.as_ref().map_or(address.ip().is_loopback(), |route| route.is_local),
        interface: route.and_then(|route| route.interface),
    }
}

/// Chooses an interface.
///
/// An interface that fits the provider is up and has all that the provider needs. Of those the ones in the targets' network, else the one
/// that the route takes; without targets, the ones with hardware below. Of these the ones on the client's NUMA node, in turn; else the
/// others in turn, with the agent's message. Loopback is for targets on this machine, or where there is nothing else.
///
/// # Errors
/// Bad usage: an interface or a domain was asked for that does not exist, is down or does not fit; says which do.
pub fn choose(scan: &FabricScan, want: &Want<'_>, turns: &mut dyn Turns) -> Result<Decision, Error> {
    let need = Need::of(want.provider);
    let chooser = Chooser { scan, want, need };
    let mut messages = vec![];
    if need == Need::Nothing {
        chooser.refuse_unneeded(&mut messages)?;
        return Ok(Decision { choice: None, messages });
    }
    let domain = chooser.domain_asked(&mut messages);
    let picked = if let Some(asked) = &want.overrides.interface {
        Some((chooser.asked(asked)?, format!("requested by {}", asked.by)))
    } else if let Some(domain) = &domain {
        Some((chooser.of_domain(domain)?, format!("requested by {}={}", domain.by, domain.name)))
    } else {
        chooser.pick(turns, &mut messages)
    };
    let Some((found, why)) = picked else { return Ok(Decision { choice: None, messages }) };
    let choice = chooser.choice(found, domain.as_ref(), why)?;
    if choice.is_loopback && !found.interface.is_loopback() {
        messages.push(format!("The targets are on this machine: no data uses {}", choice.name));
    }
    Ok(Decision { choice: Some(choice), messages })
}

struct Chooser<'a> {
    scan: &'a FabricScan,
    want: &'a Want<'a>,
    need: Need<'a>,
}

impl<'a> Chooser<'a> {
    fn fits(&self, found: &ScannedInterface) -> bool {
        found.interface.is_up() && self.need.is_met_by(self.scan, found)
    }

    fn fitting(&self) -> Vec<&'a ScannedInterface> {
        self.scan.interfaces.iter().filter(|found| self.fits(found)).collect()
    }

    fn refusal(&self, asked: &Asked, why: String) -> Error {
        let names: Vec<_> = self.fitting().iter().map(|found| found.interface.name.clone()).collect();
        let list = match names[..] {
            [] => format!("no interface is up and has {}", self.need.in_words()),
            _ => format!("interfaces that are up and support {}: {}", self.want.provider, names.join(", ")),
        };
        Error::usage(OPERATION, format!("{} {}: {why}", asked.by, asked.name.escape_debug())).remedy(list)
    }

    /// An option that cannot be honoured is refused; a variable, which may be meant for others, is named.
    fn refuse_unneeded(&self, messages: &mut Vec<String>) -> Result<(), Error> {
        let overrides = self.want.overrides;
        for asked in [&overrides.interface, &overrides.domain].into_iter().flatten() {
            let why = format!("{} does not use an interface", self.want.provider.escape_debug());
            if asked.is_option {
                return Err(Error::usage(
                    OPERATION,
                    format!("{} {}: {why}", asked.by, asked.name.escape_debug()),
                ));
            }
            messages.push(format!("{}={} has no effect: {why}", asked.by, asked.name.escape_debug()));
        }
        Ok(())
    }

    /// The domain that was asked for. A variable is left aside where sockets have no such domain, and where an option asks
    /// for an interface without it.
    fn domain_asked(&self, messages: &mut Vec<String>) -> Option<Asked> {
        let overrides = self.want.overrides;
        let asked = overrides.domain.clone()?;
        let by_option = overrides.interface.as_ref().filter(|interface| interface.is_option);
        let why = match (self.need, by_option) {
            _ if asked.is_option => return Some(asked),
            (Need::Sockets { .. }, _) if self.scan.interface(&asked.name).is_none() => {
                format!("the domain of {} is the interface's name", self.want.provider)
            }
            (_, Some(interface))
                if self
                    .scan
                    .interface(&interface.name)
                    .is_some_and(|found| !self.has_domain(found, &asked.name)) =>
            {
                format!("--interface {} has another domain", interface.name)
            }
            _ => return Some(asked),
        };
        messages.push(format!("{}={} has no effect: {why}", asked.by, asked.name.escape_debug()));
        None
    }

    fn asked(&self, asked: &Asked) -> Result<&'a ScannedInterface, Error> {
        let Some(found) = self.scan.interface(&asked.name) else {
            return Err(self.refusal(asked, "the interface does not exist".to_owned()));
        };
        if !found.interface.is_up() {
            return Err(self.refusal(asked, "it is down".to_owned()));
        }
        if !self.fits(found) {
            return Err(self.refusal(asked, format!("it lacks {}", self.need.in_words())));
        }
        Ok(found)
    }

    fn of_domain(&self, asked: &Asked) -> Result<&'a ScannedInterface, Error> {
        let owner = self.fitting().into_iter().find(|found| self.has_domain(found, &asked.name));
        owner.ok_or_else(|| self.refusal(asked, "no usable interface has this domain".to_owned()))
    }

    fn has_domain(&self, found: &ScannedInterface, domain: &str) -> bool {
        match self.need {
            Need::Sockets { .. } => found.interface.name == domain,
            _ => found.has_domain(domain) || found.providers.iter().any(|facts| facts.domain == domain),
        }
    }

    fn choice(&self, found: &ScannedInterface, domain: Option<&Asked>, why: String) -> Result<Choice, Error> {
        if let Some(asked) = domain.filter(|asked| !self.has_domain(found, &asked.name)) {
            let own = self.need.domain(found);
            let error = self.refusal(asked, format!("not a domain of {}", found.interface.name));
            return Err(error.remedy(format!("its domain is {own}")));
        }
        let interface = &found.interface;
        Ok(Choice {
            name: interface.name.clone(),
            domain: domain.map_or_else(|| self.need.domain(found), |asked| asked.name.clone()),
            numa_node: interface.numa_node,
            address: self.address(found),
            speed_bits_per_second: interface.nominal_bits_per_second().filter(|_| !self.stays_here()),
            mtu_bytes: interface.mtu_bytes.map(u64::from),
            is_loopback: interface.is_loopback() || self.stays_here(),
            needs_binding: self.needs_binding(found),
            why,
        })
    }

    /// One in the network of the first target, else the first that others can reach.
    fn address(&self, found: &ScannedInterface) -> Option<IpAddr> {
        let addresses = &found.interface.addresses;
        let target = self.want.targets.first().map(|target| target.address);
        let near = addresses.iter().find(|own| target.is_some_and(|target| own.is_on_link(target)));
        let same_family = || {
            addresses
                .iter()
                .find(|own| target.is_some_and(|target| own.address.is_ipv4() == target.is_ipv4()))
        };
        let global = || addresses.iter().find(|own| !own.is_link_local());
        near.or_else(same_family).or_else(global).or(addresses.first()).map(|own| own.address)
    }

    /// Loopback never needs it, nor does the way that the kernel takes by itself; towards this machine it would cut the way off.
    fn needs_binding(&self, found: &ScannedInterface) -> bool {
        let targets = self.want.targets;
        let by_itself = |target: &Target| target.interface.as_deref() == Some(found.interface.name.as_str());
        !found.interface.is_loopback()
            && !targets.iter().any(|target| target.is_local)
            && (self.want.overrides.interface.is_some() || !targets.iter().all(by_itself))
    }

    /// Whether sockets will stay on this machine, whatever interface they are given.
    fn stays_here(&self) -> bool {
        let targets = self.want.targets;
        matches!(self.need, Need::Sockets { .. })
            && !targets.is_empty()
            && targets.iter().all(|target| target.is_local)
    }

    fn pick(
        &self,
        turns: &mut dyn Turns,
        messages: &mut Vec<String>,
    ) -> Option<(&'a ScannedInterface, String)> {
        let fitting = self.fitting();
        let loopback = fitting.iter().copied().find(|found| found.interface.is_loopback());
        if let Some(loopback) = loopback.filter(|_| self.stays_here()) {
            return Some((loopback, "the targets are on this machine".to_owned()));
        }
        let others: Vec<_> = fitting.into_iter().filter(|found| !found.interface.is_loopback()).collect();
        let (candidates, way) = self.on_the_way(others);
        if candidates.is_empty() {
            messages.push(NONE_MESSAGE.to_owned());
            return loopback.map(|found| (found, "no other interface is up".to_owned()));
        }
        let (found, place) = self.near(&candidates, turns, messages)?;
        Some((found, [place, way].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")))
    }

    /// Those by which the targets are reached, and why these.
    fn on_the_way(&self, all: Vec<&'a ScannedInterface>) -> (Vec<&'a ScannedInterface>, String) {
        let remote: Vec<&Target> = self.want.targets.iter().filter(|target| !target.is_local).collect();
        let reaches = |found: &ScannedInterface, target: &Target| {
            found.interface.addresses.iter().any(|own| own.is_on_link(target.address))
        };
        if let Some(first) = remote.first() {
            let is_on_link = |found: &&ScannedInterface| remote.iter().all(|target| reaches(found, target));
            let on_link: Vec<_> = all.iter().copied().filter(is_on_link).collect();
            if !on_link.is_empty() {
                return (on_link, format!("in the network of {}", first.address));
            }
            let on_route =
                |found: &&ScannedInterface| first.interface.as_ref() == Some(&found.interface.name);
            if let Some(found) = all.iter().copied().find(on_route) {
                return (vec![found], format!("the route to {} uses it", first.address));
            }
        }
        // Without a way to go by: hardware before what other programs made (bridges of containers), addresses that are known
        // elsewhere before those of the link alone.
        let narrow = |all: Vec<&'a ScannedInterface>, is_better: fn(&ScannedInterface) -> bool| {
            let better: Vec<_> = all.iter().copied().filter(|found| is_better(found)).collect();
            if better.is_empty() { all } else { better }
        };
        let known = narrow(all, |found| found.interface.addresses.iter().any(|own| !own.is_link_local()));
        (narrow(known, |found| found.interface.is_hardware_backed), String::new())
    }

    /// Those on the client's node, else those that are on no single node, else all others; in turn.
    fn near(
        &self,
        all: &[&'a ScannedInterface],
        turns: &mut dyn Turns,
        messages: &mut Vec<String>,
    ) -> Option<(&'a ScannedInterface, String)> {
        let NumaPlace { node, is_bound, nodes } = self.want.place;
        let on = |wanted: Option<u32>| -> Vec<&'a ScannedInterface> {
            all.iter().copied().filter(|found| found.interface.numa_node == wanted).collect()
        };
        let Some(node) = node.filter(|_| nodes > 1) else {
            return Some(self.in_turn(all, "any", turns, " of all suitable ones"));
        };
        let near = on(Some(node));
        if !near.is_empty() {
            let verb = if is_bound { "is bound" } else { "is currently running" };
            let place = format!(" on NUMA node {node}, where this process {verb}");
            return Some(self.in_turn(&near, &node.to_string(), turns, &place));
        }
        let unplaced = on(None);
        let rest = if unplaced.is_empty() { all } else { &unplaced[..] };
        let (found, mut why) = self.in_turn(rest, "other", turns, &format!(": none is on NUMA node {node}"));
        match found.interface.numa_node {
            Some(other) => messages.push(format!(
                "No network devices bound to client NUMA node {node}.  Using response from NUMA {other}"
            )),
            None => why.push_str(", and this one is not on a single node"),
        }
        Some((found, why))
    }

    fn in_turn(
        &self,
        set: &[&'a ScannedInterface],
        key: &str,
        turns: &mut dyn Turns,
        place: &str,
    ) -> (&'a ScannedInterface, String) {
        if let [only] = set {
            return (only, format!("the only one{place}"));
        }
        let key = format!("{} {} {key}", network::namespace(), self.want.provider);
        let turn = (turns.next(&key) % set.len() as u64) as usize;
        (set[turn], format!("number {} of {} in turn{place}", turn + 1, set.len()))
    }
}
