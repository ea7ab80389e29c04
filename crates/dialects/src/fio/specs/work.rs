//! Jobs that move no data: `ioengine=cpuio` and `ioengine=exec`.

use super::Site;
use crate::fio::fault::Fault;

/// fio's `cpuchunks`, in microseconds.
const CHUNK_US: u64 = 50_000;

impl Site<'_> {
    /// Sets the work of such a job, and its time.
    pub(super) fn work(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if let Some(delay_ns) = draft.startdelay.filter(|&delay| delay > 0) {
            self.set("startdelay", "start-delay", &format!("{delay_ns}ns"))?;
        }
        self.set("ramp_time", "warmup", "none")?;
        let time_ns = draft.runtime.filter(|&time| time > 0);
        if self.engine.ours == "exec" { self.program(time_ns) } else { self.burn(time_ns) }
    }

    fn burn(&mut self, time_ns: Option<u64>) -> Result<(), Fault> {
        let draft = self.draft;
        let load = draft.cpuload.filter(|&load| load > 0);
        let load = load.ok_or_else(|| Fault::of("cpuload", "engine cpuio requires it: 1 to 100 percent"))?;
        let chunk_us = draft.cpuchunks.unwrap_or(CHUNK_US);
        let time_ns = time_ns.ok_or_else(|| {
            Fault::of("runtime", "engine cpuio ends only at its runtime: give runtime, in seconds")
        })?;
        self.set("runtime", "time", &format!("{time_ns}ns"))?;
        self.set("cpuchunks", "cpu-chunk", &format!("{chunk_us}us"))?;
        if draft.cpu_sorts == Some(true) {
            self.set("cpumode", "cpu-sort", "true")?;
        }
        let pause_us = chunk_us * (100 - u64::from(load)) / u64::from(load);
        if pause_us > 0 {
            self.set("cpuload", "think-time", &format!("{pause_us}us"))?;
        }
        Ok(())
    }

    fn program(&mut self, time_ns: Option<u64>) -> Result<(), Fault> {
        let draft = self.draft;
        let path = draft
            .program
            .clone()
            .ok_or_else(|| Fault::of("program", "engine exec requires it: the path of a program"))?;
        self.set("program", "program", &path)?;
        let seconds = time_ns.unwrap_or(0) / 1_000_000_000;
        let name = self.spec.name.clone().unwrap_or_default();
        let arguments = draft.arguments.clone().unwrap_or_default();
        let arguments = arguments.replace("%r", &seconds.to_string()).replace("%n", &name);
        self.set("arguments", "program-arguments", &arguments)?;
        if draft.std_redirect.unwrap_or(true) {
            self.set("std_redirect", "program-output", &name)?;
        }
        if let Some(time_ns) = time_ns {
            self.set("runtime", "program-time", &format!("{time_ns}ns"))?;
        }
        self.set("grace_time", "program-grace", &format!("{}s", draft.grace_time.unwrap_or(1)))?;
        // Once a clone.
        self.spec.count = Some(self.clones.count.into());
        Ok(())
    }
}
