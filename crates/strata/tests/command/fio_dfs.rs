//! `ioengine=dfs` of fio on files over objects: in a pool of this process, behind an engine, and by libdfs where it is missing.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::engines::Engine;
use crate::support::{Ended, Scratch, read_record, skipped};

/// fio's own example of its engine, with less to do.
const EXAMPLE: &str = "[global]
ioengine=dfs
pool=${POOL}
cont=${CONT}
filename_format=fio-test.$jobnum
cpus_allowed_policy=split
group_reporting=1
time_based=0
percentile_list=99.0:99.9:99.99:99.999:99.9999:100
disable_slat=1
disable_clat=1
bs=64K
size=1M
iodepth=16
numjobs=4
[daos-seqwrite]
rw=write
stonewall
[daos-seqread]
rw=read
stonewall
[daos-randwrite]
rw=randwrite
stonewall
[daos-randread]
rw=randread
stonewall
";

fn pool(scratch: &Scratch) {
    let ended = scratch.run("pool create vos:pool --scm 64m --nvme 128m");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

fn fio(scratch: &Scratch, words: &str) -> Ended {
    scratch.run(&format!("as --json record.json fio --output-format=json --ioengine=dfs {words}"))
}

#[track_caller]
fn jobs(ended: &Ended) -> Vec<Value> {
    let shown: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ended.stdout, ended.stderr));
    shown["jobs"].as_array().unwrap().clone()
}

/// Operations and bytes of reads and writes of a run of one job that went well.
#[track_caller]
fn done(ended: &Ended) -> [(u64, u64); 2] {
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
    let jobs = jobs(ended);
    assert_eq!((jobs.len(), &jobs[0]["error"]), (1, &Value::from(0)), "{}", ended.stderr);
    moved(&jobs[0])
}

fn moved(job: &Value) -> [(u64, u64); 2] {
    ["read", "write"].map(|way| {
        let figure = |name: &str| job[way][name].as_u64().unwrap();
        (figure("total_ios"), figure("io_bytes"))
    })
}

/// The example runs, and its phases are those of the file-system layer's driver.
#[track_caller]
fn check_example(scratch: &Scratch, target: &str, variables: &[(&str, &str)]) {
    fs::write(scratch.join("dfs.fio"), EXAMPLE).unwrap();
    let variables: Vec<_> = variables.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
    let words = "as --json record.json fio --output-format=json dfs.fio";
    let ended = scratch.start_in(words, &variables).end();
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
    let jobs = jobs(&ended);
    let all = (64, 4 << 20);
    let found: Vec<_> = jobs.iter().map(moved).collect();
    assert_eq!(found, [[(0, 0), all], [all, (0, 0)], [(0, 0), all], [all, (0, 0)]], "{}", ended.stdout);
    assert!(jobs.iter().all(|job| job["error"] == 0), "{}", ended.stdout);
    assert!(jobs[0]["write"]["lat_ns"]["mean"].as_f64().unwrap() > 0.0);
    assert!(ended.stdout.contains("iodepth=16 is 1 with ioengine=dfs"), "{}", ended.stdout);
    let record = read_record(&scratch.join("record.json"));
    let phases = record["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 16, "each clone has its phase, and nothing is laid out");
    for phase in phases {
        let plan = &phase["plan"];
        assert_eq!((&plan["engine"], &plan["targets"][0]), (&"dfs".into(), &target.into()), "{plan}");
    }
}

#[test]
fn fios_own_example_runs_in_a_pool_and_behind_an_engine() {
    let scratch = Scratch::new();
    pool(&scratch);
    check_example(&scratch, "dfs+vos:pool", &[("POOL", "vos:pool"), ("CONT", "dfs")]);
    let words = "--no-attach-info --interface lo --pool tank --dir served --scm 64m --nvme 128m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let address = engine.uri().strip_prefix("tcp://").unwrap().to_owned();
    let target = format!("dfs+engine://{address}/tank/home");
    let pool = format!("engine://{address}/tank");
    check_example(&scratch, &target, &[("POOL", pool.as_str()), ("CONT", "home")]);
    let words = format!("--name=x --pool=engine://{address}/tank --cont=home --filename=fio-test.3");
    // A later run finds the file that stayed.
    let ended = fio(&scratch, &format!("{words} --rw=randread --bs=64k --size=1m"));
    assert_eq!(done(&ended), [(16, 1 << 20), (0, 0)]);
}

/// On the libdfs of the tests of files over objects, which keeps containers as directories: no DAOS system is needed.
#[test]
fn fios_own_example_runs_through_libdfs() {
    // On a disk, which has extended attributes.
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let library = root.path().join("libdfs.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../dfs/tests/files/dfs.c");
    let compiled =
        Command::new("cc").args(["-O1", "-pthread", "-shared", "-fPIC", source, "-o"]).arg(&library).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return skipped("fio_dfs", "it needs a C compiler");
    }
    let scratch = Scratch::new();
    let (library, root) = (library.display().to_string(), root.path().display().to_string());
    let fake = [("STRATA_LIBDFS", library.as_str()), ("FAKE_DFS_ROOT", root.as_str())];
    let variables = [fake[0], fake[1], ("POOL", "tank"), ("CONT", "home")];
    check_example(&scratch, "dfs+daos://tank/home", &variables);
}

