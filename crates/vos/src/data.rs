//! The data file: extents of large values, allocated in blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::error::StoreError;
use super::medium::{BLOCK_BYTES, Medium};

/// Chunks that have their space before values come to them.
const AHEAD_CHUNKS: usize = 2;
/// Nothing is taken ahead where the file system has less than so many chunks free.
const FREE_CHUNKS_MIN: u64 = 8;

/// Unit in which space of the file system is taken, in bytes.
const CHUNK_BYTES: u64 = 8 << 20;

/// The file, shared by threads; the allocator is locked with its target.
#[derive(Debug)]
pub(super) struct DataFile {
    pub(super) medium: Arc<dyn Medium>,
    pub(super) bytes: u64,
    /// Values from this size on go here.
    pub(super) threshold_bytes: u64,
    /// Something was written since the last sync.
    pub(super) is_dirty: AtomicBool,
    /// Reads that go on without the lock, by their side: nothing that is freed is used again meanwhile (see [`Allocator`]).
    pub(super) readers: [AtomicU32; 2],
    /// The side that new readers count on. Changed under the target's lock only.
    side: AtomicUsize,
    /// Chunks that have their space.
    chunks: Box<[AtomicBool]>,
    /// Chunks from the first one to the last that values were put into since the store was opened.
    used_chunks: AtomicUsize,
    /// Bytes that were taken from the file system since space was last prepared for a phase.
    pub(super) grown_bytes: AtomicU64,
}

impl DataFile {
    pub(super) fn new(medium: Arc<dyn Medium>, bytes: u64, threshold_bytes: u64) -> Self {
        Self {
            medium,
            bytes,
            threshold_bytes,
            is_dirty: AtomicBool::new(false),
            readers: [AtomicU32::new(0), AtomicU32::new(0)],
            side: AtomicUsize::new(0),
            chunks: (0..bytes.div_ceil(CHUNK_BYTES)).map(|_| AtomicBool::new(false)).collect(),
            used_chunks: AtomicUsize::new(0),
            grown_bytes: AtomicU64::new(0),
        }
    }

    /// Counts a reader; the target's lock is held. Returns its side.
    pub(super) fn begin_read(&self) -> usize {
        let side = self.side.load(Ordering::Relaxed);
        self.readers[side].fetch_add(1, Ordering::AcqRel);
        side
    }

    /// Ends a read.
    pub(super) fn end_read(&self, side: usize) {
        self.readers[side].fetch_sub(1, Ordering::AcqRel);
    }

    /// Takes the space of a value from the file system: a system call, so not under the target's lock. [`StoreError::NvmeFull`] where it
    /// has none.
    pub(super) fn ensure_spread(&self, spread: &Spread, bytes: u64) -> Result<(), StoreError> {
        spread.pieces(bytes).try_for_each(|(at, bytes)| self.ensure(at, bytes))
    }

    /// Takes the space of the whole file.
    pub(super) fn ensure_all(&self) -> Result<(), StoreError> {
        (0..self.chunks.len()).try_for_each(|chunk| self.ensure_chunk(chunk))
    }

    fn ensure(&self, at: u64, bytes: u64) -> Result<(), StoreError> {
        let last = ((at + bytes).div_ceil(CHUNK_BYTES) as usize).min(self.chunks.len());
        self.used_chunks.fetch_max(last, Ordering::Relaxed);
        for chunk in (at / CHUNK_BYTES) as usize..last {
            self.ensure_chunk(chunk)?;
        }
        Ok(())
    }

