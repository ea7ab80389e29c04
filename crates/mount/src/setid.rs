//! Set-user-id and set-group-id bits, which writes, truncation and new owners take away. The kernel leaves that to the file system
//! (`FUSE_HANDLE_KILLPRIV_V2`), and asks for no attribute before each write in return.

use std::sync::atomic::{AtomicBool, Ordering};

use dfs::{Attributes, FileKind, Inode, SetAttributes};
use fuser::INodeNo;

use crate::adapter::Adapter;

const SET_USER: u16 = libc::S_ISUID as u16;
const SET_GROUP: u16 = libc::S_ISGID as u16;
const GROUP_EXECUTES: u16 = libc::S_IXGRP as u16;

/// Whether the kernel was shown a file with such a bit: as long as it was not, none has to be looked for.
#[derive(Debug, Default)]
pub(crate) struct Shown(AtomicBool);

/// Permissions without the bits that are taken away; none where there is no such bit. A set-group-id bit without the group's right to execute means
/// something else.
fn without(permissions: u16) -> Option<u16> {
    let mut less = permissions & !SET_USER;
    if permissions & GROUP_EXECUTES != 0 {
        less &= !SET_GROUP;
    }
    (less != permissions).then_some(less)
}

impl Shown {
    /// Notes what the kernel is shown.
    pub(crate) fn note(&self, found: &Attributes) {
        if found.kind == FileKind::File && without(found.permissions).is_some() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Adapter {
    /// Permissions that a file has after its bits were taken away; none where they stay as they are.
    pub(crate) fn permissions_without(&self, file: Inode) -> Result<Option<u16>, dfs::Errno> {
        if !self.shown.0.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let found = self.file_system.attributes(file)?;
        Ok(if found.kind == FileKind::Directory { None } else { without(found.permissions) })
    }

    /// Takes the bits of a file away.
    pub(crate) fn drop_setid(&self, file: Inode) -> Result<(), dfs::Errno> {
        let Some(permissions) = self.permissions_without(file)? else { return Ok(()) };
        let to = SetAttributes { permissions: Some(permissions), ..SetAttributes::default() };
        self.file_system.set_attributes(file, &to)?;
        // The reply of the request that this is for has no attributes: the kernel forgets those that it keeps (a negative offset: no data).
        if let Some(notifier) = self.notifier.get() {
            let _ = notifier.inval_inode(INodeNo(file.0), -1, 0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_taken_away_as_the_kernel_does() {
        assert_eq!(without(0o4755), Some(0o755));
        assert_eq!(without(0o6755), Some(0o755));
        assert_eq!(without(0o2755), Some(0o755));
        // Without the right to execute it is no set-group-id bit.
        assert_eq!(without(0o2644), None);
        assert_eq!(without(0o6644), Some(0o2644));
        assert_eq!(without(0o1777), None);
    }
}
