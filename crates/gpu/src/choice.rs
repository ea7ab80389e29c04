//! Where the buffers of a load lie, as it is typed and as a plan has it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::ParseError;

/// Largest number of a device.
const DEVICE_MAX: u32 = 255;

/// Memory that the buffers of a load lie in (`--memory`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemoryChoice {
    /// Memory of the process.
    #[default]
    Host,
    /// The same, registered with the driver of the GPU: its pages stay where they are, and devices reach them.
    Pinned,
    /// Memory of these devices, by their numbers; all of them where none is named.
    Gpu(Vec<u32>),
}

impl FromStr for MemoryChoice {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new("memory of buffers", text, "host, pinned, gpu, or gpu:0,1");
        match text {
            "host" => return Ok(Self::Host),
            "pinned" => return Ok(Self::Pinned),
            "gpu" => return Ok(Self::Gpu(Vec::new())),
            _ => {}
        }
        let list = text.strip_prefix("gpu:").filter(|list| !list.is_empty()).ok_or_else(refused)?;
        let number =
            |word: &str| word.trim().parse().ok().filter(|number| *number <= DEVICE_MAX).ok_or_else(refused);
        list.split(',').map(number).collect::<Result<_, _>>().map(Self::Gpu)
    }
}

impl fmt::Display for MemoryChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Pinned => f.write_str("pinned"),
            Self::Gpu(devices) if devices.is_empty() => f.write_str("gpu"),
            Self::Gpu(devices) => {
                let numbers: Vec<_> = devices.iter().map(u32::to_string).collect();
                write!(f, "gpu:{}", numbers.join(","))
            }
        }
    }
}

/// The way between storage and a device (`--gpu-path`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GpuPath {
    /// Through a buffer of the host: I/O there, and a copy within the latency of the operation.
    #[default]
    Staged,
    /// GPUDirect Storage, by libcufile: one request at a time.
    Cufile,
    /// The same with requests in flight beside each other, in batches.
    CufileBatch,
    /// The same with requests as work of streams of the device.
    CufileStream,
    /// RDMA between memory of the device and a peer's, by libfabric (`FI_HMEM`).
    Rdma,
}

impl GpuPath {
    /// Its name as it is typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Cufile => "cufile",
            Self::CufileBatch => "cufile-batch",
            Self::CufileStream => "cufile-stream",
            Self::Rdma => "rdma",
        }
    }

    /// It with its name, for a list of what an option takes.
    #[must_use]
    pub const fn named(self) -> (&'static str, Self) {
        (self.name(), self)
    }

    /// Whether it is GPUDirect Storage.
    #[must_use]
    pub fn is_cufile(self) -> bool {
        matches!(self, Self::Cufile | Self::CufileBatch | Self::CufileStream)
    }
}

/// Memory that a staged copy goes through (`--gpu-staging`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Staging {
    /// Registered with the driver of the GPU.
    #[default]
    Pinned,
    /// Memory of the process as it is: the driver copies it once more.
    Pageable,
}

impl Staging {
    /// Both with their names.
    pub const NAMED: [(&'static str, Self); 2] = [("pinned", Self::Pinned), ("pageable", Self::Pageable)];
}

/// Whom devices are dealt out to (`--gpu-per`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GpuPer {
    /// Each worker gets the next one.
    #[default]
    Worker,
    /// Each host of a run on several gets the next one for all of its workers.
    Host,
}

impl GpuPer {
    /// Both with their names.
    pub const NAMED: [(&'static str, Self); 2] = [("worker", Self::Worker), ("host", Self::Host)];
}

/// Memory of the buffers of a load, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MemoryPlan {
    /// Memory of the process.
    #[default]
    Host,
    /// The same, registered with the driver of the GPU.
    Pinned,
    /// Memory of devices.
    Gpu(GpuPlan),
}

impl MemoryPlan {
    /// Whether it is memory of the process and nothing more.
    #[must_use]
    pub fn is_host(&self) -> bool {
        *self == Self::Host
    }

    /// Its devices, where it is memory of devices.
    #[must_use]
    pub fn gpu(&self) -> Option<&GpuPlan> {
        match self {
            Self::Gpu(plan) => Some(plan),
            _ => None,
        }
    }

    /// The memory in words for a table; none where it is memory of the process.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        match self {
            Self::Host => None,
            Self::Pinned => Some("pinned memory".to_owned()),
            Self::Gpu(plan) => Some(format!("GPU memory, {}", plan.words())),
        }
    }
}

/// Options of the memory of buffers, as typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is the option of the same name")]
pub struct MemorySpec {
    pub memory: Option<MemoryChoice>,
    pub gpu_path: Option<GpuPath>,
    pub gpu_staging: Option<Staging>,
    pub gpu_register: Option<bool>,
    pub gpu_per: Option<GpuPer>,
}

