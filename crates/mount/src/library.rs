//! Where the interception library is.

use std::path::{Path, PathBuf};

use driver::{Error, ErrorKind};

/// File name of the interception library.
const LIBRARY: &str = "libstrata_intercept.so";
/// Variable that names another file.
const VARIABLE: &str = "STRATA_INTERCEPT";

/// The interception library: where `STRATA_INTERCEPT` says, else beside the program, or in the folder of libraries beside that of programs.
///
/// # Errors
/// When it is in none of these, which the error names.
pub fn intercept_library() -> Result<PathBuf, Error> {
    let missing = |places: &str| {
        Error::new(ErrorKind::Unsupported, "mount", "the interception library is not installed")
            .with("looked_for", places)
            .remedy(format!(
                "build it (cargo build -p intercept) and put it beside the program, or set {VARIABLE} to its path"
            ))
    };
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        return if named.is_file() { Ok(named) } else { Err(missing(&named.display().to_string())) };
    }
    let failed = |error| Error::system("mount", "cannot determine the program's own path", error);
    let program = std::env::current_exe().map_err(failed)?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places =
        [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY), folder.join("../lib64").join(LIBRARY)];
    match places.iter().find(|place| place.is_file()) {
        Some(found) => Ok(found.clone()),
        None => {
            let looked: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            Err(missing(&looked.join(", ")))
        }
    }
}
