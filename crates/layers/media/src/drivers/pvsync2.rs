//! `pvsync2`: one `preadv2` or `pwritev2` at a time, with the flags of these calls.
#![allow(unsafe_code)]

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::engine::SyncCall;
use driver::{Arena, Capabilities, Error, ErrorKind, Opened, Operation, Registration};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2, retry_on_intr};
use workload::target::TargetPlan;

use crate::descriptor::{self, Bounds, Descriptor, INVALID, completed, written};
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "pvsync2";

const CAPABILITIES: Capabilities = Capabilities {
    classes: MediaOperation::CLASSES,
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: true,
    options: &[
        "advise",
        "sync",
        "hipri",
        "nowait",
        "rwf-dsync",
        "dontcache",
        "memory",
        "gpu-path",
        "gpu-staging",
        "gpu-per",
    ],
};

/// `RWF_DONTCACHE` (Linux 6.14).
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "preadv2 and pwritev2 with their flags, one at a time",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let options = &request.options;
    if options.hipri && !options.direct {
        return Err(
            Error::usage("open", "polled completion (RWF_HIPRI) needs direct I/O").remedy("add --direct")
        );
    }
    let targets = descriptor::open_all(request, NAME)?;
    let mut read_flags = ReadWriteFlags::empty();
    for (wanted, flag, name, why) in [
        (options.hipri, ReadWriteFlags::HIPRI, "RWF_HIPRI", "the device has no poll queues"),
        (
            options.nowait,
            ReadWriteFlags::NOWAIT,
            "RWF_NOWAIT",
            "its file system cannot return EAGAIN instead of waiting",
        ),
        (
            options.dontcache,
            DONTCACHE,
            "RWF_DONTCACHE",
            "it requires Linux 6.14 and a file system that supports it",
        ),
    ] {
        if wanted {
            for (target, plan) in targets.iter().zip(&request.targets) {
                probe(target, plan, flag, name, why)?;
            }
            read_flags |= flag;
        }
    }
    let mut write_flags = read_flags;
    write_flags.set(ReadWriteFlags::DSYNC, options.rwf_dsync);
    let (arena, bounds) = (Arc::clone(&request.arena), Bounds::new(request));
    let driver = Pvsync2 { targets, arena, bounds, read_flags, write_flags, sync_call: options.sync_call };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes: Vec::new() })
}

/// Reads the start of the range once with `flag`. Only a plain "not supported" is a verdict.
fn probe(
    target: &Descriptor,
    plan: &TargetPlan,
    flag: ReadWriteFlags,
    name: &'static str,
    why: &'static str,
) -> Result<(), Error> {
    if !descriptor::may_probe(target.kind) {
        return Ok(());
    }
    let arena = descriptor::probe_buffer(plan)?;
    // SAFETY: nobody else knows this arena.
    let buffer = unsafe { arena.slot_mut(0, arena.slot_bytes()) };
    match preadv2(&target.fd, &mut [IoSliceMut::new(buffer)], plan.offset_bytes, flag) {
        Err(errno @ (Errno::OPNOTSUPP | Errno::INVAL)) => {
            Err(Error::new(ErrorKind::Unsupported, "open", format!("the target rejects {name}: {why}"))
                .with("path", &plan.path)
                .with("errno", errno.raw_os_error())
                .remedy("leave out the flag"))
        }
        _ => Ok(()),
    }
}

struct Pvsync2 {
    targets: Vec<Descriptor>,
    arena: Arc<Arena>,
    bounds: Bounds,
    read_flags: ReadWriteFlags,
    write_flags: ReadWriteFlags,
    sync_call: SyncCall,
}

impl CarryOut for Pvsync2 {
    #[inline]
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        let target = &self.targets[usize::from(operation.target)];
        let MediaOperation { slot, offset, length, .. } = *operation;
        match operation.class {
            MediaClass::Read => {
                // SAFETY: the slot is the driver's from submit to completion, which is this call.
                let buffer = unsafe { self.arena.slot_mut(slot, length as usize) };
                let mut vector = [IoSliceMut::new(buffer)];
                completed(retry_on_intr(|| preadv2(&target.fd, &mut vector, offset, self.read_flags)))
            }
            MediaClass::Write => {
                // SAFETY: as above.
                let buffer = unsafe { self.arena.slot_mut(slot, length as usize) };
                let vector = [IoSlice::new(&*buffer)];
                let first =
                    completed(retry_on_intr(|| pwritev2(&target.fd, &vector, offset, self.write_flags)));
                written(first, length, |at| {
                    pwritev2(&target.fd, &[IoSlice::new(&buffer[at..])], offset + at as u64, self.write_flags)
                })
            }
            MediaClass::Discard => descriptor::discard(target, offset, length),
            MediaClass::Sync => descriptor::sync(target.fd.as_fd(), self.sync_call),
            MediaClass::Reset | MediaClass::Finish => descriptor::change_zone(target, operation),
            MediaClass::Nop => 0,
        }
    }
}
