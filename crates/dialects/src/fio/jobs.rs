//! From jobs to the specs of a run, and to what its results are shown with.

use std::path::PathBuf;

use workload::replay::{Replay, ReplayClass};
use workload::spec::{Operation, Spec};

use crate::World;
use crate::fio::draft::Draft;
use crate::fio::engines::layer_of;
use crate::fio::fault::{Fault, Origin};
use crate::fio::model::{Direction, Job, Log, LogKind};
use crate::fio::settle::Settled;
use crate::fio::specs::{Built, Clones, build};
use crate::fio::state;

/// Jobs of a run with all their clones.
const JOBS_MAX: usize = 4096;
/// Files of all specs together, each counted as often as it is named.
const FILES_MAX: usize = 1_000_000;
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Result of assembling the jobs of a run.
#[derive(Default)]
pub(super) struct Assembled {
    pub(super) specs: Vec<Spec>,
    pub(super) jobs: Vec<Job>,
    /// One line for each thing that is done otherwise, with the jobs that it is about.
    pub(super) warnings: Vec<String>,
    /// The same as found: job and text.
    found: Vec<(String, String)>,
    /// For each job section: the stage that it runs in and the group that it is reported in.
    stages: Vec<(usize, usize)>,
    /// For each spec, the section that it comes from.
    sections: Vec<usize>,
    /// For each spec, whether objects are read back when all are written.
    reads_back: Vec<bool>,
    /// For each spec, where the range of each file ends.
    pub(super) ends_bytes: Vec<u64>,
    clones: usize,
    files: usize,
}

/// Makes the specs of all jobs.
///
/// # Errors
/// A request of a job that cannot be met, or jobs that do not go together.
pub(super) fn assemble(jobs: &[Settled], world: &dyn World) -> Result<Assembled, Fault> {
    let mut all = Assembled::default();
    let (mut stage, mut group, mut in_group) = (0, 0, 0usize);
    let mut is_chained = false;
    for (index, job) in jobs.iter().enumerate() {
        let walled = job.waits || job.draft.stonewall == Some(true);
        let waits = !walled && waits_for(jobs, index, &all.stages, stage)?;
        is_chained = !walled && (waits || is_chained);
        if is_chained && job.draft.wait_for.is_none() {
            let message = "is not supported: a job without wait_for follows a job with wait_for, and fio would start it earlier; alternative: put it first, or give it wait_for or stonewall";
            return Err(located(Fault::of("wait_for", message), job));
        }
        if index > 0 && (walled || waits) {
            stage += 1;
        }
        if in_group > 0 && (walled || job.draft.new_group == Some(true)) {
            group += 1;
            in_group = 0;
        }
        in_group += 1;
        all.stages.push((stage, group));
    }
    // As in fio: where one job says so, all do.
    let exits = jobs.iter().any(|job| job.draft.exitall == Some(true));
    for (index, job) in jobs.iter().enumerate() {
        let apart = exits && all.is_stage(index);
        let joins = index > 0 && all.stages[index].0 == all.stages[index - 1].0;
        all.add(index, job, (joins, apart), world)?;
    }
    if exits {
        all.set_ends(jobs)?;
    }
    all.check_layers(jobs)?;
    all.fold_warnings();
    check_agreement(jobs, "unlink", Draft::removes_files)?;
    check_agreement(jobs, "randseed", |draft| draft.randseed)?;
    check_agreement(jobs, "randrepeat", |draft| draft.randrepeat.unwrap_or(true))?;
    Ok(all)
}

impl Assembled {
    /// The stage that a spec runs in, from 0.
    pub(super) fn stage_of(&self, spec: usize) -> usize {
        self.stages[self.sections[spec]].0
    }

    /// All stages.
    pub(super) fn stage_count(&self) -> usize {
        self.stages.last().map_or(0, |(stage, _)| stage + 1)
    }

    /// Whether all jobs that run at the same time as this one are of its group.
    fn is_stage(&self, at: usize) -> bool {
        let (stage, group) = self.stages[at];
        self.stages.iter().all(|(other, its)| *other != stage || *its == group)
    }

