//! What has to be finished when a client or an engine fails in the middle of it: stored before the first step, removed with the last.

use rustix::io::Errno;
use vos::model::ObjectId;
use vos::{Action, Condition, Punch, Step};

use super::names::live;
use super::{Dfs, Entry, now, of_entry};
use crate::layout::{INODE_AKEY, INTENT_PREFIX, Reader, SUPERBLOCK, id_bytes, put_counted};

/// Intents to remove a directory that are younger than this may be those of a client that is at it, in seconds.
const LIVE_SECONDS: i64 = 10;
const DKEY_BYTES: usize = INTENT_PREFIX.len() + 12;

/// Aim of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// A directory takes no entries any more, as it is being removed.
    Remove = 1,
    /// An entry becomes another one.
    Move = 2,
    /// Two entries change places.
    Exchange = 3,
}

/// An intent as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Intent<'a> {
    aim: Aim,
    seconds: i64,
    /// The inode that is moved or removed.
    object: ObjectId,
    from: (ObjectId, &'a [u8]),
    to: (ObjectId, &'a [u8]),
    /// Value of the target's entry before.
    before: &'a [u8],
}

impl<'a> Intent<'a> {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.aim as u8];
        bytes.extend_from_slice(&self.seconds.to_le_bytes());
        bytes.extend_from_slice(&id_bytes(self.object));
        for (directory, name) in [self.from, self.to] {
            bytes.extend_from_slice(&id_bytes(directory));
            put_counted(&mut bytes, name);
        }
        put_counted(&mut bytes, self.before);
        bytes
    }

    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (aim, rest) = bytes.split_first()?;
        let aim = [Aim::Remove, Aim::Move, Aim::Exchange].into_iter().find(|known| *known as u8 == *aim)?;
        let mut reader = Reader(rest);
        let (seconds, object) = (reader.long()? as i64, reader.id()?);
        let mut entry = || Some((reader.id()?, reader.counted()?));
        let (from, to) = (entry()?, entry()?);
        Some(Self { aim, seconds, object, from, to, before: reader.counted()? })
    }
}

/// A place for an intent, and its value.
pub(super) struct Noted {
    number: u32,
    dkey: [u8; DKEY_BYTES],
    value: Vec<u8>,
}

impl Noted {
    fn step<'a>(&'a self, action: Action<'a>) -> Step<'a> {
        Step { object: SUPERBLOCK, dkey: &self.dkey, akey: INODE_AKEY, condition: Condition::Any, action }
    }

    /// Stores it: the first step.
    pub(super) fn noted(&self) -> Step<'_> {
        self.step(Action::Update(&self.value))
    }

    /// Removes it: the last one.
    pub(super) fn forgotten(&self) -> Step<'_> {
        self.step(Action::Punch(Punch::Dkey))
    }
}

/// A directory that takes no entries any more, and is found to be empty.
pub(super) struct Closing {
    noted: Noted,
    directory: ObjectId,
    parent: [u8; 16],
}

impl Closing {
    pub(super) fn forgotten(&self) -> Step<'_> {
        self.noted.forgotten()
    }
}

impl Dfs {
    fn note(&self, intent: &Intent<'_>) -> Noted {
        let number = self.intents.lock().take();
        let mut dkey = [0; DKEY_BYTES];
        dkey[..7].copy_from_slice(INTENT_PREFIX);
        dkey[7..15].copy_from_slice(&self.client.to_le_bytes());
        dkey[15..].copy_from_slice(&number.to_le_bytes());
        Noted { number, dkey, value: intent.encode() }
    }

    /// The intent to move an entry, or to have two change places.
    pub(super) fn note_move(
        &self,
        object: ObjectId,
        from: (ObjectId, &[u8]),
        to: (ObjectId, &[u8]),
        exchanged: Option<&[u8]>,
    ) -> Noted {
        let aim = if exchanged.is_some() { Aim::Exchange } else { Aim::Move };
        let before = exchanged.unwrap_or_default();
        self.note(&Intent { aim, seconds: now().seconds, object, from, to, before })
    }

    /// The number of an intent is free again.
    pub(super) fn done_with(&self, noted: &Noted) {
        self.intents.lock().give(noted.number);
    }

    /// Lets a directory take no entries any more where it is empty.
    ///
    /// # Errors
    /// `ENOTEMPTY`; `EAGAIN` where another client is at it.
    pub(super) fn close_directory(
        &self,
        parent: ObjectId,
        name: &[u8],
        entry: &Entry,
    ) -> Result<Closing, Errno> {
        let directory = entry.record.object;
        // Others may go on to make entries in one that stays.
        if !self.is_empty(directory)? {
            return Err(Errno::NOTEMPTY);
        }
        let (aim, seconds, before) = (Aim::Remove, now().seconds, &[][..]);
        let place = (parent, name);
        let noted = self.note(&Intent { aim, seconds, object: directory, from: place, to: place, before });
        let closing = Closing { noted, directory, parent: id_bytes(parent) };
        let is_live = Step {
            action: Action::Punch(Punch::Dkey),
            ..live(directory, Condition::Present, &closing.parent)
        };
        if let Err(error) = self.store.apply(&[closing.noted.noted(), is_live]) {
            self.done_with(&closing.noted);
            return Err(if error == Errno::NOENT { Errno::AGAIN } else { error });
        }
        let empty = self.is_empty(directory);
        if empty == Ok(true) {
            return Ok(closing);
        }
        self.reopen_directory(&closing)?;
        empty.and(Err(Errno::NOTEMPTY))
    }

