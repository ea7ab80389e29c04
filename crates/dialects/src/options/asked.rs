//! Specs of tests: made of options by name, and asked which they have.

use std::panic::AssertUnwindSafe;

use workload::layers::OwnSpecs;
use workload::options::{SHARED, apply};
use workload::spec::Spec;

/// A spec of a layer with these options.
pub(crate) fn made(layer: &str, options: &[(&str, &str)]) -> Spec {
    registry::register();
    with(Spec::of_layer(layer).expect(layer), options)
}

/// A spec with more options.
pub(crate) fn with(mut spec: Spec, options: &[(&str, &str)]) -> Spec {
    for (name, value) in options {
        apply(&mut spec, name, value).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    spec
}

/// Asserts that a spec has an option with this value: to say it again changes nothing.
#[track_caller]
pub(crate) fn assert_asks(spec: &Spec, name: &str, value: &str) {
    assert_eq!(with(spec.clone(), &[(name, value)]), *spec, "--{name} is not {value}");
}

/// Asserts that an option is not said: some value of it replaces what it replaces in a spec where nothing is said.
#[track_caller]
pub(crate) fn assert_silent(spec: &Spec, name: &str, value: &str) {
    let replaced = |spec: &Spec| difference(spec, &with(spec.clone(), &[(name, value)])).0;
    assert_eq!(replaced(spec), replaced(&fresh(spec)), "--{name} is said");
}

/// Asserts that an option which may be repeated is said with these values, and no others.
#[track_caller]
pub(crate) fn assert_asks_all(spec: &Spec, name: &str, values: &[&str]) {
    let options: Vec<_> = values.iter().map(|value| (name, *value)).collect();
    let said = difference(&fresh(spec), &with(fresh(spec), &options)).1;
    assert!(
        lines(spec).windows(said.len()).any(|part| part == said),
        "--{name} is not {values:?}: {spec:#?}"
    );
}

/// A spec of the same layer with nothing said.
fn fresh(spec: &Spec) -> Spec {
    Spec { layer: spec.layer, ..Spec::default() }
}

/// The spec with the struct of its layer's own options, also where none of them is said.
fn whole(spec: &Spec) -> Spec {
    let mut own = spec.layer.options.iter().copied().flatten();
    let switch = own.find(|option| {
        option.is_switch() && SHARED.iter().copied().flatten().all(|shared| shared.name != option.name)
    });
    match switch.filter(|_| spec.own == OwnSpecs::default()) {
        Some(switch) => with(spec.clone(), &[(switch.name, "false")]),
        None => spec.clone(),
    }
}

fn lines(spec: &Spec) -> Vec<String> {
    format!("{:#?}", whole(spec)).lines().map(str::to_owned).collect()
}

/// Lines of one spec that differ in another, and those of the other.
fn difference(one: &Spec, other: &Spec) -> (Vec<String>, Vec<String>) {
    let (one, other) = (lines(one), lines(other));
    assert_ne!(one, other, "the option is said with this value");
    let head = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let ends = one[head..].iter().rev().zip(other[head..].iter().rev());
    let tail = ends.take_while(|(one, other)| one == other).count();
    (one[head..one.len() - tail].to_vec(), other[head..other.len() - tail].to_vec())
}

#[test]
fn options_are_told_from_those_that_are_not_said() {
    let spec = made("object", &[("op", "put"), ("dkeys", "3"), ("s3-endpoint", "http://a,http://b")]);
    assert_asks(&spec, "dkeys", "3");
    assert_silent(&spec, "akeys", "1");
    assert_asks_all(&spec, "s3-endpoint", &["http://a", "http://b"]);
    for wrong in [
        (|spec| assert_asks(spec, "dkeys", "4")) as fn(&Spec),
        |spec| assert_asks(spec, "akeys", "1"),
        |spec| assert_silent(spec, "dkeys", "4"),
        |spec| assert_asks_all(spec, "s3-endpoint", &["http://a"]),
        |spec| assert_asks_all(spec, "s3-endpoint", &["http://b", "http://a"]),
    ] {
        assert!(std::panic::catch_unwind(AssertUnwindSafe(|| wrong(&spec))).is_err());
    }
}
