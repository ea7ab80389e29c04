//! Options of the layer, as typed.

use std::sync::LazyLock;

use workload::spec::Spec;

/// Options of a load of an application; `None` means: not said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppSpec {
    /// `--app`: name of a built-in application, or path of a description.
    pub app: Option<String>,
    /// Values of its parameters, in the order in which they were given.
    pub settings: Vec<(String, String)>,
    /// `--on`: targets side by side, as they were given.
    pub on: Vec<String>,
    /// `--passes`: passes over them.
    pub passes: Option<u32>,
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

/// Options of the layer in a spec.
#[must_use]
pub(crate) fn of(spec: &Spec) -> &AppSpec {
    static NOTHING_SAID: LazyLock<AppSpec> = LazyLock::new(AppSpec::default);
    spec.own.get().unwrap_or(&NOTHING_SAID)
}
