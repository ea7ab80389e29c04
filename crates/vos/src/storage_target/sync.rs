//! When changes become durable: group commit.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::Durability;

use super::Target;
use crate::error::StoreError;
use crate::log::{Unsynced, blocks_around};
use crate::record::LINE_BYTES;
use crate::types::Ack;
use crate::waits::waiting;

/// Bytes that may wait for a sync with `Durability::Batch`.
const BATCH_BYTES_MAX: u64 = 1 << 20;
/// Bytes that may wait in buffers with `Durability::None`.
const UNSYNCED_BYTES_MAX: u64 = 64 << 20;

/// Part of the time of a sync that its leader waits for others at most.
const LINGER_SHARE: u32 = 4;

/// Who syncs.
#[derive(Debug, Default)]
pub(super) struct Syncing {
    /// A thread does it now, for all that was appended when it began.
    is_led: bool,
    /// Threads that waited when the last sync ended: so many may be back soon.
    expected: u32,
    /// How long it took.
    took: Duration,
}

/// Ends the lead of a thread, however that ends.
struct Lead<'a> {
    target: &'a Target,
    begin: Instant,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut syncing = self.target.syncing.lock();
        syncing.is_led = false;
        syncing.expected = self.target.committing.load(Ordering::Relaxed);
        syncing.took = self.begin.elapsed();
        drop(syncing);
        self.target.synced.notify_all();
    }
}

/// Counts a thread while it waits for a sync, or does it.
struct Committing<'a>(&'a Target);

