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
        let refused = || ParseError::new("memory", text, "host, pinned, gpu, or gpu:0,1");
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
#[serde(rename_all = "snake_case")]
pub enum GpuPath {
    /// Through a buffer of the host: I/O there, and a copy within the latency of the operation.
    #[default]
    Staged,
    /// GPUDirect Storage, by libcufile.
    Cufile,
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
