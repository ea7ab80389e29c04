//! An engine enters its group, and leaves it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::Error;

use super::file::{Lock, attach_info_path, read, remove, write};
use super::text::{GroupFile, parse, print};
use super::{Rank, check_name};
use crate::handshake::{Probe, group_label, probe};

/// How long another engine of the same rank has to show that it lives.
const PROBE_WAIT: Duration = Duration::from_secs(2);

/// An engine's own line in the file of its group. Withdrawn when dropped.
#[derive(Debug)]
pub struct Publication {
    path: PathBuf,
    rank: u32,
    entry: Rank,
    /// Address of the dead engine whose line it took over.
    replaced: Option<String>,
    is_withdrawn: bool,
}

/// Writes the line of `rank` into the file of `group` in `dir`. The line of an engine that no longer answers is replaced.
///
/// # Errors
/// When an engine of that rank still answers, or when the file cannot be read or written.
pub fn publish(dir: &Path, group: &str, rank: u32, entry: Rank) -> Result<Publication, Error> {
    check_name(group)?;
    let path = attach_info_path(dir, group);
    let mut dead: Option<Rank> = None;
    loop {
        let lock = Lock::take(&path)?;
        let mut file = load(&path, group)?;
        match file.ranks.get(&rank) {
            // At one's own address nobody else is left.
            Some(other) if dead.as_ref() != Some(other) && other.uri != entry.uri => {
                let other = other.clone();
                // Asking takes time; others may go on meanwhile.
                drop(lock);
                check_dead(&path, group, rank, &other)?;
                dead = Some(other);
            }
            _ => {
                let replaced = file.ranks.insert(rank, entry.clone());
                write(&path, &print(&file))?;
                let replaced = replaced.filter(|other| *other != entry).map(|other| other.uri);
                return Ok(Publication { path, rank, entry, replaced, is_withdrawn: false });
            }
        }
    }
}

fn load(path: &Path, group: &str) -> Result<GroupFile, Error> {
    let text = read(path)?.unwrap_or_default();
    let mut file = parse(&text).map_err(|error| error.with("path", path.display()))?;
    file.name = Some(group.to_owned());
    Ok(file)
}

fn check_dead(path: &Path, group: &str, rank: u32, other: &Rank) -> Result<(), Error> {
    let alive = Probe::Engine { rank, group: group_label(group) };
    if probe(&other.uri, PROBE_WAIT) != alive {
        return Ok(());
    }
    let mut error = Error::usage("engine", format!("rank {rank} of group {group} is already served"))
        .with("address", &other.uri)
        .with("path", path.display());
    if let Some(pid) = other.pid {
        error = error.with("pid", pid);
    }
    Err(error.remedy("use another --rank or another --group, or stop that engine"))
}

impl Publication {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Address of the dead engine whose line it took over.
    #[must_use]
    pub fn replaced(&self) -> Option<&str> {
        self.replaced.as_deref()
    }

    /// Takes the line out again, where it is still this engine's own; the last rank takes the file away.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn withdraw(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_withdrawn, true) {
            return Ok(());
        }
        let lock = Lock::take(&self.path)?;
        let Some(text) = read(&self.path)? else { return Ok(()) };
        let mut file = parse(&text).map_err(|error| error.with("path", self.path.display()))?;
        let is_own = |other: &Rank| (&other.uri, other.pid) == (&self.entry.uri, self.entry.pid);
        if !file.ranks.get(&self.rank).is_some_and(is_own) {
            return Ok(());
        }
        file.ranks.remove(&self.rank);
        if file.ranks.is_empty() {
            remove(&self.path)?;
            lock.dissolve();
            return Ok(());
        }
        write(&self.path, &print(&file))
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        // Whoever wants to know calls `withdraw`.
        let _ = self.withdraw();
    }
}
