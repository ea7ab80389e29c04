mod made_up;
mod namespace;
mod parsing;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use made_up::{Nic, Tree};

use super::*;

fn read(tree: &Tree) -> Vec<Interface> {
    interfaces_in(&tree.class(), &links_of_tree(&tree.class()))
}

fn named<'a>(interfaces: &'a [Interface], name: &str) -> &'a Interface {
    interfaces.iter().find(|interface| interface.name == name).unwrap()
}

#[test]
fn a_card_tells_all_of_itself() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    tree.add(&Nic::card("ib0", 2, 1));
    tree.rdma("mlx5_0", "ib0", "4: ACTIVE");
    let found = read(&tree);
    let card = named(&found, "ib0");
    assert_eq!((card.kind, card.state, card.index), (InterfaceKind::Physical, LinkState::Up, 2));
    assert_eq!((card.speed_bits_per_second, card.mtu_bytes), (Some(100_000_000_000), Some(9000)));
    assert_eq!((card.numa_node, card.driver.as_deref()), (Some(1), Some("example")));
    let port = FabricPort {
        number: 1,
        link_layer: Some("InfiniBand".into()),
        is_active: true,
        rate_bits_per_second: Some(100_000_000_000),
    };
    let device = FabricDevice {
        name: "mlx5_0".into(),
        class: FabricClass::Rdma,
        ports: vec![port],
        interfaces: vec!["ib0".into()],
    };
    assert!(device.is_active());
    assert_eq!(card.fabric_devices, [device]);
    let loopback = named(&found, "lo");
    assert_eq!((loopback.kind, loopback.state), (InterfaceKind::Loopback, LinkState::Up));
    assert_eq!((loopback.numa_node, loopback.speed_bits_per_second), (None, None));
    assert!(!loopback.is_hardware_backed && !loopback.is_notable() && card.is_notable());
}

#[test]
fn what_is_unknown_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    for (index, speed) in ["-1", "4294967295", "0", "", "fast"].into_iter().enumerate() {
        tree.add(&Nic { speed, ..Nic::card(["a", "b", "c", "d", "e"][index], index as u32 + 2, -1) });
    }
    for interface in read(&tree) {
        assert_eq!((interface.speed_bits_per_second, interface.numa_node), (None, None), "{interface:?}");
    }
}

#[test]
fn states_follow_switch_and_carrier() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    tree.add(&Nic { operstate: "down", ..Nic::card("pulled", 2, 0) });
    tree.add(&Nic { operstate: "down", flags: 0x1002, ..Nic::card("off", 3, 0) });
    tree.add(&Nic { operstate: "unknown", ..Nic::card("plain", 4, 0) });
    tree.add(&Nic { operstate: "dormant", ..Nic::card("waits", 5, 0) });
    let found = read(&tree);
    assert_eq!(named(&found, "pulled").state, LinkState::NoCarrier);
    assert_eq!(named(&found, "off").state, LinkState::Down);
    assert_eq!(named(&found, "plain").state, LinkState::Up);
    assert_eq!(named(&found, "waits").state, LinkState::NoCarrier);
}

#[test]
fn stacked_interfaces_have_the_node_of_those_below() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    let bare = |name, index| Nic { numa_node: None, ..Nic::card(name, index, -1) };
    for (index, node) in [(2, 1), (3, 1), (4, 0)] {
        tree.add(&Nic::card(["near0", "near1", "far"][index as usize - 2], index, node));
    }
    tree.add(&bare("bond0", 5));
    tree.stack("bond0", "bond", &["near0", "near1"]);
    tree.add(&bare("bond0.7", 6));
    tree.stack("bond0.7", "vlan", &["bond0"]);
    tree.add(&bare("bond1", 7));
    tree.stack("bond1", "bond", &["near0", "far"]);
    tree.add(&bare("br0", 8));
    tree.stack("br0", "bridge", &[]);
    let found = read(&tree);
    let facts = |name| {
        let interface = named(&found, name);
        (interface.kind, interface.numa_node, interface.is_hardware_backed)
    };
    assert_eq!(facts("bond0"), (InterfaceKind::Bond, Some(1), true));
    assert_eq!(facts("bond0.7"), (InterfaceKind::Vlan, Some(1), true));
    assert_eq!(facts("bond1"), (InterfaceKind::Bond, None, true));
    assert_eq!(facts("br0"), (InterfaceKind::Bridge, None, false));
    assert_eq!(named(&found, "bond0").lower, ["near0", "near1"]);
    assert_eq!(named(&found, "br0").nominal_bits_per_second(), None);
    assert_eq!(named(&found, "bond0").nominal_bits_per_second(), Some(100_000_000_000));
}

