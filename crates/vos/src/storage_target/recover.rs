//! Building the index from the log, after a kill or a power failure.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use crate::Checksum;

use super::marks::{Mark, is_spread};
use super::open::TargetSetup;
use super::reading::gather;
use super::scan::{self, Committed, Found, Gap, Scanned};
use super::{Discard, State, Target};
use crate::checksum;
use crate::data::Spread;
use crate::error::StoreError;
use crate::extents::{Change, ExtentVersion};
use crate::index::{Hashes, akey_hash};
use crate::log::{Segment, Use, write_zeros};
use crate::medium::BLOCK_BYTES;
use crate::memory::Region;
use crate::model::{Epoch, ObjectId};
use crate::record::{COMMIT_AT, FLAG_MOVED, Header, Kind, LAG_UNKNOWN, LINE_BYTES};
use crate::segment::{SegmentHead, is_free, parse_segment_header};
use crate::table::Version;
use crate::transaction::Transaction;
use crate::types::{ContainerId, KeyPath};

/// A record, as recovery needs it.
#[derive(Clone, Debug)]
struct Item {
    header: Header,
    hashes: Hashes,
    location: u64,
    lines: u32,
    /// Length of a punched extent, or last epoch of a discard.
    number: u64,
    /// Where its value lies in the data file.
    spread: Option<Spread>,
    dkey: Option<u64>,
    /// Its data does not match (looked at in buffered logs only).
    is_torn: bool,
    /// Its commit word does not match: nor can its epoch be relied on.
    is_damaged: bool,
    /// No epoch is known before it in its segment: the one it has is the last that it can be of.
    is_dated_behind: bool,
    /// Which change of several targets it is a part of.
    transaction: Transaction,
}

impl Item {
    /// Epoch up to which everything was durable when this was written.
    fn durable_epoch(&self) -> Epoch {
        let header = &self.header;
        let is_told = header.lag != LAG_UNKNOWN && header.flags & FLAG_MOVED == 0 && !self.is_torn;
        if is_told { header.epoch.saturating_sub(u64::from(header.lag)) } else { 0 }
    }
}

/// Records of a segment that was read.
struct Read {
    number: u32,
    head: SegmentHead,
    scanned: Scanned,
    items: Vec<Item>,
    /// Latest epoch of what was taken back.
    withdrawn: Epoch,
}

impl Target {
    /// Reads all segments, with as many threads as there are processors, and puts their records into the index. `marked`: a process
    /// before wrote it mapped, and nothing ordered what is later than this epoch. Returns the latest epoch that was seen in it.
    pub(super) fn recover(&self, setup: &TargetSetup, marked: Option<Epoch>) -> Result<Epoch, StoreError> {
        let is_loose = !setup.is_ordered() || marked.is_some();
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
        let (sender, receiver) = sync_channel::<Result<Read, StoreError>>(threads);
        let mut reads = Vec::new();
        let mut later = Vec::new();
        let (mut durable, mut newest) = (marked.unwrap_or(0), 0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= setup.segments as usize
                            || sender.send(self.read_segment(number as u32, setup, is_loose)).is_err()
                        {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut state = self.state.lock();
            for read in receiver {
                let mut read = read?;
                newest = newest.max(read.withdrawn);
                state.epoch = state.epoch.max(read.withdrawn);
                for item in read.items.drain(..) {
                    if item.is_damaged {
                        later.push(item);
                        continue;
                    }
                    newest = newest.max(item.header.epoch);
                    durable = durable.max(item.durable_epoch());
                    let is_simple =
                        item.header.kind == Kind::Single && !item.is_torn && !item.header.is_external();
                    if is_simple { self.restore(&mut state, &item, setup) } else { later.push(item) }
                }
                reads.push(read);
            }
            Ok::<(), StoreError>(())
        })?;
        let durable = is_loose.then_some(durable);
        self.set_segments(&reads, setup, durable)?;
        self.restore_rest(later, (newest, durable), setup)?;
        let epoch = self.discard_again()?;
        if is_loose {
            // What a process that was killed had written is read, and is not durable yet.
            if let Some(data) = &self.data {
                data.medium.sync(0, data.bytes)?;
            }
            self.medium.sync(0, setup.segment_bytes * u64::from(setup.segments))?;
        }
        self.durable_epoch.store(epoch, Ordering::Release);
        Ok(newest)
    }

    /// Puts a record into the index, and notes which change it is a part of.
    fn restore(&self, state: &mut State, item: &Item, setup: &TargetSetup) {
        state.restore(item);
        let (header, transaction) = (&item.header, item.transaction);
        let is_known = state.containers.contains_key(&header.container);
        if item.is_damaged {
            self.marks.lock().is_damaged = true;
        } else if header.epoch > setup.settled && is_known && is_spread(header.object) {
            self.marks.lock().all.push(Mark {
                transaction,
                epoch: header.epoch,
                location: item.location,
                container: header.container,
                object: header.object,
                dkey: item.hashes.dkey,
                is_of_object: header.kind == Kind::PunchObject,
            });
        }
    }

