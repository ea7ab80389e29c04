//! Space of a target, by container.

use std::collections::BTreeMap;

use super::Target;
use super::census::{Census, Reference, Seen, Sort};
use crate::error::StoreError;
use crate::record::{HEADER_BYTES, Header, LINE_BYTES};
use crate::types::ContainerId;

/// Space of a container on one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) objects: u64,
    pub(crate) keys: u64,
    /// Values and parts of arrays of the latest epoch, and their bytes.
    pub(crate) values: u64,
    pub(crate) value_bytes: u64,
    /// Bytes of values that snapshots alone show.
    pub(crate) snapshot_bytes: u64,
    /// Bytes of values that nobody sees: aggregation frees them.
    pub(crate) unseen_bytes: u64,
    /// Bytes of log beside them: headers, keys, checksums, punches, and what lines are rounded up to.
    pub(crate) overhead_bytes: u64,
}

impl std::ops::AddAssign for Held {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.keys += other.keys;
        self.values += other.values;
        self.value_bytes += other.value_bytes;
        self.snapshot_bytes += other.snapshot_bytes;
        self.unseen_bytes += other.unseen_bytes;
        self.overhead_bytes += other.overhead_bytes;
    }
}

/// Space of a target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) containers: BTreeMap<ContainerId, Held>,
    /// Bytes of log that were written, and that nothing refers to any more: cleaning gives them back.
    pub(crate) dead_bytes: u64,
}

impl Target {
    /// Counts it, as of about now. Reads the log where that is not mapped: not beside a measured loop.
    ///
    /// # Errors
    /// [`StoreError`] of reads.
    pub(crate) fn usage(&self) -> Result<Usage, StoreError> {
        let census = self.census();
        let mut usage = Usage::default();
        for (container, keys) in &census.keys {
            let held = usage.containers.entry(*container).or_default();
            (held.objects, held.keys) = (keys.objects, keys.akeys);
        }
        let mut content = None;
        for found in &census.references {
            let (bytes, is_external) = self.value_of(&census, found, &mut content)?;
            let held = usage.containers.entry(found.container).or_default();
            let lines_bytes = u64::from(found.lines) * LINE_BYTES as u64;
            held.overhead_bytes += if is_external { lines_bytes } else { lines_bytes.saturating_sub(bytes) };
            if !found.sort.has_data() {
                continue;
            }
            match found.seen {
                Seen::Latest => {
                    held.values += 1;
                    held.value_bytes += bytes;
                }
                Seen::Snapshot => held.snapshot_bytes += bytes,
                Seen::Nobody => held.unseen_bytes += bytes,
            }
        }
        let live: u64 = census.references.iter().map(|found| u64::from(found.lines)).sum();
        let used: u64 = census
            .segments
            .iter()
            .filter(|segment| !segment.is_free)
            .map(|segment| u64::from(segment.used_lines))
            .sum();
        usage.dead_bytes = used.saturating_sub(live) * LINE_BYTES as u64;
        Ok(usage)
    }

    /// Bytes of a record's value, and whether they are in the data file. `content`: the segment that was read last.
    fn value_of(
        &self,
        census: &Census,
        found: &Reference,
        content: &mut Option<(u32, crate::memory::Region)>,
    ) -> Result<(u64, bool), StoreError> {
        if !found.sort.has_data() {
            return Ok((0, false));
        }
        let head = match &self.mapped {
            Some(region) => region.bytes(found.location as usize * LINE_BYTES, HEADER_BYTES).to_vec(),
            None => self.head_of(census, found, content)?,
        };
        let header = head.first_chunk::<HEADER_BYTES>().and_then(|head| Header::decode(head, usize::MAX));
        // Where something else stands there by now, the index knows about it what it must.
        let header = header.filter(|header| header.epoch == found.epoch);
        let told = match found.sort {
            Sort::Data { bytes, .. } => bytes,
            _ => u64::from(found.lines.saturating_sub(1)) * LINE_BYTES as u64,
        };
        Ok(header.map_or((told, false), |header| (u64::from(header.bytes), header.is_external())))
    }

    /// The header of a record of a log that is not mapped: from the buffer of its segment, or from the medium.
    fn head_of(
        &self,
        census: &Census,
        found: &Reference,
        content: &mut Option<(u32, crate::memory::Region)>,
    ) -> Result<Vec<u8>, StoreError> {
        {
            let state = self.state.lock();
            if let Some((region, at)) = state.log.in_memory(found.location) {
                return Ok(region.bytes(at, HEADER_BYTES).to_vec());
            }
        }
        let lines = u64::from(census.segment_lines);
        let number = (found.location / lines) as u32;
        if content.as_ref().is_none_or(|(last, _)| *last != number) {
            *content = Some((number, self.segment_content(number)?));
        }
        let at = (found.location % lines) as usize * LINE_BYTES;
        Ok(content.as_ref().map_or_else(Vec::new, |(_, region)| region.bytes(at, HEADER_BYTES).to_vec()))
    }
}
