//! The options of the network layer: each takes what it documents and refuses the rest in one line.

use std::collections::HashSet;

use network::{COMMON, EndpointOrder, LAYER, MEMORY, NETWORK, PATH, RankTag, Traffic};
use rpc::Poll;
use units::{ByteSize, Span};
use workload::engine::Feature;
use workload::job;
use workload::options::{apply, find_in, is_repeatable, of, unknown};
use workload::spec::{Layer, Spec};

/// An option, texts that it takes, and texts that it refuses.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const OWN: &[Case] = &[
    ("message-sizes", &["0 b1048578", "(0 0) (b1m 0)", "i2k"], &["", "x", "2g", "e5", "1 2 3"]),
    ("endpoint", &["0:2", "0-3,7:2-17"], &["", "0", "0:", "a:b", "0-65536:0"]),
    ("master", &["0:0", "2-0:1"], &["", "0", "0-65536:0"]),
    ("servers", &["node01", "node01:1611,[::1]:1612"], &["", "a,,b", "a b"]),
    ("clients", &["node01", "a,b"], &["", ","]),
    ("group", &["daos_server"], &["", "a b"]),
    ("path", &["/run/engines"], &[""]),
    ("traffic", &["matrix", "pairs"], &["", "mesh"]),
    ("order", &["random"], &["", "shuffled"]),
    ("share", &["partition", "whole"], &["", "half"]),
    ("inflight", &["1", "1048576"], &["", "0", "-1", "1048577"]),
    ("inflight-per-endpoint", &["1", "65536"], &["", "0", "65537"]),
    ("depth", &["1", "65536"], &["", "0", "65537"]),
    ("connections", &["1", "1024"], &["", "0", "1025"]),
    ("memory", &["pinned", "gpu", "gpu:1,0"], &["", "gpu:", "cuda"]),
    ("gpu-path", &["staged", "rdma"], &["", "cufile"]),
    ("gpu-staging", &["pinned", "pageable"], &["", "host"]),
    ("gpu-per", &["worker", "host"], &["", "thread"]),
    ("pipeline", &["1", "65536"], &["", "0", "65537"]),
    ("time", &["5s"], &["", "0", "1zz"]),
    ("count", &["100000"], &["", "0", "1k"]),
    ("bytes", &["1g"], &["", "0"]),
    ("rate", &["300k"], &["", "0"]),
    ("ladder", &["depth=1,2", "threads=1,4,32", "rate=1k"], &["", "block-size=4k", "depth=0"]),
    ("batch", &["1"], &["", "0"]),
    ("provider", &["tcp", "ofi+verbs;ofi_rxm"], &["", "ofi tcp"]),
    ("interface", &["eth0"], &["", "eth 0"]),
    ("domain", &["mlx5_0"], &["", "a\nb"]),
    ("poll", &["spin"], &["", "busy"]),
    ("engine-poll", &["block"], &["", "sleep"]),
    ("engine-cores", &["0,2,4-7"], &["", "7-4"]),
    ("timeout", &["5s"], &["", "0", "-1"]),
    ("buffer-align", &["0", "255"], &["", "256", "-1"]),
    ("send-buffer", &["1m", "1g"], &["", "0", "2g"]),
    ("receive-buffer", &["4k"], &["", "0", "2g"]),
    ("no-delay", &["on", "off"], &["", "true"]),
    ("zero-copy", &["on"], &["", "true"]),
    ("bind-device", &["eth0"], &["", "a b"]),
    ("bind-address", &["10.0.0.1", "fd00::1"], &["", "node01", "10.0.0.1:5"]),
    ("token-file", &["/etc/strata/token"], &[""]),
    ("on-error", &["stop", "continue"], &["", "go on"]),
    ("name", &["knee"], &[]),
];

fn network() -> Spec {
    registry::register();
    Spec { layer: LAYER, ..Spec::default() }
}

fn given(key: &str, text: &str) -> Spec {
    let mut spec = network();
    apply(&mut spec, key, text).unwrap_or_else(|error| panic!("{key}={text}: {error}"));
    spec
}

