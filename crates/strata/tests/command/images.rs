//! Images of Ceph's block device, through the binary, on a cluster of one node.

use std::process::Command;

use serde_json::Value;
use testkit::CephNode;

use crate::support::{Ended, Scratch, read_record, skipped};

/// A cluster, and an image of it that goes at the end.
struct Bed {
    scratch: Scratch,
    node: &'static CephNode,
    image: String,
}

impl Bed {
    /// An image of 16 MiB. None where Ceph is not installed.
    fn new(test: &str) -> Option<Self> {
        let bed = Self::without_image(test)?;
        bed.rbd(&format!("create --size 16M {}", bed.image));
        Some(bed)
    }

    fn without_image(test: &str) -> Option<Self> {
        let node = testkit::ceph_node(env!("CARGO_TARGET_TMPDIR"))?;
        Some(Self { scratch: Scratch::new(), node, image: format!("strata/{test}-{}", std::process::id()) })
    }

    /// Runs the cluster's own tool; its output.
    fn rbd(&self, words: &str) -> String {
        let mut rbd = Command::new("rbd");
        rbd.arg("--conf").arg(&self.node.conf).args(words.split(' ')).current_dir(self.scratch.path());
        let ended = rbd.output().expect("rbd(8) comes with Ceph");
        assert!(ended.status.success(), "{words}: {}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8_lossy(&ended.stdout).into_owned()
    }

    fn target(&self) -> String {
        format!("rbd:{}:conf={}", self.image, self.node.conf.display())
    }

    fn run(&self, words: &str) -> Ended {
        self.scratch.run(&format!("media {} {words} --json record.json", self.target()))
    }

    fn measured(&self, words: &str) -> Value {
        let ended = self.run(words);
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        read_record(&self.scratch.join("record.json"))
    }

    /// Bytes of the image, as the cluster's own tool brings them.
    fn bytes(&self) -> Vec<u8> {
        let copy = self.scratch.join("copy");
        let _ = std::fs::remove_file(&copy);
        self.rbd(&format!("export --no-progress {} copy", self.image));
        std::fs::read(copy).unwrap()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.rbd(&format!("rm --no-progress {}", self.image));
        }
    }
}

fn operations(phase: &Value) -> u64 {
    phase["summary"]["total"]["operations"].as_u64().unwrap()
}

fn doubts(record: &Value) -> Vec<String> {
    let phases = record["phases"].as_array().unwrap();
    let doubts = phases.iter().flat_map(|phase| phase["doubts"].as_array().unwrap());
    doubts.map(|doubt| doubt["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_image_is_written_by_threads_verified_and_read_by_others() {
    let Some(bed) = Bed::new("written") else { return };
    // Nothing of it has objects yet: reads reach no disk, and that is told.
    let record = bed.measured("--op read -b 64k");
    assert!(doubts(&record).iter().any(|kind| kind == "unwritten_range"), "{:?}", doubts(&record));
    assert_eq!(record["phases"][0]["plan"]["engine"], "rbd");

    let record = bed.measured("--op write -b 64k --threads 2 -q 4 --end-fsync --verify");
    let phases = record["phases"].as_array().unwrap();
    // Beside the writes a sync of each thread.
    assert_eq!((operations(&phases[0]), operations(&phases[1])), (256 + 2, 256));
    assert_eq!(phases[1]["summary"]["total"]["errors"], 0);
    let raised = doubts(&record);
    assert!(!raised.iter().any(|kind| kind == "buffered_writes"), "no page cache is on the way: {raised:?}");
    let notes = record["phases"][0]["notes"].to_string();
    assert!(notes.contains("librbd") && notes.contains("cache"), "{notes}");
    let written = bed.bytes();
    assert_eq!(written.len(), 16 << 20);
    assert!(written.chunks(64 << 10).all(|block| block.iter().any(|byte| *byte != 0)));
    // Another process, past the library's cache; and what another program changed is found.
    let record = bed.measured("--op read -b 64k --verify --direct");
    assert!(!doubts(&record).iter().any(|kind| kind == "unwritten_range"), "{:?}", doubts(&record));
    bed.rbd(&format!("bench --io-type write --io-size 64K --io-total 64K --io-pattern seq {}", bed.image));
    let ended = bed.run("--op read -b 64k --verify --direct");
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let record = read_record(&bed.scratch.join("record.json"));
    assert_eq!(record["phases"][0]["summary"]["total"]["errors"], 1);
}

#[test]
fn discards_that_the_library_skips_are_told() {
    let Some(bed) = Bed::new("discarded") else { return };
    bed.measured("--op write -b 1m");
    let record = bed.measured("--op randdiscard -b 4k --count 16 --destroy-data");
    assert!(record["phases"][0].to_string().contains("16 discards as done without executing them"));
    assert!(bed.bytes().chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)));
    bed.measured("--op discard -b 4m");
    assert!(bed.bytes().iter().all(|byte| *byte == 0));
}

