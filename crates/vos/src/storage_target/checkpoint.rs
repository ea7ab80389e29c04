//! The index on disk: written when a target is closed, so that the next open need not read the log.
//!
//! 64-bit words, little endian: a head, segments, discards, then containers, objects, dkeys and akeys, each with a count before it; a
//! CRC-64 behind. It is taken away before the first change.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use crc_fast::{CrcAlgorithm, Digest};
use driver::Error;

use super::open::{Purpose, TargetSetup, file_error};
use super::{Discard, State, Target, loose};
use crate::FORMAT_VERSION;
use crate::extents::{Change, ExtentNode, ExtentVersion};
use crate::files;
use crate::index::{DkeyNode, Index, Link, NO_LINK, ObjectNode, Objects, object_hash};
use crate::log::{Segment, Use};
use crate::model::{Epoch, ObjectId};
use crate::table::{Entry, Table, Tag, Version};
use crate::types::ContainerId;

const MAGIC: u64 = u64::from_le_bytes(*b"STRATIDX");
const BUFFER_BYTES: usize = 1 << 20;

/// Writes words, and their CRC.
struct Writer {
    file: File,
    buffer: Vec<u8>,
    digest: Digest,
}

impl Writer {
    fn put(&mut self, words: &[u64]) -> std::io::Result<()> {
        for word in words {
            self.buffer.extend_from_slice(&word.to_le_bytes());
        }
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.digest.update(&self.buffer);
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Writer {
    /// Writes the CRC behind the rest, and makes it all durable.
    fn finish(mut self, path: &Path) -> std::io::Result<()> {
        self.flush()?;
        let crc = self.digest.finalize();
        self.file.write_all(&crc.to_le_bytes())?;
        files::sync(&self.file, path)
    }
}

/// Reads words. The file has been checked as a whole before.
struct Reader {
    file: BufReader<File>,
}

impl Reader {
    fn words<const N: usize>(&mut self) -> std::io::Result<[u64; N]> {
        let mut words = [0; N];
        for word in &mut words {
            let mut bytes = [0; 8];
            self.file.read_exact(&mut bytes)?;
            *word = u64::from_le_bytes(bytes);
        }
        Ok(words)
    }

    fn word(&mut self) -> std::io::Result<u64> {
        Ok(self.words::<1>()?[0])
    }
}

impl Target {
    /// Ends all changes and writes the index down; not where the next open has to read the log.
    pub(crate) fn close(&self, path: &Path, writes_index: bool) -> Result<(), Error> {
        let failed = |error: std::io::Error| file_error("cannot write the index", path, error);
        {
            let mut state = self.state.lock();
            if state.is_closed {
                return Ok(());
            }
            state.is_closed = true;
            if state.log.is_broken {
                // What it holds may not be on the medium: the next open reads what is.
                return Err(failed(std::io::Error::from_raw_os_error(crate::StoreError::Broken.errno())));
            }
        }
        // What is dropped at this moment gives its room back first: the index tells what is free.
        let _alone = self.aggregating.lock();
        let written = self.write_all();
        written.map_err(|error| failed(error.into()))?;
        if !writes_index {
            return Ok(());
        }
        let state = self.state.lock();
        let partial = path.with_extension("partial");
        let written = files::make_empty(&partial).and_then(|file| {
            let buffer = Vec::with_capacity(BUFFER_BYTES + 4096);
            let mut writer = Writer { file, buffer, digest: Digest::new(CrcAlgorithm::Crc64Xz) };
            state.save(&mut writer)?;
            writer.finish(&partial)
        });
        if let Err(error) = written {
            // A part of an index is of no use.
            let _ = std::fs::remove_file(&partial);
            // Without one the next open reads the log, which has everything.
            return if files::is_full(&error) { Ok(()) } else { Err(failed(error)) };
        }
        files::rename(&partial, path).map_err(failed)?;
        loose::remove(files::directory_of(path))
    }

    /// Makes the whole log durable, whatever durability it was opened with.
    fn write_all(&self) -> Result<(), crate::StoreError> {
        let appended = {
            let mut state = self.state.lock();
            state.log.commit_pending()?;
            state.log.appended
        };
        if self.mapped.is_some() { self.sync_mapped() } else { self.sync_to(appended) }
    }

    /// Loads a checkpoint and takes it away. False where there is none, or none that is good.
    pub(super) fn load_checkpoint(&self, path: &Path, setup: &TargetSetup) -> Result<bool, Error> {
        let failed = |error: std::io::Error| file_error("cannot read the index", path, error);
        if !path.exists() {
            return Ok(false);
        }
        let is_loaded = if is_whole(path).map_err(failed)? {
            let file = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(failed)?);
            let mut state = self.state.lock();
            state.load(&mut Reader { file }, self, setup).map_err(failed)?
        } else {
            self.note(format!(
                "target {}: the checksum of its index does not match: the log was read instead",
                self.number
            ));
            false
        };
        if !is_loaded {
            let mut state = self.state.lock();
            state.index = Index::default();
            state.discards.clear();
            state.extents = crate::data::Allocator::new(setup.nvme_bytes);
        }
        if is_loaded {
            // From here on the log is what counts: how it may look after a failure is settled before.
            self.mark(setup)?;
        }
        if setup.purpose == Purpose::Use {
            files::remove(path).map_err(failed)?;
        }
        Ok(is_loaded)
    }

    /// Notes whether what comes from now on is ordered.
    pub(super) fn mark(&self, setup: &TargetSetup) -> Result<(), Error> {
        if setup.purpose != Purpose::Use {
            return Ok(());
        }
        let epoch = self.state.lock().epoch;
        if self.is_loose() { loose::write(&setup.dir, epoch) } else { loose::remove(&setup.dir) }
    }
}

/// Whether the CRC at the end of a file matches.
pub(crate) fn is_whole(path: &Path) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    let Some(mut left) = file.metadata()?.len().checked_sub(8) else { return Ok(false) };
    let mut digest = Digest::new(CrcAlgorithm::Crc64Xz);
    let mut buffer = vec![0; BUFFER_BYTES];
    while left > 0 {
        let length = left.min(BUFFER_BYTES as u64) as usize;
        file.read_exact(&mut buffer[..length])?;
        digest.update(&buffer[..length]);
        left -= length as u64;
    }
    let mut crc = [0; 8];
    file.read_exact(&mut crc)?;
    Ok(digest.finalize() == u64::from_le_bytes(crc))
}

