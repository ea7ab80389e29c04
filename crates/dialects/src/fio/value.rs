//! Values of options: numbers with units, times, lists by direction.

use std::cell::RefCell;

use crate::fio::arithmetic::{evaluate, is_arithmetic};
use crate::fio::fault::shown;

/// A value for each of read, write and trim; none where it was left blank.
pub(crate) type Triple<T> = [Option<T>; 3];

/// Bytes, or a share of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Bytes(u64),
    /// 0 to 100.
    Percent(u8),
}

/// The text after an option, and how to read it.
pub(crate) struct Value<'a> {
    pub(crate) text: &'a str,
    /// 1000 or 1024: `kb_base`.
    pub(crate) kb_base: u64,
    /// Notes for the user on how it was read.
    pub(crate) notes: RefCell<Vec<String>>,
}

type Read<T> = Result<T, String>;

impl<'a> Value<'a> {
    pub(crate) fn new(text: &'a str, kb_base: u64) -> Self {
        Self { text, kb_base, notes: RefCell::new(Vec::new()) }
    }

    fn refused(&self, accepted: &str) -> String {
        format!("\"{}\": use {accepted}", shown(self.text))
    }

    /// 0 or 1; nothing is 1.
    pub(crate) fn flag(&self) -> Read<bool> {
        match self.text {
            "" | "1" => Ok(true),
            "0" => Ok(false),
            _ => Err(self.refused("0 or 1")),
        }
    }

    pub(crate) fn not(&self) -> Read<bool> {
        self.flag().map(|on| !on)
    }

    pub(crate) fn text(&self) -> Read<String> {
        if self.text.is_empty() { Err("needs a value".to_owned()) } else { Ok(self.text.to_owned()) }
    }

    /// A text that may be left out.
    pub(crate) fn prefix(&self) -> Read<String> {
        Ok(self.text.to_owned())
    }

    /// Bytes, or a plain number: fio reads all its integers with units.
    pub(crate) fn number(&self) -> Read<u64> {
        self.number_of(self.text)
    }

    /// A number from 0 to 1.
    pub(crate) fn fraction(&self) -> Read<f64> {
        let number = self.text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
        number.ok_or_else(|| self.refused("0 to 1, such as 0.5"))
    }

    pub(crate) fn positive(&self) -> Read<u64> {
        match self.number()? {
            0 => Err(self.refused("1 or more")),
            number => Ok(number),
        }
    }

    /// A whole number with a sign.
    pub(crate) fn signed(&self) -> Read<i64> {
        self.text.parse().map_err(|_| self.refused("a whole number such as -5"))
    }

    /// A share in percent, with decimals.
    pub(crate) fn share(&self) -> Read<f64> {
        let share = self.text.trim_end_matches('%').parse::<f64>().ok();
        share
            .filter(|share| *share > 0.0 && *share <= 100.0)
            .ok_or_else(|| self.refused("above 0 and up to 100, such as 99.9"))
    }

    /// A count of threads, files or operations in flight.
    pub(crate) fn count(&self) -> Read<u32> {
        u32::try_from(self.positive()?).map_err(|_| self.refused("1 to 4294967295"))
    }

    pub(crate) fn percent(&self) -> Read<u8> {
        self.percent_of(self.text)
    }

    fn percent_of(&self, text: &str) -> Read<u8> {
        match self.number_of(text)? {
            number @ 0..=100 => Ok(number as u8),
            _ => Err(self.refused("0 to 100")),
        }
    }

    pub(crate) fn percents(&self) -> Read<Triple<u8>> {
        self.by_direction(|part| self.percent_of(part))
    }

    /// A size, or a percentage of the target's.
    pub(crate) fn amount(&self) -> Read<Amount> {
        match self.text.strip_suffix('%') {
            Some(percent) if !percent.contains(['(', '+', '*']) => {
                self.percent_of(percent).map(Amount::Percent)
            }
            _ => self.number().map(Amount::Bytes),
        }
    }

    pub(crate) fn sizes(&self) -> Read<Triple<u64>> {
        self.by_direction(|part| match self.number_of(part)? {
            0 => Err(self.refused("1 or more")),
            size => Ok(size),
        })
    }

