//! Trees from a list of directories and files.

use driver::Error;

use super::settings::size;
use super::table::TABLE;
use crate::options::{Said, said, said_if};
use crate::words::Words;

/// A tree from a list.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    file: String,
    /// Directory whose names the list gets first.
    scanned: Option<String>,
    is_random: bool,
    round_up_bytes: Option<u64>,
    share_size_bytes: Option<u64>,
}

/// Options of trees from a list.
const OF_TREES: &[&str] = &["treescan", "treerand", "treeroundup", "sharesize"];

impl Tree {
    /// Reads what the options say of it; none without a list.
    ///
    /// # Errors
    /// Options of lists without one, and lists that are no directories'.
    pub(crate) fn read(words: &Words) -> Result<Option<Self>, Error> {
        let Some(file) = words.value("treefile") else {
            return match OF_TREES.iter().find(|option| words.has(option)) {
                None => Ok(None),
                Some(option @ &"treescan") => TABLE.refuse(
                    format!("--{option} writes a list, but no file is given"),
                    "add --treefile FILE, the name of a new file",
                ),
                Some(option) => {
                    TABLE.refuse(format!("--{option} requires --treefile"), "add --treefile FILE")
                }
            };
        };
        if words.has("dryrun") {
            return TABLE.refuse(
                "--dryrun: strata counts the entries of a tree file only during a run",
                "leave it out; `grep -c '^f' FILE` counts its files",
            );
        }
        let scanned =
            words.value("treescan").map(|path| path.strip_prefix("file://").unwrap_or(path).to_owned());
        if scanned.as_ref().is_some_and(|path| path.contains("://")) {
            return TABLE.refuse("--treescan scans only directories", "give a directory");
        }
        Ok(Some(Self {
            file: file.to_owned(),
            scanned,
            is_random: words.has("treerand"),
            round_up_bytes: size(words, "treeroundup")?,
            share_size_bytes: size(words, "sharesize")?,
        }))
    }

    /// Options of the layer for it.
    pub(crate) fn said(&self) -> [Said; 5] {
        [
            said("tree-file", &self.file),
            said_if("tree-scan", self.scanned.as_ref()),
            said_if("item-order", self.is_random.then_some("random")),
            said_if("tree-round-up", self.round_up_bytes),
            said_if("share-size", self.share_size_bytes),
        ]
    }
}
