//! Requests in flight: what the library writes to until one completes, and how its callbacks reach the worker.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::futex;

use super::library::{Api, Handle};

/// No part.
const NONE: u32 = u32::MAX;
/// Bytes that a part has for attributes.
pub(crate) const SCRATCH_BYTES: usize = 16;

/// What has completed: a stack that callbacks push to and the worker takes whole. No lock, no allocation; the worker sleeps on its head.
struct Queue {
    head: AtomicU32,
    is_waiting: AtomicBool,
}

/// What the library fills while a request is in flight.
pub(crate) struct Landing {
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

/// One request.
struct Part {
    index: u32,
    next: AtomicU32,
    result: AtomicI32,
    landing: UnsafeCell<Landing>,
}

/// All requests of one worker. Boxed and never moved while requests are in flight: the library holds addresses into it.
pub(crate) struct Parts {
    api: &'static Api,
    queue: Box<Queue>,
    entries: Box<[Place]>,
    free: Vec<u32>,
}

/// What a callback gets.
struct Place {
    part: Part,
    api: &'static Api,
    queue: *const Queue,
}

// SAFETY: the queue lives in a box as long as the parts do, and is made of atomics; a landing belongs to the library from the issue of
// its request to the push of its part, and to the worker otherwise.
unsafe impl Send for Parts {}

impl Parts {
    pub(crate) fn new(api: &'static Api, count: u32) -> Self {
        let queue = Box::new(Queue { head: AtomicU32::new(NONE), is_waiting: AtomicBool::new(false) });
        let place = |index| Place {
            part: Part {
                index,
                next: AtomicU32::new(NONE),
                result: AtomicI32::new(0),
                landing: UnsafeCell::new(Landing {
                    size: 0,
                    time: 0,
                    entries: std::ptr::null_mut(),
                    code: 0,
                    scratch: [0; SCRATCH_BYTES],
                }),
            },
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

    /// Whether none is in use.
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() == self.entries.len()
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
    pub(crate) fn landing(&self, part: u32) -> *mut Landing {
        self.entries[part as usize].part.landing.get()
    }

    /// Result of a part that has completed.
    #[inline]
    pub(crate) fn result(&self, part: u32) -> i32 {
        self.entries[part as usize].part.result.load(Ordering::Relaxed)
    }

    /// First of the parts that have completed since the last call, latest first; the rest by [`Parts::next`].
    #[inline]
    pub(crate) fn completed(&self) -> Option<u32> {
        if self.queue.head.load(Ordering::Relaxed) == NONE {
            return None;
        }
        Some(self.queue.head.swap(NONE, Ordering::Acquire)).filter(|head| *head != NONE)
    }

    /// The one behind a completed part. To be asked for before that part is used again.
    #[inline]
    pub(crate) fn next(&self, part: u32) -> Option<u32> {
        Some(self.entries[part as usize].part.next.load(Ordering::Relaxed)).filter(|next| *next != NONE)
    }

    /// Sleeps until something has completed, for `timeout` at most, or until a signal.
    pub(crate) fn wait(&self, timeout: Duration) {
        let queue = &*self.queue;
        let timeout = rustix::fs::Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        queue.is_waiting.store(true, Ordering::SeqCst);
        // The kernel looks at the head again: a push between here and there is not slept over.
        let _ = futex::wait(&queue.head, futex::Flags::PRIVATE, NONE, Some(&timeout));
        queue.is_waiting.store(false, Ordering::Relaxed);
    }
}

impl Queue {
    fn push(&self, part: &Part) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            part.next.store(head, Ordering::Relaxed);
            match self.head.compare_exchange_weak(head, part.index, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
    }

    fn wake(&self) {
        if self.is_waiting.swap(false, Ordering::SeqCst) {
            let _ = futex::wake(&self.head, futex::Flags::PRIVATE, 1);
        }
    }
}

/// Called by a thread of the library when a request has completed.
unsafe extern "C" fn completed(completion: Handle, place: *mut c_void) {
    // SAFETY: the address of a place of ours, which lives until its part was pushed and taken.
    let place = unsafe { &*place.cast_const().cast::<Place>() };
    // SAFETY: parts are kept until the library's threads have ended (see `Cluster::retire`), so the queue outlives this call.
    let queue = unsafe { &*place.queue };
    // SAFETY: the completion is valid until its release; the library holds one of its own during the callback.
    unsafe {
        place.part.result.store((place.api.rados_aio_get_return_value)(completion), Ordering::Relaxed);
        (place.api.rados_aio_release)(completion);
    }
    queue.push(&place.part);
    queue.wake();
}
