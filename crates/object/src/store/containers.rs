//! The table of containers of a pool: a small file, replaced as a whole.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use driver::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use workload::object::Checksum;

use super::superblock::CONTAINERS_FILE;
use super::target::{file_error, sync_directory};
use super::types::ContainerId;
use crate::model::Epoch;

/// Ids that are written down as given at once: so many are lost at most by a kill, and an allocation rarely writes.
const IDS_STEP: u64 = 1 << 20;

/// A container, as it is written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) id: ContainerId,
    pub(super) label: String,
    pub(super) uuid: String,
    pub(super) checksum: Checksum,
    pub(super) snapshots: Vec<Epoch>,
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
        let mut table: Self = serde_json::from_str(&text).map_err(|error| {
            Error::new(ErrorKind::Run, "pool", format!("the table of containers is damaged: {error}"))
                .with("path", path.display())
                .remedy("the pool is damaged: restore it, or destroy it and make it again")
        })?;
        table.path = path;
        table.rows.iter_mut().for_each(|row| row.next_id = row.ids_end);
        Ok(table)
    }

    /// Replaces what is on disk.
    pub(super) fn write(&self) -> std::io::Result<()> {
        let partial = self.path.with_extension("partial");
        let text = serde_json::to_string(self)?;
        let mut file = File::create(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&partial, &self.path)?;
        sync_directory(&self.path)
    }

    /// As [`Table::write`], with an error for people.
    pub(super) fn write_or_error(&self) -> Result<(), Error> {
        self.write().map_err(|error| file_error("cannot write the table of containers", &self.path, error))
    }

    pub(super) fn row(&mut self, id: ContainerId) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.id == id)
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
