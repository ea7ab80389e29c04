//! `strata suite io500` and the dialect of IO500 through the binary, on real directories.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Running, Scratch, names_in, read_record, state_of};

/// All phases, small enough for a test: some write phases are out of work before the stonewall.
pub(crate) const TINY: &str = "[ior-easy]\ntransferSize = 64k\nblockSize = 1m\n[ior-hard]\nsegmentCount = 20\n\
                    [mdtest-easy]\nn = 300\n[mdtest-hard]\nn = 300\n";

/// Phases of the standard mode, in IO500's order.
pub(crate) const PHASES: [&str; 14] = [
    "ior-easy-write",
    "mdtest-easy-write",
    "timestamp",
    "ior-hard-write",
    "mdtest-hard-write",
    "find",
    "ior-easy-read",
    "mdtest-easy-stat",
    "ior-hard-read",
    "mdtest-hard-stat",
    "mdtest-easy-delete",
    "mdtest-hard-read",
    "mdtest-hard-delete",
    "ior-rnd4K-easy-read",
];

fn scratch(ini: &str) -> Scratch {
    let scratch = Scratch::new();
    fs::write(scratch.join("tiny.ini"), ini).unwrap();
    scratch
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

const RUN: &str = "suite io500 data --ini tiny.ini --ranks 2 --stonewall 1 --results results --live none";

/// Rates of the phases that count, from the lines of a run.
fn scores(text: &str) -> Vec<(String, f64)> {
    let results = text.lines().filter_map(|line| line.strip_prefix("[RESULT]"));
    let mut words = results.map(|line| line.split_whitespace());
    words
        .by_ref()
        .map(|mut words| (words.next().unwrap().to_owned(), words.next().unwrap().parse().unwrap()))
        .collect()
}

fn mean(scores: &[(String, f64)], is_meant: impl Fn(&str) -> bool) -> f64 {
    let meant: Vec<f64> =
        scores.iter().filter(|(name, _)| is_meant(name)).map(|(_, score)| score.ln()).collect();
    (meant.iter().sum::<f64>() / meant.len() as f64).exp()
}

#[test]
fn all_phases_run_and_are_scored_and_nothing_is_left() {
    let scratch = scratch(TINY);
    let ended = scratch.run(RUN);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let text = &ended.stdout;
    let shown: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("[RESULT]") || line.starts_with("[      ]"))
        .filter_map(|line| line[8..].split_whitespace().next())
        .collect();
    assert_eq!(shown, PHASES);
    let score = text.lines().find(|line| line.starts_with("[SCORE ]")).unwrap();
    assert!(score.ends_with(" [INVALID]"), "{score}");
    let rates = scores(text);
    let (bandwidth, metadata) =
        (mean(&rates, |name| name.starts_with("ior")), mean(&rates, |name| !name.starts_with("ior")));
    let record = read_record(&scratch.join("results/record.json"));
    let found = &record["suite"]["scores"][0];
    for (field, expected) in [
        ("bandwidth_gib_per_second", bandwidth),
        ("metadata_kiops", metadata),
        ("total", (bandwidth * metadata).sqrt()),
    ] {
        // The lines are rounded to 6 places.
        assert!(
            (found[field].as_f64().unwrap() / expected - 1.0).abs() < 1e-3,
            "{field}: {found} {expected}"
        );
    }
    for reason in [
        "the stonewall is 1 s, but the rules require 300 s",
        "mdtest-easy-write: the phase took",
        "less than the stonewall of 1 s: it ran out of work",
    ] {
        assert!(text.contains(reason), "{reason}: {text}");
    }
    assert!(text.contains("page_cache"), "reads from memory are named: {text}");
    for phase in record["suite"]["phases"].as_array().unwrap() {
        let name = phase["name"].as_str().unwrap();
        let Some(at) = phase["phase"].as_u64() else { continue };
        let measured = &record["phases"][usize::try_from(at).unwrap()];
        assert_eq!(measured["plan"]["name"], name);
        assert_eq!(measured["summary"]["total"]["errors"], 0, "{name}");
        let seconds = measured["samples"]["elapsed_ns"].as_u64().unwrap() as f64 / 1e9;
        assert!((phase["seconds"].as_f64().unwrap() - seconds).abs() < 1e-6, "{name}");
    }
    assert_eq!(scratch.names(), ["data", "results", "tiny.ini"]);
    assert!(names_in(&scratch.join("data")).is_empty());
    assert!(fs::read_dir(state_of(scratch.path()).join("strata")).is_ok_and(|mut left| {
        left.all(|entry| entry.unwrap().path().extension().is_none_or(|extension| extension != "json"))
    }));
    result_files(&scratch);
}

