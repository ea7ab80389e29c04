//! Loads that succeed: every operation on every engine, and what the record says of them.

use serde_json::{Value, json};

use crate::support::{Scratch, class, skipped, total};

const BLOCK_BYTES: u64 = 4096;

/// Engines for files, and what they do besides reading and writing.
const ENGINES: &[(&str, &[&str])] = &[
    ("psync", &["discard", "randdiscard", "nop"]),
    ("pvsync2", &["discard", "randdiscard", "nop"]),
    ("libaio", &[]),
    ("io_uring", &["discard", "randdiscard", "nop"]),
    ("mmap", &["discard", "randdiscard", "nop"]),
];

/// Whether the engine may be used here: containers often forbid io_uring.
pub(crate) fn is_available(scratch: &Scratch, engine: &str) -> bool {
    let ended = scratch.run(&format!("media probe --op read -b 4k -s 4k --engine {engine}"));
    if ended.code != Some(0) {
        skipped(engine, &ended.stderr);
    }
    ended.code == Some(0)
}

/// Engines for files that may be used here.
pub(crate) fn engines(
    scratch: &Scratch,
) -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    ENGINES.iter().filter(|(engine, _)| is_available(scratch, engine))
}

fn assert_counts(record: &Value, words: &str, operations: u64, bytes: u64) {
    assert_eq!(total(record, 0, "operations"), operations, "{words}");
    assert_eq!(total(record, 0, "bytes"), bytes, "{words}");
    assert_eq!(total(record, 0, "errors"), 0, "{words}");
    let of_workers = record["phases"][0]["samples"]["workers"].as_array().unwrap();
    let classes = of_workers.iter().flat_map(|worker| worker["classes"].as_array().unwrap());
    let latencies = classes.flat_map(|class| class["latency"]["buckets"].as_array().unwrap());
    assert_eq!(
        latencies.map(|bucket| bucket[1].as_u64().unwrap()).sum::<u64>(),
        operations,
        "{words}: latencies"
    );
}

#[test]
fn every_operation_on_every_engine() {
    let scratch = Scratch::new();
    let usual = ["read", "write", "randread", "randwrite", "readwrite", "randrw"];
    for (engine, more) in engines(&scratch) {
        for operation in usual.iter().chain(*more) {
            let words = format!("media file -s 1m -b 4k --count 64 --op {operation} --engine {engine}");
            let record = scratch.measured(&words);
            assert_counts(&record, &words, 64, if *operation == "nop" { 0 } else { 64 * BLOCK_BYTES });
            let plan = &record["phases"][0]["plan"];
            assert_eq!((&plan["engine"], &plan["name"]), (&json!(engine), &json!(operation)));
            if operation.ends_with("rw") || *operation == "readwrite" {
                assert_eq!(class(&record, 0, "read"), (32, 32 * BLOCK_BYTES));
                assert_eq!(class(&record, 0, "write"), (32, 32 * BLOCK_BYTES));
            }
            assert_eq!(scratch.names(), ["record.json"], "{words}: left something behind");
        }
    }
}

#[test]
fn past_the_page_cache_and_in_depth() {
    let scratch = Scratch::new();
    let alignment = scratch.measured("media file -s 4k -b 4k --op read");
    if alignment["phases"][0]["plan"]["targets"][0]["direct_alignment_bytes"] == 0 {
        return skipped("past_the_page_cache_and_in_depth", "the file system takes no direct I/O");
    }
    for (engine, depth) in [("psync", 1), ("pvsync2", 1), ("libaio", 8), ("io_uring", 8)] {
        if !is_available(&scratch, engine) {
            continue;
        }
        for operation in ["randread", "randwrite"] {
            let words =
                format!("media file -s 1m -b 4k -t 2 -q {depth} --direct --op {operation} --engine {engine}");
            let record = scratch.measured(&words);
            assert_counts(&record, &words, 256, 1 << 20);
            assert_eq!(record["phases"][0]["samples"]["workers"].as_array().unwrap().len(), 2);
        }
    }
}

