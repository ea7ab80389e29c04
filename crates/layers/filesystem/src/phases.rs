//! The phases there are, by the names that users type: what each goes over, and the calls that it makes for each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::ParseError;
use workload::spec::choice;

use crate::operation::FsClass::{self, *};

/// Operation of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FsOp {
    /// Makes the directories that hold the items.
    TreeCreate,
    /// Makes directories as items.
    Mkdir,
    /// Looks at them.
    DirStat,
    /// Renames them, forth and back.
    DirRename,
    /// Removes them.
    Rmdir,
    /// Makes empty files.
    Create,
    /// Makes empty files by mknod(2).
    Mknod,
    /// Makes or opens files and writes them.
    Write,
    /// Reads files.
    Read,
    /// Looks at files.
    Stat,
    /// Lists the directories that hold the items.
    Readdir,
    /// Walks the trees and looks at what is in them.
    Find,
    /// Renames files, forth and back.
    Rename,
    /// Makes a second name of each file, and removes it.
    Link,
    /// Makes a symbolic link to each file, reads it, and removes it.
    Symlink,
    /// Cuts files to half their size, and lengthens them again.
    Truncate,
    /// Sets an extended attribute, reads it, and removes it.
    Xattr,
    /// Locks whole files, and unlocks them.
    Lock,
    /// Tells the kernel that files will be read.
    Fadvise,
    /// Removes files.
    Unlink,
    /// Removes the directories that hold the items.
    TreeRemove,
    /// Makes all durable that the file systems of the targets have not written yet.
    Sync,
}

/// Things that a phase goes over, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Files.
    Files,
    /// Directories that are items.
    Directories,
    /// Directories of the tree, parents first.
    Nodes,
    /// Directories of the tree, children first.
    NodesReversed,
    /// Everything that a walk finds.
    Walk,
    /// Targets.
    Targets,
}

/// A call of a phase, and whether it goes to the item's second name.
pub(crate) type Call = (FsClass, bool);

/// A phase.
pub struct PhaseDef {
    /// The operation.
    pub op: FsOp,
    /// Name that users type.
    pub name: &'static str,
    /// Things it goes over.
    pub over: Over,
    /// Calls that it makes for each; reads and writes as many times as the file has blocks.
    pub calls: &'static [Call],
    /// Whether it makes names, changes or removes them.
    pub changes: bool,
}

const fn phase(op: FsOp, name: &'static str, over: Over, calls: &'static [Call], changes: bool) -> PhaseDef {
    PhaseDef { op, name, over, calls, changes }
}

/// All of them, in the order in which a list of them makes sense.
pub static PHASES: &[PhaseDef] = &[
    phase(FsOp::TreeCreate, "tree-create", Over::Nodes, &[(Mkdir, false)], true),
    phase(FsOp::Mkdir, "mkdir", Over::Directories, &[(Mkdir, false)], true),
    phase(FsOp::DirStat, "dir-stat", Over::Directories, &[(Stat, false)], false),
    phase(FsOp::DirRename, "dir-rename", Over::Directories, &[(Rename, true), (Rename, false)], true),
    phase(FsOp::Rmdir, "rmdir", Over::Directories, &[(Rmdir, false)], true),
    phase(FsOp::Create, "create", Over::Files, &[(Create, false), (Close, false)], true),
    phase(FsOp::Mknod, "mknod", Over::Files, &[(Mknod, false)], true),
    phase(
        FsOp::Write,
        "write",
        Over::Files,
        &[(Create, false), (Write, false), (Fsync, false), (Close, false)],
        true,
    ),
    phase(FsOp::Read, "read", Over::Files, &[(Open, false), (Read, false), (Close, false)], false),
    phase(FsOp::Stat, "stat", Over::Files, &[(Stat, false)], false),
    phase(FsOp::Readdir, "readdir", Over::Nodes, &[(Readdir, false)], false),
    phase(FsOp::Find, "find", Over::Walk, &[(Readdir, false), (Stat, false)], false),
    phase(FsOp::Rename, "rename", Over::Files, &[(Rename, true), (Rename, false)], true),
    phase(FsOp::Link, "link", Over::Files, &[(Link, true), (Unlink, true)], true),
    phase(FsOp::Symlink, "symlink", Over::Files, &[(Symlink, true), (Readlink, true), (Unlink, true)], true),
    phase(
        FsOp::Truncate,
        "truncate",
        Over::Files,
        &[(Open, false), (Truncate, false), (Truncate, true), (Close, false)],
        true,
    ),
    phase(
        FsOp::Xattr,
        "xattr",
        Over::Files,
        &[(Setxattr, false), (Getxattr, false), (Removexattr, false)],
        true,
    ),
    phase(
        FsOp::Lock,
        "lock",
        Over::Files,
        &[(Open, false), (Lock, false), (Unlock, false), (Close, false)],
        false,
    ),
    phase(FsOp::Fadvise, "fadvise", Over::Files, &[(Open, false), (Fadvise, false), (Close, false)], false),
    phase(FsOp::Unlink, "unlink", Over::Files, &[(Unlink, false)], true),
    phase(FsOp::TreeRemove, "tree-remove", Over::NodesReversed, &[(Rmdir, false)], true),
    phase(FsOp::Sync, "sync", Over::Targets, &[(Syncfs, false)], false),
];

impl FsOp {
    /// Its entry.
    #[must_use]
    pub fn phase(self) -> &'static PhaseDef {
        PHASES.iter().find(|phase| phase.op == self).expect("each operation has an entry")
    }

    /// Name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.phase().name
    }

    /// Whether it makes the items that others look at.
    #[must_use]
    pub fn makes(self) -> bool {
        matches!(self, Self::Mkdir | Self::Create | Self::Mknod | Self::Write)
    }

    /// Whether it removes them.
    #[must_use]
    pub fn removes(self) -> bool {
        matches!(self, Self::Rmdir | Self::Unlink | Self::TreeRemove)
    }

    /// Whether it moves data of files.
    #[must_use]
    pub fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// A list of operations.
///
/// # Errors
/// A name that is none, with those that there are.
pub(crate) fn parse_operations(text: &str) -> Result<Vec<FsOp>, ParseError> {
    let choices: Vec<(&str, FsOp)> = PHASES.iter().map(|phase| (phase.name, phase.op)).collect();
    units::split_list("op", text)?.into_iter().map(|name| choice("op", name, &choices)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_job_files() {
        for phase in PHASES {
            assert_eq!(serde_json::to_value(phase.op).ok(), Some(phase.name.into()));
            assert_eq!(parse_operations(phase.name).ok(), Some(vec![phase.op]));
        }
        assert!(
            parse_operations("create,stats").is_err_and(|error| error.to_string().contains("tree-remove"))
        );
    }
}
