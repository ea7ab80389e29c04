//! A link of TCP with a declared delay, on loopback: what a client sends, and what its server sends back, arrives so much later.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Changes to bytes on their way from a client, or to one.
type Change = dyn Fn(&mut [u8]) + Send + Sync;

/// The link. It takes no more connections when it is dropped; those that are open end with their ends.
pub struct SlowLink {
    address: SocketAddr,
    has_ended: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl SlowLink {
    /// A link to `server` (`127.0.0.1:PORT`) that delays by `delay` each way.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start(server: &str, delay: Duration) -> io::Result<Self> {
        Self::start_changing(server, delay, |_| {}, |_| {})
    }

    /// The same, which shows bytes as they come to `sent` (from clients) and `answered` (from the server), which may change them.
    ///
    /// # Errors
    /// As [`SlowLink::start`].
    pub fn start_changing(
        server: &str,
        delay: Duration,
        sent: impl Fn(&mut [u8]) + Send + Sync + 'static,
        answered: impl Fn(&mut [u8]) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let (server, flag) = (server.to_owned(), Arc::clone(&has_ended));
        let changes: [Arc<Change>; 2] = [Arc::new(sent), Arc::new(answered)];
        let acceptor = std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if flag.load(Ordering::Relaxed) {
                    return;
                }
                // How a connection ends is its client's affair.
                let _joined = join(&client, &server, delay, &changes);
            }
        });
        Ok(Self { address, has_ended, acceptor: Some(acceptor) })
    }

    /// Where it is: `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        // It learns so by one connection more.
        let _woken = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ended = acceptor.join();
        }
    }
}

/// Joins a client to the server, one direction a pair of threads.
fn join(client: &TcpStream, server: &str, delay: Duration, changes: &[Arc<Change>; 2]) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    carry(client.try_clone()?, server.try_clone()?, delay, Arc::clone(&changes[0]));
    carry(server, client.try_clone()?, delay, Arc::clone(&changes[1]));
    Ok(())
}

/// Carries what comes from one side to the other, until one of them ends.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration, change: Arc<Change>) {
    let (sender, receiver) = channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut room = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut room) {
            let mut bytes = room[..count].to_vec();
            change(&mut bytes);
            if sender.send((Instant::now() + delay, bytes)).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, bytes) in receiver {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        // The other side may have hung up already.
        let _ = to.shutdown(Shutdown::Write);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_late_both_ways_and_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut room = [0; 5];
            stream.read_exact(&mut room).unwrap();
            stream.write_all(&room).unwrap();
        });
        let link = SlowLink::start(&server, Duration::from_millis(20)).unwrap();
        let mut client = TcpStream::connect(link.address()).unwrap();
        let begun = Instant::now();
        client.write_all(b"hello").unwrap();
        let mut room = Vec::new();
        client.read_to_end(&mut room).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(40));
        assert_eq!(room, b"hello");
    }
}
