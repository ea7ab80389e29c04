//! The table of options: each option takes what it documents and refuses the rest in one line.

use std::collections::HashSet;

use media::engine::{MemoryOperation, SyncCall, SyncMode};
use media::spec::{CachePolicy, Layout};
use media::{LAYER, MediaSpec};
use units::{ByteSize, Rate, Span};
use workload::engine::Feature;
use workload::job;
use workload::options::{OptionDef, apply, find_in, of};
use workload::spec::{
    CoresPolicy, Ladder, LadderDimension, OnError, Operation, Refill, Share, Spacing, Spec, Warmup,
};

/// An option, texts that it takes, and texts that it refuses.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const WORKLOAD: &[Case] = &[
    (
        "op",
        &[
            "read",
            "write",
            "randread",
            "randwrite",
            "readwrite",
            "rw",
            "randrw",
            "discard",
            "trim",
            "randdiscard",
            "randtrim",
            "discardwrite",
            "trimwrite",
            "randdiscardwrite",
            "randtrimwrite",
            "nop",
            "write,randread",
        ],
        &["", "reads", "READ", "read,", "read write"],
    ),
    (
        "block-size",
        &["4k", "4K", "4KiB", "1.5m", "4KB", "512", "4k-64k", "4k-64k/4k", "4k:70,64k:30"],
        &["", "0", "1zz", "-1", "4k:70,64k:31", "4k:101", "64k-4k", "4k-64k/7k", "4k,64k", "1e30", " 4k"],
    ),
    ("size", &["1", "4k", "1.5g", "10GB"], &["", "0", "0k", "1zz", "-1", "+1", "1.5", "17e", "1 g"]),
    ("sizes", &["4k", "4k,1m, 64k"], &["", "0", "4k,", "4k,0", "1zz"]),
    ("offset", &["0", "4k", "1t"], &["", "1zz", "-1", "0x10"]),
    ("align", &["512", "4k"], &["", "0", "1zz", "-1"]),
    (
        "pattern",
        &[
            "sequential",
            "backward",
            "strided:8",
            "permutation",
            "uniform",
            "zipf:0.99",
            "pareto:0.2",
            "normal:10",
            "zoned:60/10,30/20,10/70",
        ],
        &[
            "",
            "random",
            "strided:0",
            "strided",
            "zipf:11",
            "zipf:-1",
            "zipf:nan",
            "pareto:0",
            "pareto:1",
            "normal:0",
            "normal:101",
            "zoned:60/10",
            "zoned:60/10,41/90",
        ],
    ),
    (
        "mix",
        &["0", "70", "70%", "100", "read=70,write=25,discard=5"],
        &["", "101", "150", "-1", "read=70,write=31"],
    ),
    ("gap", &["12k", "-8k", "0"], &["", "1zz", "--8k", "x"]),
    ("run", &["8", "identical:8"], &["", "0", "identical:0", "same:8", "-1"]),
    ("random-percent", &["0", "70", "read=70,write=100"], &["", "101", "-1", "read=101", "x"]),
    (
        "zones",
        &["8m/64m", "8m/64m/192m", "zbd", "zbd,max-open=8,round"],
        &["", "8m", "0/64m", "8m/64m/x", "zbd,x", "zbd,size=0"],
    ),
    ("visit", &["roundrobin", "roundrobin:4", "random:8", "sequential"], &["", "roundrobin:0", "zipf"]),
    ("share", &["partition", "whole"], &["", "part", "Whole"]),
    ("fsync", &["1", "32"], &["", "0", "-1", "1k", "x"]),
];

