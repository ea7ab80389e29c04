//! Which provider serves by which module.

use driver::Error;

use super::EngineRequest;
use crate::address::Provider;
use crate::inbox::{Inbox, Role};
use crate::ofi::{self, FabricSettings};
use crate::seat::Seat;
use crate::service::Service;
use crate::tcp;

/// Serves an endpoint until the engine stops. One arm a transport.
pub(super) fn serve(request: &EngineRequest, seat: Seat, inbox: Inbox, service: Box<dyn Service>) {
    match &request.provider {
        Provider::Tcp => tcp::serve(seat, inbox, service),
        Provider::Ofi(_) => {
            let (log, tag) = (seat.log.clone(), seat.tag);
            let settings = FabricSettings {
                provider: request.provider.to_string(),
                domain: request.domain.clone(),
                interface: request.interface.clone(),
                // Without an interface it is the one that others reach the acceptor by.
                towards: request.listen.first().copied(),
                device_memory: false,
            };
            if let Err(error) = ofi::serve(seat, &inbox, service, &settings) {
                log(&format!("tag {tag}: {error}"));
            }
        }
    }
}

/// Whether this machine can serve the provider.
///
/// # Errors
/// When libfabric is not there.
pub(super) fn check(provider: &Provider) -> Result<(), Error> {
    match provider {
        Provider::Tcp => Ok(()),
        Provider::Ofi(_) => ofi::library_version().map(drop),
    }
}

/// Whether the endpoints of the provider have names of their own, which exist once they are open.
pub(super) fn has_fabric_names(provider: &Provider) -> bool {
    matches!(provider, Provider::Ofi(_))
}

/// Whether the provider takes connections of a role.
pub(super) fn serves(provider: &Provider, role: Role) -> bool {
    match provider {
        Provider::Tcp => matches!(role, Role::Messages | Role::Bulk),
        Provider::Ofi(_) => role == Role::Fabric,
    }
}

/// Where the endpoints can be reached from beyond this host, apart from the acceptor; none when they cannot. Without an interface or a
/// domain they are where the acceptor listens.
pub(super) fn fabric_beyond_loopback(request: &EngineRequest) -> Option<String> {
    match &request.provider {
        Provider::Ofi(name) if name != "shm" => {
            let mut chosen = request.interface.iter().chain(&request.domain);
            chosen.find(|place| *place != "lo").map(|place| format!("{} over {place}", request.provider))
        }
        _ => None,
    }
}