    fn ensure_chunk(&self, chunk: usize) -> Result<(), StoreError> {
        if self.chunks[chunk].load(Ordering::Acquire) {
            return Ok(());
        }
        let at = chunk as u64 * CHUNK_BYTES;
        self.medium.allocate(at, CHUNK_BYTES.min(self.bytes - at)).map_err(|error| match error {
            StoreError::ScmFull => StoreError::NvmeFull,
            other => other,
        })?;
        self.chunks[chunk].store(true, Ordering::Release);
        self.grown_bytes.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the space of the chunks behind the last one that values lie in, so that updates need not. Not where the file system has
    /// little left: others may need it sooner.
    pub(super) fn ensure_ahead(&self) -> Result<(), StoreError> {
        let Some(next) = self.next_chunk() else { return Ok(()) };
        if self.medium.free_bytes() / CHUNK_BYTES < FREE_CHUNKS_MIN {
            return Ok(());
        }
        (next..self.chunks.len()).take(AHEAD_CHUNKS).try_for_each(|chunk| self.ensure_chunk(chunk))
    }

    /// Whether updates will soon come to a chunk without its space.
    pub(super) fn is_low(&self) -> bool {
        let has_space = |chunk: &AtomicBool| chunk.load(Ordering::Relaxed);
        self.next_chunk().and_then(|next| self.chunks.get(next)).is_some_and(|chunk| !has_space(chunk))
    }

    /// The chunk behind the last one that values lie in; none before the first value.
    fn next_chunk(&self) -> Option<usize> {
        Some(self.used_chunks.load(Ordering::Relaxed)).filter(|used| *used > 0)
    }

    /// Takes the space of free extents from the file system, of so many bytes altogether.
    pub(super) fn stock(&self, free: &[(u64, u64)], bytes: u64, stop: &AtomicBool) -> Result<(), StoreError> {
        let mut left = bytes;
        for &(start, length) in free {
            let length = length.min(left);
            left -= length;
            for chunk in (start / CHUNK_BYTES)..(start + length).div_ceil(CHUNK_BYTES) {
                let is_low = self.medium.free_bytes() / CHUNK_BYTES < FREE_CHUNKS_MIN;
                if is_low || stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.ensure_chunk(chunk as usize)?;
            }
        }
        Ok(())
    }

    /// Makes durable what was written.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        if self.is_dirty.swap(false, Ordering::AcqRel) {
            return self.medium.sync(0, self.bytes);
        }
        Ok(())
    }
}

/// Where a value lies in the data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// In one extent, from here on.
    One(u64),
    /// In pieces, in the order of its bytes: where each begins, and its bytes. All but the last are whole blocks.
    Many(Box<[(u64, u64)]>),
}

