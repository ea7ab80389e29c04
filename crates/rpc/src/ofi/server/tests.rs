//! Hostile clients: what no driver of ours would send.
#![allow(unsafe_code)]

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::ofi::frame::Frame;
use crate::ofi::port::Remote;
use crate::ofi::providers;
use crate::service::{Answer, Call, Counters, Limits};
use crate::wire::{Header, flag, opcode};
use crate::{Budget, InboxSender, Poll, inbox};

struct Nothing;

impl Service for Nothing {
    fn call(&mut self, _call: &Call<'_>, _answer: &mut Answer<'_>) -> i32 {
        0
    }
}

/// An endpoint that serves, and a client of it that sends what it likes.
struct Scene {
    port: Port,
    address: PeerAddress,
    buffer: Buffer,
    stop: Arc<AtomicBool>,
    bell: InboxSender,
    counters: Arc<Counters>,
    thread: Option<std::thread::JoinHandle<()>>,
    settings: FabricSettings,
    name: Vec<u8>,
}

impl Scene {
    fn new(provider: &str) -> Self {
        Self::with(provider, Budget::new(Limits::default().memory_bytes_max))
    }

    fn with(provider: &str, budget: Arc<Budget>) -> Self {
        let settings = FabricSettings {
            provider: provider.into(),
            interface: Some("lo".into()),
            ..FabricSettings::default()
        };
        let (bell, inbox) = inbox().expect("inbox");
        let seat = Seat {
            rank: 0,
            tag: 3,
            poll: Poll::Adaptive,
            limits: Limits::default(),
            budget,
            counters: Arc::default(),
            stop: Arc::default(),
            log: Arc::new(|line| println!("{line}")),
            fabric_name: Arc::default(),
        };
        let (stop, counters, name) = (seat.stop.clone(), seat.counters.clone(), seat.fabric_name.clone());
        let listener = Listener::open(seat, &settings).expect("opens");
        let thread = std::thread::spawn(move || listener.serve(&inbox, &mut Nothing));
        let name = name.get().expect("its name").clone();
        let (port, address, buffer) = client_of(&settings, &name, 4096);
        Self { port, address, buffer, stop, bell, counters, thread: Some(thread), settings, name }
    }

    /// Another client from now on.
    fn another(&mut self) {
        drop(self.replace(4096));
    }

    /// Another client from now on, with so much memory. The one before it makes no progress any more.
    fn replace(&mut self, bytes: usize) -> (Port, Buffer) {
        let (port, address, buffer) = client_of(&self.settings, &self.name, bytes);
        self.address = address;
        (std::mem::replace(&mut self.port, port), std::mem::replace(&mut self.buffer, buffer))
    }

    /// A request with bulk of the client's own memory.
    fn request(&self, bytes: u64, session: [u8; 16]) -> Vec<u8> {
        let header = Header { opcode: opcode::PING, tag: 3, bulk_bytes: bytes, ..Header::default() };
        let memory = self.buffer.region.remote(0, self.buffer.held_bytes());
        message(header, Some([memory; 2]), session)
    }

    /// Sends a request with bulk, and waits until it is carried out.
    fn is_served(&mut self, what: &str, bytes: u64, session: [u8; 16]) {
        let before = self.counters.rpcs.load(Ordering::Relaxed);
        let request = self.request(bytes, session);
        self.send(&request);
        self.until(what, |scene| scene.counters.rpcs.load(Ordering::Relaxed) > before);
    }

    /// Becomes a client; the connection shows what becomes of it.
    fn greet(&mut self, session: [u8; 16]) -> TcpStream {
        self.greet_from(None, session)
    }

