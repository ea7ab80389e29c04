//! The header of every message: 64 bytes, little endian, the same on sockets and fabrics.
//!
//! A message is the header, then `inline_bytes` of payload. Bulk travels apart: on sockets over a stream of its own, behind a
//! [`BulkHeader`]; on fabrics by RMA, whose descriptors follow the header ([`flag::RMA`]).

/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of a header on a bulk stream.
pub const BULK_HEADER_BYTES: usize = 16;
/// First bytes of every header: the letters and the version of the format.
pub const MAGIC: [u8; 4] = *b"SRP1";
/// First bytes of a header on a bulk stream.
pub const BULK_MAGIC: [u8; 4] = *b"SRB1";

/// Opcodes of requests.
pub mod opcode {
    /// Nothing: shows that the endpoint lives.
    pub const PING: u16 = 0;
    /// The endpoint's counters and CPU times, as JSON in the message.
    pub const STATISTICS: u16 = 1;
    /// A measurement: the reply carries what the request asks for.
    pub const MEASURE: u16 = 2;
    /// First opcode of other services.
    pub const SERVICE_FIRST: u16 = 64;
}

/// Flags of a header.
pub mod flag {
    /// It is a reply.
    pub const REPLY: u16 = 1;
    /// Payloads are made from seed and sequence, and checked.
    pub const VERIFY: u16 = 2;
    /// Two RMA descriptors of 24 bytes each (address, key, length) follow the header.
    pub const RMA: u16 = 4;
    /// The reply says what the request took in its server ([`super::ServerTimes`]). Only endpoints over sockets do so, and only of engines that say
    /// that they know the flag: older ones take it for an attack.
    pub const TIMED: u16 = 8;
    /// All flags there are.
    pub const ALL: u16 = REPLY | VERIFY | RMA | TIMED;
}

/// The header of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Opcode; the same in the reply.
    pub opcode: u16,
    /// [`flag`]s.
    pub flags: u16,
    /// Number that the client knows the RPC by; the same in the reply.
    pub slot: u32,
    /// In a reply: 0 or a negated errno.
    pub status: i32,
    /// Tag that it is for.
    pub tag: u32,
    /// Payload bytes that follow in the message.
    pub inline_bytes: u64,
    /// Payload bytes that go as bulk: from the client in a request, to the client in a reply.
    pub bulk_bytes: u64,
    /// In a request: what the reply may carry in the message; for a measurement, what it shall carry. In a reply: see [`ServerTimes`].
    pub reply_inline_bytes: u64,
    /// In a request: size of the client's memory for a bulk reply; for a measurement, what it shall get. In a reply: see [`ServerTimes`].
    pub reply_bulk_bytes: u64,
    /// Number of the RPC among those of its worker.
    pub sequence: u64,
    /// In a request with [`flag::VERIFY`]: what payloads are made from.
    pub seed: u32,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The first bytes are others: another protocol, or another version.
    Magic,
    /// Flags that nobody knows.
    Flags,
    /// A size that does not fit into memory.
    Size,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Magic => "the message does not match this protocol and version",
            Self::Flags => "the message has unknown flags",
            Self::Size => "the message has impossible sizes",
        })
    }
}

/// Largest size that a header may say, in bytes; limits of the engine are below it.
pub const SIZE_BYTES_MAX: u64 = 1 << 40;

impl Header {
    /// Writes it.
    #[inline]
    pub fn encode(&self, to: &mut [u8; HEADER_BYTES]) {
        to[0..4].copy_from_slice(&MAGIC);
        to[4..6].copy_from_slice(&self.opcode.to_le_bytes());
        to[6..8].copy_from_slice(&self.flags.to_le_bytes());
        to[8..12].copy_from_slice(&self.slot.to_le_bytes());
        to[12..16].copy_from_slice(&self.status.to_le_bytes());
        to[16..20].copy_from_slice(&self.tag.to_le_bytes());
        to[20..24].copy_from_slice(&self.seed.to_le_bytes());
        to[24..32].copy_from_slice(&self.inline_bytes.to_le_bytes());
        to[32..40].copy_from_slice(&self.bulk_bytes.to_le_bytes());
        to[40..48].copy_from_slice(&self.reply_inline_bytes.to_le_bytes());
        to[48..56].copy_from_slice(&self.reply_bulk_bytes.to_le_bytes());
        to[56..64].copy_from_slice(&self.sequence.to_le_bytes());
    }

