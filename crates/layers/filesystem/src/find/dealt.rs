//! A search that several hosts carry out together: which directories each lists.
//!
//! All hosts look at the top of the tree, level by level, until there are so many directories that each worker has several. These are dealt
//! out in the order of their paths, host by host in turn: those of the last level with all that is below them, those above it without. So each
//! directory is listed by one host, and the hosts need not talk while they search.

use std::ffi::CString;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, FileType, RawDir};
use rustix::io::Errno;
use workload::plan::HostPlace;

use super::Directory;
use crate::drivers::{LIST_BYTES, open_path};

/// Directories that there shall be for each worker, so that trees of different sizes come out even.
const PER_WORKER: usize = 16;
/// Levels that are looked at, at most.
const LEVELS_MAX: usize = 16;

/// The directories that a host lists, of those below `roots`. One that cannot be listed is told by the worker that gets it.
pub(super) fn of_host(roots: Vec<CString>, place: HostPlace, workers: u32) -> Vec<Directory> {
    let wanted = workers as usize * PER_WORKER;
    let (mut above, mut last) = (Vec::new(), roots);
    for _ in 0..LEVELS_MAX {
        if last.is_empty() || above.len() + last.len() >= wanted {
            break;
        }
        let mut below = Vec::new();
        for directory in &last {
            below.extend(directories_in(directory).unwrap_or_default());
        }
        above.append(&mut last);
        last = below;
    }
    let whole = last.into_iter().map(|path| Directory { path, descends: true });
    let alone = above.into_iter().map(|path| Directory { path, descends: false });
    let mut all: Vec<Directory> = whole.chain(alone).collect();
    all.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    let (hosts, rank) = (place.hosts.max(1) as usize, place.part() as usize);
    all.into_iter().skip(rank).step_by(hosts).collect()
}

/// Paths of the directories in a directory.
fn directories_in(path: &CString) -> Result<Vec<CString>, Errno> {
    let directory = open_path(path)?;
    let mut buffer = Vec::with_capacity(LIST_BYTES);
    let mut entries = RawDir::new(directory.as_fd(), buffer.spare_capacity_mut());
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
                FileType::from_raw_mode(found?.st_mode)
            }
            known => known,
        };
        if kind == FileType::Directory {
            let below = [path.to_bytes(), b"/", name.to_bytes()].concat();
            found.extend(CString::new(below).ok());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;

    /// Directories that a host lists, with those below where it descends.
    fn listed(directory: &Directory, to: &mut BTreeMap<String, u32>) {
        *to.entry(directory.path.to_str().expect("text").to_owned()).or_default() += 1;
        if directory.descends {
            for path in directories_in(&directory.path).expect("a directory") {
                listed(&Directory { path, descends: true }, to);
            }
        }
    }

    fn tree(at: &Path, widths: &[usize]) -> usize {
        std::fs::create_dir_all(at).expect("a directory");
        std::fs::write(at.join("file"), "").expect("a file");
        let Some((&width, rest)) = widths.split_first() else { return 1 };
        1 + (0..width).map(|number| tree(&at.join(format!("d{number}")), rest)).sum::<usize>()
    }

    #[test]
    fn each_directory_is_listed_by_one_host() {
        for (widths, hosts, threads) in [
            (&[][..], 3, 1),
            (&[1, 1, 1, 1], 2, 2),
            (&[3, 4, 5], 3, 1),
            (&[40, 2], 4, 1),
            (&[2, 2, 2, 2, 2, 2, 2], 2, 1),
        ] {
            let scratch = tempfile::tempdir().expect("a directory");
            let count = tree(&scratch.path().join("top"), widths);
            let root = CString::new(scratch.path().join("top").to_str().expect("text")).expect("a path");
            let mut seen = BTreeMap::new();
            for rank in 0..hosts {
                let place = HostPlace { rank, hosts, ..HostPlace::default() };
                let own = of_host(vec![root.clone()], place, hosts * threads);
                own.iter().for_each(|directory| listed(directory, &mut seen));
            }
            assert_eq!(seen.len(), count, "{widths:?}");
            assert!(seen.values().all(|&times| times == 1), "{seen:?}");
        }
    }
}
