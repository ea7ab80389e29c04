//! Checks of every layer's conformance suite on its table of drivers.

use std::collections::BTreeSet;
use std::path::Path;

/// Compares a layer's files of drivers with the names in its table. `manifest_dir` is the layer's `CARGO_MANIFEST_DIR`.
///
/// # Panics
/// When a file is not registered, a driver has no file of its name, or a name stands twice.
pub fn assert_every_driver_file_is_registered<'a>(
    manifest_dir: &str,
    registered: impl IntoIterator<Item = &'a str>,
) {
    let directory = Path::new(manifest_dir).join("src/drivers");
    let files: BTreeSet<String> = std::fs::read_dir(directory)
        .expect("the drivers")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("a name").to_str().expect("a plain name").to_owned())
        .filter(|name| name != "mod")
        .collect();
    let all: Vec<String> = registered.into_iter().map(str::to_owned).collect();
    let names: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(files, names);
    assert_eq!(names.len(), all.len(), "a name twice");
}
