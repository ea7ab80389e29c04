//! fio's engines on objects: `ioengine=http` against an S3 server in this process, `ioengine=rados` against a Ceph cluster of one node.

use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::Value;
use testkit::CephNode;
use testkit::s3::{S3Options, S3Server};

use crate::support::{Ended, Scratch};

fn server() -> S3Server {
    let server = S3Server::start(S3Options::default()).unwrap();
    server.store().create_bucket("b");
    server
}

/// The options of a job on the server.
fn of_server(server: &S3Server) -> String {
    let keys = S3Options::default();
    let host = server.endpoint();
    format!(
        "--ioengine=http --http_mode=s3 --http_host={} --http_s3_keyid={} --http_s3_key={}",
        host.strip_prefix("http://").unwrap(),
        keys.access,
        keys.secret
    )
}

fn fio(scratch: &Scratch, server: &S3Server, words: &str) -> Ended {
    scratch.run(&format!("as fio --output-format=json {} {words}", of_server(server)))
}

#[track_caller]
fn job(ended: &Ended) -> Value {
    let shown: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ended.stdout, ended.stderr));
    shown["jobs"][0].clone()
}

/// The only job of a run that went well.
#[track_caller]
fn good(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
    let job = job(ended);
    assert_eq!(job["error"], 0, "{}", ended.stderr);
    job
}

/// Operations and bytes of a direction.
fn done(job: &Value, direction: &str) -> (u64, u64) {
    let way = &job[direction];
    (way["total_ios"].as_u64().unwrap(), way["io_bytes"].as_u64().unwrap())
}

#[test]
fn each_block_is_an_object_under_fios_name_and_stays() {
    let (scratch, server) = (Scratch::new(), server());
    let words = "--name=w --filename=/b/dir/f --bs=4k --size=16k";
    let ended = scratch.run(&format!(
        "as --json record.json fio --output-format=json {} {words} --rw=write",
        of_server(&server)
    ));
    let job = good(&ended);
    assert_eq!(done(&job, "write"), (4, 16 << 10));
    assert!(
        job["write"]["bw_bytes"].as_u64().unwrap() > 0 && job["write"]["lat_ns"]["max"].as_u64().unwrap() > 0
    );
    let names = ["dir/f_0_4096", "dir/f_12288_4096", "dir/f_4096_4096", "dir/f_8192_4096"];
    assert_eq!(server.store().keys("b"), names);
    assert_eq!(server.store().data("b", names[0]).unwrap().len(), 4096);
    // The secret key stands nowhere.
    let record = std::fs::read_to_string(scratch.join("record.json")).unwrap();
    let secret = S3Options::default().secret;
    assert!(![record.as_str(), &ended.stdout, &ended.stderr].iter().any(|text| text.contains(&secret)));
    assert!(ended.stdout.contains("\"http_s3_key\" : \"***\""), "{}", ended.stdout);
    // A later job finds what lies there, whoever wrote it, in any order.
    assert_eq!(
        done(&good(&fio(&scratch, &server, &format!("{words} --rw=randread"))), "read"),
        (4, 16 << 10)
    );
    let part = format!("{words} --rw=read --offset=8k --size=8k");
    assert_eq!(done(&good(&fio(&scratch, &server, &part)), "read"), (2, 8 << 10));
    // What is not there is no success.
    let ended = fio(&scratch, &server, "--name=r --filename=/b/dir/f --bs=8k --size=16k --rw=read");
    assert_eq!((ended.code, &job_error(&ended)), (Some(1), &Value::from(2)), "{}", ended.stderr);
    assert_eq!(server.store().keys("b"), names, "a job that reads makes nothing");
}

fn job_error(ended: &Ended) -> Value {
    job(ended)["error"].clone()
}

