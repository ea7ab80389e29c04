//! Trees from a list: directories, and files with a size each, dealt out to the ranks.
//!
//! The list has a line for each directory and file, in the form of elbencho's tree files: `d PATH` and `f BYTES PATH`, `#` for comments. Files
//! below a size belong to one rank each, in turn by their size; of larger ones each rank has as many blocks as the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use driver::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{path_of, random::derive_seed};

/// Blocks from which a file is shared, where nothing else is said.
const SHARE_BLOCKS: u64 = 32;
/// Most files and directories of a list.
const ENTRIES_MAX: usize = 1 << 28;

/// A tree from a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListedTree {
    /// File that lists it.
    pub file: String,
    /// Directories, with those that only paths name.
    pub directories: u64,
    /// Files.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of the largest file.
    pub largest_bytes: u64,
    /// Sizes are multiples of this; 0: as they are listed.
    pub round_up_bytes: u64,
    /// Files of at least so many bytes are shared by all ranks.
    pub share_size_bytes: u64,
    /// Bytes of a block, by which shared files are dealt out.
    pub block_size_bytes: u64,
    #[serde(skip)]
    dealt: Arc<Dealt>,
}

/// The same list, dealt out by the same rule.
impl PartialEq for ListedTree {
    fn eq(&self, other: &Self) -> bool {
        let of = |tree: &Self| {
            let counts = (tree.directories, tree.files, tree.bytes);
            (tree.file.clone(), counts, tree.round_up_bytes, tree.share_size_bytes, tree.block_size_bytes)
        };
        of(self) == of(other)
    }
}

impl Eq for ListedTree {}

/// Part of a file that a rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    file: u32,
    /// First byte.
    pub(crate) from_bytes: u64,
    /// Bytes.
    pub(crate) length_bytes: u64,
    /// Bytes of the whole file.
    pub(crate) whole_bytes: u64,
}

#[derive(Debug, Default)]
struct Dealt {
    /// Parents before what lies in them.
    directories: Vec<String>,
    files: Vec<String>,
    /// Parts of each rank; those that begin a file first.
    ranks: Vec<Vec<Part>>,
    /// How many of them begin a file.
    owned: Vec<u64>,
}

/// How a list is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) ranks: u32,
    pub(crate) block_size_bytes: u64,
    pub(crate) share_size_bytes: Option<u64>,
    pub(crate) round_up_bytes: u64,
}

fn refuse(file: &str, line: usize, reason: &str, remedy: &str) -> Error {
    let message = format!("line {line} of the tree file {reason}");
    Error::usage("tree", message).with("path", file).remedy(remedy)
}

/// Entries of a list: directories, and files with their sizes.
type Entries = (BTreeSet<String>, BTreeMap<String, u64>);

fn parse(file: &str, text: &str) -> Result<Entries, Error> {
    let (mut directories, mut files): Entries = Default::default();
    for (number, line) in text.lines().enumerate() {
        let line_error = |reason: &str, remedy: &str| refuse(file, number + 1, reason, remedy);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            if line == "# encoding=base64" {
                return Err(line_error(
                    "declares base64 names, which are not supported",
                    "write plain names",
                ));
            }
            continue;
        }
        let form = "use `d PATH` for a directory and `f BYTES PATH` for a file";
        let (kind, rest) = line.split_once(' ').ok_or_else(|| line_error("has no path", form))?;
        let (bytes, path) = match kind {
            "d" => (None, rest.trim()),
            "f" => {
                let (bytes, path) =
                    rest.trim().split_once(' ').ok_or_else(|| line_error("has no path", form))?;
                let bytes: u64 = bytes.parse().map_err(|_| line_error("has no size in bytes", form))?;
                (Some(bytes), path.trim())
            }
            _ => return Err(line_error("is neither a directory nor a file", form)),
        };
        let path = path.trim_end_matches('/');
        let is_below = !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_below {
            return Err(line_error(
                "has a path outside the directory",
                "use paths below it, without . and ..",
            ));
        }
        let parents = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
        directories.extend(parents);
        match bytes {
            None => drop(directories.insert(path.to_owned())),
            Some(bytes) => {
                if files.insert(path.to_owned(), bytes).is_some() {
                    return Err(line_error("lists a file twice", "list it once"));
                }
            }
        }
    }
    if let Some(both) = files.keys().find(|path| directories.contains(*path)) {
        let message = format!("{both} is listed as a file and as a directory");
        return Err(Error::usage("tree", message).with("path", file).remedy("list it once"));
    }
    if files.len().max(directories.len()) > ENTRIES_MAX {
        return Err(Error::usage("tree", format!("the tree file lists more than {ENTRIES_MAX} names")));
    }
    Ok((directories, files))
}

