//! Waiting on descriptors: one list, made once and used again.
#![allow(unsafe_code)]

use std::io::Read;
use std::net::TcpStream;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Descriptors to wait on. The first may be left out of a look.
#[derive(Default)]
pub struct Watch {
    entries: Vec<libc::pollfd>,
}

impl Watch {
    /// The list from now on. The descriptors stay open until it is set again.
    pub fn set(&mut self, descriptors: impl Iterator<Item = RawFd>) {
        self.entries.clear();
        self.entries.extend(descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }));
    }

    /// Waits until something is readable or closed, at most for `timeout`; returns how many are.
    pub fn wait(&mut self, timeout: Duration) -> usize {
        let time = libc::timespec {
            tv_sec: timeout.as_secs().min(3600) as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let count = self.entries.len() as libc::nfds_t;
        // SAFETY: the list is as long as said; the kernel writes `revents` alone.
        let result =
            unsafe { libc::ppoll(self.entries.as_mut_ptr(), count, &raw const time, std::ptr::null()) };
        if result < 0 {
            self.entries.iter_mut().for_each(|entry| entry.revents = 0);
        }
        result.max(0) as usize
    }

    /// Whether the last wait found something at this place of the list.
    pub fn is_ready(&self, at: usize) -> bool {
        self.entries.get(at).is_some_and(|entry| entry.revents != 0)
    }
}

/// State of a connection that only shows that its peer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The peer lives.
    Alive,
    /// It has closed, or its machine has.
    Gone,
    /// It sent something, which it must not.
    Talks,
}

/// Looks at such a connection without waiting.
pub fn life(mut stream: &TcpStream) -> Life {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) => Life::Gone,
        Ok(_) => Life::Talks,
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) =>
        {
            Life::Alive
        }
        Err(_) => Life::Gone,
    }
}

/// Longest wait for a peer's last word.
const FAREWELL: Duration = Duration::from_secs(1);

/// Ends connections that show that a peer lives: says so, and waits until each peer has closed its end, which it does when it has forgotten us.
/// Whether all have.
pub fn farewell<'a>(streams: impl Iterator<Item = &'a TcpStream>, mut progress: impl FnMut()) -> bool {
    let mut left: Vec<&TcpStream> = streams.collect();
    for stream in &left {
        // A connection that is closed already has nothing to be told.
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
    let end = Instant::now() + FAREWELL;
    loop {
        left.retain(|stream| life(stream) != Life::Gone);
        if left.is_empty() || Instant::now() >= end {
            return left.is_empty();
        }
        progress();
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_peer_that_leaves_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let mut ours = TcpStream::connect(listener.local_addr().expect("address")).expect("connects");
        let (theirs, _) = listener.accept().expect("accepts");
        theirs.set_nonblocking(true).expect("sets");
        let mut watch = Watch::default();
        watch.set([theirs.as_raw_fd()].into_iter());
        assert_eq!(watch.wait(Duration::ZERO), 0);
        assert_eq!(life(&theirs), Life::Alive);
        ours.write_all(b"x").expect("writes");
        assert_eq!(watch.wait(Duration::from_secs(5)), 1);
        assert!(watch.is_ready(0) && !watch.is_ready(1));
        assert_eq!(life(&theirs), Life::Talks);
        drop(ours);
        assert_eq!(watch.wait(Duration::from_secs(5)), 1);
        assert_eq!(life(&theirs), Life::Gone);
    }
}
