//! Waiting for many sockets, with a time-out in nanoseconds.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Most events that one call brings; the rest follow with the next.
const EVENTS_MAX: usize = 256;

/// Events that a socket is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interest {
    /// Something to read.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

impl Interest {
    /// Something to read alone.
    pub const READ: Self = Self { read: true, write: false };

    fn bits(self) -> u32 {
        let read = if self.read { libc::EPOLLIN } else { 0 };
        let write = if self.write { libc::EPOLLOUT } else { 0 };
        (read | write) as u32
    }
}

/// Events that a socket is ready for.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The number that the socket was added with.
    pub token: u64,
    /// Something to read.
    pub read: bool,
    /// An error, a hang-up, or something in the error queue: told whether it is watched for or not.
    pub failed: bool,
}

/// An epoll descriptor. A socket leaves it by being closed, or by being removed.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    has_fine_timeouts: AtomicBool,
}

impl AsFd for Poller {
    /// Readable while a socket is ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Poller {
    /// A new one.
    ///
    /// # Errors
    /// When the kernel has none left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: a fresh descriptor that nobody else owns.
            epoll: unsafe { OwnedFd::from_raw_fd(epoll) },
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX],
            has_fine_timeouts: AtomicBool::new(true),
        })
    }

    /// Watches a socket.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn add(&self, socket: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, token, interest)
    }

    /// Watches it for something else.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn modify(&self, socket: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, token, interest)
    }

    /// Watches it no more.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, socket, 0, Interest::default())
    }

    fn control(&self, what: i32, socket: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.bits(), u64: token };
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: the event lives through the call.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), what, socket, &raw mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until a socket is ready, at most `timeout_ns`, without end when none. How many are.
    ///
    /// # Errors
    /// `EINTR` when a signal came.
    pub fn wait(&mut self, timeout_ns: Option<u64>) -> io::Result<usize> {
        let fine = self.has_fine_timeouts.load(Ordering::Relaxed);
        let result = match timeout_ns {
            Some(ns) if ns > 0 && fine => self.wait_fine(ns),
            _ => {
                // Rounded up, so that a wait for less than a millisecond is no busy loop.
                let ms = timeout_ns.map_or(-1, |ns| ns.div_ceil(1_000_000).min(i32::MAX as u64) as i32);
                self.wait_coarse(ms)
            }
        };
        if result >= 0 {
            return Ok(result as usize);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ENOSYS) && fine {
            self.has_fine_timeouts.store(false, Ordering::Relaxed);
            return self.wait(timeout_ns);
        }
        Err(error)
    }

    fn wait_coarse(&mut self, ms: i32) -> i64 {
        let room = self.events.len() as i32;
        // SAFETY: room for as many events as are said.
        i64::from(unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), room, ms) })
    }

    /// `epoll_pwait2`, since Linux 5.11.
    fn wait_fine(&mut self, ns: u64) -> i64 {
        let span = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: room for as many events as are said; the span lives through the call; no signal mask.
        unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len(),
                &raw const span,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        }
    }

    /// One of those that the last wait brought.
    ///
    /// # Panics
    /// When it brought fewer.
    #[must_use]
    pub fn ready(&self, index: usize) -> Ready {
        let event = self.events[index];
        let is = |bits: i32| event.events & bits as u32 != 0;
        Ready {
            token: event.u64,
            read: is(libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR),
            failed: is(libc::EPOLLHUP | libc::EPOLLERR),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    #[test]
    fn tells_what_is_ready_and_ends_with_the_time() {
        let (mut one, other) = UnixStream::pair().expect("a pair");
        let mut poller = Poller::new().expect("a descriptor");
        poller.add(&other, 7, Interest::READ).expect("added");
        for fine in [true, false] {
            poller.has_fine_timeouts.store(fine, Ordering::Relaxed);
            let begin = Instant::now();
            assert_eq!(poller.wait(Some(2_000_000)).expect("the time is up"), 0);
            assert!(begin.elapsed().as_nanos() >= 1_900_000, "{:?}", begin.elapsed());
        }
        assert_eq!(poller.wait(Some(0)).expect("nothing"), 0);
        one.write_all(b"x").expect("written");
        assert_eq!(poller.wait(None).expect("ready"), 1);
        assert!(poller.ready(0).token == 7 && poller.ready(0).read && !poller.ready(0).failed);
        poller.modify(&other, 7, Interest::default()).expect("modified");
        assert_eq!(poller.wait(Some(0)).expect("nothing"), 0);
        drop(one);
        assert_eq!(poller.wait(Some(0)).expect("ready"), 1);
        assert!(poller.ready(0).failed);
    }
}