    /// Adds a job; whether it runs at the same time as the one before, and whether the first clone that ends ends the others.
    fn add(
        &mut self,
        at: usize,
        job: &Settled,
        (joins, apart): (bool, bool),
        world: &dyn World,
    ) -> Result<(), Fault> {
        let clones = job.draft.numjobs.unwrap_or(1);
        if self.clones + clones as usize > JOBS_MAX {
            let fault =
                Fault::of("numjobs", format!("a run can have at most {JOBS_MAX} jobs, clones included"));
            return Err(located(fault, job));
        }
        // The threads of one phase do not end each other.
        let one = is_one_phase(&job.draft) && !(apart && clones > 1);
        let (parts, each) = if one { (1, clones) } else { (clones, 1) };
        for part in 0..parts {
            let index = self.clones;
            let built = build(Clones { job, first: part * each, count: each, index, world })?;
            self.files += built.spec.targets.len();
            if self.files > FILES_MAX {
                let fault =
                    Fault::of("nrfiles", format!("a run can use at most {FILES_MAX} files in all its jobs"));
                return Err(located(fault, job));
            }
            self.push(job, built, at, each, joins || part > 0);
        }
        Ok(())
    }

    fn push(&mut self, job: &Settled, built: Built, at: usize, clones: u32, concurrent: bool) {
        let number = self.clones + 1;
        self.clones += clones as usize;
        let mut shown = shown_job(job, &built);
        if job.draft.verify_state_save == Some(true)
            && job.draft.verifies()
            && job.draft.verify_only != Some(true)
        {
            let path = |index| state::path(job.state_directory.as_deref(), &shown.name, index);
            let writes = shown.directions.contains(&Direction::Write);
            shown.states = (number - 1..self.clones).filter(|_| writes).map(path).collect();
        }
        shown.group = self.stages[at].1;
        shown.number = number;
        shown.clones = clones;
        shown.request = self.specs.len();
        self.found.extend(built.warnings.into_iter().map(|warning| (shown.name.clone(), warning)));
        let mut spec = built.spec;
        spec.concurrent = concurrent;
        self.sections.push(at);
        self.reads_back.push(built.reads_back);
        self.ends_bytes.push(built.end_bytes);
        self.jobs.push(shown);
        self.specs.push(spec);
    }

    fn fold_warnings(&mut self) {
        const NAMES_MAX: usize = 3;
        let mut folded: Vec<(String, Vec<String>)> = Vec::new();
        for (name, text) in self.found.drain(..) {
            let name = crate::fio::fault::shown(&name);
            match folded.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => folded.push((text, vec![name])),
            }
        }
        let line = |(text, names): (String, Vec<String>)| match names.len().saturating_sub(NAMES_MAX) {
            0 => format!("{}: {text}", names.join(", ")),
            more => format!("{} and {more} more jobs: {text}", names[..NAMES_MAX].join(", ")),
        };
        self.warnings = folded.into_iter().map(line).collect();
    }

    /// Checks that jobs which run at the same time are of one kind, and that a job which reads back runs alone.
    fn check_layers(&self, jobs: &[Settled]) -> Result<(), Fault> {
        let mut of_stage: Vec<(usize, usize)> = Vec::new();
        for (at, (section, spec)) in self.sections.iter().zip(&self.specs).enumerate() {
            let stage = self.stages[*section].0;
            let beside = of_stage.iter().rev().find(|(other, _)| *other == stage).map(|(_, at)| *at);
            of_stage.push((stage, at));
            let Some(beside) = beside else { continue };
            if spec.layer != self.specs[beside].layer {
                let message = format!(
                    "{} is not supported beside job {} with ioengine={}: loads of different layers cannot run at the same time; alternative: stonewall",
                    self.jobs[at].engine,
                    crate::fio::fault::shown(&self.jobs[beside].name),
                    self.jobs[beside].engine
                );
                return Err(located(Fault::of("ioengine", message), &jobs[*section]));
            }
            if self.reads_back[at] || self.reads_back[beside] {
                let message = "a job that reads its data back must run alone: give it stonewall and numjobs=1, or do_verify=0 and a later job that reads, after a stonewall";
                return Err(located(Fault::of("verify", message), &jobs[*section]));
            }
        }
        Ok(())
    }

    /// Gives each spec whether its end ends others.
    fn set_ends(&mut self, jobs: &[Settled]) -> Result<(), Fault> {
        for (at, job) in jobs.iter().enumerate() {
            let ends = self.ends_others(at, job)?;
            let of_job = self.sections.iter().zip(&mut self.specs).filter(|(section, _)| **section == at);
            of_job.for_each(|(_, spec)| spec.end_others = ends);
        }
        Ok(())
    }

    /// A phase ends all that run at the same time or none; fio's word may mean others.
    fn ends_others(&self, at: usize, job: &Settled) -> Result<bool, Fault> {
        let (stage, group) = self.stages[at];
        let last = self.stages.last().map_or(0, |(stage, _)| *stage);
        let word = job.draft.exit_what.as_deref().unwrap_or("group");
        let is_alone = self.stages.iter().filter(|place| **place == (stage, group)).count() == 1
            && self.sections.iter().filter(|section| **section == at).count() == 1;
        let is_stage = self.is_stage(at);
        let beside = self.sections.iter().filter(|section| self.stages[**section].0 == stage).count();
        match word {
            "stonewall" | "group" | "all" if beside == 1 => Ok(false),
            "stonewall" => Ok(true),
            "group" if is_stage => Ok(true),
            "group" if is_alone => Ok(false),
            "all" if stage == last => Ok(true),
            "group" | "all" => {
                let message = format!(
                    "exitall with exit_what={word} is not supported: strata can only end the jobs that run at the same time; alternative: exit_what=stonewall"
                );
                Err(located(Fault::of("exit_what", message), job))
            }
            _ => Err(located(Fault::of("exit_what", "use group, stonewall or all"), job)),
        }
    }
}

