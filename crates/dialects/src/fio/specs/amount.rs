//! How much: sizes, offsets, limits.

use units::ByteSize;

use super::Site;
use super::control::is_of_files;
use super::targets::Files;
use crate::PathFacts;
use crate::fio::fault::{Fault, shown};
use crate::fio::value::Amount;

impl Site<'_> {
    pub(super) fn amount(&mut self, files: &Files) -> Result<(), Fault> {
        let offset_bytes = self.offset(files)?;
        if offset_bytes > 0 {
            self.spec.offset = Some(ByteSize(offset_bytes));
        }
        let region_bytes = self.region(files, offset_bytes)?;
        self.limits(files, region_bytes)
    }

    /// Size of a target, where it has one now.
    fn known_bytes(&self, path: &str) -> Option<u64> {
        match self.clones.world.look(path) {
            PathFacts::File { size_bytes } | PathFacts::BlockDevice { size_bytes } => {
                Some(size_bytes).filter(|&size| size > 0)
            }
            _ => None,
        }
    }

    /// The size that percentages are of: that of all files of the job, each.
    fn common_bytes(&self, key: &str, files: &Files) -> Result<u64, Fault> {
        let sizes: Vec<Option<u64>> = files.each.iter().map(|path| self.known_bytes(path)).collect();
        match sizes[..] {
            [Some(first), ..] if sizes.iter().all(|size| *size == Some(first)) => Ok(first),
            _ => Err(Fault::of(
                key,
                "a percentage is of a file or device that is there, all of one size: give bytes",
            )),
        }
    }

    fn offset(&self, files: &Files) -> Result<u64, Fault> {
        let bytes = |key: &str, amount: Option<Amount>| match amount {
            None => Ok(0),
            Some(Amount::Bytes(bytes)) => Ok(bytes),
            Some(Amount::Percent(0)) => Ok(0),
            Some(Amount::Percent(percent)) => {
                let share = share_of(self.common_bytes(key, files)?, percent);
                Ok(share / self.blocks.min_bytes * self.blocks.min_bytes)
            }
        };
        let begin = bytes("offset", self.draft.offset)?;
        let step = bytes("offset_increment", self.draft.offset_increment)?;
        let offset = step.checked_mul(self.clones.first.into()).and_then(|step| begin.checked_add(step));
        offset.ok_or_else(|| Fault::of("offset_increment", "the offset of the last clone is too large"))
    }

    /// Gives each target its size; the bytes of one clone.
    fn region(&mut self, files: &Files, offset_bytes: u64) -> Result<u64, Fault> {
        let count = files.each.len() as u64;
        if is_of_files(self.engine.ours) {
            // Each file is one operation, however long it is.
            let each = self.blocks.max_bytes;
            self.spec.size = Some(ByteSize(each));
            return Ok(each.saturating_mul(count));
        }
        let each = match (self.draft.filesize, self.draft.size) {
            (Some(filesize), _) => match filesize.checked_sub(offset_bytes) {
                Some(each) if each > 0 => each,
                _ => return Err(Fault::of("filesize", "must be more than the offset")),
            },
            (None, None | Some(Amount::Percent(100))) => return self.whole_region(files, offset_bytes),
            (None, Some(Amount::Percent(percent))) => {
                let left = self.common_bytes("size", files)?.saturating_sub(offset_bytes);
                share_of(left, percent) / self.blocks.min_bytes * self.blocks.min_bytes
            }
            (None, Some(Amount::Bytes(bytes))) if count == 1 => bytes,
            (None, Some(Amount::Bytes(bytes))) => {
                bytes / count / self.blocks.min_bytes * self.blocks.min_bytes
            }
        };
        if each < self.blocks.max_bytes {
            let key = if self.draft.filesize.is_some() { "filesize" } else { "size" };
            return Err(Fault::of(
                key,
                format!("gives each file {each} bytes, less than a block of {}", self.blocks.max_bytes),
            ));
        }
        if let Some(Amount::Bytes(bytes)) = self.draft.size.filter(|_| self.draft.filesize.is_none())
            && each * count != bytes
        {
            self.warn(format!(
                "size={bytes} does not divide into blocks on {count} files: each has {each} bytes"
            ));
        }
        self.spec.size = Some(ByteSize(each));
        each.checked_mul(count).ok_or_else(|| Fault::of("nrfiles", "the files together are too large"))
    }

    /// All that is there.
    fn whole_region(&self, files: &Files, offset_bytes: u64) -> Result<u64, Fault> {
        let mut sum = 0u64;
        for path in &files.each {
            let size = self.known_bytes(path).ok_or_else(|| {
                let what = if files.is_null { "ioengine=null".to_owned() } else { shown(path) };
                Fault::of("size", format!("{what} has no size of its own: fio needs size=, and so does this"))
            })?;
            if size <= offset_bytes {
                return Err(Fault::of(
                    "offset",
                    format!("is past the end of {} ({size} bytes)", shown(path)),
                ));
            }
            sum = sum.saturating_add(size - offset_bytes);
        }
        Ok(sum)
    }

    fn limits(&mut self, files: &Files, region_bytes: u64) -> Result<(), Fault> {
        let draft = self.draft;
        let runtime = draft.runtime.filter(|&time| time > 0);
        let clones = u64::from(self.clones.count);
        let too_much = |key: &str| Fault::of(key, "asks for more than can be counted");
        if let Some(time_ns) = runtime {
            self.set("runtime", "time", &format!("{time_ns}ns"))?;
        } else if draft.time_based == Some(true) {
            self.warn("time_based without runtime does nothing, as in fio");
        }
        let count = draft.number_ios.filter(|&count| count > 0);
        if let Some(count) = count {
            self.spec.count = Some(count.checked_mul(clones).ok_or_else(|| too_much("number_ios"))?);
        }
        let warmup = match draft.ramp_time.filter(|&time| time > 0) {
            Some(time_ns) => format!("{time_ns}ns"),
            None => "none".to_owned(),
        };
        self.set("ramp_time", "warmup", &warmup)?;
        if runtime.is_some() && draft.time_based == Some(true) {
            return Ok(());
        }
        let once = self.bytes_of_pass(region_bytes)?;
        let loops = draft.loops.unwrap_or(1);
        let is_one_pass = once == region_bytes && loops == 1;
        if is_one_pass && self.ends_itself(files) && runtime.is_none() && count.is_none() {
            return Ok(());
        }
        let total = once.checked_mul(loops).and_then(|bytes| bytes.checked_mul(clones));
        self.spec.bytes = Some(ByteSize(total.ok_or_else(|| too_much("loops"))?));
        Ok(())
    }

    /// Whether a pass is all bytes of the files once: not where they have no end, nor where blocks of several sizes begin at
    /// each multiple of the smallest.
    fn ends_itself(&self, files: &Files) -> bool {
        let is_endless = |path: &String| self.clones.world.look(path) == PathFacts::CharacterDevice;
        let is_varied = self.blocks.min_bytes != self.blocks.max_bytes;
        !(files.is_null || files.each.iter().any(is_endless) || (is_varied && self.operation.is_random()))
    }

    /// `io_size`, or the size of the job where its files are larger.
    fn bytes_of_pass(&self, region_bytes: u64) -> Result<u64, Fault> {
        let bytes = match (self.draft.io_size, self.draft.size, self.draft.filesize) {
            (Some(Amount::Bytes(0)), ..) | (None, _, None) => region_bytes,
            (Some(Amount::Bytes(bytes)), ..) => bytes,
            (Some(Amount::Percent(percent)), ..) => share_of(region_bytes, percent),
            (None, Some(Amount::Bytes(bytes)), Some(_)) => bytes.min(region_bytes),
            (None, _, Some(_)) => region_bytes,
        };
        if bytes == 0 {
            return Err(Fault::of("io_size", "comes to 0 bytes: use more"));
        }
        Ok(bytes)
    }
}

fn share_of(bytes: u64, percent: u8) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}
