//! What a spec of the tests asks for, by the names of options.

use workload::options::apply;
use workload::spec::Spec;

/// A spec of a layer with these options.
pub(crate) fn made(layer: &str, options: &[(&str, &str)]) -> Spec {
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
    let fresh = Spec { layer: spec.layer, ..Spec::default() };
    assert_eq!(replaced(spec, name, value), replaced(&fresh, name, value), "--{name} is said");
}

/// Lines of a spec that an option replaces.
fn replaced(spec: &Spec, name: &str, value: &str) -> Vec<String> {
    let lines = |spec: &Spec| format!("{spec:#?}").lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(spec), lines(&with(spec.clone(), &[(name, value)])));
    assert_ne!(before, after, "--{name} is {value} already");
    let same = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    let head = same(&mut before.iter().zip(&after));
    let tail = same(&mut before[head..].iter().rev().zip(after[head..].iter().rev()));
    before[head..before.len() - tail].to_vec()
}