#[test]
fn images_of_others_are_not_written() {
    let Some(bed) = Bed::without_image("theirs") else { return };
    let (file, path) = (bed.scratch.join("ext4"), bed.scratch.join("ext4").display().to_string());
    std::fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
    if crate::support::tool(&["mkfs.ext4", "-q", "-F", &path]).is_none() {
        skipped("images_of_others_are_not_written", "there is no mkfs.ext4");
        std::mem::forget(bed);
        return;
    }
    bed.rbd(&format!("import --no-progress ext4 {}", bed.image));
    let before = bed.bytes();
    for job in ["--op write -b 1m", "--op randwrite -b 4k --count 4", "--op discard -b 4m"] {
        let ended = bed.run(job);
        assert_eq!(ended.code, Some(2), "{job}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("file system") && ended.stderr.contains("--destroy-data"),
            "{}",
            ended.stderr
        );
    }
    bed.measured("--op read -b 1m");
    assert!(bed.bytes() == before);

    // What another client writes to is in use.
    bed.measured("--op write -b 1m --content zero --destroy-data");
    let mut writer =
        bed.scratch.start(&format!("media {} --op write -b 4k --time 60s --live-csv -", bed.target()));
    writer.await_row("write");
    let ended = bed.run("--op randwrite -b 4k --count 4");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("is open for writing by other clients (127.0.0.1"), "{}", ended.stderr);
    bed.measured("--op read -b 1m");
    writer.signal(rustix::process::Signal::INT);
    assert_eq!(writer.end().code, Some(1));
}

#[test]
fn what_is_wrong_with_an_image_is_told_in_one_line() {
    let Some(bed) = Bed::new("refused") else { return };
    let conf = bed.node.conf.display().to_string();
    let cases = [
        (format!("rbd:strata/absent:conf={conf} --op read"), 2, "image does not exist"),
        (format!("rbd:absent/image:conf={conf} --op read"), 1, "pool absent does not exist"),
        ("rbd:strata --op read".to_owned(), 2, "use rbd:POOL"),
        (format!("rbd:strata/image:config={conf} --op read"), 2, "use rbd:POOL"),
        ("rbd:strata/image:conf=/nowhere.conf --op read".to_owned(), 1, "/nowhere.conf"),
        (format!("{} --op read --engine psync", bed.target()), 2, "leave out --engine"),
        (format!("{} --op read --size 32m", bed.target()), 2, "use 16MiB or less"),
        (format!("{} null: --op read", bed.target()), 2, "cannot be combined"),
        (format!("rbd:{}@none:conf={conf} --op read", bed.image), 2, "the snapshot does not"),
        ("f --op read --size 1m --engine rbd".to_owned(), 2, "give rbd:POOL/IMAGE"),
    ];
    for (words, code, said) in cases {
        let ended = bed.scratch.run(&format!("media {words}"));
        assert_eq!(ended.code, Some(code), "{words}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(said) && ended.stderr.lines().count() == 1,
            "{words}: {}",
            ended.stderr
        );
    }
    let words = format!("media {} --op read", bed.target());
    let without = bed.scratch.start_in(&words, &[("STRATA_LIBRBD", "/nowhere/librbd.so.1".to_owned())]).end();
    assert!(without.code == Some(1) && without.stderr.contains("install librbd1"), "{without:?}");
}

#[test]
fn jobs_of_fio_on_images_run_and_real_fio_reads_them() {
    let Some(bed) = Bed::new("fio") else { return };
    let image = bed.image.strip_prefix("strata/").unwrap();
    let conf = bed.node.conf.display();
    let job = |more: &str| {
        format!(
            "--name=x --ioengine=rbd --pool=strata --rbdname={image} --clientname=admin --output-format=json {more}"
        )
    };
    let ended = bed.scratch.run(&format!(
        "as fio {} --conf={conf}",
        job("--rw=write --bs=64k --iodepth=8 --direct=1 --numjobs=2 --group_reporting")
    ));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["jobs"][0]["write"]["total_ios"], 512, "two clones, each all of the image, as with fio");
    for (words, said) in [
        ("--pool= --rw=read", "pool"),
        ("--nrfiles=2 --rw=read", "nrfiles"),
        ("--rbdname=absent --rw=read", "image does not exist"),
        ("--busy_poll=1 --rw=read", "busy_poll"),
    ] {
        let ended = bed.scratch.run(&format!("as fio {} --conf={conf}", job(words)));
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{words}: {}", ended.stderr);
    }
    let Some(engines) = crate::support::tool(&["fio", "--enghelp"]).filter(|text| text.contains("rbd"))
    else {
        return skipped("jobs_of_fio_on_images", "there is no fio with the engine rbd");
    };
    assert!(!engines.is_empty());
    let mut fio = Command::new("fio");
    fio.args(job("--rw=read --bs=64k --iodepth=8").split(' ')).env("CEPH_CONF", &bed.node.conf);
    let ended = fio.current_dir(bed.scratch.path()).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{text}{}", String::from_utf8_lossy(&ended.stderr));
    let read: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let ours = bed.scratch.run(&format!("as fio {} --conf={conf}", job("--rw=read --bs=64k --iodepth=8")));
    let ours: Value = serde_json::from_str(&ours.stdout).unwrap();
    assert_eq!(read["jobs"][0]["read"]["total_ios"], ours["jobs"][0]["read"]["total_ios"]);
    assert_eq!(ours["jobs"][0]["read"]["total_ios"], 256);
}
