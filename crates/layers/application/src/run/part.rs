//! Stages of applications that run together: their jobs, and what was seen around them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::Error;
use gpu::GpuWatch;
use layer::observations::Observations;
use layer::{Part, Seen, Tell};
use runner::{Job, Outcome};

use super::Ready;
use crate::commits;

/// Stages of applications that are ready to run.
pub(super) struct AppPart {
    pub(super) ready: Vec<Ready>,
    pub(super) interrupt: Arc<AtomicBool>,
    pub(super) tell: Tell,
    /// Devices that buffers are on, stage by stage.
    pub(super) devices: Vec<Option<GpuWatch>>,
}

impl Part for AppPart {
    fn jobs(&mut self) -> Vec<Job> {
        self.ready.iter().map(|ready| ready.job(&self.interrupt)).collect()
    }

    fn begin(&mut self) -> Result<(), Error> {
        let watch = |ready: &Ready| ready.plan.memory.gpu().and_then(|gpu| GpuWatch::begin(&gpu.devices));
        self.devices = self.ready.iter().map(watch).collect();
        Ok(())
    }

    fn stop(&mut self) -> u64 {
        0
    }

    fn end(self: Box<Self>, mut outcomes: Vec<Outcome>, machine: &Observations) -> Vec<Seen> {
        for (outcome, ready) in outcomes.iter_mut().zip(&self.ready) {
            let plan = &ready.plan;
            let mut notes = plan.notes.clone();
            notes.extend(ready.storage.notes());
            if !plan.left_out.is_empty() {
                notes.push(format!("{} has no {}: skipped", plan.engine, plan.left_out.join(", ")));
            }
            notes.extend(ready.made_again.note());
            outcome.notes.splice(0..0, notes);
        }
        let (stages, tell) = (self.ready.iter().zip(self.devices), self.tell);
        let seen = outcomes.into_iter().zip(stages).map(|(mut outcome, (ready, watch))| {
            let gpu = watch.map(|watch| watch.end(&ready.gpu_notes));
            let mut utilisation = ready.meters.utilisation(&ready.plan);
            if let (Some(search), Some(seen), None) = (&ready.search, &mut utilisation, &outcome.failure) {
                search.take(seen, tell);
            }
            if let (Some(trying), None) = (&ready.trying, &outcome.failure)
                && let Some(profile) = layer::profile::of(&*ready.plan, &outcome.samples)
            {
                outcome.notes.extend(trying.take(profile, tell));
            }
            let commits = commits::of(&ready.plan, &ready.logs, &ready.progress);
            let checkpoint = ready.times.take(&ready.plan, &outcome.samples, &ready.progress);
            (outcome, Observations { gpu, utilisation, commits, checkpoint, ..machine.clone() })
        });
        seen.collect()
    }
}