    /// Reads it. Sizes are believed only up to [`SIZE_BYTES_MAX`]; the limits of the engine are for the caller to hold.
    ///
    /// # Errors
    /// When the bytes are no header.
    #[inline]
    pub fn decode(from: &[u8; HEADER_BYTES]) -> Result<Self, Malformed> {
        if from[0..4] != MAGIC {
            return Err(Malformed::Magic);
        }
        let header = Self {
            opcode: u16::from_le_bytes([from[4], from[5]]),
            flags: u16::from_le_bytes([from[6], from[7]]),
            slot: word(from, 8),
            status: word(from, 12) as i32,
            tag: word(from, 16),
            seed: word(from, 20),
            inline_bytes: long(from, 24),
            bulk_bytes: long(from, 32),
            reply_inline_bytes: long(from, 40),
            reply_bulk_bytes: long(from, 48),
            sequence: long(from, 56),
        };
        if header.flags & !flag::ALL != 0 {
            return Err(Malformed::Flags);
        }
        let sizes =
            [header.inline_bytes, header.bulk_bytes, header.reply_inline_bytes, header.reply_bulk_bytes];
        if sizes.iter().any(|&size| size > SIZE_BYTES_MAX) {
            return Err(Malformed::Size);
        }
        Ok(header)
    }
}

/// Time that a request took in its server, by the server's own clock. It stands in the header of a reply with [`flag::TIMED`], in fields that are the request's
/// alone otherwise: those of the reply's sizes have the wait, and the work with the storage; the seed the storage's share of that, in parts of 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTimes {
    /// It, or its reply, waited for others in the server, in nanoseconds.
    pub queue_ns: u64,
    /// The service carried it out, in nanoseconds, without the next.
    pub service_ns: u64,
    /// The service waited for its storage, in nanoseconds.
    pub storage_ns: u64,
}

impl ServerTimes {
    /// Those of a reply; none where its request did not ask for them.
    #[inline]
    #[must_use]
    pub fn of(reply: &Header) -> Option<Self> {
        let Header { reply_inline_bytes: queue_ns, reply_bulk_bytes: work_ns, seed, .. } = *reply;
        let storage_ns = ((u128::from(work_ns) * u128::from(seed)) >> 32) as u64;
        let told = Self { queue_ns, service_ns: work_ns - storage_ns, storage_ns };
        (reply.flags & flag::TIMED != 0).then_some(told)
    }

    /// Adds work of so long, in nanoseconds, and of that the wait for the storage.
    #[inline]
    pub fn worked(&mut self, work_ns: u64, storage_ns: u64) {
        let storage_ns = storage_ns.min(work_ns);
        self.service_ns += work_ns - storage_ns;
        self.storage_ns += storage_ns;
    }

    /// Writes them into the header of a reply that was written without. Times are cut at [`SIZE_BYTES_MAX`], 18 minutes: no header says more.
    pub fn put(self, reply: &mut [u8; HEADER_BYTES]) {
        reply[40..48].copy_from_slice(&self.queue_ns.min(SIZE_BYTES_MAX).to_le_bytes());
        let work_ns = self.service_ns.saturating_add(self.storage_ns);
        let share = (u128::from(self.storage_ns) << 32).div_ceil(u128::from(work_ns.max(1)));
        reply[20..24].copy_from_slice(&u32::try_from(share).unwrap_or(u32::MAX).to_le_bytes());
        reply[48..56].copy_from_slice(&work_ns.min(SIZE_BYTES_MAX).to_le_bytes());
    }
}

/// Header of a transfer on a bulk stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkHeader {
    /// The RPC it belongs to.
    pub slot: u32,
    /// Bytes that follow.
    pub bytes: u64,
}

impl BulkHeader {
    /// Writes it.
    #[inline]
    pub fn encode(&self, to: &mut [u8; BULK_HEADER_BYTES]) {
        to[0..4].copy_from_slice(&BULK_MAGIC);
        to[4..8].copy_from_slice(&self.slot.to_le_bytes());
        to[8..16].copy_from_slice(&self.bytes.to_le_bytes());
    }

    /// Reads it.
    ///
    /// # Errors
    /// When the bytes are no header.
    #[inline]
    pub fn decode(from: &[u8; BULK_HEADER_BYTES]) -> Result<Self, Malformed> {
        if from[0..4] != BULK_MAGIC {
            return Err(Malformed::Magic);
        }
        let header = Self { slot: word(from, 4), bytes: long(from, 8) };
        if header.bytes > SIZE_BYTES_MAX { Err(Malformed::Size) } else { Ok(header) }
    }
}

