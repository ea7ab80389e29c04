//! `MSG_ZEROCOPY`: the kernel sends from the buffer itself and says later that it has let go of it
//! (Documentation/networking/msg_zerocopy.rst).
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::net::SendFlags;

use super::slots::Slots;

/// From this size on pinning pages costs less than copying them, in bytes.
pub(super) const PAYS_BYTES: usize = 32 << 10;

const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;
/// An entry that the kernel has let go of.
const DONE: u32 = u32::MAX;

/// Counts of calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) sends: u64,
    pub(super) copied: u64,
}

/// The calls of one stream that the kernel has not let go of.
pub(super) struct ZeroCopy {
    least_bytes: usize,
    /// Slot of each call, the first one being number `first`; the kernel numbers calls from 0.
    pending: VecDeque<u32>,
    first: u32,
    room: usize,
    pub(super) counts: Counts,
}

impl ZeroCopy {
    /// For stretches of at least `least_bytes`, with room for so many calls at a time.
    pub(super) fn new(least_bytes: usize, room: usize) -> Self {
        Self {
            least_bytes,
            pending: VecDeque::with_capacity(room),
            first: 0,
            room,
            counts: Counts::default(),
        }
    }

    pub(super) fn pays(&self, bytes: usize) -> bool {
        bytes >= self.least_bytes && self.pending.len() < self.room
    }

    pub(super) fn send(
        &mut self,
        socket: &TcpStream,
        bytes: &[u8],
        slot: u32,
        slots: &mut Slots,
    ) -> Result<usize, Errno> {
        let plain = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let flags = plain | SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);
        match rustix::net::send(socket, bytes, flags) {
            Ok(sent) => {
                slots.hold(slot);
                self.pending.push_back(slot);
                self.counts.sends += 1;
                Ok(sent)
            }
            // The socket's room for notifications (net.core.optmem_max) is used up.
            Err(Errno::NOBUFS) => rustix::net::send(socket, bytes, plain),
            Err(errno) => Err(errno),
        }
    }

    /// Whether the kernel has let go of all calls.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Slots of the calls that it has not let go of.
    pub(super) fn referred(&self) -> impl Iterator<Item = u32> {
        self.pending.iter().copied().filter(|slot| *slot != DONE)
    }

    /// Reads notifications. Whether there were some.
    #[inline]
    pub(super) fn acknowledge(&mut self, socket: &TcpStream, slots: &mut Slots) -> bool {
        let mut moved = false;
        while !self.pending.is_empty() {
            let Some(note) = notification(socket) else { break };
            self.let_go(note.first, note.last, slots);
            if note.is_copied {
                self.counts.copied += u64::from(note.last.wrapping_sub(note.first)) + 1;
            }
            moved = true;
        }
        moved
    }

    fn let_go(&mut self, first: u32, last: u32, slots: &mut Slots) {
        for index in first.wrapping_sub(self.first)..=last.wrapping_sub(self.first) {
            let Some(entry) = self.pending.get_mut(index as usize) else { break };
            if *entry != DONE {
                slots.release(*entry);
                *entry = DONE;
            }
        }
        while self.pending.front() == Some(&DONE) {
            self.pending.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

/// Resets a connection: what waits to be sent is dropped, and told as let go of (connect(2): `AF_UNSPEC` dissolves the association). A socket
/// that was shut down alone would still send it.
pub(super) fn drop_unsent(socket: &TcpStream) {
    // SAFETY: all-zero is a valid sockaddr.
    let mut nowhere: libc::sockaddr = unsafe { std::mem::zeroed() };
    nowhere.sa_family = libc::AF_UNSPEC as libc::sa_family_t;
    let length = size_of::<libc::sockaddr>() as libc::socklen_t;
    // SAFETY: the address lives through the call and is as long as is said. A socket that refuses is closed later, which does the same.
    let _ = unsafe { libc::connect(socket.as_raw_fd(), &raw const nowhere, length) };
}

struct Notification {
    first: u32,
    last: u32,
    is_copied: bool,
}

/// The next notification of the socket's error queue.
fn notification(socket: &TcpStream) -> Option<Notification> {
    #[repr(C, align(8))]
    struct Control([u8; 256]);
    let mut control = Control([0; 256]);
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the control buffer lives through the call and is as long as is said.
    if unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) } < 0 {
        return None;
    }
    // SAFETY: the kernel has filled the message.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: a header inside the control buffer.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if matches!((level, kind), (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)) {
            // SAFETY: messages of these kinds carry such a structure; it may be unaligned.
            let said = unsafe { libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned() };
            if said.ee_origin == SO_EE_ORIGIN_ZEROCOPY {
                let is_copied = said.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0;
                return Some(Notification { first: said.ee_info, last: said.ee_data, is_copied });
            }
        }
        // SAFETY: as for the first header.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    // An error of another kind comes again with the next call on the socket.
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_out_of_order_release_each_slot_once() {
        let mut slots = Slots::new(3);
        for slot in 0..3 {
            slots.start(slot, 0, 0, 0, crate::client::slots::Expected::NOTHING);
            slots.hold(slot);
        }
        let mut calls = ZeroCopy::new(1, 8);
        calls.first = u32::MAX;
        calls.pending.extend([0, 1, 2]);
        calls.let_go(0, 0, &mut slots);
        assert_eq!((calls.pending.len(), slots.held(0), slots.held(1)), (3, 1, 0));
        calls.let_go(0, 0, &mut slots);
        calls.let_go(u32::MAX, 1, &mut slots);
        assert!(calls.pending.is_empty() && calls.first == 2);
        assert!((0..3).all(|slot| slots.held(slot) == 0));
        // What was never sent is no slot's.
        calls.let_go(7, 9, &mut slots);
    }
}