    /// Makes durable what was rewritten.
    pub(super) fn sync_log(&self) -> Result<(), StoreError> {
        let segments = self.state.lock().log.segments.len() as u64;
        self.medium.sync(0, segments * u64::from(self.segment_lines) * LINE_BYTES as u64)
    }

    fn read_segment(&self, number: u32, setup: &TargetSetup, is_loose: bool) -> Result<Read, StoreError> {
        let bytes = setup.segment_bytes as usize;
        let at = u64::from(number) * setup.segment_bytes;
        // By a read: in the mapping a hole would take a page.
        let mut first = Region::anonymous(BLOCK_BYTES)?;
        self.medium.read(first.bytes_mut(0, BLOCK_BYTES), at)?;
        if is_free(first.bytes(0, LINE_BYTES)) {
            return Ok(self.scan_segment(number, setup, first.bytes(0, BLOCK_BYTES), is_loose));
        }
        if let Some(region) = &self.mapped {
            // Pages that a copy of the file left out are taken here, where a full file system is an error.
            self.medium.allocate(at, setup.segment_bytes)?;
            return Ok(self.scan_segment(number, setup, region.bytes(at as usize, bytes), is_loose));
        }
        let mut whole = Region::anonymous(bytes)?;
        self.medium.read(whole.bytes_mut(0, bytes), at)?;
        Ok(self.scan_segment(number, setup, whole.bytes(0, bytes), is_loose))
    }

    fn scan_segment(&self, number: u32, setup: &TargetSetup, segment: &[u8], is_loose: bool) -> Read {
        let mut items = Vec::new();
        let head = segment
            .first_chunk::<LINE_BYTES>()
            .map_or(SegmentHead::Damaged, |header| parse_segment_header(header, &setup.uuid, number));
        let SegmentHead::Used(sequence) = head else {
            return Read { number, head, scanned: Scanned::default(), items, withdrawn: 0 };
        };
        let base = u64::from(number) * u64::from(self.segment_lines);
        let (mut last_epoch, mut withdrawn) = (0, 0);
        // Of those at the head of a segment only what stands behind them tells the time.
        let mut undated = Vec::new();
        let scanned = scan::scan(segment, sequence, &mut |found: &Found, record| {
            if let Some(own) = found.own_epoch() {
                last_epoch = own;
                undated.drain(..).for_each(|at: usize| items[at].header.epoch = own.saturating_sub(1));
            }
            if found.state == Committed::Withdrawn {
                withdrawn = withdrawn.max(found.header.epoch);
            }
            if matches!(found.state, Committed::No | Committed::Withdrawn) {
                return;
            }
            let (mut header, is_damaged) = (found.header, found.state == Committed::Damaged);
            let is_dated_behind = is_damaged && is_loose && last_epoch == 0;
            if is_dated_behind {
                header.epoch = Epoch::MAX;
                undated.push(items.len());
            } else if is_damaged && last_epoch > 0 {
                // Its own may be what is damaged; the log is in the order of epochs, but for what was moved.
                header.epoch = last_epoch + 1;
            }
            let (dkey, akey) = (header.dkey(record), header.akey(record));
            let data = &record[header.data_at()..][..header.inline_bytes()];
            let is_torn = is_loose
                && (is_damaged
                    || (!header.is_external()
                        && header.kind.has_data()
                        && !checksum::verifies(header.checksum, data, header.sums(record))));
            let hashes = match header.kind {
                Kind::PunchObject | Kind::Discard => Hashes { dkey: 0, extra: 0, akey: akey_hash(akey) },
                _ => Hashes::of(dkey, akey),
            };
            items.push(Item {
                header,
                hashes,
                location: base + u64::from(found.line),
                lines: header.lines() as u32,
                number: header.extension_number(record),
                spread: header.is_external().then(|| header.spread(record)),
                dkey: dkey.as_array::<8>().map(|bytes| u64::from_le_bytes(*bytes)),
                is_torn,
                is_damaged,
                is_dated_behind,
                transaction: header.transaction(record),
            });
        });
        Read { number, head, scanned, items, withdrawn }
    }