/// Whether a job begins a stage of its own because it waits for the one that runs alone in the stage so far.
fn waits_for(jobs: &[Settled], index: usize, stages: &[(usize, usize)], stage: usize) -> Result<bool, Fault> {
    let Some(name) = &jobs[index].draft.wait_for else { return Ok(false) };
    let refuse = |message: String| Err(located(Fault::of("wait_for", message), &jobs[index]));
    let before = || jobs[..index].iter().zip(stages);
    let Some((_, (of_it, _))) = before().find(|(job, _)| *job.section == **name) else {
        return refuse(format!("no job {} precedes this one", crate::fio::fault::shown(name)));
    };
    if *of_it < stage {
        return Ok(false);
    }
    match before().find(|(job, (at, _))| *at == stage && *job.section != **name) {
        Some((other, _)) => refuse(format!(
            "is not supported: job {} runs at the same time as {} and could still be running; alternative: stonewall",
            crate::fio::fault::shown(&other.section),
            crate::fio::fault::shown(name)
        )),
        None => Ok(true),
    }
}

fn located(fault: Fault, job: &Settled) -> Fault {
    let place = fault.key.as_deref().and_then(|key| job.draft.place(key)).cloned();
    fault.at(&place.unwrap_or_else(|| Origin::Job(job.section.clone())))
}

/// Some things hold for a run, not for a job.
fn check_agreement<T: PartialEq>(jobs: &[Settled], key: &str, of: impl Fn(&Draft) -> T) -> Result<(), Fault> {
    let Some(first) = jobs.first().map(|job| of(&job.draft)) else { return Ok(()) };
    match jobs.iter().find(|job| of(&job.draft) != first) {
        Some(job) => {
            let message = "differs from the first job: it applies to the whole run, so set it in [global]";
            Err(located(Fault::of(key, message), job))
        }
        None => Ok(()),
    }
}

/// Whether all clones of a job can be the threads of one phase: they are reported as one, and nothing tells them apart.
fn is_one_phase(draft: &Draft) -> bool {
    let logs = [&draft.write_bw_log, &draft.write_iops_log, &draft.write_lat_log, &draft.write_hist_log];
    let own_logs = draft.per_job_logs.unwrap_or(true) && logs.iter().any(|log| log.is_some());
    // Objects are named for each phase, not for each of its threads; so are files over objects, of which one phase has one.
    let own_names = match draft.engine.as_ref().map(|engine| layer_of(engine.ours)) {
        Some("object") => draft.filename.is_none(),
        Some("filesystem") => true,
        _ => false,
    };
    draft.group_reporting == Some(true) && draft.offset_increment.is_none() && !own_logs && !own_names
}

