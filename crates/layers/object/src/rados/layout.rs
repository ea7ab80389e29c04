//! Names of RADOS objects, and arrays cut into chunks.

use std::ffi::c_char;

use vos::model::{Key, ObjectId};

/// Name of the object that marks a namespace as a container of strata's.
pub(crate) const MARKER: &std::ffi::CStr = c"strata.container";
/// Longest name: two numbers of 16 digits, two keys of 47 bytes of up to three characters each, separators, and the final NUL.
const NAME_BYTES_MAX: usize = 33 + 2 * (1 + 3 * vos::model::KEY_BYTES_MAX) + 1;

/// The name of a RADOS object, ended by a NUL; made without allocating.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    length: usize,
}

impl Name {
    /// Prefix of the names of all that belongs to an object: `HI.LO/`, hexadecimal.
    pub(crate) fn prefix(object: ObjectId) -> Self {
        let mut name = Self { bytes: [0; NAME_BYTES_MAX], length: 0 };
        name.number(object.hi);
        name.push(b'.');
        name.number(object.lo);
        name.push(b'/');
        name
    }

    /// Name of the RADOS object under a dkey.
    pub(crate) fn of_dkey(object: ObjectId, dkey: &Key) -> Self {
        let mut name = Self::prefix(object);
        name.key(dkey);
        name
    }

    /// Name of the RADOS object under a dkey and an akey.
    pub(crate) fn of_akey(object: ObjectId, dkey: &Key, akey: &Key) -> Self {
        let mut name = Self::of_dkey(object, dkey);
        if !akey.as_bytes().is_empty() {
            name.push(b'/');
            name.key(akey);
        }
        name
    }

    /// A chunk of an array.
    pub(crate) fn of_chunk(object: ObjectId, chunk: u64) -> Self {
        Self::of_dkey(object, &Key::integer(chunk.wrapping_add(1)))
    }

    /// Attributes of an array.
    pub(crate) fn of_attributes(object: ObjectId) -> Self {
        Self::of_dkey(object, &Key::integer(0))
    }

    /// Its text, without the NUL.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// For the library; ends with a NUL.
    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    fn number(&mut self, number: u64) {
        let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            self.push(hexadecimal((number >> (4 * digit) & 15) as u8));
        }
    }

    /// Text as it is, other bytes and separators as `%XX`, integers (8 bytes that are not all text) as `#` and a number.
    fn key(&mut self, key: &Key) {
        let bytes = key.as_bytes();
        let is_text = bytes.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
        if let (false, Ok(number)) = (is_text, <[u8; 8]>::try_from(bytes)) {
            self.push(b'#');
            self.number(u64::from_le_bytes(number));
            return;
        }
        for byte in bytes {
            if (byte.is_ascii_graphic() || *byte == b' ') && !b"%/#".contains(byte) {
                self.push(*byte);
            } else {
                self.push(b'%');
                self.push(hexadecimal(byte >> 4));
                self.push(hexadecimal(byte & 15));
            }
        }
    }
}

fn hexadecimal(digit: u8) -> u8 {
    b"0123456789abcdef"[usize::from(digit)]
}

/// The object that a name belongs to; none where it is not made as [`Name`] makes them.
pub(crate) fn object_of(name: &[u8]) -> Option<ObjectId> {
    let (numbers, _) = std::str::from_utf8(name).ok()?.split_once('/')?;
    let (hi, lo) = numbers.split_once('.')?;
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        u64::from_str_radix(text, 16).ok().filter(|_| digits)
    };
    Some(ObjectId { hi: number(hi)?, lo: number(lo)? })
}

/// A part of a range of an array, within one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The chunk.
    pub(crate) chunk: u64,
    /// First byte in the chunk.
    pub(crate) offset: u64,
    /// First byte in the buffer.
    pub(crate) at: usize,
    /// Bytes.
    pub(crate) length: usize,
}

/// Chunks that a range touches.
pub(crate) fn pieces(offset: u64, length: u64, chunk_bytes: u64) -> u64 {
    if length == 0 { 0 } else { (offset % chunk_bytes + length).div_ceil(chunk_bytes) }
}

/// Piece `number` of a range.
pub(crate) fn piece(offset: u64, length: u64, chunk_bytes: u64, number: u64) -> Piece {
    let chunk = offset / chunk_bytes + number;
    let first = offset.max(chunk * chunk_bytes);
    let end = (offset + length).min((chunk + 1) * chunk_bytes);
    Piece {
        chunk,
        offset: first - chunk * chunk_bytes,
        at: (first - offset) as usize,
        length: (end - first) as usize,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(name: &Name) -> String {
        assert_eq!(name.bytes[name.length], 0);
        String::from_utf8(name.as_bytes().to_vec()).expect("names are text")
    }

    #[test]
    fn names_tell_what_lies_there() {
        let object = ObjectId { lo: 0x1f, hi: 0 };
        let key = |bytes: &[u8]| Key::new(bytes).expect("short");
        assert_eq!(text(&Name::of_dkey(object, &key(b"blade-7"))), "0.1f/blade-7");
        assert_eq!(
            text(&Name::of_akey(object, &key(b"a/b%\0"), &key(b"akey--0"))),
            "0.1f/a%2fb%25%00/akey--0"
        );
        assert_eq!(text(&Name::of_akey(object, &key(b"k"), &Key::EMPTY)), "0.1f/k");
        assert_eq!(text(&Name::of_chunk(object, 0)), "0.1f/#1");
        assert_eq!(text(&Name::of_attributes(object)), "0.1f/#0");
        assert_eq!(text(&Name::of_dkey(object, &key(b"blade-10"))), "0.1f/blade-10");
        let longest = Name::of_akey(ObjectId { lo: u64::MAX, hi: u64::MAX }, &key(&[1; 47]), &key(&[1; 47]));
        assert_eq!(text(&longest).len(), NAME_BYTES_MAX - 1);
        assert_eq!(object_of(longest.as_bytes()), Some(ObjectId { lo: u64::MAX, hi: u64::MAX }));
        assert_eq!(object_of(Name::of_chunk(object, 3).as_bytes()), Some(object));
        for other in ["", "theirs", "0.1f", "0/x", "+0.1f/x", "0.1F/x", "x.1/y"] {
            assert_eq!(object_of(other.as_bytes()), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn different_keys_have_different_names(
            a in prop::collection::vec(any::<u8>(), 0..12), b in prop::collection::vec(any::<u8>(), 0..12),
            c in prop::collection::vec(any::<u8>(), 0..12), d in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let key = |bytes: &[u8]| Key::new(bytes).expect("short");
            let object = ObjectId { lo: 1, hi: 2 };
            let one = Name::of_akey(object, &key(&a), &key(&b));
            let other = Name::of_akey(object, &key(&c), &key(&d));
            prop_assert_eq!((a == c) && (b == d), one.as_bytes() == other.as_bytes());
        }

        #[test]
        fn pieces_cover_a_range_once(offset in 0_u64..5000, length in 0_u64..5000, chunk in 1_u64..700) {
            let mut at = 0;
            for number in 0..pieces(offset, length, chunk) {
                let piece = piece(offset, length, chunk, number);
                prop_assert_eq!(piece.at, at);
                prop_assert_eq!(piece.chunk * chunk + piece.offset, offset + at as u64);
                prop_assert!(piece.length > 0 && piece.offset + piece.length as u64 <= chunk);
                at += piece.length;
            }
            prop_assert_eq!(at as u64, length);
        }
    }
}
