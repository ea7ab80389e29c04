//! Bottlenecks that are made, and that the verdict of `strata stack` has to name. A program of tests for itself, which has the machine to itself: load of
//! other tests makes verdicts inconclusive.

use std::path::Path;
use std::process::Command;

/// testkit's file with declared service times, as the build of all tests leaves it; built where it is missing.
fn slow_file(built: &Path) -> std::path::PathBuf {
    let path = built.join("examples/slow_file");
    if !path.exists() {
        let words = "build --quiet --locked -p testkit --features fuse --example slow_file";
        let status = Command::new(env!("CARGO")).args(words.split(' ')).status().expect("cargo runs");
        assert!(status.success(), "slow_file is not built");
    }
    path
}

#[test]
fn known_bottlenecks_are_named() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = Path::new(env!("CARGO_BIN_EXE_strata"));
    let output = Command::new("python3")
        .arg(sources.join("bench/bottlenecks.py"))
        .arg(program)
        .arg("--short")
        .arg("--slow-file")
        .arg(slow_file(program.parent().expect("a directory of programs")))
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // What this machine does not allow is skipped by name; nothing is left out without a word.
    for case in
        ["drive with declared service times", "drive limited by a control group", "quota of processor time"]
    {
        let ends = said.lines().filter(|line| line.starts_with(case));
        let is_told = ends.clone().any(|line| line.contains(" named in ") || line.contains(" skipped: "));
        assert!(is_told, "{case}: {said}");
    }
}