#[inline]
fn word(from: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([from[at], from[at + 1], from[at + 2], from[at + 3]])
}

#[inline]
fn long(from: &[u8], at: usize) -> u64 {
    u64::from(word(from, at)) | u64::from(word(from, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            opcode: u16, flags in 0..=flag::ALL, slot: u32, status: i32, tag: u32, seed: u32,
            inline_bytes in 0..=SIZE_BYTES_MAX, bulk_bytes in 0..=SIZE_BYTES_MAX,
            reply_inline_bytes in 0..=SIZE_BYTES_MAX, reply_bulk_bytes in 0..=SIZE_BYTES_MAX, sequence: u64,
        ) {
            let header = Header {
                opcode, flags, slot, status, tag, inline_bytes, bulk_bytes, reply_inline_bytes, reply_bulk_bytes, sequence, seed,
            };
            let mut bytes = [0; HEADER_BYTES];
            header.encode(&mut bytes);
            prop_assert_eq!(Header::decode(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_a_header_that_writes_them_again_or_malformed(bytes: [u8; 32], rest: [u8; 32]) {
            let mut all = [0; HEADER_BYTES];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&rest);
            all[..4].copy_from_slice(&MAGIC);
            if let Ok(header) = Header::decode(&all) {
                let mut again = [0; HEADER_BYTES];
                header.encode(&mut again);
                prop_assert_eq!(again, all);
            }
        }

        #[test]
        fn bulk_headers_too(slot: u32, bytes in 0..=SIZE_BYTES_MAX) {
            let header = BulkHeader { slot, bytes };
            let mut encoded = [0; BULK_HEADER_BYTES];
            header.encode(&mut encoded);
            prop_assert_eq!(BulkHeader::decode(&encoded), Ok(header));
        }
    }

    #[test]
    fn times_stand_in_replies_that_were_asked_for_them_and_nowhere_else() {
        let mut bytes = [0; HEADER_BYTES];
        let reply = Header { flags: flag::REPLY, slot: 7, sequence: 9, ..Header::default() };
        assert_eq!(ServerTimes::of(&reply), None);
        Header { flags: flag::REPLY | flag::TIMED, ..reply }.encode(&mut bytes);
        let mut told = |service_ns, storage_ns| {
            ServerTimes { queue_ns: 5, service_ns, storage_ns }.put(&mut bytes);
            let read = Header::decode(&bytes).expect("a header");
            assert_eq!((read.slot, read.sequence, read.status), (7, 9, 0));
            let times = ServerTimes::of(&read).expect("times");
            assert_eq!(times.queue_ns, 5);
            (times.service_ns, times.storage_ns)
        };
        assert_eq!(told(u64::MAX, 0), (SIZE_BYTES_MAX, 0));
        for times in
            [(0, 0), (7, 0), (3_000, 1), (1, 2_999), (70_000, 30_000_000), (1_234_567_891, 1_234_567_890)]
        {
            assert_eq!(told(times.0, times.1), times, "to the nanosecond, for seconds");
        }
        let (service_ns, storage_ns) = told(0, 900_000_000_000);
        assert!(service_ns < 1000 && service_ns + storage_ns == 900_000_000_000, "{service_ns}");
    }

    #[test]
    fn headers_that_ask_for_no_times_are_as_they_were() {
        let request =
            Header { opcode: 64, slot: 1, tag: 2, sequence: 3, inline_bytes: 4, ..Header::default() };
        let mut bytes = [0; HEADER_BYTES];
        request.encode(&mut bytes);
        let mut before = [0; HEADER_BYTES];
        before[..4].copy_from_slice(b"SRP1");
        for (at, byte) in [(4, 64), (8, 1), (16, 2), (24, 4), (56, 3)] {
            before[at] = byte;
        }
        assert_eq!(bytes, before);
    }

    #[test]
    fn another_protocol_is_refused() {
        let mut bytes = [0; HEADER_BYTES];
        assert_eq!(Header::decode(&bytes), Err(Malformed::Magic));
        Header::default().encode(&mut bytes);
        bytes[6] = 0xff;
        assert_eq!(Header::decode(&bytes), Err(Malformed::Flags));
        Header { bulk_bytes: SIZE_BYTES_MAX + 1, ..Header::default() }.encode(&mut bytes);
        assert_eq!(Header::decode(&bytes), Err(Malformed::Size));
    }
}