#[test]
fn a_job_that_verifies_reads_back_and_a_trim_removes() {
    let (scratch, server) = (Scratch::new(), server());
    let text = "[global]\nfilename=/b/k/e.y\ngroup_reporting\nbs=4k\nsize=64k\nio_size=4k\n\
                [create]\nrw=write\nverify=sha256\n[trim]\nstonewall\nrw=trim\n";
    std::fs::write(scratch.join("a.fio"), text).unwrap();
    let ended = fio(&scratch, &server, "a.fio");
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    let ways = |at: usize| ["read", "write", "trim"].map(|way| done(&shown["jobs"][at], way));
    assert_eq!(ways(0), [(1, 4096), (1, 4096), (0, 0)]);
    assert_eq!(ways(1), [(0, 0), (0, 0), (1, 4096)]);
    assert!(server.store().keys("b").is_empty());
    // What others have put in place of a block is no block of the job.
    let words = "--name=v --filename=/b/v --bs=4k --size=16k --verify=crc32c";
    good(&fio(&scratch, &server, &format!("{words} --rw=write --do_verify=0")));
    assert_eq!(done(&good(&fio(&scratch, &server, &format!("{words} --rw=read"))), "read").0, 4);
    for at in [0, 8192] {
        assert!(server.store().insert("b", &format!("v_{at}_4096"), vec![7; 4096]));
    }
    let ended = fio(&scratch, &server, &format!("{words} --rw=read"));
    assert_eq!((ended.code, &job_error(&ended)), (Some(1), &Value::from(84)), "{}", ended.stderr);
}

#[test]
fn objects_of_others_are_neither_written_over_nor_removed() {
    let (scratch, server) = (Scratch::new(), server());
    assert!(server.store().insert("b", "f_4096_4096", b"theirs".to_vec()));
    let words = "--name=x --filename=/b/f --bs=4k --size=16k";
    for rw in ["write", "trim", "randrw"] {
        let ended = fio(&scratch, &server, &format!("{words} --rw={rw}"));
        assert_ne!(ended.code, Some(0), "{rw}");
        for word in ["f_4096_4096", "strata as --destroy-data fio"] {
            assert!(ended.stderr.contains(word), "{rw}: {word}: {}", ended.stderr);
        }
        assert_eq!(server.store().data("b", "f_4096_4096").unwrap(), b"theirs");
        assert_eq!(server.store().keys("b").len(), 1, "{rw}: nothing was made");
    }
    let options = of_server(&server);
    let allowed = |rw: &str| {
        let words = format!("as --destroy-data fio --output-format=json {options} {words} --rw={rw}");
        good(&scratch.run(&words))
    };
    assert_eq!(done(&allowed("write"), "write").0, 4);
    assert_eq!(server.store().data("b", "f_4096_4096").unwrap().len(), 4096);
    assert_eq!(done(&allowed("trim"), "trim"), (4, 16 << 10));
    assert!(server.store().keys("b").is_empty());
    // What the run made goes with unlink=1.
    good(&fio(&scratch, &server, &format!("{words} --rw=write --unlink=1")));
    assert!(server.store().keys("b").is_empty());
}

#[test]
fn mixes_clones_and_loops_count_as_those_of_files() {
    let (scratch, server) = (Scratch::new(), server());
    let mixed = "--name=m --filename=/b/m --bs=4k --size=64k --rw=randrw --rwmixread=75 --loops=4";
    let job = good(&fio(&scratch, &server, mixed));
    assert_eq!((done(&job, "read").0, done(&job, "write").0), (48, 16), "without what was written before");
    let clones = "--name=c --filename=/b/c --bs=4k --size=16k --rw=write --numjobs=3 --group_reporting";
    assert_eq!(done(&good(&fio(&scratch, &server, clones)), "write"), (12, 48 << 10));
    assert_eq!(server.store().keys("b").iter().filter(|key| key.starts_with("c_")).count(), 4);
    // Clones without a file name have names of their own, each in a phase of its own.
    let own = "--name=own --directory=/b --bs=4k --size=8k --rw=write --numjobs=2 --group_reporting";
    assert_eq!(done(&good(&fio(&scratch, &server, own)), "write"), (4, 16 << 10));
    let keys = server.store().keys("b");
    for key in ["own.0.0_0_4096", "own.1.0_4096_4096"] {
        assert!(keys.iter().any(|other| other == key), "{key}: {keys:?}");
    }
    let apart = "--name=i --filename=/b/i --bs=4k --size=8k --rw=write --numjobs=2 --offset_increment=8k";
    let ended = fio(&scratch, &server, apart);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(server.store().keys("b").iter().filter(|key| key.starts_with("i_")).count(), 4);
    // What runs at the same time makes nothing that it reads, either.
    let beside = fio(&scratch, &server, "--name=r --filename=/b/c --bs=4k --size=16k --rw=read --numjobs=2");
    assert_eq!(done(&good(&beside), "read").0, 4);
    let timed = "--name=t --filename=/b/m --bs=4k --size=64k --rw=randread --time_based --runtime=300ms";
    let job = good(&fio(&scratch, &server, timed));
    assert!(done(&job, "read").0 > 0 && job["read"]["runtime"].as_u64().unwrap() >= 290, "{job}");
}

