//! Names that are not UTF-8.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use crate::support::Scratch;

#[test]
fn a_name_that_cannot_be_recorded_is_never_taken_for_another() {
    let scratch = Scratch::new();
    let before: Vec<_> =
        std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let odd = OsStr::from_bytes(b"odd\xff");
    let cases: [&[&str]; 4] = [
        &["media", "", "--op", "write", "-s", "64k", "-b", "4k", "--keep"],
        &["media", "null:", "--op", "nop", "--count", "1", "--json", ""],
        &["report", ""],
        &["as", "elbencho", "-w", "-s", "64k", "-b", "4k", ""],
    ];
    for words in cases {
        let given = words.iter().map(|word| if word.is_empty() { odd } else { OsStr::new(word) });
        let output = Command::new(env!("CARGO_BIN_EXE_strata"))
            .args(given)
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.lines().count() == 1 && said.contains("\"odd\\xFF\" is not UTF-8"), "{words:?}: {said}");
        let after: Vec<_> =
            std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(after, before, "{words:?}");
    }
}
