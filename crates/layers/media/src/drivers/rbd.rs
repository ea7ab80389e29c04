//! `rbd`: images of Ceph's block device through librbd, every operation asynchronous.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ceph::{CompletionEntry, Handle, Queue};
use driver::polled::{self, InFlight, Polled};
use driver::{Arena, Capabilities, Completions, Driver, Error, Opened, Registration, Submitted, Wait};

use crate::descriptor::{self, Bounds, INVALID, UNSUPPORTED};
use crate::rbd::{Api, Image, Use};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "rbd";

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["read", "write", "discard", "sync"],
    asynchronous: true,
    depth_max: 4096,
    targetless: false,
    direct: true,
    options: &["memory", "gpu-path", "gpu-staging", "gpu-per"],
};

/// Longest wait for what is in flight when a driver goes; what is later keeps its memory. Requests end by themselves after the connection's
/// timeout.
const DRAIN: Duration = Duration::from_secs(65);

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "images of Ceph's block device through librbd: targets rbd:POOL/IMAGE; asynchronous",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let purpose = Use::Measured { writes: request.writes, direct: request.options.direct };
    let images: Vec<Arc<Image>> = request
        .targets
        .iter()
        .map(|target| request.images.get(&target.path, purpose))
        .collect::<Result<_, _>>()?;
    let mut notes = vec![format!("librbd {}", images[0].version())];
    notes.extend(images[0].cache());
    let shared = Shared::new(images[0].api, request.arena.slots());
    let sizes = images.iter().map(|image| image.size_bytes()).collect::<Result<_, _>>()?;
    let discard_bytes_min = images[0].discard_bytes_min();
    let driver = Rbd {
        bounds: Bounds::new(request),
        images,
        shared,
        depth: request.depth as usize,
        // Drivers of media are told of no interrupt: their waits have their time.
        in_flight: InFlight::new(request.arena.slots(), &Arc::default()),
        credits: vec![0; request.arena.slots() as usize],
        sizes,
        discard_bytes_min,
        discards_skipped: 0,
        arena: Arc::clone(&request.arena),
    };
    Ok(Opened { driver: Box::new(driver), notes })
}

/// Argument of a callback.
struct Callback {
    entry: CompletionEntry,
    /// The state that it is a part of.
    shared: Weak<Shared>,
}

/// State that callbacks use: kept until the image is closed ([`Image::retire`]).
struct Shared {
    api: &'static Api,
    queue: Queue,
    places: Box<[Callback]>,
}

impl Shared {
    fn new(api: &'static Api, slots: u32) -> Arc<Self> {
        Arc::new_cyclic(|shared| {
            let place = |slot| Callback { entry: CompletionEntry::new(slot), shared: Weak::clone(shared) };
            Self { api, queue: Queue::default(), places: (0..slots).map(place).collect() }
        })
    }
}

struct Rbd {
    images: Vec<Arc<Image>>,
    bounds: Bounds,
    shared: Arc<Shared>,
    depth: usize,
    in_flight: InFlight,
    /// Bytes that a result of 0 stands for in a slot: the library says no more of a write that was carried out.
    credits: Vec<u32>,
    /// Sizes of the images, in bytes: the library cuts off what is written beyond, and says nothing.
    sizes: Vec<u64>,
    /// Discards shorter than this are skipped by the library, in bytes; and how many were.
    discard_bytes_min: u64,
    discards_skipped: u64,
    arena: Arc<Arena>,
}

/// Called by a thread of the library when an operation has completed.
unsafe extern "C" fn completed(completion: Handle, place: *mut c_void) {
    // SAFETY: the address of a place of ours, which stays until the image is closed.
    let place = unsafe { &*place.cast_const().cast::<Callback>() };
    // SAFETY: the place is a part of it, so it is there as long.
    let shared = unsafe { &*place.shared.as_ptr() };
    // SAFETY: the completion is valid until its release; the library holds one of its own during the callback.
    let result = unsafe {
        let result = (shared.api.rbd_aio_get_return_value)(completion);
        (shared.api.rbd_aio_release)(completion);
        result
    };
    shared.queue.push(&place.entry, result as i64);
}

