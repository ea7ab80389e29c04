//! Figures of a vendor: from a file, or as they stand in the command line.

use std::collections::BTreeMap;

use driver::Error;
use report::record::PresetUnit;
use units::{ByteSize, ParseError, Rate, Span, nearest, path_of};

/// A figure that data sheets have, with its unit.
pub(super) struct Key {
    /// Its name.
    pub(super) name: &'static str,
    /// Its unit.
    pub(super) unit: PresetUnit,
}

const fn key(name: &'static str, unit: PresetUnit) -> Key {
    Key { name, unit }
}

/// All of them.
pub(super) static KEYS: &[Key] = &[
    key("seq_read", PresetUnit::BytesPerSecond),
    key("seq_write", PresetUnit::BytesPerSecond),
    key("rand_read", PresetUnit::OperationsPerSecond),
    key("rand_write", PresetUnit::OperationsPerSecond),
    key("read_latency", PresetUnit::Nanoseconds),
    key("write_latency", PresetUnit::Nanoseconds),
    key("read_p99_99", PresetUnit::Nanoseconds),
    key("write_p99_99", PresetUnit::Nanoseconds),
];

/// The unit of the key of this name.
pub(super) fn unit_of(name: &str) -> PresetUnit {
    KEYS.iter().find(|key| key.name == name).map_or(PresetUnit::OperationsPerSecond, |key| key.unit)
}

/// Stated figures by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sheet(BTreeMap<&'static str, f64>);

impl Sheet {
    /// Reads what `--spec` says: figures where it has an equals sign, else a file of them.
    ///
    /// # Errors
    /// Bad usage, with what would be accepted.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        if text.contains('=') {
            return Self::of_line(text).map_err(|error| Error::usage("spec", error.to_string()));
        }
        let of_file = |error: Error| error.with("file", text);
        let content = std::fs::read_to_string(path_of(text)).map_err(|error| {
            of_file(Error::usage("spec", format!("cannot read the file: {error}")))
                .remedy("give a TOML file, or values such as seq_read=7000MB/s,rand_read=1M")
        })?;
        Self::of_file(&content).map_err(|message| of_file(Error::usage("spec", message)))
    }

    /// `seq_read=7000MB/s,rand_read=1M`.
    pub(super) fn of_line(text: &str) -> Result<Self, ParseError> {
        let mut sheet = Self::default();
        for entry in text.split(',').map(str::trim) {
            let Some((name, value)) = entry.split_once('=') else {
                return Err(ParseError::new("a data sheet value", entry, "KEY=VALUE, such as rand_read=1M"));
            };
            sheet.add(name.trim(), value.trim())?;
        }
        Ok(sheet)
    }

    /// A TOML file of the same keys; values are text, and numbers where they count operations.
    pub(super) fn of_file(content: &str) -> Result<Self, String> {
        let table: toml::Table = content.parse().map_err(|error: toml::de::Error| {
            format!("is not valid TOML: {}", error.message().lines().next().unwrap_or_default())
        })?;
        let mut sheet = Self::default();
        for (name, value) in &table {
            let text = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                _ => return Err(format!("{name}: use a text with a unit, such as \"7000MB/s\"")),
            };
            sheet.add(name, &text).map_err(|error| error.to_string())?;
        }
        Ok(sheet)
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), ParseError> {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            let near = nearest(name, names.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("{near}; valid keys: "));
            return Err(ParseError::new("a data sheet value", name, format!("{near}{}", names.join(", "))));
        };
        if self.of(key.name).is_some() {
            return Err(ParseError::new("a data sheet value", name, "each key once"));
        }
        self.0.insert(key.name, value_of(key, value)?);
        Ok(())
    }

    /// Figure stated for a key.
    pub(super) fn of(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }
}

