//! The file set of a load: which rank has which items, in which directory each lies, and what it is called.
//!
//! The rule is one for all loads and is a function of the plan alone: worker `w` is rank `w`; rank `r` has items `0..items`; item `i` lies in
//! directory `i / items_per_directory` of the rank's tree (of its leaves, where these alone hold items), which lies below target
//! `r % targets`. A phase with a rank shift works on the items of another rank.

use std::io::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use driver::Error;

use crate::listed::ListedTree;
use crate::operation::NameKind;

/// Shape of a file set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Files in a tree of directories.
    Tree,
    /// One file per worker.
    Private,
    /// One file with separate blocks for each worker.
    Shared,
}

/// Names of files and directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// `strata/w0/d1/f0.7`.
    #[default]
    Strata,
    /// Naming scheme of elbencho: `r0/d0/r0-f7`.
    Elbencho,
    /// Naming scheme of mdtest: `test-dir.0-0/mdtest_tree.0.0/file.mdtest.0.7`.
    Mdtest,
}

/// A file set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSet {
    /// Shape.
    pub shape: Shape,
    /// Names.
    pub naming: Naming,
    /// Workers that share it.
    pub ranks: u32,
    /// Items per rank.
    pub items: u64,
    /// Items per rank in one directory.
    pub items_per_directory: u64,
    /// Subdirectories of each directory of the tree.
    pub branch: u64,
    /// Levels of directories below the first; 0: all items are in one directory.
    pub levels: u32,
    /// Only directories of the last level hold items.
    pub leaves_only: bool,
    /// All ranks share one tree.
    pub shared_tree: bool,
    /// Each private file has its own directory.
    pub unique_directories: bool,
    /// The tree, if a list defines it; it is created in the target itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<ListedTree>,
    /// Suffix of the names of files without a tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
}

impl FileSet {
    /// Directories of the tree of a rank.
    #[must_use]
    pub fn nodes(&self) -> u64 {
        match (self.shape, &self.listed) {
            (_, Some(tree)) => tree.directories,
            (Shape::Tree, None) => nodes(self.branch, self.levels),
            (Shape::Private | Shape::Shared, None) => 0,
        }
    }

