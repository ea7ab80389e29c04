//! Options of a load on an object store: each takes what it documents and refuses the rest in one line.

use std::collections::HashSet;

use object::LAYER;
use object::options::{COMMON, DRIVER_OPTIONS, MEMORY, OBJECT};
use object::plan::{Addressing, ObjectOp, ObjectSpec, PunchScope, Scope, Signing, ValueKind};
use proptest::prelude::*;
use units::ByteSize;
use vos::{Allocation, Checksum, Durability, Flush};
use workload::job;
use workload::options::{apply, apply_secret, find_in, is_repeatable, of, unknown};
use workload::spec::{Layer, Spec};

/// An option, texts that it takes, and texts that it refuses.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const OWN: &[Case] = &[
    (
        "op",
        &["put", "put,get", "update, fetch", "open-with-attr", "allocate-ids"],
        &["", "puts", "PUT", "put,", "put get", "open_with_attr"],
    ),
    (
        "mix",
        &["get=70,put=30", "get:70,put:30", "get=100", "get=50%, put=50%"],
        &["", "70", "get=70", "get=70,put=31", "get=50,get=50", "get=100,put=0", "read=70,wrote=30", "get="],
    ),
    ("sequence", &["open,read", "create,write,read"], &["", "open,", "open,reed"]),
    ("objects", &["1", "18446744073709551615"], &["", "0", "-1", "1k"]),
    ("dkeys", &["10000000"], &["", "0"]),
    ("akeys", &["16"], &["", "0"]),
    ("records", &["16"], &["", "0", "1.5"]),
    ("value", &["single", "array"], &["", "extent"]),
    ("value-size", &["64", "4k", "1k-64k", "4k:70,64k:30"], &["", "0", "1zz", "4k:70", "64k-4k"]),
    ("stride", &["4k"], &["", "0"]),
    ("record-offset", &["0", "512"], &["", "-1"]),
    ("first", &["0,0,0,0", "1, 2, 3, 4"], &["", "1", "1,2,3", "1,2,3,4,5", "1,2,3,-4", "a,b,c,d"]),
    ("whole", &["1,256,16,16"], &["", "1,256,16,0", "1,2,3"]),
    (
        "dkey-prefix",
        &["blade-", "27-bytes-long-............", "r{10000}/d{1000%10}/r{10000}-f{%1000}"],
        &["", "a b", "28-bytes-long-..............", "r {-}"],
    ),
    ("akey-prefix", &["akey--"], &["", "a\tb"]),
    ("first-id", &["0", "18446744073709551615"], &["", "-1"]),
    ("object-scope", &["shared", "private"], &["", "own"]),
    ("container", &["strata", "a.b_c-1"], &["", "a b", "a/b", ".a", "\u{e9}"]),
    ("containers", &["shared", "private"], &["", "many"]),
    ("class", &["S1", "sx", "RP_2G1", "EC_4P2GX"], &["", "S0", "RP_1G1", "EC_3P1G1", "LARGE"]),
    ("cell-size", &["1", "4k"], &["", "0"]),
    ("chunk-size", &["1m"], &["", "0"]),
    ("punch", &["record", "object"], &["", "recx"]),
    ("list-max", &["1", "1048576"], &["", "0", "1048577"]),
    ("ids-per-call", &["1", "1073741824"], &["", "0", "1073741825"]),
    ("read-size", &["2m"], &["", "0"]),
    ("pattern", &["uniform", "zipf:0.99"], &["", "random"]),
    ("share", &["partition", "whole"], &["", "half"]),
    ("time", &["5s"], &["", "0", "1zz"]),
    (
        "ladder",
        &["depth=1,2", "threads=1,4", "rate=1k", "value-size=4k,64k"],
        &["", "block-size=4k", "size=1", "value-size=0"],
    ),
    ("batch", &["1"], &["", "0"]),
    ("scm", &["100g"], &["", "0"]),
    ("nvme", &["0", "1t"], &["", "-1"]),
    ("threshold", &["4k"], &["", "0"]),
    ("store-targets", &["1", "4096"], &["", "0", "4097"]),
    ("durability", &["none", "batch"], &["", "full"]),
    ("flush", &["msync"], &["", "clwb"]),
    ("allocate", &["ahead", "whole", "needed"], &["", "all"]),
    ("checksum", &["off", "sha256"], &["", "md5"]),
    ("cache", &["keep", "drop"], &["", "warm"]),
    ("zero-copy", &["on", "off"], &["", "auto", "true"]),
    ("memory", &["pinned", "gpu", "gpu:1,0"], &["", "gpu:", "cuda"]),
    ("gpu-staging", &["pinned", "pageable"], &["", "host"]),
    ("gpu-per", &["worker", "host"], &["", "thread"]),
    ("rank-shift", &["0", "3"], &["", "-1", "true"]),
    ("retries", &["0", "1000"], &["", "-1", "1001"]),
    ("timeout", &["5s"], &["", "0"]),
    (
        "s3-endpoint",
        &["http://10.0.0.1:7480", "http://a,https://b:443/", "http://[::1]:80", "http://[::1]"],
        &[
            "",
            "10.0.0.1:7480",
            "http://",
            "http://:80",
            "http://a:0",
            "http://a:99999",
            "http://a/b",
            "s3://b",
            "http://a,",
        ],
    ),
    ("s3-region", &["eu-west-1"], &["", "a b"]),
    ("s3-addressing", &["virtual-host"], &["", "host"]),
    ("s3-signing", &["headers"], &["", "all"]),
    ("s3-part-size", &["0", "8m"], &["", "-1"]),
    ("s3-key-file", &["key"], &[""]),
    ("object-names", &["a", "job.0.0,job.0.1", "a\\,b, c\\ d"], &["", "a,", "a b", "a\u{7}"]),
    ("rados-conf", &["/etc/ceph/ceph.conf", "my conf"], &[""]),
    ("rados-user", &["client.admin"], &["", "a b"]),
    ("daos-system", &["daos_server"], &[""]),
    ("refill", &["full", "stamp", "once"], &["", "never"]),
    ("acknowledged", &["acknowledged.txt"], &[""]),
    (
        "snapshot",
        &["17", "0x1a2B", "18446744073709551614"],
        &["", "0", "0x", "0x0", "0x+1", "-1", "latest", "18446744073709551615", "0xffffffffffffffff"],
    ),
    ("token-file", &["token"], &[""]),
];

