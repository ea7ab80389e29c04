//! A spec on its way to another process of the same version: options by name, as they were said, and what else it holds.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::ParseError;

use crate::options;
use crate::spec::Spec;

/// An option as it was said.
#[derive(Clone, Serialize, Deserialize)]
struct SaidOption {
    name: String,
    value: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_secret: bool,
}

/// Options of a spec as they were said, in order. They are no part of what the spec asks for: specs that ask for the same are equal
/// however it was said. Values may be secrets and are never printed.
#[derive(Clone, Default)]
pub struct SaidOptions(Vec<SaidOption>);

impl SaidOptions {
    /// Names of the options.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|said| said.name.as_str())
    }

    /// Changes the values of an option.
    pub fn change(&mut self, name: &str, change: impl FnMut(&mut String)) {
        self.0.iter_mut().filter(|said| said.name == name).map(|said| &mut said.value).for_each(change);
    }

    /// Forgets an option.
    pub fn leave_out(&mut self, name: &str) {
        self.0.retain(|said| said.name != name);
    }

    pub(crate) fn note(&mut self, name: &str, value: &str, is_secret: bool) {
        self.0.push(SaidOption { name: name.to_owned(), value: value.to_owned(), is_secret });
    }
}

impl PartialEq for SaidOptions {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for SaidOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SaidOptions(..)")
    }
}

/// A spec as it travels. Options of the layer alone travel as they were said, and the other side reads them by its own tables; those that
/// several layers have travel as they are.
#[derive(Clone, Serialize, Deserialize)]
pub struct ShippedSpec {
    layer: String,
    said: Vec<SaidOption>,
    common: Spec,
}

impl fmt::Debug for ShippedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShippedSpec").field("layer", &self.layer).finish_non_exhaustive()
    }
}

impl ShippedSpec {
    /// The spec, ready to travel. Options that lead to the hosts stay behind.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        let is_of_leader = |said: &&SaidOption| options::HOSTS.iter().any(|option| option.name == said.name);
        let said = spec.said.0.iter().filter(|said| said.is_secret || !is_of_leader(said));
        Self { layer: spec.layer.name.to_owned(), said: said.cloned().collect(), common: spec.clone() }
    }

    /// Name of its layer.
    #[must_use]
    pub fn layer(&self) -> &str {
        &self.layer
    }

    /// Its targets.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        &self.common.targets
    }

    /// Its options as they were said, with their names.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.said.iter().map(|said| (said.name.as_str(), said.value.as_str()))
    }

    /// The spec again.
    ///
    /// # Errors
    /// A layer or an option that this build does not have.
    pub fn read(self) -> Result<Spec, ParseError> {
        let mut spec = Spec::of_layer(&self.layer)?;
        for SaidOption { name, value, is_secret } in &self.said {
            if *is_secret {
                options::apply_secret(&mut spec, name, value)?;
            } else {
                options::apply(&mut spec, name, value)?;
            }
        }
        let Spec { layer, own, said, .. } = spec;
        Ok(Spec { layer, own, said, ..self.common })
    }
}
