//! Whether what lies at a path is what a run made.

use std::path::Path;

use units::path_of;

use super::{MARK, MadeFile, identity_of};

/// Whether a path still leads to what was made. What was only announced is the run's where it carries its mark, holds nothing,
/// or lies in a directory that runs of strata alone have files in.
pub(super) fn is_own(file: &MadeFile, run_id: &str) -> bool {
    let at = path_of(&file.path);
    let Ok(metadata) = std::fs::symlink_metadata(&at) else { return false };
    let mut value = [0u8; 64];
    let mark = rustix::fs::lgetxattr(&*at, MARK, &mut value[..]).ok().map(|length| &value[..length]);
    let is_marked = mark == Some(run_id.as_bytes());
    match file.identity {
        Some(then) => {
            then == identity_of(&metadata) || (is_marked && then.inode == identity_of(&metadata).inode)
        }
        // A run that was killed has given no mark to its files: there is none but of a run in a directory that has one.
        None => is_marked || metadata.is_dir() || metadata.len() == 0 || lies_in_marked(&at),
    }
}

/// Whether the directory of a file has the mark of a run.
fn lies_in_marked(file: &Path) -> bool {
    file.parent().is_some_and(|parent| rustix::fs::lgetxattr(parent, MARK, &mut [0u8; 64][..]).is_ok())
}