fn object() -> Spec {
    registry::register();
    Spec { layer: LAYER, ..Spec::default() }
}

fn given(key: &str, text: &str) -> Spec {
    let mut spec = object();
    apply(&mut spec, key, text).unwrap_or_else(|error| panic!("{key}={text}: {error}"));
    spec
}

fn refusal(key: &str, text: &str) -> String {
    let mut spec = object();
    let refused = apply(&mut spec, key, text).err();
    let message = refused.unwrap_or_else(|| panic!("{key}={text} was taken")).to_string();
    assert_eq!(spec, object(), "{key}={text} was refused and left a trace");
    assert!(message.contains(" is not ") && message.contains(": use "), "{key}: {message}");
    assert!(!message.contains('\n') && message.len() < 400, "{key}: {message}");
    message
}

/// Options of hosts that the layer does not word itself, with a value.
const OF_HOSTS: [(&str, &str); 7] = [
    ("hosts", "local:4"),
    ("hosts-used", "2"),
    ("host-targets", "own"),
    ("rotate-hosts", "1"),
    ("on-host-failure", "continue"),
    ("fingerprint", "node1=sha256:00"),
    ("host-options", "rank:1:threads=8"),
];

#[test]
fn names_and_letters_are_unique_and_plain() {
    registry::register();
    let options: Vec<_> = of(LAYER).collect();
    assert_eq!(
        options.len(),
        OBJECT.len() + MEMORY.len() + COMMON.len() + OF_HOSTS.len(),
        "each name of the common ones is one of media"
    );
    let names: HashSet<_> = options.iter().map(|option| option.name).collect();
    assert_eq!(names.len(), options.len());
    let letters: Vec<_> = options.iter().filter_map(|option| option.short).collect();
    assert_eq!(letters.iter().collect::<HashSet<_>>().len(), letters.len());
    for option in &options {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(option.name.chars().all(is_plain), "{}", option.name);
        assert!(!option.help.is_empty() && !option.help.contains('\n') && !option.default.is_empty());
    }
    for name in DRIVER_OPTIONS {
        assert!(OBJECT.iter().any(|option| option.name == *name), "{name}");
    }
}