#[test]
fn rdma_devices_go_to_their_interfaces() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    tree.add(&Nic { speed: "-1", ..Nic::card("ens1", 2, 0) });
    tree.add(&Nic::card("ens2", 3, 0));
    tree.rdma("mlx5_0", "ens1", "4: ACTIVE");
    tree.rdma("mlx5_1", "ens2", "1: DOWN");
    // One in software, one of a bond, and Slingshot.
    tree.write("class/infiniband/rxe0/parent", "ens2");
    tree.write("class/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/0", "ens1");
    tree.write("class/cxi/cxi0/device/net/ens2/ifindex", "3");
    let found = read(&tree);
    let names = |name| {
        named(&found, name).fabric_devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(names("ens1"), ["mlx5_0", "mlx5_bond_0"]);
    assert_eq!(names("ens2"), ["mlx5_1", "rxe0", "cxi0"]);
    assert!(!named(&found, "ens2").fabric_devices[0].is_active());
    assert_eq!(named(&found, "ens2").fabric_devices[2].class, FabricClass::Cxi);
    assert_eq!(named(&found, "ens1").nominal_bits_per_second(), Some(100_000_000_000), "the port's");
}

#[test]
fn of_two_ports_each_interface_has_its_own() {
    let port =
        |number| FabricPort { number, link_layer: None, is_active: number == 2, rate_bits_per_second: None };
    let device = FabricDevice {
        name: "mlx4_0".into(),
        class: FabricClass::Rdma,
        ports: vec![port(1), port(2)],
        interfaces: vec!["ib0".into(), "ib1".into()],
    };
    let ports =
        |name, dev_port| fabric::of_interface(std::slice::from_ref(&device), name, dev_port)[0].ports.clone();
    assert_eq!(ports("ib0", Some(0)), [port(1)]);
    assert_eq!(ports("ib1", Some(1)), [port(2)]);
    assert_eq!(ports("ib1", None).len(), 2);
    assert!(fabric::of_interface(&[device], "eth0", None).is_empty());
}

#[test]
fn a_tree_of_another_namespace_is_not_believed() {
    let directory = tempfile::tempdir().unwrap();
    let tree = Tree::new(directory.path());
    tree.add(&Nic::card("eth0", 2, 1));
    let mut links = links_of_tree(&tree.class());
    links[1].index = 77;
    links[1].driver = Some("veth".into());
    let found = interfaces_in(&tree.class(), &links);
    let interface = named(&found, "eth0");
    assert_eq!((interface.kind, interface.numa_node), (InterfaceKind::Virtual, None));
    assert_eq!((interface.speed_bits_per_second, interface.driver.as_deref()), (None, Some("veth")));
}

#[test]
fn this_machine_has_loopback() {
    let found = interfaces().unwrap();
    let Some(loopback) = found.iter().find(|interface| interface.is_loopback()) else {
        panic!("no loopback in {found:?}");
    };
    assert!(loopback.mtu_bytes >= Some(1500), "{loopback:?}");
    assert_eq!(loopback.nominal_bits_per_second(), None);
    assert!(counters().contains_key(&loopback.name));
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Interface>>(&json).unwrap(), found);
}

#[test]
fn own_addresses_are_reached_over_loopback() {
    let route = route_to(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    assert_eq!((route.source, route.is_local), (IpAddr::V4(Ipv4Addr::LOCALHOST), true));
    let found = interfaces().unwrap();
    let loopback = found.iter().find(|interface| interface.is_loopback()).unwrap();
    assert_eq!(route.interface.as_ref(), Some(&loopback.name));
    assert_eq!(route.path_mtu_bytes, loopback.mtu_bytes.map(|mtu| mtu.min(65_535)).or(route.path_mtu_bytes));
    let others = found.iter().filter(|interface| interface.is_up() && !interface.is_loopback());
    for address in
        others.flat_map(|interface| &interface.addresses).filter(|address| address.address.is_ipv4())
    {
        let route = route_to(SocketAddr::new(address.address, 0)).unwrap();
        assert!(route.is_local && route.interface.as_ref() == Some(&loopback.name), "{address}: {route:?}");
    }
}

#[test]
fn traffic_shows_in_the_counters() {
    let before = counters();
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    receiver.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    sender.send_to(&[0; 1000], receiver.local_addr().unwrap()).unwrap();
    assert_eq!(receiver.recv(&mut [0; 1024]).unwrap(), 1000);
    let sent = counters()["lo"].since(&before["lo"]);
    assert!(sent.sent_bytes >= 1000 && sent.received_packets >= 1, "{sent:?}");
    assert_eq!(path_mtu_bytes(&sender), None, "not connected");
}