impl Dealt {
    fn new((directories, files): Entries, reading: &Reading, share_size_bytes: u64) -> Self {
        let mut directories: Vec<String> = directories.into_iter().collect();
        directories.sort_by_key(|path| (path.matches('/').count(), path.clone()));
        let mut files: Vec<(String, u64)> = files.into_iter().collect();
        for (_, bytes) in &mut files {
            *bytes = bytes.next_multiple_of(reading.round_up_bytes.max(1));
        }
        files.sort_by(|(path, bytes), (other, other_bytes)| (bytes, path).cmp(&(other_bytes, other)));
        let mut ranks = vec![Vec::new(); reading.ranks as usize];
        let shared_from = files.partition_point(|(_, bytes)| *bytes < share_size_bytes.max(1));
        for (at, (_, bytes)) in files[..shared_from].iter().enumerate() {
            let part = Part { file: at as u32, from_bytes: 0, length_bytes: *bytes, whole_bytes: *bytes };
            ranks[at % reading.ranks as usize].push(part);
        }
        deal_shared(&files, shared_from, reading, &mut ranks);
        let owned = |parts: &Vec<Part>| parts.iter().filter(|part| part.from_bytes == 0).count() as u64;
        for parts in &mut ranks {
            parts.sort_by_key(|part| part.from_bytes > 0);
        }
        let owned = ranks.iter().map(owned).collect();
        Self { directories, files: files.into_iter().map(|(path, _)| path).collect(), ranks, owned }
    }
}

/// Deals the blocks of shared files out: each rank has as many as the others, one behind the other.
fn deal_shared(files: &[(String, u64)], from: usize, reading: &Reading, ranks: &mut [Vec<Part>]) {
    let block = reading.block_size_bytes;
    let all: u64 = files[from..].iter().map(|(_, bytes)| bytes.div_ceil(block)).sum();
    let (count, mut first) = (ranks.len() as u64, 0);
    for (at, (_, bytes)) in files.iter().enumerate().skip(from) {
        let blocks = bytes.div_ceil(block);
        for (rank, parts) in ranks.iter_mut().enumerate() {
            // Ranks have blocks from `rank * all / count` on.
            let bound = |rank: u64| (u128::from(rank) * u128::from(all) / u128::from(count)) as u64;
            let (begin, end) = (bound(rank as u64).max(first), bound(rank as u64 + 1).min(first + blocks));
            if begin < end {
                let from_bytes = (begin - first) * block;
                let length_bytes = ((end - first) * block).min(*bytes) - from_bytes;
                parts.push(Part { file: at as u32, from_bytes, length_bytes, whole_bytes: *bytes });
            }
        }
        first += blocks;
    }
}

