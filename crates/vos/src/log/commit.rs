//! How records of a log are published, and what has to be durable before.

use super::{Log, PENDING_BYTES_MAX, PENDING_MAX, Pending, When};
use crate::error::StoreError;
use crate::record::{COMMIT_AT, LINE_BYTES};

impl Log {
    /// Commits a record that has been filled and sealed; `record` is all of it. Mapped logs: the order of data and commit word is kept.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        location: u64,
        lines: usize,
        commit: u32,
        when: When,
    ) -> Result<(), StoreError> {
        let (region, at) = match &self.mapped {
            Some(region) => (region, location as usize * LINE_BYTES),
            None => {
                let (region, at) = self.memory(location);
                region.store_release(at + COMMIT_AT, commit);
                return Ok(());
            }
        };
        match when {
            When::Unordered => region.store_release(at + COMMIT_AT, commit),
            When::Now if self.medium.is_synced() => return self.finish_synced(at, lines, commit),
            When::Now => {
                self.flusher.fence();
                region.store_release(at + COMMIT_AT, commit);
                self.flusher.flush(region.bytes(at + COMMIT_AT, 4));
                self.flusher.fence();
            }
            When::Later => {
                self.pending.push(Pending { at, bytes: lines * LINE_BYTES, commit });
                self.pending_bytes += lines * LINE_BYTES;
                if self.pending.len() == PENDING_MAX || self.pending_bytes >= PENDING_BYTES_MAX {
                    self.commit_pending()?;
                }
            }
        }
        Ok(())
    }

    /// Data, then the commit word, with a sync for each.
    fn finish_synced(&mut self, at: usize, lines: usize, commit: u32) -> Result<(), StoreError> {
        self.sync_range(at, lines * LINE_BYTES)?;
        if let Some(region) = &self.mapped {
            region.store_release(at + COMMIT_AT, commit);
        }
        let done = self.medium.sync(at as u64, LINE_BYTES as u64);
        self.synced(done)
    }

    /// Whether records wait for a commit.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Commits all that was deferred (mapped logs): data first, then the commit words.
    pub(crate) fn commit_pending(&mut self) -> Result<(), StoreError> {
        let Some(region) = self.mapped.clone().filter(|_| !self.pending.is_empty()) else { return Ok(()) };
        let is_synced = self.medium.is_synced();
        let pending = std::mem::take(&mut self.pending);
        if is_synced {
            if let Some(data) = self.data.clone() {
                let done = data.sync();
                self.synced(done)?;
            }
            self.sync_pending(&pending)?;
        }
        self.flusher.fence();
        for pending in &pending {
            region.store_release(pending.at + COMMIT_AT, pending.commit);
            self.flusher.flush(region.bytes(pending.at + COMMIT_AT, 4));
        }
        self.flusher.fence();
        if is_synced {
            self.sync_pending(&pending)?;
        }
        self.pending = pending;
        self.pending.clear();
        self.pending_bytes = 0;
        Ok(())
    }

    /// Syncs all records that wait for a commit: a call for each segment that they lie in.
    fn sync_pending(&mut self, pending: &[Pending]) -> Result<(), StoreError> {
        let segment_bytes = self.segment_lines as usize * LINE_BYTES;
        let mut ranges: Vec<(usize, usize, usize)> = Vec::new();
        for one in pending {
            let (segment, end) = (one.at / segment_bytes, one.at + one.bytes);
            // Updates of a time lie in few segments.
            match ranges.iter_mut().find(|(other, _, _)| *other == segment) {
                Some((_, low, high)) => (*low, *high) = ((*low).min(one.at), (*high).max(end)),
                None => ranges.push((segment, one.at, end)),
            }
        }
        ranges.into_iter().try_for_each(|(_, low, high)| self.sync_range(low, high - low))
    }

    /// Mapped logs: syncs a range of a segment, and before it the headers of records that others still fill: what is durable has no
    /// holes before it.
    fn sync_range(&mut self, at: usize, bytes: usize) -> Result<(), StoreError> {
        let segment_bytes = self.segment_lines as usize * LINE_BYTES;
        let number = at / segment_bytes;
        let from = at.min(number * segment_bytes + self.segments[number].synced_lines as usize * LINE_BYTES);
        let end = at + bytes;
        let done = self.medium.sync(from as u64, (end - from) as u64);
        self.synced(done)?;
        let segment = &mut self.segments[number];
        segment.synced_lines = segment.synced_lines.max(((end - number * segment_bytes) / LINE_BYTES) as u32);
        Ok(())
    }

    /// The same for all that was taken of the active segment, before it is sealed.
    pub(super) fn sync_rest(&mut self, active: usize) -> Result<(), StoreError> {
        self.flusher.fence();
        let (from, to) = (self.segments[active].synced_lines, self.segments[active].used_lines);
        self.sync_lines(active, from, to)
    }

    pub(super) fn sync_lines(&mut self, number: usize, from: u32, to: u32) -> Result<(), StoreError> {
        if self.mapped.is_none() || !self.medium.is_synced() || self.is_loose || from >= to {
            return Ok(());
        }
        let at = (number * self.segment_lines as usize + from as usize) * LINE_BYTES;
        let done = self.medium.sync(at as u64, u64::from(to - from) * LINE_BYTES as u64);
        self.synced(done)
    }

    /// Takes the result of a write or a sync. One that failed may have lost its data, and the next would not say so.
    pub(super) fn synced(&mut self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        self.is_broken |= result.is_err();
        result
    }
}
