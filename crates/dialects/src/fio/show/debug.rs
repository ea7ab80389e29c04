//! Output of `--debug` and `--idle-prof`.

use report::record::Record;

use super::entry::CLASSES;
use crate::fio::model::{Model, Topic};

/// The lines of the topics that were asked for.
pub(super) fn lines(model: &Model, record: &Record) -> String {
    let mut text = String::new();
    for topic in &model.output.debug {
        let lines = match topic {
            // They are told when they are done.
            Topic::Io => Vec::new(),
            Topic::Parse => parsed(model),
            Topic::Job => model.jobs.iter().map(job).collect(),
            // One generator of a run draws the seeds of all that is random in it.
            Topic::Random => vec!["FIO_RAND_NR_OFFS=1".to_owned(), format!("rand_seeds[0]={}", record.seed)],
        };
        for line in lines {
            text += &format!("{:<8} {:<6} {line}\n", topic.name(), model.process_id);
        }
    }
    text
}

/// The operations of all jobs that were kept one by one, in the order in which they completed, where `--debug=io` asks for them.
pub(super) fn traced(model: &Model, record: &Record) -> String {
    if !model.output.debug.contains(&Topic::Io) {
        return String::new();
    }
    let mut lines: Vec<(u64, String)> = Vec::new();
    for job in &model.jobs {
        let phases = record.phases.iter().filter(|phase| phase.request == job.request);
        for (phase, worker) in
            phases.flat_map(|phase| phase.samples.workers.iter().map(move |worker| (phase, worker)))
        {
            for sample in &worker.kept {
                let class = phase.samples.classes.get(sample.class).map_or("", String::as_str);
                let Some(direction) = CLASSES.iter().position(|name| *name == class) else { continue };
                let target = phase.plan.targets().get(usize::from(sample.target));
                let line = format!(
                    "{:<8} {:<6} complete: io_u {:#x}: off={:#x},len={:#x},ddir={direction},file={}\n",
                    Topic::Io.name(),
                    model.process_id,
                    lines.len(),
                    sample.offset_bytes,
                    sample.bytes,
                    target.map_or("", |target| target.path.as_str()),
                );
                lines.push((phase.samples.started_ns.saturating_add(sample.ended_ns), line));
            }
        }
    }
    lines.sort_by_key(|(at_ns, _)| *at_ns);
    lines.into_iter().map(|(_, line)| line).collect()
}

fn parsed(model: &Model) -> Vec<String> {
    let line = |job: &str, (name, value): &(String, String)| format!("[{job}] {name}={value}");
    let global = model.global_options.iter().map(|option| line("global", option));
    let own = model.jobs.iter().flat_map(|job| job.options.iter().map(|option| line(&job.name, option)));
    global.chain(own).collect()
}

fn job(job: &crate::fio::model::Job) -> String {
    format!(
        "{}: number={}, clones={}, group={}, rw={}, ioengine={}, iodepth={}",
        job.name, job.number, job.clones, job.group, job.rw, job.engine, job.depth
    )
}

/// Idle time of the machine while phases ran, in percent; none where the kernel's accounting is too coarse for it.
pub(super) fn idle_percent(record: &Record) -> Option<f64> {
    let processors = f64::from(record.environment.processor.logical_cores?);
    let (mut busy, mut whole) = (0.0, 0.0);
    for stage in record.phases.chunk_by(|one, other| one.stage == other.stage) {
        let length = stage.iter().map(|phase| phase.samples.elapsed_ns).max().unwrap_or(0) as f64;
        busy += stage.iter().find_map(|phase| phase.observations.machine_cpus_busy)? * length;
        whole += processors * length;
    }
    (whole > 0.0).then(|| (100.0 * (1.0 - busy / whole)).clamp(0.0, 100.0))
}