#[test]
fn one_object_is_read_by_ranges() {
    let (scratch, server) = (Scratch::new(), server());
    let mut data: Vec<u8> = (0..64 << 10).map(|at: u32| (at / 4096) as u8).collect();
    assert!(server.store().insert("b", "dir/one", data.clone()));
    let words = "--name=r --filename=/b/dir/one --http_object_mode=range --size=64k";
    let job = good(&fio(&scratch, &server, &format!("{words} --bs=4k --rw=randread")));
    assert_eq!(done(&job, "read"), (16, 64 << 10));
    data.truncate(60 << 10);
    assert!(server.store().insert("b", "dir/one", data));
    assert_eq!(fio(&scratch, &server, &format!("{words} --bs=4k --rw=read")).code, Some(1), "it has no end");
    // A block that is the whole object is put and removed as such.
    let other = "--name=w --filename=/b/whole --http_object_mode=range --size=64k --bs=64k";
    good(&fio(&scratch, &server, &format!("{other} --rw=write")));
    assert_eq!(server.store().data("b", "whole").unwrap().len(), 64 << 10);
    let ended = fio(&scratch, &server, &format!("{words} --bs=4k --rw=write"));
    assert!(ended.code == Some(2) && ended.stderr.contains("bs=65536"), "{}", ended.stderr);
}

#[test]
fn files_and_objects_share_a_job_file_but_no_moment() {
    let (scratch, server) = (Scratch::new(), server());
    let text = "[global]\nbs=4k\nsize=16k\nrw=write\n[file]\nioengine=psync\nfilename=f\n\
                [objects]\nSTONEWALL\nioengine=http\nhttp_mode=s3\nhttp_host=HOST\nhttp_s3_keyid=KEYID\nhttp_s3_key=KEY\nfilename=/b/f\n";
    let keys = S3Options::default();
    let text = text
        .replace("HOST", server.endpoint().strip_prefix("http://").unwrap())
        .replace("KEYID", &keys.access)
        .replace("KEY", &keys.secret);
    std::fs::write(scratch.join("a.fio"), text.replace("STONEWALL", "stonewall")).unwrap();
    let ended = scratch.run("as fio --output-format=json a.fio");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!([0, 1].map(|at| done(&shown["jobs"][at], "write").0), [4, 4]);
    assert_eq!((server.store().keys("b").len(), scratch.join("f").exists()), (4, true));
    std::fs::write(scratch.join("a.fio"), text.replace("STONEWALL\n", "")).unwrap();
    let ended = scratch.run("as fio a.fio");
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("ioengine: http is not supported beside job file")
            && ended.stderr.contains("stonewall")
    );
}

