//! Opening the driver: the port, the memory, and a proven link to each endpoint.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use driver::{Completions, Error, ErrorKind, Opened};
use rpc::{EndpointPlan, Poll};

use super::device::DeviceSlots;
use super::links::{Link, Peer};
use super::sending::{COPY_BYTES_MAX, Sent};
use super::tickets::Tickets;
use super::{DEPTH_MAX, Ofi, Shape, refused};
use crate::{OpenRequest, Rpc};
use rpc::ofi::FabricSettings;
use rpc::ofi::buffers::Buffer;
use rpc::ofi::frame::{Frame, PREFIX_BYTES_MAX};
use rpc::ofi::port::{EVENTS, Event, NO_CONTEXT, Port};
use rpc::ofi::watch::Watch;
use rpc::wire::{Header, opcode};
use rpc::{Role, handshake};

/// Memory for receives that a driver aims at, in bytes.
const RECEIVES_BYTES: usize = 64 << 20;
/// How long an endpoint has for its first answer before it is asked again: at first, and at most.
const ASK_FIRST: Duration = Duration::from_millis(10);
const ASK_LAST: Duration = Duration::from_secs(1);

/// Opens the driver for one worker.
pub(super) fn open(request: &OpenRequest) -> Result<Opened<Rpc>, Error> {
    request.check(DEPTH_MAX)?;
    let settings = settings_of(request)?;
    let mut driver = Ofi::new(request, &settings)?;
    let mut notes = vec![driver.note()];
    if request.poll != Poll::Spin && driver.port.wait().is_none() {
        notes.push(format!(
            "{} cannot block on an event: replies are polled, with sleeps of up to 200 us",
            driver.port.facts().provider
        ));
    }
    let failures = driver.connect(request)?;
    notes.extend(failures.iter().map(ToString::to_string));
    Ok(Opened { driver: Box::new(driver), notes })
}

fn settings_of(request: &OpenRequest) -> Result<FabricSettings, Error> {
    if request.connections != 1 {
        return Err(refused("a fabric does not support several connections")
            .with("connections", request.connections)
            .remedy("leave it at 1, or use more workers"));
    }
    let scheme =
        |endpoint: &EndpointPlan| endpoint.uri.split_once("://").map(|(scheme, _)| scheme.to_string());
    let first = request.endpoints.first().ok_or_else(|| refused("there is no endpoint to connect to"))?;
    let provider = scheme(first).unwrap_or_default();
    if let Some(other) = request.endpoints.iter().find(|other| scheme(other).as_ref() != Some(&provider)) {
        return Err(refused("the endpoints are on different fabrics")
            .with("one", &first.uri)
            .with("other", &other.uri)
            .remedy("measure them in separate phases"));
    }
    Ok(FabricSettings {
        provider,
        domain: request.domain.clone(),
        interface: request.socket.device.clone().or_else(|| request.socket.source.clone()),
        towards: address_of(first),
        device_memory: request.device.is_some(),
    })
}

fn address_of(endpoint: &EndpointPlan) -> Option<SocketAddr> {
    endpoint.uri.split_once("://")?.1.to_socket_addrs().ok()?.next()
}

impl Ofi {
    fn new(request: &OpenRequest, settings: &FabricSettings) -> Result<Self, Error> {
        let links = request.endpoints.len();
        let slots = request.arena.slots();
        let reply_bytes = PREFIX_BYTES_MAX + request.reply.iov_bytes() as usize;
        let receive_bytes = reply_bytes.next_multiple_of(64);
        let wanted = (slots as usize + links + 8).min((RECEIVES_BYTES / receive_bytes).max(4));
        let send_count = (slots as usize + links).min(4096);
        let mut port = Port::open(settings, wanted + send_count, request.poll != Poll::Spin)?;
        let receive_count = wanted.min(port.facts().receives_max);
        let send_bytes = PREFIX_BYTES_MAX + (request.request.iov_bytes() as usize).min(COPY_BYTES_MAX);
        let send_bytes = send_bytes.next_multiple_of(64);
        let receives = Buffer::new(&mut port, receive_count * receive_bytes, false)?;
        let sends = Buffer::new(&mut port, send_count * send_bytes, false)?;
        let (base, bytes) = request.arena.region();
        let has_bulk = request.request.bulk_bytes() + request.reply.bulk_bytes() > 0;
        let device = match &request.device {
            Some(device) => Some(DeviceSlots::new(&mut port, device)?),
            None => None,
        };
        // SAFETY: the driver holds the arena, and drops the port before it.
        let region = unsafe { port.register(base, bytes, has_bulk) }?;
        let mut driver = Self {
            port,
            shape: Shape {
                request: request.request,
                reply: request.reply,
                layout: request.layout,
                verify: request.verify,
                seed: request.seed,
                depth: request.depth as usize,
                pipeline: request.pipeline,
                timeout: Duration::from_nanos(request.timeout_ns),
            },
            poll: request.poll,
            arena: Arc::clone(&request.arena),
            region,
            device,
            links: Vec::new(),
            tickets: Tickets::new(slots),
            receives,
            receive_count: receive_count as u32,
            receive_bytes,
            unposted: (0..receive_count as u32).collect(),
            sends,
            send_bytes,
            free_sends: (0..send_count as u32).rev().collect(),
            sent: vec![Sent::default(); send_count],
            ready: VecDeque::with_capacity(slots as usize),
            failing: VecDeque::with_capacity(slots as usize),
            watch: Watch::default(),
            rounds: 0,
            ticked: Instant::now(),
            interrupt: Arc::clone(&request.interrupt),
        };
        driver.repost();
        Ok(driver)
    }

