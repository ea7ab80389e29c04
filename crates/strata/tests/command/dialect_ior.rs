//! `strata as ior` on real files: lines of IO500, scaled down.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;

use crate::support::{Ended, Scratch, read_record};

#[track_caller]
fn good(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

/// Overwrites some bytes of a file in place.
fn damage(path: &Path, offset: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(b"damaged", offset).unwrap();
}

/// The first column and the bandwidth of each row of results.
fn rows(shown: &str) -> Vec<(&str, f64)> {
    let body = shown.split("------    ---------").nth(1).unwrap_or_default();
    let lines = body.lines().skip(1).take_while(|line| !line.is_empty());
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words.len() == 11).map(|words| (words[0], words[1].parse().unwrap())).collect()
}

const EASY: &str = "as --json record.json ior -N 2 -C -Q 1 -g -G 271 -k -e -t 64k -b 1m -F -o easy";

#[test]
fn files_of_tasks_are_written_read_by_others_and_every_byte_is_checked() {
    let scratch = Scratch::new();
    let written = scratch.run(&format!("{EASY} -w -D 60 -O stoneWallingWearOut=1"));
    good(&written);
    assert!(matches!(rows(&written.stdout)[..], [("write", rate)] if rate > 0.0), "{}", written.stdout);
    for rank in 0..2 {
        assert_eq!(fs::metadata(scratch.join(&format!("easy.0000000{rank}"))).unwrap().len(), 1 << 20);
    }
    let read = scratch.run(&format!("{EASY} -r -R"));
    good(&read);
    assert_eq!(rows(&read.stdout).len(), 1, "{}", read.stdout);
    let record = read_record(&scratch.join("record.json"));
    let phase = &record["phases"][0];
    assert_eq!(phase["plan"]["rank_shift"]["by"], 1);
    assert_eq!(phase["summary"]["total"]["bytes"], 2 << 20);

    damage(&scratch.join("easy.00000001"), 200_000);
    let wrong = scratch.run(&format!("{EASY} -r -R"));
    assert_eq!(wrong.code, Some(1), "{}", wrong.stdout);
    assert!(wrong.stdout.contains("WARNING: Incorrect data on read (1 errors found)."), "{}", wrong.stdout);
    assert!(wrong.stdout.contains("easy.00000001, offset 200000"), "{}", wrong.stdout);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["phases"][0]["summary"]["total"]["bytes"], (2 << 20) - (64 << 10), "in no rate");
}

#[test]
fn data_of_another_number_are_wrong_and_the_file_stays_for_a_look() {
    let scratch = Scratch::new();
    let script = "IOR START\nwriteFile=1,setTimeStampSignature=1\nRUN\n\
                  writeFile=0,readFile=1,checkRead=1,setTimeStampSignature=2,keepFileWithError=1\nRUN\nIOR STOP\n";
    fs::write(scratch.join("job"), script).unwrap();
    let ended = scratch.run("as ior -f job -t 4k -b 16k -o data");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("Incorrect data on read (4 errors found)"), "{}", ended.stdout);
    assert_eq!(fs::metadata(scratch.join("data")).unwrap().len(), 16 << 10);
}

const HARD: &str = "as --json record.json ior -N 2 -C -Q 1 -g -G 271 -k -e -t 47008 -b 47008 -o hard";

#[test]
fn a_stonewall_ends_the_write_and_the_read_takes_what_is_there() {
    let scratch = Scratch::new();
    let wall = "-s 1000000 -D 1 -O stoneWallingWearOut=1,interIODelay=2000,stoneWallingStatusFile=status";
    let written = scratch.run(&format!("{HARD} -w {wall}"));
    good(&written);
    let each: u64 = fs::read_to_string(scratch.join("status")).unwrap().trim().parse().unwrap();
    assert!((10..1000).contains(&each), "{each}");
    assert_eq!(fs::metadata(scratch.join("hard")).unwrap().len(), 2 * each * 47008);
    let record = read_record(&scratch.join("record.json"));
    for worker in record["phases"][0]["samples"]["workers"].as_array().unwrap() {
        let classes = worker["classes"].as_array().unwrap();
        let writes = classes.iter().find(|class| class["class"] == "write").unwrap();
        assert_eq!(writes["operations"], each, "each goes on to what the fastest had");
    }
    assert!(written.stdout.contains("stoneWallingWearOut : 1"), "{}", written.stdout);

    let read =
        scratch.run(&format!("{HARD} -r -R -s 1000000 -O stoneWallingStatusFile=status,summaryFormat=JSON"));
    good(&read);
    let document: Value = serde_json::from_str(&read.stdout).unwrap();
    assert_eq!(document["summary"][0]["xsizeMiB"].as_f64().unwrap(), (2 * each * 47008) as f64 / 1048576.0);
    damage(&scratch.join("hard"), 47008 + 47000);
    let wrong = scratch.run(&format!("{HARD} -r -R -s {each}"));
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stdout.contains("Incorrect data on read (1 errors found)"), "{}", wrong.stdout);
}

