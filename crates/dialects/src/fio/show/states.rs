//! The files of `verify_state_save`.

use report::record::{PhaseRecord, Record};
use statistics::WorkerSamples;

use crate::fio::model::Job;
use crate::fio::state;
use crate::{Destination, Piece};

/// A file for each clone of a job that has begun.
pub(super) fn pieces(job: &Job, record: &Record) -> Vec<Piece> {
    let phase = record.phases.iter().find(|phase| phase.request == job.request && !phase.is_read_back);
    let Some(phase) = phase else { return Vec::new() };
    let writes = |at: usize| {
        let count = phase.samples.workers.get(at).map_or(0, |worker| writes(phase, worker));
        job.synced_every.map_or(count, |every| count / every * every)
    };
    let piece = |(at, path): (usize, &std::path::PathBuf)| {
        let content = state::saved(&job.name, job.number - 1 + at, job.depth, writes(at));
        Piece { place: Destination::File { path: path.clone(), append: false }, content }
    };
    job.states.iter().enumerate().map(piece).collect()
}

/// How many of a worker's first writes are done. Where one failed, those that were in flight with it may stand before it.
fn writes(phase: &PhaseRecord, worker: &WorkerSamples) -> u64 {
    let of_writes = worker.classes.iter().filter(|totals| totals.class == "write");
    let done: u64 = of_writes.map(|totals| totals.operations).sum();
    let has_failed = worker.errors.iter().any(|error| error.class == "write");
    let load = phase.plan.load();
    match (has_failed, load.on_error) {
        (false, _) => done,
        (true, workload::spec::OnError::Stop) => done.saturating_sub(load.depth.into()),
        // It may have failed anywhere.
        (true, workload::spec::OnError::Continue) => 0,
    }
}
