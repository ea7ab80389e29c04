//! Operations of a log, done again one by one.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::ParseError;

/// Largest operation: what one call of the kernel takes.
const LENGTH_BYTES_MAX: u64 = 1 << 31;
/// Waits below this are not kept, as fio does not, in nanoseconds.
const WAIT_NS_MIN: u64 = 100_000;

/// Class of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplayClass {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Discard,
    /// Makes the target's data durable.
    Sync,
}

/// One operation of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayStep {
    /// When it is due, in nanoseconds from the first.
    pub at_ns: u64,
    /// Where in its target, in bytes.
    pub offset_bytes: u64,
    /// Bytes; 0 of a sync.
    pub length_bytes: u32,
    /// Number of its target among the log's files.
    pub target: u16,
    /// Class of the operation.
    pub class: ReplayClass,
}

/// The operations of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The log's path.
    pub log: String,
    /// Files that its operations are on, in the order of their numbers.
    pub files: Vec<String>,
    /// In the order of the log.
    pub steps: Arc<[ReplayStep]>,
    /// Whether operations start when they are due; else as soon as there is room.
    pub is_timed: bool,
}

/// A log on its way to another process.
pub(crate) mod shipped {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Replay, ReplayStep};

    type Parts = (String, Vec<String>, Vec<ReplayStep>, bool);

    pub(crate) fn serialize<S: Serializer>(
        replay: &Option<Arc<Replay>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let parts = |replay: &Arc<Replay>| {
            (replay.log.clone(), replay.files.clone(), replay.steps.to_vec(), replay.is_timed)
        };
        replay.as_ref().map(parts).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<Replay>>, D::Error> {
        let parts = Option::<Parts>::deserialize(deserializer)?;
        Ok(parts.map(|(log, files, steps, is_timed)| {
            Arc::new(Replay { log, files, steps: steps.into(), is_timed })
        }))
    }
}

/// The operations of a log, in a plan; the operations themselves stand in no record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayPlan {
    /// The log's path.
    pub log: String,
    /// How many operations it has.
    pub operations: u64,
    /// Whether they start when the log says; else as soon as there is room.
    pub is_timed: bool,
    /// The operations.
    #[serde(skip)]
    #[schemars(skip)]
    pub steps: Arc<[ReplayStep]>,
}

impl Replay {
    /// Whether an operation of this class is in it.
    #[must_use]
    pub fn has(&self, class: ReplayClass) -> bool {
        self.steps.iter().any(|step| step.class == class)
    }

    /// The largest read or write, in bytes.
    #[must_use]
    pub fn block_bytes_max(&self) -> u64 {
        let moves = self.steps.iter().filter(|step| step.class != ReplayClass::Discard);
        moves.map(|step| u64::from(step.length_bytes)).max().unwrap_or(0)
    }

    /// The byte behind the last that is touched of a target.
    #[must_use]
    pub fn end_bytes(&self, target: usize) -> u64 {
        let of_target = self.steps.iter().filter(|step| usize::from(step.target) == target);
        of_target.map(|step| step.offset_bytes + u64::from(step.length_bytes)).max().unwrap_or(0)
    }
}

/// Reads fio's logs of operations, of version 2 and 3.
///
/// # Errors
/// The line that cannot be read, or another version.
pub fn parse_log(log: &str, text: &str) -> Result<Replay, ParseError> {
    let mut lines = text.lines().enumerate();
    let has_times = match lines.next().map(|(_, line)| line.trim()) {
        Some("fio version 2 iolog") => false,
        Some("fio version 3 iolog") => true,
        first => {
            let found = first.unwrap_or("").chars().take(40).collect::<String>();
            let accepted = "a log that begins with fio version 2 iolog or fio version 3 iolog; binary blktrace files are not supported";
            return Err(ParseError::new("the first line of a log", found, accepted));
        }
    };
    let mut reader = Reader { files: Vec::new(), steps: Vec::new(), at_ns: 0 };
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let refused = |accepted: &str| {
            ParseError::new(format!("line {} of {log}", number + 1), line, accepted.to_owned())
        };
        reader.line(line, has_times).map_err(refused)?;
    }
    let begin_ns = reader.steps.first().map_or(0, |step| step.at_ns);
    reader.steps.iter_mut().for_each(|step| step.at_ns = step.at_ns.saturating_sub(begin_ns));
    Ok(Replay { log: log.to_owned(), files: reader.files, steps: reader.steps.into(), is_timed: true })
}