#[test]
fn random_reads_with_repeats_go_over_the_files_that_are_there() {
    let scratch = Scratch::new();
    good(&scratch.run(&format!("{EASY} -w")));
    let line = "as --json record.json ior -N 2 -C -Q 1 -g -G 271 -k -e -F -r -z -z -t 4096 -b 4096 -s 1000 -D 60 \
                -O stoneWallingWearOut=1 -o easy";
    let read = scratch.run(line);
    good(&read);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["phases"][0]["summary"]["total"]["bytes"], 2 * 1000 * 4096);
}

#[test]
fn files_go_when_they_are_not_kept_and_have_the_names_of_the_tool() {
    let scratch = Scratch::new();
    good(&scratch.run("as ior -N 2 -w -r -W -R -C -i 2 -t 4k -b 16k -s 2 -o gone"));
    assert_eq!(scratch.names(), [""; 0]);
    good(&scratch.run("as ior -N 2 -w -F -m -i 2 -k -t 4k -b 16k -o f"));
    assert_eq!(scratch.names(), ["f.00000000.0", "f.00000000.1", "f.00000001.0", "f.00000001.1"]);
    let scratch = Scratch::new();
    good(&scratch.run("as ior -N 2 -w -F -u -k -Z -z -Y -t 4k -b 16k -o f -O summaryFile=out,saveRankPerformanceDetailsCSV=ranks"));
    assert_eq!(scratch.names(), ["0", "1", "out", "ranks"]);
    assert!(scratch.join("1/f.00000001").exists());
    assert!(fs::read_to_string(scratch.join("out")).unwrap().contains("Summary of all tests:"));
    assert_eq!(fs::read_to_string(scratch.join("ranks")).unwrap().lines().count(), 3);
}

#[test]
fn files_of_others_are_not_written_over() {
    let scratch = Scratch::new();
    fs::write(scratch.join("mine"), "precious").unwrap();
    for rest in ["", " -E"] {
        let refused = scratch.run(&format!("as ior -w -t 4k -b 16k -o mine{rest}"));
        assert_ne!(refused.code, Some(0), "{}", refused.stdout);
        assert!(refused.stderr.contains("strata as --destroy-data ior"), "{}", refused.stderr);
        assert_eq!(fs::read_to_string(scratch.join("mine")).unwrap(), "precious");
    }
    good(&scratch.run("as --destroy-data ior -w -k -t 4k -b 16k -o mine"));
    assert_eq!(fs::metadata(scratch.join("mine")).unwrap().len(), 16 << 10);
    // What was written over is strata's from then on; with -E it keeps its length.
    good(&scratch.run("as ior -w -k -E -t 4k -b 8k -o mine"));
    assert_eq!(fs::metadata(scratch.join("mine")).unwrap().len(), 16 << 10);
    good(&scratch.run("as ior -w -k -t 4k -b 8k -o mine"));
    assert_eq!(fs::metadata(scratch.join("mine")).unwrap().len(), 8 << 10);
}

#[test]
fn ranks_of_an_mpi_job_are_refused_and_a_dry_run_touches_nothing() {
    let scratch = Scratch::new();
    let ended = scratch.start_in("as ior -w -o f", &[("OMPI_COMM_WORLD_SIZE", "4".to_owned())]).end();
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("give -N 4"), "{}", ended.stderr);
    let ended = scratch.run("as ior -w --dryRun -o f");
    good(&ended);
    assert!(ended.stdout.contains("dryRun              : 1"), "{}", ended.stdout);
    let ended = scratch.run("as ior -a DUMMY -N 2 -w -r -t 1m -b 8m -o f");
    good(&ended);
    assert_eq!(rows(&ended.stdout).len(), 2, "{}", ended.stdout);
    assert_eq!(scratch.names(), [""; 0]);
    let missing = scratch.run("as ior -r -o f -O summaryFormat=JSON");
    assert_eq!(missing.code, Some(1));
    assert!(serde_json::from_str::<Value>(&missing.stdout).is_ok(), "{}", missing.stdout);
}