    /// Limits by direction, where 0 is none.
    pub(crate) fn limits(&self) -> Read<Triple<u64>> {
        let limits = self.by_direction(|part| self.number_of(part))?;
        Ok(limits.map(|limit| limit.filter(|&limit| limit > 0)))
    }

    /// `4k-64k`, by direction.
    pub(crate) fn ranges(&self) -> Read<Triple<(u64, u64)>> {
        let accepted = || self.refused("a range from a smaller to a larger size, such as 4k-64k");
        self.by_direction(|part| {
            let (low, high) = part.split_once(['-', ':']).ok_or_else(accepted)?;
            let (low, high) = (self.number_of(low.trim())?, self.number_of(high.trim())?);
            if low == 0 || low > high { Err(accepted()) } else { Ok((low, high)) }
        })
    }

    /// One size, or a range from a smaller to a larger one.
    pub(crate) fn size_range(&self) -> Read<(u64, u64)> {
        match self.text.split_once('-') {
            None => self.positive().map(|size| (size, size)),
            Some((low, high)) => {
                let (low, high) = (self.number_of(low.trim())?, self.number_of(high.trim())?);
                let is_range = low > 0 && low <= high;
                is_range.then_some((low, high)).ok_or_else(|| {
                    self.refused("a size, or a range from a smaller to a larger one, such as 4k-1m")
                })
            }
        }
    }

    /// `4k/70:64k/30`, by direction; sizes without a percentage share what is left.
    pub(crate) fn splits(&self) -> Read<Triple<Vec<(u64, u8)>>> {
        self.by_direction(|part| {
            let entries = part.split(':').map(|entry| self.split_entry(entry)).collect::<Read<Vec<_>>>()?;
            self.fill_shares(entries)
        })
    }

    fn split_entry(&self, entry: &str) -> Read<(u64, Option<u8>)> {
        let (size, percent) = entry.split_once('/').unwrap_or((entry, ""));
        let size = self.number_of(size.trim())?;
        let percent = if percent.is_empty() { None } else { Some(self.percent_of(percent)?) };
        Ok((size, percent))
    }

    /// Entries without a share divide the rest of 100 among them.
    pub(super) fn fill_shares<T>(&self, entries: Vec<(T, Option<u8>)>) -> Read<Vec<(T, u8)>> {
        let given: u32 = entries.iter().filter_map(|(_, share)| *share).map(u32::from).sum();
        let blank = entries.iter().filter(|(_, share)| share.is_none()).count() as u32;
        let rest =
            100u32.checked_sub(given).filter(|rest| if blank == 0 { *rest == 0 } else { *rest >= blank });
        let Some(rest) = rest else {
            return Err(self.refused("percentages that add up to 100"));
        };
        let mut place = 0;
        let shares = entries.into_iter().map(|(entry, share)| {
            let share = share.unwrap_or_else(|| {
                place += 1;
                (rest / blank + u32::from(place <= rest % blank)) as u8
            });
            (entry, share)
        });
        Ok(shares.collect())
    }

    /// One part for all directions; two for reads and for the rest; a blank part is not said.
    pub(super) fn by_direction<T: Clone>(&self, read: impl Fn(&str) -> Read<T>) -> Read<Triple<T>> {
        let parts: Vec<&str> = self.text.split(',').map(str::trim).collect();
        if parts.len() > 3 || parts.iter().all(|part| part.is_empty()) {
            return Err(self.refused("one value, or up to three for reads, writes and trims"));
        }
        let read = |part: &&str| if part.is_empty() { Ok(None) } else { read(part).map(Some) };
        let parts = parts.iter().map(read).collect::<Read<Vec<_>>>()?;
        let at = |place: usize| parts[place.min(parts.len() - 1)].clone();
        Ok([at(0), at(1), at(2)])
    }

    /// A time in nanoseconds; a plain number is seconds.
    pub(crate) fn seconds(&self) -> Read<u64> {
        self.time(1_000_000_000)
    }

    /// A time in nanoseconds; a plain number is milliseconds.
    pub(crate) fn milliseconds(&self) -> Read<u64> {
        self.time(1_000_000)
    }

    /// A time in nanoseconds; a plain number is microseconds.
    pub(crate) fn microseconds(&self) -> Read<u64> {
        self.time(1000)
    }

