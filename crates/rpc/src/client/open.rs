//! Opening a channel: all its connections.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Error, HostClock};
use workload::engine::Feature;

use super::connection::{Common, Connection};
use super::memory::Regions;
use super::outgoing::Outgoing;
use super::recovery::Recovery;
use super::slots::Slots;
use super::zero_copy::{PAYS_BYTES, ZeroCopy};
use super::{Channel, ChannelRequest, Endpoint, EndpointRequest, FAILURE_NS};
use crate::inbox::Role;
use crate::tcp::poller::Poller;
use crate::wire::{BULK_HEADER_BYTES, HEADER_BYTES};
use crate::{EndpointPlan, handshake, socket};

pub(super) fn open(request: &ChannelRequest) -> Result<(Channel, Vec<String>), Error> {
    let poller =
        Poller::new().map_err(|error| Error::system("open", "cannot create an event descriptor", error))?;
    let mut notes = Vec::new();
    let mut first_error = None;
    let (mut connections, mut endpoints) = (Vec::new(), Vec::new());
    for (index, place) in request.endpoints.iter().enumerate() {
        let mut endpoint = Endpoint { alive: Vec::new(), next: 0, errno: 0, wait_ns: FAILURE_NS };
        for _ in 0..request.connections {
            match connect(request, place, index, connections.len() as u32, &poller) {
                Ok(connection) => {
                    endpoint.alive.push(connections.len() as u32);
                    connections.push(connection);
                }
                Err(error) => {
                    endpoint.errno = error.errno().unwrap_or(libc::EHOSTUNREACH);
                    notes.push(error.to_string());
                    first_error.get_or_insert(error);
                    // Its other connections would fail alike, each after its own time-out.
                    break;
                }
            }
        }
        endpoints.push(endpoint);
    }
    if let (true, Some(error)) = (connections.is_empty(), first_error) {
        return Err(error);
    }
    let regions = Regions(request.regions.iter().map(Arc::clone).collect());
    let channel = Channel {
        common: Common { regions, slots: Slots::new(request.slots), poller },
        is_alive: vec![true; connections.len()],
        dirty: Vec::with_capacity(connections.len()),
        connections,
        endpoints,
        failing: VecDeque::with_capacity(request.depth as usize),
        in_flight: 0,
        pipeline: request.pipeline,
        poll: request.poll,
        timeout_ns: request.timeout_ns,
        next_timeout_ns: 0,
        last_moved_ns: 0,
        clock: HostClock::get(),
        interrupt: Arc::clone(&request.interrupt),
        give_up_ns: u64::MAX,
        recovery: Recovery::new(request),
        retired: Vec::new(),
    };
    Ok((channel, notes))
}

/// A stream and what goes out over it.
pub(super) type Stream = (TcpStream, Outgoing);

/// The streams of a connection: messages, and bulk where any is moved.
pub(super) struct Streams {
    pub(super) messages: Stream,
    pub(super) bulk: Option<Stream>,
}

/// Opens one connection.
fn connect(
    request: &ChannelRequest,
    place: &EndpointRequest,
    endpoint: usize,
    index: u32,
    poller: &Poller,
) -> Result<Connection, Error> {
    let streams = streams(request, place, &request.interrupt)?;
    Connection::new(index, endpoint, place.plan.tag, streams, poller)
        .map_err(|error| Error::system("connect", "the kernel cannot watch the connection", error))
}

/// Opens the streams of one connection.
pub(super) fn streams(
    request: &ChannelRequest,
    place: &EndpointRequest,
    interrupt: &AtomicBool,
) -> Result<Streams, Error> {
    let plan = &place.plan;
    let session = handshake::new_session()?;
    let connect = |role| {
        handshake::connect(
            plan,
            role,
            session,
            &[],
            &request.socket,
            request.secret.as_ref(),
            request.timeout_ns,
            interrupt,
        )
        .map(|connected| connected.stream)
    };
    let room = request.depth.min(request.pipeline) as usize;
    let messages = (connect(Role::Messages)?, Outgoing::new(room, HEADER_BYTES + request.copied_bytes, None));
    let bulk = if place.has_bulk {
        let stream = connect(Role::Bulk)?;
        let zero_copy = zero_copy(request, plan, &stream, room)?;
        Some((stream, Outgoing::new(room, BULK_HEADER_BYTES, zero_copy)))
    } else {
        None
    };
    Ok(Streams { messages, bulk })
}

/// `MSG_ZEROCOPY`, as the plan wants it and as the kernel grants it.
fn zero_copy(
    request: &ChannelRequest,
    plan: &EndpointPlan,
    stream: &TcpStream,
    room: usize,
) -> Result<Option<ZeroCopy>, Error> {
    let bytes = request.bulk_bytes_max;
    let least_bytes = match request.socket.zero_copy {
        Feature::On => 1,
        // Over loopback the kernel copies what it was told not to copy, and pinning comes on top.
        Feature::Auto if bytes >= PAYS_BYTES as u64 && !socket::is_local(stream) => PAYS_BYTES,
        Feature::Auto | Feature::Off => return Ok(None),
    };
    if bytes == 0 {
        return Ok(None);
    }
    match socket::enable_zero_copy(stream) {
        // A transfer may take several calls, and the kernel may take its time: what exceeds this is copied.
        Ok(()) => Ok(Some(ZeroCopy::new(least_bytes, 16 * room))),
        Err(_) if request.socket.zero_copy == Feature::Auto => Ok(None),
        Err(error) => Err(Error::system("connect", "the kernel does not support MSG_ZEROCOPY", error)
            .with("endpoint", &plan.label)
            .remedy("set zero-copy to auto or off")),
    }
}
