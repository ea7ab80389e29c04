//! Layers that bring all of their own: from a spec to phases, and from phases to their part of a stage.

use std::sync::{PoisonError, RwLock};

use driver::{Capabilities, Error};
use workload::layers::{Layer, LayerDef};
use workload::plan::PhasePlan;
use workload::spec::Spec;

use crate::stage::{Part, StageContext};

/// A phase that is planned, with the capabilities of its driver.
pub type Phase = (PhasePlan, Capabilities);

/// A driver as `strata list` shows it: name, capabilities, one line about it.
pub type DriverEntry = (&'static str, Capabilities, &'static str);

/// A layer that plans and runs its phases by itself.
pub trait Measured: Sync {
    /// Its entry in the list of layers: name, command, options, how its plans are read.
    fn definition(&self) -> &'static LayerDef;

    /// Its drivers.
    fn drivers(&self) -> Vec<DriverEntry>;

    /// Plans the phases of a spec, in their order. `seed` gives the seed of the next one. Nothing is touched.
    ///
    /// # Errors
    /// Bad usage, with what would be accepted.
    fn phases(&self, spec: &Spec, seed: &mut dyn FnMut() -> u64) -> Result<Vec<Phase>, Error>;

    /// Gets phases that run at the same time ready.
    ///
    /// # Errors
    /// When they cannot begin.
    fn part<'a>(
        &self,
        plans: Vec<&'a PhasePlan>,
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error>;
}

static ADDED: RwLock<Vec<&'static dyn Measured>> = RwLock::new(Vec::new());

/// Adds a layer: its command, its options in job files and its plans in records are there from now on.
pub fn add(layer: &'static dyn Measured) {
    Layer::add(layer.definition());
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push(layer);
}

/// The layers that were added.
#[must_use]
pub fn all() -> Vec<&'static dyn Measured> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The layer of this name among those that were added.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Measured> {
    all().into_iter().find(|layer| layer.definition().name == name)
}