const LOAD: &[Case] = &[
    ("threads", &["1", "4096"], &["", "0", "-1", "4097", "1.5", "+1", "x", "99999999999999999999"]),
    ("depth", &["1", "32", "65536"], &["", "0", "-1", "65537", "x"]),
    ("time", &["30s", "500ms", "2m", "1h", "1.5", "1ns"], &["", "0", "0s", "-1", "1zz", "1d", "0.1ns"]),
    ("count", &["1", "18446744073709551615"], &["", "0", "-1", "1k", "18446744073709551616"]),
    ("bytes", &["1g", "4096"], &["", "0", "1zz", "-1"]),
    ("warmup", &["auto", "none", "2s", "0"], &["", "-1", "soon", "1zz"]),
    ("rate", &["300k", "0.5", "1M", "2.5k/s"], &["", "0", "-1", "1zz", "inf", "nan", "1e3", "1001g"]),
    ("arrivals", &["constant", "poisson"], &["", "uniform"]),
    (
        "ladder",
        &["depth=1,2,4,8", "threads=1,2", "block-size=4k,64k", "rate=1k,300k", "depth=1, 2"],
        &[
            "",
            "1,2",
            "depth=",
            "depth=0",
            "depth=1,,2",
            "depth=65537",
            "threads=4097",
            "size=1",
            "rate=0",
            "rate=0.5",
            "rate=1.5",
            "block-size=0",
            "block-size=1zz",
        ],
    ),
    ("think-time", &["1us", "1ms", "2"], &["", "0", "-1", "1zz"]),
    ("think-blocks", &["1", "18446744073709551615"], &["", "0", "-1", "x"]),
    ("think-after", &["9s", "1ms"], &["", "0", "-1", "1zz"]),
    ("think-spin", &["1ms"], &["", "0", "-1", "1zz"]),
    ("start-delay", &["0", "5ms", "1"], &["", "-1", "1zz"]),
    ("batch", &["1", "65536"], &["", "0", "-1", "65537"]),
    ("batch-min", &["1", "65536"], &["", "0", "-1", "65537"]),
    ("batch-max", &["1", "65536"], &["", "0", "-1", "65537"]),
];

const CONTROL: &[Case] = &[
    ("keep-operations", &["1", "1000"], &["", "0", "-1", "16777217"]),
    ("ignore-error", &["write:ENOSPC,read:EIO", "read:5"], &["", "ENOSPC", "write:", "write:ENONSENSE"]),
    ("latency-max", &["10ms", "1s"], &["", "0", "-1", "1zz"]),
    ("rate-min", &["100", "2.5k"], &["", "0", "-1", "1zz"]),
    ("rate-bytes-min", &["1m", "4096"], &["", "1zz", "-1"]),
    ("rate-cycle", &["1s", "500ms"], &["", "0", "-1", "1zz"]),
    ("numa-memory", &["local", "bind:0-1", "prefer:0"], &["", "bind", "prefer:0,1", "near:0"]),
    ("flow", &["1", "1000000"], &["", "0", "-1", "1000001"]),
    ("flow-group", &["1", "1000000"], &["", "-1", "1000001", "x"]),
    ("scheduler", &["none", "mq-deadline"], &[""]),
    ("run-before", &["true"], &[""]),
    ("run-after", &["true"], &[""]),
    ("on-mismatch", &["stop", "continue"], &["", "count"]),
    ("program", &["/bin/true"], &[""]),
    ("program-arguments", &["-n 5"], &[]),
    ("program-output", &["out"], &[""]),
    ("program-time", &["5s"], &["", "0", "-1", "1zz"]),
    ("program-grace", &["2s", "0s"], &["", "-1", "1zz"]),
    ("cpu-chunk", &["10ms"], &["", "0", "-1", "1zz"]),
    (
        "latency-target",
        &["500us", "500us:99.9", "500us:99.9:5s"],
        &["", "0", "1ms:0", "1ms:101", "1ms:99:5s:1"],
    ),
    (
        "end-when-steady",
        &["lat:50us:30s", "iops:10%:30s", "bw_slope:1%:30s:10s:1s"],
        &["", "iops", "latency:1%:30s", "iops:x:30s"],
    ),
    ("priority", &["idle", "realtime:0", "best-effort:7"], &["", "realtime:8", "high", "idle:x"]),
    ("nice", &["5", "19", "-20"], &["", "20", "-21", "x"]),
    (
        "operation-priority",
        &["read:20@realtime:0,write/64k:5@idle"],
        &["", "read:20", "read:101@idle", "fsync:1@idle"],
    ),
    ("force-async", &["1", "4294967295"], &["", "0", "-1", "4294967296"]),
    ("advise", &["sequential", "random", "noreuse", "none"], &["", "willneed"]),
];

const ENGINE: &[Case] = &[
    ("engine", &["psync", "io_uring"], &[]),
    ("sync", &["none", "dsync", "sync"], &["", "fsync", "true"]),
    ("sync-call", &["fdatasync", "fsync"], &["", "sync", "none"]),
    ("register-files", &["auto", "on", "off"], &["", "true", "yes"]),
    ("register-buffers", &["auto", "on", "off"], &["", "true", "yes"]),
    ("defer-taskrun", &["auto", "on", "off"], &["", "true", "yes"]),
    ("sqpoll-core", &["0", "3", "65535"], &["", "-1", "65536", "x"]),
    ("memory-operation", &["copy", "fill", "read"], &["", "write"]),
    ("memory", &["host", "pinned", "gpu", "gpu:0,3"], &["", "gpu:", "gpu:x", "device"]),
    ("gpu-path", &["staged", "cufile", "cufile-batch", "cufile-stream"], &["", "direct"]),
    ("gpu-staging", &["pinned", "pageable"], &["", "host"]),
    ("gpu-register", &["on", "off"], &["", "auto"]),
    ("gpu-per", &["worker", "host"], &["", "thread"]),
    ("cache", &["keep", "drop", "warm"], &["", "cold"]),
];

