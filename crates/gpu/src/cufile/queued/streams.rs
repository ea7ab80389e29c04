//! Streams: a request is work of a stream, in order with copies and kernels there. Each slot has a stream, so that requests run beside each other.
#![allow(unsafe_code)]

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use driver::Error;
use driver::polled::InFlight;

use super::{Queue, QueueApi, Request, refused};
use crate::cufile;
use crate::memory::{DeviceBuffers, Stream};

/// `CU_FILE_STREAM_FIXED_BUF_OFFSET`, `..._FILE_OFFSET` and `..._FILE_SIZE`: all is known when a request is handed over.
const FIXED: c_uint = 1 | 2 | 4;
/// Stands where the library has written no result.
const UNTOLD: isize = isize::MIN;

/// Numbers of a request that the library reads and writes until it has ended.
#[repr(C)]
#[derive(Debug)]
struct Terms {
    bytes: usize,
    file_offset: i64,
    buffer_offset: i64,
    moved: isize,
}

/// A slot with its stream.
#[derive(Debug)]
struct Lane {
    stream: Stream,
    /// In memory of its own: the library keeps its address.
    terms: *mut Terms,
    is_registered: bool,
}

/// Requests on streams.
#[derive(Debug)]
pub struct Streams {
    api: &'static QueueApi,
    buffers: Arc<DeviceBuffers>,
    lanes: Vec<Lane>,
    /// Slots with a request in flight.
    busy: Vec<u32>,
    /// Requests that the library refused at once.
    refused: Vec<(u32, i64)>,
}

// SAFETY: the pointers are to memory that is this value's alone.
unsafe impl Send for Streams {}

impl Streams {
    /// A stream for each buffer.
    ///
    /// # Errors
    /// When the device has no room for them, or the library is too old.
    pub fn new(buffers: &Arc<DeviceBuffers>) -> Result<Self, Error> {
        let api = QueueApi::get()?;
        let slots = buffers.slots() as usize;
        let mut streams = Self {
            api,
            buffers: Arc::clone(buffers),
            lanes: Vec::with_capacity(slots),
            busy: Vec::with_capacity(slots),
            refused: Vec::with_capacity(slots),
        };
        for _ in 0..slots {
            let stream = Stream::new(buffers.context())?;
            let terms = Box::new(Terms { bytes: 0, file_offset: 0, buffer_offset: 0, moved: 0 });
            let mut lane = Lane { stream, terms: Box::into_raw(terms), is_registered: false };
            // SAFETY: a stream of ours.
            let status = unsafe { (api.cuFileStreamRegister)(lane.stream.handle(), FIXED) };
            lane.is_registered = status.code == 0;
            streams.lanes.push(lane);
            cufile::check(status, "GPUDirect Storage rejected a stream")?;
        }
        Ok(streams)
    }
}

impl Queue for Streams {
    fn push(&mut self, request: &Request<'_>) {
        assert!(request.bytes <= self.buffers.slot_bytes());
        // Each buffer is a region of its own: data of requests on streams land at the first byte of the region, whatever the distance from it
        // (seen with libcufile 1.15 in compatibility mode).
        let base = self.buffers.slot_address(request.slot);
        let lane = &self.lanes[request.slot as usize];
        let begin = if request.is_write { self.api.cuFileWriteAsync } else { self.api.cuFileReadAsync };
        let terms = Terms {
            bytes: request.bytes,
            file_offset: request.offset as i64,
            buffer_offset: 0,
            moved: UNTOLD,
        };
        // SAFETY: the slot is not in flight, so its terms are ours; they and the buffer stay until its stream has done the request.
        let status = unsafe {
            lane.terms.write(terms);
            begin(
                request.file.handle,
                base as *mut c_void,
                &raw mut (*lane.terms).bytes,
                &raw mut (*lane.terms).file_offset,
                &raw mut (*lane.terms).buffer_offset,
                &raw mut (*lane.terms).moved,
                lane.stream.handle(),
            )
        };
        match status.code {
            0 => self.busy.push(request.slot),
            _ => self.refused.push((request.slot, refused(status))),
        }
    }

    fn flush(&mut self, in_flight: &mut InFlight) {
        self.refused.drain(..).for_each(|(slot, result)| in_flight.end(slot, result));
    }

    fn ask(&mut self, in_flight: &mut InFlight) -> Result<bool, Error> {
        let mut at = 0;
        let mut is_any = false;
        while at < self.busy.len() {
            let slot = self.busy[at];
            let lane = &mut self.lanes[slot as usize];
            if !lane.stream.is_done()? {
                at += 1;
                continue;
            }
            // SAFETY: its stream is done, so the library has written the result and lets go of the terms.
            let moved = unsafe { (&raw const (*lane.terms).moved).read_volatile() };
            // An error of the file system is the errno of another thread, which nobody tells.
            let is_unnamed = moved == UNTOLD || moved == -1;
            let result = if is_unnamed { -i64::from(libc::EIO) } else { cufile::outcome(moved) };
            self.busy.swap_remove(at);
            in_flight.end(slot, result);
            is_any = true;
        }
        Ok(is_any)
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for lane in &mut self.lanes {
            // The library uses the terms and the buffer of what is in flight.
            let is_done = lane.stream.wait().is_ok();
            if lane.is_registered {
                // SAFETY: a stream of ours, registered.
                unsafe { (self.api.cuFileStreamDeregister)(lane.stream.handle()) };
            }
            if is_done {
                // SAFETY: made by `Box::into_raw`, and used no more. Where the device has failed it is left to who may still write it.
                drop(unsafe { Box::from_raw(lane.terms) });
            }
        }
    }
}
