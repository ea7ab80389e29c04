//! The operation of this layer: one RPC.

use driver::Operation;

/// Classes that figures are kept apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcClass {
    /// A request and its reply.
    Rpc = 0,
}

/// One RPC: a request, its reply, and the bulk transfers of both. What they carry is the same for all RPCs of a phase and
/// stands in the [`crate::OpenRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rpc {
    /// Slot, and so buffer.
    pub slot: u32,
    /// Index of the endpoint in the [`crate::OpenRequest`].
    pub endpoint: u32,
    /// Number of the RPC among those of its worker: payloads that are checked depend on it.
    pub sequence: u64,
    /// Payload bytes of request and reply together. A successful completion returns this number.
    pub bytes: u64,
}

impl Operation for Rpc {
    const CLASSES: &'static [&'static str] = &["rpc"];

    #[inline]
    fn class(&self) -> usize {
        RpcClass::Rpc as usize
    }

    #[inline]
    fn slot(&self) -> u32 {
        self.slot
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn part(&self) -> usize {
        self.endpoint as usize
    }
}
