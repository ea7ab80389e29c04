//! `cufile_stream`: memory of a GPU through GPUDirect Storage, with requests in flight on streams of the device.

use driver::{Error, Opened, Registration};
use gpu::Streams;

use super::cufile::queued;
use crate::{MediaOperation, OpenRequest};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: "cufile_stream",
    summary: "GPUDirect Storage with up to 128 requests in flight, each on a stream of the device: --memory gpu",
    capabilities: queued::CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    queued::open(request, REGISTRATION.name, |files| Streams::new(&files.memory.buffers))
}
