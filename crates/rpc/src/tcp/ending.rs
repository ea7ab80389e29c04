//! Why sessions end, and what a request may say.

use std::fmt;

use crate::wire::{Header, flag};

use super::endpoint::Endpoint;
use super::memory::Exhausted;

/// Why a session ends.
#[derive(Debug)]
pub(super) enum Ending {
    /// The client is done, or died.
    Gone,
    /// Bytes that came over it are not valid.
    Hostile(String),
    /// The engine has no more to give.
    Refused(&'static str),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the client disconnected"),
            Self::Hostile(why) => f.write_str(why),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

pub(super) fn hostile(why: impl Into<String>) -> Ending {
    Ending::Hostile(why.into())
}

impl From<Exhausted> for Ending {
    fn from(_: Exhausted) -> Self {
        Self::Refused("the engine's buffer memory is used up")
    }
}

/// Checks the header of a request.
pub(super) fn check(header: &Header, endpoint: &Endpoint) -> Result<(), Ending> {
    let limits = endpoint.limits();
    let inline_max = u64::from(limits.inline_bytes_max);
    if header.flags & (flag::REPLY | flag::RMA) != 0 {
        return Err(hostile("a message is not a request of this transport"));
    }
    if header.tag != endpoint.seat.tag {
        return Err(hostile(format!("a request is for tag {}", header.tag)));
    }
    if header.inline_bytes > inline_max || header.reply_inline_bytes > inline_max {
        let bytes = header.inline_bytes.max(header.reply_inline_bytes);
        return Err(hostile(format!("a message has {bytes} bytes; the limit is {inline_max}")));
    }
    if header.bulk_bytes > limits.bulk_bytes_max || header.reply_bulk_bytes > limits.bulk_bytes_max {
        let bytes = header.bulk_bytes.max(header.reply_bulk_bytes);
        return Err(hostile(format!("bulk has {bytes} bytes; the limit is {}", limits.bulk_bytes_max)));
    }
    Ok(())
}
