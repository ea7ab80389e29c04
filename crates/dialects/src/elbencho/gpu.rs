//! Options of buffers on GPUs.

use driver::Error;

use super::settings::indexes;
use super::table::{OF_GPUS, TABLE};
use crate::options::{Said, said};
use crate::words::Words;

/// Buffers on GPUs.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    /// Numbers of the devices, which threads take in turn; none: all.
    devices: Vec<u32>,
    cufile: bool,
    /// Buffers on the device are registered with cuFile.
    registers: bool,
    /// Buffers of the host are registered with the driver of the GPU.
    pins: bool,
    /// Hosts take the devices in turn, not threads.
    per_host: bool,
}

/// Whether the page cache is passed by: `--gds` says it too.
pub(super) fn is_direct(words: &Words) -> bool {
    words.has("direct") || words.has("gds")
}

impl Gpu {
    /// Buffers on GPUs that the options ask for; none where they ask for none.
    ///
    /// # Errors
    /// Options without `--gpuids`, or that do not go together.
    pub(crate) fn read(words: &Words, depth: u32, is_elsewhere: bool) -> Result<Option<Self>, Error> {
        let Some(text) = words.value("gpuids") else {
            return match OF_GPUS.iter().find(|long| words.has(long)) {
                Some(long) => TABLE.refuse(
                    format!("--{long} requires buffers on GPUs"),
                    "give --gpuids with their numbers, or --gpuids all",
                ),
                None => Ok(None),
            };
        };
        let devices = if text == "all" { Vec::new() } else { indexes(words, "gpuids")?.unwrap_or_default() };
        let cufile = words.has("cufile") || words.has("gds");
        let registers = words.has("gdsbufreg") || words.has("gds");
        if registers && !cufile {
            return TABLE.refuse("--gdsbufreg requires cuFile", "add --cufile, or use --gds for both");
        }
        if cufile && depth > 1 {
            return TABLE.refuse(
                "--cufile with --iodepth above 1: cuFile supports one request in flight per thread",
                "give more threads (-t), or leave out --cufile",
            );
        }
        if words.has("mmap") {
            return TABLE.refuse("--mmap cannot be combined with --gpuids", "leave out one of them");
        }
        Ok(Some(Self {
            devices,
            cufile,
            registers,
            pins: words.has("cuhostbufreg"),
            // On one machine each thread takes the next device, as elbencho has it.
            per_host: is_elsewhere && words.has("gpuperservice"),
        }))
    }

    /// Options of the memory of a load.
    pub(crate) fn said(&self) -> Vec<Said> {
        let numbers: Vec<_> = self.devices.iter().map(u32::to_string).collect();
        let memory = if numbers.is_empty() { "gpu".to_owned() } else { format!("gpu:{}", numbers.join(",")) };
        let mut options = vec![said("memory", memory)];
        if self.cufile {
            options.push(said("gpu-path", "cufile"));
            options.push(said("gpu-register", if self.registers { "on" } else { "off" }));
        } else {
            options.push(said("gpu-staging", if self.pins { "pinned" } else { "pageable" }));
        }
        if self.per_host {
            options.push(said("gpu-per", "host"));
        }
        options
    }

    /// Whether requests go by cuFile.
    pub(crate) fn is_cufile(&self) -> bool {
        self.cufile
    }
}