    /// Lets it take entries again.
    pub(super) fn reopen_directory(&self, closing: &Closing) -> Result<(), Errno> {
        let opened = live(closing.directory, Condition::Any, &closing.parent);
        let opened = self.store.apply(&[opened, closing.forgotten()]);
        self.done_with(&closing.noted);
        opened
    }

    /// The directory is removed, with what was noted.
    pub(super) fn closed(&self, closing: &Closing) {
        self.done_with(&closing.noted);
    }

    /// Finishes or undoes what clients before have left in the middle. `is_alone`: there are no other clients.
    pub(super) fn finish_intents(&self, is_alone: bool) -> Result<(), Errno> {
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        self.store.list(SUPERBLOCK, 0, 0, INODE_AKEY, &mut |dkey, value| {
            if let (true, Ok(value)) = (dkey.starts_with(INTENT_PREFIX), value) {
                found.push((dkey.to_vec(), value.to_vec()));
            }
            true
        })?;
        for (dkey, value) in &found {
            if let Some(intent) = Intent::decode(value) {
                let is_young = intent.seconds.abs_diff(now().seconds) < LIVE_SECONDS as u64;
                if intent.aim == Aim::Remove && is_young && !is_alone {
                    continue;
                }
                match self.finish(&intent) {
                    // Another client was faster.
                    Err(Errno::AGAIN | Errno::NOENT | Errno::EXIST) => {}
                    finished => finished?,
                }
            }
            let gone = Action::Punch(Punch::Dkey);
            let condition = Condition::Any;
            self.store.apply(&[Step {
                object: SUPERBLOCK,
                dkey,
                akey: INODE_AKEY,
                condition,
                action: gone,
            }])?;
        }
        Ok(())
    }

    fn finish(&self, intent: &Intent<'_>) -> Result<(), Errno> {
        let of = |entry: Option<Entry>| entry.filter(|entry| entry.record.object == intent.object);
        let from = of(self.entry_if_any(intent.from.0, intent.from.1)?);
        let to = of(self.entry_if_any(intent.to.0, intent.to.1)?);
        match (intent.aim, from, to) {
            (Aim::Remove, Some(_), _) => {
                let parent = id_bytes(intent.from.0);
                self.store.apply(&[live(intent.object, Condition::Any, &parent)])
            }
            (Aim::Move, Some(from), Some(to)) => {
                if to.is_directory() {
                    self.set_parent(intent.object, intent.to.0)?;
                }
                let (version, punch) = (Condition::Version(from.version), Action::Punch(Punch::Dkey));
                self.store.apply(&[of_entry(intent.from.0, intent.from.1, version, punch)])
            }
            (Aim::Exchange, Some(from), Some(to)) => {
                let (version, before) = (Condition::Version(from.version), Action::Update(intent.before));
                self.store.apply(&[of_entry(intent.from.0, intent.from.1, version, before)])?;
                if to.is_directory() {
                    self.set_parent(intent.object, intent.to.0)?;
                }
                let other = self.entry(intent.from.0, intent.from.1)?;
                if other.is_directory() {
                    self.set_parent(other.record.object, intent.from.0)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    fn set_parent(&self, directory: ObjectId, parent: ObjectId) -> Result<(), Errno> {
        self.store.apply(&[live(directory, Condition::Present, &id_bytes(parent))])
    }
}

/// Numbers of intents of this client.
#[derive(Default)]
pub(super) struct Numbers {
    free: Vec<u32>,
    next: u32,
}

impl Numbers {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn give(&mut self, number: u32) {
        self.free.push(number);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn intents_are_read_as_they_are_written(
            aim in prop::sample::select(vec![Aim::Remove, Aim::Move, Aim::Exchange]), seconds: i64, numbers: [u64; 3],
            from in prop::collection::vec(any::<u8>(), 0..300), to in prop::collection::vec(any::<u8>(), 0..300), before in prop::collection::vec(any::<u8>(), 0..99),
        ) {
            let [object, one, other] = numbers.map(|lo| ObjectId { lo, hi: 7 });
            let intent = Intent { aim, seconds, object, from: (one, &from), to: (other, &to), before: &before };
            let bytes = intent.encode();
            prop_assert_eq!(Intent::decode(&bytes), Some(intent));
            prop_assert_eq!(Intent::decode(&bytes[..bytes.len() - 1]), None);
        }
    }
}
