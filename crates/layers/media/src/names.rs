//! Engines that work on names: they make, look at or remove a file or directory, and open none of their targets beforehand.

use std::io;

use crate::target::TargetFacts;
use driver::{Error, ErrorKind};
use workload::target::{TargetKind, TargetPlan};

use crate::layout::Manifest;
use crate::probe;

/// Object that such an engine must find at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it makes what will be there.
    Nothing,
    /// A directory, which it looks at.
    Directory,
    /// A directory, which it removes.
    OwnDirectory,
}

/// Object that an engine needs; none where it is not one of names.
#[must_use]
pub fn needs(engine: &str) -> Option<Needs> {
    match engine {
        "filecreate" | "dircreate" => Some(Needs::Nothing),
        "dirstat" => Some(Needs::Directory),
        "dirdelete" => Some(Needs::OwnDirectory),
        _ => None,
    }
}

/// Finds out whether an engine can work on a name.
///
/// # Errors
/// Usage errors: something is there that should not be, or no directory to make it in. [`ErrorKind::Unsafe`] for a directory of others
/// that would be removed.
pub fn probe(path: &str, needs: Needs, destroy_data: bool) -> Result<TargetFacts, Error> {
    let refuse = |message: &'static str| Error::usage("probe", message).with("path", path);
    let found = match std::fs::symlink_metadata(units::path_of(path)) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(
                Error::system("probe", "cannot read the metadata of the target", error).with("path", path)
            );
        }
    };
    match (&found, needs) {
        // A place where it can be made.
        (None, _) => probe::probe(path, true).map(drop)?,
        (Some(_), Needs::Nothing) => {
            return Err(refuse("is there already, so that it cannot be made")
                .remedy("remove it, or use another name"));
        }
        (Some(found), _) if !found.is_dir() => {
            return Err(refuse("is no directory").remedy("give a directory, or a name that does not exist"));
        }
        (Some(_), Needs::OwnDirectory) if !destroy_data => {
            return Err(Error::new(ErrorKind::Unsafe, "safety", "the directory was not created by this run")
                .with("path", path)
                .remedy(
                    "use a name that does not exist, or give --destroy-data to remove it if it is empty",
                ));
        }
        (Some(_), _) => {}
    }
    Ok(TargetFacts {
        path: path.to_owned(),
        kind: TargetKind::Name,
        exists: found.is_some(),
        size_bytes: 0,
        allocated_bytes: 0,
        direct_alignment_bytes: 1,
        free_bytes: None,
        zoned: None,
    })
}

/// Makes the directories that an engine works on and that are not there, and notes what it will make itself.
///
/// # Errors
/// The system's, and when it cannot be noted.
pub fn prepare(manifest: &mut Manifest, targets: &[TargetPlan], needs: Needs) -> Result<(), Error> {
    manifest.announce(targets.iter().map(|target| units::path_of(&target.path)))?;
    if needs == Needs::Nothing {
        return Ok(());
    }
    for target in targets {
        let path = &*units::path_of(&target.path);
        if std::fs::symlink_metadata(path).is_ok() {
            continue;
        }
        let made = std::fs::create_dir(path).and_then(|()| manifest.adopt(path));
        made.map_err(|error| {
            Error::system("layout", "cannot make the directory", error).with("path", &target.path)
        })?;
    }
    manifest.settle()
}

/// Remembers what an engine made, so that it goes with the run unless it is to be kept.
pub fn adopt(manifest: &mut Manifest, targets: &[TargetPlan], needs: Needs) {
    if needs == Needs::Nothing {
        // What is not there was not made, and needs no removal.
        targets.iter().for_each(|target| drop(manifest.adopt(&units::path_of(&target.path))));
        // Else the names alone stand in the journal until the run ends.
        let _ = manifest.settle();
    }
}
