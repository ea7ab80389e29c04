//! With which driver, how deep, how durable.

use super::Site;
use super::control::is_of_files;
use crate::fio::draft::Engine;
use crate::fio::fault::Fault;

impl Site<'_> {
    /// Engine and its options; the depth that it runs at.
    pub(super) fn driver(&mut self) -> Result<u32, Fault> {
        if self.engine.typed == "posixaio" && !self.clones.world.engines().contains(&"io_uring") {
            self.engine.ours = "libaio";
        }
        self.gpu_engine()?;
        self.offload();
        let engine = self.engine.clone();
        self.set("ioengine", "engine", engine.ours)?;
        if let Some(difference) = engine.difference {
            self.warn(format!("ioengine={} runs as {}: {difference}", engine.typed, engine.ours));
        }
        let depth = self.depth()?;
        self.batches(depth)?;
        // These move nothing that could be direct; whether librbd has a cache its configuration says.
        if self.draft.direct.unwrap_or(false)
            && !["null", "falloc", "ftruncate", "cpu", "exec", "rbd"].contains(&engine.ours)
            && !is_of_files(engine.ours)
        {
            self.set("direct", "direct", "true")?;
        }
        self.engine_options()?;
        self.gpu_options()?;
        self.durability()?;
        if self.draft.huge_pages.unwrap_or(false) {
            self.set("iomem", "huge-pages", "true")?;
        }
        Ok(depth)
    }

    pub(super) fn depth(&mut self) -> Result<u32, Fault> {
        let asked = self.draft.iodepth.unwrap_or(1);
        let waits = !["libaio", "io_uring", "null", "rados", "rbd"].contains(&self.engine.ours);
        if waits && asked > 1 {
            let typed = self.engine.typed.clone();
            let instead = if self.engine.ours == "s3" { "numjobs" } else { "libaio or io_uring" };
            self.warn(format!(
                "iodepth={asked} is 1 with the synchronous ioengine={typed}, as in fio; to keep more in flight, use {instead}"
            ));
        }
        let depth = if waits { 1 } else { asked };
        self.set("iodepth", "depth", &depth.to_string())?;
        Ok(depth)
    }

    /// Without a rate fio hands operations to threads, each of which carries one out. What they do with an engine that waits,
    /// io_uring does by threads of the kernel.
    fn offload(&mut self) {
        let draft = self.draft;
        let is_paced = draft.rate.is_some() || draft.rate_iops.is_some();
        if draft.offload != Some(true) || is_paced {
            return;
        }
        let depth = draft.iodepth.unwrap_or(1);
        let waits = !["libaio", "io_uring", "null", "rbd"].contains(&self.engine.ours);
        if waits && depth > 1 && self.clones.world.engines().contains(&"io_uring") {
            let typed = self.engine.typed.clone();
            self.engine = Engine { typed: typed.clone(), ours: "io_uring", difference: None };
            self.draws_threads = true;
            self.warn(format!(
                "io_submit_mode=offload with ioengine={typed} runs as io_uring with force_async=1: kernel threads perform the operations"
            ));
        } else {
            self.warn("io_submit_mode=offload without a rate: the thread that measures operations also submits them");
        }
    }

    pub(super) fn batches(&mut self, depth: u32) -> Result<(), Fault> {
        let draft = self.draft;
        // 0, and more than the depth, are the depth, as in fio: all free slots.
        let batch = match draft.iodepth_batch.unwrap_or(1) {
            0 => u64::from(depth),
            batch => batch.min(depth.into()),
        };
        self.set("iodepth_batch", "batch", &batch.to_string())?;
        let least = draft.iodepth_batch_complete_min.unwrap_or(1);
        if least > 1 && depth > 1 {
            if least > depth {
                return Err(Fault::of(
                    "iodepth_batch_complete_min",
                    format!("{least} is more than iodepth: use {depth} or less"),
                ));
            }
            self.set("iodepth_batch_complete_min", "batch-min", &least.to_string())?;
        }
        let most = draft.iodepth_batch_complete_max.filter(|&most| most > 0);
        if let Some(most) = most.filter(|&most| most < least.into()) {
            return Err(Fault::of(
                "iodepth_batch_complete_max",
                format!("{most} is less than iodepth_batch_complete_min: use {least} or more"),
            ));
        }
        if depth > 1 {
            // Without it fio takes as many as it waits for, and leaves the others for later.
            let most = most.unwrap_or(least.into()).min(depth.into());
            self.set("iodepth_batch_complete_max", "batch-max", &most.to_string())?;
        }
        let low = draft.iodepth_low.filter(|&low| low > 0 && depth > 1);
        if let Some(low) = low.filter(|&low| low < depth.into()) {
            return Err(Fault::of(
                "iodepth_low",
                format!(
                    "{low} is not supported: strata always refills a free slot at once; alternative: iodepth, which is {depth}"
                ),
            ));
        }
        Ok(())
    }

    fn engine_options(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let on = |flag: Option<bool>| flag.unwrap_or(false);
        let polled = if self.engine.ours == "pvsync2" { "hipri" } else { "iopoll" };
        if self.draws_threads {
            self.set("io_submit_mode", "force-async", "1")?;
        } else if let Some(every) = draft.force_async.filter(|&every| every > 0) {
            if self.engine.ours != "io_uring" {
                let typed = &self.engine.typed;
                return Err(Fault::of(
                    "force_async",
                    format!("is not supported with ioengine={typed}; alternative: ioengine=io_uring"),
                ));
            }
            self.set("force_async", "force-async", &every.to_string())?;
        }
        let wanted: [(&str, bool, &[&str], &str, &str); 6] = [
            ("hipri", on(draft.hipri), &["io_uring", "pvsync2"], polled, "true"),
            ("fixedbufs", on(draft.fixedbufs), &["io_uring"], "register-buffers", "on"),
            ("registerfiles", on(draft.registerfiles), &["io_uring"], "register-files", "on"),
            ("sqthread_poll", on(draft.sqthread_poll), &["io_uring"], "sqpoll", "true"),
            ("uncached", on(draft.uncached), &["pvsync2"], "dontcache", "true"),
            ("nowait", on(draft.nowait), &["pvsync2"], "nowait", "true"),
        ];
        for (key, is_on, engines, option, text) in wanted {
            if !is_on {
                continue;
            }
            if !engines.contains(&self.engine.ours) {
                return Err(Fault::of(
                    key,
                    format!(
                        "is not supported with ioengine={}; alternative: ioengine={}",
                        self.engine.typed,
                        engines.join(" or ")
                    ),
                ));
            }
            self.set(key, option, text)?;
        }
        if let Some(core) = draft.sqthread_poll_cpu {
            if !on(draft.sqthread_poll) {
                return Err(Fault::of("sqthread_poll_cpu", "requires sqthread_poll: give both"));
            }
            self.set("sqthread_poll_cpu", "sqpoll-core", &core.to_string())?;
        }
        Ok(())
    }

    fn durability(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if let Some(sync) = draft.sync.as_deref().filter(|sync| *sync != "none") {
            self.set("sync", "sync", sync)?;
        }
        // Only writes are made durable.
        if !self.writes() {
            return Ok(());
        }
        let fsync = draft.fsync.filter(|&every| every > 0);
        let fdatasync = draft.fdatasync.filter(|&every| every > 0);
        let at_end = [draft.end_fsync, draft.fsync_on_close];
        let at_end = at_end.contains(&Some(true));
        if fdatasync.is_some() && (fsync.is_some() || at_end) {
            return Err(Fault::of(
                "fdatasync",
                "a job can use only one sync call: use either fsync (also for end_fsync and fsync_on_close) or fdatasync",
            ));
        }
        if let Some(every) = fsync.or(fdatasync) {
            self.set("fsync", "fsync", &every.to_string())?;
        }
        if fsync.is_some() || at_end {
            self.set("fsync", "sync-call", "fsync")?;
        }
        if at_end {
            self.set("end_fsync", "end-fsync", "true")?;
        }
        Ok(())
    }
}
