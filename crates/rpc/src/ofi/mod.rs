//! libfabric: RPCs over reliable datagram endpoints, bulk by RMA. The library is loaded at run time.
//!
//! A message is a frame (header, RMA descriptors, session, payload). Bulk of a request is read by the engine from the client's memory
//! (`fi_read`), bulk of a reply is written there (`fi_write`), and then the reply is sent: after the write has arrived, or at once where the
//! provider keeps messages behind writes (`FI_ORDER_SAW`). Client and engine also keep a TCP connection, over which they have proved to each other
//! who they are; it closes when one of them dies.

mod abi;
pub mod buffers;
pub mod frame;
mod library;
pub mod port;
mod provider;
mod server;
pub mod watch;

use driver::Error;

pub use provider::{FabricSettings, library_version, providers, typed_names};
pub use server::Listener;

use crate::inbox::Inbox;
use crate::seat::Seat;
use crate::service::Service;

/// Serves one tag over a fabric until the seat says stop. The endpoint's name is in the seat before the first client is looked at.
///
/// # Errors
/// When the endpoint cannot be opened.
pub fn serve(
    seat: Seat,
    inbox: &Inbox,
    mut service: Box<dyn Service>,
    settings: &FabricSettings,
) -> Result<(), Error> {
    Listener::open(seat, settings)?.serve(inbox, &mut *service);
    Ok(())
}
