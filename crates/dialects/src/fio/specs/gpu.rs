//! Buffers on GPUs: the engine libcufile.

use super::Site;
use crate::fio::fault::Fault;

/// fio's name of the engine.
const LIBCUFILE: &str = "libcufile";

impl Site<'_> {
    /// The engine here of libcufile, which `cuda_io` chooses.
    pub(super) fn gpu_engine(&mut self) -> Result<(), Fault> {
        if self.engine.typed != LIBCUFILE {
            return Ok(());
        }
        match self.draft.cuda_io.as_deref().unwrap_or("cufile") {
            "cufile" => {}
            "posix" => self.engine.ours = "psync",
            _ => return Err(Fault::of("cuda_io", "is unknown: use cufile or posix")),
        }
        Ok(())
    }

    /// Options of its memory.
    pub(super) fn gpu_options(&mut self) -> Result<(), Fault> {
        if self.engine.typed != LIBCUFILE {
            let given = [
                ("gpu_dev_ids", self.draft.gpu_dev_ids.is_some()),
                ("cuda_io", self.draft.cuda_io.is_some()),
            ];
            return match given.iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => Err(Fault::of(name, "requires ioengine=libcufile")),
                None => Ok(()),
            };
        }
        let memory = match self.draft.gpu_dev_ids.as_deref() {
            None => "gpu".to_owned(),
            Some(list) => format!("gpu:{}", list.replace(':', ",")),
        };
        self.set("gpu_dev_ids", "memory", &memory)?;
        if self.engine.ours == "psync" {
            // fio copies with cudaMemcpy from memory that it has not registered.
            self.set("cuda_io", "gpu-staging", "pageable")?;
        }
        Ok(())
    }
}
