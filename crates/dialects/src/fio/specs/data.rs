//! What is written and checked, and what lies there before.

use units::ByteSize;
use workload::spec::{CachePolicy, Layout, Operation, Refill};

use super::Site;
use super::targets::Files;
use crate::fio::fault::Fault;

impl Site<'_> {
    pub(super) fn data(&mut self, files: &Files) -> Result<(), Fault> {
        if !files.is_null {
            self.layout()?;
            self.spec.cache = Some(match (self.draft.pre_read, self.draft.invalidate) {
                (Some(true), _) => CachePolicy::Warm,
                (_, Some(false)) => CachePolicy::Keep,
                _ => CachePolicy::Drop,
            });
        }
        // Reads of a job are checked where its writes would be.
        let reads_unchecked = self.draft.do_verify == Some(false) && !self.writes();
        if self.draft.verify == Some(true) && !reads_unchecked { self.verification() } else { self.content() }
    }

    /// fio writes the files of jobs that read, and allocates those of jobs that only write.
    fn layout(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let on_open = draft.create_on_open == Some(true);
        if on_open && self.reads() {
            return Err(Fault::of(
                "create_on_open",
                "is refused for a job that reads: it would read what was never written; nearest: 0",
            ));
        }
        self.spec.layout = Some(if self.reads() || draft.overwrite == Some(true) {
            Layout::Fill
        } else if on_open {
            Layout::Sparse
        } else {
            draft.fallocate.unwrap_or(Layout::Allocate)
        });
        Ok(())
    }

    fn content(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if draft.verify_only == Some(true) && draft.verify != Some(true) {
            return Err(Fault::of("verify_only", "needs verify=crc32c or another sum"));
        }
        if !self.writes() {
            return Ok(());
        }
        let compress = draft.buffer_compress_percentage.unwrap_or(0);
        let dedupe = draft.dedupe_percentage.unwrap_or(0);
        if draft.zero_buffers == Some(true) || compress == 100 {
            return self.set("zero_buffers", "content", "zero");
        }
        if let Some(bytes) = &draft.buffer_pattern {
            if compress > 0 || dedupe > 0 {
                return Err(Fault::of(
                    "buffer_pattern",
                    "is all of the data: leave out the shares to compress and to repeat",
                ));
            }
            return self.set("buffer_pattern", "content", bytes);
        }
        if compress > 0 || dedupe > 0 {
            self.spec.compress = (compress > 0).then_some(compress);
            self.spec.dedupe = (dedupe > 0).then_some(dedupe);
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

    fn verification(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if self.trims() {
            return Err(Fault::of("verify", "a trim leaves nothing to check: leave it out"));
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
                "is refused with verify: a verified block is filled from its position and sequence",
            ));
        }
        self.spec.verify = true;
        // A spec with one block size is verified by blocks aligned to it.
        self.spec.verify_interval = draft.verify_interval.map(ByteSize);
        self.spec.no_read_back = draft.do_verify == Some(false);
        if draft.verify_only == Some(true) {
            self.spec.operations = vec![Operation::Read];
            self.spec.pattern = None;
            self.spec.mix = None;
            self.spec.align = None;
            self.spec.layout = None;
        }
        self.warn(
            "verified blocks carry strata's own header: position, run, sequence and CRC-32C; blocks that fio wrote cannot be checked",
        );
        Ok(())
    }
}
