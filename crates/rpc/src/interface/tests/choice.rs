use std::collections::BTreeMap;
use std::net::IpAddr;

use super::*;

fn want<'a>(provider: &'a str, place: NumaPlace, overrides: &'a Overrides) -> Want<'a> {
    Want { provider, place, targets: &[], overrides }
}

fn decide(scan: &FabricScan, provider: &str, place: NumaPlace, turns: &mut dyn Turns) -> Decision {
    choose(scan, &want(provider, place, &Overrides::default()), turns).unwrap()
}

fn toward(scan: &FabricScan, provider: &str, node: u32, targets: &[Target]) -> Decision {
    let overrides = Overrides::default();
    let want = Want { targets, ..want(provider, bound(node), &overrides) };
    choose(scan, &want, &mut Counted::default()).unwrap()
}

fn target(address: &str, interface: &str, is_local: bool) -> Target {
    Target { address: address.parse().unwrap(), interface: Some(interface.to_owned()), is_local }
}

fn name(decision: &Decision) -> &str {
    decision.choice.as_ref().map_or("", |choice| &choice.name)
}

#[test]
fn eight_processes_spread_over_the_cards_of_their_node() {
    let directory = tempfile::tempdir().unwrap();
    let scan = scan(&two_sockets(directory.path()));
    let mut turns = Counted::default();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    // Ranks alternate between the sockets: each socket has a counter of its own, or each would see every second turn.
    for rank in 0..8 {
        let decision = decide(&scan, "tcp", bound(rank % 2), &mut turns);
        let choice = decision.choice.unwrap();
        assert_eq!((choice.numa_node, decision.messages), (Some(rank % 2), vec![]));
        *counts.entry(choice.name).or_default() += 1;
    }
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        ["ib0", "ib1", "ib2", "ib3"].map(|name| (name.into(), 2))
    );
}

#[test]
fn a_choice_carries_the_facts_and_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let tree = two_sockets(directory.path());
    let choice = decide(&scan(&tree), "tcp", bound(1), &mut Counted::default()).choice.unwrap();
    assert_eq!((choice.name.as_str(), choice.domain.as_str()), ("ib2", "ib2"));
    assert_eq!(choice.why, "number 1 of 2 in turn on NUMA node 1, where this process is bound");
    assert_eq!(choice.address, Some([10, 0, 4, 1].into()));
    let plan = choice.plan();
    assert_eq!((plan.speed_bits_per_second, plan.mtu_bytes), (Some(100_000_000_000), Some(9000)));
    assert_eq!((plan.numa_node, plan.is_loopback, plan.chosen), (Some(1), false, choice.why));
}

#[test]
fn a_node_without_a_card_gets_the_others_with_the_agents_message() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    tree.add(&Nic::card("eth0", 2, 1));
    let decision = decide(&scan(&tree), "tcp", bound(0), &mut Counted::default());
    assert_eq!(name(&decision), "eth0");
    let message = "No network devices bound to client NUMA node 0.  Using response from NUMA 1";
    assert_eq!(decision.messages, [message]);
    assert_eq!(decision.choice.unwrap().why, "the only one: none is on NUMA node 0");
    assert_eq!(decide(&scan(&tree), "tcp", bound(1), &mut Counted::default()).messages, [""; 0]);
}

#[test]
fn of_several_other_nodes_all_get_their_turn() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    tree.add(&Nic::card("eth0", 2, 1));
    tree.add(&Nic::card("eth1", 3, 2));
    let (scan, mut turns) = (scan(&tree), Counted::default());
    let place = NumaPlace { node: Some(0), is_bound: true, nodes: 3 };
    let nodes: Vec<_> = (0..4)
        .map(|_| decide(&scan, "tcp", place, &mut turns))
        .map(|decision| decision.messages.concat().split("NUMA ").last().unwrap().to_owned())
        .collect();
    assert_eq!(nodes, ["1", "2", "1", "2"]);
}