impl State {
    fn save(&self, out: &mut Writer) -> std::io::Result<()> {
        let log = &self.log;
        let active = log.active.map_or(u64::MAX, |active| active as u64);
        out.put(&[MAGIC, u64::from(FORMAT_VERSION), self.epoch, active, log.segments.len() as u64])?;
        for segment in &log.segments {
            out.put(&[
                u64::from(segment.usage != Use::Free) << 32 | u64::from(segment.sequence),
                u64::from(segment.live_lines) << 32 | u64::from(segment.used_lines),
                segment.dead_epoch_min,
                u64::from(segment.has_space),
            ])?;
        }
        out.put(&[self.discards.len() as u64])?;
        for discard in &self.discards {
            let [stamp, refer] = discard.version.to_words();
            out.put(&[u64::from(discard.container.0), discard.first, discard.last, stamp, refer])?;
        }
        let extents = self.extents.free_extents();
        out.put(&[extents.len() as u64])?;
        for (start, bytes) in extents {
            out.put(&[start, bytes])?;
        }
        out.put(&[self.index.keys, self.index.containers.len() as u64])?;
        for objects in &self.index.containers {
            out.put(&[objects.table.len() as u64])?;
            for entry in objects.table.iter() {
                let node = self.index.objects.get(entry.node_number());
                out.put(&[node.id.lo, node.id.hi])?;
                save_versions(out, node.punches.iter().copied())?;
                let (is_known, largest) = (node.largest.is_some(), node.largest.flatten());
                out.put(&[u64::from(is_known) << 1 | u64::from(largest.is_some()), largest.unwrap_or(0)])?;
                self.save_table(out, &node.dkeys)?;
            }
        }
        Ok(())
    }

