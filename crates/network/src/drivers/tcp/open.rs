//! Opening the `tcp` driver: all connections of a worker.

use std::collections::VecDeque;
use std::sync::Arc;

use driver::{Error, HostClock, Opened};
use workload::engine::Feature;
use workload::network::EndpointPlan;

use crate::handshake;
use crate::inbox::Role;
use crate::socket;
use crate::tcp::poller::Poller;
use crate::wire::{BULK_HEADER_BYTES, HEADER_BYTES, Header, flag, opcode};
use crate::{OpenRequest, Rpc};

use super::connection::{COPY_BYTES_MAX, Common, Connection};
use super::outgoing::Outgoing;
use super::slots::Slots;
use super::zero_copy::{PAYS_BYTES, ZeroCopy};
use super::{CAPABILITIES, Endpoint, Tcp};

pub(super) fn open(request: &OpenRequest) -> Result<Opened<Rpc>, Error> {
    request.check(CAPABILITIES.depth_max)?;
    let poller =
        Poller::new().map_err(|error| Error::system("open", "cannot make a descriptor for events", error))?;
    let mut notes = Vec::new();
    let mut first_error = None;
    let (mut connections, mut endpoints) = (Vec::new(), Vec::new());
    for (index, plan) in request.endpoints.iter().enumerate() {
        let mut endpoint = Endpoint { alive: Vec::new(), next: 0, errno: 0 };
        for _ in 0..request.connections {
            match connect(request, plan, index, connections.len() as u32, &poller) {
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
    let mut slots = Slots::new(request.arena.slots());
    slots.request_bytes = request.request.size_bytes;
    let driver = Tcp {
        common: Common {
            arena: Arc::clone(&request.arena),
            layout: request.layout,
            request: request.request,
            reply: request.reply,
            slots,
            poller,
        },
        is_alive: vec![true; connections.len()],
        dirty: Vec::with_capacity(connections.len()),
        parts: (0..endpoints.len()).collect(),
        connections,
        endpoints,
        failing: VecDeque::with_capacity(request.depth as usize),
        depth: request.depth,
        in_flight: 0,
        pipeline: request.pipeline,
        poll: request.poll,
        timeout_ns: request.timeout_ns,
        next_timeout_ns: 0,
        last_moved_ns: 0,
        has_bulk_reply: request.reply.bulk_bytes() > 0,
        clock: HostClock::get(),
        interrupt: Arc::clone(&request.interrupt),
        give_up_ns: u64::MAX,
    };
    Ok(Opened { driver: Box::new(driver), notes })
}

/// Opens one connection: its messages, and its bulk where the load moves any.
fn connect(
    request: &OpenRequest,
    plan: &EndpointPlan,
    endpoint: usize,
    index: u32,
    poller: &Poller,
) -> Result<Connection, Error> {
    let session = handshake::new_session()?;
    let connect = |role| {
        handshake::connect(
            plan,
            role,
            session,
            &[],
            &request.socket,
            request.token.as_ref(),
            request.timeout_ns,
            &request.interrupt,
        )
        .map(|connected| connected.stream)
    };
    let room = request.depth.min(request.pipeline) as usize;
    let inline = request.request.iov_bytes() as usize;
    let copied = HEADER_BYTES + if inline <= COPY_BYTES_MAX { inline } else { 0 };
    let messages = (connect(Role::Messages)?, Outgoing::new(room, copied, None));
    let bulk = if request.request.bulk_bytes() + request.reply.bulk_bytes() > 0 {
        let stream = connect(Role::Bulk)?;
        let zero_copy = zero_copy(request, plan, &stream, room)?;
        Some((stream, Outgoing::new(room, BULK_HEADER_BYTES, zero_copy)))
    } else {
        None
    };
    let template = Header {
        opcode: opcode::MEASURE,
        flags: if request.verify { flag::VERIFY } else { 0 },
        tag: plan.tag,
        inline_bytes: request.request.iov_bytes(),
        bulk_bytes: request.request.bulk_bytes(),
        reply_inline_bytes: request.reply.iov_bytes(),
        reply_bulk_bytes: request.reply.bulk_bytes(),
        seed: request.seed,
        ..Header::default()
    };
    Connection::new(index, endpoint, template, messages, bulk, poller)
        .map_err(|error| Error::system("connect", "the kernel does not watch the connection", error))
}

/// `MSG_ZEROCOPY`, as the plan wants it and as the kernel grants it.
fn zero_copy(
    request: &OpenRequest,
    plan: &EndpointPlan,
    stream: &std::net::TcpStream,
    room: usize,
) -> Result<Option<ZeroCopy>, Error> {
    let bytes = request.request.bulk_bytes();
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
        Err(error) => Err(Error::system("connect", "the kernel has no MSG_ZEROCOPY", error)
            .with("endpoint", &plan.label)
            .remedy("leave zero-copy to auto or off")),
    }
}
