//! The layers of this build, and those of a run.

use std::sync::{PoisonError, RwLock};

use driver::Error;
use workload::layers::Layer;

use crate::measured::{LayerRun, Measured, RunContext};

static ADDED: RwLock<Vec<&'static dyn Measured>> = RwLock::new(Vec::new());

/// Adds a layer: its command, its options in job files and its plans in records are there from now on. One that is there already stays.
pub fn add(layer: &'static dyn Measured) {
    Layer::add(layer.definition());
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if added.iter().all(|known| known.definition().name != layer.definition().name) {
        added.push(layer);
    }
}

/// The layers of this build, in the order in which they were added.
#[must_use]
pub fn all() -> Vec<&'static dyn Measured> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The layer of this name.
///
/// # Errors
/// Where this build has none.
pub fn find(name: &str) -> Result<&'static dyn Measured, Error> {
    all()
        .into_iter()
        .find(|layer| layer.definition().name == name)
        .ok_or_else(|| Error::usage("plan", "this build does not measure the layer").with("layer", name))
}

/// The layers of one run, each from its first phase on.
pub struct Runs {
    context: RunContext,
    runs: Vec<(&'static str, Box<dyn LayerRun>)>,
}

impl Runs {
    /// No layer so far.
    #[must_use]
    pub fn new(context: RunContext) -> Self {
        Self { context, runs: Vec::new() }
    }

    /// Surroundings of the run.
    #[must_use]
    pub fn context(&self) -> &RunContext {
        &self.context
    }

    /// The state of the layer of this name.
    ///
    /// # Errors
    /// Where this build has no such layer.
    pub fn of(&mut self, name: &str) -> Result<&mut dyn LayerRun, Error> {
        let at = match self.runs.iter().position(|(known, _)| *known == name) {
            Some(at) => at,
            None => {
                let layer = find(name)?;
                self.runs.push((layer.definition().name, layer.begin(&self.context)));
                self.runs.len() - 1
            }
        };
        Ok(&mut *self.runs[at].1)
    }

    /// Takes over the state of a layer that was begun already.
    pub fn put(&mut self, name: &'static str, run: Box<dyn LayerRun>) {
        self.runs.retain(|(known, _)| *known != name);
        self.runs.push((name, run));
    }

    /// All of them, with the names of their layers.
    pub fn all(&mut self) -> impl Iterator<Item = (&'static str, &mut (dyn LayerRun + 'static))> {
        self.runs.iter_mut().map(|(name, run)| (*name, &mut **run))
    }
}
