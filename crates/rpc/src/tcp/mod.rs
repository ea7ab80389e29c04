//! The server side of the `tcp` transport: one thread an endpoint, many connections.
//!
//! A session is one client's connection: a stream of messages and, where it moves bulk, a stream for that. Requests of a session are
//! carried out in their order; sessions take turns. What a session may hold in memory is bounded: replies that its client does not
//! read stop its requests, and the engine's budget grants every buffer before it is allocated.

mod ending;
mod endpoint;
mod memory;
mod pace;
mod places;
pub mod poller;
mod server;
mod session;

use crate::inbox::Inbox;
use crate::seat::Seat;
use crate::service::Service;

pub(crate) use server::ADAPTIVE_SPIN_NS;

/// Serves an endpoint on the calling thread until [`Seat::stop`] is set and the inbox's bell rings. Requests other than pings and
/// statistics go to `service`.
pub fn serve(seat: Seat, inbox: Inbox, service: Box<dyn Service>) {
    let log = seat.log.clone();
    let name = format!("rank {} tag {}", seat.rank, seat.tag);
    match server::Server::new(endpoint::Endpoint::new(seat, service), inbox) {
        Ok(mut server) => server.run(),
        Err(error) => log(&format!("{name}: the endpoint is not serving: {error}")),
    }
}