    /// Whether it is the same set, of the first of its ranks alone; of a list all ranks together have the same whatever their number.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let same_ranks = Self { ranks: self.ranks, ..other.clone() };
        match self.listed {
            Some(_) => {
                let (items, items_per_directory) = (self.items, self.items_per_directory);
                *self == Self { items, items_per_directory, ..same_ranks }
            }
            None => self.ranks <= other.ranks && *self == same_ranks,
        }
    }

    /// Reads the list of a tree again, where the set came from a record or another process.
    ///
    /// # Errors
    /// A list that cannot be read, or that is another one by now.
    pub(crate) fn restore(&mut self) -> Result<(), Error> {
        self.listed.as_mut().map_or(Ok(()), |tree| tree.restore(self.ranks))
    }

    /// Items of a rank; with `is_data` parts of files where a list shares them out.
    #[must_use]
    pub fn items_of(&self, rank: u32, is_data: bool) -> u64 {
        self.listed.as_ref().map_or(self.items, |tree| tree.items_of(rank, is_data))
    }

    /// Items of all ranks.
    #[must_use]
    pub fn items_of_all(&self, is_data: bool) -> u64 {
        (0..self.ranks).map(|rank| self.items_of(rank, is_data)).fold(0, u64::saturating_add)
    }

    /// First directory of a tree that phases make and remove: in names of elbencho the first of all is made with the tree's place, outside of
    /// what is counted, as that tool does.
    #[must_use]
    pub fn first_node(&self) -> u64 {
        u64::from(self.naming == Naming::Elbencho && self.listed.is_none())
    }

    /// Directories that the phases of a rank's tree go over.
    #[must_use]
    pub fn counted_nodes(&self) -> u64 {
        self.nodes().saturating_sub(self.first_node())
    }

    /// Whether items lie in the target itself: elbencho's way without directories, and trees from a list.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        let has_no_directories = self.naming == Naming::Elbencho && self.levels == 0;
        self.shape == Shape::Tree && (self.listed.is_some() || has_no_directories)
    }

    /// First directory of the last level.
    fn first_leaf(&self) -> u64 {
        if self.levels == 0 { 0 } else { nodes(self.branch, self.levels - 1) }
    }

    /// Directories of a rank that hold items.
    #[must_use]
    pub fn holders(&self) -> u64 {
        if self.leaves_only { self.nodes() - self.first_leaf() } else { self.nodes() }
    }

    /// Directory of the tree that an item lies in.
    #[inline]
    #[must_use]
    pub fn node_of(&self, item: u64) -> u64 {
        if self.listed.is_some() {
            // Paths of a list are below the target, which is no directory of the tree.
            return self.nodes();
        }
        let holder = item / self.items_per_directory.max(1);
        if self.leaves_only { self.first_leaf() + holder } else { holder }
    }

    /// Ranks that have a tree of their own.
    #[must_use]
    pub fn trees(&self) -> u32 {
        if self.shared_tree { 1 } else { self.ranks }
    }

    /// Name, below its target, of the directory that holds all that a rank has of a tree.
    #[must_use]
    pub fn top(&self, rank: u32) -> String {
        match self.naming {
            Naming::Strata => "strata".to_owned(),
            Naming::Elbencho if self.levels == 0 => ".".to_owned(),
            Naming::Elbencho if self.shared_tree => "r0".to_owned(),
            Naming::Elbencho => format!("r{rank}"),
            Naming::Mdtest => "test-dir.0-0".to_owned(),
        }
    }

    /// Adds the path of a directory of the tree, below the target.
    pub fn push_node(&self, rank: u32, node: u64, to: &mut Vec<u8>) {
        if let Some(tree) = &self.listed {
            return to.extend_from_slice(tree.directory(node).unwrap_or(".").as_bytes());
        }
        let rank = if self.shared_tree { 0 } else { rank };
        if node > 0 {
            self.push_node(rank, (node - 1) / self.branch.max(1), to);
            to.push(b'/');
        }
        // Writing to a vector cannot fail.
        let _ = match (self.naming, node) {
            (Naming::Strata, 0) if self.shared_tree => write!(to, "strata/all"),
            (Naming::Strata, 0) => write!(to, "strata/w{rank}"),
            (Naming::Strata, node) => write!(to, "d{node}"),
            (Naming::Elbencho, 0) if self.levels == 0 => write!(to, "."),
            (Naming::Elbencho, 0) => write!(to, "r{rank}"),
            (Naming::Elbencho, node) => write!(to, "d{}", node - 1),
            (Naming::Mdtest, 0) if self.shared_tree => write!(to, "test-dir.0-0/mdtest_tree.0"),
            (Naming::Mdtest, 0) => write!(to, "test-dir.0-0/mdtest_tree.{rank}.0"),
            (Naming::Mdtest, node) if self.shared_tree => write!(to, "mdtest_tree.{node}"),
            (Naming::Mdtest, node) => write!(to, "mdtest_tree.{rank}.{node}"),
        };
    }

    /// Adds the name of an item within its directory.
    #[inline]
    pub fn push_name(&self, kind: NameKind, rank: u32, item: u64, to: &mut Vec<u8>) {
        if let Some(tree) = &self.listed {
            return to.extend_from_slice(tree.path(rank, item).as_bytes());
        }
        let is_directory = kind == NameKind::Directory;
        match self.naming {
            Naming::Strata => {
                to.push(if is_directory { b'D' } else { b'f' });
                push_number(u64::from(rank), to);
                to.push(b'.');
                push_number(item, to);
            }
            Naming::Elbencho => {
                to.push(b'r');
                push_number(u64::from(rank), to);
                to.extend_from_slice(if is_directory { b"-D" } else { b"-f" });
                push_number(item % self.items_per_directory.max(1), to);
            }
            Naming::Mdtest => {
                to.extend_from_slice(if is_directory { b"dir.mdtest." } else { b"file.mdtest." });
                push_number(u64::from(rank), to);
                to.push(b'.');
                push_number(self.numbers_before() + item, to);
            }
        }
    }

    /// Number of the first item in mdtest's names: where leaves alone hold items, as if the other directories held some too.
    fn numbers_before(&self) -> u64 {
        if self.leaves_only { self.first_leaf().saturating_mul(self.items_per_directory) } else { 0 }
    }

    /// Kind of the item that a name in a directory of a tree is, where it is one of the set, or its second name.
    #[must_use]
    pub fn item_named(&self, tree: u32, node: u64, name: &[u8]) -> Option<NameKind> {
        let name = name.strip_suffix(b"~").unwrap_or(name);
        let text = std::str::from_utf8(name).ok()?;
        let holder = node.checked_sub(if self.leaves_only { self.first_leaf() } else { 0 })?;
        let (kind, rank, item) = match self.naming {
            Naming::Strata => {
                let kind = if text.starts_with('D') { NameKind::Directory } else { NameKind::File };
                let (rank, item) = text.get(1..)?.split_once('.')?;
                (kind, rank, item.parse().ok()?)
            }
            Naming::Elbencho => {
                let (rank, item) = text.strip_prefix('r')?.split_once('-')?;
                let kind = if item.starts_with('D') { NameKind::Directory } else { NameKind::File };
                let item: u64 = item.get(1..)?.parse().ok()?;
                (kind, rank, holder.checked_mul(self.items_per_directory)?.checked_add(item)?)
            }
            Naming::Mdtest => {
                let (kind, rest) = match text.strip_prefix("dir.mdtest.") {
                    Some(rest) => (NameKind::Directory, rest),
                    None => (NameKind::File, text.strip_prefix("file.mdtest.")?),
                };
                let (rank, item) = rest.split_once('.')?;
                (kind, rank, item.parse::<u64>().ok()?.checked_sub(self.numbers_before())?)
            }
        };
        let rank: u32 = rank.parse().ok()?;
        let is_of_tree = if self.shared_tree { rank < self.ranks } else { rank == tree };
        let mut made = Vec::new();
        self.push_name(kind, rank, item, &mut made);
        (is_of_tree && item < self.items && self.node_of(item) == node && made == name).then_some(kind)
    }

    /// Path of the one file of a rank, for sets that are no tree, with `target` as typed.
    #[must_use]
    pub fn file_path(&self, target: &str, rank: u32) -> String {
        let end = self.suffix.as_deref().unwrap_or_default();
        match self.shape {
            Shape::Shared | Shape::Tree => format!("{target}{end}"),
            Shape::Private if self.unique_directories => {
                let (directory, name) = target.rsplit_once('/').unwrap_or((".", target));
                format!("{directory}/{rank}/{name}.{rank:08}{end}")
            }
            Shape::Private => format!("{target}.{rank:08}{end}"),
        }
    }

    /// Number by which the content of a file says whose it is.
    #[must_use]
    pub fn content_id(&self, rank: u32, item: u64) -> u64 {
        if let Some(tree) = &self.listed {
            return tree.content_id(rank, item);
        }
        match self.shape {
            Shape::Shared => 1,
            Shape::Private | Shape::Tree => units::random::derive_seed(u64::from(rank) + 2, &[item]),
        }
    }
}

