//! Options that scripts of elbencho ask of it, and refusals in the options of the tool that is spoken.

use std::fs;

use serde_json::Value;

use crate::support::{Scratch, skipped};

/// Options of strata's that no tool has: none may stand in what a dialect says.
const OWN: &[&str] = &[
    "--size",
    "--share",
    "--block-size",
    "--op ",
    "--count",
    "--warmup",
    "--refill",
    "--layout",
    "--inflight",
];

#[test]
fn refusals_of_the_planner_are_in_the_tools_options() {
    let scratch = Scratch::new();
    fs::write(scratch.join("small"), vec![1; 4096]).unwrap();
    let cases = [
        ("elbencho -w -t 64 -s 4k -b 4k x", "larger -s"),
        ("elbencho -r -t 64 -b 4k small", "larger -s"),
        ("elbencho -r -b 4k missing", "-w -s"),
        ("elbencho -w --direct -s 1000 -b 1000 y", "multiples of 512"),
        ("elbencho -w -s 1m -b 4k nodir/x", "nodir"),
        ("spdk_nvme_perf -q 1 -o 8192 -w read -t 1 small", "-o 8KiB"),
        (
            "fio --name=x --rw=randread --filename=small --bs=4k --numjobs=64 --verify=crc32c --group_reporting",
            "",
        ),
    ];
    for (line, said) in cases {
        let ended = scratch.run(&format!("as {line}"));
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(said), "{line}: {last}");
        assert!(said.is_empty() || ended.code == Some(2), "{line}: {last}");
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert!(OWN.iter().all(|own| !text.contains(own)), "{line}: {text}");
    }
}

/// mtelbencho.sh of elbencho's contrib/storage_sweep cuts the version out of `--version` and lets bc compare it.
#[test]
fn the_version_of_elbencho_can_be_computed_with() {
    let scratch = Scratch::new();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_strata"), scratch.join("elbencho")).unwrap();
    let output = std::process::Command::new(scratch.join("elbencho")).arg("--version").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let line = shown.lines().find(|line| line.contains("Version")).unwrap();
    let cut = line.split(':').nth(1).unwrap().trim_start_matches([' ', '\t']);
    // Its sed takes `-` and one digit away.
    let at = cut.find('-').filter(|at| cut[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
    let cut = at.map_or_else(|| cut.to_owned(), |at| format!("{}{}", &cut[..at], &cut[at + 2..]));
    let version: f64 = cut.parse().unwrap_or_else(|error| panic!("{cut:?}: {error}"));
    assert!(version >= 1.6, "{shown}");
}

/// The lines of the sweep for large files, at another size, and the result file that `elbencho-summarize-json` reads.
#[test]
fn the_lines_of_a_storage_sweep_run() {
    let scratch = Scratch::new();
    if !rustix::process::geteuid().is_root() {
        return skipped("the_lines_of_a_storage_sweep_run", "the sweep drops caches, for which it asks root");
    }
    fs::create_dir(scratch.join("4x1MiB")).unwrap();
    let sweep = "as elbencho -w -t 2 --nolive -F -s 1m --trunctosize -b 64k --dropcache --nodelerr --jsonfile result.json \
                 4x1MiB/f0 4x1MiB/f1 4x1MiB/f2 4x1MiB/f3";
    let ended = scratch.run(sweep);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("WRITE"), "{}", ended.stdout);
    assert!(crate::support::names_in(&scratch.join("4x1MiB")).is_empty(), "-F removes them");
    let text = fs::read_to_string(scratch.join("result.json")).unwrap();
    let result: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    for done in ["first_done", "last_done"] {
        let percent = result[done]["cpu%"].as_u64();
        assert!(percent.is_some_and(|percent| percent <= 100), "{done}: {}", result[done]);
    }
}
