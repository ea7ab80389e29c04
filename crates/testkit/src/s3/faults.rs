//! Faults that the server makes on purpose.

use std::sync::atomic::{AtomicU64, Ordering};

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// Nothing does.
    None,
    /// 503 SlowDown.
    SlowDown,
    /// 500 InternalError.
    InternalError,
    /// The connection is cut instead of an answer.
    Cut,
    /// The connection is cut in the middle of the body; without a body, instead of an answer.
    CutBody,
    /// A value is a byte short of the object, and its Content-Length says so too.
    Short,
    /// ETags of parts are not those that the server knows.
    WrongEtag,
    /// Parts cannot be put together, which is said behind a status of 200.
    CompleteFails,
    /// Answers come in chunks.
    Chunked,
    /// The connection ends after the answer.
    Close,
    /// The answer takes a second longer.
    Slow,
    /// No answer comes.
    Silence,
    /// Bytes that are no HTTP come as the answer.
    Garbage,
    /// Ranges are ignored: the whole object comes.
    NoRanges,
    /// 403 QuotaExceeded.
    Full,
}

const ALL: [Fault; 15] = [
    Fault::None,
    Fault::SlowDown,
    Fault::InternalError,
    Fault::Cut,
    Fault::CutBody,
    Fault::Short,
    Fault::WrongEtag,
    Fault::CompleteFails,
    Fault::Chunked,
    Fault::Close,
    Fault::Slow,
    Fault::Silence,
    Fault::Garbage,
    Fault::NoRanges,
    Fault::Full,
];

/// The fault that is in force, and what was counted.
#[derive(Debug, Default)]
pub struct Faults {
    /// Fault in the lower byte, over it: every how many requests.
    armed: AtomicU64,
    requests: AtomicU64,
    struck: AtomicU64,
}

impl Faults {
    /// From now on every `every`-th request meets `fault`.
    pub fn inject(&self, fault: Fault, every: u32) {
        self.requests.store(0, Ordering::SeqCst);
        self.struck.store(0, Ordering::SeqCst);
        self.armed.store(u64::from(every.max(1)) << 8 | fault as u64, Ordering::SeqCst);
    }

    /// No more faults.
    pub fn heal(&self) {
        self.armed.store(0, Ordering::SeqCst);
    }

    /// Requests since the last [`Faults::inject`].
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Requests that met a fault since then.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.struck.load(Ordering::SeqCst)
    }

    /// Fault that the next request meets.
    pub(crate) fn next(&self) -> Fault {
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let armed = self.armed.load(Ordering::SeqCst);
        let fault = ALL[(armed & 0xff) as usize % ALL.len()];
        if fault == Fault::None || !number.is_multiple_of(armed >> 8) {
            return Fault::None;
        }
        self.struck.fetch_add(1, Ordering::SeqCst);
        fault
    }
}
