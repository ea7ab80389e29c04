//! Data that a stream has to send: small things copied, large ones straight from the memory of their requests.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::TcpStream;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};

use super::memory::Window;
use super::slots::Slots;
use super::zero_copy::{self, ZeroCopy};

/// Parts that one system call sends at most.
const PARTS_MAX: usize = 64;

/// A stretch of what is to be sent.
enum Part {
    /// Of the bytes that were copied.
    Copied { left: usize },
    /// Of a request's memory.
    Slot { slot: u32, left: Window },
}

/// See the module.
pub(super) struct Outgoing {
    copied: Vec<u8>,
    copied_sent: usize,
    parts: VecDeque<Part>,
    /// Length of all parts.
    bytes: usize,
    pub(super) zero_copy: Option<ZeroCopy>,
}

impl Outgoing {
    /// Room for `requests` at a time, each with `copied_bytes` to be copied.
    pub(super) fn new(requests: usize, copied_bytes: usize, zero_copy: Option<ZeroCopy>) -> Self {
        Self {
            copied: Vec::with_capacity(requests * copied_bytes),
            copied_sent: 0,
            parts: VecDeque::with_capacity(2 * requests),
            bytes: 0,
            zero_copy,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Length of the data that waits, in bytes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds bytes.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.copied.extend_from_slice(bytes);
        self.bytes += bytes.len();
        match self.parts.back_mut() {
            Some(Part::Copied { left }) => *left += bytes.len(),
            _ => self.parts.push_back(Part::Copied { left: bytes.len() }),
        }
    }

    /// Adds the memory of a request. Its slot is held until it is sent.
    pub(super) fn push_slot(&mut self, slot: u32, window: Window, slots: &mut Slots) {
        slots.hold(slot);
        self.bytes += window.length();
        self.parts.push_back(Part::Slot { slot, left: window });
    }

    /// Forgets everything; the stream is closed.
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.copied.clear();
        (self.copied_sent, self.bytes) = (0, 0);
    }

    /// Sends what the socket takes. Whether it took something.
    ///
    /// # Errors
    /// The errno of a socket that is no more.
    #[inline]
    pub(super) fn send(&mut self, socket: &TcpStream, slots: &mut Slots) -> Result<bool, i32> {
        let mut moved = false;
        while !self.parts.is_empty() {
            match self.send_once(socket, slots) {
                Ok((bytes, offered)) => {
                    moved = true;
                    self.advance(bytes, slots);
                    // It is full: another call would only say so.
                    if bytes < offered {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.raw_os_error()),
            }
        }
        Ok(moved)
    }

    /// One call: how many bytes were taken, and how many were offered.
    #[inline]
    fn send_once(&mut self, socket: &TcpStream, slots: &mut Slots) -> Result<(usize, usize), Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if let (Some(Part::Copied { left }), 1) = (self.parts.front(), self.parts.len()) {
            let bytes = &self.copied[self.copied_sent..][..*left];
            return Ok((rustix::net::send(socket, bytes, flags)?, *left));
        }
        if let Some(zero_copy) = &mut self.zero_copy {
            match self.parts[0] {
                // What was copied is overwritten soon, so that the kernel must not refer to it.
                Part::Copied { left } => {
                    let bytes = &self.copied[self.copied_sent..][..left];
                    return Ok((rustix::net::send(socket, bytes, flags | SendFlags::MORE)?, left));
                }
                Part::Slot { slot, ref left } if zero_copy.pays(left.length()) => {
                    return Ok((zero_copy.send(socket, left.bytes(), slot, slots)?, left.length()));
                }
                Part::Slot { .. } => {}
            }
        }
        let mut slices = [IoSlice::new(&[]); PARTS_MAX];
        let mut copied = self.copied_sent;
        let count = self.parts.len().min(PARTS_MAX);
        for (slice, part) in slices.iter_mut().zip(&self.parts) {
            *slice = IoSlice::new(match part {
                Part::Copied { left } => {
                    copied += left;
                    &self.copied[copied - left..copied]
                }
                Part::Slot { left, .. } => left.bytes(),
            });
        }
        let offered = slices[..count].iter().map(|slice| slice.len()).sum();
        let none = &mut SendAncillaryBuffer::default();
        Ok((rustix::net::sendmsg(socket, &slices[..count], none, flags)?, offered))
    }

    #[inline]
    fn advance(&mut self, mut bytes: usize, slots: &mut Slots) {
        self.bytes -= bytes;
        while let Some(part) = self.parts.front_mut() {
            let left = match part {
                Part::Copied { left } => {
                    let taken = bytes.min(*left);
                    self.copied_sent += taken;
                    *left -= taken;
                    bytes -= taken;
                    *left
                }
                Part::Slot { slot, left } => {
                    let taken = bytes.min(left.length());
                    bytes -= taken;
                    let rest = left.advance(taken);
                    if rest == 0 {
                        slots.release(*slot);
                    }
                    rest
                }
            };
            if left > 0 {
                return;
            }
            self.parts.pop_front();
        }
        self.copied.clear();
        self.copied_sent = 0;
    }

    /// Reads what the kernel says about zero-copy sends. Whether it said something.
    #[inline]
    pub(super) fn acknowledge(&mut self, socket: &TcpStream, slots: &mut Slots) -> bool {
        self.zero_copy.as_mut().is_some_and(|zero_copy| zero_copy.acknowledge(socket, slots))
    }

    /// Has the kernel drop what it was given of requests' memory and has not sent; the stream is closed. The slots that it still refers to, as
    /// often as it does.
    pub(super) fn disown(&mut self, socket: &TcpStream, slots: &mut Slots) -> Vec<u32> {
        let Some(zero_copy) = self.zero_copy.as_mut().filter(|zero_copy| !zero_copy.is_idle()) else {
            return Vec::new();
        };
        zero_copy::drop_unsent(socket);
        zero_copy.acknowledge(socket, slots);
        zero_copy.referred().collect()
    }

    /// Whether the kernel refers to no request's memory.
    pub(super) fn is_disowned(&self) -> bool {
        self.zero_copy.as_ref().is_none_or(ZeroCopy::is_idle)
    }

    /// Calls with `MSG_ZEROCOPY`, and those that the kernel copied nevertheless.
    pub(super) fn zero_copy_counts(&self) -> Option<zero_copy::Counts> {
        self.zero_copy.as_ref().map(|zero_copy| zero_copy.counts)
    }
}
