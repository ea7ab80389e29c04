//! How much: sizes, offsets, limits.

use units::ByteSize;
use workload::random::{Random, derive_seed};
use workload::spec::Operation;

use super::Site;
use super::control::is_of_files;
use super::targets::Files;
use crate::PathFacts;
use crate::fio::draft::ZoneMode;
use crate::fio::fault::{Fault, shown};
use crate::fio::value::Amount;

/// Stream of the seed that sizes of files are drawn from.
const SIZES: u64 = 0x512e;

impl Site<'_> {
    pub(super) fn amount(&mut self, files: &Files) -> Result<(), Fault> {
        let offset_bytes = self.offset(files)?;
        if offset_bytes > 0 {
            self.set("offset", "offset", &offset_bytes.to_string())?;
        }
        let region_bytes = self.region(files, offset_bytes)?;
        if self.draft.create_only == Some(true) {
            // No operation is none too few to lay out what all would need.
            self.spec.count = Some(0);
            return Ok(());
        }
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
                "a percentage requires existing files or devices of equal size: give bytes",
            )),
        }
    }

    /// Where the range of the first clone begins; what is a percentage is rounded up, as in fio.
    fn offset(&self, files: &Files) -> Result<u64, Fault> {
        let bytes = |key: &str, amount: Option<Amount>| match amount {
            None | Some(Amount::Percent(0)) => Ok((0, false)),
            Some(Amount::Bytes(bytes)) => Ok((bytes, false)),
            Some(Amount::Percent(percent)) => Ok((share_of(self.common_bytes(key, files)?, percent), true)),
        };
        let (begin, is_share) = bytes("offset", self.draft.offset)?;
        let (step, steps_by_share) = bytes("offset_increment", self.draft.offset_increment)?;
        let too_large = || Fault::of("offset_increment", "the offset of the last clone is too large");
        let offset = step.checked_mul(self.clones.first.into()).and_then(|step| begin.checked_add(step));
        let offset = offset.ok_or_else(too_large)?;
        let appended = if self.draft.file_append == Some(true) { self.appended(files)? } else { 0 };
        let align = self.draft.offset_align.filter(|&align| align > 0).unwrap_or(self.blocks.min_bytes);
        let offset =
            if is_share || steps_by_share { offset.checked_next_multiple_of(align) } else { Some(offset) };
        offset.and_then(|offset| offset.checked_add(appended)).ok_or_else(too_large)
    }

    /// Bytes that are in the files already.
    fn appended(&self, files: &Files) -> Result<u64, Fault> {
        let sizes: Vec<u64> = files.each.iter().map(|path| self.known_bytes(path).unwrap_or(0)).collect();
        match sizes[..] {
            [first, ..] if sizes.iter().all(|size| *size == first) => Ok(first),
            _ => Err(Fault::of(
                "file_append",
                "requires files of equal size: use a separate job for each file",
            )),
        }
    }

    /// Gives each target its size; the bytes of one clone.
    fn region(&mut self, files: &Files, offset_bytes: u64) -> Result<u64, Fault> {
        let count = files.each.len() as u64;
        if self.draft.fill_device == Some(true) && !self.is_device(files) {
            return self.fill(files, offset_bytes);
        }
        if is_of_files(self.engine.ours) {
            // Each file is one operation, however long it is.
            let each = self.blocks.max_bytes;
            self.set("size", "size", &each.to_string())?;
            return Ok(each.saturating_mul(count));
        }
        let filesize = match self.draft.filesize {
            Some((low, high)) if low < high => return self.drawn_sizes(files, offset_bytes, (low, high)),
            filesize => filesize.map(|(size, _)| size),
        };
        let each = match (filesize, self.draft.size) {
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
                format!(
                    "gives each file {each} bytes, less than the block size of {}",
                    self.blocks.max_bytes
                ),
            ));
        }
        if let Some(Amount::Bytes(bytes)) = self.draft.size.filter(|_| self.draft.filesize.is_none())
            && each * count != bytes
        {
            self.warn(format!(
                "size={bytes} does not divide evenly into blocks in {count} files: each file has {each} bytes"
            ));
        }
        let walked_bytes = self.walked_bytes(files, offset_bytes, each);
        self.set("size", "size", &walked_bytes.to_string())?;
        each.checked_mul(count)
            .ok_or_else(|| Fault::of("nrfiles", "the total size of the files is too large"))
    }

    /// Gives each file a size of its own, evenly drawn from a range in whole blocks; clones have the same ones.
    fn drawn_sizes(
        &mut self,
        files: &Files,
        offset_bytes: u64,
        (low, high): (u64, u64),
    ) -> Result<u64, Fault> {
        let block = self.blocks.min_bytes;
        let (low, high) = (low.saturating_sub(offset_bytes), high.saturating_sub(offset_bytes));
        // As few blocks as the largest has, and as many as fit.
        let (least, most) = (low.max(self.blocks.max_bytes).div_ceil(block), high / block);
        if least > most {
            let message = format!(
                "gives each file at most {high} bytes, less than the block size of {}",
                self.blocks.max_bytes
            );
            return Err(Fault::of("filesize", message));
        }
        if self.is_device(files) {
            return Err(Fault::of("filesize", "a range is only for files: a device has a fixed size"));
        }
        let seed = self.draft.randseed.unwrap_or(super::SEED);
        let mut random = Random::new(derive_seed(seed, &[SIZES]));
        let sizes: Vec<u64> =
            files.each.iter().map(|_| (least + random.below(most - least + 1)) * block).collect();
        let texts: Vec<String> = sizes.iter().map(u64::to_string).collect();
        self.set("filesize", "sizes", &texts.join(","))?;
        Ok(sizes.iter().sum())
    }

    fn is_device(&self, files: &Files) -> bool {
        let is_device = |path: &String| matches!(self.clones.world.look(path), PathFacts::BlockDevice { .. });
        files.each.iter().all(is_device)
    }

    /// A file that is written until there is no room: how much that is shows in the end.
    fn fill(&mut self, files: &Files, offset_bytes: u64) -> Result<u64, Fault> {
        let is_plain = self.operation == Operation::Write && !self.draft.verifies();
        if !is_plain || files.each.len() != 1 || self.clones.count > 1 || offset_bytes > 0 {
            return Err(Fault::of(
                "fill_device",
                "requires rw=write on one file from offset 0, without verify: give size for other jobs",
            ));
        }
        self.spec.control.ends_when_full = true;
        Ok(u64::MAX)
    }

    /// Bytes that positions are drawn from: zones go on over all of a file that is larger than `size`, as in fio.
    fn walked_bytes(&self, files: &Files, offset_bytes: u64, each: u64) -> u64 {
        let left =
            |path: &String| self.known_bytes(path).map_or(each, |size| size.saturating_sub(offset_bytes));
        match self.draft.zonemode {
            Some(ZoneMode::Strided) => files.each.iter().map(left).min().unwrap_or(each).max(each),
            _ => each,
        }
    }

    /// Bytes that `rw=read:8k` moves of a file: it ends with the range where the file goes on behind it, or cuts its
    /// last block, and begins anew where the file ends too, as in fio.
    fn bytes_to_end(&self, files: &Files, each: u64) -> Option<u64> {
        let gap = self.said_bytes("gap").filter(|&gap| gap > 0)?;
        let offset_bytes = self.said_bytes("offset").unwrap_or(0);
        let goes_on = |path: &String| self.known_bytes(path).is_some_and(|size| size > each + offset_bytes);
        let ends = offset_bytes > 0 || files.each.iter().any(goes_on);
        let block = self.blocks.max_bytes;
        let places = each.div_ceil(block + gap);
        // A block that the end of the file cuts ends the job, too.
        let is_cut = (places - 1) * (block + gap) + block > each && self.blocks.min_bytes == block;
        let whole = if is_cut && !ends { places - 1 } else { places };
        ((ends || is_cut) && !self.operation.is_mixed()).then(|| whole * block * files.each.len() as u64)
    }

    /// All that is there.
    fn whole_region(&self, files: &Files, offset_bytes: u64) -> Result<u64, Fault> {
        let mut sum = 0u64;
        for path in &files.each {
            let size = self.known_bytes(path).ok_or_else(|| {
                let what = if files.is_null { "ioengine=null".to_owned() } else { shown(path) };
                Fault::of("size", format!("{what} has no size yet: give size=, which fio also requires"))
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
        let too_much = |key: &str| Fault::of(key, "exceeds the largest supported number");
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
        let is_endless = self.spec.control.ends_when_full;
        if is_endless || (runtime.is_some() && draft.time_based == Some(true)) {
            return Ok(());
        }
        let once = self.bytes_of_pass(region_bytes)?;
        let once = match self.bytes_to_end(files, region_bytes / files.each.len().max(1) as u64) {
            Some(bytes) => bytes.min(once),
            None => once,
        };
        let loops = draft.loops.unwrap_or(1);
        if draft.unlink_each_loop == Some(true) && loops > 1 {
            let message = "is not supported with loops: all loops use the same files, which are not recreated; alternative: unlink, or one job per loop";
            return Err(Fault::of("unlink_each_loop", message));
        }
        let is_one_pass = once == region_bytes && loops == 1;
        if is_one_pass && self.ends_itself(files) && runtime.is_none() && count.is_none() {
            return Ok(());
        }
        // A trim and its write move the same bytes.
        let times = if self.operation.is_pair() { 2 } else { 1 };
        let total = once.checked_mul(loops * times).and_then(|bytes| bytes.checked_mul(clones));
        self.spec.bytes = Some(ByteSize(total.ok_or_else(|| too_much("loops"))?));
        Ok(())
    }

    /// Whether a pass is all bytes of the files once: not where they have no end, nor where blocks of several sizes begin at
    /// each multiple of the smallest.
    fn ends_itself(&self, files: &Files) -> bool {
        let is_endless = |path: &String| self.clones.world.look(path) == PathFacts::CharacterDevice;
        let is_varied = self.blocks.min_bytes != self.blocks.max_bytes;
        let goes_on = self.draft.zonemode == Some(ZoneMode::Strided) || self.said("gap").is_some();
        !(goes_on
            || files.is_null
            || files.each.iter().any(is_endless)
            || (is_varied && self.operation.is_random() && self.spec.pattern.as_deref() != Some("fitted")))
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
            return Err(Fault::of("io_size", "results in 0 bytes: use a larger value"));
        }
        Ok(bytes)
    }
}

fn share_of(bytes: u64, percent: u8) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}