fn result_files(scratch: &Scratch) {
    let results = scratch.join("results");
    for phase in PHASES.iter().filter(|phase| **phase != "timestamp") {
        assert!(read(results.join(format!("{phase}.txt"))).contains(phase), "{phase}");
        let rows = read(results.join(format!("{phase}.csv"))).lines().count();
        assert!(rows >= 2, "{phase}: {rows}");
    }
    let result = read(results.join("result.txt"));
    let mut sections = result.lines().filter(|line| line.starts_with('['));
    assert_eq!(sections.next(), Some("[run]"));
    assert_eq!(sections.by_ref().take(14).collect::<Vec<_>>(), PHASES.map(|phase| format!("[{phase}]")));
    assert_eq!(sections.next(), Some("[SCORE]"));
    for key in [
        "procs           = 2",
        "t_start         = 20",
        "t_delta         = ",
        "t_end           = 20",
        "exe             = strata fs ",
    ] {
        assert!(result.contains(key), "{key}: {result}");
    }
    let summary = read(results.join("result_summary.txt"));
    assert!(
        summary.starts_with("IO500 version strata-") && summary.contains("[SCORE ] Bandwidth"),
        "{summary}"
    );
    let config = read(results.join("config.ini"));
    assert!(
        config.contains("\nstonewall-time = 1\n") && config.contains("\nsegmentCount = 20\n"),
        "{config}"
    );
    let checked = scratch.run("as io500 results/config.ini --verify results/result.txt");
    assert_eq!(checked.code, Some(1), "{}", checked.stdout);
    assert!(checked.stdout.contains("invalid run"), "{}", checked.stdout);
    fs::write(results.join("result.txt"), result.replacen("score           = 0", "score           = 9", 1))
        .unwrap();
    let checked = scratch.run("suite io500 --ini results/config.ini --verify results/result.txt");
    assert!(checked.code == Some(1) && checked.stdout.contains("score hash expected"), "{}", checked.stdout);
}

/// Waits until a phase is whole.
fn await_phase(scratch: &Scratch, running: &Running, phase: &str) {
    let state = scratch.join("results/state.json");
    let name = format!("\"{phase}\"");
    running.await_that(|| fs::read_to_string(&state).is_ok_and(|text| text.contains(&name)));
}

/// Work for more than the stonewall, so that a signal comes in time.
const LONG: &str = "[ior-easy]\ntransferSize = 64k\n[mdtest-easy]\nn = 200\n[mdtest-hard]\nn = 1000000\n";

#[test]
fn an_interrupted_run_goes_on_behind_its_last_whole_phase() {
    let scratch = scratch(LONG);
    let running = scratch.start(RUN);
    await_phase(&scratch, &running, "mdtest-easy-write");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stderr.contains("--resume") && ended.stderr.contains("strata clean"), "{}", ended.stderr);
    let record = read_record(&scratch.join("results/record.json"));
    assert_eq!(record["status"], "partial");
    let whole = record["suite"]["phases"].as_array().unwrap().len();
    assert!(
        record["suite"]["invalid"].to_string().contains("the run ended before or in"),
        "{}",
        record["suite"]
    );
    let refused = scratch.run(RUN);
    assert!(refused.code == Some(2) && refused.stderr.contains("--resume"), "{}", refused.stderr);
    let refused = scratch.run("suite io500 --resume results --stonewall 2");
    assert!(refused.code == Some(2) && refused.stderr.contains("omit it"), "{}", refused.stderr);
    let resumed = scratch.run("suite io500 --resume results --live none");
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.stdout, resumed.stderr);
    assert!(resumed.stdout.contains("and resumed"), "{}", resumed.stdout);
    let second = read_record(&scratch.join("results/record-2.json"));
    let phases = second["suite"]["phases"].as_array().unwrap();
    assert_eq!(phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect::<Vec<_>>(), PHASES);
    assert_eq!(
        phases[..whole],
        record["suite"]["phases"].as_array().unwrap()[..].iter().map(earlier).collect::<Vec<_>>()[..]
    );
    assert!(
        phases[whole..].iter().all(|phase| phase["invalid"].as_array().unwrap().iter().all(is_of_time)),
        "{phases:#?}"
    );
    assert!(names_in(&scratch.join("data")).is_empty());
    assert_eq!(scratch.run("suite io500 --resume results").code, Some(2), "nothing to resume");
}

/// Waits until files of this beginning hold something.
fn await_data(scratch: &Scratch, running: &Running, below: &str) {
    let data = scratch.join("data");
    let holds = |path: &Path| fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() > 0);
    let any = |directory: &Path| {
        fs::read_dir(directory)
            .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| holds(&entry.path()))))
    };
    running.await_that(|| {
        fs::read_dir(&data)
            .is_ok_and(|mut runs| runs.any(|run| run.is_ok_and(|run| any(&run.path().join(below)))))
    });
}

