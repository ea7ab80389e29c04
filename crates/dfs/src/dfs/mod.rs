//! The file system over a store.

mod attributes;
mod data;
mod intents;
mod interface;
mod listing;
mod mounting;
mod names;
mod rename;
mod xattrs;

pub(crate) use mounting::check_format;

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rustix::io::Errno;
use units::random::mix64;
use vos::model::{Epoch, ObjectId};
use vos::{Action, Condition, Step};

use crate::layout::{INODE_AKEY, Superblock};
use crate::record::{RECORD_BYTES, RECORD_BYTES_MAX, Record};
use crate::store::Store;
use crate::table::Table;
use crate::{FileKind, Inode, Timestamp};

/// Ids that are taken from the store at once.
const IDS: u64 = 4096;
/// How often something is tried again that another client was faster with.
const TRIES: usize = 1000;
/// Files with a turn of their own to be appended to.
const APPENDING: usize = 64;

/// A file system. Shared by threads.
pub(crate) struct Dfs {
    store: Box<dyn Store>,
    superblock: Superblock,
    table: Table,
    ids: Mutex<Range<u64>>,
    /// Directories are moved to other parents one at a time, so that none comes to lie below itself.
    moving: Mutex<()>,
    appending: Box<[Mutex<()>]>,
    /// Number of this client: an id that no object has.
    client: u64,
    intents: Mutex<intents::Numbers>,
    /// Entries that cannot be read.
    damaged: Mutex<driver::Findings>,
}

/// An entry of a directory.
struct Entry {
    record: Record,
    version: Epoch,
    /// Target of a symbolic link.
    target: Vec<u8>,
}

impl Entry {
    fn is_directory(&self) -> bool {
        self.record.kind == FileKind::Directory
    }

    /// Its value, with the record as it is now.
    fn value(&self) -> Vec<u8> {
        let mut value = self.record.encode().to_vec();
        value.extend_from_slice(&self.target);
        value
    }
}

/// The time.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
}

/// A step about the inode of an entry.
fn of_entry<'a>(directory: ObjectId, name: &'a [u8], condition: Condition, action: Action<'a>) -> Step<'a> {
    Step { object: directory, dkey: name, akey: INODE_AKEY, condition, action }
}

/// Tries again as long as another client was faster.
fn retrying<T>(mut act: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 0..TRIES {
        match act() {
            Err(Errno::AGAIN) => {}
            done => return done,
        }
    }
    Err(Errno::BUSY)
}

impl Dfs {
    /// Reads the entry of a name.
    fn entry(&self, directory: ObjectId, name: &[u8]) -> Result<Entry, Errno> {
        if self.store.take_restart() {
            self.finish_intents(false)?;
        }
        let mut few = [0; RECORD_BYTES];
        match self.store.fetch(directory, name, INODE_AKEY, &mut few) {
            Ok((length, version)) => self.parse(directory, name, &few[..length], version),
            Err(Errno::OVERFLOW) => {
                let mut many = vec![0; RECORD_BYTES_MAX];
                let (length, version) = self.store.fetch(directory, name, INODE_AKEY, &mut many)?;
                self.parse(directory, name, &many[..length], version)
            }
            Err(error) => Err(error),
        }
    }

    fn parse(&self, directory: ObjectId, name: &[u8], value: &[u8], version: Epoch) -> Result<Entry, Errno> {
        let Some(record) = Record::decode(value) else {
            let name = name.escape_ascii();
            self.damaged.lock().add(|| format!("object {directory} entry {name}: its inode is malformed"));
            return Err(Errno::IO);
        };
        Ok(Entry { record, version, target: value[RECORD_BYTES..].to_vec() })
    }

    /// The entry of a name, none where there is none.
    fn entry_if_any(&self, directory: ObjectId, name: &[u8]) -> Result<Option<Entry>, Errno> {
        match self.entry(directory, name) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(Some),
        }
    }

    /// An id that no object has.
    fn next_id(&self) -> Result<u64, Errno> {
        let mut ids = self.ids.lock();
        if ids.is_empty() {
            let first = self.store.allocate_ids(IDS)?;
            *ids = first..first + IDS;
        }
        ids.next().ok_or(Errno::NOSPC)
    }

    fn appending(&self, inode: Inode) -> &Mutex<()> {
        &self.appending[mix64(inode.0) as usize % APPENDING]
    }

    /// Attributes of a record; `touched`: when this client last changed its content.
    fn attributes_of(&self, record: &Record, touched: Option<Timestamp>) -> Result<crate::Attributes, Errno> {
        let size_bytes = if record.kind == FileKind::File { self.size(record.object)? } else { 0 };
        let mut attributes = record.attributes(size_bytes, self.superblock.chunk_bytes);
        if let Some(touched) = touched {
            attributes.modified = attributes.modified.max(touched);
            attributes.changed = attributes.changed.max(touched);
        }
        Ok(attributes)
    }
}

impl Drop for Dfs {
    fn drop(&mut self) {
        for inode in self.table.touched() {
            let _ = self.tell(inode);
        }
    }
}
