//! Content of a disk after a cut.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// A file or a directory of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(Vec<u8>),
}

/// Files and directories below the disk's root, those above others first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) nodes: Vec<(PathBuf, Node)>,
    /// How many events came before the cut.
    pub(super) event: u64,
}

/// Unit that is left out where it is zero.
const PAGE_BYTES: usize = 4096;

impl Image {
    /// Lays it down in a directory.
    pub(super) fn lay_down(&self, root: &Path) {
        for (path, node) in &self.nodes {
            let path = root.join(path);
            match node {
                Node::Directory => std::fs::create_dir(&path).expect("a directory of an image"),
                Node::File(content) => {
                    let file = File::create_new(&path).expect("a file of an image");
                    file.set_len(content.len() as u64).expect("its size");
                    for (number, page) in content.chunks(PAGE_BYTES).enumerate() {
                        if page.iter().any(|byte| *byte != 0) {
                            file.write_all_at(page, (number * PAGE_BYTES) as u64).expect("its content");
                        }
                    }
                }
            }
        }
    }
}
