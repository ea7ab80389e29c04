//! From tests to specs: one for each write, check and read of each repetition.

use driver::Error;
use units::ParseError;
use workload::spec::{OnError, Spec, Warmup};

use super::settings::{self, Test};
use super::table::TABLE;
use crate::options::{Said, said, said_if, say, switch};
use crate::{PathFacts, World, tasks};

/// Kind of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Write,
    /// A read that checks what was written, in no rate.
    Check,
    Read,
}

/// A phase of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) test: usize,
    pub(crate) repetition: u32,
    pub(crate) kind: Kind,
}

/// The specs, and the step that each is.
#[derive(Debug, Default)]
pub(crate) struct Programme {
    pub(crate) specs: Vec<Spec>,
    pub(crate) steps: Vec<Step>,
}

/// Makes the specs.
///
/// # Errors
/// Values that no load has.
pub(crate) fn build(tests: &[Test], world: &dyn World) -> Result<Programme, Error> {
    let mut programme = Programme::default();
    for (number, test) in tests.iter().enumerate() {
        let paths = settings::paths(test)?;
        let noted = match &test.status_file {
            Some(path) if !test.write && test.transfers.is_none() => {
                Some(tasks::status(&TABLE, "-O stoneWallingStatusFile", path, world)?)
            }
            _ => test.transfers,
        };
        let region = region_bytes(test, &paths, world);
        for repetition in 0..test.repetitions {
            let kinds =
                [(Kind::Write, test.write), (Kind::Check, test.check_write), (Kind::Read, test.reads())];
            for (kind, _) in kinds.into_iter().filter(|(_, is_asked)| *is_asked) {
                let step = Step { test: number, repetition, kind };
                let spec = spec(test, step, &paths, noted, region)
                    .map_err(|error| Error::usage(TABLE.tool, error.to_string()))?;
                programme.specs.push(spec);
                programme.steps.push(step);
            }
        }
    }
    Ok(programme)
}

/// Bytes in which reads with `-z -z` are drawn: the smallest file that is there.
fn region_bytes(test: &Test, paths: &[String], world: &dyn World) -> Option<u64> {
    if test.random < 2 || test.write {
        return None;
    }
    let size = |rank: u32| {
        let path = &paths[rank as usize % paths.len()];
        match world.look(&file_name(test, path, rank)) {
            PathFacts::File { size_bytes } => Some(size_bytes),
            _ => None,
        }
    };
    let files = if test.file_per_task { test.tasks } else { 1 };
    let smallest = (0..files).map(size).collect::<Option<Vec<u64>>>()?.into_iter().min()?;
    // Tasks share a file: each draws in a part of its own.
    let part = if test.file_per_task { smallest } else { smallest / u64::from(test.tasks) };
    let whole = part / test.transfer_bytes * test.transfer_bytes;
    (whole > 0).then_some(whole)
}

/// Name of the file of a rank, without the suffix of `-m`.
pub(crate) fn file_name(test: &Test, path: &str, rank: u32) -> String {
    match (test.file_per_task, test.unique_directory) {
        (false, _) => path.to_owned(),
        (true, false) => format!("{path}.{rank:08}"),
        (true, true) => {
            let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
            format!("{directory}/{rank}/{name}.{rank:08}")
        }
    }
}

fn spec(
    test: &Test,
    step: Step,
    paths: &[String],
    transfers: Option<u64>,
    region: Option<u64>,
) -> Result<Spec, ParseError> {
    let is_write = step.kind == Kind::Write;
    let name = match step.kind {
        Kind::Write => "write",
        Kind::Check => "check of the write",
        Kind::Read => "read",
    };
    let reorder_seed = match test.reorder_seed {
        seed if seed < 0 => Some(seed.unsigned_abs() + u64::from(step.repetition)),
        seed => Some(seed.unsigned_abs()),
    };
    let shuffles_ranks = step.kind == Kind::Read && test.reorder_random > 0;
    let checks = (step.kind == Kind::Check) || (step.kind == Kind::Read && test.check_read);
    let mut spec = Spec {
        name: Some(name.to_owned()),
        targets: paths.to_vec(),
        threads: Some(test.tasks),
        warmup: Some(Warmup::None),
        // IOR goes on where data are wrong, and ends where a call fails.
        on_error: Some(if checks { OnError::Continue } else { OnError::Stop }),
        verify: !test.is_dummy && (is_write || checks),
        keep: test.keep,
        seed: if shuffles_ranks { reorder_seed } else { test.random_seed },
        ..Spec::of_layer("filesystem")?
    };
    say(&mut spec, of_file(test, step, region))?;
    say(&mut spec, of_transfers(test, step, transfers))?;
    say(&mut spec, test.gpu.said())?;
    let signature = test.signature.filter(|_| spec.verify);
    say(&mut spec, [said_if("verify-run", signature)])?;
    Ok(spec)
}

/// Options of the file and of its blocks.
fn of_file(test: &Test, step: Step, region: Option<u64>) -> Vec<Said> {
    let is_write = step.kind == Kind::Write;
    let order = match test.random {
        0 => None,
        1 => Some("random"),
        _ => Some("random-repeats"),
    };
    let (part, segments) = match region {
        Some(bytes) => (bytes, 1),
        None => (test.block_bytes, test.segments),
    };
    let suffix = test.multi_file.then(|| format!(".{}", step.repetition));
    vec![
        said("op", if is_write { "write" } else { "read" }),
        said("shape", if test.file_per_task { "private" } else { "shared" }),
        said("file-size", part),
        said("block-size", test.transfer_bytes),
        said_if("segments", (segments > 1).then_some(segments)),
        said_if("order", order),
        said_if("file-suffix", suffix),
        switch("unique-directories", test.unique_directory),
        switch("replace", is_write && !test.existing),
        switch("no-fill", !is_write),
        switch("keep-on-error", test.keep_with_error),
        said_if("engine", test.is_dummy.then_some("null")),
    ]
}

/// Options of the transfers: which, how many, when.
fn of_transfers(test: &Test, step: Step, noted: Option<u64>) -> Vec<Said> {
    let is_write = step.kind == Kind::Write;
    let all = test.segments * (test.block_bytes / test.transfer_bytes);
    let repeats = (test.random > 1).then_some(all);
    let shift = match step.kind {
        Kind::Read if test.reorder => Some(test.offset_tasks.to_string()),
        Kind::Check if test.reorder => Some((u64::from(test.offset_tasks) + 1).to_string()),
        Kind::Read if test.reorder_random > 0 => Some("random".to_owned()),
        _ => None,
    };
    let walled = test.stonewall_s > 0 && step.kind != Kind::Check;
    let delay = (test.delay_s > 0 && step.kind != Kind::Check).then(|| format!("{}s", test.delay_s));
    let pause = (test.io_delay_us > 0).then(|| format!("{}us", test.io_delay_us));
    vec![
        said_if("transfers", noted.or(repeats)),
        said_if("rank-shift", shift),
        said_if("time", walled.then(|| format!("{}s", test.stonewall_s))),
        switch("wear-out", walled && test.wear_out),
        said_if("start-delay", delay),
        said_if("think-time", pause),
        switch("barriers", test.barriers),
        said_if("fsync", (is_write && test.fsync_per_write).then_some(1)),
        switch("end-fsync", is_write && test.fsync),
        switch("direct", test.direct),
    ]
}