#[test]
fn what_cannot_be_done_on_objects_is_refused_by_name() {
    let scratch = Scratch::new();
    let http =
        "--ioengine=http --http_mode=s3 --http_host=h:1 --http_s3_keyid=a --http_s3_key=b --filename=/b/f";
    let of_http = [
        ("--http_mode=webdav", "http_mode: webdav is not supported; alternative: s3"),
        ("--http_mode=swift", "http_mode: swift is not supported"),
        ("--https=insecure", "AWS_CA_BUNDLE"),
        ("--http_user=u", "http_user: is not supported with http_mode=s3"),
        ("--http_s3_sse_customer_key=k", "http_s3_sse_customer_key: is not supported: "),
        ("--http_s3_security_token=t", "http_s3_security_token: is not supported: "),
        ("--http_s3_storage_class=GLACIER", "http_s3_storage_class: is not supported: "),
        ("--http_verbose=1", "http_verbose: is not supported: "),
        ("--filename=f", "filename: f: must begin with / for ioengine=http"),
        ("--filename=/f", "filename: /f names no bucket: use /BUCKET/OBJECT"),
        ("--filename=/b/f:/b/g", "nrfiles: several files are not supported with ioengine=http"),
        ("--offset=1k", "offset: 1024 is not a multiple of the block size"),
        ("--bsrange=4k-8k", "bsrange: several sizes are not supported"),
        ("--rw=trimwrite", "rw: trims and writes"),
        ("--rw=read:8k", "rw: a number after the colon is not supported"),
        ("--fsync=1", "fsync: is not supported with ioengine=http: it applies only to files"),
        ("--pool=p", "pool: is not supported with ioengine=http"),
        ("--write_lat_log=x", "write_lat_log: a log of single operations is not supported"),
        ("--rw=trim --numjobs=2 --group_reporting", "numjobs: clones that trim the same objects"),
        ("--rw=write --verify=crc32c --numjobs=2", "verify: clones that write the same objects"),
        ("--rw=write --verify=crc32c --runtime=1", "verify: with objects, the job reads back"),
        ("--size=50%", "objects have no size"),
    ];
    for (more, why) in of_http {
        let ended = scratch.run(&format!("as fio --name=x {http} --bs=4k --size=16k {more}"));
        assert_eq!(ended.code, Some(2), "{more}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{more}: {}", ended.stderr);
    }
    for (words, why) in [
        ("--ioengine=http --filename=/b/f --size=16k", "http_mode: defaults to webdav"),
        ("--ioengine=rados --size=16k", "pool: engine rados requires it"),
        ("--ioengine=rados --pool=p --size=16k --clustername=other", "clustername: is not supported: "),
        ("--ioengine=rados --pool=p --size=16k --busy_poll=1", "busy_poll: is not supported: "),
        (
            "--ioengine=psync --filename=f --size=16k --http_host=h",
            "http_host: is not supported: it is an option of engine http",
        ),
        ("--ioengine=rbd --size=16k", "pool: engine rbd requires it"),
    ] {
        let ended = scratch.run(&format!("as fio --name=x {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{words}: {}", ended.stderr);
    }
}

/// The node, and the options of a job in its pool.
fn node() -> Option<(&'static CephNode, String)> {
    let node = testkit::ceph_node(env!("CARGO_TARGET_TMPDIR"))?;
    Some((node, format!("--ioengine=rados --pool=strata --conf={}", node.conf.display())))
}

/// Ceph's own client on the pool.
fn rados(node: &CephNode, words: &[&str]) -> Output {
    Command::new("rados").arg("--conf").arg(&node.conf).args(["-p", "strata"]).args(words).output().unwrap()
}

fn size_of(node: &CephNode, object: &str) -> Option<u64> {
    let output = rados(node, &["stat", object]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().rsplit_once("size ").map(|(_, size)| size.parse().unwrap())
}

fn data_of(node: &CephNode, scratch: &Scratch, object: &str) -> Vec<u8> {
    let path = scratch.join("got");
    let output = rados(node, &["get", object, path.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    std::fs::read(path).unwrap()
}

#[test]
fn files_are_objects_of_a_pool_under_fios_names() {
    let Some((node, options)) = node() else { return };
    let scratch = Scratch::new();
    let name = format!("files-{}", std::process::id());
    let run = |words: &str| scratch.run(&format!("as fio --output-format=json {options} {words}"));
    let words = format!("--name={name} --nr_files=2 --bs=4k --size=64k --iodepth=8");
    let job = good(&run(&format!("{words} --rw=randwrite --buffer_pattern=0x5a")));
    assert_eq!(done(&job, "write"), (16, 64 << 10));
    let objects = [0, 1].map(|file| format!("{name}.0.{file}"));
    for object in &objects {
        assert_eq!(data_of(node, &scratch, object), vec![0x5a; 32 << 10]);
    }
    // They stay, and a later job of the same user may read and write them.
    assert_eq!(done(&good(&run(&format!("{words} --rw=randread"))), "read"), (16, 64 << 10));
    let verified = format!("{words} --rw=write --verify=crc32c");
    assert_eq!(done(&good(&run(&verified)), "read").0, 16);
    let mixed = good(&run(&format!("{words} --rw=randrw --rwmixread=50")));
    assert_eq!((done(&mixed, "read").0, done(&mixed, "write").0), (8, 8));
    // A trim leaves zeros.
    let part = format!("--name=t --filename={} --bs=4k --size=8k --offset=4k", objects[0]);
    assert_eq!(done(&good(&run(&format!("{part} --rw=trim"))), "trim"), (2, 8 << 10));
    let data = data_of(node, &scratch, &objects[0]);
    assert!(data[4096..12288].iter().all(|&byte| byte == 0) && data[..4096].iter().any(|&byte| byte != 0));
    // What is not there is no success, and is not made.
    let ended = run(&format!("--name=r --filename={name}-missing --bs=4k --size=8k --rw=read"));
    assert_eq!((ended.code, &job_error(&ended)), (Some(1), &Value::from(2)), "{}", ended.stderr);
    assert_eq!(size_of(node, &format!("{name}-missing")), None);
    for object in &objects {
        assert!(rados(node, &["rm", object]).status.success());
    }
}

/// Objects that strata wrote are read and checked by fio itself, and the other way round.
#[test]
fn fio_and_strata_read_each_others_objects_of_a_pool() {
    let Some((node, options)) = node() else { return };
    let engines =
        Command::new("fio").arg("--enghelp").output().map(|output| output.stdout).unwrap_or_default();
    if !String::from_utf8_lossy(&engines).contains("rados") {
        println!("skipped: fio: it is not installed, or without its engine rados");
        return;
    }
    let scratch = Scratch::new();
    let (ours, theirs) = (format!("ours-{}", std::process::id()), format!("theirs-{}", std::process::id()));
    let words = |name: &str| format!("--name=x --filename={name} --bs=4k --size=64k {options}");
    let real = |words: &str| {
        let output = Command::new("fio").args(words.split(' ')).current_dir(scratch.path()).output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
    };
    let content = "--buffer_pattern=0x1122334455667788";
    good(&scratch.run(&format!("as fio --output-format=json {} --rw=write {content}", words(&ours))));
    let check = "--rw=read --touch_objects=0 --verify=pattern --verify_pattern=0x1122334455667788";
    real(&format!("{} {check}", words(&ours)));
    real(&format!("{} --rw=write {content}", words(&theirs)));
    // fio of some versions takes its objects away when it ends.
    if size_of(node, &theirs).is_some() {
        let read = scratch.run(&format!("as fio --output-format=json {} --rw=read", words(&theirs)));
        assert_eq!(done(&good(&read), "read"), (16, 64 << 10));
    }
    for object in [ours, theirs] {
        rados(node, &["rm", &object]);
    }
}

#[test]
fn objects_of_others_in_a_pool_stay() {
    let Some((node, options)) = node() else { return };
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let name = format!("strangers-{}", std::process::id());
    assert!(rados(node, &["create", &name]).status.success());
    let words = format!("--output-format=json {options} --name=x --bs=4k --size=16k");
    for rw in ["write", "trim", "randrw"] {
        // The object before it is not made either.
        let ended = scratch.run(&format!("as fio {words} --filename={name}-new:{name} --rw={rw}"));
        assert_ne!(ended.code, Some(0), "{rw}");
        assert!(ended.stderr.contains("strata as --destroy-data fio") && ended.stderr.contains(&name));
        assert_eq!((size_of(node, &name), size_of(node, &format!("{name}-new"))), (Some(0), None));
    }
    good(&scratch.run(&format!("as --destroy-data fio {words} --filename={name} --rw=write --unlink=1")));
    assert_eq!(size_of(node, &name), Some(16 << 10), "the run did not make it");
    assert!(rados(node, &["rm", &name]).status.success());
    good(&scratch.run(&format!("as fio {words} --filename={name} --rw=write --unlink=1")));
    assert_eq!(size_of(node, &name), None, "the run made it");
    // Kept by one user, it is another's to read alone.
    good(&scratch.run(&format!("as fio {words} --filename={name} --rw=write")));
    let ended = other.run(&format!("as fio {words} --filename={name} --rw=write"));
    assert!(ended.code != Some(0) && ended.stderr.contains(&name), "{}", ended.stderr);
    good(&other.run(&format!("as fio {words} --filename={name} --rw=read")));
    assert!(rados(node, &["rm", &name]).status.success());
}

#[test]
fn a_killed_run_leaves_a_manifest_of_its_objects() {
    let Some((node, options)) = node() else { return };
    let scratch = Scratch::new();
    let name = format!("killed-{}", std::process::id());
    let words = format!(
        "--name=x --filename={name} --bs=4k --size=16k --rw=write --time_based --runtime=100 --unlink=1"
    );
    let running = scratch.start(&format!("as fio {options} {words}"));
    while size_of(node, &name).is_none_or(|size| size == 0) {
        std::thread::yield_now();
    }
    running.signal(Signal::KILL);
    running.end();
    let ended = scratch.run("clean");
    assert!(ended.stdout.contains("1 of 1 named objects"), "{} {}", ended.stdout, ended.stderr);
    assert!(size_of(node, &name).is_some());
    let ended = scratch.run("clean --yes");
    assert_eq!((ended.code, size_of(node, &name)), (Some(0), None), "{} {}", ended.stdout, ended.stderr);
}