struct Reader {
    files: Vec<String>,
    steps: Vec<ReplayStep>,
    /// The time of the line, or what was waited so far.
    at_ns: u64,
}

impl Reader {
    fn line(&mut self, line: &str, has_times: bool) -> Result<(), &'static str> {
        const ACCEPTED: &str = "[time] file action [offset length], with the actions add, open, close, read, write, trim, sync, datasync, and wait in version 2";
        let mut words = line.split_whitespace();
        if has_times {
            let us: u64 = words.next().and_then(|word| word.parse().ok()).ok_or(ACCEPTED)?;
            self.at_ns = self.at_ns.max(us.saturating_mul(1000));
        }
        let (file, action) = words.next().zip(words.next()).ok_or(ACCEPTED)?;
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let (offset, length) = (number(), number());
        let class = match action {
            "add" | "open" | "close" => {
                if action == "add" && !self.files.iter().any(|known| known == file) {
                    self.files.push(file.to_owned());
                }
                return Ok(());
            }
            "wait" if !has_times => {
                let ns = offset.ok_or(ACCEPTED)?.saturating_mul(1000);
                self.at_ns += if ns < WAIT_NS_MIN { 0 } else { ns };
                return Ok(());
            }
            "read" => ReplayClass::Read,
            "write" => ReplayClass::Write,
            "trim" => ReplayClass::Discard,
            "sync" | "datasync" => ReplayClass::Sync,
            _ => return Err(ACCEPTED),
        };
        let target = self.files.iter().position(|known| known == file);
        let target = target.ok_or("a file that an earlier add line names")?;
        let target = u16::try_from(target).map_err(|_| "at most 65535 files")?;
        let (offset_bytes, length) = match class {
            ReplayClass::Sync => (0, 0),
            _ => offset.zip(length).filter(|(_, length)| *length > 0).ok_or(ACCEPTED)?,
        };
        if length > LENGTH_BYTES_MAX || offset_bytes > i64::MAX as u64 - LENGTH_BYTES_MAX {
            return Err("operations of at most 2 GiB, below 8 EiB");
        }
        let length_bytes = length as u32;
        self.steps.push(ReplayStep { at_ns: self.at_ns, offset_bytes, length_bytes, target, class });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let made = parse_log(
            "x",
            "fio version 3 iolog\n22 qa add\n28 qb add\n124 qa open\n127 qa read 0 4096\n500 qb write 8192 512\n501 qb sync 0 0\n510 qa close\n",
        )
        .unwrap();
        assert_eq!(made.files, ["qa", "qb"]);
        let steps: Vec<_> = made.steps.iter().map(|step| (step.at_ns, step.target, step.class)).collect();
        let (read, write, sync) = (ReplayClass::Read, ReplayClass::Write, ReplayClass::Sync);
        assert_eq!(steps, [(0, 0, read), (373_000, 1, write), (374_000, 1, sync)]);
        assert_eq!((made.end_bytes(0), made.end_bytes(1), made.block_bytes_max()), (4096, 8704, 4096));
        let made = parse_log(
            "x",
            "fio version 2 iolog\n/a add\n/a open\n/a read 0 512\n/a wait 50 0\n/a wait 2000 0\n/a trim 0 2147483648\n",
        )
        .unwrap();
        assert_eq!((made.steps[1].at_ns, made.steps[1].length_bytes), (2_000_000, 1 << 31));
        assert!(made.has(ReplayClass::Discard) && !made.has(ReplayClass::Write));
    }

    #[test]
    fn what_is_no_log_is_refused_by_its_line() {
        for text in [
            "",
            "0, 4096, 512",
            "fio version 4 iolog",
            "fio version 3 iolog\n1 a read 0 512",
            "fio version 3 iolog\n1 a add\n2 a wait 100 0",
            "fio version 3 iolog\nx a add",
            "fio version 2 iolog\na add\na erase 0 512",
            "fio version 2 iolog\na add\na read 0 0",
            "fio version 2 iolog\na add\na read 0 4294967296",
            "fio version 2 iolog\na add\na read 9223372036854775807 512",
        ] {
            parse_log("x", text).unwrap_err();
        }
        let error = parse_log("my.log", "fio version 2 iolog\na add\na erase 0 512").unwrap_err().to_string();
        assert!(error.contains("line 3 of my.log"), "{error}");
    }
}
