//! The libdaos of the tests, compiled by `cc`.

use std::path::PathBuf;
use std::process::Command;

/// Compiles it for this process.
///
/// # Errors
/// When there is no C compiler.
pub(crate) fn compile() -> Result<PathBuf, String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../object/tests/fake_daos/daos.c");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libdaos-{}.so", std::process::id()));
    let status = Command::new("cc")
        .args(["-O1", "-pthread", "-shared", "-fPIC", "-o"])
        .arg(&file)
        .arg(source)
        .status();
    match status {
        Ok(status) => assert!(status.success(), "{source} does not compile"),
        Err(error) => return Err(format!("cc: {error}")),
    }
    Ok(file)
}