#[test]
fn without_nodes_all_cards_take_turns() {
    let directory = tempfile::tempdir().unwrap();
    let (scan, mut turns) = (scan(&two_sockets(directory.path())), Counted::default());
    for place in [
        NumaPlace { node: None, is_bound: false, nodes: 0 },
        NumaPlace { node: Some(0), is_bound: true, nodes: 1 },
    ] {
        turns.0.clear();
        let names: Vec<_> = (0..5)
            .map(|_| decide(&scan, "tcp", place, &mut turns))
            .inspect(|decision| assert_eq!(decision.messages, [""; 0]))
            .map(|decision| name(&decision).to_owned())
            .collect();
        assert_eq!(names, ["ib0", "ib1", "ib2", "ib3", "ib0"]);
    }
}

#[test]
fn with_nothing_there_loopback_is_left_and_the_message() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    let only = decide(&scan(&tree), "tcp", bound(0), &mut Counted::default());
    assert_eq!((name(&only), only.messages.as_slice()), ("lo", [NONE_MESSAGE.to_owned()].as_slice()));
    assert!(only.choice.unwrap().is_loopback);
    let verbs = decide(&scan(&tree), "ofi+verbs", bound(0), &mut Counted::default());
    assert_eq!((verbs.choice, verbs.messages), (None, vec![NONE_MESSAGE.to_owned()]));
    let bare = scan_with(&tree, vec![], &|| Ok(vec![]));
    let none = decide(&bare, "tcp", bound(0), &mut Counted::default());
    assert_eq!((none.choice, none.messages), (None, vec![NONE_MESSAGE.to_owned()]));
}

#[test]
fn what_is_down_is_never_chosen() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    tree.add(&Nic { operstate: "down", ..Nic::card("pulled", 2, 0) });
    tree.add(&Nic { operstate: "down", flags: 0x1002, ..Nic::card("off", 3, 0) });
    tree.add(&Nic::card("far", 4, 1));
    let decision = decide(&scan(&tree), "tcp", bound(0), &mut Counted::default());
    assert_eq!((name(&decision), decision.messages.len()), ("far", 1));
}

#[test]
fn a_bond_stands_for_its_cards() {
    let directory = tempfile::tempdir().unwrap();
    let tree = two_sockets(directory.path());
    let bare = |name, index| Nic { numa_node: None, ..Nic::card(name, index, -1) };
    tree.add(&bare("bond0", 9));
    tree.stack("bond0", "bond", &["ib2", "ib3"]);
    tree.add(&bare("docker0", 10));
    tree.stack("docker0", "bridge", &[]);
    // Cards below a bond have no addresses of their own, those beside it neither here.
    let mut links = links(&tree);
    links.iter_mut().filter(|link| link.name.starts_with("ib")).for_each(|link| link.addresses.clear());
    let scan = scan_with(&tree, links, &|| Ok(vec![]));
    let near = decide(&scan, "tcp", bound(1), &mut Counted::default());
    assert_eq!((name(&near), near.messages.len()), ("bond0", 0));
    let far = decide(&scan, "tcp", bound(0), &mut Counted::default());
    assert_eq!((name(&far), far.messages.len()), ("bond0", 1));
}

#[test]
fn a_bond_over_both_sockets_is_on_no_single_node() {
    let directory = tempfile::tempdir().unwrap();
    let tree = two_sockets(directory.path());
    tree.add(&Nic { numa_node: None, ..Nic::card("bond0", 9, -1) });
    tree.stack("bond0", "bond", &["ib0", "ib2"]);
    let mut links = links(&tree);
    links.retain(|link| link.name != "ib1" && link.name != "ib3");
    links.iter_mut().filter(|link| link.name == "ib2").for_each(|link| link.flags = 0);
    let scan = scan_with(&tree, links, &|| Ok(vec![]));
    let decision = decide(&scan, "tcp", bound(1), &mut Counted::default());
    assert_eq!((name(&decision), decision.messages.as_slice()), ("bond0", [].as_slice()));
    assert!(decision.choice.unwrap().why.contains("not on a single node"));
}