const DATA_AND_RUN: &[Case] = &[
    ("content", &["random", "zero", "0xdeadbeef"], &["", "0x", "0xabc", "0xzz", "ones"]),
    ("compress", &["0", "50", "50%", "100"], &["", "101", "150", "-1", "0.5"]),
    ("dedupe", &["0", "30", "100%"], &["", "101", "150", "-1"]),
    ("dedupe-set", &["4k", "50m"], &["", "0", "1zz"]),
    ("refill", &["full", "stamp", "once"], &["", "never"]),
    ("verify-interval", &["512", "4k"], &["", "0", "1zz", "-1"]),
    ("verify-pattern", &["0xdeadbeef", "0xff+%o"], &["", "0xabc", "%x", "words"]),
    ("verify-backlog", &["1", "1024:64"], &["", "0", "-1", "8:0", "x"]),
    ("verify-dump", &["dump"], &[""]),
    ("verify-run", &["1", "18446744073709551615"], &["", "0", "-1", "x", "18446744073709551616"]),
    ("layout", &["auto", "fill", "allocate", "sparse", "existing"], &["", "none", "full"]),
    ("seed", &["0", "18446744073709551615"], &["", "-1", "x", "18446744073709551616"]),
    ("cores", &["0", "0,2,4-7"], &["", "-1", "7-4", "0,0", "0,", "x", "65536", "0-65536"]),
    ("cores-policy", &["split", "shared"], &["", "all"]),
    ("numa", &["0", "0,1"], &["", "-1", "1024", "0,0"]),
    ("interval", &["1ms", "20ms", "1s"], &["", "0", "999us", "-1", "1zz"]),
    ("on-error", &["stop", "continue"], &["", "ignore"]),
    ("name", &["first", ""], &[]),
    ("hosts", &["local:4", "node[01-16],a:7"], &[""]),
    ("hosts-used", &["1", "65536"], &["", "0", "-1", "all"]),
    ("host-targets", &["shared", "own"], &["", "mine"]),
    ("rotate-hosts", &["1", "65535"], &["", "0", "-1", "65536"]),
    ("on-host-failure", &["stop", "continue"], &["", "ignore"]),
    ("fingerprint", &["node1=sha256:00"], &[""]),
    (
        "host-options",
        &["node[03-04]:threads=8,target=/b", "rank:1-3:cores=0,2"],
        &["", "node3", "node3:8", "threads=8", "node3:block-size=4k"],
    ),
    ("token-file", &["/etc/token"], &[""]),
];

fn cases() -> impl Iterator<Item = &'static Case> {
    WORKLOAD.iter().chain(LOAD).chain(CONTROL).chain(ENGINE).chain(DATA_AND_RUN)
}

fn options() -> impl Iterator<Item = &'static OptionDef> {
    of(LAYER)
}

fn silent() -> Spec {
    layer::add(&media::Media);
    Spec { layer: LAYER, ..Spec::default() }
}

fn given(key: &str, text: &str) -> Spec {
    let mut spec = silent();
    apply(&mut spec, key, text).unwrap_or_else(|error| panic!("{key}={text}: {error}"));
    spec
}

/// Options that media alone has, with this one given.
fn own(key: &str, text: &str) -> MediaSpec {
    media::of(&given(key, text)).clone()
}

fn refusal(key: &str, text: &str) -> String {
    let mut spec = silent();
    let refused = apply(&mut spec, key, text);
    let message = refused.err().unwrap_or_else(|| panic!("{key}={text} was taken")).to_string();
    assert_eq!(spec, silent(), "{key}={text} was refused and left a trace");
    message
}

#[test]
fn names_and_letters_are_unique_and_plain() {
    let names: HashSet<_> = options().map(|option| option.name).collect();
    assert_eq!(names.len(), options().count());
    let letters: Vec<_> = options().filter_map(|option| option.short).collect();
    assert_eq!(letters.iter().collect::<HashSet<_>>().len(), letters.len());
    for option in options() {
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(option.name.chars().all(is_plain) && !option.name.starts_with('-'), "{}", option.name);
        assert!(
            option.short.is_none_or(|letter| letter.is_ascii_lowercase() && letter != 'h'),
            "{}",
            option.name
        );
        assert!(!option.help.is_empty() && !option.default.is_empty(), "{}", option.name);
        assert!(!option.help.contains('\n'), "{}", option.name);
        assert!(!option.group.title().is_empty());
    }
}