impl<'a> Committing<'a> {
    fn new(target: &'a Target) -> Self {
        target.committing.fetch_add(1, Ordering::Relaxed);
        Self(target)
    }
}

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        self.0.committing.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Target {
    /// After the lock is released: waits until a change is durable, as it has to be.
    #[inline]
    pub(super) fn settle(&self, ack: Ack, appended: u64) -> Result<(), StoreError> {
        if self.mapped.is_some() {
            return Ok(());
        }
        let waiting_max = match (self.durability, ack) {
            (Durability::Sync, Ack::AsConfigured) => return self.sync_to(appended),
            (Durability::None, _) => UNSYNCED_BYTES_MAX,
            _ => BATCH_BYTES_MAX,
        };
        if appended > self.durable.load(Ordering::Relaxed) + waiting_max {
            self.sync_to(appended)
        } else {
            Ok(())
        }
    }

    /// Makes durable what was deferred, by all threads. Threads that commit at the same time share a sync.
    ///
    /// # Errors
    /// [`StoreError::System`] or [`StoreError::Broken`].
    pub fn commit(&self) -> Result<(), StoreError> {
        if self.durability == Durability::None {
            return Ok(());
        }
        self.harden()
    }

    /// Makes durable what others put off before, where a change of several targets that is acknowledged may have been made on top of it.
    pub(crate) fn commit_earlier(&self) -> Result<(), StoreError> {
        if self.durability != Durability::Sync || self.mapped.is_none() {
            return Ok(());
        }
        let mut state = self.state.lock();
        if state.log.has_pending() { state.log.commit_pending() } else { Ok(()) }
    }

    /// Mapped, and nothing orders what is stored: durable with a sync of it all.
    pub(super) fn is_loose(&self) -> bool {
        self.mapped.is_some() && self.durability == Durability::None
    }

    /// Makes durable all that was appended so far, whatever the target was opened for.
    pub(super) fn harden(&self) -> Result<(), StoreError> {
        if self.is_loose() {
            return self.sync_mapped();
        }
        let mut state = self.state.lock();
        if self.mapped.is_some() {
            return match (state.log.is_broken, state.log.has_pending()) {
                (true, _) => Err(StoreError::Broken),
                (false, true) => state.log.commit_pending(),
                (false, false) => Ok(()),
            };
        }
        let appended = state.log.appended;
        drop(state);
        self.sync_to(appended)
    }

    /// Makes all durable that was appended so far, and has reads of it come from the file, as those of segments that are written no more do. What a mapping
    /// of the page cache holds is dropped; memory that is the medium itself stays as it is.
    ///
    /// # Errors
    /// [`StoreError::System`] or [`StoreError::Broken`].
    pub fn drop_cache(&self) -> Result<(), StoreError> {
        let written = self.state.lock().log.written();
        self.harden()?;
        if let Some(written) = written {
            self.state.lock().log.cool(written);
        }
        let media = [Some(&self.medium), self.data.as_ref().map(|data| &data.medium)];
        media.into_iter().flatten().try_for_each(|medium| medium.drop_cache())
    }

    /// Mapped: makes all durable that log and data file hold.
    pub(super) fn sync_mapped(&self) -> Result<(), StoreError> {
        if self.state.lock().log.is_broken {
            return Err(StoreError::Broken);
        }
        let Some(region) = &self.mapped else { return Ok(()) };
        self.flusher.fence();
        let data = self.data.as_ref().map_or(Ok(()), |data| data.sync());
        let synced = data.and_then(|()| self.medium.sync(0, region.len() as u64));
        synced.inspect_err(|_| self.state.lock().log.is_broken = true)
    }

    /// Buffered logs: waits until so many bytes are durable. One thread syncs for all; those that it served go on together.
    pub(super) fn sync_to(&self, appended: u64) -> Result<(), StoreError> {
        if self.durable.load(Ordering::Acquire) >= appended {
            return Ok(());
        }
        let _counted = Committing::new(self);
        let mut syncing = self.syncing.lock();
        loop {
            if self.durable.load(Ordering::Acquire) >= appended {
                return Ok(());
            }
            if self.is_broken.load(Ordering::Acquire) {
                return Err(StoreError::Broken);
            }
            if !syncing.is_led {
                break;
            }
            waiting(|| self.synced.wait(&mut syncing));
        }
        syncing.is_led = true;
        let (expected, patience) = (syncing.expected, syncing.took / LINGER_SHARE);
        drop(syncing);
        let _lead = Lead { target: self, begin: Instant::now() };
        self.linger(expected, patience);
        self.sync_appended()
    }

    /// Lets the threads of the last sync come back with their next changes: one sync for all of them is cheaper than two.
    fn linger(&self, expected: u32, patience: Duration) {
        let begin = Instant::now();
        while self.committing.load(Ordering::Relaxed) < expected && begin.elapsed() < patience {
            std::thread::yield_now();
        }
    }

    /// Writes and syncs what was appended so far. One thread at a time.
    fn sync_appended(&self) -> Result<(), StoreError> {
        let (parts, reached, epoch) = {
            let mut state = self.state.lock();
            (state.log.take_unsynced(), state.log.appended, state.epoch)
        };
        let written = self.write_parts(&parts).and_then(|()| self.medium.sync(0, 0));
        if let Err(error) = written {
            // What was taken may or may not be on the disk: nothing after it can be relied on.
            self.is_broken.store(true, Ordering::Release);
            self.state.lock().log.is_broken = true;
            return Err(error);
        }
        self.durable.store(reached, Ordering::Release);
        self.durable_epoch.store(epoch, Ordering::Release);
        if parts.len() > 1 {
            let surplus: Vec<_> = {
                let mut state = self.state.lock();
                parts.into_iter().map(|part| state.log.release_buffer(part)).collect()
            };
            drop(surplus);
        }
        Ok(())
    }

    /// Writes parts of segments, after the data that they refer to.
    fn write_parts(&self, parts: &[Unsynced]) -> Result<(), StoreError> {
        if let Some(data) = &self.data {
            data.sync()?;
        }
        for part in parts {
            let (from, bytes) = blocks_around(part.from_line, part.to_line);
            let segment_at = part.segment as u64 * u64::from(self.segment_lines) * LINE_BYTES as u64;
            self.medium.write(part.buffer.bytes(from, bytes), segment_at + from as u64)?;
        }
        Ok(())
    }
}
