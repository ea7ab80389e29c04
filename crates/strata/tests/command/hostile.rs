//! Traffic on the ports of an engine that is no client's, while a good client measures.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rpc::wire::{BULK_HEADER_BYTES, BulkHeader, HEADER_BYTES, Header, flag, opcode};
use rpc::{EndpointPlan, Role, SocketPlan, handshake};

use super::hosts::{Engine, Process, resident_bytes_max};
use super::support::Scratch;

/// Memory that the engine may take on top of what it had before, in bytes: far less than what is asked of it.
const GROWTH_BYTES_MAX: u64 = 128 << 20;
/// Lines that a log may have for each second: those of the two ports, and some of their own.
const LINES_A_SECOND_MAX: usize = 60;
/// Connections that wait in their handshake and say nothing more.
const IDLERS: usize = 300;

fn strata(scratch: &Scratch, words: &str) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strata"));
    command.args(shlex::split(words).unwrap()).current_dir(scratch.path());
    Process::start(command)
}

/// Connects and gives up soon; connections may be refused when many are in their handshake.
fn connect(address: &str) -> Option<TcpStream> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    Some(stream)
}

/// Sends what the other side may no longer take.
fn say(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
    let _ = stream.read(&mut [0; 512]);
}

/// A connection that the engine has taken in as one of a client.
fn taken(uri: &str, role: Role, session: [u8; 16]) -> Option<TcpStream> {
    let endpoint = EndpointPlan { rank: 0, tag: 2, uri: uri.to_owned(), label: "0:2".to_owned() };
    let never = AtomicBool::new(false);
    let socket = SocketPlan::default();
    let connected =
        handshake::connect(&endpoint, role, session, &[], &socket, None, 2_000_000_000, &never).ok()?;
    connected.stream.set_nonblocking(false).unwrap();
    connected.stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    connected.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    Some(connected.stream)
}

fn header(header: Header) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    header.encode(&mut bytes);
    bytes
}

/// Frames that no client sends, or that ask for more than anybody may have.
fn bad_frames() -> Vec<Vec<u8>> {
    let measure = Header { opcode: opcode::MEASURE, tag: 2, slot: 1, ..Header::default() };
    let large = 1 << 39;
    let mut frames: Vec<Vec<u8>> = [
        Header { inline_bytes: large, ..measure },
        Header { bulk_bytes: large, ..measure },
        Header { reply_inline_bytes: large, ..measure },
        Header { reply_bulk_bytes: large, ..measure },
        Header { flags: flag::REPLY, ..measure },
        Header { flags: flag::RMA, bulk_bytes: 4096, ..measure },
        Header { tag: 4711, ..measure },
        Header { opcode: 63, ..measure },
        Header { inline_bytes: 1 << 20, ..measure },
    ]
    .map(|bad| header(bad).to_vec())
    .to_vec();
    frames.push(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(8));
    frames.push(vec![0xff; 4096]);
    frames.push(header(Header { reply_bulk_bytes: 64 << 20, ..measure }).repeat(200));
    frames
}

/// Garbage, half handshakes and strange greetings at either port.
fn strange_words() -> Vec<Vec<u8>> {
    let mut preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let settings = [&preface[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    // A frame that says that 16 MiB follow, and one of headers that never end.
    let huge = [&settings[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat();
    let headers = [&settings[..], &[0, 64, 0, 1, 0, 0, 0, 0, 1], &[0x40; 16_384]].concat();
    preface.truncate(10);
    let mut hello = handshake::MAGIC.to_vec();
    hello.extend([0xff; 60]);
    vec![
        b"hello\n".to_vec(),
        vec![0; 4096],
        vec![0xff; 65_536],
        handshake::MAGIC.to_vec(),
        hello,
        preface,
        huge,
        headers,
        vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
        Vec::new(),
    ]
}

/// Talks nonsense to an engine until told to stop; how often.
fn attack(engine: &Engine, stop: &AtomicBool) -> u64 {
    let times = AtomicU64::new(0);
    let is_on = || !stop.load(Ordering::Relaxed);
    let words = strange_words();
    std::thread::scope(|scope| {
        for address in [engine.address(), engine.control()] {
            let (times, words) = (&times, &words);
            scope.spawn(move || {
                for bytes in words.iter().cycle().take_while(|_| is_on()) {
                    let Some(mut stream) = connect(address) else { continue };
                    say(&mut stream, bytes);
                    times.fetch_add(1, Ordering::Relaxed);
                }
            });
            scope.spawn(move || {
                // Slow ones: a byte now and then, and never enough of them.
                let mut idlers: Vec<TcpStream> = (0..IDLERS / 2).filter_map(|_| connect(address)).collect();
                for byte in handshake::MAGIC.iter().cycle().take_while(|_| is_on()) {
                    idlers.iter_mut().for_each(|idler| {
                        let _ = idler.write_all(&[*byte]);
                    });
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
        let times = &times;
        scope.spawn(move || {
            let session = |number: usize| [number as u8; 16];
            for (number, frame) in bad_frames().iter().cycle().enumerate().take_while(|_| is_on()) {
                let Some(mut stream) = taken(engine.uri(), Role::Messages, session(number)) else { continue };
                say(&mut stream, frame);
                times.fetch_add(1, Ordering::Relaxed);
                let Some(mut bulk) = taken(engine.uri(), Role::Bulk, session(number)) else { continue };
                let mut bytes = [0; BULK_HEADER_BYTES];
                BulkHeader { slot: 77, bytes: 1 << 39 }.encode(&mut bytes);
                say(&mut bulk, &bytes);
            }
        });
    });
    times.into_inner()
}

#[test]
fn nonsense_at_its_ports_harms_no_other_client() {
    let scratch = Scratch::new();
    let words = "engine --rank 0 --path . --poll block --connections-max 1000 --until-stdin-closes";
    let engine = Engine::serving(strata(&scratch, words));
    let load = |time: &str| {
        let sizes = "'(0 0) (i2k i2k) (b256k b256k)'";
        let words = format!(
            "net --path . --endpoint 0:2 --message-sizes {sizes} --verify --poll block --time {time}"
        );
        strata(&scratch, &words)
    };
    let quiet = load("100ms").end_within(Duration::from_secs(20));
    assert_eq!(quiet.code, Some(0), "{}", quiet.stderr);
    let before = resident_bytes_max(engine.process.id());
    let stop = AtomicBool::new(false);
    let begun = std::time::Instant::now();
    let (ended, times) = std::thread::scope(|scope| {
        let attack = scope.spawn(|| attack(&engine, &stop));
        // It ends with the attack, whatever becomes of it.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            load("700ms").end_within(Duration::from_secs(40))
        }));
        stop.store(true, Ordering::Relaxed);
        (ended, attack.join().unwrap())
    });
    let ended = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(times > 20, "{times}");
    let seconds = begun.elapsed().as_secs() as usize + 1;
    let grown = resident_bytes_max(engine.process.id()) - before;
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more after {times} attacks");
    let log = engine.end();
    assert_eq!(log.code, Some(0), "{}", log.stderr);
    let lines = log.stderr.lines().count();
    assert!((2..LINES_A_SECOND_MAX * seconds).contains(&lines), "{lines} lines in {seconds} s");
    assert!(log.stderr.lines().all(|line| line.len() < 700 && !line.contains('\u{1b}')), "{}", log.stderr);
    assert!(!log.stderr.contains("panicked"), "{}", log.stderr);
}
