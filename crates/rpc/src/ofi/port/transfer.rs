//! Operations of a port: messages, RMA, and the queue of what has completed.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;

use super::super::abi::*;
use super::super::library::errno;
use super::{Context, PeerAddress, Port, Region, Remote};

/// Completions that are read at once.
pub const EVENTS: usize = 16;
/// The context of an event that the provider told none of.
pub const NO_CONTEXT: u32 = u32::MAX;

/// Why an operation was not posted: an errno; `EAGAIN` asks to try again after completions were read.
type Posted = Result<(), i32>;

/// A completed operation.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The context that it was posted with, or [`NO_CONTEXT`].
    pub context: u32,
    /// 0, or an errno.
    pub error: i32,
    /// Bytes received, for receives.
    pub length: usize,
}

impl Port {
    fn context(&self, context: u32) -> *mut c_void {
        self.contexts[context as usize].0.get().cast()
    }

    /// Posts a buffer for a message.
    ///
    /// # Safety
    /// The `bytes` from `offset` on lie in the region and are left alone until the event comes or the port is dropped; so for all that post.
    pub unsafe fn receive(&mut self, region: &Region, offset: usize, bytes: usize, context: u32) -> Posted {
        debug_assert!(offset + bytes <= region.bytes);
        // SAFETY: by the caller's promise.
        posted(unsafe {
            let call = (*(*self.endpoint).msg).recv;
            let at = region.base.add(offset).cast();
            call(self.endpoint, at, bytes, region.descriptor, FI_ADDR_UNSPEC, self.context(context))
        })
    }

    /// Sends a message that is copied away at once; no event comes. At most [`super::PortFacts::inject_bytes`].
    #[inline]
    pub fn inject(&mut self, message: &[u8], peer: PeerAddress) -> Posted {
        debug_assert!(message.len() <= self.facts.inject_bytes);
        // SAFETY: the provider copies the message before it returns.
        posted(unsafe {
            let call = (*(*self.endpoint).msg).inject;
            call(self.endpoint, message.as_ptr().cast(), message.len(), peer.0)
        })
    }

    /// Sends a message.
    ///
    /// # Safety
    /// As for [`Port::receive`].
    pub unsafe fn send(
        &mut self,
        region: &Region,
        offset: usize,
        bytes: usize,
        peer: PeerAddress,
        context: u32,
    ) -> Posted {
        debug_assert!(offset + bytes <= region.bytes);
        // SAFETY: by the caller's promise.
        posted(unsafe {
            let call = (*(*self.endpoint).msg).send;
            let at = region.base.add(offset).cast();
            call(self.endpoint, at, bytes, region.descriptor, peer.0, self.context(context))
        })
    }

    /// Sends a message of two parts: `(region, offset, bytes)` each.
    ///
    /// # Safety
    /// As for [`Port::receive`].
    pub unsafe fn send_two(
        &mut self,
        parts: [(&Region, usize, usize); 2],
        peer: PeerAddress,
        context: u32,
    ) -> Posted {
        // SAFETY: by the caller's promise; the vectors are read before the call returns.
        posted(unsafe {
            let vector =
                parts.map(|(region, offset, len)| IoVec { base: region.base.add(offset).cast(), len });
            let mut descriptors = parts.map(|(region, ..)| region.descriptor);
            let call = (*(*self.endpoint).msg).sendv;
            call(self.endpoint, vector.as_ptr(), descriptors.as_mut_ptr(), 2, peer.0, self.context(context))
        })
    }

    /// Reads a peer's memory.
    ///
    /// # Safety
    /// As for [`Port::receive`].
    pub unsafe fn read(&mut self, region: &Region, from: Remote, peer: PeerAddress, context: u32) -> Posted {
        debug_assert!(from.bytes as usize <= region.bytes);
        // SAFETY: by the caller's promise.
        posted(unsafe {
            let call = (*(*self.endpoint).rma).read;
            let (at, bytes) = (region.base.cast(), from.bytes as usize);
            call(
                self.endpoint,
                at,
                bytes,
                region.descriptor,
                peer.0,
                from.address,
                from.key,
                self.context(context),
            )
        })
    }

