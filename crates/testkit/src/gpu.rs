//! The libcuda, libcufile and libnvidia-ml of the tests, one library compiled by `cc`: memory of its devices is memory of the process that no address of the
//! program reaches, and its kernels are the source of the real ones.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// Variables that name the libraries to strata.
pub const LIBRARY_VARIABLES: [&str; 3] = ["STRATA_LIBCUDA", "STRATA_LIBCUFILE", "STRATA_LIBNVML"];
/// Variable with the settings of the library; stand_in.c has the list.
pub const SETTINGS_VARIABLE: &str = "STRATA_STAND_IN_GPU";

/// Compiles it and names it to this process, once, with these settings.
///
/// # Panics
/// When it does not compile.
pub fn load(folder: &Path, settings: &str) {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        let library = compile(folder).expect("the library of the tests");
        let values = LIBRARY_VARIABLES.map(|name| (name, library.as_os_str()));
        for (name, value) in values.into_iter().chain([(SETTINGS_VARIABLE, settings.as_ref())]) {
            // SAFETY: tests that use a GPU begin here, and no other thread of theirs writes variables.
            unsafe { std::env::set_var(name, value) };
        }
    });
}

/// Compiles it into `folder` for this process.
///
/// # Errors
/// When there is no C compiler, or it refuses.
pub fn compile(folder: &Path) -> Result<PathBuf, String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = folder.join(format!("libgpu-{}.so", std::process::id()));
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-pthread", "-shared", "-fPIC", "-I"])
        .arg(crates.join("../gpu/kernels"))
        .arg("-o")
        .arg(&file)
        .arg(crates.join("src/gpu/stand_in.c"))
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    if output.status.success() { Ok(file) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
