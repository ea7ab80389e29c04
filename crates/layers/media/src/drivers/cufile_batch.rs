//! `cufile_batch`: memory of a GPU through GPUDirect Storage, with requests in flight in batches.

use driver::{Error, Opened, Registration};
use gpu::Batches;

use super::cufile::queued;
use crate::{MediaOperation, OpenRequest};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: "cufile_batch",
    summary: "GPUDirect Storage with up to 128 requests in flight, in batches: --memory gpu",
    capabilities: queued::CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    queued::open(request, REGISTRATION.name, |files| {
        Batches::new(files.memory.library, &files.memory.buffers, request.depth)
    })
}
