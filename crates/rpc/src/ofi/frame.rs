//! Messages on a fabric: the header, the two RMA descriptors where the header has [`flag::RMA`], the session, then the payload.
//!
//! A fabric has no connections, and anyone on it can send to an endpoint. The session is a number that the client drew and told the engine in
//! the handshake: a message without a known one is dropped, on both sides.

use crate::wire::{HEADER_BYTES, Header, Malformed, flag};

use super::port::Remote;

/// Bytes of one RMA descriptor: address, key, length.
pub const DESCRIPTOR_BYTES: usize = 24;
/// Bytes of a session.
pub const SESSION_BYTES: usize = 16;
/// Bytes before the payload, at most.
pub const PREFIX_BYTES_MAX: usize = HEADER_BYTES + 2 * DESCRIPTOR_BYTES + SESSION_BYTES;

/// Prefix of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The header.
    pub header: Header,
    /// The client's memory with the bulk of the request, and its memory for the bulk of the reply; with [`flag::RMA`] only.
    pub memory: Option<[Remote; 2]>,
    /// Whom it belongs to.
    pub session: [u8; SESSION_BYTES],
}

/// Why a message is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It ends before its payload begins.
    Short,
    /// The header is none.
    Header(Malformed),
    /// It carries more or less than its header says.
    Payload,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Short => f.write_str("the message is shorter than its header"),
            Self::Header(malformed) => malformed.fmt(f),
            Self::Payload => f.write_str("the message length differs from its header"),
        }
    }
}

impl Frame {
    /// Writes it; returns its length.
    #[inline]
    pub fn encode(&self, to: &mut [u8; PREFIX_BYTES_MAX]) -> usize {
        let mut header = self.header;
        header.flags = header.flags & !flag::RMA | if self.memory.is_some() { flag::RMA } else { 0 };
        let (first, rest) = to.split_at_mut(HEADER_BYTES);
        header.encode(first.try_into().expect("its length"));
        let mut at = 0;
        for remote in self.memory.iter().flatten() {
            for word in [remote.address, remote.key, remote.bytes] {
                rest[at..at + 8].copy_from_slice(&word.to_le_bytes());
                at += 8;
            }
        }
        rest[at..at + SESSION_BYTES].copy_from_slice(&self.session);
        HEADER_BYTES + at + SESSION_BYTES
    }

    /// Reads it; returns where the payload begins.
    #[inline]
    pub fn decode(message: &[u8]) -> Result<(Self, usize), Broken> {
        let (header, mut rest) = message.split_first_chunk::<HEADER_BYTES>().ok_or(Broken::Short)?;
        let header = Header::decode(header).map_err(Broken::Header)?;
        let mut memory = None;
        if header.flags & flag::RMA != 0 {
            let mut words = [0; 6];
            for word in &mut words {
                let (bytes, next) = rest.split_first_chunk::<8>().ok_or(Broken::Short)?;
                *word = u64::from_le_bytes(*bytes);
                rest = next;
            }
            let [a, b, c, d, e, f] = words;
            memory = Some([Remote { address: a, key: b, bytes: c }, Remote { address: d, key: e, bytes: f }]);
        }
        let (session, payload) = rest.split_first_chunk::<SESSION_BYTES>().ok_or(Broken::Short)?;
        if payload.len() as u64 != header.inline_bytes {
            return Err(Broken::Payload);
        }
        Ok((Self { header, memory, session: *session }, message.len() - payload.len()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn remote() -> impl Strategy<Value = Remote> {
        any::<(u64, u64, u64)>().prop_map(|(address, key, bytes)| Remote { address, key, bytes })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            slot: u32, sequence: u64, session: [u8; 16], memory in proptest::option::of((remote(), remote())),
            payload in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let memory = memory.map(|(a, b)| [a, b]);
            let flags = if memory.is_some() { flag::RMA } else { 0 };
            let header = Header { slot, sequence, flags, inline_bytes: payload.len() as u64, ..Header::default() };
            let frame = Frame { header, memory, session };
            let mut prefix = [0; PREFIX_BYTES_MAX];
            let length = frame.encode(&mut prefix);
            let mut message = prefix[..length].to_vec();
            message.extend(&payload);
            prop_assert_eq!(Frame::decode(&message), Ok((frame, length)));
            message.push(0);
            prop_assert_eq!(Frame::decode(&message), Err(Broken::Payload));
            prop_assert!(Frame::decode(&message[..length - 1]).is_err());
        }

        #[test]
        fn any_bytes_are_a_frame_or_broken(mut bytes in proptest::collection::vec(any::<u8>(), 0..256), begins: bool) {
            if begins && bytes.len() >= 8 {
                bytes[..4].copy_from_slice(&crate::wire::MAGIC);
                let known = u16::from(bytes[6]) & flag::ALL;
                bytes[6..8].copy_from_slice(&known.to_le_bytes());
                for size in [29..32, 37..40, 45..48, 53..56] {
                    if bytes.len() >= 56 {
                        bytes[size].fill(0);
                    }
                }
            }
            if let Ok((frame, at)) = Frame::decode(&bytes) {
                prop_assert_eq!(frame.header.inline_bytes as usize, bytes.len() - at);
                let mut prefix = [0; PREFIX_BYTES_MAX];
                let length = frame.encode(&mut prefix);
                prop_assert_eq!(&prefix[..length], &bytes[..at]);
            }
        }
    }
}
