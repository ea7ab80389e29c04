//! Command lines of io500 and their refusals.

use super::*;
use crate::words::machine::{Machine, words};

fn asked(line: &str) -> Result<Request, Error> {
    parse(&words(line), &Machine::new())
}

#[track_caller]
fn assert_command(line: &str, expected: &str) {
    match asked(line).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Request::Command(command) => {
            assert_eq!(command.join(" "), format!("suite io500{expected}"), "{line}");
        }
        _ => panic!("{line} is no command"),
    }
}

#[test]
fn lines_become_the_command_of_the_suite() {
    assert_command("config.ini", " --ini config.ini");
    assert_command(
        "config.ini --mode=extended --timestamp now -v -v --dry-run",
        " --ini config.ini --timestamp now --mode extended --verbosity 2 --dry-run",
    );
    assert_command("config.ini --verbose=3", " --ini config.ini --verbosity 3");
    assert_command("config.ini --verify res/result.txt", " --ini config.ini --verify res/result.txt");
    assert_command("config.ini --ranks 4 --config-hash", " --ini config.ini --ranks 4 --config-hash");
    assert_command("-l", " --list");
    assert_command("-lm", " --list-mandatory");
    assert_command("--resume res", " --resume res");
}

#[test]
fn help_comes_with_nothing_to_do() {
    for line in ["", "--help", "config.ini -h"] {
        let Ok(Request::Show(pieces)) = asked(line) else { panic!("{line}: no help") };
        assert!(String::from_utf8_lossy(&pieces[0].content).contains("--dry-run"));
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (line, part) in [
        ("config.ini --cleanup", "strata clean"),
        ("config.ini other.ini", "one configuration"),
        ("config.ini --resume res", "leave it out"),
        ("config.ini --nosuch", "is not an option"),
    ] {
        let error = asked(line).err().unwrap_or_else(|| panic!("{line} is taken")).to_string();
        assert!(error.contains(part), "{line}: {error}");
    }
}

#[test]
fn the_docs_have_the_table() {
    crate::words::tests::check_docs(&TABLE, "io500.md");
}