#[test]
fn every_option_of_media_holds_here_or_says_what_to_use() {
    registry::register();
    let media = Layer::named("media").expect("a layer");
    for option in of(media).filter(|option| find_in(LAYER, option.name).is_none()) {
        let message = unknown(LAYER, option.name).to_string();
        assert!(message.contains("is not an option of the object layer: use "), "{message}");
    }
    let here = |name: &str| unknown(LAYER, name).to_string();
    assert_eq!(here("block-size"), "\"block-size\" is not an option of the object layer: use --value-size");
    assert_eq!(here("dkey"), "\"dkey\" is not an option: use dkeys (the closest match)");
    assert!(here("quite-another").ends_with("use an option listed in `strata object --help`"));
    let elsewhere = |layer, name: &str| unknown(layer, name).to_string();
    assert!(elsewhere(media, "akeys").ends_with("of the media layer: use it only for the object layer"));
    assert!(
        elsewhere(Layer::named("network").expect("a layer"), "akeys")
            .ends_with("of the network layer: use it only for the object layer")
    );
    assert!(elsewhere(media, "zero-copy").ends_with("use it only for the network and object layers"));
}

#[test]
fn each_option_takes_what_it_documents_and_refuses_the_rest() {
    let covered: HashSet<_> = OWN.iter().map(|case| case.0).collect();
    assert_eq!(covered.len(), OWN.len());
    for option in OBJECT.iter().chain(MEMORY) {
        assert_eq!(covered.contains(option.name), !option.is_switch(), "{}", option.name);
        if option.is_switch() {
            assert_ne!(given(option.name, "true"), object(), "{}", option.name);
            assert_eq!(given(option.name, "false"), object(), "{}", option.name);
            refusal(option.name, "on");
        }
        let is_word =
            |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        for word in option.value.split('|').filter(|_| option.value.contains('|')).filter(is_word) {
            given(option.name, word);
        }
    }
    for (key, taken, refused) in OWN {
        for text in *taken {
            assert_ne!(given(key, text), object(), "{key}={text} changed nothing");
        }
        for text in *refused {
            refusal(key, text);
        }
    }
}

#[test]
fn secrets_are_no_options_and_are_shown_to_nobody() {
    registry::register();
    let mut spec = Spec::of_layer("object").expect("the layer");
    assert_eq!(spec, object());
    apply_secret(&mut spec, "s3-key", "access\na secret:of two").expect("two lines");
    let key = ObjectSpec::of(&spec).s3_key.clone().expect("a key");
    assert_eq!((key.access.as_str(), key.secret.as_str()), ("access", "a secret:of two"));
    assert!(!format!("{spec:?}").contains("secret:"));
    let refused = apply_secret(&mut spec, "s3-key", "in one line").expect_err("one line").to_string();
    assert!(refused.contains("two lines") && !refused.contains("in one"), "{refused}");
    let refused = apply_secret(&mut spec, "s3-keys", "hidden").expect_err("no secret").to_string();
    assert_eq!(refused, "\"s3-keys\" is not an option: use one of s3-key");
    assert!(find_in(LAYER, "s3-key").is_none(), "no flag, and no key of job files");
    let unknown = Spec::of_layer("objects").expect_err("no layer").to_string();
    assert_eq!(
        unknown,
        "\"objects\" is not a value of layer: use one of media, network, object, filesystem, application"
    );
}

