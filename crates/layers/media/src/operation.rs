//! The operation of the media layer.

use driver::Operation;

/// Class of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MediaClass {
    /// Reads into the slot's buffer.
    Read = 0,
    /// Writes from the slot's buffer.
    Write = 1,
    /// Discards a range (block device: `BLKDISCARD`; file: punched hole).
    Discard = 2,
    /// Makes the target's data durable (`fdatasync` or `fsync`; mmap: `msync`).
    Sync = 3,
    /// Passes through the driver and moves nothing.
    Nop = 4,
    /// Resets a zone, so that it can be written anew (`BLKRESETZONE`; nothing where zones are emulated).
    Reset = 5,
    /// Makes a zone full, so that it is open no more (`BLKFINISHZONE`; nothing where zones are emulated).
    Finish = 6,
}

/// One operation on a file, a device or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaOperation {
    /// Byte offset within the target.
    pub offset: u64,
    /// Length in bytes; 0 for sync and nop.
    pub length: u32,
    /// Slot, and so the buffer.
    pub slot: u32,
    /// Index of the target in the open request.
    pub target: u16,
    /// Class of the operation.
    pub class: MediaClass,
    /// Not one that the user asked for (a block is read to check it): no limit counts it.
    pub is_extra: bool,
}

impl Operation for MediaOperation {
    const CLASSES: &'static [&'static str] = &["read", "write", "discard", "sync", "nop", "reset", "finish"];

    #[inline]
    fn class(&self) -> usize {
        self.class as usize
    }

    #[inline]
    fn slot(&self) -> u32 {
        self.slot
    }

    #[inline]
    fn bytes(&self) -> u64 {
        u64::from(self.length)
    }

    #[inline]
    fn position(&self) -> u64 {
        self.offset
    }

    #[inline]
    fn target(&self) -> u16 {
        self.target
    }

    /// A limit counts what the user asked for; syncs and checks come on top.
    #[inline]
    fn is_limited(&self) -> bool {
        self.class != MediaClass::Sync && !self.is_extra
    }

    #[inline]
    fn is_whole(&self, result: i64) -> bool {
        match self.class {
            MediaClass::Read | MediaClass::Write => result == i64::from(self.length),
            _ => result >= 0,
        }
    }
}
