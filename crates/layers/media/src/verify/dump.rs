//! Wrong blocks, kept as files: what was read, and what should have been.

use std::io::Write as _;
use std::path::PathBuf;

use units::path_of;

/// Blocks that one worker keeps: a target that is wrong all over would fill the directory.
const BLOCKS_MAX: u32 = 1000;

/// Where a worker keeps wrong blocks.
pub(super) struct Dump {
    directory: PathBuf,
    left: u32,
}

impl Dump {
    pub(super) fn new(directory: &str) -> Self {
        Self { directory: path_of(directory).into_owned(), left: BLOCKS_MAX }
    }

    /// Writes `NAME.OFFSET.received` and `NAME.OFFSET.expected`; nothing that is there is written over. What came of it, to stand behind
    /// what was found.
    pub(super) fn write(&mut self, path: &str, offset: u64, received: &[u8], expected: &[u8]) -> String {
        if self.left == 0 {
            return format!("; not saved: {BLOCKS_MAX} blocks are already saved");
        }
        self.left -= 1;
        let target = path_of(path);
        let place = |kind: &str| {
            let mut name = target.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".{offset}.{kind}"));
            self.directory.join(name)
        };
        for (kind, bytes) in [("received", received), ("expected", expected)] {
            let file = std::fs::File::options().write(true).create_new(true).open(place(kind));
            if let Err(error) = file.and_then(|mut file| file.write_all(bytes)) {
                return format!("; not saved: {}: {error}", place(kind).display());
            }
        }
        format!("; saved in {} and .expected", place("received").display())
    }
}
