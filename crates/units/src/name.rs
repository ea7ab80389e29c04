//! Names of files in text. Linux takes any bytes for a name, text holds UTF-8: bytes that are none are spelled out.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Stands before the two hexadecimal digits of a byte that is no UTF-8: the character that programs show for such a byte.
const ESCAPE: char = char::REPLACEMENT_CHARACTER;

/// A name as text: what is UTF-8 as it is, every other byte as U+FFFD and two hexadecimal digits (`odd�FF`). U+FFFD itself is
/// spelled out as well, so that [`path_of`] gives the very name back.
#[must_use]
pub fn label_of(name: &OsStr) -> String {
    if let Some(text) = name.to_str().filter(|text| !text.contains(ESCAPE)) {
        return text.to_owned();
    }
    let mut label = String::new();
    let spell = |label: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // A string takes every write.
            let _ = write!(label, "{ESCAPE}{byte:02X}");
        }
    };
    for chunk in name.as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                ESCAPE => spell(&mut label, ESCAPE.encode_utf8(&mut [0; 4]).as_bytes()),
                letter => label.push(letter),
            }
        }
        spell(&mut label, chunk.invalid());
    }
    label
}

/// The name that a text stands for, as [`label_of`] writes it. U+FFFD without two hexadecimal digits stands for itself.
#[must_use]
pub fn path_of(label: &str) -> Cow<'_, Path> {
    if !label.contains(ESCAPE) {
        return Cow::Borrowed(Path::new(label));
    }
    let mut parts = label.split(ESCAPE);
    let mut name = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                name.push(byte);
                name.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                name.extend_from_slice(ESCAPE.encode_utf8(&mut [0; 4]).as_bytes());
                name.extend_from_slice(part.as_bytes());
            }
        }
    }
    Cow::Owned(PathBuf::from(OsString::from_vec(name)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_is_no_utf_8_is_spelled_out() {
        for (name, label) in [
            (&b"plain \\xff %FF"[..], "plain \\xff %FF"),
            (b"odd\xff", "odd\u{FFFD}FF"),
            (b"\xc3\xa4\xc3", "ä\u{FFFD}C3"),
            ("a\u{FFFD}FF".as_bytes(), "a\u{FFFD}EF\u{FFFD}BF\u{FFFD}BDFF"),
        ] {
            assert_eq!(label_of(OsStr::from_bytes(name)), label);
            assert_eq!(path_of(label).as_os_str().as_bytes(), name);
        }
        assert_eq!(path_of("a\u{FFFD}x\u{FFFD}").as_os_str(), "a\u{FFFD}x\u{FFFD}");
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in prop::collection::vec(any::<u8>(), 0..40)) {
            let name = OsStr::from_bytes(&name);
            let label = label_of(name);
            let path = path_of(&label);
            prop_assert_eq!(path.as_os_str(), name);
        }

        #[test]
        fn text_without_the_escape_is_itself(text in "[^\u{FFFD}]{0,20}") {
            let path = path_of(&text);
            prop_assert_eq!(path.as_os_str(), &*text);
            prop_assert_eq!(label_of(OsStr::new(&text)), text);
        }
    }
}
