//! Batches: each hand-over is one, with a handle of its own until all of its requests have ended, since a handle takes one batch at a time.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use driver::polled::InFlight;
use driver::{Error, ErrorKind};

use super::{Queue, QueueApi, Request, refused};
use crate::cufile::{self, CuFile, codes};
use crate::memory::DeviceBuffers;

/// `CUfileIOParams_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    mode: c_int,
    base: *mut c_void,
    file_offset: i64,
    buffer_offset: i64,
    bytes: usize,
    file: *mut c_void,
    opcode: c_int,
    cookie: *mut c_void,
}

/// `CUfileIOEvents_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    cookie: *mut c_void,
    status: c_uint,
    result: usize,
}

/// `CUFILE_BATCH`.
const MODE_BATCH: c_int = 1;
/// `CUFILE_COMPLETE`.
const COMPLETE: c_uint = 0x10;
/// Other states (`CUfileStatus_t`) in which a request has ended: ill-formed, canceled, timed out, failed.
const ENDS: [(c_uint, i64); 4] = [
    (0x04, -(libc::EINVAL as i64)),
    (0x08, -(libc::ECANCELED as i64)),
    (0x20, -(libc::ETIMEDOUT as i64)),
    (0x40, -(libc::EIO as i64)),
];

/// A handle with room for a whole queue.
#[derive(Debug)]
struct Batch {
    handle: *mut c_void,
    /// Parameters of its requests, which stay where they are until those have ended.
    parameters: Vec<Parameters>,
    /// Requests that have not ended.
    pending: usize,
}

/// Requests in batches.
#[derive(Debug)]
pub struct Batches {
    api: &'static QueueApi,
    buffers: Arc<DeviceBuffers>,
    free: Vec<Batch>,
    /// The one that takes requests, which are not handed over yet.
    filling: Option<Batch>,
    /// Those with requests in flight.
    busy: Vec<Batch>,
    events: Vec<Event>,
}

// SAFETY: the pointers are handles of the library, addresses on the device, and numbers of slots.
unsafe impl Send for Batches {}

impl Batches {
    /// Room for `depth` requests in flight, however they come.
    ///
    /// # Errors
    /// When the library takes no batch of that size, or is too old.
    pub fn new(library: &CuFile, buffers: &Arc<DeviceBuffers>, depth: u32) -> Result<Self, Error> {
        let api = QueueApi::get()?;
        let most = library.properties.batch_max;
        if most > 0 && depth > most {
            let message = format!("libcufile supports batches of at most {most} requests");
            return Err(Error::usage("gpu", message)
                .with("depth", depth)
                .remedy(format!("use -q {most}, or raise io_batchsize in cufile.json")));
        }
        let empty = Event { cookie: std::ptr::null_mut(), status: 0, result: 0 };
        let mut batches = Self {
            api,
            buffers: Arc::clone(buffers),
            free: Vec::with_capacity(depth as usize),
            filling: None,
            busy: Vec::with_capacity(depth as usize),
            events: vec![empty; depth as usize],
        };
        for _ in 0..depth {
            let mut handle = std::ptr::null_mut();
            // SAFETY: a place for the handle.
            let status = unsafe { (api.cuFileBatchIOSetUp)(&raw mut handle, depth) };
            cufile::check(status, "GPUDirect Storage cannot set up a batch")?;
            let parameters = Vec::with_capacity(depth as usize);
            batches.free.push(Batch { handle, parameters, pending: 0 });
        }
        Ok(batches)
    }

    /// Result of a request that has ended; none while it has not.
    fn outcome(event: &Event) -> Option<i64> {
        let result = event.result as isize;
        if event.status == COMPLETE {
            return Some(cufile::outcome(result));
        }
        let (_, otherwise) = ENDS.iter().find(|(status, _)| *status == event.status)?;
        // A code of the library says more than that it failed.
        Some(if result < -1 { codes::as_errno(result) } else { *otherwise })
    }

    /// Asks for the events of batch `at`: how many there are.
    fn events_of(&mut self, at: usize) -> Result<usize, Error> {
        let mut count = self.busy[at].pending as c_uint;
        let mut no_wait = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a handle of ours, and room for as many events as it may give.
        let status = unsafe {
            (self.api.cuFileBatchIOGetStatus)(
                self.busy[at].handle,
                0,
                &raw mut count,
                self.events.as_mut_ptr(),
                &raw mut no_wait,
            )
        };
        cufile::check(status, "cannot read the state of a batch of GPUDirect Storage")?;
        Ok((count as usize).min(self.busy[at].pending))
    }
}

impl Queue for Batches {
    fn push(&mut self, request: &Request<'_>) {
        let (base, at) = cufile::address(&self.buffers, request.slot, request.bytes);
        // There are as many handles as requests that may be in flight.
        let unused = || self.free.pop().expect("more requests than the queue's depth");
        let batch = self.filling.get_or_insert_with(unused);
        batch.parameters.push(Parameters {
            mode: MODE_BATCH,
            base: base as *mut c_void,
            file_offset: request.offset as i64,
            buffer_offset: at,
            bytes: request.bytes,
            file: request.file.handle,
            opcode: c_int::from(request.is_write),
            cookie: request.slot as usize as *mut c_void,
        });
    }

    fn flush(&mut self, in_flight: &mut InFlight) {
        let Some(mut batch) = self.filling.take() else { return };
        batch.pending = batch.parameters.len();
        let (count, parameters) = (batch.pending as c_uint, batch.parameters.as_mut_ptr());
        // SAFETY: a handle of ours with room for as many; the parameters stay until all have ended.
        let status = unsafe { (self.api.cuFileBatchIOSubmit)(batch.handle, count, parameters, 0) };
        if status.code == 0 {
            self.busy.push(batch);
            return;
        }
        for parameters in batch.parameters.drain(..) {
            in_flight.end(parameters.cookie as usize as u32, refused(status));
        }
        batch.pending = 0;
        self.free.push(batch);
    }

    fn ask(&mut self, in_flight: &mut InFlight) -> Result<bool, Error> {
        let mut is_any = false;
        let mut at = 0;
        while at < self.busy.len() {
            for event in 0..self.events_of(at)? {
                let event = self.events[event];
                let Some(result) = Self::outcome(&event) else { continue };
                let slot = event.cookie as usize as u32;
                if slot >= self.buffers.slots() {
                    return Err(Error::new(
                        ErrorKind::Run,
                        "gpu",
                        "GPUDirect Storage reported an unknown request",
                    ));
                }
                self.busy[at].pending -= 1;
                in_flight.end(slot, result);
                is_any = true;
            }
            if self.busy[at].pending == 0 {
                let mut batch = self.busy.remove(at);
                batch.parameters.clear();
                self.free.push(batch);
            } else {
                at += 1;
            }
        }
        Ok(is_any)
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        for batch in &self.busy {
            // SAFETY: a handle of ours; requests that cannot be taken back are waited for by the library.
            unsafe { (self.api.cuFileBatchIOCancel)(batch.handle) };
        }
        for batch in self.busy.iter().chain(&self.filling).chain(&self.free) {
            // SAFETY: a handle of ours that is used no more.
            unsafe { (self.api.cuFileBatchIODestroy)(batch.handle) };
        }
    }
}