/// The value in the unit of its key: bytes or operations a second, nanoseconds.
fn value_of(key: &Key, text: &str) -> Result<f64, ParseError> {
    let refused = |accepted: &str| ParseError::new(key.name, text, accepted);
    match key.unit {
        PresetUnit::BytesPerSecond => {
            let accepted = "bytes per second above 0 with a unit, such as 7000MB/s, 7GB/s, 6.5GiB/s";
            let size = text.strip_suffix("/s").unwrap_or(text);
            let has_unit = size.ends_with(['b', 'B']) && size.contains(|letter| "kKmMgGtT".contains(letter));
            let bytes = size.parse::<ByteSize>().ok().filter(|size| has_unit && size.bytes() > 0);
            bytes.map(|size| size.bytes() as f64).ok_or_else(|| refused(accepted))
        }
        PresetUnit::OperationsPerSecond => {
            let rate = ["IOPS", "iops"].iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
            let rate = rate.trim_end().parse::<Rate>().map(Rate::per_second);
            rate.map_err(|_| refused("operations per second above 0, such as 1M, 1000k, 1000000, 1000k IOPS"))
        }
        PresetUnit::Nanoseconds => {
            let accepted = "a time above 0 with a unit, such as 70us, 0.5ms";
            let time = text.replace(['\u{b5}', '\u{3bc}'], "u");
            let has_unit = time.ends_with('s');
            let span = time.parse::<Span>().ok().filter(|span| has_unit && span.ns() > 0);
            span.map(|span| span.ns() as f64).ok_or_else(|| refused(accepted))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sheet_reads_alike_from_a_line_and_from_a_file() {
        let line = Sheet::of_line("seq_read=7000MB/s, rand_read=1M,read_latency=70us").unwrap();
        assert_eq!(line.of("seq_read"), Some(7e9));
        assert_eq!(line.of("rand_read"), Some(1e6));
        assert_eq!(line.of("read_latency"), Some(70_000.0));
        assert_eq!(line.of("seq_write"), None);
        let file =
            "# of the vendor\nseq_read = \"7GB/s\"\nrand_read = 1000000\nread_latency = \"70\u{b5}s\"\n";
        assert_eq!(Sheet::of_file(file).unwrap(), line);
    }

    #[test]
    fn what_is_no_figure_is_refused_with_what_is() {
        let cases = [
            ("seq_raed=1GB/s", "seq_read"),
            ("speed=1GB/s", "rand_write"),
            ("seq_read", "KEY=VALUE"),
            ("seq_read=7000", "7000MB/s"),
            ("seq_read=0MB/s", "above 0"),
            ("seq_read=fast", "7000MB/s"),
            ("rand_read=0", "above 0"),
            ("rand_read=1M,rand_read=2M", "each key once"),
            ("read_latency=70", "70us"),
            ("read_latency=0us", "above 0"),
            ("", "KEY=VALUE"),
        ];
        for (text, accepted) in cases {
            let error = Sheet::of_line(text).unwrap_err().to_string();
            assert!(error.contains(accepted), "{text}: {error}");
        }
        for (text, accepted) in [("seq_read = [1]", "a text with a unit"), ("seq_read", "is not valid TOML")]
        {
            let error = Sheet::of_file(text).unwrap_err();
            assert!(error.contains(accepted) && !error.contains('\n'), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read(
            bandwidth in 1u64..1_000_000, operations in 1u64..100_000_000, time in 1u64..1_000_000_000,
        ) {
            let text = format!("seq_write={bandwidth}MB/s,rand_write={operations},write_p99_99={time}ns");
            let sheet = Sheet::of_line(&text).unwrap();
            prop_assert_eq!(sheet.of("seq_write"), Some(bandwidth as f64 * 1e6));
            prop_assert_eq!(sheet.of("rand_write"), Some(operations as f64));
            prop_assert_eq!(sheet.of("write_p99_99"), Some(time as f64));
            let file = format!(
                "seq_write = \"{bandwidth}MB/s\"\nrand_write = {operations}\nwrite_p99_99 = \"{time}ns\"\n"
            );
            prop_assert_eq!(Sheet::of_file(&file).unwrap(), sheet);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            for sheet in [Sheet::of_line(&text).ok(), Sheet::of_file(&text).ok()].into_iter().flatten() {
                prop_assert!(sheet.0.values().all(|value| value.is_finite() && *value > 0.0));
            }
        }
    }
}
