//! Requests in flight: what the library writes to until one completes, and how its callbacks reach the worker.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::time::Duration;

use ceph::{Handle, Queue};

use super::library::Api;

/// Bytes that a part has for attributes.
pub(crate) const SCRATCH_BYTES: usize = 16;

/// Outputs that the library fills while a request is in flight.
pub(crate) struct Outputs {
    /// Size (stat).
    pub(crate) size: u64,
    /// Time (stat).
    pub(crate) time: libc::time_t,
    /// Entries found (omap).
    pub(crate) entries: Handle,
    /// Result of a step (omap).
    pub(crate) code: c_int,
    /// Attributes.
    pub(crate) scratch: [u8; SCRATCH_BYTES],
}

/// All requests of one worker. Boxed and never moved while requests are in flight: the library holds addresses into it.
pub(crate) struct Parts {
    api: &'static Api,
    queue: Box<Queue>,
    entries: Box<[Pending]>,
    free: Vec<u32>,
}

/// Argument of a callback.
struct Pending {
    landed: ceph::CompletionEntry,
    outputs: UnsafeCell<Outputs>,
    api: &'static Api,
    queue: *const Queue,
}

// SAFETY: the queue lives in a box as long as the parts do, and is made of atomics; outputs belong to the library from the issue of
// its request to the push of its part, and to the worker otherwise.
unsafe impl Send for Parts {}

impl Parts {
    pub(crate) fn new(api: &'static Api, count: u32) -> Self {
        let queue = Box::<Queue>::default();
        let place = |index| Pending {
            landed: ceph::CompletionEntry::new(index),
            outputs: UnsafeCell::new(Outputs {
                size: 0,
                time: 0,
                entries: std::ptr::null_mut(),
                code: 0,
                scratch: [0; SCRATCH_BYTES],
            }),
            api,
            queue: &raw const *queue,
        };
        let entries = (0..count).map(place).collect();
        Self { api, queue, entries, free: (0..count).rev().collect() }
    }

    /// A part that is not in use.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Gives one back.
    #[inline]
    pub(crate) fn give(&mut self, part: u32) {
        self.free.push(part);
    }

    /// A completion that reports to this part; released by its callback.
    #[inline]
    pub(crate) fn completion(&self, part: u32) -> Handle {
        let mut completion = std::ptr::null_mut();
        let place = (&raw const self.entries[part as usize]).cast_mut().cast();
        // SAFETY: the place is kept until the library's threads have ended (see `Cluster::retire`).
        let code =
            unsafe { (self.api.rados_aio_create_completion2)(place, Some(completed), &raw mut completion) };
        // The library has no other way to fail than to run out of memory, which it does not survive.
        debug_assert_eq!(code, 0);
        completion
    }

    /// Address of what the library fills.
    #[inline]
    pub(crate) fn outputs(&self, part: u32) -> *mut Outputs {
        self.entries[part as usize].outputs.get()
    }

    /// Result of a part that has completed.
    #[inline]
    pub(crate) fn result(&self, part: u32) -> i32 {
        self.entries[part as usize].landed.result() as i32
    }

    /// First of the parts that have completed since the last call, latest first; the rest by [`Parts::next`]. Sleeps for it, `longest` at
    /// most, as [`Queue::take_within`] does.
    #[inline]
    pub(crate) fn completed(&self, longest: Duration) -> Option<u32> {
        self.queue.take_within(longest)
    }

    /// The one behind a completed part. To be asked for before that part is used again.
    #[inline]
    pub(crate) fn next(&self, part: u32) -> Option<u32> {
        self.entries[part as usize].landed.next()
    }
}

/// Called by a thread of the library when a request has completed.
unsafe extern "C" fn completed(completion: Handle, place: *mut c_void) {
    // SAFETY: the address of a place of ours, which lives until its part was pushed and taken.
    let place = unsafe { &*place.cast_const().cast::<Pending>() };
    // SAFETY: parts are kept until the library's threads have ended (see `Cluster::retire`), so the queue outlives this call.
    let queue = unsafe { &*place.queue };
    // SAFETY: the completion is valid until its release; the library holds one of its own during the callback.
    let result = unsafe {
        let result = (place.api.rados_aio_get_return_value)(completion);
        (place.api.rados_aio_release)(completion);
        result
    };
    queue.push(&place.landed, i64::from(result));
}