#[test]
fn every_option_is_covered_here() {
    let covered: HashSet<_> = cases().map(|case| case.0).collect();
    for option in options() {
        assert_eq!(covered.contains(option.name), !option.is_switch(), "{}", option.name);
    }
}

#[test]
fn each_option_takes_what_it_documents() {
    for (key, text) in cases().flat_map(|case| case.1.iter().map(|text| (case.0, *text))) {
        assert_ne!(given(key, text), silent(), "{key}={text} changed nothing");
    }
}

#[test]
fn choices_take_each_of_their_words() {
    for option in options().filter(|option| option.value.contains('|')) {
        let words = option.value.split('|').filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
        for word in words {
            given(option.name, word);
        }
        let first = option.default.split([' ', ':', ',']).next().unwrap_or_default();
        if option.value.split('|').any(|word| word == first) {
            given(option.name, first);
        }
    }
}

#[test]
fn each_option_refuses_the_rest_in_one_line() {
    for (key, _, refused) in cases() {
        for text in *refused {
            let message = refusal(key, text);
            assert!(message.contains(" is not ") && message.contains(": use "), "{key}: {message}");
            assert!(!message.contains('\n') && message.len() < 300, "{key}: {message}");
        }
    }
}

#[test]
fn switches_are_on_or_off() {
    for option in options().filter(|option| option.is_switch()) {
        assert_ne!(given(option.name, "true"), silent(), "{}", option.name);
        given(option.name, "false");
        for text in ["", "1", "on", "TRUE"] {
            let message = refusal(option.name, text);
            let name = option.name;
            assert_eq!(message, format!("\"{text}\" is not a value of {name}: use one of true, false"));
        }
    }
}

#[test]
fn a_job_file_has_the_same_keys() {
    layer::add(&media::Media);
    for option in options() {
        let key = option.name.replace('-', "_");
        assert_eq!(find_in(LAYER, &key).map(|found| found.name), Some(option.name));
        assert_eq!(find_in(LAYER, option.name).map(|found| found.name), Some(option.name));
        let text = cases().find(|case| case.0 == option.name).map_or("true", |case| case.1[0]);
        let specs = job::parse(&format!("{key} = '{text}'\n")).expect("a job");
        assert_eq!(specs, [given(option.name, text)], "{key}");
    }
    let specs = job::parse(
        "depth = 8\ndirect = true\ncores = [0, 2]\nrate = 2.5\n[[phase]]\nop = ['read', 'write']\n",
    );
    let specs = specs.expect("a job");
    let spec = &specs[0];
    assert_eq!(
        (spec.depth, media::of(spec).options.direct, spec.cores.as_deref()),
        (Some(8), true, Some(&[0, 2][..]))
    );
    assert_eq!(spec.rate, Rate::new(2.5).ok());
    assert_eq!(media::of(spec).operations, [Operation::Read, Operation::Write]);
}

#[test]
fn well_known_slips_are_answered() {
    assert_eq!(
        refusal("size", "1zz"),
        "\"1zz\" is not a size: use a number with k, m, g, t (powers of 2), kB, MB (powers of 10), such as 4k, 1.5g, \
         4KB, 1MiB"
    );
    assert_eq!(refusal("depth", "0"), "\"0\" is not a value of depth: use a whole number from 1 to 65536");
    assert_eq!(
        refusal("threads", "-1"),
        "\"-1\" is not a value of threads: use a whole number from 1 to 4096"
    );
    assert_eq!(refusal("time", "0"), "\"0\" is not time: use a duration above 0, such as 30s");
    assert!(
        refusal("mix", "150").starts_with("\"150\" is not a mix: use a percentage of reads from 0 to 100")
    );
    assert!(refusal("op", "fetch").ends_with(
        "use one of read, write, randread, randwrite, readwrite, rw, randrw, discard, trim, randdiscard, randtrim, discardwrite, trimwrite, randdiscardwrite, randtrimwrite, nop"
    ));
    assert_eq!(refusal("name\n", "x"), "\"name\\n\" is not an option: use name (the closest match)");
    assert_eq!(
        refusal("blocksize", "4k"),
        "\"blocksize\" is not an option: use block-size (the closest match)"
    );
    assert_eq!(
        refusal("ioengine_of_choice", "x"),
        "\"ioengine_of_choice\" is not an option: use an option listed in `strata media --help`"
    );
}