#[test]
fn slips_are_answered_with_the_nearest() {
    assert_eq!(refusal("op", "fech"), "\"fech\" is not an operation of op: use fetch (the closest match)");
    assert!(refusal("op", "something").contains("use one of update, fetch, punch"));
    assert_eq!(
        refusal("mix", "get=70,put=20"),
        "\"get=70,put=20\" is not a mix: use operations with shares that add up to 100, such as get=70,put=30"
    );
    assert_eq!(
        refusal("dkey-prefix", &"x".repeat(28)),
        format!(
            "\"{}\" is not a value of dkey-prefix: use at most 27 bytes: a key including its number has at most 47",
            "x".repeat(28)
        )
    );
    assert_eq!(
        refusal("ladder", "block-size=4k"),
        "\"block-size=4k\" is not a ladder: use WHAT=N,N,... with WHAT one of depth, threads, rate, value-size, such as depth=1,2,4,8"
    );
}

#[test]
fn a_job_file_has_the_same_keys() {
    registry::register();
    for option in of(LAYER) {
        let key = option.name.replace('-', "_");
        let of_hosts = OF_HOSTS.iter().find(|case| case.0 == option.name).map(|case| case.1);
        let own = OWN.iter().find(|case| case.0 == option.name).map(|case| case.1[0]);
        let text = own.or(of_hosts).unwrap_or("true");
        if COMMON.contains(&option.name) && !option.is_switch() {
            continue;
        }
        let specs = job::parse(&format!("layer = 'object'\n{key} = '{text}'\n")).expect("a job");
        assert_eq!(specs, [given(option.name, text)], "{key}");
    }
    let specs = job::parse(
        "layer = 'object'\ntargets = ['vos:/dev/shm/pool']\nop = ['put', 'get']\nfirst = [0, 1, 2, 3]\nstore_targets = 4\n\
         s3_endpoint = ['http://a', 'http://b']\nno_fill = true\n",
    )
    .expect("a job");
    let own = ObjectSpec::of(&specs[0]);
    assert_eq!(
        (own.operations.as_slice(), own.first),
        (&[ObjectOp::Put, ObjectOp::Get][..], Some([0, 1, 2, 3]))
    );
    assert_eq!((own.targets, own.s3_endpoints.len(), own.no_fill), (Some(4), 2, true));
    assert_eq!(specs[0].targets, ["vos:/dev/shm/pool"]);
}

