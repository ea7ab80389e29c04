//! Values that are words of fio's own.

use workload::control::SteadyFigure;
use workload::replay::ReplayClass;
use workload::spec::{CoresPolicy, Operation, Spacing};

use crate::fio::draft::{Access, Advise, Engine, HttpMode, Https, OnErrors, PatternPart, Verify, ZoneMode};
use crate::fio::engines::{ENGINES, OTHER_ENGINES};
use crate::fio::fault::shown;
use crate::fio::model::{LogValue, Unified};
use crate::fio::value::Value;

type Read<T> = Result<T, String>;

const ACCESSES: &[(&str, Operation)] = &[
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("trim", Operation::Discard),
    ("randread", Operation::RandRead),
    ("randwrite", Operation::RandWrite),
    ("randtrim", Operation::RandDiscard),
    ("rw", Operation::ReadWrite),
    ("readwrite", Operation::ReadWrite),
    ("randrw", Operation::RandRw),
    ("trimwrite", Operation::DiscardWrite),
    ("randtrimwrite", Operation::RandDiscardWrite),
];

impl Value<'_> {
    fn wrong(&self, accepted: &str) -> String {
        format!("\"{}\": use {accepted}", shown(self.text))
    }

    pub(crate) fn access(&self) -> Read<Access> {
        let accepted =
            "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite or randtrimwrite";
        let (word, rest) = match self.text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (self.text, None),
        };
        let found = ACCESSES.iter().find(|(name, _)| *name == word);
        let operation = found.map(|(_, operation)| *operation).ok_or_else(|| self.wrong(accepted))?;
        let mut access = Access { operation, gap_bytes: 0, run: 1 };
        let Some(rest) = rest else { return Ok(access) };
        let number = |text| Value { text, kb_base: self.kb_base, notes: Default::default() }.number();
        if operation.is_random() {
            access.run = number(rest)?.max(1);
        } else {
            let (sign, bytes) = rest.strip_prefix('-').map_or((1, rest), |bytes| (-1, bytes));
            let bytes = i64::try_from(number(bytes)?).map_err(|_| self.wrong("a gap such as read:8k"))?;
            access.gap_bytes = sign * bytes;
        }
        Ok(access)
    }

    /// Whether the operations of a run have the same position.
    pub(crate) fn sequencer(&self) -> Read<bool> {
        self.choice(&[("sequential", false), ("identical", true)])
    }

    /// A percentage of which fio reads the part before the point.
    pub(crate) fn mix_percent(&self) -> Read<u8> {
        let Some((whole, part)) = self.text.split_once('.') else { return self.percent() };
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(self.wrong("0 to 100"));
        }
        if part.bytes().any(|byte| byte != b'0') {
            self.notes.borrow_mut().push(format!("{} is read as {whole}, as fio does", self.text));
        }
        Value { text: whole, kb_base: self.kb_base, notes: Default::default() }.percent()
    }

    /// The percentage that the other direction has.
    pub(crate) fn mix_rest_percent(&self) -> Read<u8> {
        self.mix_percent().map(|percent| 100 - percent)
    }

    pub(crate) fn zone_mode(&self) -> Read<ZoneMode> {
        self.choice(&[("none", ZoneMode::None), ("strided", ZoneMode::Strided), ("zbd", ZoneMode::Zbd)])
    }

    /// Whether copies are of a working set.
    pub(crate) fn dedupe_mode(&self) -> Read<bool> {
        self.choice(&[("repeat", false), ("working_set", true)])
    }

    /// 0, 1 and 2 are of a time when it was a number.
    pub(crate) fn unified(&self) -> Read<Unified> {
        self.choice(&[
            ("none", Unified::None),
            ("mixed", Unified::Mixed),
            ("both", Unified::Both),
            ("0", Unified::None),
            ("1", Unified::Mixed),
            ("2", Unified::Both),
        ])
    }

    pub(crate) fn engine(&self) -> Read<Engine> {
        let refuse = |name: &str, why: &str| Err(format!("engine {} is not supported: {why}", shown(name)));
        if self.text.is_empty() {
            return Err("needs a value".to_owned());
        }
        if let Some(&(name, ours, difference)) = ENGINES.iter().find(|(name, ..)| *name == self.text) {
            return Ok(Engine { typed: name.to_owned(), ours, difference });
        }
        if let Some((name, why)) = OTHER_ENGINES.iter().find(|(name, _)| *name == self.text) {
            return refuse(name, why);
        }
        let is_external = self.text.starts_with("external:") || self.text.contains('/');
        let why = if is_external {
            "external engines cannot be loaded"
        } else {
            "no such engine exists for files or block devices"
        };
        let names: Vec<&str> = ENGINES.iter().map(|(name, ..)| *name).collect();
        refuse(self.text, &format!("{why}; alternative: one of {}", names.join(", ")))
    }

    /// In the words of `--pattern`; none for `random`.
    pub(crate) fn distribution(&self) -> Read<String> {
        if let Some(blocks) = self.text.strip_prefix("sequence:") {
            return checked_pattern(format!("sequence:{}", blocks.replace(' ', "")));
        }
        let parts: Vec<&str> = self.text.split(',').map(str::trim).collect();
        if parts.iter().any(|part| *part != parts[0]) {
            return Err(
                "a distribution for each direction is not supported; alternative: one distribution for all"
                    .to_owned(),
            );
        }
        let (word, rest) = match parts[0].split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (parts[0], None),
        };
        if rest.is_some_and(|rest| !word.starts_with("zoned") && rest.contains([':', '/'])) {
            return Err(format!(
                "the centre in {} is not supported: strata's distributions have no centre; alternative: {word} without it",
                shown(self.text)
            ));
        }
        match (word, rest) {
            ("random", None) => Ok(String::new()),
            ("zipf", theta) => Ok(format!("zipf:{}", theta.unwrap_or("1.1"))),
            ("pareto", power) => Ok(format!("pareto:{}", power.unwrap_or("0.2"))),
            ("normal", Some(deviation)) => Ok(format!("normal:{deviation}")),
            ("normal", None) => Err("needs a deviation in percent, such as normal:10".to_owned()),
            ("zoned", Some(zones)) => self.zones(zones),
            ("zoned_abs", _) => Err(
                "zoned_abs is not supported: zones are given in percent of the range; alternative: zoned:50/5:30/15:20/80"
                    .to_owned(),
            ),
            _ => Err(self
                .wrong("random, zipf:1.2, pareto:0.2, normal:10, zoned:50/5:30/15:20/80 or sequence:2,0,1")),
        }
        .and_then(checked_pattern)
    }

    /// `50/5:30/15:20/` in shares of accesses and of the range.
    fn zones(&self, text: &str) -> Read<String> {
        let share = |part: &str| match part {
            "" => Ok(None),
            part => part.parse::<u8>().map(Some).map_err(|_| self.wrong("whole percentages")),
        };
        let zone = |zone: &str| {
            let (access, size) = zone.split_once('/').unwrap_or((zone, ""));
            Ok((share(size)?, share(access)?))
        };
        let zones = text.split(':').map(zone).collect::<Read<Vec<_>>>()?;
        let by_access = self.fill_shares(zones)?;
        let sizes = by_access.into_iter().map(|(size, access)| (access, size)).collect();
        let zones: Vec<String> =
            self.fill_shares(sizes)?.iter().map(|(access, size)| format!("{access}/{size}")).collect();
        Ok(format!("zoned:{}", zones.join(",")))
    }

    pub(crate) fn layout(&self) -> Read<&'static str> {
        let why = match self.text {
            "none" | "0" | "truncate" => return Ok("sparse"),
            "native" | "posix" | "1" => return Ok("allocate"),
            "keep" => "strata does not allocate space beyond the end of a file",
            _ => return Err(self.wrong("none, native, posix or truncate")),
        };
        Err(format!("{} is not supported: {why}; use none, native, posix or truncate", self.text))
    }

    pub(crate) fn verification(&self) -> Read<Verify> {
        const SUMS: &[&str] = &[
            "md5",
            "crc64",
            "crc32",
            "crc32c",
            "crc32c-intel",
            "crc16",
            "crc7",
            "sha1",
            "sha256",
            "sha512",
            "sha3-224",
            "sha3-256",
            "sha3-384",
            "sha3-512",
            "xxhash",
            "meta",
            "pattern_hdr",
        ];
        match self.text {
            "0" => Ok(Verify::Nothing),
            "pattern" => Ok(Verify::Pattern),
            "null" => {
                Err("null is not supported: it checks nothing; alternative: leave verify out".to_owned())
            }
            text if SUMS.contains(&text) => Ok(Verify::Headers),
            _ => Err(self.wrong("crc32c, md5, sha256, xxhash, another checksum of fio, or pattern")),
        }
    }

    /// Whether it is `completed` or `fsynced`, which says what a file of state counts.
    pub(crate) fn verify_policy(&self) -> Read<String> {
        self.choice(&[("completed", "completed"), ("fsynced", "fsynced")]).map(str::to_owned)
    }

    pub(crate) fn arrivals(&self) -> Read<Spacing> {
        self.choice(&[("linear", Spacing::Constant), ("poisson", Spacing::Poisson)])
    }

    pub(crate) fn cores_policy(&self) -> Read<CoresPolicy> {
        self.choice(&[("shared", CoresPolicy::Shared), ("split", CoresPolicy::Split)])
    }

    pub(crate) fn on_errors(&self) -> Read<OnErrors> {
        self.choice(&[
            ("none", OnErrors::None),
            // Wrong blocks are all counted, unless verify_fatal ends the job at the first.
            ("verify", OnErrors::None),
            ("0", OnErrors::None),
            ("read", OnErrors::Reads),
            ("write", OnErrors::Writes),
            ("io", OnErrors::All),
            ("all", OnErrors::All),
            ("1", OnErrors::All),
        ])
    }

    /// Whether operations are to be issued by other threads than the one that paces them.
    pub(crate) fn submit_mode(&self) -> Read<bool> {
        self.choice(&[("inline", false), ("offload", true)])
    }

    /// `read,trim`: kinds of operations.
    pub(crate) fn replay_classes(&self) -> Read<Vec<ReplayClass>> {
        const CLASSES: &[(&str, ReplayClass)] = &[
            ("read", ReplayClass::Read),
            ("write", ReplayClass::Write),
            ("trim", ReplayClass::Discard),
            ("sync", ReplayClass::Sync),
        ];
        let class =
            |word: &str| CLASSES.iter().find(|(name, _)| *name == word.trim()).map(|(_, class)| *class);
        let classes = self.text.split(',').map(class).collect::<Option<Vec<_>>>();
        classes.ok_or_else(|| self.wrong("read, write, trim and sync, separated by commas"))
    }

    pub(crate) fn power_of_two(&self) -> Read<u64> {
        self.number()?
            .checked_next_power_of_two()
            .filter(|power| Ok(*power) == self.number())
            .ok_or_else(|| self.wrong("a power of 2, such as 4k"))
    }

    /// Whether pauses count what was issued.
    pub(crate) fn think_kind(&self) -> Read<bool> {
        self.choice(&[("complete", false), ("issue", true)])
    }

    /// Advice to the kernel on the order of access.
    pub(crate) fn advice(&self) -> Read<Advise> {
        self.choice(&[
            ("0", Advise::Nothing),
            ("none", Advise::Nothing),
            ("", Advise::ByOrder),
            ("1", Advise::ByOrder),
            ("sequential", Advise::Sequential),
            ("random", Advise::Random),
            ("noreuse", Advise::NoReuse),
        ])
    }

    /// `iops:10%` as figure and limit.
    pub(crate) fn steady(&self) -> Read<(String, String)> {
        let accepted = "iops, bw, lat, iops_slope, bw_slope or lat_slope and a limit, such as iops:10%";
        let (figure, limit) = self.text.split_once(':').ok_or_else(|| self.wrong(accepted))?;
        let known = SteadyFigure::ALL.iter().find(|(name, _)| *name == figure);
        let known = known.ok_or_else(|| self.wrong(accepted))?.1;
        let number = limit.trim_end_matches('%');
        let is_number = number.parse::<f64>().is_ok_and(|limit| limit.is_finite() && limit >= 0.0);
        let limit = if is_number {
            limit.to_owned()
        } else if known.is_latency() {
            // fio takes the number alone; a unit that is written is meant.
            format!("{}ns", Value::new(limit, self.kb_base).microseconds()?)
        } else {
            self.number_of(limit)?.to_string()
        };
        Ok((figure.to_owned(), limit))
    }

    /// `EIO:ENOSPC,ENOSPC` (reads, writes, trims) in the words of `--ignore-error`.
    pub(crate) fn ignored(&self) -> Read<String> {
        let classes = ["read", "write", "discard"];
        let parts: Vec<&str> = self.text.split(',').collect();
        if parts.len() > classes.len() {
            return Err(self.wrong("lists of errors for reads, writes and trims, such as EIO,ENOSPC:EDQUOT"));
        }
        let errors = |(class, list): (&&str, &&str)| {
            let one = |error: &str| {
                workload::control::errno(error.trim()).map_err(|error| error.to_string())?;
                Ok(format!("{class}:{}", error.trim()))
            };
            list.split(':').filter(|error| !error.trim().is_empty()).map(one).collect::<Read<Vec<String>>>()
        };
        Ok(classes.iter().zip(&parts).map(errors).collect::<Read<Vec<_>>>()?.concat().join(","))
    }

    /// Value in lines of averaged logs.
    pub(crate) fn log_value(&self) -> Read<LogValue> {
        self.choice(&[
            ("avg", LogValue::Mean),
            ("0", LogValue::Mean),
            ("max", LogValue::Largest),
            ("1", LogValue::Largest),
            ("both", LogValue::Both),
        ])
    }

    /// Whether a processor sorts numbers.
    pub(crate) fn cpu_mode(&self) -> Read<bool> {
        self.choice(&[("noop", false), ("qsort", true)])
    }

    /// Whether the generator of positions has each block once without a map.
    pub(crate) fn generator(&self) -> Read<bool> {
        self.choice(&[("tausworthe", false), ("lfsr", true), ("tausworthe64", false)])
    }

    /// In the words of `--sync`.
    pub(crate) fn sync_mode(&self) -> Read<String> {
        let word = self.choice(&[
            ("none", "none"),
            ("0", "none"),
            ("sync", "sync"),
            ("1", "sync"),
            ("dsync", "dsync"),
        ]);
        word.map(str::to_owned)
    }

    /// Whether buffers lie on huge pages.
    pub(crate) fn memory(&self) -> Read<bool> {
        let (word, file) = self.text.split_once(':').unwrap_or((self.text, ""));
        if !file.is_empty() {
            return Err("a file for the buffers is not supported; alternative: mem=mmaphuge without a file"
                .to_owned());
        }
        match word {
            "malloc" | "shm" | "mmap" => Ok(false),
            "shmhuge" | "mmaphuge" => Ok(true),
            "mmapshared" | "cudamalloc" => Err(format!(
                "{word} is not supported: buffers are private host memory; alternative: malloc or mmaphuge"
            )),
            _ => Err(self.wrong("malloc, shm, mmap, shmhuge or mmaphuge")),
        }
    }

    pub(crate) fn https(&self) -> Read<Https> {
        self.choice(&[("off", Https::Off), ("on", Https::On), ("insecure", Https::Insecure)])
    }

    pub(crate) fn http_mode(&self) -> Read<HttpMode> {
        self.choice(&[("webdav", HttpMode::WebDav), ("s3", HttpMode::S3), ("swift", HttpMode::Swift)])
    }

    /// Whether a file is one object that is read by ranges.
    pub(crate) fn http_object_mode(&self) -> Read<bool> {
        self.choice(&[("block", false), ("range", true)])
    }

    pub(crate) fn kb_base(&self) -> Read<u32> {
        self.choice(&[("1024", 1024), ("1000", 1000)])
    }

    /// 8 for bytes, 1 for bits.
    pub(crate) fn unit_base(&self) -> Read<u32> {
        self.choice(&[("0", 8), ("8", 8), ("1", 1)])
    }

    /// A pattern: strings in quotes, hexadecimal digits, decimal numbers, `%o` and names of files in single quotes, one after the other.
    pub(crate) fn content(&self) -> Read<Vec<PatternPart>> {
        let accepted =
            "bytes such as 0xdeadbeef, \"text\" in quotes, a number, %o, or a file in single quotes";
        let mut parts: Vec<PatternPart> = Vec::new();
        let mut rest = self.text;
        while let Some(first) = rest.chars().next() {
            if first == '"' || first == '\'' {
                let (string, after) = rest[1..].split_once(first).ok_or_else(|| self.wrong(accepted))?;
                parts.push(match first {
                    '"' => PatternPart::Bytes(string.into()),
                    _ => PatternPart::File(string.to_owned()),
                });
                rest = after;
            } else if let Some(after) = rest.strip_prefix("%o") {
                parts.push(PatternPart::Offset);
                rest = after;
            } else if let Some(after) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
                let end = hex_end(after);
                parts.push(PatternPart::Bytes(hex_bytes(&after[..end]).ok_or_else(|| self.wrong(accepted))?));
                rest = &after[end..];
            } else {
                let end = decimal_end(rest);
                let number: i32 = rest[..end].parse().map_err(|_| self.wrong(accepted))?;
                parts.push(PatternPart::Bytes(little_bytes(number)));
                rest = &rest[end..];
            }
        }
        let bytes = |part: &PatternPart| if let PatternPart::Bytes(bytes) = part { bytes.len() } else { 8 };
        let length: usize = parts.iter().map(bytes).sum();
        if length == 0 || length > 512 {
            return Err(self.wrong("1 to 512 bytes, such as 0xdeadbeef, or a file in single quotes"));
        }
        Ok(parts)
    }
}

fn checked_pattern(text: String) -> Read<String> {
    if !text.is_empty() {
        text.parse::<workload::plan::Pattern>().map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// Hexadecimal digits up to what is none, or up to the next `0x`.
fn hex_end(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let next = text.as_bytes().get(end).is_some_and(|byte| matches!(byte, b'x' | b'X'));
    if next && text[..end].ends_with('0') { end - 1 } else { end }
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = if digits.len().is_multiple_of(2) { digits.to_owned() } else { format!("0{digits}") };
    let byte = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    if digits.is_empty() { None } else { (0..digits.len()).step_by(2).map(byte).collect() }
}

fn decimal_end(text: &str) -> usize {
    let after = text.strip_prefix('-').unwrap_or(text);
    let sign = text.len() - after.len();
    if let Some(next) = after.find("0x").filter(|&at| at > 0) {
        return sign + next.min(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(next));
    }
    sign + after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())
}

/// The bytes of a number, lowest first, without the zeros at the top.
fn little_bytes(number: i32) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    let used = 4 - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    bytes[..used.max(1)].to_vec()
}
