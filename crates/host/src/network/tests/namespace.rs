//! Against a pair of interfaces in a network namespace of the test's own.
#![allow(unsafe_code)]

use std::process::Command;
use std::time::{Duration, Instant};

use super::super::*;

/// Runs `body` on a thread in a network namespace of its own; says by name what it skips where that is not allowed.
fn in_namespace(test: &str, body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        // SAFETY: moves the calling thread alone, which ends with the test.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err("cannot make a network namespace here");
        }
        if !ip(&["link", "add", "near", "mtu", "1400", "type", "veth", "peer", "name", "far", "mtu", "9000"])
        {
            return Err("cannot make a pair of interfaces here (ip, package iproute2)");
        }
        body();
        Ok(())
    });
    if let Err(why) = thread.join().expect("the test's thread") {
        eprintln!("skipped: {test}: {why}");
    }
}

/// Children share the namespace of the thread that made them.
fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).status().is_ok_and(|status| status.success())
}

/// The interface once it is in that state: the kernel tells of carriers with a delay.
fn once_in(state: LinkState, name: &str) -> Interface {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let found = interfaces().unwrap().into_iter().find(|interface| interface.name == name).unwrap();
        if found.state == state {
            return found;
        }
        assert!(Instant::now() < end, "{found:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_pair_is_seen_with_its_mtu() {
    in_namespace("a_pair_is_seen_with_its_mtu", || {
        let outside =
            std::fs::metadata("/proc/self/ns/net").map(|found| std::os::unix::fs::MetadataExt::ino(&found));
        assert_ne!(outside.ok(), Some(namespace()));
        let before = interfaces().unwrap();
        let names: Vec<_> = before.iter().map(|interface| interface.name.as_str()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(before.iter().all(|interface| interface.state == LinkState::Down));
        assert!(ip(&["link", "set", "lo", "up"]) && ip(&["link", "set", "far", "up"]));
        assert!(ip(&["link", "set", "near", "up"]) && ip(&["address", "add", "10.9.0.1/24", "dev", "near"]));
        let (near, far) = (once_in(LinkState::Up, "near"), once_in(LinkState::Up, "far"));
        assert_eq!(near.kind, InterfaceKind::Virtual);
        assert_eq!((near.mtu_bytes, far.mtu_bytes), (Some(1400), Some(9000)));
        assert_eq!((near.driver.as_deref(), near.is_hardware_backed), (Some("veth"), false));
        assert!(near.addresses.iter().any(|address| address.to_string() == "10.9.0.1/24"), "{near:?}");
        assert!(counters().contains_key("near"));

        let route = route_to("10.9.0.2:7".parse().unwrap()).unwrap();
        assert_eq!((route.interface.as_deref(), route.is_local), (Some("near"), false));
        assert_eq!(route.path_mtu_bytes, Some(1400));
        let own = route_to("10.9.0.1:7".parse().unwrap()).unwrap();
        assert_eq!((own.interface.as_deref(), own.is_local), (Some("lo"), true));
        let unreachable = route_to("192.0.2.1:7".parse().unwrap()).unwrap_err();
        assert_eq!(unreachable.raw_os_error(), Some(libc::ENETUNREACH));

        assert!(ip(&["link", "set", "far", "down"]));
        once_in(LinkState::NoCarrier, "near");
    });
}