fn is_one_line(key: &str, message: &str) {
    assert!(message.contains(" is not ") && message.contains(": use "), "{key}: {message}");
    assert!(!message.contains('\n') && message.len() < 400, "{key}: {message}");
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
    let names: HashSet<_> = options.iter().map(|option| option.name).collect();
    assert_eq!(names.len(), options.len());
    assert_eq!(options.len(), NETWORK.len() + MEMORY.len() + PATH.len() + COMMON.len() + OF_HOSTS.len());
    let letters: Vec<_> = options.iter().filter_map(|option| option.short).collect();
    assert_eq!(letters.iter().collect::<HashSet<_>>().len(), letters.len());
    for (name, help) in options.iter().map(|option| (option.name, option.help)) {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
        assert!(!help.is_empty() && !help.contains('\n'), "{name}");
    }
}

#[test]
fn every_option_of_media_holds_here_or_says_what_to_use() {
    registry::register();
    let media = Layer::named("media").expect("a layer");
    for option in of(media) {
        if find_in(LAYER, option.name).is_none() {
            let message = unknown(LAYER, option.name).to_string();
            is_one_line(option.name, &message);
            assert!(message.contains("is not an option of the network layer"), "{message}");
        }
    }
    for option in NETWORK.iter().filter(|option| find_in(media, option.name).is_none()) {
        let message = unknown(media, option.name).to_string();
        let layers = message.split_once("use it only for the network").map(|(_, layers)| layers);
        let known =
            [" layer", " and object layers", " and filesystem layers", ", object and filesystem layers"];
        assert!(layers.is_some_and(|layers| known.contains(&layers)), "{message}");
    }
    assert_eq!(
        unknown(LAYER, "inflght").to_string(),
        "\"inflght\" is not an option: use inflight (the closest match)"
    );
}

#[test]
fn each_option_takes_what_it_documents_and_refuses_the_rest() {
    let covered: HashSet<_> = OWN.iter().map(|case| case.0).collect();
    for option in NETWORK.iter().chain(MEMORY).chain(PATH) {
        assert_eq!(covered.contains(option.name), !option.is_switch(), "{}", option.name);
    }
    for (key, taken, refused) in OWN {
        for text in *taken {
            assert_ne!(given(key, text), network(), "{key}={text} changed nothing");
        }
        for text in *refused {
            let mut spec = network();
            let message =
                apply(&mut spec, key, text).err().unwrap_or_else(|| panic!("{key}={text} was taken"));
            assert_eq!(spec, network(), "{key}={text} was refused and left a trace");
            is_one_line(key, &message.to_string());
        }
    }
}

#[test]
fn choices_take_each_of_their_words() {
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    for option in NETWORK.iter().filter(|option| option.value.contains('|')) {
        for word in option.value.split('|').filter(is_word) {
            given(option.name, word);
        }
    }
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
        let specs = job::parse(&format!("layer = 'network'\n{key} = '{text}'\n")).expect("a job");
        assert_eq!(specs, [given(option.name, text)], "{key}");
    }
}

#[test]
fn values_arrive_in_their_fields() {
    let own = |key: &str, text: &str| network::of(&given(key, text)).clone();
    assert_eq!(own("message-sizes", "0 b1m,i2k").message_sizes.len(), 2);
    let mut spec = network();
    for text in ["1:2", "0:2-3", "1:2"] {
        assert!(is_repeatable("endpoint") && is_repeatable("master"));
        apply(&mut spec, "endpoint", text).expect("an endpoint");
        apply(&mut spec, "master", text).expect("a master");
    }
    let pairs = |list: &[RankTag]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(pairs(&network::of(&spec).endpoints), ["1:2", "0:2", "0:3", "1:2"]);
    assert_eq!(pairs(&network::of(&spec).masters), ["0:2", "0:3", "1:2"]);
    assert_eq!(own("servers", "a, b:1").servers, ["a", "b:1"]);
    assert_eq!(
        (own("traffic", "incast").traffic, own("order", "pinned").order),
        (Some(Traffic::Incast), Some(EndpointOrder::Pinned))
    );
    assert_eq!(
        (own("poll", "spin").poll, own("engine-poll", "block").engine_poll),
        (Some(Poll::Spin), Some(Poll::Block))
    );
    assert_eq!(
        (own("timeout", "5s").timeout, own("buffer-align", "9").buffer_align),
        (Some(Span(5_000_000_000)), Some(9))
    );
    assert_eq!(
        (own("no-delay", "off").no_delay, own("zero-copy", "off").zero_copy),
        (Some(false), Some(Feature::Off))
    );
    assert_eq!(own("send-buffer", "1m").send_buffer, Some(ByteSize(1 << 20)));
    assert_eq!((given("depth", "4").depth, given("verify", "true").verify), (Some(4), true));
}