#[test]
fn a_run_that_is_killed_in_a_write_phase_goes_on_or_is_cleaned() {
    for set in ["ior-easy", "ior-hard"] {
        for resumes in [true, false] {
            let scratch = scratch(LONG);
            let running = scratch.start(RUN);
            await_data(&scratch, &running, set);
            running.signal(Signal::KILL);
            assert_eq!(running.end().code, None);
            let words = if resumes { "suite io500 --resume results --live none" } else { "clean --yes" };
            let ended = scratch.run(words);
            assert_eq!(ended.code, Some(0), "{set}, {words}: {}{}", ended.stdout, ended.stderr);
            assert!(names_in(&scratch.join("data")).is_empty(), "{set}, {words}: {}", ended.stderr);
        }
    }
}

#[test]
fn files_that_an_interrupted_delete_phase_had_removed_come_back() {
    let scratch = scratch(&format!("[debug]\npause-dir = pauses\n{TINY}"));
    fs::create_dir(scratch.join("pauses")).unwrap();
    fs::write(scratch.join("pauses/mdtest-easy-delete"), "").unwrap();
    let running = scratch.start(RUN);
    await_phase(&scratch, &running, "mdtest-hard-stat");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(1));
    let tree = fs::read_dir(scratch.join("data")).unwrap().next().unwrap().unwrap().path();
    // As many as the stonewall left time for.
    let made: usize = (0..2)
        .map(|rank| names_in(&tree.join(format!("mdtest-easy/test-dir.0-0/mdtest_tree.{rank}.0"))).len())
        .sum();
    let removed = tree.join("mdtest-easy/test-dir.0-0/mdtest_tree.1.0/file.mdtest.1.7");
    fs::remove_file(&removed).unwrap();
    fs::remove_file(scratch.join("pauses/mdtest-easy-delete")).unwrap();
    let resumed = scratch.run("suite io500 --resume results --live none");
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.stdout, resumed.stderr);
    assert!(resumed.stdout.contains("pause-dir is set"), "{}", resumed.stdout);
    let record = read_record(&scratch.join("results/record-2.json"));
    let unlinked = record["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|phase| phase["plan"]["name"] == "mdtest-easy-delete");
    let total = &unlinked.unwrap()["summary"]["total"];
    assert_eq!((&total["operations"], &total["errors"]), (&made.into(), &0.into()));
    assert!(names_in(&scratch.join("data")).is_empty());
}

/// A phase of an earlier part, as the record of a later part has it.
fn earlier(phase: &Value) -> Value {
    let mut phase = phase.clone();
    phase["phase"] = Value::Null;
    phase
}

fn is_of_time(reason: &Value) -> bool {
    reason.as_str().unwrap().contains("the phase took")
}

#[test]
fn what_an_interrupted_run_has_left_is_removed_by_clean() {
    let scratch = scratch(LONG);
    let running = scratch.start(RUN);
    await_phase(&scratch, &running, "ior-easy-write");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(1));
    assert_eq!(names_in(&scratch.join("data")).len(), 1);
    let cleaned = scratch.run("clean --yes results/record.json");
    assert_eq!(cleaned.code, Some(0), "{}{}", cleaned.stdout, cleaned.stderr);
    assert!(names_in(&scratch.join("data")).is_empty());
    let resumed = scratch.run("suite io500 --resume results --live none");
    assert!(resumed.code == Some(2) && resumed.stderr.contains("left nothing to resume"), "{resumed:?}");
}

#[test]
fn a_tree_of_others_stays_as_it_is() {
    let scratch = scratch(&format!("[global]\ntimestamp-datadir = FALSE\n{TINY}"));
    fs::create_dir_all(scratch.join("data/mdtest-hard")).unwrap();
    fs::write(scratch.join("data/mdtest-hard/mine"), "mine").unwrap();
    let refused = scratch.run(RUN);
    assert!(refused.code == Some(2) && refused.stderr.contains("mdtest-hard"), "{}", refused.stderr);
    assert_eq!(names_in(&scratch.join("data")), ["mdtest-hard"]);
    assert_eq!(read(scratch.join("data/mdtest-hard/mine")), "mine");
}

