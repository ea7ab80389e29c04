//! One suite for every driver of the object layer, gated by what the driver says it can do.

mod arrays;
mod harness;
mod keys;
mod plan;
mod protocol;
mod rig;
mod values;
mod verify;
mod vos;

use std::collections::BTreeSet;

use object::DRIVERS;
use object::plan::OBJECT_OPERATIONS;

#[test]
fn every_driver_file_is_registered() {
    let names = DRIVERS.iter().map(|entry| entry.name);
    testkit::assert_every_driver_file_is_registered(env!("CARGO_MANIFEST_DIR"), names);
}

#[test]
fn every_driver_has_a_harness() {
    let run: BTreeSet<_> = harness::everyone().map(|entry| entry.registration.name).collect();
    let registered: BTreeSet<_> = DRIVERS.iter().map(|entry| entry.name).collect();
    assert_eq!(run, registered);
}

#[test]
fn what_is_registered_makes_sense() {
    for entry in DRIVERS {
        let capabilities = &entry.capabilities;
        assert!(!entry.summary.is_empty() && !entry.summary.contains('\n'), "{}", entry.name);
        assert!(entry.target.starts_with(&format!("{}:", entry.name)), "{}", entry.target);
        assert!(capabilities.depth_max >= 1, "{}", entry.name);
        let known = |class: &&str| OBJECT_OPERATIONS.contains(class);
        assert!(!capabilities.classes.is_empty() && capabilities.classes.iter().all(known), "{}", entry.name);
    }
}

#[test]
fn targets_of_nobody_are_refused() {
    for target in ["", "vos", "nothing:here", "/dev/shm/x"] {
        let error = object::backend::driver_of(target).err().expect("a refusal");
        assert!(error.exit_code() == 2 && error.to_string().contains("vos:DIR"), "{error}");
    }
}
