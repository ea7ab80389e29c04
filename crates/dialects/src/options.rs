//! Options of a load by name, with their values as a job file has them.

#[cfg(test)]
pub(crate) mod asked;

use std::fmt::Display;

use units::ParseError;
use workload::options;
use workload::spec::Spec;

/// An option by its name, and its value; none where it is not said.
pub(crate) type Said = (&'static str, Option<String>);

/// An option that is said.
pub(crate) fn said(name: &'static str, value: impl Display) -> Said {
    (name, Some(value.to_string()))
}

/// An option that is said where there is a value.
pub(crate) fn said_if(name: &'static str, value: Option<impl Display>) -> Said {
    (name, value.map(|value| value.to_string()))
}

/// A switch that is on or not said.
pub(crate) fn switch(name: &'static str, is_on: bool) -> Said {
    (name, is_on.then(|| "true".to_owned()))
}

/// Says options of a spec.
///
/// # Errors
/// An option that its layer does not have, or a bad value.
pub(crate) fn say(spec: &mut Spec, said: impl IntoIterator<Item = Said>) -> Result<(), ParseError> {
    let mut given = said.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.try_for_each(|(name, value)| options::apply(spec, name, &value))
}
