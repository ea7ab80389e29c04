//! A directory for a store that nobody named: made by the run, and removed with it.

use std::path::{Path, PathBuf};

use driver::Error;

/// Where memory is a file system.
const SHARED_MEMORY: &str = "/dev/shm";

/// A name for a directory that nobody has yet, in memory where there is such a place. The store's driver makes it.
///
/// # Errors
/// When neither shared memory nor the directory for temporary files can be used.
pub fn directory() -> Result<PathBuf, Error> {
    let places = [PathBuf::from(SHARED_MEMORY), std::env::temp_dir()];
    let is_writable =
        |place: &&PathBuf| place.is_dir() && rustix::fs::access(*place, rustix::fs::Access::WRITE_OK).is_ok();
    let place = places.iter().find(is_writable).ok_or_else(|| {
        Error::usage("object", "there is no directory for a temporary store")
            .with("tried", format!("{SHARED_MEMORY}, {}", places[1].display()))
            .remedy("specify a store: vos:DIR")
    })?;
    let free = |number: &u32| !place.join(name(*number)).exists();
    let number = (0..u32::MAX).find(free).unwrap_or(0);
    Ok(place.join(name(number)))
}

fn name(number: u32) -> String {
    format!("strata-object-{}-{number}", std::process::id())
}

/// The file system's name where a path, or the nearest directory above it that is there, lies in memory.
pub(super) fn memory_behind(path: &Path) -> Option<&'static str> {
    let path = path.ancestors().find(|path| path.exists()).filter(|path| !path.as_os_str().is_empty());
    let kind = rustix::fs::statfs(path.unwrap_or(Path::new("."))).ok()?.f_type;
    // statfs(2): TMPFS_MAGIC, RAMFS_MAGIC, HUGETLBFS_MAGIC.
    match kind as u64 {
        0x0102_1994 => Some("tmpfs"),
        0x8584_58f6 => Some("ramfs"),
        0x9584_58f6 => Some("hugetlbfs"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_is_given_and_memory_is_told() {
        let directory = directory().expect("a place");
        assert!(!directory.exists() && directory.parent().is_some_and(Path::is_dir));
        if memory_behind(Path::new(SHARED_MEMORY)).is_some() {
            assert_eq!(memory_behind(Path::new("/dev/shm/none/of/these")), Some("tmpfs"));
        }
        assert_eq!(memory_behind(Path::new("/proc")), None);
    }
}
