//! Whether the program may do something. What it clearly may is done here; all else is left to the kernel, which refuses it in its own words.

#![allow(unsafe_code)]

use dfs::Attributes;

/// Access to look entries up.
pub(crate) const SEARCH: u16 = 1;
/// Access to change.
pub(crate) const WRITE: u16 = 2;
/// Access to read.
pub(crate) const READ: u16 = 4;

/// Effective user of the process.
pub(crate) fn user() -> u32 {
    // SAFETY: it cannot fail.
    unsafe { libc::geteuid() }
}

/// Effective group of the process.
pub(crate) fn group() -> u32 {
    // SAFETY: it cannot fail.
    unsafe { libc::getegid() }
}

fn is_member(of: u32) -> bool {
    if group() == of {
        return true;
    }
    let mut groups = [0; 1024];
    // SAFETY: the room is as large as said.
    let count = unsafe { libc::getgroups(groups.len() as libc::c_int, groups.as_mut_ptr()) };
    usize::try_from(count).is_ok_and(|count| groups[..count].contains(&of))
}

/// Whether the process has this access by owner and permissions.
pub(crate) fn allows(attributes: &Attributes, access: u16) -> bool {
    let user = user();
    if user == 0 {
        // Execution of a file needs a bit even then.
        return true;
    }
    let bits = if attributes.owner.user == user {
        attributes.permissions >> 6
    } else if is_member(attributes.owner.group) {
        attributes.permissions >> 3
    } else {
        attributes.permissions
    };
    bits & access == access
}

/// Whether the process owns it, or is root.
pub(crate) fn owns(attributes: &Attributes) -> bool {
    let user = user();
    user == 0 || attributes.owner.user == user
}

/// Whether the process may make and remove entries of a directory.
pub(crate) fn may_change(directory: &Attributes) -> bool {
    allows(directory, WRITE | SEARCH)
}

/// Whether the process may remove this entry of a directory.
pub(crate) fn may_remove(directory: &Attributes, entry: &Attributes) -> bool {
    let is_sticky = u32::from(directory.permissions) & libc::S_ISVTX != 0;
    may_change(directory) && (!is_sticky || owns(directory) || owns(entry))
}
