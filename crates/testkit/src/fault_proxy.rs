//! A proxy of HTTP/1.1 between a client and a real server, which does wrong what a test says.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Treatment of a request by the proxy.
#[derive(Clone, Debug)]
pub enum Meddling {
    /// It goes to the server, and its answer comes back.
    None,
    /// The server never sees it; these bytes are the answer.
    Answer(Vec<u8>),
    /// The server carries it out, and these bytes come in place of its answer.
    Replace(Vec<u8>),
    /// The server carries it out, and the connection is cut in place of its answer.
    Lose,
    /// These bytes come before the answer: interim answers.
    Before(Vec<u8>),
    /// It waits for the test to let it go on.
    Hold(Arc<AtomicBool>),
}

/// An answer of status 200 with this body.
#[must_use]
pub fn good(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

type Rule = dyn Fn(&str, u64) -> Meddling + Send + Sync;

/// The proxy. It ends when it is dropped.
pub struct FaultProxy {
    address: SocketAddr,
    has_ended: Arc<AtomicBool>,
    requests: Arc<AtomicU64>,
    acceptor: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// A proxy before `server` (`127.0.0.1:PORT`, or such an `http://` URL). `rule` is asked about the first line of each request and its
    /// number, from 1.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start(
        server: &str,
        rule: impl Fn(&str, u64) -> Meddling + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let server = server.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (has_ended, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let rule: Arc<Rule> = Arc::new(rule);
        let (flag, count) = (Arc::clone(&has_ended), Arc::clone(&requests));
        let acceptor = std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                if flag.load(Ordering::Relaxed) {
                    return;
                }
                let (server, rule, count) = (server.clone(), Arc::clone(&rule), Arc::clone(&count));
                // How a connection ends is its client's affair.
                std::thread::spawn(move || serve(socket, &server, &*rule, &count).ok());
            }
        });
        Ok(Self { address, has_ended, requests, acceptor: Some(acceptor) })
    }

    /// Where it is: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        // It learns so by one connection more.
        let _woken = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ended = acceptor.join();
        }
    }
}

fn serve(mut client: TcpStream, server: &str, rule: &Rule, count: &AtomicU64) -> io::Result<()> {
    client.set_nodelay(true)?;
    while let Some((head, body)) = request(&mut client)? {
        let first = head.lines().next().unwrap_or_default();
        let meddling = rule(first, count.fetch_add(1, Ordering::Relaxed) + 1);
        if let Meddling::Hold(goes_on) = &meddling {
            while !goes_on.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        if let Meddling::Answer(answer) = &meddling {
            client.write_all(answer)?;
            continue;
        }
        let answer = forward(server, &head, &body)?;
        match meddling {
            Meddling::Replace(other) => client.write_all(&other)?,
            Meddling::Lose => return Ok(()),
            Meddling::Before(interim) => {
                client.write_all(&[interim, answer].concat())?;
                return Ok(());
            }
            _ => {
                client.write_all(&answer)?;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Head and body of the next request; none where the client has gone.
fn request(client: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if client.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).map_err(io::Error::other)?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    client.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

/// The server's whole answer, on a connection of its own that ends with it.
fn forward(server: &str, head: &str, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut upstream = TcpStream::connect(server)?;
    let head = head.strip_suffix("\r\n").unwrap_or(head);
    upstream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    upstream.write_all(body)?;
    let mut answer = Vec::new();
    match upstream.read_to_end(&mut answer) {
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(answer),
    }
}
