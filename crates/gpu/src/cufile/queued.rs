//! Requests of GPUDirect Storage in flight beside each other: in batches, or in the order of streams.
#![allow(unsafe_code)]
#![allow(non_snake_case, reason = "names of the library")]

mod batches;
mod streams;

use std::ffi::{c_int, c_uint, c_void};
use std::time::{Duration, Instant};

use driver::Error;
use driver::foreign;
use driver::polled::InFlight;

pub use batches::Batches;
pub use streams::Streams;

use super::{LIBCUFILE, RegisteredFile, Status};
use crate::cuda::Handle;

foreign::functions! {
    /// Functions of libcufile from CUDA 12.2 on, by the names of its header (cufile.h).
    QueueApi of LIBCUFILE {
        cuFileBatchIOSetUp: fn(*mut *mut c_void, c_uint) -> Status;
        cuFileBatchIOSubmit: fn(*mut c_void, c_uint, *mut batches::Parameters, c_uint) -> Status;
        cuFileBatchIOGetStatus: fn(*mut c_void, c_uint, *mut c_uint, *mut batches::Event, *mut libc::timespec) -> Status;
        cuFileBatchIOCancel: fn(*mut c_void) -> Status;
        cuFileBatchIODestroy: fn(*mut c_void);
        cuFileReadAsync: fn(*mut c_void, *mut c_void, *mut usize, *mut i64, *mut i64, *mut isize, Handle) -> Status;
        cuFileWriteAsync: fn(*mut c_void, *mut c_void, *mut usize, *mut i64, *mut i64, *mut isize, Handle) -> Status;
        cuFileStreamRegister: fn(Handle, c_uint) -> Status;
        cuFileStreamDeregister: fn(Handle) -> Status;
    }
}

/// A read or a write of a buffer on a device.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The file.
    pub file: &'a RegisteredFile,
    /// Slot of the buffer.
    pub slot: u32,
    /// Whether it writes.
    pub is_write: bool,
    /// Length in bytes, at most the buffer's.
    pub bytes: usize,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
}

/// Requests in flight, by one way of the library.
pub trait Queue: Send {
    /// Takes a request, which [`Queue::flush`] hands to the library with the others.
    ///
    /// # Panics
    /// When its slot has no buffer, or one that is too small.
    fn push(&mut self, request: &Request<'_>);

    /// Hands on what was taken; requests that the library refuses have ended.
    fn flush(&mut self, in_flight: &mut InFlight);

    /// Asks once, without a wait, which requests have ended. Whether any has.
    ///
    /// # Errors
    /// When the library cannot be asked.
    fn ask(&mut self, in_flight: &mut InFlight) -> Result<bool, Error>;

    /// Asks until one has ended, `longest` at most: the library has no wait for several files or streams at once. Whether any has.
    ///
    /// # Errors
    /// As for [`Queue::ask`].
    fn poll(&mut self, in_flight: &mut InFlight, longest: Duration) -> Result<bool, Error> {
        let deadline = (!longest.is_zero()).then(|| Instant::now() + longest);
        while !self.ask(in_flight)? {
            if deadline.is_none_or(|deadline| Instant::now() >= deadline) || in_flight.is_interrupted() {
                return Ok(false);
            }
            std::thread::yield_now();
        }
        Ok(true)
    }
}

/// Outcome of a request that the library refused.
fn refused(status: Status) -> i64 {
    super::codes::as_errno(-isize::try_from(status.code as c_int).unwrap_or(0).abs())
}