#[test]
fn values_arrive_in_their_fields() {
    let size = |bytes| Some(ByteSize(bytes));
    assert_eq!(own("size", "1.5g").size, size(3 << 29));
    assert_eq!((own("offset", "4KB").offset, own("align", "4k").align), (size(4000), size(4096)));
    assert_eq!(given("block-size", "4k:70,64k:30").block_size.as_deref(), Some("4k:70,64k:30"));
    assert_eq!(
        (given("time", "500ms").time, given("time", "2").time),
        (Some(Span(500_000_000)), Some(Span(2_000_000_000)))
    );
    assert_eq!(given("warmup", "2s").warmup, Some(Warmup::Fixed(2_000_000_000)));
    assert_eq!(
        (given("warmup", "auto").warmup, given("warmup", "none").warmup),
        (Some(Warmup::Auto), Some(Warmup::None))
    );
    assert_eq!(given("rate", "300k").rate, Rate::new(300_000.0).ok());
    assert_eq!(given("arrivals", "poisson").arrivals, Some(Spacing::Poisson));
    assert_eq!(own("op", "trim, randrw").operations, [Operation::Discard, Operation::RandRw]);
    let ladder = |dimension, values: &[u64]| Some(Ladder { dimension, values: values.to_vec() });
    assert_eq!(given("ladder", "depth=1,2,4").ladder, ladder(LadderDimension::Depth, &[1, 2, 4]));
    assert_eq!(given("ladder", "threads=3").ladder, ladder(LadderDimension::Threads, &[3]));
    assert_eq!(
        given("ladder", "block-size=4k,1m").ladder,
        ladder(LadderDimension::BlockSize, &[4096, 1 << 20])
    );
    assert_eq!(given("ladder", "rate=1k,2.5k").ladder, ladder(LadderDimension::Rate, &[1000, 2500]));
    assert_eq!(
        (given("share", "whole").share, own("cache", "warm").cache),
        (Some(Share::Whole), Some(CachePolicy::Warm))
    );
    assert_eq!(
        (own("sync", "sync").options.sync, given("refill", "once").refill),
        (SyncMode::Sync, Some(Refill::Once))
    );
    assert_eq!(own("memory-operation", "fill").options.memory_operation, MemoryOperation::Fill);
    assert_eq!((given("compress", "50%").compress, given("dedupe", "30").dedupe), (Some(50), Some(30)));
    assert_eq!(given("cores", "0,2,4-7").cores.as_deref(), Some(&[0, 2, 4, 5, 6, 7][..]));
    assert_eq!(
        (given("interval", "1ms").interval, given("on-error", "continue").on_error),
        (Some(Span(1_000_000)), Some(OnError::Continue))
    );
    assert_eq!((own("fsync", "8").fsync, own("end-fsync", "true").end_fsync), (Some(8), true));
    assert_eq!(
        (own("sync-call", "fsync").sync_call, own("layout", "sparse").layout),
        (Some(SyncCall::Fsync), Some(Layout::Sparse))
    );
    assert_eq!(given("cores-policy", "shared").cores_policy, Some(CoresPolicy::Shared));
    assert_eq!(
        (given("think-time", "1ms").think_time, given("start-delay", "2s").start_delay),
        (Some(Span(1_000_000)), Some(Span(2_000_000_000)))
    );
    assert_eq!(
        (given("think-blocks", "8").think_blocks, own("verify-run", "7").verify_run),
        (Some(8), Some(7))
    );
    assert_eq!((given("seed", "42").seed, given("count", "9").count), (Some(42), Some(9)));
}

#[test]
fn engine_options_are_remembered_for_engines_without_them() {
    let named = |key: &str, text: &str| own(key, text).engine_options_given;
    for key in ["sqpoll", "iopoll", "hipri", "nowait", "rwf-dsync", "dontcache", "map-sync"] {
        assert_eq!((named(key, "true"), named(key, "false")), (vec![key], vec![]));
    }
    for key in ["register-files", "register-buffers", "defer-taskrun"] {
        assert_eq!(named(key, "off"), [key]);
    }
    assert_eq!(
        (named("sqpoll-core", "3"), named("memory-operation", "copy")),
        (vec!["sqpoll-core"], vec!["memory-operation"])
    );
    assert!(named("direct", "true").is_empty() && named("depth", "4").is_empty());
    let mut spec = given("register-files", "on");
    apply(&mut spec, "register_files", "off").expect("a value");
    let own = media::of(&spec);
    assert_eq!((own.options.register_files, own.engine_options_given.len()), (Feature::Off, 1));
}
