//! Which blocks a check finds written: all of the range, or those that the same job writes.

use workload::spec::Operation;

use super::Site;
use super::targets::Files;
use crate::fio::fault::Fault;
use crate::fio::state::{loaded, path};

impl Site<'_> {
    /// Bytes of the files of one clone; none where they have no size of their own.
    pub(super) fn range_bytes(&self, files: &Files) -> Option<u64> {
        match self.said("sizes") {
            Some(sizes) => sizes.split(',').map(|size| size.parse::<u64>().ok()).sum(),
            None => self.said_bytes("size").map(|size| size.saturating_mul(files.each.len() as u64)),
        }
    }

    /// Whether the writes of the job leave blocks out: random ones that come again before all were there, or too few of them. Which
    /// ones those are follows from the seed.
    pub(super) fn covers_in_part(&self, range_bytes: Option<u64>) -> bool {
        let has_each_once = matches!(self.spec.pattern.as_deref(), Some("permutation" | "fitted"));
        let blocks = range_bytes.map(|bytes| bytes / self.blocks.max_bytes);
        let clones = u64::from(self.clones.count);
        let is_short =
            self.spec.bytes.zip(range_bytes).is_some_and(|(bytes, range)| bytes.0 / clones < range)
                || self.spec.count.zip(blocks).is_some_and(|(count, blocks)| count / clones < blocks);
        self.operation == Operation::RandWrite && (!has_each_once || is_short)
    }

    /// Reads every block of the range once, however often it was written.
    pub(super) fn check_all(&mut self, range_bytes: Option<u64>) -> Result<(), Fault> {
        self.spec.pattern = None;
        self.spec.bytes = self.spec.bytes.filter(|bytes| range_bytes.is_some_and(|range| bytes.0 < range));
        self.unsay(&["mix", "layout", "pattern", "align", "own-positions"])?;
        self.set("verify_only", "op", Operation::Read.name())
    }

    /// Reads the blocks that the job writes, in the order in which it does, or the first of them.
    pub(super) fn check_in_order(&mut self, writes: Option<u64>) -> Result<(), Fault> {
        let is_random = self.operation == Operation::RandWrite;
        if let Some(writes) = writes {
            self.spec.count = Some(writes);
            self.spec.bytes = None;
        }
        self.unsay(&["mix", "layout"])?;
        let operation = if is_random { Operation::RandRead } else { Operation::Read };
        self.set("verify_only", "op", operation.name())
    }

    /// How many of the first writes the files of `verify_state_load` know to be done, where that is less than all of the range: none
    /// where it is all, or where what was not written holds valid blocks too.
    pub(super) fn known_writes(&self, range_bytes: Option<u64>) -> Result<Option<u64>, Fault> {
        let draft = self.draft;
        let checks = draft.verify_only == Some(true) || !self.writes();
        if draft.verify_state_load != Some(true) || !checks {
            return Ok(None);
        }
        let fault = |why: String| Fault::of("verify_state_load", why);
        let job = self.clones.job;
        let name = draft.name.as_deref().unwrap_or(&job.section);
        let mut least = u64::MAX;
        for index in self.clones.index..self.clones.index + self.clones.count as usize {
            let path = path(job.state_directory.as_deref(), name, index);
            let shown = crate::fio::fault::shown(&path.to_string_lossy()).to_string();
            let file = self.clones.world.read_bytes(&path.to_string_lossy());
            let file = file.map_err(|error| {
                fault(format!("{shown}: {error}: run the writing job with verify_state_save=1"))
            })?;
            least = least.min(loaded(&file).map_err(|why| fault(format!("{shown} {why}")))?);
        }
        if least == 0 {
            return Err(fault("the file lists no completed write: there is nothing to check".to_owned()));
        }
        let blocks = range_bytes.map_or(u64::MAX, |bytes| bytes / self.blocks.min_bytes);
        // The files of a job that reads too are filled with blocks before it.
        if least >= blocks || self.operation.is_mixed() {
            return Ok(None);
        }
        if self.blocks.min_bytes != self.blocks.max_bytes {
            return Err(fault(
                "is not supported for an interrupted job with blocks of several sizes: use one size"
                    .to_owned(),
            ));
        }
        let is_random = matches!(self.operation, Operation::RandWrite | Operation::RandRead);
        if is_random && (self.clones.index > 0 || draft.randrepeat == Some(false)) {
            return Err(fault(
                "requires randrepeat and the first job of the run if the interrupted job had random positions, whose order depends on the seed; alternative: --section"
                    .to_owned(),
            ));
        }
        Ok(Some(least.saturating_mul(self.clones.count.into())))
    }
}
