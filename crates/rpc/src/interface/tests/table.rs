use super::*;

fn found(tree: &Tree, origin: Origin) -> Found {
    let offers = || Ok(vec![facts("verbs;ofi_rxm", "mlx5_1"), facts("tcp", "ib0"), facts("shm", "shm")]);
    let mut scan = scan_with(tree, links(tree), &offers);
    scan.cost_ns = 1_200_000;
    Found { scan, origin, messages: vec![] }
}

fn decide(found: &Found, provider: &str, place: NumaPlace) -> Decision {
    let overrides = Overrides::default();
    choose(
        &found.scan,
        &Want { provider, place, targets: &[], overrides: &overrides },
        &mut Counted::default(),
    )
    .unwrap()
}

#[test]
fn the_table_shows_what_there_is_and_what_a_process_gets() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    tree.add(&Nic::card("ib0", 2, 1));
    tree.add(&Nic { speed: "2500", operstate: "down", ..Nic::card("ib1", 3, 1) });
    tree.rdma("mlx5_1", "ib1", "4: ACTIVE");
    let found = found(&tree, Origin::Cached { age_ns: 90_000_000_000 });
    let decision = decide(&found, "tcp", bound(0));
    let expected = "interface  state            speed   MTU  NUMA  driver   RMA device  providers  addresses
lo         up                   -  9000     -  -        -           tcp        127.0.0.1/8
ib0        up          100 Gbit/s  9000     1  example  -           tcp        10.0.2.1/24
                                                                    ofi+tcp
ib1        no carrier  2.5 Gbit/s  9000     1  example  mlx5_1      tcp        10.0.3.1/24
                                                                    ofi+verbs

process   bound to NUMA node 0 of 2
choice    ib0 for tcp: the only one: none is on NUMA node 0
message   No network devices bound to client NUMA node 0.  Using response from NUMA 1
others    without an interface: ofi+shm
scan      cached, 90.0 s old; took 1.20 ms
";
    assert_eq!(super::super::table(&found, "tcp", bound(0), &decision, 100), expected);
}

#[test]
fn lines_keep_to_the_width_and_end_in_no_space() {
    let directory = tempfile::tempdir().unwrap();
    let tree = two_sockets(directory.path());
    let mut found = found(&tree, Origin::Scanned);
    found.messages.push("a message\u{1b}[31m that is rather long and has words enough to be broken".into());
    let decision = decide(&found, "tcp", bound(0));
    for width in [0, 40, 60, 80, 120] {
        let text = super::super::table(&found, "tcp", bound(0), &decision, width);
        for line in text.lines() {
            assert!(line.chars().count() <= width.max(40), "{width}: {line}");
            assert_eq!(line, line.trim_end());
            assert!(!line.contains(char::is_control));
        }
        for header in ["interface", "driver", "addresses", "10.0.5.1/24"] {
            assert!(text.contains(header), "{width}: {text}");
        }
    }
}

#[test]
fn programs_get_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let tree = two_sockets(directory.path());
    let found = found(&tree, Origin::Scanned);
    let decision = decide(&found, "ofi+verbs", bound(0));
    let json = report(&found, "ofi+verbs", bound(0), &decision);
    assert_eq!(json["interfaces"][1]["name"], "ib0");
    assert_eq!(json["interfaces"][1]["speed_bits_per_second"], 100_000_000_000u64);
    assert_eq!(json["interfaces"][1]["fabric_devices"][0]["name"], "mlx5_0");
    assert_eq!(json["choice"]["domain"], "mlx5_1");
    assert_eq!(json["origin"], "scanned");
    assert_eq!(json["place"]["node"], 0);
}

#[test]
fn a_missing_library_is_a_note() {
    let directory = tempfile::tempdir().unwrap();
    let scan = scan(&two_sockets(directory.path()));
    let found = Found { scan, origin: Origin::Scanned, messages: vec![DISABLED_MESSAGE.into()] };
    let unplaced = NumaPlace { node: None, is_bound: false, nodes: 0 };
    let text = super::super::table(&found, "null", unplaced, &Decision::default(), 120);
    for line in [
        "process   the kernel reports no NUMA nodes",
        "choice    no interface for null",
        "message   GetAttachInfo agent caching has been disabled",
        "note      libfabric's providers are unknown: libfabric.so.1 is not installed",
        "scan      new, took ",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