impl Spread {
    /// Its pieces; `bytes` is the size of the value.
    pub(super) fn pieces(&self, bytes: u64) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        let (one, many) = match self {
            Self::One(at) => (Some((*at, bytes)), &[][..]),
            Self::Many(pieces) => (None, &pieces[..]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// Whether it holds a value of so many bytes, inside a file of `file_bytes`.
    pub(super) fn holds(&self, bytes: u64, file_bytes: u64) -> bool {
        let is_inside =
            |(at, length): (u64, u64)| at.checked_add(length).is_some_and(|end| end <= file_bytes);
        let sum = self.pieces(bytes).try_fold(0u64, |sum, (_, length)| sum.checked_add(length));
        self.pieces(bytes).all(is_inside) && sum == Some(bytes)
    }

    /// Number of pieces as a record has it.
    pub(super) fn count(&self) -> u16 {
        match self {
            Self::One(_) => 0,
            Self::Many(pieces) => pieces.len() as u16,
        }
    }
}

/// Size of an extent that holds so many bytes.
pub(super) fn extent_bytes(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(BLOCK_BYTES as u64)
}

/// Free extents of the data file: the smallest that is large enough is taken.
///
/// Space that is freed while somebody reads waits on the side that readers are counted on. When the other side has no readers left, its
/// extents are free, and new readers are counted there: so each extent waits for the readers that were there before, and no others.
#[derive(Debug, Default)]
pub(super) struct Allocator {
    by_start: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    free_bytes: u64,
    /// Freed while somebody read, by side.
    waiting: [Vec<(u64, u64)>; 2],
}

impl Allocator {
    /// Everything is free.
    pub(super) fn new(bytes: u64) -> Self {
        let mut allocator = Self::default();
        allocator.put(0, bytes);
        allocator
    }

    /// Of free extents.
    pub(super) fn of_free(extents: &[(u64, u64)]) -> Self {
        let mut allocator = Self::default();
        extents.iter().for_each(|(start, bytes)| allocator.put(*start, *bytes));
        allocator
    }

    /// All that is free, or will be.
    pub(super) fn free_extents(&self) -> Vec<(u64, u64)> {
        self.by_start
            .iter()
            .map(|(start, bytes)| (*start, *bytes))
            .chain(self.waiting.iter().flatten().copied())
            .collect()
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.free_bytes + self.waiting.iter().flatten().map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// Whether something freed waits for its readers.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.iter().any(|side| !side.is_empty())
    }

    /// An extent for so many bytes.
    pub(super) fn take(&mut self, bytes: u64, file: &DataFile) -> Result<u64, StoreError> {
        self.settle(file);
        let bytes = extent_bytes(bytes);
        let (size, start) = *self.by_size.range((bytes, 0)..).next().ok_or(StoreError::NvmeFull)?;
        self.remove(start, size);
        if size > bytes {
            self.put(start + bytes, size - bytes);
        }
        Ok(start)
    }

    /// Extents for so many bytes, one where there is one that is large enough, else `pieces_max` at most: the largest, so that they are few.
    pub(super) fn take_spread(
        &mut self,
        bytes: u64,
        pieces_max: usize,
        file: &DataFile,
    ) -> Result<Spread, StoreError> {
        if let Ok(at) = self.take(bytes, file) {
            return Ok(Spread::One(at));
        }
        let count = self.scattered_pieces(bytes, file).filter(|count| *count <= pieces_max);
        let count = count.ok_or(StoreError::NvmeFull)?;
        let mut left = bytes;
        let mut pieces = Vec::with_capacity(count);
        for _ in 0..count {
            // The last one is the smallest that is large enough.
            let last = self.by_size.range((extent_bytes(left), 0)..).next();
            let (size, start) = *last.or(self.by_size.last()).ok_or(StoreError::NvmeFull)?;
            let taken = size.min(extent_bytes(left));
            self.remove(start, size);
            self.put(start + taken, size - taken);
            pieces.push((start, taken.min(left)));
            left -= taken.min(left);
        }
        Ok(Spread::Many(pieces.into()))
    }

    /// How many free extents hold so many bytes together; none where all of them do not.
    fn scattered_pieces(&mut self, bytes: u64, file: &DataFile) -> Option<usize> {
        self.settle(file);
        let wanted = extent_bytes(bytes);
        let mut sum = 0;
        let is_short = |(size, _): &&(u64, u64)| {
            let was_short = sum < wanted;
            sum += size;
            was_short
        };
        let count = self.by_size.iter().rev().take_while(is_short).count();
        (self.free_bytes >= wanted).then_some(count)
    }

    /// Takes certain extents: all, or none where a part of one is taken already.
    pub(super) fn claim_spread(&mut self, spread: &Spread, bytes: u64) -> bool {
        let claimed = spread.pieces(bytes).take_while(|(start, bytes)| self.claim(*start, *bytes)).count();
        let is_whole = claimed == spread.pieces(bytes).count();
        if !is_whole {
            spread
                .pieces(bytes)
                .take(claimed)
                .for_each(|(start, bytes)| self.put(start, extent_bytes(bytes)));
        }
        is_whole
    }

    /// Gives the extents of a value back.
    pub(super) fn give_spread(&mut self, spread: &Spread, bytes: u64, file: &DataFile) {
        spread.pieces(bytes).for_each(|(start, bytes)| self.give(start, bytes, file));
    }

    /// Takes a certain extent; false where a part of it is taken already.
    fn claim(&mut self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(extent_bytes(bytes)) else { return false };
        let bytes = end - start;
        let Some((&from, &size)) = self.by_start.range(..=start).next_back() else { return false };
        if end > from + size {
            return false;
        }
        self.remove(from, size);
        self.put(from, start - from);
        self.put(start + bytes, from + size - start - bytes);
        true
    }

    /// Gives an extent back.
    pub(super) fn give(&mut self, start: u64, bytes: u64, file: &DataFile) {
        self.waiting[file.side.load(Ordering::Relaxed)].push((start, extent_bytes(bytes)));
        self.settle(file);
    }

    /// Frees what no reader holds any more.
    fn settle(&mut self, file: &DataFile) {
        for _ in 0..2 {
            let side = file.side.load(Ordering::Relaxed);
            if self.waiting.iter().all(Vec::is_empty) || file.readers[1 - side].load(Ordering::Acquire) > 0 {
                return;
            }
            for (start, bytes) in std::mem::take(&mut self.waiting[1 - side]) {
                self.put(start, bytes);
            }
            file.side.store(1 - side, Ordering::Relaxed);
        }
    }

    fn remove(&mut self, start: u64, bytes: u64) {
        self.by_start.remove(&start);
        self.by_size.remove(&(bytes, start));
        self.free_bytes -= bytes;
    }

    fn put(&mut self, mut start: u64, mut bytes: u64) {
        if bytes == 0 {
            return;
        }
        if let Some((&before, &size)) = self.by_start.range(..start).next_back()
            && before + size == start
        {
            self.remove(before, size);
            (start, bytes) = (before, size + bytes);
        }
        if let Some(&size) = self.by_start.get(&(start + bytes)) {
            self.remove(start + bytes, size);
            bytes += size;
        }
        self.by_start.insert(start, bytes);
        self.by_size.insert((bytes, start));
        self.free_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = BLOCK_BYTES as u64;

    fn file(bytes: u64) -> DataFile {
        let scratch = tempfile::NamedTempFile::new().expect("a file");
        let medium = crate::medium::Direct::new(scratch.path()).expect("opened");
        DataFile::new(Arc::new(medium), bytes, 1)
    }

    #[test]
    fn extents_come_back_whole() {
        let (mut space, file) = (Allocator::new(10 * BLOCK), file(10 * BLOCK));
        let first = space.take(1, &file).expect("room");
        let second = space.take(3 * BLOCK, &file).expect("room");
        let third = space.take(6 * BLOCK - 1, &file).expect("room");
        assert_eq!((first, second, third, space.free_bytes()), (0, BLOCK, 4 * BLOCK, 0));
        assert_eq!(space.take(1, &file), Err(StoreError::NvmeFull));
        space.give(first, 1, &file);
        space.give(third, 6 * BLOCK - 1, &file);
        assert_eq!(space.take(2 * BLOCK, &file), Ok(4 * BLOCK), "the smallest that fits");
        space.give(4 * BLOCK, 2 * BLOCK, &file);
        let reader = file.begin_read();
        space.give(second, 3 * BLOCK, &file);
        assert_eq!(space.free_bytes(), 10 * BLOCK);
        let later = file.begin_read();
        assert_eq!(space.take(10 * BLOCK, &file), Err(StoreError::NvmeFull), "somebody reads");
        file.end_read(reader);
        assert_eq!(space.take(10 * BLOCK, &file), Ok(0), "the later reader cannot have found it");
        file.end_read(later);
    }

    #[test]
    fn claims_do_not_overlap() {
        let mut space = Allocator::new(8 * BLOCK);
        assert!(space.claim(2 * BLOCK, 2 * BLOCK) && space.claim(6 * BLOCK, 2 * BLOCK));
        assert!(
            !space.claim(3 * BLOCK, BLOCK) && !space.claim(BLOCK, 2 * BLOCK) && !space.claim(8 * BLOCK, 1)
        );
        assert_eq!(space.free_bytes(), 4 * BLOCK);
        assert!(space.claim(0, 2 * BLOCK) && space.claim(4 * BLOCK, 2 * BLOCK) && space.free_bytes() == 0);
    }

    #[test]
    fn values_are_scattered_over_few_extents() {
        let (mut space, file) = (Allocator::default(), file(100 * BLOCK));
        for (start, blocks) in [(0, 1), (10, 3), (20, 5), (30, 2), (40, 4)] {
            space.put(start * BLOCK, blocks * BLOCK);
        }
        assert_eq!(
            space.take_spread(4 * BLOCK, 0, &file),
            Ok(Spread::One(40 * BLOCK)),
            "in one where it fits"
        );
        assert_eq!(space.take_spread(7 * BLOCK, 1, &file), Err(StoreError::NvmeFull), "too many pieces");
        let spread = space.take_spread(7 * BLOCK - 5, 2, &file).expect("room");
        assert_eq!(spread, Spread::Many([(20 * BLOCK, 5 * BLOCK), (30 * BLOCK, 2 * BLOCK - 5)].into()));
        assert!(spread.holds(7 * BLOCK - 5, 32 * BLOCK) && !spread.holds(7 * BLOCK, 32 * BLOCK));
        assert!(!spread.holds(7 * BLOCK - 5, 31 * BLOCK));
        assert_eq!(space.take_spread(5 * BLOCK, 9, &file), Err(StoreError::NvmeFull));
        assert_eq!(space.free_bytes(), 4 * BLOCK);
        space.give_spread(&spread, 7 * BLOCK - 5, &file);
        assert_eq!(space.free_bytes(), 11 * BLOCK);
        assert!(space.claim_spread(&spread, 7 * BLOCK - 5) && !space.claim_spread(&spread, 7 * BLOCK - 5));
        let overlapping = Spread::Many([(10 * BLOCK, BLOCK), (20 * BLOCK, BLOCK)].into());
        assert!(!space.claim_spread(&overlapping, 2 * BLOCK), "all or none");
        assert_eq!(space.take_spread(3 * BLOCK, 0, &file), Ok(Spread::One(10 * BLOCK)));
    }
}
