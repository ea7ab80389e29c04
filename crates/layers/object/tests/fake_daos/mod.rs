//! The libdaos of the tests, compiled by `cc`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Compiles it for this process.
///
/// # Errors
/// When there is no C compiler.
pub(crate) fn compile() -> Result<PathBuf, String> {
    let failed = |error| format!("cc: {error}");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libdaos-{}.so", std::process::id()));
    let mut compiler = Command::new("cc")
        .args(["-O1", "-pthread", "-shared", "-fPIC", "-x", "c", "-", "-o"])
        .arg(&file)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut source = compiler.stdin.take().expect("it is piped");
    source.write_all(include_bytes!("daos.c")).map_err(failed)?;
    drop(source);
    assert!(compiler.wait().map_err(failed)?.success(), "daos.c does not compile");
    Ok(file)
}
