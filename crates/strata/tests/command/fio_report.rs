//! Reports of fio's command line other than each direction on its own, and files that it makes in other ways.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support::{Ended, Scratch, skipped, tool};

fn json(ended: &Ended) -> Value {
    let start = ended.stdout.find('{').unwrap_or(0);
    serde_json::from_str(&ended.stdout[start..]).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

/// The results of the same words by fio itself; none where it is not installed.
fn by_fio(scratch: &Scratch, test: &str, words: &str) -> Option<String> {
    if tool(&["fio", "--version"]).is_none() {
        skipped(test, "fio is not installed");
        return None;
    }
    let output = std::process::Command::new("fio")
        .current_dir(scratch.path())
        .args(words.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

const MIXED: &str = "--name=x --ioengine=null --size=1m --bs=4k --rw=randrw --rwmixread=75 --number_ios=256";

#[test]
fn directions_are_reported_together_as_fio_reports_them() {
    let scratch = Scratch::new();
    for word in ["none", "mixed", "both", "1"] {
        let words = format!("{MIXED} --unified_rw_reporting={word} --output-format=json");
        let ours = json(&scratch.run(&format!("as fio {words}")));
        let job = &ours["jobs"][0];
        let count = |way: &str| job[way]["total_ios"].as_u64();
        let apart = || count("read").unwrap() + count("write").unwrap();
        match word {
            "none" => assert_eq!((apart(), count("mixed")), (256, None)),
            "both" => assert_eq!((apart(), count("mixed")), (256, Some(256))),
            _ => assert_eq!((count("read"), count("write"), count("mixed")), (None, None, Some(256))),
        }
        if count("mixed").is_some() {
            assert_eq!(job["mixed"]["io_bytes"], 256 * 4096, "{job}");
            assert_eq!(job["mixed"]["clat_ns"]["N"], 256, "latencies of both: {job}");
            assert!(job["mixed"]["bw_mean"].as_f64().unwrap() > 0.0, "{job}");
        }
        let Some(theirs) = by_fio(&scratch, "directions_are_reported_together", &words) else { continue };
        let theirs: Value = serde_json::from_str(&theirs[theirs.find('{').unwrap()..]).unwrap();
        let theirs = &theirs["jobs"][0];
        let ways = |job: &Value| {
            let ways = ["read", "write", "trim", "mixed"];
            names(job).into_iter().filter(|name| ways.contains(&name.as_str())).collect::<Vec<_>>()
        };
        assert_eq!(ways(job), ways(theirs), "{word}");
        assert_eq!(count("mixed"), theirs["mixed"]["total_ios"].as_u64(), "{word}");
    }
    let ended = scratch.run(&format!("as fio {MIXED} --unified_rw_reporting=all"));
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("unified_rw_reporting: \"all\": use one of none, mixed, both"),
        "{}",
        ended.stderr
    );
}

#[test]
fn the_texts_of_fio_name_the_mixed_direction() {
    let scratch = Scratch::new();
    let words =
        |word: &str, format: &str| format!("{MIXED} --unified_rw_reporting={word} --output-format={format}");
    for (word, shown) in [("mixed", &["mixed"][..]), ("both", &["read", "write", "mixed"])] {
        let ended = scratch.run(&format!("as fio {}", words(word, "normal")));
        let titles = |text: &str| {
            let lines = text.lines().filter(|line| line.contains(": IOPS="));
            lines.map(|line| line.trim().split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let groups = |text: &str| {
            let lines = text.lines().filter(|line| line.contains(": bw=") && line.contains(", io="));
            lines.map(|line| line.trim().split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(titles(&ended.stdout), shown, "{}", ended.stdout);
        let expected: Vec<_> = shown.iter().map(|name| name.to_uppercase()).collect();
        assert_eq!(groups(&ended.stdout), expected, "{}", ended.stdout);
        let issued = |text: &str| text.lines().find(|line| line.contains("issued rwts")).unwrap().to_owned();
        let all_as_one = issued(&ended.stdout).contains("total=256,0,0,0");
        assert_eq!(all_as_one, word == "mixed", "{}", ended.stdout);
        let Some(theirs) = by_fio(&scratch, "the_texts_of_fio", &words(word, "normal")) else { continue };
        assert_eq!((titles(&theirs), groups(&theirs)), (titles(&ended.stdout), groups(&ended.stdout)));
        let fields = |text: &str| text.trim_end().split(';').count();
        let (ours, theirs) = (
            scratch.run(&format!("as fio {}", words(word, "terse"))).stdout,
            by_fio(&scratch, "the_texts_of_fio", &words(word, "terse")).unwrap(),
        );
        assert_eq!(fields(&ours), fields(&theirs), "{ours}{theirs}");
    }
}

#[test]
fn a_steady_latency_ends_the_job_too() {
    let scratch = Scratch::new();
    // Of ten intervals none is ten times their mean away from it, however slow the machine is.
    let words = "as fio --name=x --ioengine=null --size=100g --rw=read --bs=4k --rate_iops=500 --time_based --runtime=600 \
                 --ss=lat:1000% --ss_dur=1 --ss_interval=100 --output-format=json";
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let done = json(&ended);
    let steady = &done["jobs"][0]["steadystate"];
    assert_eq!((&steady["ss"], &steady["attained"]), (&"lat:1000.000000%".into(), &1.into()), "{steady}");
    let of_intervals = steady["data"]["lat_ns"].as_array().unwrap();
    assert_eq!(of_intervals.len(), 10, "{steady}");
    assert!(steady["data"]["lat_mean"].as_u64().unwrap() > 0, "{steady}");
    let ended = scratch.run(&words.replace("lat:1000%", "latency:5%"));
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("use iops, bw, lat, iops_slope, bw_slope or lat_slope"),
        "{}",
        ended.stderr
    );
}

#[test]
fn create_only_lays_out_the_files_and_does_nothing() {
    let scratch = Scratch::new();
    for (rw, name) in [("write", "w"), ("randread", "r")] {
        let words = format!("--name={name} --size=1m --nrfiles=2 --rw={rw} --bs=4k --create_only=1");
        let ended = scratch.run(&format!("as fio {words} --output-format=json"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let job = &json(&ended)["jobs"][0];
        assert_eq!((&job["read"]["total_ios"], &job["write"]["total_ios"]), (&0.into(), &0.into()), "{job}");
        let sizes = || {
            let lengths = scratch.names().into_iter().filter(|file| file.starts_with(name));
            lengths.map(|file| fs::metadata(scratch.join(&file)).unwrap().len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(), [512 << 10, 512 << 10], "{rw}");
        let ours = sizes();
        scratch.names().into_iter().for_each(|file| fs::remove_file(scratch.join(&file)).unwrap());
        if by_fio(&scratch, "create_only_lays_out_the_files", &words).is_some() {
            assert_eq!(sizes(), ours, "{rw}");
        }
    }
}

#[test]
fn files_have_sizes_of_a_range() {
    let scratch = Scratch::new();
    let words =
        "as fio --name=x --nrfiles=16 --filesize=16k-256k --rw=randwrite --bs=4k --output-format=json";
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let sizes = || {
        let names = scratch.names().into_iter().filter(|name| name.starts_with("x."));
        names.map(|name| fs::metadata(scratch.join(&name)).unwrap().len()).collect::<Vec<_>>()
    };
    let found = sizes();
    assert!(found.iter().all(|size| (16 << 10..=256 << 10).contains(size) && size % 4096 == 0), "{found:?}");
    assert!(found.iter().collect::<BTreeSet<_>>().len() > 8, "drawn one by one: {found:?}");
    let written = json(&ended)["jobs"][0]["write"]["io_bytes"].as_u64();
    assert_eq!(written, Some(found.iter().sum()), "each block of each file once");
    // The same seed draws the same sizes; reads find the files as they are.
    let ended = scratch.run(&words.replace("randwrite", "read"));
    assert_eq!((ended.code, sizes()), (Some(0), found), "{}", ended.stderr);
    for (range, expected) in [
        ("256k-16k", "a range from a smaller to a larger one"),
        ("1k-2k", "less than the block size of 4096"),
        ("0-4k", "a range from a smaller to a larger one"),
    ] {
        let ended = scratch.run(&words.replace("16k-256k", range));
        assert_eq!(ended.code, Some(2), "{range}");
        assert!(ended.stderr.contains(expected), "{range}: {}", ended.stderr);
    }
    let record = scratch.measured("media a b c --op write -b 4k --sizes 8k,64k --keep");
    let length = |name: &str| fs::metadata(scratch.join(name)).unwrap().len();
    assert_eq!(["a", "b", "c"].map(length), [8 << 10, 64 << 10, 8 << 10]);
    assert_eq!(crate::support::total(&record, 0, "bytes"), 80 << 10);
    let ended = scratch.run("media a --op read -b 4k --sizes 8k --size 8k");
    assert!(ended.code == Some(2) && ended.stderr.contains("give one of them"), "{}", ended.stderr);
}

#[test]
fn files_are_removed_after_the_only_loop() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --size=64k --rw=write --bs=4k --unlink_each_loop=1";
    assert_eq!(scratch.run(words).code, Some(0));
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
    let ended = scratch.run(&format!("{words} --loops=2"));
    assert!(
        ended.code == Some(2) && ended.stderr.contains("unlink_each_loop: is not supported with loops"),
        "{}",
        ended.stderr
    );
}

#[test]
fn copies_are_of_a_working_set_that_jobs_share() {
    let scratch = Scratch::new();
    // The set has 1024 blocks, of which each job draws as many: hardly one of them is missing.
    let words = "as fio --size=8m --rw=write --bs=4k --dedupe_percentage=50 --dedupe_mode=working_set --dedupe_working_set_percentage=50";
    let copies = |more: &str| {
        let ended = scratch.run(&format!("{words} {more} --name=a --name=b"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let mut seen: std::collections::HashMap<Vec<u8>, [u32; 2]> = std::collections::HashMap::new();
        for (at, name) in ["a.0.0", "b.0.0"].iter().enumerate() {
            for block in fs::read(scratch.join(name)).unwrap().chunks(4096) {
                seen.entry(block.to_vec()).or_default()[at] += 1;
            }
            fs::remove_file(scratch.join(name)).unwrap();
        }
        let repeated = |at: usize| seen.values().filter(|counts| counts[at] > 1).count();
        let shared = seen.values().filter(|counts| counts[0] > 0 && counts[1] > 0).count();
        (repeated(0), shared)
    };
    let (repeated, shared) = copies("");
    // Of 1024 drawn 1024 times 27 percent come more than once.
    assert!((200..=350).contains(&repeated) && shared == 0, "{repeated} {shared}");
    let (_, shared) = copies("--dedupe_global=1");
    // 63 percent of them are drawn by a job, 40 percent by both.
    assert!((340..=480).contains(&shared), "{shared}");
    for (more, expected) in [
        ("--dedupe_working_set_percentage=0", "requires dedupe_working_set_percentage"),
        ("--dedupe_mode=other", "use one of repeat, working_set"),
    ] {
        let ended = scratch.run(&format!("{words} {more} --name=a"));
        assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{}", ended.stderr);
    }
    let ended = scratch.run("media f --op write -s 1m --dedupe-set 1m");
    assert!(ended.code == Some(2) && ended.stderr.contains("require --dedupe"), "{}", ended.stderr);
}