#[test]
fn verbs_take_the_name_of_the_device() {
    let directory = tempfile::tempdir().unwrap();
    let tree = two_sockets(directory.path());
    tree.add(&Nic::card("eth0", 9, 1));
    tree.add(&Nic::card("idle", 10, 1));
    tree.rdma("mlx5_9", "idle", "1: DOWN");
    let without_libfabric = scan(&tree);
    let offers = || Ok(vec![facts("verbs;ofi_rxm", "mlx5_3"), facts("tcp", "eth0"), facts("shm", "shm")]);
    let with_libfabric = scan_with(&tree, links(&tree), &offers);
    let chosen = |scan, provider| {
        let choice = decide(scan, provider, bound(1), &mut Counted::default()).choice.unwrap();
        (choice.name, choice.domain)
    };
    let pair = |name: &str, domain: &str| (name.to_owned(), domain.to_owned());
    assert_eq!(chosen(&without_libfabric, "ofi+verbs;ofi_rxm"), pair("ib2", "mlx5_2"));
    assert_eq!(
        chosen(&with_libfabric, "ofi+verbs"),
        pair("ib3", "mlx5_3"),
        "the only one that libfabric offers"
    );
    assert_eq!(chosen(&with_libfabric, "ofi+tcp"), pair("eth0", "eth0"));
    assert_eq!(with_libfabric.other_providers, [facts("shm", "shm")]);
    let unknown = decide(&with_libfabric, "ofi+psm3", bound(1), &mut Counted::default());
    assert_eq!(unknown.messages, [NONE_MESSAGE]);
}

#[test]
fn providers_without_an_interface_get_none() {
    let directory = tempfile::tempdir().unwrap();
    let scan = scan(&two_sockets(directory.path()));
    for provider in ["ofi+shm", "null"] {
        assert_eq!(decide(&scan, provider, bound(0), &mut Counted::default()), Decision::default());
    }
}

#[test]
fn targets_decide_which_cards_reach_them() {
    let directory = tempfile::tempdir().unwrap();
    let tree = two_sockets(directory.path());
    let mut links = links(&tree);
    // ib1 and ib2, on different nodes, share a network.
    let shared = links[2].addresses[0];
    links[3].addresses = vec![InterfaceAddress { address: [10, 0, 3, 2].into(), ..shared }];
    let scan = scan_with(&tree, links, &|| Ok(vec![]));
    let near = toward(&scan, "tcp", 1, &[target("10.0.3.9", "ib1", false)]);
    let choice = near.choice.clone().unwrap();
    assert_eq!((choice.name.as_str(), choice.needs_binding), ("ib2", true), "the route would take ib1");
    assert_eq!(choice.address, Some([10, 0, 3, 2].into()));
    let same = toward(&scan, "tcp", 0, &[target("10.0.3.9", "ib1", false)]).choice.unwrap();
    assert_eq!((same.name.as_str(), same.needs_binding), ("ib1", false));
    let far = toward(&scan, "tcp", 0, &[target("192.0.2.1", "ib3", false)]);
    assert_eq!((name(&far), far.messages.len()), ("ib3", 1), "the route to it");
    let here = toward(&scan, "tcp", 0, &[target("10.0.2.1", "lo", true)]);
    assert_eq!((name(&here), here.messages.len()), ("lo", 0));
    let both = [target("10.0.2.1", "lo", true), target("10.0.2.9", "ib0", false)];
    assert_eq!(name(&toward(&scan, "tcp", 0, &both)), "ib0");
    let verbs = toward(&scan, "ofi+verbs", 0, &[target("10.0.2.1", "lo", true)]);
    assert_eq!(name(&verbs), "", "libfabric was asked and offers no verbs");
}

#[test]
fn uris_become_targets_once_each() {
    let found = targets([
        "tcp://127.0.0.1:31416",
        "ofi+tcp://127.0.0.1:1/",
        "[::1]:7",
        "no such host:x",
        "127.0.0.1",
    ]);
    let addresses: Vec<IpAddr> = found.iter().map(|target| target.address).collect();
    assert_eq!(addresses, ["127.0.0.1", "::1"].map(|text| text.parse::<IpAddr>().unwrap()));
    assert!(found.iter().all(|target| target.is_local));
}