    fn save_table(&self, out: &mut Writer, table: &Table) -> std::io::Result<()> {
        out.put(&[table.len() as u64])?;
        for entry in table.iter() {
            out.put(&entry.to_words())?;
            match entry.tag() {
                Tag::Chain => save_versions(out, self.index.versions(entry))?,
                Tag::Extents => {
                    let history = &self.index.extents.get(entry.node_number()).history;
                    out.put(&[history.len() as u64])?;
                    for version in history {
                        let change = version.change as u64;
                        out.put(&[version.epoch, version.location, u64::from(version.lines) << 2 | change])?;
                        out.put(&[version.start, version.bytes])?;
                    }
                }
                Tag::Dkey => {
                    let node = self.index.dkeys.get(entry.node_number());
                    save_versions(out, node.punches.iter().copied())?;
                    self.save_table(out, &node.akeys)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// False where it is of another version or another pool.
    fn load(&mut self, from: &mut Reader, target: &Target, setup: &TargetSetup) -> std::io::Result<bool> {
        let [magic, version, epoch, active, segments] = from.words()?;
        if (magic, version, segments) != (MAGIC, u64::from(FORMAT_VERSION), u64::from(setup.segments)) {
            return Ok(false);
        }
        self.epoch = epoch;
        if active != u64::MAX && active >= segments {
            return Ok(false);
        }
        let mut all = Vec::with_capacity(segments as usize);
        for _ in 0..segments {
            let [usage, lines, dead_epoch_min, has_space] = from.words()?;
            all.push(Segment {
                usage: if usage >> 32 == 0 { Use::Free } else { Use::Sealed },
                sequence: usage as u32,
                live_lines: (lines >> 32) as u32,
                used_lines: lines as u32,
                dead_epoch_min,
                ..Segment::free(has_space != 0 && target.mapped.is_none())
            });
        }
        self.log = target.new_log(setup, all);
        if active != u64::MAX {
            self.log.resume(active as usize)?;
        }
        for _ in 0..from.word()? {
            let [container, first, last, stamp, refer] = from.words()?;
            let version = Version::from_words([stamp, refer]);
            self.discards.push(Discard { container: ContainerId(container as u32), first, last, version });
        }
        let mut free = Vec::new();
        for _ in 0..from.word()? {
            let [start, bytes] = from.words()?;
            free.push((start, bytes));
        }
        self.extents = crate::data::Allocator::of_free(&free);
        let [keys, containers] = from.words()?;
        self.index.keys = keys;
        for container in 0..containers as u32 {
            let count = from.word()?;
            let mut entries = Vec::with_capacity(room_for(count));
            for _ in 0..count {
                let object = self.load_object(from, container)?;
                let hash = object_hash(self.index.objects.get(object).id);
                entries.push(Entry::node(hash, 0, 0, Tag::Object, object));
            }
            self.index.containers.push(Objects { table: Table::of_sorted(entries) });
        }
        target.durable_epoch.store(epoch, std::sync::atomic::Ordering::Release);
        Ok(true)
    }

    fn load_object(&mut self, from: &mut Reader, container: u32) -> std::io::Result<u32> {
        let [lo, hi] = from.words()?;
        let punches = load_versions(from)?;
        let [known, largest] = from.words()?;
        let largest = (known >> 1 != 0).then_some((known & 1 != 0).then_some(largest));
        let dkeys = self.load_table(from)?;
        let id = ObjectId { lo, hi };
        Ok(self.index.objects.insert(ObjectNode { container, id, dkeys, punches, largest }))
    }

    fn load_table(&mut self, from: &mut Reader) -> std::io::Result<Table> {
        let count = from.word()?;
        let mut entries = Vec::with_capacity(room_for(count));
        for _ in 0..count {
            let entry = Entry::from_words(from.words()?);
            let node = |tag, number| Entry::node(entry.hash, entry.extra(), entry.akey, tag, number);
            entries.push(match entry.tag() {
                Tag::Chain => {
                    let mut next = NO_LINK;
                    for version in load_versions(from)?.into_iter().rev() {
                        next = self.index.links.insert(Link { version, next });
                    }
                    node(Tag::Chain, next)
                }
                Tag::Extents => {
                    let extents = load_extents(from)?;
                    node(Tag::Extents, self.index.extents.insert(extents))
                }
                Tag::Dkey => {
                    let punches = load_versions(from)?;
                    let akeys = self.load_table(from)?;
                    node(Tag::Dkey, self.index.dkeys.insert(DkeyNode { akeys, punches }))
                }
                _ => entry,
            });
        }
        Ok(Table::of_sorted(entries))
    }
}

/// Room that is taken at once for so many entries: a count is believed as far as entries follow.
fn room_for(count: u64) -> usize {
    count.min(1 << 20) as usize
}

fn save_versions(out: &mut Writer, versions: impl Iterator<Item = Version> + Clone) -> std::io::Result<()> {
    out.put(&[versions.clone().count() as u64])?;
    for version in versions {
        out.put(&version.to_words())?;
    }
    Ok(())
}

fn load_versions(from: &mut Reader) -> std::io::Result<Vec<Version>> {
    (0..from.word()?).map(|_| Ok(Version::from_words(from.words()?))).collect()
}

fn load_extents(from: &mut Reader) -> std::io::Result<ExtentNode> {
    let mut node = ExtentNode::default();
    for _ in 0..from.word()? {
        let [epoch, location, packed]: [Epoch; 3] = from.words()?;
        let [start, bytes] = from.words()?;
        let change = match packed & 3 {
            0 => Change::Data,
            1 => Change::Hole,
            _ => Change::All,
        };
        node.apply(ExtentVersion { epoch, location, lines: (packed >> 2) as u32, change, start, bytes });
    }
    Ok(node)
}