    /// Sets up the segments. `durable`: see [`Gap::is_damage`].
    fn set_segments(
        &self,
        reads: &[Read],
        setup: &TargetSetup,
        durable: Option<Epoch>,
    ) -> Result<(), StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let mut segments = std::mem::take(&mut state.log.segments);
        let mut newest: Option<(u32, usize)> = None;
        for read in reads {
            let number = read.number as usize;
            let (live_lines, dead_epoch_min) = (segments[number].live_lines, segments[number].dead_epoch_min);
            match read.head {
                SegmentHead::Free(sequence) => {
                    segments[number] = Segment { sequence, ..Segment::free(false) };
                }
                SegmentHead::Damaged => {
                    self.marks.lock().is_damaged = true;
                    self.note(format!("target {}: the header of segment {number} of the log is damaged: its contents are lost", self.number));
                    segments[number].usage = Use::Sealed;
                    segments[number].used_lines = self.segment_lines;
                }
                SegmentHead::Used(sequence) => {
                    let is_open = !read.scanned.is_sealed;
                    let used = if is_open { read.scanned.used_lines } else { self.segment_lines };
                    segments[number] = Segment {
                        usage: Use::Sealed,
                        sequence,
                        live_lines,
                        dead_epoch_min,
                        used_lines: used,
                        ..Segment::free(true)
                    };
                    if newest.is_none_or(|(other, _)| other < sequence) {
                        newest = Some((sequence, number));
                    }
                    for gap in &read.scanned.gaps {
                        if gap.is_damage(durable) {
                            state.gaps.push((read.number, gap.line, gap.lines));
                            self.marks.lock().is_damaged = true;
                        }
                        self.handle_gap(read.number, sequence, gap, durable)?;
                    }
                }
            }
        }
        let appended = state.log.appended;
        state.log = self.new_log(setup, segments);
        // Segments may have been begun whose headers did not reach the medium while records of them did; not twice one without a sync.
        state.log.sequence += setup.segments;
        state.log.appended = appended;
        // The newest segment is written on, if it was not full.
        if let Some((_, number)) = newest
            && state.log.segments[number].used_lines < self.segment_lines
        {
            if state.log.needs_zeros() {
                // So may the rest of it hold what never was, of this life.
                let used = u64::from(state.log.segments[number].used_lines) * LINE_BYTES as u64;
                let (at, bytes) = state.log.extent_of(number as u32);
                write_zeros(&*self.medium, at + used, bytes - used)?;
            }
            state.log.resume(number)?;
        }
        Ok(())
    }

    /// A part of a segment that holds no record although others follow: damage, or writes that a power failure cut. The latter are
    /// filled with a record that says so, because the next recovery could not tell.
    fn handle_gap(
        &self,
        number: u32,
        sequence: u32,
        gap: &Gap,
        durable: Option<Epoch>,
    ) -> Result<(), StoreError> {
        if gap.is_damage(durable) {
            let bytes = gap.lines as usize * LINE_BYTES;
            self.note(format!(
                "target {}: {bytes} bytes at line {} of segment {number} of the log are damaged: their contents are lost",
                self.number, gap.line
            ));
            return Ok(());
        }
        let location = u64::from(number) * u64::from(self.segment_lines) + u64::from(gap.line);
        self.rewrite_line(location, &|line| {
            let place =
                KeyPath { container: ContainerId(0), object: ObjectId::default(), dkey: &[], akey: &[] };
            let header = Header::new(Kind::Seal, &place, Checksum::Off, gap.lines as usize, 0);
            header.write(line, &[], &[], sequence);
            let commit = header.seal(line);
            line[COMMIT_AT..].copy_from_slice(&commit.to_le_bytes());
        })?;
        self.medium
            .sync(location * LINE_BYTES as u64 / BLOCK_BYTES as u64 * BLOCK_BYTES as u64, BLOCK_BYTES as u64)
    }

    /// Changes one line of the log, on the medium: durable with its next sync.
    fn rewrite_line(&self, location: u64, change: &dyn Fn(&mut [u8])) -> Result<(), StoreError> {
        let at = location * LINE_BYTES as u64;
        let block_at = at / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        let mut block = Region::anonymous(BLOCK_BYTES)?;
        let bytes = block.bytes_mut(0, BLOCK_BYTES);
        self.medium.read(bytes, block_at)?;
        change(&mut bytes[(at - block_at) as usize..][..LINE_BYTES]);
        self.medium.write(bytes, block_at)
    }

    /// Puts the rest into the index: in the order of epochs, after what is torn has been cut.
    fn restore_rest(
        &self,
        mut later: Vec<Item>,
        (newest, durable): (Epoch, Option<Epoch>),
        setup: &TargetSetup,
    ) -> Result<(), StoreError> {
        let mut cut = Vec::new();
        for item in &mut later {
            if item.is_damaged && durable.is_none() {
                // Shown as damaged, at an epoch that exists.
                item.header.epoch = item.header.epoch.min(newest);
            }
            let is_moved = item.header.flags & FLAG_MOVED != 0;
            // As for gaps: what stands before something that is durable was, too.
            let epoch = item.header.epoch.saturating_add(item.is_dated_behind.into());
            let is_fresh = durable.is_some_and(|durable| epoch > durable || is_moved);
            if is_fresh && item.header.is_external() {
                item.is_torn |= !self.is_external_intact(item)?;
            }
            if is_fresh && item.is_torn {
                cut.push(item.location);
            }
        }
        cut.sort_unstable();
        later.retain(|item| cut.binary_search(&item.location).is_err());
        if !cut.is_empty() {
            cut.into_iter().try_for_each(|location| self.cut_record(location))?;
            self.sync_log()?;
        }
        let mut guard = self.state.lock();
        let state = &mut *guard;
        // Newer records own their extents: an older one that overlaps was dropped before.
        later.sort_unstable_by_key(|item| std::cmp::Reverse(item.header.epoch));
        later.retain(|item| {
            let Some(spread) = &item.spread else { return true };
            !state.containers.contains_key(&item.header.container)
                || state.extents.claim_spread(spread, u64::from(item.header.bytes))
        });
        later.reverse();
        for item in &later {
            self.restore(state, item, setup);
        }
        Ok(())
    }

    /// Whether data in the data file matches.
    fn is_external_intact(&self, item: &Item) -> Result<bool, StoreError> {
        let (Some(file), Some(spread)) = (&self.data, &item.spread) else { return Ok(false) };
        let bytes = item.header.bytes as usize;
        if !spread.holds(bytes as u64, file.bytes) {
            return Ok(false);
        }
        let mut copy = Region::anonymous(bytes)?;
        gather(file, spread, 0, bytes, copy.bytes_mut(0, copy.len()))?;
        let state = self.state.lock();
        let part = state.part(Version::new(item.header.epoch, item.location, item.lines as usize, false));
        drop(state);
        self.with_record(&part, |record| {
            Ok(checksum::verifies(item.header.checksum, copy.bytes(0, bytes), item.header.sums(record)))
        })
    }

    /// Takes the commit word away from a torn record: the next recovery must not take it for damage.
    pub(super) fn cut_record(&self, location: u64) -> Result<(), StoreError> {
        self.change_commit(location, &|_| 0)
    }

    /// Takes back a record that is published and durable. Its epoch stays: what lies behind it in the log is not as old.
    pub(super) fn withdraw_record(&self, location: u64) -> Result<(), StoreError> {
        self.change_commit(location, &Header::withdrawn)
    }

    fn change_commit(&self, location: u64, change: &dyn Fn(u32) -> u32) -> Result<(), StoreError> {
        let word = Cell::new(0);
        self.rewrite_line(location, &|line| {
            let stored = line[COMMIT_AT..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
            word.set(change(stored));
            line[COMMIT_AT..].copy_from_slice(&word.get().to_le_bytes());
        })?;
        let state = self.state.lock();
        if let Some((region, at)) = state.log.in_memory(location) {
            region.store_release(at + COMMIT_AT, word.get());
        }
        Ok(())
    }
}

