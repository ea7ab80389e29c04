//! Data that is written and checked, and data that lies there before.

use units::ByteSize;
use workload::class_sizes::ClassSizes;
use workload::spec::Refill;

use super::Site;
use super::targets::Files;
use crate::fio::draft::{PatternPart, Verify};
use crate::fio::fault::{Fault, shown};

/// Most bytes of a file that is a pattern.
const PATTERN_FILE_BYTES_MAX: usize = 1 << 20;

impl Site<'_> {
    pub(super) fn data(&mut self, files: &Files) -> Result<(), Fault> {
        if !files.is_null {
            self.layout()?;
            let cache = match (self.draft.pre_read, self.draft.invalidate) {
                (Some(true), _) => "warm",
                (_, Some(false)) => "keep",
                _ => "drop",
            };
            self.set("invalidate", "cache", cache)?;
        }
        // Reads of a job are checked where its writes would be.
        let reads_unchecked = self.draft.do_verify == Some(false) && !self.writes();
        if self.draft.verifies() && !reads_unchecked { self.verification(files) } else { self.content(files) }
    }

    /// fio writes the files of jobs that read, and allocates those of jobs that only write.
    fn layout(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if self.spec.replay.is_some() {
            return Ok(());
        }
        let on_open = draft.create_on_open == Some(true);
        if on_open && self.reads() {
            return Err(Fault::of(
                "create_on_open",
                "is not supported for a job that reads: it would read unwritten data; alternative: 0",
            ));
        }
        let layout = if self.reads() || draft.overwrite == Some(true) {
            "fill"
        } else if on_open {
            "sparse"
        } else {
            draft.fallocate.unwrap_or("allocate")
        };
        self.set("fallocate", "layout", layout)
    }

    pub(super) fn content(&mut self, files: &Files) -> Result<(), Fault> {
        let draft = self.draft;
        if draft.verify_only == Some(true) && !draft.verifies() {
            return Err(Fault::of("verify_only", "requires verify=crc32c or another checksum"));
        }
        if !self.writes() {
            return Ok(());
        }
        let compress = draft.buffer_compress_percentage.unwrap_or(0);
        let dedupe = draft.dedupe_percentage.unwrap_or(0);
        if draft.zero_buffers == Some(true) || compress == 100 {
            return self.set("zero_buffers", "content", "zero");
        }
        if let Some(parts) = &draft.buffer_pattern {
            if compress > 0 || dedupe > 0 {
                return Err(Fault::of(
                    "buffer_pattern",
                    "defines all of the data: leave out the compression and deduplication percentages",
                ));
            }
            if parts.contains(&PatternPart::Offset) {
                return Err(Fault::of(
                    "buffer_pattern",
                    "%o is not supported: the content of a buffer does not depend on its offset; alternative: verify_pattern with verify=pattern",
                ));
            }
            let bytes = self.pattern("buffer_pattern", parts)?;
            return self.set("buffer_pattern", "content", &bytes);
        }
        if compress > 0 || dedupe > 0 {
            self.spec.compress = (compress > 0).then_some(compress);
            self.spec.dedupe = (dedupe > 0).then_some(dedupe);
            self.working_set(files)?;
            self.spec.refill = Some(Refill::Full);
            return Ok(());
        }
        self.spec.refill = Some(if draft.refill_buffers == Some(true) {
            Refill::Full
        } else if draft.scramble_buffers.unwrap_or(true) {
            Refill::Stamp
        } else {
            Refill::Once
        });
        Ok(())
    }

    /// The blocks that the copies of `dedupe_percentage` are copies of.
    fn working_set(&mut self, files: &Files) -> Result<(), Fault> {
        let draft = self.draft;
        if draft.dedupe_percentage.unwrap_or(0) == 0 {
            return Ok(());
        }
        self.spec.dedupe_global = draft.dedupe_global == Some(true);
        if draft.dedupe_working_set != Some(true) {
            return Ok(());
        }
        let percent =
            draft.dedupe_working_set_percentage.filter(|&percent| percent > 0).ok_or_else(|| {
                let message =
                    "working_set requires dedupe_working_set_percentage, its percentage of the job's size";
                Fault::of("dedupe_mode", message)
            })?;
        let range_bytes = self.range_bytes(files).ok_or_else(|| {
            Fault::of(
                "dedupe_working_set_percentage",
                "is a percentage of the job's size: give size, as in fio",
            )
        })?;
        let set_bytes = u128::from(range_bytes) * u128::from(percent) / 100;
        self.spec.dedupe_set = Some(ByteSize((set_bytes as u64).max(1)));
        Ok(())
    }

    /// A pattern in the words of `--verify-pattern`.
    fn pattern(&self, key: &str, parts: &[PatternPart]) -> Result<String, Fault> {
        let mut made: Vec<String> = Vec::new();
        let mut bytes: Vec<u8> = Vec::new();
        let hex = |bytes: &[u8]| bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"));
        for part in parts {
            match part {
                PatternPart::Bytes(more) => bytes.extend(more),
                PatternPart::File(path) => {
                    let fault = |why: String| Fault::of(key, format!("{}: {why}", shown(path)));
                    let more =
                        self.clones.world.read_bytes(path).map_err(|error| fault(error.to_string()))?;
                    if more.is_empty() || more.len() > PATTERN_FILE_BYTES_MAX {
                        let why = format!("has {} bytes: use 1 to {PATTERN_FILE_BYTES_MAX}", more.len());
                        return Err(fault(why));
                    }
                    bytes.extend(more);
                }
                PatternPart::Offset => {
                    made.extend((!bytes.is_empty()).then(|| hex(&bytes)));
                    bytes.clear();
                    made.push("%o".to_owned());
                }
            }
        }
        made.extend((!bytes.is_empty()).then(|| hex(&bytes)));
        Ok(made.join("+"))
    }

    fn verification(&mut self, files: &Files) -> Result<(), Fault> {
        let draft = self.draft;
        if self.trims() {
            return Err(Fault::of("verify", "trimmed data cannot be verified: leave verify out"));
        }
        let shaped = [
            ("zero_buffers", draft.zero_buffers == Some(true)),
            ("buffer_pattern", draft.buffer_pattern.is_some()),
            ("buffer_compress_percentage", draft.buffer_compress_percentage.unwrap_or(0) > 0),
            ("dedupe_percentage", draft.dedupe_percentage.unwrap_or(0) > 0),
        ];
        if let Some((key, _)) = shaped.iter().find(|(_, given)| *given) {
            return Err(Fault::of(
                key,
                "is not supported with verify: the content of a verified block depends on its position and sequence",
            ));
        }
        self.spec.verify = true;
        if draft.do_verify == Some(false) {
            self.set("do_verify", "no-read-back", "true")?;
        }
        self.verified_content()?;
        self.verified_when()?;
        if draft.verify_dump == Some(true) {
            self.set("verify_dump", "verify-dump", ".")?;
        }
        let range_bytes = self.range_bytes(files);
        let done = self.known_writes(range_bytes)?;
        match (draft.verify_only == Some(true), done) {
            (true, Some(writes)) => self.check_in_order(Some(writes))?,
            (true, None) if self.covers_in_part(range_bytes) => self.check_in_order(None)?,
            (true, None) => self.check_all(range_bytes)?,
            // Reads of a job go over the range in the order of its writes.
            (false, Some(writes)) => self.spec.count = Some(writes),
            (false, None) => {}
        }
        Ok(())
    }

    /// Sets the content of verified blocks.
    fn verified_content(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let pattern = draft.verify_pattern.as_deref().filter(|parts| !parts.is_empty());
        match (draft.verify, pattern) {
            (Some(Verify::Pattern), Some(parts)) => {
                let text = self.pattern("verify_pattern", parts)?;
                self.warn(
                    "blocks of verify=pattern have no header: an old block, or a block of another job with the same pattern, passes the check",
                );
                return self.set("verify_pattern", "verify-pattern", &text);
            }
            (Some(Verify::Pattern), None) => self.warn(
                "verify=pattern without verify_pattern: blocks have headers, as with a checksum",
            ),
            (_, Some(_)) => self.warn(
                "verify_pattern is used only with verify=pattern: strata fills each block from its position and sequence and checks all of it",
            ),
            _ => {}
        }
        if let Some(asked) = draft.verify_interval {
            let sizes: ClassSizes = self
                .blocks
                .text
                .parse()
                .map_err(|error: units::ParseError| Fault::of("verify_interval", error.to_string()))?;
            let (mut interval, mut rest) = (sizes.granularity(), asked);
            while rest > 0 {
                (interval, rest) = (rest, interval % rest);
            }
            if interval != asked {
                self.warn(format!(
                    "verify_interval={asked} does not divide all block sizes: headers are {interval} bytes apart"
                ));
            }
            self.set("verify_interval", "verify-interval", &interval.to_string())?;
        }
        if draft.verify_offset.unwrap_or(0) > 0 {
            self.warn("verify_offset is ignored: the header is at the start of its interval, and all bytes after it are checked");
        }
        self.warn(
            "verified blocks have strata's own header: position, run, sequence and CRC-32C; blocks written by fio cannot be verified",
        );
        Ok(())
    }

    /// When verified blocks are read back, and by whom.
    fn verified_when(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if let Some(blocks) = draft.verify_backlog.filter(|&blocks| blocks > 0 && self.writes()) {
            let batch = draft.verify_backlog_batch.filter(|&batch| batch > 0).unwrap_or(blocks);
            self.set("verify_backlog", "verify-backlog", &format!("{blocks}:{batch}"))?;
        }
        if draft.verify_async.unwrap_or(0) > 0 {
            self.warn(
                "verify_async: the thread that reads a block also checks it, after the latency is recorded; the time for checks is in verify_ns",
            );
        }
        Ok(())
    }
}
