//! Output that does not reach its place: a full disk under standard output or under a file, a reader that has gone away.

use std::fs::{File, OpenOptions};
use std::process::{Command, Stdio};

use crate::support::{Mounted, NO_ROOT, Scratch, skipped};

/// A device that takes nothing.
fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// Runs the command with these places for its standard output and standard error; its exit code and what it said on a
/// standard error that is read.
fn run_into(scratch: &Scratch, words: &str, stdout: File, stderr: Stdio) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_strata"))
        .args(words.split_whitespace())
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn standard_output_that_is_full_exits_with_1() {
    let scratch = Scratch::new();
    scratch.measured("media null: --op nop --count 10");
    let made = scratch.run("pool create vos:store --scm 64m");
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let cases = [
        "media null: --op nop --count 10",
        "media null: --op nop --count 10 --json -",
        "media null: --op nop --count 10 --csv -",
        "media null: --op nop --count 10 --live-csv - --json more.json",
        "net null: --count 10",
        "object --op put --count 4",
        "report record.json",
        "report --csv record.json",
        "report --html - record.json",
        "compare record.json record.json",
        "compare record.json record.json --json -",
        "pool query vos:store",
        "pool query vos:store --json",
        "pool list vos:store",
        "net scan",
        "list",
        "schema",
        "schema comparison",
        "options",
        "man",
        "completions bash",
        "--help",
        "--version",
        "media --help",
        "as fio --version",
        "as fio --name=j --ioengine=null --rw=read --size=64k",
        "as fio --name=j --ioengine=null --rw=read --size=64k --output-format=json",
        "as elbencho --help",
    ];
    for words in cases {
        let (code, said) = run_into(&scratch, &format!("{words} --live none"), full(), Stdio::piped());
        let (code, said) = match code {
            // No option of this command.
            Some(2) => run_into(&scratch, words, full(), Stdio::piped()),
            _ => (code, said),
        };
        assert_eq!(code, Some(1), "{words}: {said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(last.starts_with("strata: ") && last.contains("No space left on device"), "{words}: {said}");
        assert!(last.contains("standard output"), "{words}: {said}");
        assert_eq!(said.matches("No space left").count(), 1, "{words}: {said}");
    }
}

#[test]
fn a_full_standard_error_changes_no_exit_code() {
    let scratch = Scratch::new();
    let null = || OpenOptions::new().write(true).open("/dev/null").unwrap();
    for (words, expected) in
        [("media null: --op nop --count 10", 0), ("media none --op read", 2), ("as fio --rw=read", 2)]
    {
        let (code, _) = run_into(&scratch, words, null(), full().into());
        assert_eq!(code, Some(expected), "{words}");
    }
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let scratch = Scratch::new();
    for words in ["man", "schema", "media null: --op nop --count 10 --live none"] {
        let ended = scratch.start(words).close_stdout();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words}");
    }
}

#[test]
fn a_file_without_room_exits_with_1_and_what_was_measured_is_shown() {
    let scratch = Scratch::new();
    // A record is longer than a page: the file system takes the empty file that is tried, and not the record.
    let Some(small) = Mounted::tmpfs("4k") else {
        return skipped("a_file_without_room_exits_with_1_and_what_was_measured_is_shown", NO_ROOT);
    };
    let place = small.path().join("record.json");
    let place = place.display();
    scratch.measured("media null: --op nop --count 10");
    for words in [
        format!("media null: --op nop --count 10 --live none --json {place}"),
        format!("report record.json --html {place}"),
        "media null: --op nop --count 10 --live none --json /dev/full".to_owned(),
        format!("as fio --name=j --ioengine=null --rw=read --size=64k --output={place} --output-format=json"),
    ] {
        let ended = scratch.run(&words);
        assert_eq!(ended.code, Some(1), "{words}: {}", ended.stderr);
        assert!(ended.stderr.lines().last().unwrap().contains("No space left"), "{words}: {}", ended.stderr);
    }
}
