use super::*;

fn decide(scan: &FabricScan, provider: &str, overrides: &Overrides) -> Result<Decision, driver::Error> {
    choose(scan, &Want { provider, place: bound(0), targets: &[], overrides }, &mut Counted::default())
}

fn options(interface: Option<&str>, domain: Option<&str>) -> Overrides {
    Overrides::from_parts(interface, domain, |_| None)
}

fn variables(interface: &'static str, domain: &'static str) -> Overrides {
    Overrides::from_parts(None, None, |name| match name {
        "OFI_INTERFACE" => Some(interface.to_owned()),
        "OFI_DOMAIN" => Some(domain.to_owned()),
        _ => None,
    })
}

#[test]
fn an_option_beats_the_environment() {
    let environment = |name: &str| (name == "OFI_INTERFACE").then(|| "ib3".to_owned());
    let both = Overrides::from_parts(Some("ib1"), None, environment);
    assert_eq!(both.interface.unwrap().by, "--interface");
    let alone = Overrides::from_parts(None, None, environment).interface.unwrap();
    assert_eq!((alone.name.as_str(), alone.by, alone.is_option), ("ib3", "OFI_INTERFACE", false));
    assert_eq!(variables("", ""), Overrides::default());
}

#[test]
fn what_was_asked_for_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let scan = scan(&two_sockets(directory.path()));
    let chosen = |provider, overrides: &Overrides| {
        let choice = decide(&scan, provider, overrides).unwrap().choice.unwrap();
        (choice.name, choice.domain, choice.why)
    };
    let found = |name: &str, domain: &str, why: &str| (name.to_owned(), domain.to_owned(), why.to_owned());
    let interface = options(Some("ib3"), None);
    assert_eq!(chosen("tcp", &interface), found("ib3", "ib3", "requested by --interface"));
    assert_eq!(chosen("ofi+verbs", &interface), found("ib3", "mlx5_3", "requested by --interface"));
    let domain = options(None, Some("mlx5_2"));
    assert_eq!(chosen("ofi+verbs", &domain), found("ib2", "mlx5_2", "requested by --domain=mlx5_2"));
    let both = variables("ib1", "mlx5_1-rdm");
    assert_eq!(chosen("ofi+verbs", &both), found("ib1", "mlx5_1-rdm", "requested by OFI_INTERFACE"));
    assert_eq!(chosen("tcp", &options(Some("lo"), None)).0, "lo");
    let bound = decide(&scan, "tcp", &interface).unwrap().choice.unwrap();
    assert!(bound.needs_binding);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let directory = tempfile::tempdir().unwrap();
    let tree = two_sockets(directory.path());
    tree.add(&Nic { operstate: "down", ..Nic::card("pulled", 9, 0) });
    tree.add(&Nic::card("eth0", 10, 0));
    let scan = scan(&tree);
    let refused = |provider, overrides: &Overrides| {
        let error = decide(&scan, provider, overrides).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    assert_eq!(
        refused("tcp", &options(Some("eth7"), None)),
        "choice of interface: --interface eth7: the interface does not exist; interfaces that are up and support tcp: lo, ib0, ib1, ib2, ib3, eth0"
    );
    assert_eq!(
        refused("ofi+verbs", &variables("pulled", "")),
        "choice of interface: OFI_INTERFACE pulled: it is down; interfaces that are up and support ofi+verbs: ib0, ib1, ib2, ib3"
    );
    assert!(refused("ofi+verbs", &options(Some("eth0"), None)).contains("lacks an active RDMA device"));
    assert!(
        refused("ofi+cxi", &options(Some("eth0"), None))
            .contains("no interface is up and has a Slingshot device")
    );
    assert!(
        refused("ofi+verbs", &options(None, Some("mlx5_8")))
            .contains("--domain mlx5_8: no usable interface has this domain")
    );
    let crossed = refused("ofi+verbs", &options(Some("ib0"), Some("mlx5_1")));
    assert!(
        crossed.contains("not a domain of ib0") && crossed.ends_with("its domain is mlx5_0"),
        "{crossed}"
    );
    assert!(refused("tcp", &options(None, Some("mlx5_0"))).contains("--domain mlx5_0"));
    assert!(refused("ofi+shm", &options(Some("ib0"), None)).contains("does not use an interface"));
}

#[test]
fn variables_meant_for_others_are_named_and_left_aside() {
    let directory = tempfile::tempdir().unwrap();
    let scan = scan(&two_sockets(directory.path()));
    let sockets = decide(&scan, "tcp", &variables("ib1", "mlx5_1")).unwrap();
    assert_eq!(sockets.choice.unwrap().domain, "ib1");
    assert_eq!(
        sockets.messages,
        ["OFI_DOMAIN=mlx5_1 has no effect: the domain of tcp is the interface's name"]
    );
    let shared = decide(&scan, "ofi+shm", &variables("ib1", "")).unwrap();
    assert_eq!(shared.messages, ["OFI_INTERFACE=ib1 has no effect: ofi+shm does not use an interface"]);
    let overrides =
        Overrides::from_parts(Some("ib0"), None, |name| (name == "OFI_DOMAIN").then(|| "mlx5_1".to_owned()));
    let crossed = decide(&scan, "ofi+verbs", &overrides).unwrap();
    assert_eq!(crossed.choice.unwrap().domain, "mlx5_0");
    assert_eq!(crossed.messages, ["OFI_DOMAIN=mlx5_1 has no effect: --interface ib0 has another domain"]);
}

#[test]
fn sockets_to_this_machine_are_loopback_whatever_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let scan = scan(&two_sockets(directory.path()));
    let overrides = options(Some("ib3"), None);
    let local = Target { address: [10, 0, 2, 1].into(), interface: Some("lo".into()), is_local: true };
    let remote = Target { address: [10, 0, 2, 9].into(), interface: Some("ib0".into()), is_local: false };
    let decide = |provider, targets: &[Target]| {
        let want = Want { provider, place: bound(0), targets, overrides: &overrides };
        choose(&scan, &want, &mut Counted::default()).unwrap()
    };
    let here = decide("tcp", std::slice::from_ref(&local));
    let choice = here.choice.unwrap();
    assert!(choice.is_loopback && !choice.needs_binding && choice.speed_bits_per_second.is_none());
    assert_eq!(here.messages, ["The targets are on this machine: no data uses ib3"]);
    let verbs = decide("ofi+verbs", std::slice::from_ref(&local));
    assert!(!verbs.choice.unwrap().is_loopback && verbs.messages.is_empty(), "a card sends to itself");
    let mixed = decide("tcp", &[local, remote.clone()]).choice.unwrap();
    assert!(!mixed.is_loopback && !mixed.needs_binding);
    assert!(decide("tcp", &[remote]).choice.unwrap().needs_binding);
}
