//! Extended attributes: single values of the inode's own object.

use rustix::io::Errno;
use vos::model::ObjectId;
use vos::{Action, Condition, Punch, Step};

use super::Dfs;
use crate::Inode;
use crate::layout::{NAME_BYTES_MAX, XATTR_BYTES_MAX, XATTRS_DKEY};

/// A step about an extended attribute.
fn of_xattr<'a>(object: ObjectId, name: &'a [u8], condition: Condition, action: Action<'a>) -> Step<'a> {
    Step { object, dkey: XATTRS_DKEY, akey: name, condition, action }
}

fn check(name: &[u8]) -> Result<(), Errno> {
    match name.len() {
        0 => Err(Errno::INVAL),
        1..=NAME_BYTES_MAX => Ok(()),
        _ => Err(Errno::RANGE),
    }
}

/// What is not there has no value.
fn no_data(error: Errno) -> Errno {
    if error == Errno::NOENT { Errno::NODATA } else { error }
}

impl Dfs {
    fn object(&self, inode: Inode) -> Result<ObjectId, Errno> {
        Ok(self.table.find(inode)?.object)
    }

    pub(super) fn read_xattr(&self, inode: Inode, name: &[u8]) -> Result<Vec<u8>, Errno> {
        check(name)?;
        let object = self.object(inode)?;
        let mut value = vec![0; 256];
        loop {
            match self.store.fetch(object, XATTRS_DKEY, name, &mut value) {
                Err(Errno::OVERFLOW) if value.len() < XATTR_BYTES_MAX => value.resize(XATTR_BYTES_MAX, 0),
                found => {
                    let (length, _) = found.map_err(no_data)?;
                    value.truncate(length);
                    return Ok(value);
                }
            }
        }
    }

    pub(super) fn write_xattr(
        &self,
        inode: Inode,
        name: &[u8],
        value: &[u8],
        (create, replace): (bool, bool),
    ) -> Result<(), Errno> {
        check(name)?;
        if value.len() > XATTR_BYTES_MAX {
            return Err(Errno::TOOBIG);
        }
        let condition = match (create, replace) {
            (true, true) => return Err(Errno::INVAL),
            (true, false) => Condition::Absent,
            (false, true) => Condition::Present,
            (false, false) => Condition::Any,
        };
        let object = self.object(inode)?;
        self.store.apply(&[of_xattr(object, name, condition, Action::Update(value))]).map_err(no_data)?;
        self.change(inode, |record, now| record.changed = now)
    }

    pub(super) fn xattr_names(&self, inode: Inode) -> Result<Vec<Vec<u8>>, Errno> {
        let mut names = self.store.akeys(self.object(inode)?, XATTRS_DKEY)?;
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn drop_xattr(&self, inode: Inode, name: &[u8]) -> Result<(), Errno> {
        check(name)?;
        let step = of_xattr(self.object(inode)?, name, Condition::Present, Action::Punch(Punch::Akey));
        self.store.apply(&[step]).map_err(no_data)?;
        self.change(inode, |record, now| record.changed = now)
    }
}
