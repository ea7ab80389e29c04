//! A libfabric of the tests whose providers take memory of GPUs, compiled by `cc` in front of the system's own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Variable with the settings of the library; fabric/stand_in.c has the list.
pub const SETTINGS_VARIABLE: &str = "STRATA_STAND_IN_FABRIC";

/// The system's libfabric; none where it is not installed.
#[must_use]
pub fn system_library() -> Option<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    folders.iter().map(|folder| Path::new(folder).join("libfabric.so.1")).find(|path| path.exists())
}

/// Compiles it into a folder of its own below `folder`, which a process is to look for libraries in; `system` is the library behind it.
///
/// # Errors
/// When there is no C compiler, or it refuses.
pub fn compile(folder: &Path, system: &Path) -> Result<PathBuf, String> {
    let folder = folder.join(format!("fabric-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-shared", "-fPIC", "-Wl,-soname,libfabric.so.1"])
        .arg(format!("-DREAL=\"{}\"", system.display()))
        .arg("-o")
        .arg(folder.join("libfabric.so.1"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fabric/stand_in.c"))
        .arg("-ldl")
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    if output.status.success() {
        Ok(folder)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
