//! The floor that RPCs over loopback are held against: 64 bytes to and fro over a bare socket, client and server pinned to a core each.
//!
//! `cargo run --release -p network --example ping_pong -- [SECONDS] [FILTER]`; `bench/network.py` runs it in turns with `strata net`.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use driver::{Clock as _, HostClock};
use rustix::thread::{CpuSet, sched_setaffinity};

const CLIENT_CPU: usize = 0;
const SERVER_CPU: usize = 1;
const MESSAGE_BYTES: usize = 64;
const BUFFER_BYTES: usize = 64 << 10;

fn pin(cpu: usize) {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).expect("this processor");
}

/// Reads what is there, or waits for it in the way of the socket; 0 at the end.
fn read_some(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    loop {
        match stream.read(buffer) {
            Ok(bytes) => return bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(_) => return 0,
        }
    }
}

/// Echoes whatever comes, in the batches that it comes in.
fn echo(listener: &TcpListener, spins: bool) {
    pin(SERVER_CPU);
    let (mut stream, _) = listener.accept().expect("a connection");
    stream.set_nodelay(true).expect("an option");
    stream.set_nonblocking(spins).expect("an option");
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match read_some(&mut stream, &mut buffer) {
            0 => return,
            bytes => stream.write_all(&buffer[..bytes]).expect("written"),
        }
    }
}

/// Median time of a round in nanoseconds, and messages a second.
fn measure(spins: bool, in_flight: usize, window_ns: u64) -> (f64, f64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || echo(&listener, spins));
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_nodelay(true).expect("an option");
    stream.set_nonblocking(spins).expect("an option");
    let clock = HostClock::get();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut rounds = Vec::new();
    let (mut count, mut left) = (0, 0);
    let begin = clock.now_ns();
    let mut sent = begin;
    stream.write_all(&buffer[..in_flight * MESSAGE_BYTES]).expect("written");
    while clock.now_ns() - begin < window_ns {
        let bytes = read_some(&mut stream, &mut buffer) + left;
        left = bytes % MESSAGE_BYTES;
        let whole = bytes / MESSAGE_BYTES;
        if whole > 0 {
            let now = clock.now_ns();
            rounds.push(now - sent);
            sent = now;
            count += whole;
            stream.write_all(&buffer[..whole * MESSAGE_BYTES]).expect("written");
        }
    }
    let rate = count as f64 * 1e9 / (clock.now_ns() - begin) as f64;
    drop(stream);
    server.join().expect("the server");
    rounds.sort_unstable();
    (rounds[rounds.len() / 2] as f64, rate)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(1.0, |text| text.parse().expect("seconds"));
    let filter = arguments.next().unwrap_or_default();
    pin(CLIENT_CPU);
    for (spins, way) in [(true, "spin"), (false, "block")] {
        for in_flight in [1, 16] {
            let name = format!("bare {way} {in_flight}");
            if name.contains(&filter) {
                let (p50_ns, rate) = measure(spins, in_flight, (seconds * 1e9) as u64);
                println!("{name}: p50 {:.3} us, {:.3} k/s", p50_ns / 1e3, rate / 1e3);
            }
        }
    }
}