impl Rbd {
    /// Hands an operation over. The library's answer, negative where it took none.
    fn begin(&mut self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        let end = operation.offset.checked_add(operation.length.into());
        if end.is_none_or(|end| end > self.sizes[usize::from(operation.target)]) {
            return INVALID;
        }
        if operation.class == MediaClass::Discard && u64::from(operation.length) < self.discard_bytes_min {
            self.discards_skipped += 1;
        }
        let is_write = operation.class == MediaClass::Write;
        self.credits[operation.slot as usize] = if is_write { operation.length } else { 0 };
        let (image, api) = (&self.images[usize::from(operation.target)], self.shared.api);
        let place = &self.shared.places[operation.slot as usize];
        let mut completion = std::ptr::null_mut();
        let address = std::ptr::from_ref(place).cast_mut().cast();
        // SAFETY: the place is kept until the image is closed (see `Drop`).
        let code = unsafe { (api.rbd_aio_create_completion)(address, Some(completed), &raw mut completion) };
        if code < 0 {
            return code.into();
        }
        let (buffer, length) = (self.arena.slot_ptr(operation.slot), operation.length as usize);
        // SAFETY: an open image; the slot's buffer is the driver's until the operation has landed, and as long (`Bounds`).
        let code = unsafe {
            match operation.class {
                MediaClass::Read => {
                    (api.rbd_aio_read)(image.handle(), operation.offset, length, buffer.cast(), completion)
                }
                MediaClass::Write => {
                    (api.rbd_aio_write)(image.handle(), operation.offset, length, buffer.cast(), completion)
                }
                MediaClass::Discard => (api.rbd_aio_discard)(
                    image.handle(),
                    operation.offset,
                    u64::from(operation.length),
                    completion,
                ),
                MediaClass::Sync => (api.rbd_aio_flush)(image.handle(), completion),
                _ => UNSUPPORTED as c_int,
            }
        };
        if code < 0 {
            // SAFETY: nothing was handed over, so nobody calls back.
            unsafe { (api.rbd_aio_release)(completion) };
        }
        code.into()
    }
}

impl Polled for Rbd {
    #[inline]
    fn in_flight(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    #[inline]
    fn poll(&mut self, longest: Duration) -> Result<bool, Error> {
        let mut landed = self.shared.queue.take_within(longest);
        let is_any = landed.is_some();
        while let Some(slot) = landed {
            let entry = &self.shared.places[slot as usize].entry;
            landed = entry.next();
            let result = entry.result();
            self.in_flight.end(slot, if result == 0 { self.credits[slot as usize].into() } else { result });
        }
        Ok(is_any)
    }
}

impl Driver<MediaOperation> for Rbd {
    fn submit(&mut self, batch: &[MediaOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let offered = &batch[..batch.len().min(self.depth - self.in_flight.count() as usize)];
        for operation in offered {
            match self.begin(operation) {
                refused if refused < 0 => done.push(operation.slot, refused),
                _ => self.in_flight.begin(),
            }
        }
        Ok(Submitted { accepted: offered.len() })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        polled::reap(self, wait, done)
    }

    fn findings(&mut self) -> Vec<String> {
        let Self { discards_skipped, discard_bytes_min, .. } = self;
        if *discards_skipped == 0 {
            return Vec::new();
        }
        vec![format!(
            "librbd reported {discards_skipped} discards as done without executing them: they are shorter than rbd_discard_granularity_bytes \
             ({discard_bytes_min} bytes, with rbd_skip_partial_discard)"
        )]
    }
}

impl Drop for Rbd {
    fn drop(&mut self) {
        let have_all_ended = polled::drain(self, DRAIN);
        for image in &self.images {
            image.retire(Arc::<Shared>::clone(&self.shared));
        }
        if !have_all_ended {
            // A callback may still come: what it looks at, and the buffers, stay.
            std::mem::forget((Arc::clone(&self.shared), Arc::clone(&self.arena), self.images.clone()));
        }
    }
}
