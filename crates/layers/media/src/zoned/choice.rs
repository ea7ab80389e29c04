//! `--zones zbd`, as typed.

use std::str::FromStr;

use units::{ByteSize, ParseError};

/// Options given with `--zones zbd`; none where not said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ZonedChoice {
    /// Length of a zone: checked against a zoned device's, emulated elsewhere.
    pub size: Option<ByteSize>,
    /// Bytes of an emulated zone that are written.
    pub capacity: Option<ByteSize>,
    /// Bytes that sequential operations leave out after each zone.
    pub skip: Option<ByteSize>,
    /// Zones that are written to at once; 0: no limit.
    pub open_max: Option<u32>,
    /// Zones that one worker opens at once; 0: no limit.
    pub worker_open_max: Option<u32>,
    /// `open_max` may be above the device's limits.
    pub ignores_limits: bool,
    /// Writes in flight in one zone.
    pub depth: Option<u32>,
    /// Reads go anywhere.
    pub reads_beyond: bool,
    /// Share of the range that is written before zones are reset early, 0 to 1.
    pub reset_threshold: Option<f64>,
    /// Resets a write, beyond the threshold, 0 to 1.
    pub reset_frequency: Option<f64>,
    /// The range is cut to whole zones.
    pub rounds: bool,
}

const ACCEPTED: &str = "SIZE/RANGE or SIZE/RANGE/SKIP such as 8m/64m/192m, or zbd, with any of size=64m, capacity=48m, skip=64m, max-open=8, thread-max-open=2, depth=4, reset-threshold=0.8, reset-frequency=0.1, ignore-limits, read-beyond-wp and round";

impl FromStr for ZonedChoice {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new("zones", text, ACCEPTED);
        let mut parts = text.split(',').map(str::trim);
        if parts.next() != Some("zbd") {
            return Err(refused());
        }
        let mut choice = Self::default();
        for part in parts {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (part, None),
            };
            choice.take(key, value).ok_or_else(refused)?;
        }
        Ok(choice)
    }
}

impl ZonedChoice {
    /// Whether a text of `--zones` is of this kind.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.split(',').next().is_some_and(|word| word.trim() == "zbd")
    }

    /// Takes one of the parts after `zbd`; none where it is not one.
    fn take(&mut self, key: &str, value: Option<&str>) -> Option<()> {
        let switch = match key {
            "ignore-limits" => Some(&mut self.ignores_limits),
            "read-beyond-wp" => Some(&mut self.reads_beyond),
            "round" => Some(&mut self.rounds),
            _ => None,
        };
        if let Some(switch) = switch {
            *switch = true;
            return value.is_none().then_some(());
        }
        let value = value?;
        let size = || value.parse::<ByteSize>().ok();
        let share = || value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        match key {
            "size" => self.size = Some(size().filter(|size| size.bytes() > 0)?),
            "capacity" => self.capacity = Some(size().filter(|size| size.bytes() > 0)?),
            "skip" => self.skip = Some(size()?),
            "max-open" => self.open_max = Some(value.parse().ok()?),
            "thread-max-open" => self.worker_open_max = Some(value.parse().ok()?),
            "depth" => self.depth = Some(value.parse().ok().filter(|depth| *depth > 0)?),
            "reset-threshold" => self.reset_threshold = Some(share()?),
            "reset-frequency" => self.reset_frequency = Some(share()?),
            _ => return None,
        }
        Some(())
    }
}