#[test]
fn memory_and_nothing() {
    let scratch = Scratch::new();
    for operation in ["read", "randwrite", "readwrite", "nop"] {
        for target in ["null:", "mem:"] {
            let words = format!("media {target} --op {operation} -b 4k --count 1000");
            let record = scratch.measured(&words);
            assert_counts(&record, &words, 1000, if operation == "nop" { 0 } else { 1000 * BLOCK_BYTES });
        }
    }
    for operation in ["copy", "fill", "read"] {
        let words = format!("media mem: --op read -b 64k --count 100 --memory-operation {operation}");
        let (ended, record) = scratch.measure(&words);
        match ended.code {
            Some(0) => assert_counts(&record, &words, 100, 100 << 16),
            code => assert_eq!(code, Some(2), "{words}: {ended:?}"),
        }
    }
}

#[test]
fn mixes_are_exact() {
    let scratch = Scratch::new();
    let record = scratch.measured("media file -s 4m --op randrw -b 4k --mix 70 --count 1000");
    assert_eq!(class(&record, 0, "read"), (700, 700 * BLOCK_BYTES));
    assert_eq!(class(&record, 0, "write"), (300, 300 * BLOCK_BYTES));
    let record =
        scratch.measured("media file -s 4m --op randrw -b 4k --mix read=50,write=30,discard=20 --count 200");
    assert_eq!(class(&record, 0, "read"), (100, 100 * BLOCK_BYTES));
    assert_eq!(class(&record, 0, "write"), (60, 60 * BLOCK_BYTES));
    assert_eq!(class(&record, 0, "discard"), (40, 40 * BLOCK_BYTES));
    assert_eq!(total(&record, 0, "operations"), 200);
}

#[test]
fn limits_and_targets() {
    let scratch = Scratch::new();
    for (words, operations, bytes) in [
        // One pass, over all targets together, however many workers share it.
        ("media a b -s 1m --op write -b 4k -t 4", 512, 2 << 20),
        ("media a b -s 1m --op randread -b 64k -t 3", 32, 2 << 20),
        ("media a -s 1m --op read -b 4k --offset 512k", 256, 1 << 20),
        // Several limits: the first that is reached.
        ("media a -s 1m --op write -b 4k --bytes 100k", 25, 25 * BLOCK_BYTES),
        ("media a -s 1m --op write -b 4k --bytes 100k --count 7", 7, 7 * BLOCK_BYTES),
        ("media a -s 1m --op write -b 4k --count 7 --time 60s -t 2", 7, 7 * BLOCK_BYTES),
        // A count goes round and round.
        ("media a -s 64k --op randread -b 4k --count 100", 100, 100 * BLOCK_BYTES),
    ] {
        let record = scratch.measured(words);
        assert_counts(&record, words, operations, bytes);
    }
}

#[test]
fn block_sizes() {
    let scratch = Scratch::new();
    let record = scratch.measured("media file -s 8m --op write -b 4k:70,64k:30");
    assert_eq!(total(&record, 0, "bytes"), 8 << 20, "one pass covers the range whatever the sizes");
    let record = scratch.measured("media file -s 4m --op randwrite -b 4k:70,64k:30 --count 1000 --seed 3");
    let (operations, bytes) = class(&record, 0, "write");
    // Shares are drawn: 300 of 1000, give or take five standard deviations of 14.5.
    let large = (bytes - operations * BLOCK_BYTES) / (60 << 10);
    assert_eq!((bytes - operations * BLOCK_BYTES) % (60 << 10), 0);
    assert!((228..=372).contains(&large), "{large}");
}

#[test]
fn syncs_are_counted_apart() {
    let scratch = Scratch::new();
    let record = scratch.measured("media file -s 1m --op write -b 4k --fsync 16");
    assert_eq!((class(&record, 0, "write"), class(&record, 0, "sync")), ((256, 1 << 20), (16, 0)));
    let record = scratch.measured("media a b -s 1m --op write -b 4k --end-fsync");
    assert_eq!((class(&record, 0, "write"), class(&record, 0, "sync")), ((512, 2 << 20), (2, 0)));
}