impl ListedTree {
    /// Reads a list.
    ///
    /// # Errors
    /// A file that cannot be read, and lines that are none, by their number.
    pub(crate) fn load(file: &str, reading: &Reading) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path_of(file))
            .map_err(|error| Error::system("tree", "cannot read the tree file", error).with("path", file))?;
        let entries = parse(file, &text)?;
        if entries.1.is_empty() && entries.0.is_empty() {
            return Err(Error::usage("tree", "the tree file lists nothing").with("path", file));
        }
        let round = |bytes: &u64| bytes.checked_next_multiple_of(reading.round_up_bytes.max(1));
        let sizes: Option<Vec<u64>> = entries.1.values().map(round).collect();
        let bytes =
            sizes.as_ref().and_then(|sizes| sizes.iter().try_fold(0u64, |sum, size| sum.checked_add(*size)));
        let (Some(sizes), Some(bytes)) = (sizes, bytes.filter(|bytes| *bytes <= i64::MAX as u64)) else {
            return Err(
                Error::usage("tree", "the files of the tree are larger than 8 EiB").with("path", file)
            );
        };
        let largest_bytes = sizes.iter().copied().max().unwrap_or(0);
        let block_size_bytes = reading.block_size_bytes;
        let share_size_bytes =
            reading.share_size_bytes.unwrap_or_else(|| block_size_bytes.saturating_mul(SHARE_BLOCKS));
        Ok(Self {
            file: file.to_owned(),
            directories: entries.0.len() as u64,
            files: entries.1.len() as u64,
            bytes,
            largest_bytes,
            round_up_bytes: reading.round_up_bytes,
            share_size_bytes,
            block_size_bytes,
            dealt: Arc::new(Dealt::new(entries, reading, share_size_bytes)),
        })
    }

    /// Reads the list again where only its plan is known: in another process, or later.
    ///
    /// # Errors
    /// A file that cannot be read, or that lists another tree by now.
    pub(crate) fn restore(&mut self, ranks: u32) -> Result<(), Error> {
        if !self.dealt.ranks.is_empty() {
            return Ok(());
        }
        let reading = Reading {
            ranks,
            block_size_bytes: self.block_size_bytes,
            share_size_bytes: Some(self.share_size_bytes),
            round_up_bytes: self.round_up_bytes,
        };
        let loaded = Self::load(&self.file, &reading)?;
        if loaded != *self {
            return Err(
                Error::usage("tree", "the tree file changed after the run started").with("path", &self.file)
            );
        }
        *self = loaded;
        Ok(())
    }

    /// Items of a rank: with `is_data` parts of files, else files that it has the first byte of.
    pub(crate) fn items_of(&self, rank: u32, is_data: bool) -> u64 {
        let dealt = &self.dealt;
        let parts = dealt.ranks.get(rank as usize).map_or(0, |parts| parts.len() as u64);
        if is_data { parts } else { dealt.owned.get(rank as usize).copied().unwrap_or(0) }
    }

    /// Part that is item `item` of a rank.
    #[inline]
    pub(crate) fn part(&self, rank: u32, item: u64) -> Option<Part> {
        self.dealt.ranks.get(rank as usize)?.get(item as usize).copied()
    }

    /// Path of the file of an item, below the target.
    #[inline]
    pub(crate) fn path(&self, rank: u32, item: u64) -> &str {
        self.part(rank, item).map_or("", |part| &self.dealt.files[part.file as usize])
    }

    /// Path of a directory.
    #[inline]
    pub(crate) fn directory(&self, node: u64) -> Option<&str> {
        self.dealt.directories.get(node as usize).map(String::as_str)
    }

    /// Whether all sizes are multiples of this.
    pub(crate) fn is_aligned(&self, bytes: u64) -> bool {
        self.dealt.ranks.iter().flatten().all(|part| part.whole_bytes.is_multiple_of(bytes))
    }

    /// Removes its files and directories below a target, as far as they are there and empty; how many.
    ///
    /// # Errors
    /// Names that cannot be removed, and a list that cannot be read again.
    pub(crate) fn remove(&self, ranks: u32, target: &str) -> Result<u64, Error> {
        let mut tree = self.clone();
        tree.restore(ranks)?;
        let mut removed = 0;
        let files = tree.dealt.files.iter().map(|path| (path, false));
        let directories = tree.dealt.directories.iter().rev().map(|path| (path, true));
        for (path, is_directory) in files.chain(directories) {
            let at = path_of(&format!("{target}/{path}")).into_owned();
            match if is_directory { std::fs::remove_dir(&at) } else { std::fs::remove_file(&at) } {
                Ok(()) => removed += 1,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {}
                Err(error) => {
                    return Err(Error::system("files", "cannot remove files of this run", error)
                        .with("path", at.display()));
                }
            }
        }
        Ok(removed)
    }

    /// Number by which the content of a file says whose it is: of its path, so that other numbers of workers read it.
    pub(crate) fn content_id(&self, rank: u32, item: u64) -> u64 {
        let bytes = self.path(rank, item).bytes();
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        derive_seed(1, &[hash])
    }
}

