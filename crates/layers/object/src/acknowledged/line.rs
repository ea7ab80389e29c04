//! Lines of the file.

use crate::plan::ObjectOp;

use vos::model::{Key, ObjectId};

use crate::ObjectOperation;
use crate::payload::checksum;

/// First line: name and version of the format.
pub const FORMAT: &str = "strata acknowledged 1";

/// An update that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Number of the phase in the file.
    pub phase: u32,
    /// Number of the worker: containers and objects may be its own.
    pub worker: u32,
    /// Operation that stored the value, with its keys.
    pub operation: ObjectOperation,
    /// Number of the write: with the run and the record it is the seed of the content, and it stands in the value.
    pub write: u64,
    /// When its buffer was filled, on the clock of the run, in nanoseconds: before it began.
    pub begun_ns: u64,
    /// When its acknowledgement had come.
    pub acknowledged_ns: u64,
}

/// A key as one word.
fn escaped(key: &Key, text: &mut String) {
    if key.as_bytes().is_empty() {
        text.push('-');
        return;
    }
    for &byte in key.as_bytes() {
        match byte {
            b' ' | b'\\' => text.push_str(&format!("\\x{byte:02x}")),
            b'-' if key.as_bytes().len() == 1 => text.push_str("\\x2d"),
            0x21..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
}

fn unescaped(word: &str) -> Option<Key> {
    if word == "-" {
        return Some(Key::EMPTY);
    }
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'\\' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let (digits, behind) = after.strip_prefix(b"x")?.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    Key::new(&bytes)
}

/// Adds the checksum and the end of a line to what was begun at `from`.
pub(super) fn seal(text: &mut String, from: usize) {
    let sum = checksum(&text.as_bytes()[from..]);
    text.push_str(&format!(" {sum:08x}\n"));
}

/// The words of a line whose checksum matches.
pub(super) fn open(line: &str) -> Result<&str, String> {
    let (words, sum) = line.rsplit_once(' ').ok_or("no checksum")?;
    if sum != format!("{:08x}", checksum(words.as_bytes())) {
        return Err("the checksum does not match".to_owned());
    }
    Ok(words)
}

impl Entry {
    /// Adds its line.
    pub(super) fn write_to(&self, text: &mut String) {
        let (from, own) = (text.len(), &self.operation);
        text.push_str(&format!(
            "update {} {} {} {} ",
            self.phase,
            self.worker,
            own.operation.name(),
            own.object
        ));
        escaped(&own.dkey, text);
        text.push(' ');
        escaped(&own.akey, text);
        text.push_str(&format!(
            " {} {} {} {:016x} {} {}",
            own.offset_bytes, own.value_bytes, own.record, self.write, self.begun_ns, self.acknowledged_ns
        ));
        seal(text, from);
    }

    /// Of the words behind `update`.
    pub(super) fn parse(words: &str) -> Result<Self, String> {
        let words: Vec<&str> = words.split(' ').collect();
        let [phase, worker, name, object, dkey, akey, offset, length, record, write, begun, acknowledged] =
            words[..]
        else {
            return Err(format!("an update has {} fields, expected 12", words.len()));
        };
        let number = |what: &str, word: &str| {
            word.parse::<u64>().map_err(|_| format!("{what} {word:?} is not a number"))
        };
        let small = |what: &str, word: &str| {
            word.parse::<u32>().map_err(|_| format!("{what} {word:?} is not a number"))
        };
        let operation =
            ObjectOp::ALL.iter().copied().find(|operation| operation.name() == name && operation.stores());
        let (hi, lo) = object.split_once('.').ok_or_else(|| format!("object {object:?} is not HIGH.LOW"))?;
        let key =
            |what: &str, word: &str| unescaped(word).ok_or_else(|| format!("{what} {word:?} is not a key"));
        Ok(Self {
            phase: small("phase", phase)?,
            worker: small("worker", worker)?,
            operation: ObjectOperation {
                slot: 0,
                operation: operation
                    .ok_or_else(|| format!("{name:?} is not an operation that stores values"))?,
                is_short_good: false,
                record: number("record", record)?,
                object: ObjectId { hi: number("object", hi)?, lo: number("object", lo)? },
                dkey: key("dkey", dkey)?,
                akey: key("akey", akey)?,
                offset_bytes: number("offset", offset)?,
                value_bytes: number("length", length)?,
            },
            write: u64::from_str_radix(write, 16).map_err(|_| format!("write {write:?} is not a number"))?,
            begun_ns: number("begun", begun)?,
            acknowledged_ns: number("acknowledged", acknowledged)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn entries_come_back(
            dkey in prop::collection::vec(any::<u8>(), 0..40), akey in prop::collection::vec(any::<u8>(), 0..3),
            numbers in any::<[u64; 7]>(), phase in any::<u32>(),
        ) {
            let operation = ObjectOperation {
                slot: 0,
                operation: ObjectOp::Update,
                is_short_good: false,
                record: numbers[0],
                object: ObjectId { lo: numbers[1], hi: numbers[2] },
                dkey: Key::new(&dkey).expect("short"),
                akey: Key::new(&akey).expect("short"),
                offset_bytes: numbers[3],
                value_bytes: numbers[4],
            };
            let entry = Entry { phase, worker: 3, operation, write: numbers[5], begun_ns: numbers[6], acknowledged_ns: 9 };
            let mut text = String::new();
            entry.write_to(&mut text);
            prop_assert!(text.ends_with('\n') && text.lines().count() == 1);
            let words = open(text.trim_end()).expect("its checksum matches").strip_prefix("update ").expect("an update");
            let read = Entry::parse(words).expect("an entry");
            prop_assert_eq!(format!("{entry:?}"), format!("{read:?}"));
        }

        #[test]
        fn any_text_is_an_entry_or_refused(text in "[ -~]{0,80}") {
            let _ = Entry::parse(&text);
            let _ = open(&text);
        }
    }
}