#[test]
fn corrupted_data_make_a_phase_invalid() {
    let script = "#!/bin/sh\nf=$(ls data/*/ior-easy/ior_file_easy.00000000)\nprintf x | dd of=$f bs=1 seek=70000 conv=notrunc 2>/dev/null\n\
                  echo MATCHED 3/1000\n";
    let scratch = scratch(&format!("[find]\nexternal-script = ./spoil.sh\n{TINY}"));
    fs::write(scratch.join("spoil.sh"), script).unwrap();
    let refused = scratch.run(RUN);
    assert!(refused.code == Some(2) && refused.stderr.contains("is not executable"), "{}", refused.stderr);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(scratch.join("spoil.sh"), mode).unwrap();
    let ended = scratch.run(RUN);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let record = read_record(&scratch.join("results/record.json"));
    let phase = |name: &str| {
        let phases = record["suite"]["phases"].as_array().unwrap();
        phases.iter().find(|phase| phase["name"] == name).unwrap().clone()
    };
    let reasons = phase("ior-easy-read")["invalid"].to_string();
    assert!(reasons.contains("not as written"), "{reasons}");
    assert!(phase("ior-hard-read")["invalid"].as_array().unwrap().is_empty());
    let find = phase("find");
    assert_eq!(find["phase"], Value::Null);
    let facts = find["facts"].to_string();
    for part in ["-newer", "timestampfile -size 3901c -name", "\"found\",\"3\"", "\"total-files\",\"1000\""] {
        assert!(facts.contains(part), "{part}: {facts}");
    }
}

#[test]
fn a_dry_run_writes_what_would_be_done_and_does_nothing() {
    let scratch = scratch(TINY);
    let ended = scratch.run("as io500 tiny.ini --dry-run --ranks 3 --timestamp now");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(scratch.names(), ["results", "tiny.ini"]);
    let result = read(scratch.join("results/now/result.txt"));
    assert!(result.contains("; ERROR INVALID dry run") && result.contains("--segments 20"), "{result}");
    assert!(ended.stdout.contains("TOTAL 0.000000 [INVALID]"), "{}", ended.stdout);
    // The command line of a phase is one that strata takes.
    let words = result.lines().find(|line| line.contains("--op create"));
    let line =
        words.and_then(|line| line.split_once("strata ")).unwrap().1.replace("--time 300s", "--time 1s");
    fs::create_dir_all(scratch.join("datafiles/now")).unwrap();
    let by_hand = scratch.run(&format!("{line} --live none"));
    assert_eq!(by_hand.code, Some(0), "{line}: {}", by_hand.stderr);
}

#[test]
fn the_extended_mode_adds_searches_and_is_refused_with_mdworkbench() {
    let scratch = scratch(TINY);
    let refused = scratch.run(&format!("{RUN} --mode extended"));
    assert!(
        refused.code == Some(2) && refused.stderr.contains("[mdworkbench] run = FALSE"),
        "{}",
        refused.stderr
    );
    fs::write(scratch.join("tiny.ini"), format!("[mdworkbench]\nrun = FALSE\n{TINY}")).unwrap();
    let ended = scratch.run(&format!("{RUN} --mode extended"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for part in ["[RESULT]            find-easy", "[RESULT]            find-hard", "[SCOREX] Bandwidth"] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
}

#[test]
fn keys_that_cannot_be_honoured_are_refused() {
    for (ini, parts) in [
        ("[global]\napi = MPIIO\n", &["[global] api = MPIIO", "POSIX"][..]),
        ("[global]\nio-buffers-on-gpu = TRUE\n", &["host memory"]),
        ("[ior-hard]\ncollective = TRUE\n", &["collective"]),
        ("[ior-hard]\nAPI = POSIX --posix.odirect\n", &["[ior-hard] API"]),
        ("[ior-easy]\nblockSize = 3m\ntransferSize = 2m\n", &["multiple of transferSize"]),
        ("[find]\nnproc = 3\n", &["1 to 2"]),
        ("[find]\npfind-steal-next = TRUE\n", &["pfind"]),
        ("[ior-easy-write]\nrun = FALSE\n", &["ior-easy-read has no files to work on"]),
        ("[ior-esy]\n", &["[ior-esy]", "ior-easy", "file=tiny.ini", "line=1"]),
    ] {
        let scratch = scratch(ini);
        let refused = scratch.run(RUN);
        assert_eq!(refused.code, Some(2), "{ini}: {}", refused.stderr);
        parts.iter().for_each(|part| assert!(refused.stderr.contains(part), "{ini}: {}", refused.stderr));
        assert_eq!(scratch.names(), ["tiny.ini"], "{ini}: nothing was made");
    }
    let refused = Scratch::new().run("suite io500");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("no directory to measure"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_configuration_is_listed_and_reads_back() {
    let scratch = Scratch::new();
    let list = scratch.run("as io500 --list");
    assert_eq!(list.code, Some(0));
    fs::write(scratch.join("all.ini"), &list.stdout).unwrap();
    let hash = |words: &str| scratch.run(words).stdout;
    assert!(list.stdout.contains("# Number of segments\nsegmentCount = 10000000\n"), "{}", list.stdout);
    fs::write(scratch.join("none.ini"), "").unwrap();
    assert_eq!(hash("as io500 all.ini --config-hash"), hash("as io500 none.ini --config-hash"));
    assert!(!scratch.run("as io500 -lm").stdout.contains("[mdworkbench]"));
}
