//! The record as JSON: indented for people, with histograms and intervals on one line each.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::record::{Record, SCHEMA_VERSION};
use crate::words::clean;

/// Arrays of this name go on one line.
const INLINE_ARRAYS: &[&str] = &[
    "allowed_cores",
    "buckets",
    "command_line",
    "cores",
    "load_averages",
    "numa",
    "p50_interval_ns",
    "p99_interval_ns",
];
/// Objects of this name, or in an array of this name, go on one line.
const INLINE_OBJECTS: &[&str] = &[
    "bandwidth",
    "first_done",
    "last_done",
    "latency",
    "little",
    "little_worst",
    "points",
    "rate",
    "stonewalled",
];

/// Indents by two spaces and keeps what the tables name on one line.
#[derive(Default)]
struct Layout {
    /// Names of the values that are open, outermost first.
    open: Vec<String>,
    /// Name that the next value belongs to; elements of an array have the name of the array.
    name: String,
    in_name: bool,
    /// How many of the open values lie in one that goes on one line, itself included.
    inline: usize,
    has_value: bool,
}

impl Layout {
    fn open<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        bracket: &[u8],
        inline: &[&str],
    ) -> io::Result<()> {
        if self.inline > 0 || inline.contains(&self.name.as_str()) {
            self.inline += 1;
        }
        self.open.push(self.name.clone());
        self.has_value = false;
        out.write_all(bracket)
    }

    fn close<W: ?Sized + io::Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.name = self.open.pop().unwrap_or_default();
        if self.inline > 0 {
            self.inline -= 1;
        } else if self.has_value {
            self.new_line(out)?;
        }
        self.has_value = true;
        out.write_all(bracket)
    }

    fn separate<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if self.inline == 0 { self.new_line(out) } else { Ok(()) }
    }

    fn new_line<W: ?Sized + io::Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.open.len()).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[", INLINE_ARRAYS)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.separate(out, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{", INLINE_OBJECTS)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.name.clear();
        self.in_name = true;
        self.separate(out, first)
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.in_name = false;
        Ok(())
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(if self.inline > 0 { b":" } else { b": " })
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, part: &str) -> io::Result<()> {
        if self.in_name {
            self.name.push_str(part);
        }
        out.write_all(part.as_bytes())
    }
}

/// The record as JSON text, with a newline at its end.
///
/// # Errors
/// One line, when something of it has no JSON form.
pub fn to_json(record: &Record) -> Result<String, String> {
    let mut bytes = Vec::new();
    record
        .serialize(&mut Serializer::with_formatter(&mut bytes, Layout::default()))
        .map_err(|error| format!("the record cannot be written as JSON: {}", clean(&error.to_string())))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(|error| format!("the record cannot be written as JSON: {error}"))
}

/// A result named `name` as indented JSON, with a newline at its end.
pub(crate) fn pretty(value: &impl Serialize, name: &str) -> Result<String, String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| format!("the {name} cannot be written as JSON: {error}"))
}

/// Longest record that is read, unpacked, in bytes.
const RECORD_BYTES_MAX: u64 = 1 << 30;
/// First bytes of a file in the format of gzip (RFC 1952, 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The text of a file that is packed by gzip or not.
///
/// # Errors
/// Damaged content, or a text that is not UTF-8.
pub fn unpack(bytes: Vec<u8>) -> io::Result<String> {
    if bytes.starts_with(&GZIP_MAGIC) {
        let mut text = String::new();
        MultiGzDecoder::new(&bytes[..]).take(RECORD_BYTES_MAX).read_to_string(&mut text)?;
        return Ok(text);
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// Reads a record.
///
/// # Errors
/// One line: not JSON, not a record, of a version that this strata does not read, or damaged.
pub fn from_json(text: &str) -> Result<Record, String> {
    #[derive(Deserialize)]
    struct Head {
        schema_version: u32,
    }
    let refuse = |error: serde_json::Error| format!("not a record of strata: {}", clean(&error.to_string()));
    let head: Head = serde_json::from_str(text).map_err(refuse)?;
    if head.schema_version > SCHEMA_VERSION {
        return Err(format!(
            "record of schema version {}, but this strata reads version {SCHEMA_VERSION}: use a newer strata",
            head.schema_version
        ));
    }
    if head.schema_version < SCHEMA_VERSION {
        return Err(format!(
            "record of schema version {}, but this strata reads version {SCHEMA_VERSION}: use the strata that wrote it",
            head.schema_version
        ));
    }
    serde_json::from_str(text).map_err(|error| format!("damaged record: {}", clean(&error.to_string())))
}

/// The JSON schema (draft 2020-12) of the record.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Record).to_value();
    // Whether serde_json keeps the order of keys is decided by what else is built with it.
    schema.sort_all_objects();
    schema
}
