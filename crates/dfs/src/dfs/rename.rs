//! Renames.

use rustix::io::Errno;
use vos::model::ObjectId;
use vos::{Action, Condition, Punch, Step};

use super::intents::Closing;
use super::names::{is_live, live};
use super::{Dfs, Entry, now, of_entry, retrying};
use crate::layout::{INODE_AKEY, LIVE_DKEY, Reader, check_name, id_bytes};
use crate::{Inode, RenameFlags};

/// Deepest directory that is looked for among its ancestors.
const DEPTH_MAX: usize = 1 << 16;

/// An entry by its place.
#[derive(Clone, Copy)]
struct At<'a> {
    directory: ObjectId,
    name: &'a [u8],
}

impl Dfs {
    pub(super) fn rename_entry(
        &self,
        (parent, name): (Inode, &[u8]),
        (new_parent, new_name): (Inode, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        check_name(name)?;
        check_name(new_name)?;
        if flags.no_replace && flags.exchange {
            return Err(Errno::INVAL);
        }
        let from = At { directory: self.table.directory(parent)?, name };
        let to = At { directory: self.table.directory(new_parent)?, name: new_name };
        let replaced = retrying(|| self.rename_once(from, to, flags))?;
        let now = now();
        self.touch_directory(parent, now);
        if parent != new_parent {
            self.touch_directory(new_parent, now);
        }
        replaced.map_or(Ok(()), |entry| self.let_go(&entry))
    }

    /// The entry that was replaced.
    fn rename_once(&self, from: At<'_>, to: At<'_>, flags: RenameFlags) -> Result<Option<Entry>, Errno> {
        let source = self.entry(from.directory, from.name)?;
        let target = self.entry_if_any(to.directory, to.name)?;
        match &target {
            Some(_) if flags.no_replace => return Err(Errno::EXIST),
            None if flags.exchange => return Err(Errno::NOENT),
            _ => {}
        }
        if (from.directory, from.name) == (to.directory, to.name) {
            return Ok(None);
        }
        let moves_directory = from.directory != to.directory
            && (source.is_directory()
                || (flags.exchange && target.as_ref().is_some_and(Entry::is_directory)));
        let _moving = moves_directory.then(|| self.moving.lock());
        if moves_directory {
            self.check_ancestors(&source, to.directory)?;
        }
        let Some(target) = target else { return self.move_to(from, to, &source, None).map(|()| None) };
        if flags.exchange {
            if moves_directory {
                self.check_ancestors(&target, from.directory)?;
            }
            return self.exchange(from, to, &source, &target).map(|()| None);
        }
        match (source.is_directory(), target.is_directory()) {
            (true, false) => return Err(Errno::NOTDIR),
            (false, true) => return Err(Errno::ISDIR),
            _ => {}
        }
        if target.record.object == source.record.object {
            // A rename that a failure cut off: one name is enough.
            let (version, punch) = (Condition::Version(source.version), Action::Punch(Punch::Dkey));
            self.store.apply(&[of_entry(from.directory, from.name, version, punch)])?;
            self.table.moved(source.record.object, to.directory, to.name);
            return Ok(None);
        }
        let closing = match target.is_directory() {
            true => Some(self.close_directory(to.directory, to.name, &target)?),
            false => None,
        };
        let moved = self.move_to(from, to, &source, Some((&target, closing.as_ref())));
        if let Some(closing) = &closing {
            match moved {
                Ok(()) => self.closed(closing),
                Err(_) => self.reopen_directory(closing)?,
            }
        }
        moved.map(|()| Some(target))
    }

    /// Moves an entry to where there is none, or over another.
    fn move_to(
        &self,
        from: At<'_>,
        to: At<'_>,
        source: &Entry,
        over: Option<(&Entry, Option<&Closing>)>,
    ) -> Result<(), Errno> {
        let mut moving = Entry { target: source.target.clone(), ..*source };
        moving.record.changed = now();
        let (value, parent) = (moving.value(), id_bytes(to.directory));
        let object = source.record.object;
        let noted = self.note_move(object, (from.directory, from.name), (to.directory, to.name), None);
        let free = over.map_or(Condition::Absent, |(target, _)| Condition::Version(target.version));
        let (version, punch) = (Condition::Version(source.version), Action::Punch(Punch::Dkey));
        let mut steps: Vec<Step<'_>> = vec![
            noted.noted(),
            of_entry(to.directory, to.name, free, Action::Update(&value)),
            is_live(to.directory),
        ];
        if source.is_directory() && from.directory != to.directory {
            steps.push(live(object, Condition::Present, &parent));
        }
        steps.push(of_entry(from.directory, from.name, version, punch));
        steps.push(noted.forgotten());
        steps.extend(over.and_then(|(_, closing)| closing).map(Closing::forgotten));
        let moved = self.apply_rename(&steps, over.is_some());
        self.done_with(&noted);
        moved?;
        self.table.moved(object, to.directory, to.name);
        Ok(())
    }

    /// Two entries change places.
    fn exchange(&self, from: At<'_>, to: At<'_>, source: &Entry, target: &Entry) -> Result<(), Errno> {
        let changed = |entry: &Entry| {
            let mut entry = Entry { target: entry.target.clone(), ..*entry };
            entry.record.changed = now();
            entry.value()
        };
        let (one, other) = (changed(source), changed(target));
        let (object, partner) = (source.record.object, target.record.object);
        let noted =
            self.note_move(object, (from.directory, from.name), (to.directory, to.name), Some(&other));
        let (here, there) = (id_bytes(from.directory), id_bytes(to.directory));
        let mut steps = vec![
            noted.noted(),
            of_entry(to.directory, to.name, Condition::Version(target.version), Action::Update(&one)),
            of_entry(from.directory, from.name, Condition::Version(source.version), Action::Update(&other)),
        ];
        if source.is_directory() {
            steps.push(live(object, Condition::Present, &there));
        }
        if target.is_directory() {
            steps.push(live(partner, Condition::Present, &here));
        }
        steps.push(noted.forgotten());
        let exchanged = self.apply_rename(&steps, true);
        self.done_with(&noted);
        exchanged?;
        self.table.moved(object, to.directory, to.name);
        self.table.moved(partner, from.directory, from.name);
        Ok(())
    }

    /// What is there or not any more against expectation is looked at again. A directory that takes no entries is found to be gone then, or to be there.
    fn apply_rename(&self, steps: &[Step<'_>], had_target: bool) -> Result<(), Errno> {
        match self.store.apply(steps) {
            Err(Errno::EXIST) => Err(Errno::AGAIN),
            Err(Errno::NOENT) if had_target => Err(Errno::AGAIN),
            applied => applied,
        }
    }

    /// Refuses to move a directory below itself.
    fn check_ancestors(&self, moved: &Entry, to: ObjectId) -> Result<(), Errno> {
        let root = self.superblock.root();
        let mut at = to;
        for _ in 0..DEPTH_MAX {
            if moved.is_directory() && at == moved.record.object {
                return Err(Errno::INVAL);
            }
            if at == root {
                return Ok(());
            }
            let mut parent = [0; 16];
            self.store.fetch(at, LIVE_DKEY, INODE_AKEY, &mut parent)?;
            at = Reader(&parent).id().ok_or(Errno::IO)?;
        }
        Err(Errno::LOOP)
    }
}
