//! The table of containers of a pool: a small file, replaced as a whole.

use std::path::{Path, PathBuf};

use crate::Checksum;
use driver::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use super::checksum::crc32c;
use super::files;
use super::making::{RESERVE_FILE, keep_back};
use super::storage_target::file_error;
use super::superblock::CONTAINERS_FILE;
use super::types::ContainerId;
use crate::claims::Claims;
use crate::model::Epoch;

/// Ids that are written down as given at once: so many are lost at most by a kill, and an allocation rarely writes.
const IDS_STEP: u64 = 1 << 20;

/// Begins a table; the checksum of what follows the line stands behind it.
const HEAD: &str = "strata containers crc32c ";

/// A container, as it is written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) id: ContainerId,
    pub(super) label: String,
    pub(super) uuid: String,
    pub(super) checksum: Checksum,
    pub(super) snapshots: Vec<Epoch>,
    /// The run that made it; none: a person did.
    #[serde(default)]
    pub(super) maker: Option<u64>,
    /// Claims of runs in it.
    #[serde(default)]
    pub(super) claims: Claims,
    /// No id from here on was given.
    pub(super) ids_end: u64,
    /// The next id.
    #[serde(skip)]
    pub(super) next_id: u64,
}

/// All of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Table {
    /// Number of the next container.
    pub(super) next: u32,
    pub(super) rows: Vec<Row>,
    #[serde(skip)]
    path: PathBuf,
}

impl Table {
    /// An empty table in a directory, not written yet.
    pub(super) fn new(dir: &Path) -> Self {
        Self { path: dir.join(CONTAINERS_FILE), ..Self::default() }
    }

    /// Reads the table.
    pub(super) fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(CONTAINERS_FILE);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| file_error("cannot read the table of containers", &path, error))?;
        let mut table = Self::parse(&text).map_err(|what| {
            Error::new(ErrorKind::Run, "pool", format!("the table of containers is damaged: {what}"))
                .with("path", path.display())
                .remedy("the pool is damaged: restore it, or destroy it and create a new one")
        })?;
        table.path = path;
        table.rows.iter_mut().for_each(|row| row.next_id = row.ids_end);
        Ok(table)
    }

    /// Reads a table whose checksum may not match, as far as it can be read; and whether it did not match.
    pub(super) fn read_damaged(dir: &Path) -> std::io::Result<(Option<Self>, Option<String>)> {
        let path = dir.join(CONTAINERS_FILE);
        let content = std::fs::read(&path)?;
        let text = String::from_utf8_lossy(&content);
        let own = |table: Self| {
            let mut table = Self { path: path.clone(), ..table };
            table.rows.iter_mut().for_each(|row| row.next_id = row.ids_end);
            table
        };
        match Self::parse(&text) {
            Ok(table) => Ok((Some(own(table)), None)),
            Err(what) => {
                let body = text.find('{').and_then(|at| serde_json::from_str(&text[at..]).ok());
                Ok((body.map(own).filter(Self::is_plausible), Some(what)))
            }
        }
    }

    /// Whether its rows can stand beside each other.
    fn is_plausible(&self) -> bool {
        let ids: std::collections::BTreeSet<ContainerId> = self.rows.iter().map(|row| row.id).collect();
        ids.len() == self.rows.len()
            && self.rows.iter().all(|row| row.id.0 < self.next && !row.label.is_empty())
    }

    /// Of its text: a line with the checksum of the rest, which releases before did not write, and JSON.
    fn parse(text: &str) -> Result<Self, String> {
        let body = match text.strip_prefix(HEAD) {
            None => text,
            Some(rest) => {
                let (sum, body) = rest.split_once('\n').ok_or("it is truncated")?;
                if sum != format!("{:08x}", crc32c(0, body.as_bytes())) {
                    return Err("its checksum does not match".into());
                }
                body
            }
        };
        serde_json::from_str(body).map_err(|error| error.to_string())
    }

    /// Replaces what is on disk. A full file system gives it the space that is kept back.
    pub(super) fn write(&self) -> std::io::Result<()> {
        let body = serde_json::to_string(self)?;
        let text = format!("{HEAD}{:08x}\n{body}", crc32c(0, body.as_bytes()));
        let written = files::replace(&self.path, text.as_bytes());
        if !written.as_ref().is_err_and(files::is_full) {
            return written;
        }
        let dir = files::directory_of(&self.path);
        match files::remove(&dir.join(RESERVE_FILE)) {
            Err(_) => return written,
            Ok(()) => files::replace(&self.path, text.as_bytes())?,
        }
        // The table before has gone: so much is free again.
        let _ = keep_back(dir);
        Ok(())
    }

    /// As [`Table::write`], with an error for people.
    pub(super) fn write_or_error(&self) -> Result<(), Error> {
        self.write().map_err(|error| self.failure(error))
    }

    /// An error of its file, for people.
    pub(super) fn failure(&self, error: std::io::Error) -> Error {
        file_error("cannot write the table of containers", &self.path, error)
    }

    pub(super) fn row(&mut self, id: ContainerId) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.id == id)
    }

    pub(super) fn of_label(&mut self, label: &str) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.label == label)
    }

    /// Takes ids; true where the table has to be written before they are used.
    pub(super) fn take_ids(&mut self, id: ContainerId, count: u64) -> Option<(u64, bool)> {
        let row = self.row(id)?;
        let first = row.next_id;
        row.next_id = first.checked_add(count)?;
        let is_beyond = row.next_id > row.ids_end;
        if is_beyond {
            row.ids_end = row.next_id.saturating_add(IDS_STEP);
        }
        Some((first, is_beyond))
    }

    /// Gives the ids back that no other process will be told of: at a clean end.
    pub(super) fn settle_ids(&mut self) {
        self.rows.iter_mut().for_each(|row| row.ids_end = row.next_id);
    }
}
