//! A file of a disk that loses what was not synced.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::disk::Dice;
use crate::memory::Region;

const SECTOR_BYTES: usize = 512;
const PAGE_BYTES: usize = 4096;
const LINE_BYTES: usize = 64;
const WORD_BYTES: usize = 8;

/// How the content of a file comes about.
#[derive(Debug)]
pub(super) enum Volatile {
    /// Content of the file at this path; `None`: it is gone.
    Plain(Option<PathBuf>),
    /// Mapped memory.
    Mapped(Arc<Region>),
    /// Unsynced writes, in their order.
    Written(Vec<(u64, Vec<u8>)>),
}

/// A file.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) durable: Vec<u8>,
    pub(super) volatile: Volatile,
    /// Size that it has, durable with its next sync.
    pub(super) bytes: Option<usize>,
    /// Pages whose last sync failed, as they were then: the kernel takes them for clean.
    pub(super) forgotten: BTreeMap<usize, Vec<u8>>,
}

impl Inode {
    /// It has no name any more: what it held is known to it alone.
    pub(super) fn lose(&mut self) {
        if let Volatile::Plain(path) = &mut self.volatile {
            *path = None;
        }
    }

    fn now(&self) -> Option<Vec<u8>> {
        match &self.volatile {
            Volatile::Plain(Some(path)) => std::fs::read(path).ok(),
            _ => None,
        }
    }

    pub(super) fn sync_whole(&mut self) {
        if let Some(content) = self.now() {
            self.durable = content;
        }
        if let Some(bytes) = self.bytes {
            self.durable.resize(bytes, 0);
        }
        if let Volatile::Written(pending) = &mut self.volatile {
            for (at, content) in std::mem::take(pending) {
                self.durable[at as usize..][..content.len()].copy_from_slice(&content);
            }
        }
    }

    fn pages(&self, at: usize, bytes: usize) -> std::ops::Range<usize> {
        at / PAGE_BYTES..(at + bytes).min(self.durable.len()).div_ceil(PAGE_BYTES)
    }

    pub(super) fn sync_pages(&mut self, at: usize, bytes: usize) {
        let Volatile::Mapped(region) = &self.volatile else { return };
        let region = Arc::clone(region);
        for page in self.pages(at, bytes) {
            let from = page * PAGE_BYTES;
            let length = PAGE_BYTES.min(self.durable.len() - from);
            let content = region.bytes(from, length);
            if self.forgotten.get(&page).is_some_and(|forgotten| forgotten == content) {
                continue;
            }
            self.forgotten.remove(&page);
            self.durable[from..from + length].copy_from_slice(content);
        }
    }

    pub(super) fn forget(&mut self, at: usize, bytes: usize) {
        let Volatile::Mapped(region) = &self.volatile else { return };
        let region = Arc::clone(region);
        for page in self.pages(at, bytes) {
            let from = page * PAGE_BYTES;
            let content = region.bytes(from, PAGE_BYTES.min(self.durable.len() - from));
            if content != &self.durable[from..from + content.len()] {
                self.forgotten.insert(page, content.to_vec());
            }
        }
    }

    /// Content after a cut. `kept` of ten units that are not durable survive.
    pub(super) fn survives(&self, dice: &mut Dice, kept: u64, by_words: bool) -> Vec<u8> {
        let mut content = self.durable.clone();
        match &self.volatile {
            Volatile::Plain(_) => {
                let Some(now) = self.now() else { return content };
                if now == content || !dice.of_ten(kept) {
                    return content;
                }
                content.resize(if dice.one_in(2) { now.len() } else { content.len() }, 0);
                for (to, from) in content.chunks_mut(SECTOR_BYTES).zip(now.chunks(SECTOR_BYTES)) {
                    if dice.of_ten(kept) && to.len() == from.len() {
                        to.copy_from_slice(from);
                    }
                }
            }
            Volatile::Mapped(region) => {
                let unit = if by_words { LINE_BYTES } else { SECTOR_BYTES };
                let now = region.bytes(0, region.len().min(content.len()));
                let own = content.chunks_mut(unit).zip(now.chunks(unit)).enumerate();
                for (number, (to, from)) in own.filter(|(_, (to, from))| to != from) {
                    let is_lost = self.forgotten.contains_key(&(number * unit / PAGE_BYTES));
                    if is_lost || !dice.of_ten(kept) {
                        continue;
                    }
                    if by_words && dice.one_in(2) {
                        for (to, from) in to.chunks_mut(WORD_BYTES).zip(from.chunks(WORD_BYTES)) {
                            if dice.one_in(2) {
                                to.copy_from_slice(from);
                            }
                        }
                    } else {
                        to.copy_from_slice(from);
                    }
                }
            }
            Volatile::Written(pending) => {
                if let Some(bytes) = self.bytes.filter(|_| dice.of_ten(kept)) {
                    content.resize(bytes.max(content.len()), 0);
                }
                // Each sector in any of the states it had: later writes may be lost where earlier ones are not.
                for (at, written) in pending {
                    let is_whole = dice.of_ten(kept);
                    for (number, sector) in written.chunks(SECTOR_BYTES).enumerate() {
                        let from = *at as usize + number * SECTOR_BYTES;
                        if (is_whole || dice.of_ten(kept)) && from + sector.len() <= content.len() {
                            content[from..from + sector.len()].copy_from_slice(sector);
                        }
                    }
                }
            }
        }
        content
    }
}
