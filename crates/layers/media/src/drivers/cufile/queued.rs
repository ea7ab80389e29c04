//! Requests of GPUDirect Storage in flight beside each other: what `cufile_batch` and `cufile_stream` share.

use std::sync::Arc;
use std::time::Duration;

use driver::polled::{self, InFlight, Polled};
use driver::{Capabilities, Clock, Completions, Driver, Error, HostClock, Opened, Span, Submitted, Wait};
use gpu::{Queue, Request};

use super::Files;
use crate::descriptor::INVALID;
use crate::{MediaClass, MediaOperation, OpenRequest};

/// As many requests as libcufile takes in a batch, unless its configuration says otherwise.
const DEPTH_MAX: u32 = 128;

/// Both drivers' own.
pub(in crate::drivers) const CAPABILITIES: Capabilities =
    Capabilities { asynchronous: true, depth_max: DEPTH_MAX, ..super::CAPABILITIES };

/// Longest wait for requests in flight when the driver goes.
const FAREWELL: Duration = Duration::from_secs(10);

/// Opens the targets of a request, with the queue that `queue` makes.
pub(in crate::drivers) fn open<Q: Queue + 'static>(
    request: &OpenRequest,
    engine: &'static str,
    queue: impl FnOnce(&Files) -> Result<Q, Error>,
) -> Result<Opened<MediaOperation>, Error> {
    let (files, notes) = Files::open(request, engine, &CAPABILITIES)?;
    let queue = queue(&files)?;
    let in_flight = InFlight::new(request.depth, &Arc::default());
    Ok(Opened { driver: Box::new(Queued { queue, files, in_flight, depth: request.depth }), notes })
}

/// Requests in flight go before the files and buffers that they use.
struct Queued<Q: Queue> {
    queue: Q,
    files: Files,
    in_flight: InFlight,
    depth: u32,
}

impl<Q: Queue> Polled for Queued<Q> {
    fn in_flight(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    fn poll(&mut self, longest: Duration) -> Result<bool, Error> {
        self.queue.poll(&mut self.in_flight, longest)
    }
}

impl<Q: Queue> Driver<MediaOperation> for Queued<Q> {
    fn submit(&mut self, batch: &[MediaOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let room = (self.depth - self.in_flight.count()) as usize;
        let offered = &batch[..batch.len().min(room)];
        for operation in offered {
            let is_write = operation.class == MediaClass::Write;
            if !self.files.bounds.allow(operation) {
                done.push(operation.slot, INVALID);
            } else if is_write || operation.class == MediaClass::Read {
                self.files.memory.count(operation.offset, u64::from(operation.length));
                self.in_flight.begin();
                self.queue.push(&Request {
                    file: &self.files.files[usize::from(operation.target)],
                    slot: operation.slot,
                    is_write,
                    bytes: operation.length as usize,
                    offset: operation.offset,
                });
            } else {
                // The library has no such requests: they are carried out here, after what came before them was handed over.
                self.queue.flush(&mut self.in_flight);
                let began_ns = HostClock::get().now_ns();
                let result = self.files.without_data(operation);
                done.push_timed(
                    operation.slot,
                    result,
                    Span { began_ns, ended_ns: HostClock::get().now_ns() },
                );
            }
        }
        self.queue.flush(&mut self.in_flight);
        Ok(Submitted { accepted: offered.len() })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        polled::reap(self, wait, done)
    }
}

impl<Q: Queue> Drop for Queued<Q> {
    fn drop(&mut self) {
        polled::drain(self, FAREWELL);
    }
}