#[test]
fn rates_are_kept() {
    let scratch = Scratch::new();
    for arrivals in ["constant", "poisson"] {
        let words =
            format!("media null: --op randread --rate 1000 --time 500ms --arrivals {arrivals} --seed 1");
        let record = scratch.measured(&words);
        let outcome = &record["phases"][0]["arrivals"];
        assert_eq!(outcome["asked_per_second"], 1000.0);
        let due = total(&record, 0, "operations").as_u64().unwrap()
            + outcome["unserved_operations"].as_u64().unwrap();
        // Poisson: 500 give or take five standard deviations.
        let slack = if arrivals == "constant" { 1 } else { 112 };
        assert!(due.abs_diff(500) <= slack, "{arrivals}: {due}");
        assert!(total(&record, 0, "latency")["p50_ns"].as_u64().unwrap() > 0);
    }
}

#[test]
fn ladders_have_a_knee() {
    let scratch = Scratch::new();
    let (ended, record) =
        scratch.measure("media file -s 4m --op randread --ladder threads=1,2,4,8 --time 100ms");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(record["ladder"]["dimension"], "threads");
    assert_eq!(record["ladder"]["phases"], json!([0, 1, 2, 3]));
    let threads = |phase: usize| record["phases"][phase]["plan"]["load"]["threads"].as_u64().unwrap();
    assert_eq!([0, 1, 2, 3].map(threads), [1, 2, 4, 8]);
    let knee = &record["ladder"]["knee"];
    assert!(knee["index"].as_u64().unwrap() < 4 && knee["little"]["measured"].as_f64().unwrap() > 0.0);
    assert!(ended.stdout.contains("knee") && ended.stdout.contains("in flight"), "{}", ended.stdout);
    let record = scratch.measured("media null: --op randread --ladder block-size=4k,64k,1m --count 100");
    assert_eq!(
        [0, 1, 2].map(|phase| total(&record, phase, "bytes").as_u64().unwrap()),
        [409_600, 6_553_600, 104_857_600]
    );
    assert_eq!(record["ladder"]["knee"], Value::Null, "block sizes have none");
}

#[test]
fn saturation_climbs_to_the_knee() {
    let scratch = Scratch::new();
    let record = scratch.measured("media null: --op randread --saturate --time 50ms");
    let steps = record["ladder"]["phases"].as_array().unwrap().len();
    assert_eq!(record["phases"].as_array().unwrap().len(), steps);
    let load = |phase: usize| {
        let load = &record["phases"][phase]["plan"]["load"];
        (load["threads"].as_u64().unwrap(), load["depth"].as_u64().unwrap())
    };
    assert_eq!([load(0), load(1), load(2)], [(1, 1), (1, 2), (1, 4)]);
    assert!(load(steps - 1).0 > 1, "threads were climbed after depth");
    assert_eq!(record["ladder"]["dimension"], Value::Null);
    assert!(record["ladder"]["knee"]["index"].as_u64().unwrap() < steps as u64);
}

#[test]
fn phases_of_a_job() {
    let scratch = Scratch::new();
    let job = "targets = ['file']\nsize = '1m'\nblock_size = '64k'\nseed = 9\n\
               [[phase]]\nname = 'fill'\nop = 'write'\nfsync = 4\n\
               [[phase]]\nop = ['read', 'randread']\nthreads = 2\n";
    std::fs::write(scratch.join("job.toml"), job).unwrap();
    let record = scratch.measured("run job.toml");
    let names: Vec<_> =
        record["phases"].as_array().unwrap().iter().map(|phase| &phase["plan"]["name"]).collect();
    assert_eq!(names, ["fill", "read", "randread"]);
    assert_eq!((class(&record, 0, "write"), class(&record, 0, "sync")), ((16, 1 << 20), (4, 0)));
    assert_eq!((class(&record, 1, "read"), class(&record, 2, "read")), ((16, 1 << 20), (16, 1 << 20)));
    assert_eq!(record["seed"], 9);
    assert_eq!(scratch.names(), ["job.toml", "record.json"]);
}
