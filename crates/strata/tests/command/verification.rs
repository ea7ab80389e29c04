//! `--verify`: what was written is read back and found whole, on every engine.

use crate::loads::engines;
use crate::support::{Scratch, assert_partial, class, total};

#[test]
fn what_is_written_is_read_back() {
    let scratch = Scratch::new();
    for (engine, _) in engines(&scratch) {
        for operation in ["write", "randwrite"] {
            for block in ["4k", "64k"] {
                let words =
                    format!("media a b -s 512k --op {operation} -b {block} --engine {engine} --verify");
                let record = scratch.measured(&words);
                let blocks = if block == "4k" { 256 } else { 16 };
                assert_eq!(record["phases"].as_array().unwrap().len(), 2, "{words}");
                assert_eq!(record["phases"][1]["plan"]["name"], "verify");
                assert_eq!(class(&record, 0, "write"), (blocks, 1 << 20), "{words}");
                assert_eq!(class(&record, 1, "read"), (blocks, 1 << 20), "{words}");
                let worker = &record["phases"][1]["samples"]["workers"][0];
                assert!(worker["verify_ns"].as_u64().unwrap() > 0, "{words}: nothing was checked");
            }
        }
    }
}

#[test]
fn mixes_and_depth_are_verified_too() {
    let scratch = Scratch::new();
    for words in [
        "media file -s 1m --op randrw -b 4k --verify --count 1000",
        "media file -s 1m --op randrw -b 4k --mix read=50,write=30,discard=20 --verify --count 1000",
        "media file -s 1m --op randrw -b 4k --pattern zipf:1.2 --verify --count 1000",
        "media file -s 4m --op randwrite -b 4k -t 2 -q 16 --verify --count 5000",
        "media file -s 4m --op randrw -b 16k -t 2 -q 16 --direct --verify --count 1000",
        "media file -s 1m --op write -b 64k --verify --verify-interval 16k",
        "media file -s 1m --op write,randread -b 4k --verify",
    ] {
        let record = scratch.measured(words);
        assert_eq!(record["phases"].as_array().unwrap().len(), 2, "{words}");
        assert_eq!(total(&record, 1, "errors"), 0, "{words}");
    }
}

#[test]
fn a_later_run_verifies_what_an_earlier_one_kept() {
    let scratch = Scratch::new();
    scratch.measured("media file -s 1m --op write -b 4k --verify --keep");
    let absolute = scratch.join("file").to_str().unwrap().to_owned();
    for path in ["file", "./file", &absolute] {
        let record = scratch.measured(&format!("media {path} --op read -b 4k --verify"));
        assert_eq!(class(&record, 0, "read"), (256, 1 << 20), "{path}");
        scratch.measured(&format!("media {path} --op randread -b 64k --verify -t 2"));
    }
}

#[test]
fn blocks_are_read_back_as_they_were_written() {
    let scratch = Scratch::new();
    let record = scratch.measured("media file -s 4m --op write,randwrite --verify");
    let phases: Vec<_> = record["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| {
            let plan = &phase["plan"];
            (plan["name"].as_str().unwrap(), plan["block_size_bytes_max"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(phases, [("write", 1 << 20), ("verify", 1 << 20), ("randwrite", 4096), ("verify", 4096)]);
    let ended = scratch.run("media other -s 4m --op write,randread --verify");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("use one --block-size for all phases"), "{}", ended.stderr);
}

#[test]
fn a_run_has_the_number_that_it_is_given() {
    let scratch = Scratch::new();
    scratch.measured("media file -s 256k --op write -b 4k --verify --verify-run 7 --keep");
    let words = |run: &str| format!("media file --op read -b 4k --verify {run} --on-error continue");
    for run in ["", "--verify-run 7"] {
        let record = scratch.measured(&words(run));
        assert_eq!(class(&record, 0, "read"), (64, 256 << 10), "{run}");
    }
    let (ended, record) = scratch.measure(&words("--verify-run 8"));
    assert_partial(&scratch, &ended, &record, "foreign_run");
    let errors = &record["phases"][0]["samples"]["workers"][0]["errors"];
    assert!(errors[0]["cause"].as_str().unwrap().ends_with("written by run 0x0000000000000007"), "{errors}");
    assert_eq!(errors[0]["count"], 64);
    // Within one job the number says whose blocks they are, too.
    let job = "targets = ['other']\nsize = '64k'\nblock_size = '4k'\nverify = true\n\
               [[phase]]\nop = 'write'\nverify_run = 1\nno_read_back = true\n\
               [[phase]]\nop = 'read'\nverify_run = 1\n[[phase]]\nop = 'read'\nverify_run = 2\n";
    std::fs::write(scratch.join("job.toml"), job).unwrap();
    let (ended, record) = scratch.measure("run job.toml");
    assert_partial(&scratch, &ended, &record, "foreign_run");
    let failures: Vec<_> =
        record["phases"].as_array().unwrap().iter().map(|phase| phase["failure"].is_null()).collect();
    assert_eq!(failures, [true, true, false]);
}

#[test]
fn nothing_is_read_back_where_it_is_not_wanted() {
    let scratch = Scratch::new();
    let record =
        scratch.measured("media file -s 256k --op write,randwrite -b 4k --verify --no-read-back --keep");
    let names: Vec<_> =
        record["phases"].as_array().unwrap().iter().map(|phase| &phase["plan"]["name"]).collect();
    assert_eq!(names, ["write", "randwrite"]);
    let record = scratch.measured("media file --op read -b 4k --verify");
    assert_eq!(class(&record, 0, "read"), (64, 256 << 10), "the blocks can be verified later");
}