    fn note(&self) -> String {
        let facts = self.port.facts();
        format!("libfabric: provider {}, domain {}", facts.provider, facts.domain)
    }

    /// Connects to all endpoints. Those that cannot be reached are lost, as long as one is not.
    fn connect(&mut self, request: &OpenRequest) -> Result<Vec<Error>, Error> {
        let name = self.port.name()?;
        let mut failures = Vec::new();
        for endpoint in &request.endpoints {
            let session = draw_session()?;
            let (peer, is_own_process) = match self.greet(request, endpoint, session, &name) {
                Ok(greeted) => greeted,
                Err(error) => {
                    let errno = error.errno().unwrap_or(libc::ENOTCONN);
                    failures.push(error);
                    (Peer::Lost(errno), false)
                }
            };
            self.links.push(Link {
                peer,
                tag: endpoint.tag,
                session,
                is_own_process,
                in_flight: 0,
                set_apart: 0,
                is_proven: false,
            });
        }
        self.watch_links();
        failures.extend(self.prove(request)?);
        if self.links.iter().all(|link| matches!(link.peer, Peer::Lost(_))) {
            return Err(failures.swap_remove(0));
        }
        Ok(failures)
    }

    fn greet(
        &mut self,
        request: &OpenRequest,
        endpoint: &EndpointPlan,
        session: [u8; 16],
        name: &[u8],
    ) -> Result<(Peer, bool), Error> {
        let connected = handshake::connect(
            endpoint,
            Role::Fabric,
            session,
            name,
            &request.socket,
            request.secret.as_ref(),
            request.timeout_ns,
            &request.interrupt,
        )?;
        let address = self.port.insert(&connected.fabric_name).map_err(|errno| {
            let source = std::io::Error::from_raw_os_error(errno);
            Error::system("ofi", "the endpoint's fabric name does not belong to this provider", source)
                .with("endpoint", &endpoint.label)
                .remedy("use the provider that the engine was started with")
        })?;
        let is_own_process = self.port.is_own_process(&connected.fabric_name);
        Ok((Peer::Alive { stream: connected.stream, address }, is_own_process))
    }

    /// Waits until each endpoint has answered over the fabric; this also makes the provider's own connections. What is asked before the
    /// endpoint has heard of its new client is dropped there, so it is asked again.
    fn prove(&mut self, request: &OpenRequest) -> Result<Vec<Error>, Error> {
        let deadline = Instant::now() + self.shape.timeout;
        let mut events = [Event { context: NO_CONTEXT, error: 0, length: 0 }; EVENTS];
        let mut done = Completions::with_depth(request.depth.max(1));
        let mut asks = vec![(Instant::now(), ASK_FIRST); self.links.len()];
        loop {
            let now = Instant::now();
            for (index, (due, pause)) in asks.iter_mut().enumerate().filter(|(_, (due, _))| *due <= now) {
                if self.links[index].is_proven || self.ask(index as u32) {
                    (*due, *pause) = (now + *pause, (*pause * 2).min(ASK_LAST));
                }
            }
            self.collect(&mut events, &mut done)?;
            self.tick(Instant::now(), &mut done);
            let waits = |link: &Link| !link.is_proven && matches!(link.peer, Peer::Alive { .. });
            if !self.links.iter().any(waits) {
                break;
            }
            if Instant::now() >= deadline || request.interrupt.load(Ordering::Relaxed) {
                for link in self.links.iter_mut().filter(|link| waits(link)) {
                    link.peer = Peer::Lost(libc::ETIMEDOUT);
                }
                break;
            }
            std::thread::yield_now();
        }
        self.watch_links();
        Ok(self
            .links
            .iter()
            .zip(&request.endpoints)
            .filter_map(|(link, endpoint)| match link.peer {
                Peer::Lost(errno) if !link.is_proven => Some(unanswered(errno, endpoint)),
                _ => None,
            })
            .collect())
    }

    /// Sends a ping; true when that is settled.
    fn ask(&mut self, index: u32) -> bool {
        let link = &self.links[index as usize];
        let Peer::Alive { address, .. } = &link.peer else { return true };
        let address = *address;
        let header = Header { opcode: opcode::PING, slot: index, tag: link.tag, ..Header::default() };
        let frame = Frame { header, memory: None, session: link.session };
        match self.send_frame(&frame, (self.region, 0, 0), address, index) {
            Ok(()) => true,
            Err(libc::EAGAIN) => false,
            Err(errno) => {
                self.links[index as usize].peer = Peer::Lost(errno);
                true
            }
        }
    }
}

fn unanswered(errno: i32, endpoint: &EndpointPlan) -> Error {
    Error::system(
        "ofi",
        "the endpoint does not answer over the fabric",
        std::io::Error::from_raw_os_error(errno),
    )
    .with("endpoint", &endpoint.label)
    .with("uri", &endpoint.uri)
    .remedy("specify the interface that leads to it (OFI_INTERFACE, OFI_DOMAIN)")
}

fn draw_session() -> Result<[u8; 16], Error> {
    let mut session = [0; 16];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut session)
        .map_err(|_| Error::new(ErrorKind::System, "ofi", "the system provides no random numbers"))?;
    Ok(session)
}
