//! `strata stack`: the same loads on every layer, in passes over all of them. Rows come from the layers.

mod hosts;
mod settle;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use driver::Error;
use layer::{Phase, Planning, Runs, Seed, StackHosts, StackLoads, StackRequest, StackRowSpec, StackServed};
use report::record::{StackPass, StackRecord, StackRow, StackTrial};
use report::stack::verdict;
use units::{ByteSize, Span, label_of};
use workload::options;
use workload::spec::Spec;

use crate::options::{OutputSpec, StackSpec};
use crate::planning::{Layers, Planned};
use crate::saturate::ends_run;
use crate::session::{self, Session};

/// Bytes left free on the file system of the scratch file.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// Stores beside the scratch file, each as large as it, and those for files over objects together.
const STORES: u64 = 2;
const FILES_STORE_BYTES: u64 = 2 << 30;
/// Passes over all rows, and the window of a drive in one of them.
const PASSES: u32 = 5;
const PASSES_QUICK: u32 = 3;
/// Passes more where the first ones differ too much for a verdict.
const PASSES_ADDED: u32 = 5;
const WINDOW_NS: u64 = 300_000_000;
const WINDOW_QUICK_NS: u64 = 150_000_000;
/// Shortest window of a row.
const WINDOW_NS_MIN: u64 = 20_000_000;
/// Pairs of phases that a remedy is tried with.
const TRIAL_PAIRS: u32 = 5;

/// A row of the table, and its phase as planned or why it cannot be.
struct PlannedRow {
    row: StackRow,
    spec: Option<Spec>,
    planned: Option<Planned>,
    /// Whether the user named its target.
    is_named: bool,
    /// Whether hosts carry it out, which plan it by themselves.
    is_of_hosts: bool,
    /// Its phase on all of them at once.
    on_all: Option<Planned>,
    /// Phases that store what it needs, before its first pass on hosts.
    fills: Vec<Planned>,
}

/// Runs the stack.
pub(crate) fn run(words: &[String], spec: &StackSpec, output: &OutputSpec) -> Result<u8, Error> {
    let seed = spec.seed.unwrap_or_else(session::draw_seed);
    let hosts = hosts::asked(spec)?;
    let is_elsewhere = hosts.is_some_and(|hosts| !hosts.are_local);
    let scratch = scratch_file(spec, is_elsewhere)?;
    let mut layers = Layers::new(false);
    let nothing = StackLoads::default();
    let mut request = StackRequest {
        hosts,
        scratch: &scratch,
        size_bytes: size(spec).0,
        device: spec.device.as_deref(),
        object: spec.stack_object.as_deref(),
        object_options: &spec.stack_object_options,
        engine: spec.engine.as_deref(),
        gpu: spec.gpu.as_deref(),
        app: spec.app.as_deref(),
        app_settings: &spec.app_settings,
        app_options: &spec.app_options,
        loads: &nothing,
        token_file: spec.token_file.as_deref(),
        destroy_data: spec.destroy_data,
        served: None,
    };
    // Mistakes of the user's are refused before anything is touched.
    let loads = all_loads(&request)?;
    request.loads = &loads;
    let named = row_specs(&request).into_iter().filter(|row| row.is_named);
    plan_rows(named.collect(), &mut layers.runs, spec, (seed, hosts))?;
    if !is_elsewhere {
        let of_hosts = hosts.map_or(0, StackHosts::store_bytes);
        check_space(spec, &scratch, loads.room_bytes().saturating_add(of_hosts))?;
    }
    let mut targets = vec![label_of(scratch.as_os_str())];
    targets.extend(spec.device.clone());
    let mut session = Session::begin(words, output, &targets, seed, false, None)?;
    session.shows(spec.detail());
    let adopted = session.adopt(layers);
    let mut served = Vec::new();
    let mut result = adopted;
    if result.is_ok() {
        // What is served over loopback, and what this process makes, is for hosts of this machine.
        for layer in layer::all().into_iter().filter(|_| !is_elsewhere) {
            let here = StackRequest { served: Some(&served), ..request.clone() };
            let more = layer.stack_serve(&here, session.layers().runs.context());
            served.extend(more);
        }
        request.served = Some(&served);
        let specs = row_specs(&request);
        result = plan_rows(specs, &mut session.layers().runs, spec, (seed, hosts))
            .and_then(|rows| hosts::plan(&mut session, rows, spec, seed))
            .and_then(|rows| {
                if !is_elsewhere {
                    settle::settle(&mut session, directory_of(&scratch), spec.device.as_deref());
                }
                measure(&mut session, rows, spec, seed)
            });
    }
    session.ends_with(Box::new(move || end(served)));
    session.finish(result)
}