    /// As if it came from this address.
    fn greet_from(&mut self, from: Option<IpAddr>, session: [u8; 16]) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let ours = TcpStream::connect(listener.local_addr().expect("address")).expect("connects");
        let (stream, peer) = listener.accept().expect("accepts");
        stream.set_nonblocking(true).expect("sets");
        let fabric_name = self.port.name().expect("name");
        let peer = from.map_or(peer, |ip| SocketAddr::new(ip, peer.port()));
        self.bell.send(Accepted { role: Role::Fabric, stream, session, peer, fabric_name });
        ours
    }

    fn send(&mut self, message: &[u8]) {
        let mut events = [Event { context: NO_CONTEXT, error: 0, length: 0 }; EVENTS];
        self.until("the message is taken", |scene| {
            let _ = scene.port.poll(&mut events);
            let (region, address) = (scene.buffer.region, scene.address);
            write(&scene.buffer, message);
            send(&mut scene.port, &region, message.len(), address)
        });
    }

    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let end = std::time::Instant::now() + Duration::from_secs(20);
        let mut events = [Event { context: NO_CONTEXT, error: 0, length: 0 }; EVENTS];
        while !holds(self) {
            assert!(std::time::Instant::now() < end, "never: {what}");
            // Progress of our own side; what completes is of no interest.
            let _ = self.port.poll(&mut events);
            std::thread::yield_now();
        }
    }

    /// The engine has ended the connection.
    fn is_cut_off(&mut self, mut stream: TcpStream) {
        stream.set_nonblocking(true).expect("sets");
        self.until("the client is cut off", |_| matches!(stream.read(&mut [0]), Ok(0)));
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.bell.ring();
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn client_of(settings: &FabricSettings, name: &[u8], bytes: usize) -> (Port, PeerAddress, Buffer) {
    let mut port = Port::open(settings, 16, false).expect("opens");
    let address = port.insert(name).expect("a name");
    let buffer = Buffer::new(&mut port, bytes, true).expect("memory");
    (port, address, buffer)
}

fn write(buffer: &Buffer, message: &[u8]) {
    // SAFETY: nothing is in flight from it that matters.
    unsafe { buffer.bytes_mut(0, message.len()) }.copy_from_slice(message);
}

fn send(port: &mut Port, region: &super::super::port::Region, bytes: usize, peer: PeerAddress) -> bool {
    // SAFETY: the buffer lives as long as the scene.
    unsafe { port.send(region, 0, bytes, peer, 0) }.is_ok()
}

fn message(header: Header, memory: Option<[Remote; 2]>, session: [u8; 16]) -> Vec<u8> {
    let mut prefix = [0; PREFIX_BYTES_MAX];
    let length = Frame { header, memory, session }.encode(&mut prefix);
    prefix[..length].to_vec()
}

#[test]
fn hostile_clients_are_cut_off_and_others_served() {
    if let Err(error) = providers() {
        return println!("skipped: hostile_clients_are_cut_off_and_others_served: {error}");
    }
    let request = Header { opcode: opcode::PING, tag: 3, ..Header::default() };
    let far = Remote { address: u64::MAX - 10, key: 1, bytes: 4096 };
    let unknown = Remote { address: 64, key: 0x5eed, bytes: 4096 };
    let bulk = Header { bulk_bytes: 4096, ..request };
    let cases = [
        ("another tag", message(Header { tag: 4, ..request }, None, [1; 16])),
        ("a reply", message(Header { flags: flag::REPLY, ..request }, None, [1; 16])),
        ("times", message(Header { flags: flag::TIMED, ..request }, None, [1; 16])),
        ("bulk without memory", message(bulk, None, [1; 16])),
        ("more bulk than memory", message(bulk, Some([Remote::default(); 2]), [1; 16])),
        ("memory beyond all", message(bulk, Some([far; 2]), [1; 16])),
        ("memory that is not there", message(bulk, Some([unknown; 2]), [1; 16])),
    ];
    let mut scene = Scene::new("ofi+tcp");
    let honest = scene.greet([2; 16]);
    scene.send(b"nonsense");
    scene.send(&message(request, None, [9; 16]));
    scene.until("nonsense is counted", |scene| scene.counters.closed_hostile.load(Ordering::Relaxed) == 1);
    for (count, (what, bytes)) in cases.into_iter().enumerate() {
        println!("{what}");
        let stream = scene.greet([1; 16]);
        scene.until("it is a client", |scene| scene.counters.connections.load(Ordering::Relaxed) == 2);
        scene.send(&bytes);
        scene.is_cut_off(stream);
        assert_eq!(scene.counters.closed_hostile.load(Ordering::Relaxed), count as u64 + 2, "{what}");
        assert_eq!(scene.counters.connections.load(Ordering::Relaxed), 1, "{what}");
    }
    // A provider closes its own connection over memory that is not there; an honest client has another.
    scene.another();
    let before = scene.counters.rpcs.load(Ordering::Relaxed);
    let new = scene.greet([5; 16]);
    scene.until("it is a client", |scene| scene.counters.connections.load(Ordering::Relaxed) == 2);
    scene.send(&message(request, None, [5; 16]));
    scene.until("the honest one is served", |scene| scene.counters.rpcs.load(Ordering::Relaxed) > before);
    drop((honest, new));
    scene.until("it is forgotten", |scene| scene.counters.connections.load(Ordering::Relaxed) == 0);
}

#[test]
fn names_and_sessions_that_cannot_be_are_refused() {
    if let Err(error) = providers() {
        return println!("skipped: names_and_sessions_that_cannot_be_are_refused: {error}");
    }
    for provider in ["ofi+tcp", "ofi+shm"] {
        let mut scene = Scene::new(provider);
        for name in [&b""[..], b"x", &[0; 16], &[0xff; 300], b"fi_shm://../../etc/passwd\0", b"fi_shm://1"] {
            assert!(scene.port.insert(name).is_err(), "{provider} took {name:?}");
        }
        let first = scene.greet([1; 16]);
        scene.until("it is a client", |scene| scene.counters.connections.load(Ordering::Relaxed) == 1);
        let second = scene.greet([1; 16]);
        if provider == "ofi+tcp" {
            scene.is_cut_off(second);
        }
        drop(first);
        scene
            .until("the first is forgotten", |scene| scene.counters.connections.load(Ordering::Relaxed) == 0);
    }
}

/// Sessions at one address that send requests for their memory and then make no progress, so that nothing of them ends.
fn hogs(scene: &mut Scene, at: IpAddr, bytes: u64) -> Vec<(Port, Buffer, TcpStream)> {
    let mut all = Vec::new();
    for number in 10..22 {
        scene.replace(1 << 20);
        let session = [number; 16];
        let stream = scene.greet_from(Some(at), session);
        let clients = u64::from(number) - 9;
        scene.until("it is a client", |scene| scene.counters.connections.load(Ordering::Relaxed) == clients);
        let request = scene.request(bytes, session);
        for _ in 0..12 {
            scene.send(&request);
        }
        let (port, buffer) = scene.replace(4096);
        all.push((port, buffer, stream));
    }
    all
}

#[test]
fn clients_that_take_all_they_get_leave_the_others_theirs() {
    let name = "clients_that_take_all_they_get_leave_the_others_theirs";
    if let Err(error) = providers() {
        return println!("skipped: {name}: {error}");
    }
    let [hostile, other] = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
    // More of operations than there are, and more of memory.
    for bytes in [64, 1 << 20] {
        // Messages take 48 MiB. Of 80 MiB each session is assured of 640 KiB, and an address gets 15 MiB beyond.
        let mut scene = Scene::with("ofi+tcp", Budget::shared(128 << 20, 64));
        let hogs = hogs(&mut scene, hostile, bytes);
        let mut streams = Vec::new();
        for (session, from, what, bulk_bytes) in [
            ([1; 16], other, "another client", 4 << 20),
            ([2; 16], hostile, "another session of the same address", 512 << 10),
        ] {
            scene.replace(bulk_bytes as usize);
            streams.push(scene.greet_from(Some(from), session));
            let clients = (hogs.len() + streams.len()) as u64;
            scene.until("it is a client", |scene| {
                scene.counters.connections.load(Ordering::Relaxed) == clients
            });
            for round in 0..20 {
                scene.is_served(&format!("{what}, round {round}, beside {bytes} bytes"), bulk_bytes, session);
            }
        }
    }
}