impl MemorySpec {
    /// The plan; `forced_path` is the one that the driver of the load goes by, where it goes by one alone.
    ///
    /// # Errors
    /// Options that do not go together, in one line with what would.
    pub fn plan(&self, forced_path: Option<GpuPath>) -> Result<MemoryPlan, String> {
        let given = [
            (self.gpu_path.is_some(), "gpu-path"),
            (self.gpu_staging.is_some(), "gpu-staging"),
            (self.gpu_register.is_some(), "gpu-register"),
            (self.gpu_per.is_some(), "gpu-per"),
        ];
        let devices = match self.memory.clone().unwrap_or_default() {
            MemoryChoice::Gpu(devices) => devices,
            other => {
                if let Some((_, name)) = given.iter().find(|(is_given, _)| *is_given) {
                    return Err(format!("--{name} is for buffers on a GPU: give --memory gpu with it"));
                }
                return Ok(if other == MemoryChoice::Pinned { MemoryPlan::Pinned } else { MemoryPlan::Host });
            }
        };
        let path = match (self.gpu_path, forced_path) {
            (Some(asked), Some(forced)) if asked != forced => {
                return Err(format!(
                    "the engine uses --gpu-path {}: leave the option out, or choose another engine",
                    forced.name()
                ));
            }
            (asked, forced) => forced.or(asked).unwrap_or_default(),
        };
        if path != GpuPath::Staged && self.gpu_staging.is_some() {
            return Err(format!(
                "--gpu-staging is for --gpu-path staged: {} uses no staging memory",
                path.name()
            ));
        }
        if !path.is_cufile() && self.gpu_register.is_some() {
            return Err(
                "--gpu-register is for --gpu-path cufile: other ways register what they need".to_owned()
            );
        }
        Ok(MemoryPlan::Gpu(GpuPlan {
            devices,
            path,
            staging: self.gpu_staging.unwrap_or_default(),
            register: path.is_cufile() && self.gpu_register.unwrap_or(true),
            per: self.gpu_per.unwrap_or_default(),
        }))
    }
}

/// Device memory of a load, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuPlan {
    /// Numbers of the devices; workers are dealt out to them. None: all there are.
    pub devices: Vec<u32>,
    /// The way between storage and device.
    pub path: GpuPath,
    /// Memory that a staged copy goes through.
    pub staging: Staging,
    /// Whether libcufile knows the buffers beforehand.
    pub register: bool,
    /// Whom the devices are dealt out to.
    #[serde(default)]
    pub per: GpuPer,
}

impl GpuPlan {
    /// The path in words: `staged through pinned memory`, `cufile with registered buffers`.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match (self.path, self.staging, self.register) {
            (GpuPath::Staged, Staging::Pinned, _) => "staged through pinned memory",
            (GpuPath::Staged, Staging::Pageable, _) => "staged through pageable memory",
            (GpuPath::Cufile, _, true) => "cufile with registered buffers",
            (GpuPath::Cufile, _, false) => "cufile without registered buffers",
            (GpuPath::CufileBatch, _, true) => "cufile in batches with registered buffers",
            (GpuPath::CufileBatch, _, false) => "cufile in batches without registered buffers",
            (GpuPath::CufileStream, _, true) => "cufile on streams with registered buffers",
            (GpuPath::CufileStream, _, false) => "cufile on streams without registered buffers",
            (GpuPath::Rdma, ..) => "RDMA from and to the device",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        let gpu = MemorySpec { memory: Some(MemoryChoice::Gpu(vec![1])), ..MemorySpec::default() };
        let plan = gpu.plan(None).expect("it can be");
        assert_eq!(plan.words().as_deref(), Some("GPU memory, staged through pinned memory"));
        let cufile = gpu.plan(Some(GpuPath::Cufile)).expect("it can be");
        assert!(cufile.gpu().is_some_and(|plan| plan.register && plan.devices == [1]));
        let refused = [
            (
                MemorySpec { gpu_path: Some(GpuPath::Cufile), ..MemorySpec::default() },
                None,
                "give --memory gpu",
            ),
            (
                MemorySpec { gpu_per: Some(GpuPer::Host), ..MemorySpec::default() },
                None,
                "--gpu-per is for buffers on a GPU",
            ),
            (MemorySpec { gpu_register: Some(true), ..gpu.clone() }, None, "is for --gpu-path cufile"),
            (
                MemorySpec { gpu_staging: Some(Staging::Pinned), ..gpu.clone() },
                Some(GpuPath::Cufile),
                "is for --gpu-path staged",
            ),
            (
                MemorySpec { gpu_path: Some(GpuPath::Staged), ..gpu },
                Some(GpuPath::Cufile),
                "engine uses --gpu-path cufile",
            ),
        ];
        for (spec, forced, words) in refused {
            let error = spec.plan(forced).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
        let pinned = MemorySpec { memory: Some(MemoryChoice::Pinned), ..MemorySpec::default() };
        assert_eq!(pinned.plan(None), Ok(MemoryPlan::Pinned));
        assert!(MemorySpec::default().plan(None).expect("it can be").is_host());
    }

    #[test]
    fn choices_print_as_they_are_typed() {
        for text in ["host", "pinned", "gpu", "gpu:0", "gpu:1,0,3"] {
            assert_eq!(text.parse::<MemoryChoice>().map(|choice| choice.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "gpu:", "gpu:x", "gpu:0,", "gpu:256", "gpu:-1", "device"] {
            let error = text.parse::<MemoryChoice>().expect_err(text).to_string();
            assert!(error.contains("host, pinned, gpu, or gpu:0,1"), "{error}");
        }
    }
}