impl State {
    /// Puts a record into the index. Records of containers that are gone are dead.
    fn restore(&mut self, item: &Item) {
        let header = &item.header;
        let lines = item.lines as usize;
        let version = Version::new(header.epoch, item.location, lines, !header.kind.has_data());
        self.epoch = self.epoch.max(header.epoch);
        if !self.containers.contains_key(&header.container) {
            return;
        }
        let is_new = match header.kind {
            Kind::Seal => false,
            Kind::Discard => {
                let container: ContainerId = header.container;
                let is_new = self.discards.iter().all(|other| other.version.epoch() != header.epoch);
                if is_new {
                    let (first, last) = (header.offset, item.number);
                    self.discards.push(Discard { container, first, last, version });
                }
                is_new
            }
            kind => {
                let object: ObjectId = header.object;
                let object = self.index.object_or_new(header.container, object);
                if let Some(dkey) = item.dkey.filter(|_| kind.has_data()) {
                    self.note_dkey(object, &dkey.to_le_bytes());
                }
                match kind {
                    Kind::Single => self.index.insert_version(object, &item.hashes, version),
                    Kind::Extent => {
                        let version = ExtentVersion {
                            epoch: header.epoch,
                            location: item.location,
                            lines: item.lines,
                            change: Change::Data,
                            start: header.offset,
                            bytes: u64::from(header.bytes),
                        };
                        self.index.insert_extent(object, &item.hashes, version)
                    }
                    _ => self.apply_punch(&item.hashes, header, object, item.location, item.number),
                }
            }
        };
        let segment = self.log.segment_of(item.location);
        let segment = &mut self.log.segments[segment];
        if is_new {
            segment.live_lines += item.lines;
        } else {
            // A twin that was moved, or an akey that is of the other kind now.
            segment.dead_epoch_min = segment.dead_epoch_min.min(header.epoch);
        }
    }
}