#[test]
fn values_arrive_in_their_fields() {
    let own = |key: &str, text: &str| ObjectSpec::of(&given(key, text)).clone();
    assert_eq!(own("op", "put,get").operations, [ObjectOp::Put, ObjectOp::Get]);
    assert_eq!(own("sequence", "open, read").sequence, [ObjectOp::Open, ObjectOp::Read]);
    assert_eq!(own("mix", "get:70,put:30").mix.as_deref(), Some("get:70,put:30"));
    let counts = |spec: ObjectSpec| [spec.objects, spec.dkeys, spec.akeys, spec.records];
    for (at, name) in ["objects", "dkeys", "akeys", "records"].into_iter().enumerate() {
        let mut expected = [None; 4];
        expected[at] = Some(7);
        assert_eq!(counts(own(name, "7")), expected);
    }
    assert_eq!(
        (own("first", "1,2,3,4").first, own("whole", "5,6,7,8").whole),
        (Some([1, 2, 3, 4]), Some([5, 6, 7, 8]))
    );
    assert_eq!(
        (own("value", "array").value, own("punch", "akey").punch),
        (Some(ValueKind::Array), Some(PunchScope::Akey))
    );
    assert_eq!(
        (own("containers", "private").containers, own("object-scope", "private").object_scope),
        (Some(Scope::Private), Some(Scope::Private))
    );
    let size = |bytes| Some(ByteSize(bytes));
    assert_eq!((own("stride", "4k").stride, own("record-offset", "1").record_offset), (size(4096), size(1)));
    assert_eq!(
        (own("cell-size", "8").cell_size, own("chunk-size", "2m").chunk_size),
        (size(8), size(2 << 20))
    );
    assert_eq!((own("scm", "1g").scm, own("nvme", "2g").nvme), (size(1 << 30), size(2 << 30)));
    assert_eq!(
        (own("threshold", "8k").threshold, own("read-size", "2m").read_size),
        (size(8192), size(2 << 20))
    );
    assert_eq!(own("s3-part-size", "8m").s3_part_size, size(8 << 20));
    assert_eq!((own("snapshot", "17").snapshot, own("snapshot", "0x1a").snapshot), (Some(17), Some(26)));
    assert_eq!(
        (own("durability", "batch").durability, own("flush", "cpu").flush),
        (Some(Durability::Batch), Some(Flush::Cpu))
    );
    assert_eq!(own("allocate", "whole").allocation, Some(Allocation::Whole));
    assert_eq!(own("cache", "drop").cache, Some(layer::CacheBefore::Drop));
    assert_eq!(
        (own("checksum", "adler32").checksum, own("zero-copy", "off").zero_copy),
        (Some(Checksum::Adler32), Some(false))
    );
    assert_eq!((own("retries", "0").retries, own("store-targets", "8").targets), (Some(0), Some(8)));
    assert_eq!(
        (own("list-max", "9").list_max, own("ids-per-call", "100").ids_per_call),
        (Some(9), Some(100))
    );
    assert_eq!(own("class", "RP_2GX").class.map(|class| class.to_string()).as_deref(), Some("RP_2GX"));
    assert_eq!(
        (own("s3-addressing", "virtual-host").s3_addressing, own("s3-signing", "none").s3_signing),
        (Some(Addressing::VirtualHost), Some(Signing::None))
    );
    assert!(is_repeatable("s3-endpoint"));
    let mut spec = given("s3-endpoint", "http://a/");
    apply(&mut spec, "s3-endpoint", "http://b:1").expect("another");
    assert_eq!(ObjectSpec::of(&spec).s3_endpoints, ["http://a", "http://b:1"]);
    assert_eq!(own("object-names", "a,b").object_names, ["a", "b"]);
    assert_eq!(own("object-names", r"a\,b, c\ d ,\\,e\").object_names, ["a,b", "c d", r"\", r"e\"]);
    let words = [
        own("rados-conf", "x").rados_conf,
        own("rados-user", "x").rados_user,
        own("daos-system", "x").daos_system,
        own("s3-region", "x").s3_region,
        own("container", "x").container,
        own("dkey-prefix", "x").dkey_prefix,
        own("akey-prefix", "x").akey_prefix,
        own("value-size", "4k").value_size.map(|_| "x".to_owned()),
    ];
    assert!(words.iter().all(|word| word.as_deref() == Some("x")), "{words:?}");
}

#[test]
fn files_arrive_in_their_fields() {
    let own = |key: &str| ObjectSpec::of(&given(key, "x")).clone();
    let files = [
        own("s3-key-file").s3_key_file,
        own("acknowledged").acknowledged,
        given("token-file", "x").token_file,
    ];
    assert!(files.iter().all(|file| file.as_deref() == Some(std::path::Path::new("x"))), "{files:?}");
}

proptest! {
    /// Any text is taken or refused in a line, and a refusal leaves no trace.
    #[test]
    fn any_text_is_taken_or_refused_in_a_line(at in 0..OBJECT.len(), text in prop_oneof!["\\PC{0,40}", "[a-z0-9,:=/.-]{0,30}", "http://[a-z0-9:./@-]{0,20}"]) {
        let mut spec = object();
        if let Err(error) = apply(&mut spec, OBJECT[at].name, &text) {
            prop_assert_eq!(&spec, &object());
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}
