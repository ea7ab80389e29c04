//! Options of the layer, as typed.

use std::sync::LazyLock;

use workload::spec::Spec;

use crate::description::Scale;

/// Options of a load of an application; `None` means: not said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppSpec {
    /// `--app`: name of a built-in application, or path of a description.
    pub app: Option<String>,
    /// Values of its parameters, in the order in which they were given.
    pub settings: Vec<(String, String)>,
    /// `--scale`: share of the full size.
    pub scale: Option<Scale>,
    /// `--on`: targets side by side, as they were given.
    pub on: Vec<String>,
    /// `--passes`: passes over them, or over an application as it is and with a remedy.
    pub passes: Option<u32>,
    /// `--try`.
    pub try_remedy: bool,
    /// Options of the layer that the target is of, by name.
    pub target_options: Vec<(String, String)>,
    /// Why objects of format `auto` are raw: another of the targets side by side has no HDF5. Nobody types it.
    pub raw_because: Option<String>,
    /// `--no-verify`.
    pub no_verify: bool,
    /// `--memory`, `--gpu-staging`.
    pub memory: gpu::MemorySpec,
    /// Its stages run several times, each time on a target without their data, as the rows of a stack do.
    pub is_repeated: bool,
}

/// Passes where nothing is said.
const PASSES: u32 = 3;

impl AppSpec {
    /// Passes over what is measured in turns.
    #[must_use]
    pub fn passes(&self) -> u32 {
        self.passes.unwrap_or(PASSES)
    }
}

/// Options of the layer in a spec.
#[must_use]
pub(crate) fn of(spec: &Spec) -> &AppSpec {
    static NOTHING_SAID: LazyLock<AppSpec> = LazyLock::new(AppSpec::default);
    spec.own.get().unwrap_or(&NOTHING_SAID)
}
