//! Up to which epoch all changes of several targets are whole and durable. It is written before aggregation drops anything on the strength of it,
//! in place: a file system that is full takes it, too.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::Error;
use parking_lot::Mutex;

use super::checksum::crc32c;
use super::error::StoreError;
use super::files;
use super::medium::{BLOCK_BYTES, Direct, Medium};
use super::memory::Region;
use super::storage_target::file_error;
use crate::model::Epoch;

/// Its name in the directory of a pool.
pub(super) const SETTLED_FILE: &str = "settled";
/// Blocks that say the same: a failure of the power tears those that are written, and leaves the others. Damage in one of them shows nothing older.
const COPIES: usize = 2;
const BLOCKS: usize = 2 * COPIES;
const BYTES: usize = BLOCKS * BLOCK_BYTES;
/// Epoch in a file that was lost and made anew.
const UNKNOWN: Epoch = Epoch::MAX;

#[derive(Debug)]
struct State {
    epoch: Epoch,
    /// Which half is written next.
    half: usize,
}

/// The file, and what it says.
#[derive(Debug)]
pub(super) struct Settled {
    medium: Arc<dyn Medium>,
    state: Mutex<State>,
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join(SETTLED_FILE)
}

fn block(epoch: Epoch) -> [u8; 12] {
    let mut block = [0; 12];
    block[..8].copy_from_slice(&epoch.to_le_bytes());
    let crc = crc32c(0, &block[..8]);
    block[8..].copy_from_slice(&crc.to_le_bytes());
    block
}

/// Makes the file; its name is durable with the next sync of the directory. [`UNKNOWN`] says nothing.
pub(super) fn make(dir: &Path, epoch: Epoch) -> Result<(), Error> {
    use std::io::Write as _;
    let path = path_in(dir);
    let mut content = vec![0; BYTES];
    content.chunks_mut(BLOCK_BYTES).for_each(|bytes| bytes[..12].copy_from_slice(&block(epoch)));
    let made = files::make(&path).and_then(|mut file| {
        file.write_all(&content)?;
        files::sync(&file, &path)
    });
    made.map_err(|error| file_error("cannot create the completeness mark", &path, error))
}

/// Epoch of the file, and which half says it; none where it is missing or damaged.
fn said(dir: &Path) -> Option<(Epoch, usize)> {
    let content = std::fs::read(path_in(dir)).ok().filter(|content| content.len() == BYTES)?;
    let epochs = content.chunks(BLOCK_BYTES).map(|bytes| {
        let epoch = Epoch::from_le_bytes(*bytes.first_chunk()?);
        (bytes[..12] == block(epoch) && epoch != UNKNOWN).then_some(epoch)
    });
    let halves: Vec<Option<Epoch>> = epochs.collect();
    let (half, epoch) = halves
        .chunks(COPIES)
        .map(|half| half.iter().flatten().max())
        .enumerate()
        .max_by_key(|(_, epoch)| *epoch)?;
    Some((*epoch?, half))
}

/// Epoch of the file, without anybody who has the pool open; none where it is missing or damaged.
pub(super) fn read(dir: &Path) -> Option<Epoch> {
    said(dir).map(|(epoch, _)| epoch)
}

impl Settled {
    /// Opens the file, and writes it anew where it is missing or damaged. Second: what it said.
    pub(super) fn open(dir: &Path) -> Result<(Self, Option<Epoch>), Error> {
        let path = path_in(dir);
        let failed = |error: std::io::Error| file_error("cannot open the completeness mark", &path, error);
        let said = said(dir);
        if said.is_none() {
            if path.exists() {
                files::remove(&path).map_err(failed)?;
            }
            make(dir, UNKNOWN)?;
            files::sync_directory(dir).map_err(failed)?;
        }
        let medium: Arc<dyn Medium> = Arc::new(Direct::new(&path).map_err(|errno| failed(errno.into()))?);
        #[cfg(test)]
        let medium = super::cut::wrap(&path, BYTES as u64, medium);
        let (epoch, half) = said.unwrap_or_default();
        let state = Mutex::new(State { epoch, half: (half + 1) % (BLOCKS / COPIES) });
        Ok((Self { medium, state }, said.map(|(epoch, _)| epoch)))
    }

    /// Notes that all changes up to `epoch` are whole and durable. Returns what is noted then: an earlier epoch where it cannot be written.
    pub(super) fn advance(&self, epoch: Epoch) -> Epoch {
        let mut state = self.state.lock();
        if epoch > state.epoch && self.write(epoch, state.half).is_ok() {
            *state = State { epoch, half: (state.half + 1) % (BLOCKS / COPIES) };
        }
        state.epoch
    }

    /// Epoch that is noted.
    pub(super) fn epoch(&self) -> Epoch {
        self.state.lock().epoch
    }

    fn write(&self, epoch: Epoch, half: usize) -> Result<(), StoreError> {
        let bytes = COPIES * BLOCK_BYTES;
        let mut blocks = Region::anonymous(bytes)?;
        let into = blocks.bytes_mut(0, bytes);
        into.chunks_mut(BLOCK_BYTES).for_each(|copy| copy[..12].copy_from_slice(&block(epoch)));
        let at = (half * bytes) as u64;
        self.medium.write(blocks.bytes(0, bytes), at)?;
        self.medium.sync(at, bytes as u64)
    }
}
