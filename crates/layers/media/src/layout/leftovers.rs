//! Files of a run that was killed: which of those that its manifest names are its own, and their removal.

use std::io;
use std::path::Path;

use driver::Error;
use units::path_of;

use layer::{MARK, MadeFile, identity_of};

/// State of a file that a run made, or was about to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// It is the run's: so many bytes.
    Own(u64),
    /// It is not there.
    Gone,
    /// It is, or may be, somebody else's, and stays; why.
    Stays(&'static str),
}

/// Looks at a file of the run `run_id`. It is the run's where it is still the file that was made (device, inode and time of birth, or the
/// same inode with the mark of the run, because numbers of devices change when a machine starts again). What was only about to be made,
/// under a name that was free, is the run's where it carries its mark, or holds nothing.
///
/// # Errors
/// When it cannot be looked at.
pub fn look(made: &MadeFile, run_id: &str) -> Result<Leftover, Error> {
    let path = path_of(&made.path);
    let metadata = match std::fs::symlink_metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Leftover::Gone);
        }
        Err(error) => {
            return Err(Error::system("clean", "cannot read the metadata of the file", error)
                .with("path", &made.path));
        }
    };
    let is_marked = metadata.is_file() && mark_of(&path).as_deref() == Some(run_id.as_bytes());
    let now = identity_of(&metadata);
    let is_own = match made.identity {
        Some(then) => then == now || (is_marked && then.inode == now.inode),
        // A directory that is not empty stays when it is to be removed.
        None => is_marked || metadata.is_dir() || (metadata.is_file() && metadata.len() == 0),
    };
    Ok(match (is_own, made.identity) {
        (true, _) => Leftover::Own(if metadata.is_file() { metadata.len() } else { 0 }),
        (false, Some(_)) => Leftover::Stays("another file has this path now"),
        (false, None) => Leftover::Stays("it is unknown whether the run created it"),
    })
}

fn mark_of(path: &Path) -> Option<Vec<u8>> {
    let mut value = [0; 64];
    let length = rustix::fs::lgetxattr(path, MARK, &mut value).ok()?;
    Some(value[..length].to_vec())
}

/// Removes a file of the run `run_id`, where it is that. What became of it.
///
/// # Errors
/// When it cannot be removed.
pub fn remove(made: &MadeFile, run_id: &str) -> Result<Leftover, Error> {
    let found = look(made, run_id)?;
    let Leftover::Own(_) = found else { return Ok(found) };
    let path = path_of(&made.path);
    let is_dir = std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
    match if is_dir { std::fs::remove_dir(&path) } else { std::fs::remove_file(&path) } {
        Ok(()) => Ok(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Leftover::Gone),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            Ok(Leftover::Stays("the directory is not empty"))
        }
        Err(error) => Err(Error::system("clean", "cannot remove the file", error).with("path", &made.path)),
    }
}

#[cfg(test)]
mod tests {
    use units::label_of;

    use super::*;

    #[test]
    fn only_what_the_run_made_is_its_own() {
        let place = tempfile::tempdir().expect("a directory");
        let made = |name: &str, is_known: bool| {
            let path = place.path().join(name);
            let identity = is_known.then(|| identity_of(&std::fs::symlink_metadata(&path).expect("there")));
            MadeFile { path: label_of(path.as_os_str()), identity }
        };
        let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).expect("written");
        write("known", "abc");
        let known = made("known", true);
        assert_eq!(look(&known, "run").expect("looked"), Leftover::Own(3));
        // Another file takes its name.
        write("other", "theirs");
        std::fs::rename(place.path().join("other"), place.path().join("known")).expect("moved");
        assert_eq!(remove(&known, "run").expect("left"), Leftover::Stays("another file has this path now"));
        assert!(place.path().join("known").exists());
        // Of what was about to be made, what holds nothing goes.
        write("empty", "");
        write("full", "theirs");
        std::fs::create_dir_all(place.path().join("dir/in")).expect("made");
        assert_eq!(remove(&made("empty", false), "run").expect("removed"), Leftover::Own(0));
        assert!(matches!(remove(&made("full", false), "run").expect("left"), Leftover::Stays(_)));
        assert!(matches!(remove(&made("dir", false), "run").expect("left"), Leftover::Stays(_)));
        assert_eq!(remove(&made("dir/in", false), "run").expect("removed"), Leftover::Own(0));
        assert_eq!(remove(&made("empty", false), "run").expect("gone"), Leftover::Gone);
        let full = place.path().join("full");
        if rustix::fs::setxattr(&full, MARK, b"run", rustix::fs::XattrFlags::empty()).is_ok() {
            assert_eq!(look(&made("full", false), "run").expect("looked"), Leftover::Own(6));
            assert!(matches!(look(&made("full", false), "other").expect("looked"), Leftover::Stays(_)));
        }
    }
}
