//! Names that are not UTF-8: the file of that very name is meant, and what is written of it reads back.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{Ended, Scratch, read_record};

/// Label that such a name has in text.
const LABEL: &str = "odd\u{FFFD}FF\u{FFFD}EF\u{FFFD}BF\u{FFFD}BD";

fn odd() -> &'static OsStr {
    OsStr::from_bytes(b"odd\xff\xef\xbf\xbd")
}

/// Runs the command with these words; `@` stands for the odd name.
fn run(scratch: &Scratch, words: &str) -> Ended {
    let given = words.split_whitespace().map(|word| {
        let parts: Vec<&[u8]> = word.as_bytes().split(|byte| *byte == b'@').collect();
        OsStr::from_bytes(&parts.join(odd().as_bytes())).to_owned()
    });
    let output = Command::new(env!("CARGO_BIN_EXE_strata"))
        .args(given)
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn ran(scratch: &Scratch, words: &str) -> Ended {
    let ended = run(scratch, words);
    assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
    ended
}

fn names(scratch: &Scratch) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(scratch.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().as_bytes().to_vec()).collect();
    names.sort();
    names
}

fn size(scratch: &Scratch) -> u64 {
    scratch.path().join(odd()).metadata().unwrap().len()
}

#[test]
fn targets_and_outputs_are_files_of_that_very_name() {
    let scratch = Scratch::new();
    let ended = ran(&scratch, "media @ --op write -s 64k -b 4k --keep --json @.json --csv table.csv");
    assert_eq!(names(&scratch), [&b"odd\xff\xef\xbf\xbd"[..], b"odd\xff\xef\xbf\xbd.json", b"table.csv"]);
    assert_eq!(size(&scratch), 65536);
    let record = read_record(&scratch.path().join(PathBuf::from({
        let mut name = odd().to_owned();
        name.push(".json");
        name
    })));
    let phase = &record["phases"][0];
    assert_eq!(phase["plan"]["targets"][0]["path"], LABEL, "{}", phase["plan"]);
    assert_eq!(record["environment"]["targets"][0]["path"], LABEL);
    assert!(ended.stdout.contains(LABEL), "{}", ended.stdout);
    let csv = std::fs::read_to_string(scratch.join("table.csv")).unwrap();
    assert!(csv.contains(LABEL), "{csv}");
    assert!(ran(&scratch, "report @.json").stdout.contains(LABEL));
    ran(&scratch, "compare @.json @.json");
    // The very file is checked, and kept or removed as any other.
    ran(&scratch, "media @ --op read -b 4k --count 16 --cache drop");
    ran(&scratch, "media @ --op write -b 4k --count 16 --verify");
    assert_eq!(names(&scratch).len(), 3);
}

#[test]
fn a_job_file_says_the_escaped_form() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join(odd()), vec![1; 65536]).unwrap();
    std::fs::write(
        scratch.join("job.toml"),
        format!("[[phase]]\ntargets = [\"{LABEL}\"]\nop = \"read\"\nblock_size = \"4k\"\n"),
    )
    .unwrap();
    ran(&scratch, "run job.toml");
    assert_eq!(names(&scratch), [&b"job.toml"[..], odd().as_bytes()]);
}

#[test]
fn dialects_take_such_names() {
    for words in [
        "as fio --name=a --filename=@ --rw=write --bs=4k --size=64k --output=@.out",
        "as elbencho -w -s 64k -b 4k -t 1 @",
    ] {
        let scratch = Scratch::new();
        ran(&scratch, words);
        assert_eq!(size(&scratch), 65536, "{words}");
        assert!(names(&scratch).iter().all(|name| name.starts_with(odd().as_bytes())), "{words}");
    }
}

#[test]
fn what_is_refused_names_the_file() {
    let scratch = Scratch::new();
    for words in ["media @ --op read", "report @", "compare @ @", "run @"] {
        let ended = run(&scratch, words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(
            ended.stderr.lines().count() == 1 && ended.stderr.contains(LABEL),
            "{words}: {}",
            ended.stderr
        );
        assert!(names(&scratch).is_empty());
    }
}
