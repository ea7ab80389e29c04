//! Requests on objects as they stand in messages: 64 bytes, little endian, then keys, an anchor and, where the value is small, the value.
//!
//! ```text
//!  0 instance u32     8 container u64    32 offset u64     56 dkey bytes u16    64 dkey, akey, anchor, value
//!  4 pool u16        16 object lo u64    40 length u64     58 akey bytes u16
//!  6 selector u8     24 object hi u64    48 epoch u64      60 anchor bytes u16
//!  7 zero                                                  62 zero u16
//! ```
//!
//! Whoever has the token may send any bytes: nothing here trusts a length.

use vos::model::{Epoch, ObjectId};

/// Bytes before the keys.
pub const REQUEST_BYTES: usize = 64;
/// Longest dkey, akey or anchor, in bytes.
pub const KEY_BYTES_MAX: usize = 4096;

/// A container that was opened: names it in requests, and the engine that has opened it. An engine that was started again knows none of the
/// handles before (`ESTALE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle {
    /// Which start of an engine it is of.
    pub instance: u32,
    /// Number of the pool in the engine.
    pub pool: u16,
    /// The container in its pool.
    pub container: u64,
}

/// A request on an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// Where.
    pub handle: Handle,
    /// The object.
    pub object: ObjectId,
    /// Selector within the opcode; the meaning is the opcode's.
    pub selector: u8,
    /// First byte of an extent.
    pub offset: u64,
    /// Bytes of an extent, or of the value that is asked for; entries of a list.
    pub length: u64,
    /// As of which version; 0: the latest.
    pub epoch: Epoch,
    /// The dkey.
    pub dkey: &'a [u8],
    /// The akey.
    pub akey: &'a [u8],
    /// Where a list goes on.
    pub anchor: &'a [u8],
    /// Small value that follows.
    pub value: &'a [u8],
}

/// Bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl<'a> Request<'a> {
    /// Writes all but the value; returns the length, or none where `to` is too short or a key too long.
    #[inline]
    #[must_use]
    pub fn encode(&self, to: &mut [u8]) -> Option<usize> {
        let keys = [self.dkey, self.akey, self.anchor];
        if keys.iter().any(|key| key.len() > KEY_BYTES_MAX) {
            return None;
        }
        let (head, mut rest) = to.split_first_chunk_mut::<REQUEST_BYTES>()?;
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.handle.instance.to_le_bytes());
        put(4, &self.handle.pool.to_le_bytes());
        put(6, &[self.selector, 0]);
        put(8, &self.handle.container.to_le_bytes());
        put(16, &self.object.lo.to_le_bytes());
        put(24, &self.object.hi.to_le_bytes());
        put(32, &self.offset.to_le_bytes());
        put(40, &self.length.to_le_bytes());
        put(48, &self.epoch.to_le_bytes());
        put(62, &[0; 2]);
        let mut length = REQUEST_BYTES;
        for (at, key) in [56, 58, 60].into_iter().zip(keys) {
            put(at, &(key.len() as u16).to_le_bytes());
            let (place, behind) = rest.split_at_mut_checked(key.len())?;
            place.copy_from_slice(key);
            rest = behind;
            length += key.len();
        }
        Some(length)
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it is shorter than it says, a key is longer than [`KEY_BYTES_MAX`], the extent passes the end of 64 bits, or what must be zero is
    /// not.
    #[inline]
    pub fn decode(from: &'a [u8]) -> Result<Self, Malformed> {
        let (head, rest) = from.split_first_chunk::<REQUEST_BYTES>().ok_or(Malformed)?;
        let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let lengths = [short(56), short(58), short(60)].map(usize::from);
        if head[7] != 0 || short(62) != 0 || lengths.iter().any(|&length| length > KEY_BYTES_MAX) {
            return Err(Malformed);
        }
        let (dkey, rest) = rest.split_at_checked(lengths[0]).ok_or(Malformed)?;
        let (akey, rest) = rest.split_at_checked(lengths[1]).ok_or(Malformed)?;
        let (anchor, value) = rest.split_at_checked(lengths[2]).ok_or(Malformed)?;
        let instance = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let (offset, length) = (long(head, 32), long(head, 40));
        offset.checked_add(length).ok_or(Malformed)?;
        Ok(Self {
            handle: Handle { instance, pool: short(4), container: long(head, 8) },
            object: ObjectId { lo: long(head, 16), hi: long(head, 24) },
            selector: head[6],
            offset,
            length,
            epoch: long(head, 48),
            dkey,
            akey,
            anchor,
            value,
        })
    }
}