/// Directories of a full tree.
fn nodes(branch: u64, levels: u32) -> u64 {
    let (mut all, mut level) = (1u64, 1u64);
    for _ in 0..levels {
        level = level.saturating_mul(branch);
        all = all.saturating_add(level);
    }
    all
}

/// Adds a number in decimal digits: names are made inside latencies, and formatting machinery costs more than some calls.
#[inline]
fn push_number(mut number: u64, to: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    to.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> FileSet {
        FileSet {
            shape: Shape::Tree,
            naming: Naming::Strata,
            ranks: 2,
            items: 12,
            items_per_directory: 4,
            branch: 3,
            levels: 1,
            leaves_only: true,
            shared_tree: false,
            unique_directories: false,
            listed: None,
            suffix: None,
        }
    }

    #[test]
    fn a_set_of_fewer_ranks_lies_within_one_of_more() {
        let (few, more) = (set(), FileSet { ranks: 3, ..set() });
        assert!(few.is_within(&more) && few.is_within(&few) && !more.is_within(&few));
        let others = [
            FileSet { items: 11, ..more.clone() },
            FileSet { shared_tree: true, ..more.clone() },
            FileSet { naming: Naming::Mdtest, ..more },
        ];
        assert!(!others.iter().any(|other| few.is_within(other)));
        assert_eq!(path(&few, 1, 5), path(&FileSet { ranks: 3, ..set() }, 1, 5));
    }

    fn path(set: &FileSet, rank: u32, item: u64) -> String {
        let mut path = Vec::new();
        set.push_node(rank, set.node_of(item), &mut path);
        path.push(b'/');
        set.push_name(NameKind::File, rank, item, &mut path);
        String::from_utf8(path).expect("text")
    }

    #[test]
    fn items_lie_where_the_rule_says() {
        let strata = set();
        assert_eq!((strata.nodes(), strata.holders()), (4, 3));
        assert_eq!(path(&strata, 1, 0), "strata/w1/d1/f1.0");
        assert_eq!(path(&strata, 1, 11), "strata/w1/d3/f1.11");
        let elbencho = FileSet { naming: Naming::Elbencho, ..set() };
        assert_eq!(path(&elbencho, 0, 5), "r0/d1/r0-f1");
        assert_eq!((elbencho.first_node(), elbencho.counted_nodes()), (1, 3), "r0 itself is not counted");
        let in_target = FileSet { levels: 0, ..elbencho.clone() };
        assert_eq!((path(&in_target, 1, 3), in_target.counted_nodes()), ("./r1-f3".to_owned(), 0));
        let shared = FileSet { shared_tree: true, ..elbencho };
        assert_eq!(path(&shared, 1, 5), "r0/d1/r1-f1");
        let deep = FileSet { naming: Naming::Mdtest, branch: 2, levels: 2, leaves_only: false, ..set() };
        assert_eq!(deep.nodes(), 7);
        assert_eq!(
            path(&deep, 0, 27),
            "test-dir.0-0/mdtest_tree.0.0/mdtest_tree.0.2/mdtest_tree.0.6/file.mdtest.0.27"
        );
        let leaves = FileSet { leaves_only: true, items_per_directory: 3, ..deep.clone() };
        assert_eq!(
            path(&leaves, 0, 11),
            "test-dir.0-0/mdtest_tree.0.0/mdtest_tree.0.2/mdtest_tree.0.6/file.mdtest.0.20"
        );
        let flat =
            FileSet { naming: Naming::Mdtest, levels: 0, leaves_only: false, shared_tree: true, ..set() };
        assert_eq!(path(&flat, 1, 3), "test-dir.0-0/mdtest_tree.0/file.mdtest.1.3");
    }

    #[test]
    fn names_of_the_set_are_known_and_others_are_not() {
        for naming in [Naming::Strata, Naming::Elbencho, Naming::Mdtest] {
            let set = FileSet { naming, ..set() };
            for item in 0..set.items {
                for kind in [NameKind::File, NameKind::Directory] {
                    let mut name = Vec::new();
                    set.push_name(kind, 1, item, &mut name);
                    let node = set.node_of(item);
                    assert_eq!(set.item_named(1, node, &name), Some(kind));
                    assert_eq!(set.item_named(0, node, &name), None, "of another tree");
                    assert!(naming == Naming::Elbencho || set.item_named(1, node % 3 + 1, &name).is_none());
                    name.push(b'~');
                    assert_eq!(set.item_named(1, node, &name), Some(kind), "a second name");
                    name.push(b'1');
                    assert_eq!(set.item_named(1, node, &name), None);
                }
            }
            for other in ["mine", "f1.12", "f1.007", "r1-f4", "f-1.0", "file.mdtest.1.99", "", "~"] {
                assert_eq!(set.item_named(1, 1, other.as_bytes()), None, "{other}");
            }
        }
    }

    #[test]
    fn files_without_a_tree_are_called_as_ior_calls_them() {
        let private = FileSet { shape: Shape::Private, ..set() };
        assert_eq!(private.file_path("/mnt/test", 3), "/mnt/test.00000003");
        let unique = FileSet { unique_directories: true, ..private };
        assert_eq!(unique.file_path("/mnt/test", 3), "/mnt/3/test.00000003");
        let second = FileSet { suffix: Some(".1".to_owned()), ..unique };
        assert_eq!(second.file_path("/mnt/test", 3), "/mnt/3/test.00000003.1");
        assert_eq!(FileSet { shape: Shape::Shared, ..set() }.file_path("/mnt/test", 3), "/mnt/test");
    }
}