fn shown_job(job: &Settled, built: &Built) -> Job {
    let draft = &job.draft;
    let reduced = draft.gtod_reduce == Some(true);
    let hidden = |flag: Option<bool>| flag.unwrap_or(reduced);
    let name = draft.name.clone().unwrap_or_else(|| job.section.to_string());
    Job {
        group: 0,
        number: 0,
        clones: 1,
        group_reporting: draft.group_reporting == Some(true),
        request: 0,
        rw: fio_word(built.access.operation).to_owned(),
        directions: match &built.spec.replay {
            Some(replay) => replayed_directions(replay),
            None => directions(built.access.operation),
        },
        block_size_bytes: (built.blocks.min_bytes, built.blocks.max_bytes),
        engine: built.engine.typed.clone(),
        depth: built.depth,
        description: draft.description.clone(),
        options: job.options.clone(),
        percentiles: draft.percentile_list.clone().unwrap_or_else(|| PERCENTILES.to_vec()),
        shows_completion_percentiles: draft.clat_percentiles.unwrap_or(true) && !hidden(draft.disable_clat),
        shows_submission_percentiles: draft.slat_percentiles.unwrap_or(false) && !hidden(draft.disable_slat),
        shows_total_percentiles: draft.lat_percentiles.unwrap_or(false) && !hidden(draft.disable_lat),
        shows_latency: !hidden(draft.disable_lat),
        shows_completion: !hidden(draft.disable_clat),
        shows_submission: !hidden(draft.disable_slat),
        unified: draft.unified.unwrap_or_default(),
        kb_base: draft.kb_base.unwrap_or(1024),
        unit_base: draft.unit_base.unwrap_or(8),
        bandwidth_average_ms: draft.bwavgtime.unwrap_or(500),
        logs: logs(draft, &name),
        operation_log: draft.write_iolog.as_ref().map(PathBuf::from),
        log_average_ms: draft.log_avg_msec.or(draft.log_hist_msec).filter(|&length| length > 0),
        per_job_logs: draft.per_job_logs.unwrap_or(true),
        log_suffix: None,
        log_offset: draft.log_offset.unwrap_or(false),
        log_priority: draft.log_prio.unwrap_or(false).then(|| {
            let priority = built.spec.control.priority;
            priority.map_or(0, workload::control::IoPriority::value)
        }),
        log_epoch: draft.log_epoch.unwrap_or(false),
        log_issue_time: draft.log_issue_time.unwrap_or(false),
        log_compressed: draft.log_compressed.unwrap_or(false),
        log_value: draft.log_value.unwrap_or_default(),
        states: Vec::new(),
        synced_every: synced_every(draft),
        is_shown: draft.stats.unwrap_or(true),
        name,
    }
}

/// Of writes that were made durable only those before the last such call count.
fn synced_every(draft: &Draft) -> Option<u64> {
    let is_at_end = [draft.end_fsync, draft.fsync_on_close].contains(&Some(true));
    let every = draft.fsync.or(draft.fdatasync).filter(|&every| every > 0);
    let counts = draft.verify_policy.as_deref() == Some("fsynced") && !is_at_end;
    // Without such a call none does.
    counts.then(|| every.unwrap_or(u64::MAX))
}

fn logs(draft: &Draft, name: &str) -> Vec<Log> {
    let asked = [
        (LogKind::Bandwidth, &draft.write_bw_log),
        (LogKind::Iops, &draft.write_iops_log),
        (LogKind::Latency, &draft.write_lat_log),
        (LogKind::Histogram, &draft.write_hist_log),
    ];
    let log = |(kind, prefix): (LogKind, &Option<String>)| {
        let prefix = prefix.as_ref()?;
        Some(Log { kind, prefix: if prefix.is_empty() { name.to_owned() } else { prefix.clone() } })
    };
    asked.into_iter().filter_map(log).collect()
}

/// Directions of the operations of a log.
fn replayed_directions(replay: &Replay) -> Vec<Direction> {
    let all = [
        (ReplayClass::Read, Direction::Read),
        (ReplayClass::Write, Direction::Write),
        (ReplayClass::Discard, Direction::Trim),
    ];
    all.into_iter().filter(|(class, _)| replay.has(*class)).map(|(_, direction)| direction).collect()
}

fn directions(operation: Operation) -> Vec<Direction> {
    match operation {
        Operation::Read | Operation::RandRead | Operation::Nop => vec![Direction::Read],
        Operation::Write | Operation::RandWrite => vec![Direction::Write],
        Operation::Discard | Operation::RandDiscard => vec![Direction::Trim],
        Operation::ReadWrite | Operation::RandRw => vec![Direction::Read, Direction::Write],
        Operation::DiscardWrite | Operation::RandDiscardWrite => vec![Direction::Write, Direction::Trim],
    }
}

/// The operation as fio shows it.
fn fio_word(operation: Operation) -> &'static str {
    match operation {
        Operation::Discard => "trim",
        Operation::RandDiscard => "randtrim",
        Operation::DiscardWrite => "trimwrite",
        Operation::RandDiscardWrite => "randtrimwrite",
        Operation::ReadWrite => "rw",
        other => other.name(),
    }
}