/// Lists the directories and regular files below a directory in a new file; one that lists the same already is left.
///
/// # Errors
/// A directory that cannot be listed, names that a list cannot have, and a file that lists something else.
pub(crate) fn scan(directory: &str, file: &str) -> Result<(), Error> {
    let root = path_of(directory).into_owned();
    let failed = |what: &'static str, path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Error::system("tree", what, error).with("path", path)
    };
    let (mut lines, mut open) = (BTreeSet::new(), vec![root.clone()]);
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).map_err(failed("cannot list the directory", &at))? {
            let entry = entry.map_err(failed("cannot list the directory", &at))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(failed("cannot stat the path", &path))?;
            if !kind.is_dir() && !kind.is_file() {
                continue;
            }
            let below = path.strip_prefix(&root).unwrap_or(&path);
            let name = std::str::from_utf8(below.as_os_str().as_bytes()).ok();
            let Some(name) = name.filter(|name| name.trim() == *name && !name.contains('\n')) else {
                return Err(Error::usage("tree", "a name contains bytes that a tree file cannot represent")
                    .with("path", path.display())
                    .remedy("rename it, or scan another directory"));
            };
            if kind.is_dir() {
                lines.insert(format!("d {name}"));
                open.push(path);
            } else {
                let length = entry.metadata().map_err(failed("cannot stat the path", &path))?.len();
                lines.insert(format!("f {length} {name}"));
            }
        }
    }
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let at = path_of(file).into_owned();
    match std::fs::File::create_new(&at) {
        Ok(mut new) => new.write_all(text.as_bytes()).map_err(failed("cannot write the tree file", &at)),
        Err(_) if std::fs::read_to_string(&at).is_ok_and(|known| known == text) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Error::usage("tree", "the tree file exists and lists a different tree")
                .with("path", file)
                .remedy("name a new file, or omit --tree-scan to use the existing list"))
        }
        Err(error) => Err(failed("cannot create the tree file", &at)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Reading =
        Reading { ranks: 2, block_size_bytes: 10, share_size_bytes: Some(40), round_up_bytes: 0 };

    fn load(text: &str, reading: &Reading) -> Result<ListedTree, Error> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("tree");
        std::fs::write(&file, text).expect("a file");
        ListedTree::load(&file.display().to_string(), reading)
    }

    #[test]
    fn files_are_dealt_out_by_size_and_large_ones_by_blocks() {
        let text = "# a list\nd empty\nf 5 a/b/small\nf 55 large\nf 7 a/other name\nf 0 none\n";
        let tree = load(text, &READING).expect("a tree");
        assert_eq!((tree.directories, tree.files, tree.bytes, tree.largest_bytes), (3, 4, 67, 55));
        assert_eq!(tree.dealt.directories, ["a", "empty", "a/b"]);
        let of = |rank: u32| -> Vec<(String, u64, u64)> {
            let items = 0..tree.items_of(rank, true);
            items
                .map(|item| {
                    let part = tree.part(rank, item).expect("a part");
                    (tree.path(rank, item).to_owned(), part.from_bytes, part.length_bytes)
                })
                .collect()
        };
        let part = |path: &str, from, length| (path.to_owned(), from, length);
        assert_eq!(of(0), [part("none", 0, 0), part("a/other name", 0, 7), part("large", 0, 30)]);
        assert_eq!(of(1), [part("a/b/small", 0, 5), part("large", 30, 25)]);
        assert_eq!(
            (tree.items_of(0, false), tree.items_of(1, false)),
            (3, 1),
            "a shared file is removed by one"
        );
        let rounded = load(text, &Reading { round_up_bytes: 512, ..READING }).expect("a tree");
        assert_eq!((rounded.bytes, rounded.largest_bytes), (3 * 512, 512));
        let mut later: ListedTree =
            serde_json::from_value(serde_json::to_value(&tree).expect("text")).expect("a tree");
        assert_eq!(later, tree);
        assert!(later.restore(2).is_err(), "its file is gone");
    }

    proptest::proptest! {
        #[test]
        fn any_list_is_dealt_out_whole_or_refused_in_one_line(
            text in "((d|f|x|#) ?([0-9]{1,20} )?[a-z./ ]{0,9}\n){0,12}",
            ranks in 1u32..5,
        ) {
            match load(&text, &Reading { ranks, ..READING }) {
                Ok(tree) => {
                    let parts = (0..ranks)
                        .flat_map(|rank| (0..tree.items_of(rank, true)).map(move |item| (rank, item)))
                        .filter_map(|(rank, item)| tree.part(rank, item));
                    proptest::prop_assert_eq!(parts.map(|part| part.length_bytes).sum::<u64>(), tree.bytes);
                }
                Err(error) => proptest::prop_assert_eq!(error.to_string().lines().count(), 1),
            }
        }
    }

    #[test]
    fn lines_that_are_none_are_refused_by_their_number() {
        for (text, part) in [
            ("", "lists nothing"),
            ("d a\nx b", "line 2"),
            ("f a", "has no path"),
            ("f x a", "no size in bytes"),
            ("d /etc", "has a path outside the directory"),
            ("f 5 a/../../b", "has a path outside the directory"),
            ("f 5 a\nf 6 a", "lists a file twice"),
            ("f 5 a\nd a", "is listed as a file and as a directory"),
            ("f 18446744073709551615 a\nf 5 b", "8 EiB"),
            ("# encoding=base64", "base64"),
        ] {
            let error = load(text, &READING).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
