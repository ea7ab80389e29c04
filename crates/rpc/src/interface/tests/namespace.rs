//! The choice on this machine, and in a network namespace of the test's own.
#![allow(unsafe_code)]

use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

fn none() -> Result<Vec<ProviderFacts>, String> {
    Err("not asked".to_owned())
}

/// Children share the namespace of the thread that made them.
fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).status().is_ok_and(|status| status.success())
}

fn choice_for(uris: &[&str], cache: &Cache) -> Decision {
    let found = cache.find(&Machine::default(), &none).unwrap();
    let (targets, overrides) = (targets(uris.iter().copied()), Overrides::default());
    let place = host::topology::current_place();
    let want = Want { provider: "tcp", place, targets: &targets, overrides: &overrides };
    choose(&found.scan, &want, &mut cache.turns(true)).unwrap()
}

#[test]
fn loopback_is_chosen_for_this_machine() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(directory.path(), None);
    let choice = choice_for(&["tcp://127.0.0.1:1"], &cache).choice.unwrap();
    assert!(choice.is_loopback && !choice.needs_binding, "{choice:?}");
}

#[test]
fn a_pair_of_interfaces_is_chosen_and_its_change_is_seen() {
    let thread = std::thread::spawn(|| {
        // SAFETY: moves the calling thread alone, which ends with the test.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err("cannot make a network namespace here");
        }
        if !ip(&["link", "add", "near", "mtu", "1400", "type", "veth", "peer", "name", "far"]) {
            return Err("cannot make a pair of interfaces here (ip, package iproute2)");
        }
        pair();
        Ok(())
    });
    if let Err(why) = thread.join().expect("the test's thread") {
        eprintln!("skipped: a_pair_of_interfaces_is_chosen_and_its_change_is_seen: {why}");
    }
}

fn pair() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(directory.path(), None);
    assert!(ip(&["address", "add", "10.9.0.1/24", "dev", "near"]));
    assert!(["lo", "far", "near"].iter().all(|name| ip(&["link", "set", name, "up"])));
    let end = Instant::now() + Duration::from_secs(10);
    let choice = loop {
        let decision = choice_for(&["tcp://10.9.0.2:1"], &cache);
        if let Some(choice) = decision.choice.filter(|choice| choice.name == "near") {
            break choice;
        }
        assert!(Instant::now() < end, "{:?}", host::network::interfaces());
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!((choice.mtu_bytes, choice.speed_bits_per_second), (Some(1400), None));
    assert_eq!(choice.address, Some([10, 9, 0, 1].into()));
    assert!(!choice.needs_binding && choice.why.contains("in the network of 10.9.0.2"), "{choice:?}");
    assert!(ip(&["link", "set", "near", "mtu", "1300"]));
    let choice = choice_for(&["tcp://10.9.0.2:1"], &cache).choice.unwrap();
    assert_eq!(choice.mtu_bytes, Some(1300), "the kept scan no longer holds");
    assert!(choice_for(&["tcp://10.9.0.1:1"], &cache).choice.unwrap().is_loopback);
}