#[inline]
fn long(from: &[u8; REQUEST_BYTES], at: usize) -> u64 {
    let (words, _) = from.as_chunks::<8>();
    u64::from_le_bytes(words[at / 8])
}

/// Reads numbers and bytes one after the other, none beyond the end.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next so many bytes.
    ///
    /// # Errors
    /// When they are not there.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    /// 16 bits.
    ///
    /// # Errors
    /// When they are not there.
    pub fn short(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// 32 bits.
    ///
    /// # Errors
    /// When they are not there.
    pub fn word(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// 64 bits.
    ///
    /// # Errors
    /// When they are not there.
    pub fn long(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes behind their 16-bit length.
    ///
    /// # Errors
    /// When they are not there.
    pub fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.short()?;
        self.bytes(usize::from(length))
    }
}

/// Adds bytes behind their 16-bit length, as [`Reader::counted`] reads them. False, and nothing is added, where they are too many.
pub fn put_counted(to: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let Ok(length) = u16::try_from(bytes.len()) else { return false };
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(bytes);
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..80)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            instance: u32, pool: u16, container: u64, object: (u64, u64), selector: u8,
            offset in 0..=u64::MAX / 2, length in 0..=u64::MAX / 2, epoch: u64,
            dkey in key(), akey in key(), anchor in key(), value in key(),
        ) {
            let request = Request {
                handle: Handle { instance, pool, container },
                object: ObjectId { lo: object.0, hi: object.1 },
                selector, offset, length, epoch,
                dkey: &dkey, akey: &akey, anchor: &anchor, value: &[],
            };
            let mut bytes = [0xee; 512];
            let end = request.encode(&mut bytes).expect("room");
            bytes[end..end + value.len()].copy_from_slice(&value);
            let read = Request::decode(&bytes[..end + value.len()]);
            prop_assert_eq!(read, Ok(Request { value: &value, ..request }));
            prop_assert!(Request::decode(&bytes[..end - 1]).is_err());
            prop_assert_eq!(request.encode(&mut [0; 512][..end - 1]), None);
        }

        #[test]
        fn any_bytes_are_a_request_that_writes_them_again_or_malformed(
            mut bytes in prop::collection::vec(any::<u8>(), 0..300), lengths: [u8; 3],
        ) {
            // Random lengths and zeros would make nearly all of them malformed.
            if bytes.len() >= REQUEST_BYTES {
                (bytes[7], bytes[57], bytes[59], bytes[61], bytes[62], bytes[63]) = (0, 0, 0, 0, 0, 0);
                (bytes[56], bytes[58], bytes[60]) = (lengths[0], lengths[1], lengths[2]);
            }
            if let Ok(request) = Request::decode(&bytes) {
                let mut again = vec![0; bytes.len()];
                let end = request.encode(&mut again).expect("as long");
                again[end..].copy_from_slice(request.value);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn readers_stop_at_the_end(bytes in key()) {
            let mut out = Vec::new();
            prop_assert!(put_counted(&mut out, &bytes));
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.counted(), Ok(bytes.as_slice()));
            prop_assert_eq!((reader.short(), reader.word(), reader.long()), (Err(Malformed), Err(Malformed), Err(Malformed)));
            prop_assert_eq!(Reader(&out[..out.len() - 1]).counted(), Err(Malformed));
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        let long = vec![b'x'; KEY_BYTES_MAX + 1];
        let mut bytes = vec![0; 10_000];
        assert_eq!(Request { dkey: &long, ..Request::default() }.encode(&mut bytes), None);
        let whole = Request { akey: &long[1..], offset: 1, length: u64::MAX, ..Request::default() };
        let end = whole.encode(&mut bytes).expect("room");
        assert_eq!(Request::decode(&bytes[..end]), Err(Malformed), "the extent passes the end");
        let mut big = Vec::new();
        assert!(!put_counted(&mut big, &vec![0; 1 << 16]) && big.is_empty());
    }
}
