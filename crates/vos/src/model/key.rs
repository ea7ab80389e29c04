//! Keys that fit into an operation.

use std::fmt;

/// Longest key of a load, in bytes. Stores take longer ones.
pub const KEY_BYTES_MAX: usize = 47;

/// A dkey or an akey, kept in place so that drawing one allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    bytes: [u8; KEY_BYTES_MAX],
    length: u8,
}

impl Key {
    /// No key.
    pub const EMPTY: Self = Self { bytes: [0; KEY_BYTES_MAX], length: 0 };

    /// A key of these bytes; none where they are too many.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut key = Self::EMPTY;
        key.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        key.length = bytes.len() as u8;
        Some(key)
    }

    /// A 64-bit number, little endian, as DAOS keeps integer dkeys.
    #[inline]
    #[must_use]
    pub fn integer(number: u64) -> Self {
        let mut key = Self::EMPTY;
        key.bytes[..8].copy_from_slice(&number.to_le_bytes());
        key.length = 8;
        key
    }

    /// This key with a decimal number behind it; it must have room for it ([`Key::has_room`]).
    #[inline]
    #[must_use]
    pub fn followed_by(mut self, number: u64) -> Self {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let (from, digits) = (self.length as usize, &digits[at..]);
        self.bytes[from..from + digits.len()].copy_from_slice(digits);
        self.length += digits.len() as u8;
        self
    }

    /// The same; none where there is no room.
    #[must_use]
    pub fn checked_followed_by(self, number: u64) -> Option<Self> {
        let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
        (usize::from(self.length) + digits <= KEY_BYTES_MAX).then(|| self.followed_by(number))
    }

    /// This key with another one behind it; none where there is no room.
    #[inline]
    #[must_use]
    pub fn then(mut self, tail: &Self) -> Option<Self> {
        let from = usize::from(self.length);
        self.bytes.get_mut(from..from + usize::from(tail.length))?.copy_from_slice(tail.as_bytes());
        self.length += tail.length;
        Some(self)
    }

    /// Whether any number fits behind this.
    #[must_use]
    pub fn has_room(&self) -> bool {
        usize::from(self.length) + 20 <= KEY_BYTES_MAX
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Key {
    /// Text as it is; other bytes as `\xNN`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let key = Key::new(b"blade-").expect("short");
        assert_eq!(key.followed_by(0).as_bytes(), b"blade-0");
        assert_eq!(key.followed_by(u64::MAX).as_bytes(), b"blade-18446744073709551615");
        assert_eq!(Key::integer(258).as_bytes(), &[2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Key::integer(1).to_string(), r"\x01\x00\x00\x00\x00\x00\x00\x00");
        assert!(Key::new(&[0; 48]).is_none() && Key::new(&[0; 47]).is_some());
        assert!(key.has_room() && !Key::new(&[b'x'; 28]).expect("fits").has_room());
    }
}