    fn time(&self, plain_ns: u64) -> Read<u64> {
        let accepted = "a time such as 500ms, 30s or 5m (us, ms, s, m, h, d)";
        let read = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let unit_ns = match text[end..].to_ascii_lowercase().as_str() {
                "" => Some(plain_ns),
                "us" | "usec" => Some(1000),
                "ms" | "msec" => Some(1_000_000),
                "s" => Some(1_000_000_000),
                "m" => Some(60_000_000_000),
                "h" => Some(3_600_000_000_000),
                "d" => Some(86_400_000_000_000),
                _ => None,
            };
            let number: Option<u64> = text[..end].parse().ok();
            let span = number.zip(unit_ns).and_then(|(number, unit_ns)| number.checked_mul(unit_ns));
            span.ok_or_else(|| self.refused(accepted))
        };
        if self.text.starts_with('(') {
            evaluate(self.text, &read).map_err(|message| format!("\"{}\" {message}", shown(self.text)))
        } else {
            read(self.text)
        }
    }

    pub(super) fn number_of(&self, text: &str) -> Read<u64> {
        if text.starts_with('(') || is_arithmetic(text) {
            let read = |word: &str| self.plain_number(word);
            return evaluate(text, &read).map_err(|message| format!("\"{}\" {message}", shown(self.text)));
        }
        self.plain_number(text)
    }

    /// Digits, or `0x` and hexadecimal ones, and a unit. fio would read `1.5g` as 1 byte and `1zz` as 1: both are refused.
    fn plain_number(&self, text: &str) -> Read<u64> {
        let accepted = "a whole number with an optional k, m, g, t or p, such as 4k";
        let text = text.to_ascii_lowercase();
        if let Some(digits) = text.strip_prefix("0x") {
            let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
            return number.ok_or_else(|| self.refused(accepted));
        }
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit = self.unit(&text[end..]);
        let number =
            text[..end].parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
        number.ok_or_else(|| self.refused(accepted))
    }

    /// With `kb_base=1024` fio turns the meaning of the units round: `k` is 1024 and `kib` is 1000.
    fn unit(&self, suffix: &str) -> Option<u64> {
        if suffix.is_empty() || suffix == "b" {
            return Some(1);
        }
        let power = "kmgtp".find(suffix.chars().next()?)? as u32 + 1;
        match &suffix[1..] {
            "" | "b" => Some(self.kb_base.pow(power)),
            "ib" if self.kb_base == 1000 => Some(1024u64.pow(power)),
            "ib" => {
                let note = format!(
                    "{} is read as a power of 1000, as in fio unless kb_base=1000 is set; write {} for powers of 1024",
                    shown(self.text),
                    suffix.chars().next()?
                );
                self.notes.borrow_mut().push(note);
                Some(1000u64.pow(power))
            }
            _ => None,
        }
    }

    /// One of these words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Read<T> {
        let found = choices.iter().find(|(name, _)| *name == self.text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.refused(&format!("one of {}", names.join(", ")))
        })
    }

    /// `90:99:99.9`, ascending.
    pub(crate) fn percentiles(&self) -> Read<Vec<f64>> {
        let accepted = "up to 20 percentages above 0 and up to 100, such as 50:90:99.9";
        let read = |part: &str| {
            let plain = part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            plain.then(|| part.parse::<f64>().ok()).flatten().filter(|value| *value > 0.0 && *value <= 100.0)
        };
        let list = self.text.split(':').map(|part| read(part.trim())).collect::<Option<Vec<f64>>>();
        let mut list = list.filter(|list| list.len() <= 20).ok_or_else(|| self.refused(accepted))?;
        list.sort_by(f64::total_cmp);
        list.dedup();
        Ok(list)
    }

    /// `0,2,4-7`.
    pub(crate) fn indexes(&self) -> Read<Vec<u32>> {
        let list = self.text.replace(' ', "");
        units::parse_index_list("processors", &list, 65_536)
            .map_err(|_| self.refused("numbers and ranges, such as 0,2,4-7"))
    }

    /// The bits of a mask.
    pub(crate) fn mask(&self) -> Read<Vec<u32>> {
        let mask = self.positive()?;
        Ok((0..64).filter(|bit| mask >> bit & 1 == 1).collect())
    }
}
