//! The interface that a load goes through: which one, and what it does.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use host::network::{InterfaceCounters, counters, interfaces, route_to};
use layer::observations::LinkActivity;
use rpc::interface::{Asked, FabricScan, ScannedInterface};

use crate::{NetworkPlan, NetworkSpec};

/// An interface and its counters before a phase.
pub(super) struct LinkWatch {
    interface: String,
    mtu_bytes: Option<u64>,
    path_mtu_bytes: Option<u64>,
    before: InterfaceCounters,
}

impl LinkWatch {
    /// The interface that a plan names, else that of the route to the first endpoint of the master that is on another host; none when
    /// nothing leaves this host.
    pub(super) fn begin(plan: &NetworkPlan, master: Option<usize>) -> Option<Self> {
        let named = plan.interface.as_ref();
        let mut routes = targets(plan, master).into_iter().filter_map(|target| route_to(target).ok());
        let route = routes.find(|route| named.is_some() || !route.is_local);
        let interface = match named {
            Some(interface) => interface.name.clone(),
            None => route.as_ref()?.interface.clone()?,
        };
        let own_mtu = || interfaces().ok()?.into_iter().find(|found| found.name == interface)?.mtu_bytes;
        let mtu_bytes = named.and_then(|named| named.mtu_bytes).or_else(|| own_mtu().map(u64::from));
        Some(Self {
            before: counters().remove(&interface)?,
            mtu_bytes,
            path_mtu_bytes: route.and_then(|route| route.path_mtu_bytes).map(u64::from),
            interface,
        })
    }

    /// Counters of the interface since the start.
    pub(super) fn end(self) -> Option<LinkActivity> {
        let done = counters().remove(&self.interface)?.since(&self.before);
        Some(LinkActivity {
            owner: None,
            received_bytes: done.received_bytes,
            sent_bytes: done.sent_bytes,
            dropped_packets: done.receive_drops + done.receive_errors + done.send_drops + done.send_errors,
            mtu_bytes: self.mtu_bytes,
            path_mtu_bytes: self.path_mtu_bytes,
            interface: self.interface,
        })
    }
}

/// Addresses of the endpoints, each once.
fn targets(plan: &NetworkPlan, master: Option<usize>) -> Vec<SocketAddr> {
    let own = master.and_then(|master| plan.masters.get(master)).map(|master| &master.endpoints);
    let mut uris: Vec<&str> = match own {
        Some(indexes) => {
            indexes.iter().filter_map(|&at| plan.endpoints.get(at as usize)).map(|one| &*one.uri).collect()
        }
        None => plan.endpoints.iter().map(|endpoint| &*endpoint.uri).collect(),
    };
    uris.sort_unstable();
    uris.dedup();
    let address = |uri: &str| uri.split_once("://")?.1.to_socket_addrs().ok()?.next();
    uris.into_iter().filter_map(address).collect()
}

/// The interface that sockets are told to take: as a device, or by an address that it has.
pub(super) fn bound_interface(own: &NetworkSpec, scan: &FabricScan) -> Option<Asked> {
    if own.interface.is_some() {
        return None;
    }
    let asked = |name: &str, by: &'static str| Some(Asked { name: name.to_owned(), by, is_option: true });
    if let Some(devices) = &own.bind_device {
        // Each worker takes the next one of a list; the phase is shown with the first.
        return asked(devices.split(',').next().unwrap_or(devices).trim(), "--bind-device");
    }
    let address: IpAddr = own.bind_address.as_ref()?.parse().ok()?;
    let has = |found: &&ScannedInterface| found.interface.addresses.iter().any(|own| own.address == address);
    asked(&scan.interfaces.iter().find(has)?.interface.name, "--bind-address")
}
