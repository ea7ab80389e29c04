//! A mark beside a mapped log that nothing orders (`Durability::None`): after a power failure, records beyond the epoch that it names may be
//! torn, and are looked through as those of a log that is not mapped.

use std::path::{Path, PathBuf};

use driver::Error;

use super::open::file_error;
use crate::checksum::crc32c;
use crate::files;
use crate::model::Epoch;

const FILE: &str = "loose";
const BYTES: usize = 12;

fn path_in(dir: &Path) -> PathBuf {
    dir.join(FILE)
}

/// The epoch that the mark names; none where there is no mark. One that cannot be read trusts nothing.
pub(super) fn read(dir: &Path) -> Result<Option<Epoch>, Error> {
    let path = path_in(dir);
    let content = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| file_error("cannot read the mark of the log", &path, error))?,
    };
    let epoch = content.first_chunk::<8>().map_or(0, |bytes| Epoch::from_le_bytes(*bytes));
    Ok(Some(if is_whole(&content) { epoch } else { 0 }))
}

/// Whether there is a mark that is damaged: opening trusts nothing then, and sets it anew.
pub(crate) fn mark_is_damaged(dir: &Path) -> bool {
    let content = std::fs::read(path_in(dir)).unwrap_or_default();
    !content.is_empty() && !is_whole(&content)
}

fn is_whole(content: &[u8]) -> bool {
    content.len() == BYTES && content[8..] == crc32c(0, &content[..8]).to_le_bytes()
}

/// Sets the mark, before the first change.
pub(super) fn write(dir: &Path, epoch: Epoch) -> Result<(), Error> {
    let mut content = epoch.to_le_bytes().to_vec();
    content.extend(crc32c(0, &content).to_le_bytes());
    let path = path_in(dir);
    files::replace(&path, &content)
        .map_err(|error| file_error("cannot write the mark of the log", &path, error))
}

/// Takes it away, when everything is durable.
pub(super) fn remove(dir: &Path) -> Result<(), Error> {
    let path = path_in(dir);
    if !path.exists() {
        return Ok(());
    }
    files::remove(&path).map_err(|error| file_error("cannot remove the mark of the log", &path, error))
}