/// Ends what layers served, the last first.
fn end(served: Vec<StackServed>) -> Result<(), Error> {
    let mut result = Ok(());
    for served in served.into_iter().rev() {
        if let Some(end) = served.end {
            result = result.and(end());
        }
    }
    result
}

/// Loads that layers need measured below them.
fn all_loads(request: &StackRequest<'_>) -> Result<StackLoads, Error> {
    let mut all = StackLoads::default();
    for layer in layer::all() {
        let more = layer.stack_loads(request)?;
        all.loads.extend(more.loads);
        all.stored_bytes = all.stored_bytes.saturating_add(more.stored_bytes);
    }
    Ok(all)
}

/// Rows of all layers.
fn row_specs(request: &StackRequest<'_>) -> Vec<StackRowSpec> {
    layer::all().into_iter().flat_map(|layer| layer.stack_rows(request)).collect()
}

/// Every row, planned; what cannot be planned says why. Rows of hosts are planned by these ([`hosts::plan`]).
///
/// # Errors
/// What the user named is refused: that is for the user to decide, and no missing row.
fn plan_rows(
    specs: Vec<StackRowSpec>,
    runs: &mut Runs,
    stack: &StackSpec,
    (seed, hosts): (u64, Option<StackHosts>),
) -> Result<Vec<PlannedRow>, Error> {
    let mut rows: Vec<PlannedRow> = Vec::new();
    let mut refused: Vec<(&'static str, String)> = Vec::new();
    // Phases of the last spec: rows that follow are its later ones.
    let mut phases: Vec<Phase> = Vec::new();
    let stages: Vec<usize> = specs.iter().map(|row| row.stage).collect();
    let rows_of = |first: usize| 1 + stages[first + 1..].iter().take_while(|stage| **stage > 0).count();
    for (number, mut given) in specs.into_iter().enumerate() {
        let known = refused.iter().find(|(layer, _)| *layer == given.layer).map(|(_, why)| why.clone());
        hosts::check(&mut given, hosts);
        if let (Ok(spec), true) = (&mut given.spec, given.window_share > 0.0) {
            let window_ns = window_ns(stack) as f64 * given.window_share;
            spec.time = Some(Span((window_ns as u64).max(WINDOW_NS_MIN)));
        }
        let (layer, stage) = (given.layer, given.stage);
        let (mut row, spec) = PlannedRow::of(given, hosts);
        let planned = match (known.clone(), spec) {
            // What could not be reached for one load is not tried again.
            (Some(why), _) => Err(Error::new(driver::ErrorKind::Run, "stack", why)),
            (None, Err(error)) if error.operation() == "stack" => Err(error),
            (None, Err(error)) => Err(Error::new(error.kind(), "stack", error.to_string())),
            (None, Ok(spec)) if row.is_of_hosts => {
                row.spec = Some(spec);
                Ok(())
            }
            (None, Ok(mut spec)) => {
                let all = match stage {
                    0 => phases_of(&mut spec, runs, seed, rows_of(number)),
                    _ => Ok(std::mem::take(&mut phases)),
                };
                row.spec = Some(spec);
                all.and_then(|all| {
                    phases = all;
                    let missing = || Error::usage("stack", "the preceding stage cannot be measured");
                    let phase = phases.get(stage).cloned().ok_or_else(missing)?;
                    row.planned = Some(Planned { request: number, ..Planned::of(phase) });
                    Ok(())
                })
            }
        };
        if let Err(error) = planned {
            if row.is_named {
                return Err(error);
            }
            refused.push((layer, error.to_string()));
            row.is_of_hosts = false;
            row.row.missing = Some(known.unwrap_or_else(|| error.to_string()));
        }
        rows.push(row);
    }
    Ok(rows)
}

impl PlannedRow {
    /// A row as its layer gave it, before it is planned, and its spec.
    fn of(given: StackRowSpec, hosts: Option<StackHosts>) -> (Self, Result<Spec, Error>) {
        let row = StackRow {
            layer: given.layer.to_owned(),
            load: given.load,
            phase: None,
            missing: None,
            called: Some(given.called),
            kind: Some(given.kind),
            stands_on: given.stands_on,
            faster_by: given.faster_by.map(str::to_owned),
            by_design: given.by_design.iter().map(|kind| (*kind).to_owned()).collect(),
            load_of: given.load_of,
            in_bytes: given.in_bytes,
            uncompared: given.uncompared,
            passes: Vec::new(),
            hosts: hosts.map(|hosts| hosts::of_row(hosts, given.one_host)),
        };
        let own = Self {
            row,
            spec: None,
            planned: None,
            is_named: given.is_named,
            is_of_hosts: hosts.is_some() && given.one_host.is_none(),
            on_all: None,
            fills: Vec::new(),
        };
        (own, given.spec)
    }
}

/// The phases of a spec, as many as it has rows, without those that store for it: they come right before it. Every row has the same seed.
fn phases_of(spec: &mut Spec, runs: &mut Runs, seed: u64, rows: usize) -> Result<Vec<Phase>, Error> {
    let run = runs.of(spec.layer.name)?;
    run.find(&mut [&mut *spec])?;
    let planning = Planning { before: &[], number: 0, seed: Seed::Given(seed) };
    let mut phases = run.phases(spec, &planning)?;
    phases.retain(|phase| !phase.plan.is_fill());
    if phases.len() == rows {
        Ok(phases)
    } else {
        Err(Error::usage("stack", "a row of the stack is one phase"))
    }
}

/// Measures all rows in passes, and tries a remedy where that is asked for.
fn measure(
    session: &mut Session,
    mut rows: Vec<PlannedRow>,
    spec: &StackSpec,
    seed: u64,
) -> Result<(), Error> {
    session.record.stack = Some(StackRecord {
        rows: rows.iter().map(|row| row.row.clone()).collect(),
        pass_count: passes(spec),
        ..StackRecord::default()
    });
    if !run_passes(session, &mut rows, 0..passes(spec))? {
        return Ok(());
    }
    // More of them are the remedy for passes that differ; who names a number, or asks for a quick run, has that.
    let may_add = spec.passes.is_none() && !spec.quick;
    if may_add && verdict(&session.record).varies {
        let first = passes(spec);
        if let Some(stack) = session.record.stack.as_mut() {
            stack.pass_count += PASSES_ADDED;
            stack.passes_added = PASSES_ADDED;
        }
        if !run_passes(session, &mut rows, first..first + PASSES_ADDED)? {
            return Ok(());
        }
    }
    conclude(session);
    if spec.try_remedy { attempt(session, &rows, seed) } else { Ok(()) }
}

/// Measures all rows in the passes of these numbers; whether the run goes on after them.
///
/// # Errors
/// An interrupt, and hosts that fail. Another row that fails is missing, and says why.
fn run_passes(session: &mut Session, rows: &mut [PlannedRow], passes: Range<u32>) -> Result<bool, Error> {
    let count = hosts::turns(rows, 0).len() * passes.len();
    session.phase_count = session.record.phases.len() + count;
    let begun = Instant::now();
    let mut done = 0;
    for pass in passes {
        for (number, on_all) in hosts::turns(rows, pass) {
            let row = &mut rows[number];
            let planned = if on_all { &mut row.on_all } else { &mut row.planned };
            let Some(planned) = planned.take() else { continue };
            let outcome = hosts::fill(session, row)
                .and_then(|()| session.fill(&planned))
                .and_then(|()| session.run_phase(&planned));
            done += 1;
            session.ends_at = Some(Instant::now() + left(begun.elapsed(), done, count));
            if (session.is_interrupted() || row.is_of_hosts) && outcome.is_err() {
                return outcome.map(|_| false);
            }
            let Some(stack) = session.record.stack.as_mut() else { continue };
            match outcome {
                Ok(at) => {
                    note(&mut stack.rows[number], on_all, StackPass { pass, phase: at });
                    *if on_all { &mut row.on_all } else { &mut row.planned } = Some(planned);
                    if ends_run(session, at) {
                        return Ok(false);
                    }
                }
                // A layer that cannot be measured does not take the others with it; its row says why.
                Err(error) => stack.rows[number].missing = Some(error.to_string()),
            }
        }
    }
    Ok(true)
}

/// Puts a pass into a row.
fn note(row: &mut StackRow, on_all: bool, pass: StackPass) {
    match row.hosts.as_mut().filter(|_| on_all) {
        Some(hosts) => hosts.passes.push(pass),
        None => {
            row.phase.get_or_insert(pass.phase);
            row.passes.push(pass);
        }
    }
}

/// Time that is left, by the mean of what was done.
fn left(elapsed: Duration, done: usize, all: usize) -> Duration {
    elapsed.mul_f64(all.saturating_sub(done) as f64 / done.max(1) as f64)
}

/// Puts the verdict into the record, and how rows scale from one host to several.
fn conclude(session: &mut Session) {
    let scaling = report::stack::scaling(&session.record);
    if let Some(stack) = &mut session.record.stack {
        for (at, hosts) in scaling {
            stack.rows[at].hosts = Some(hosts);
        }
    }
    let found = verdict(&session.record).found;
    if let Some(stack) = &mut session.record.stack {
        stack.verdict = Some(found);
    }
}

/// Runs the row that the verdict names without and with its first remedy that can be tried, in turns.
fn attempt(session: &mut Session, rows: &[PlannedRow], seed: u64) -> Result<(), Error> {
    let found = verdict(&session.record);
    let remedy = found.remedies.into_iter().find(|remedy| !remedy.options.is_empty());
    let (Some(remedy), Some(row)) = (remedy, found.row.and_then(|at| rows.get(at))) else {
        crate::output::tell("strata: stack: --try: no remedy can be tried automatically");
        return Ok(());
    };
    let (Some(spec), Some(without)) = (&row.spec, &row.planned) else { return Ok(()) };
    let mut changed = spec.clone();
    let names: Vec<[String; 2]> =
        remedy.options.iter().map(|(name, value)| [name.clone(), value.clone()]).collect();
    let mut trial = StackTrial {
        remedy: remedy.line.clone(),
        options: names,
        layer: row.row.layer.clone(),
        load: row.row.load.clone(),
        pairs: Vec::new(),
        failure: None,
    };
    for (name, value) in &remedy.options {
        options::apply(&mut changed, name, value)
            .map_err(|error| Error::usage("stack", error.to_string()))?;
    }
    session.phase_count += 2 * TRIAL_PAIRS as usize;
    session.ends_at = None;
    let planned = phases_of(&mut changed, &mut session.layers().runs, seed, 1);
    let result = planned.and_then(|mut phases| {
        let none = || Error::usage("stack", "a row of the stack is one phase");
        let with = Planned { request: without.request, ..Planned::of(phases.pop().ok_or_else(none)?) };
        for _ in 0..TRIAL_PAIRS {
            let mut pair = [0; 2];
            for (at, planned) in [without, &with].into_iter().enumerate() {
                session.fill(planned)?;
                pair[at] = session.run_phase(planned)?;
                if ends_run(session, pair[at]) {
                    return Ok(());
                }
            }
            trial.pairs.push(pair);
        }
        Ok(())
    });
    trial.failure = result.err().map(|error| error.to_string());
    if let Some(stack) = &mut session.record.stack {
        stack.trial = Some(trial);
    }
    Ok(())
}

fn passes(spec: &StackSpec) -> u32 {
    spec.passes.unwrap_or(if spec.quick { PASSES_QUICK } else { PASSES })
}

fn window_ns(spec: &StackSpec) -> u64 {
    if spec.quick { WINDOW_QUICK_NS } else { WINDOW_NS }
}

/// A name for the scratch file that nobody has yet, in a directory of this machine unless all hosts are elsewhere.
fn scratch_file(spec: &StackSpec, is_elsewhere: bool) -> Result<PathBuf, Error> {
    let directory = spec.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    if !is_elsewhere && !directory.is_dir() {
        return Err(Error::usage("stack", "no such directory")
            .with("dir", directory.display())
            .remedy("give --dir a directory"));
    }
    Ok(directory.join(format!("strata-scratch-{}", std::process::id())))
}

/// Directory of the scratch file, and of all that is made beside it.
fn directory_of(scratch: &Path) -> &Path {
    scratch.parent().unwrap_or(Path::new("."))
}

/// Refuses a file system without room for the scratch file, the stores beside it, and so many bytes more.
fn check_space(spec: &StackSpec, scratch: &Path, more_bytes: u64) -> Result<(), Error> {
    let directory = directory_of(scratch);
    let free_bytes = rustix::fs::statvfs(directory).map(|facts| facts.f_bavail * facts.f_frsize);
    let free_bytes =
        free_bytes.map_err(|error| Error::system("stack", "cannot examine the file system", error))?;
    let need_bytes = size(spec).0 * (1 + STORES) + FILES_STORE_BYTES + FREE_BYTES_MIN;
    let need_bytes = need_bytes.saturating_add(more_bytes);
    if free_bytes < need_bytes {
        return Err(Error::new(driver::ErrorKind::Run, "stack", "not enough space for the scratch file")
            .with("dir", directory.display())
            .with("free", ByteSize(free_bytes).human())
            .remedy(format!(
                "free {} there, give another --dir, or reduce --size",
                ByteSize(need_bytes).human()
            )));
    }
    Ok(())
}

fn size(spec: &StackSpec) -> ByteSize {
    spec.size.unwrap_or(ByteSize(if spec.quick { 256 << 20 } else { 1 << 30 }))
}