    /// Writes to a peer's memory. Where writes are not ordered before messages, the event says that the data has arrived.
    ///
    /// # Safety
    /// As for [`Port::receive`].
    pub unsafe fn write(&mut self, region: &Region, to: Remote, peer: PeerAddress, context: u32) -> Posted {
        debug_assert!(to.bytes as usize <= region.bytes);
        let (base, len, mut desc) = (region.base.cast::<c_void>(), to.bytes as usize, region.descriptor);
        let context = self.context(context);
        let (part, remote) = (IoVec { base, len }, FiRmaIov { addr: to.address, len, key: to.key });
        // SAFETY: by the caller's promise; the vectors are read before the call returns.
        posted(unsafe {
            let rma = (*self.endpoint).rma;
            if self.facts.is_ordered || self.facts.is_shared_memory {
                ((*rma).write)(self.endpoint, base, len, desc, peer.0, to.address, to.key, context)
            } else {
                let message = FiMsgRma {
                    msg_iov: &raw const part,
                    desc: &raw mut desc,
                    iov_count: 1,
                    addr: peer.0,
                    rma_iov: &raw const remote,
                    rma_iov_count: 1,
                    context,
                    data: 0,
                };
                ((*rma).writemsg)(self.endpoint, &raw const message, FI_DELIVERY_COMPLETE | FI_COMPLETION)
            }
        })
    }

    /// Drives progress and reads what has completed.
    ///
    /// # Errors
    /// An errno, when the queue is broken.
    #[inline]
    pub fn poll(&mut self, events: &mut [Event; EVENTS]) -> Result<usize, i32> {
        let mut entries = [const { FiCqMsgEntry { op_context: null_mut(), flags: 0, len: 0 } }; EVENTS];
        // SAFETY: the queue writes at most that many entries of the format it was opened with.
        let result = unsafe { ((*(*self.queue).ops).read)(self.queue, entries.as_mut_ptr().cast(), EVENTS) };
        if result > 0 {
            let count = result as usize;
            for (event, entry) in events.iter_mut().zip(&entries[..count]) {
                *event = Event { context: self.index_of(entry.op_context), error: 0, length: entry.len };
            }
            return Ok(count);
        }
        match -(result as c_int) {
            0 | libc::EAGAIN | libc::EINTR => Ok(0),
            FI_EAVAIL => self.failed(events),
            other => Err(errno(other)),
        }
    }

    #[cold]
    fn failed(&mut self, events: &mut [Event; EVENTS]) -> Result<usize, i32> {
        // SAFETY: all-zero is a valid entry that asks for no further data; the queue fills it.
        let (result, entry) = unsafe {
            let mut entry: FiCqErrEntry = std::mem::zeroed();
            (((*(*self.queue).ops).readerr)(self.queue, &raw mut entry, 0), entry)
        };
        if result < 0 {
            return if result as c_int == -libc::EAGAIN { Ok(0) } else { Err(errno(result as c_int)) };
        }
        let context = self.index_of(entry.op_context);
        events[0] = Event { context, error: errno(entry.err), length: 0 };
        Ok(1)
    }

    #[inline]
    fn index_of(&self, context: *mut c_void) -> u32 {
        let offset = (context as usize).wrapping_sub(self.contexts.as_ptr() as usize);
        let index = offset / size_of::<Context>();
        if index < self.contexts.len() { index as u32 } else { NO_CONTEXT }
    }

    /// The descriptor to sleep on, where the provider has one.
    pub fn wait(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the queue keeps it open as long as the port lives.
        self.wait.map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// Whether it is right to sleep on the descriptor now; otherwise there is something to read.
    pub fn may_sleep(&mut self) -> bool {
        // SAFETY: one open object of this fabric.
        unsafe {
            let Some(trywait) = (*(*self.fabric).ops).trywait else { return false };
            let mut fid = &raw mut (*self.queue).fid;
            trywait(self.fabric, &raw mut fid, 1) == 0
        }
    }
}

#[inline]
fn posted(result: isize) -> Posted {
    if result == 0 { Ok(()) } else { Err(errno(result as c_int)) }
}
