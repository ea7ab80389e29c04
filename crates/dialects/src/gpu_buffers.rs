//! Buffers on GPUs as IOR and mdtest name them.

use driver::Error;

use crate::options::{Said, said};
use crate::words::Table;

/// Options of buffers on GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GpuBuffers {
    /// `allocateBufferOnGPU`: memory of a device.
    is_on_device: bool,
    /// `GPUDirect`: by GPUDirect Storage.
    pub(crate) is_direct: bool,
    /// `GPUid`; none: round robin.
    device: Option<u32>,
}

impl GpuBuffers {
    /// Takes the value of an option; false where it is none of these.
    ///
    /// # Errors
    /// Values that it does not have.
    pub(crate) fn take(&mut self, table: &Table, long: &str, value: &str) -> Result<bool, Error> {
        match (long, value) {
            ("allocateBufferOnGPU", "0" | "3") => self.is_on_device = value == "3",
            ("allocateBufferOnGPU", "1" | "2") => {
                return table.refuse(
                    format!("{long}={value}: managed memory is not supported, because page faults move it"),
                    "use 3 for device memory",
                );
            }
            ("GPUid", "-1") => self.device = None,
            ("GPUid", _) => {
                let number = value.parse().ok().filter(|number| *number < 256);
                match number {
                    Some(number) => self.device = Some(number),
                    None => {
                        return table.refuse(
                            format!("{long}={value} is not a device number"),
                            "give 0 to 255, or -1 to use all devices in turn",
                        );
                    }
                }
            }
            ("GPUDirect" | "gpuDirect", "" | "1") => self.is_direct = true,
            ("GPUDirect" | "gpuDirect", "0") => self.is_direct = false,
            ("allocateBufferOnGPU" | "GPUDirect" | "gpuDirect", _) => {
                let accepted = if long == "allocateBufferOnGPU" { "give 0 or 3" } else { "give 0 or 1" };
                return table.refuse(format!("{long}={value} is not supported"), accepted);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether buffers are on a device.
    pub(crate) fn is_used(self) -> bool {
        self.is_on_device || self.is_direct
    }

    /// Options of a load on files.
    pub(crate) fn said(self) -> Vec<Said> {
        if !self.is_used() {
            return Vec::new();
        }
        let memory = self.device.map_or_else(|| "gpu".to_owned(), |number| format!("gpu:{number}"));
        let path = if self.is_direct { "cufile" } else { "staged" };
        vec![said("memory", memory), said("gpu-path", path)]
    }
}