#[test]
fn amounts_times_and_syncs_are_as_asked_for() {
    let scratch = Scratch::new();
    pool(&scratch);
    let run = |words: &str| fio(&scratch, &format!("--name=x --pool vos:pool --cont dfs --bs=16k {words}"));
    let ended = run("--size=260k --rw=write --fsync=4 --end_fsync=1 --direct=1");
    assert_eq!(done(&ended), [(0, 0), (16, 256 << 10)]);
    assert_eq!(jobs(&ended)[0]["sync"]["total_ios"], 5, "{}", ended.stdout);
    assert_eq!(done(&run("--size=512k --rw=write"))[1].0, 32);
    for (words, reads) in [
        ("--size=256k --loops=3", 48),
        ("--size=256k --io_size=64k", 4),
        ("--size=256k --io_size=512k --norandommap", 32),
        ("--size=256k --number_ios=5", 5),
        ("--filesize=512k --size=128k", 8),
        ("--filesize=128k", 8),
    ] {
        assert_eq!(done(&run(&format!("{words} --rw=randread")))[0].0, reads, "{words}");
    }
    let ended = run("--size=64k --rw=read --runtime=1 --time_based");
    assert!(done(&ended)[0].0 > 8, "more than two passes: {}", ended.stdout);
    let runtime_ms = jobs(&ended)[0]["read"]["runtime"].as_u64().unwrap();
    assert!((900..5000).contains(&runtime_ms), "{runtime_ms}");
    // What is not there is not made by a job that reads.
    let ended = run("--size=64k --rw=read --filename=absent");
    assert_eq!((ended.code, &jobs(&ended)[0]["error"]), (Some(1), &Value::from(2)), "{}", ended.stderr);
    // Two jobs at the same time, one that reads and one that writes, and the other formats.
    let words = "--size=64k --bs=16k --ioengine=dfs --pool=vos:pool --name=r --rw=read --filename=x.0.0 --name=w --rw=write";
    let ended = scratch.run(&format!("as fio {words} --output-format=terse"));
    let counts: Vec<_> = ended.stdout.lines().map(|line| line.split(';').count()).collect();
    assert_eq!((ended.code, counts.len()), (Some(0), 2), "{} {}", ended.stdout, ended.stderr);
    let ended = scratch.run(&format!("as fio {words}"));
    assert!(
        ended.stdout.contains("  write: IOPS=") && ended.stdout.contains("   READ: bw="),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_job_that_verifies_reads_back_and_finds_what_others_wrote() {
    let scratch = Scratch::new();
    pool(&scratch);
    let run = |words: &str| fio(&scratch, &format!("--name=v --pool=vos:pool --bs=4k --size=64k {words}"));
    for way in ["write", "randwrite", "write --loops=2"] {
        let blocks = if way.contains("loops") { (32, 128 << 10) } else { (16, 64 << 10) };
        assert_eq!(done(&run(&format!("--rw={way} --verify=crc32c"))), [blocks, blocks], "{way}");
    }
    assert_eq!(done(&run("--rw=randread --verify=md5"))[0].0, 16);
    assert_eq!(done(&run("--rw=write --verify=md5 --do_verify=0")), [(0, 0), (16, 64 << 10)]);
    assert_eq!(done(&run("--rw=write --io_size=4k"))[1].0, 1, "a block without a mark");
    let ended = run("--rw=read --verify=crc32c");
    assert_eq!((ended.code, &jobs(&ended)[0]["error"]), (Some(1), &Value::from(84)), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_is_refused_by_name_before_anything_is_touched() {
    let scratch = Scratch::new();
    pool(&scratch);
    let words = "as fio --name=x --ioengine=dfs --pool=tank --cont=home --rw=write --size=64k";
    let ended = scratch.start_in(words, &[("STRATA_LIBDFS", "/nonexistent/libdfs.so".to_owned())]).end();
    assert!(ended.code != Some(0) && ended.stderr.contains("libdfs.so is missing"), "{}", ended.stderr);
    assert!(ended.stderr.contains("daos-client"), "{}", ended.stderr);
    for (words, expected) in [
        ("--rw=write --size=1m", "pool: engine dfs requires it"),
        ("--rw=write --size=1m --pool=tank", "cont: engine dfs requires it"),
        ("--rw=write --size=1m --pool=vos:pool --cont=home", "cont: home is not supported"),
        ("--rw=write --size=1m --pool=vos:nowhere", "strata pool create vos:nowhere"),
        ("--rw=write --size=1m --pool=engine://h:1 --cont=c", "pool: engine://h:1 names no pool"),
        ("--rw=write --pool=vos:pool", "size: "),
        ("--rw=write --size=1k --pool=vos:pool", "less than the block size"),
        ("--rw=randrw --size=1m --pool=vos:pool", "rw: reads and writes in one job"),
        ("--rw=trim --size=1m --pool=vos:pool", "rw: files over objects do not support trims"),
        ("--rw=write:4k --size=1m --pool=vos:pool", "rw: "),
        ("--rw=write --size=1m --pool=vos:pool --bsrange=4k-8k", "bsrange: "),
        ("--rw=write --size=1m --pool=vos:pool --nrfiles=2", "nrfiles: several files"),
        ("--rw=write --size=1m --pool=vos:pool --filename=a:b", "filename: several files"),
        ("--rw=write --size=1m --pool=vos:pool --filename=a/b", "filename: a/b"),
        ("--rw=write --size=1m --pool=vos:pool --directory=.", "directory: "),
        ("--rw=write --size=1m --pool=vos:pool --offset=4k", "offset: "),
        ("--rw=write --size=1m --pool=vos:pool --chunk_size=1m", "chunk_size: "),
        ("--rw=write --size=1m --pool=vos:pool --object_class=SX", "object_class: "),
        ("--rw=write --size=1m --pool=vos:pool --sync=1", "sync: "),
        ("--rw=randread --size=1m --pool=vos:pool --random_distribution=zipf", "random_distribution: "),
        ("--rw=write --size=1m --pool=vos:pool --verify=md5 --runtime=1", "verify: with ioengine=dfs"),
        (
            "--rw=write --size=1m --pool=vos:pool --verify=md5 --numjobs=2",
            "verify: a job that reads its data back",
        ),
        ("--rw=write --size=1m --pool=vos:pool --write_lat_log=l", "write_lat_log: "),
        (
            "--rw=write --size=1m --pool=vos:pool --name=y --size=1m --ioengine=psync",
            "ioengine: psync is not supported beside",
        ),
        ("--rw=write --size=1m --ioengine=psync --cont=c", "cont: is not supported"),
    ] {
        let ended = fio(&scratch, &format!("--name=x {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {} {}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
}
