//! Options that hold a job back, end it, or give it priority.

use workload::control::parse_priority_shares;
use workload::spec::Operation;

use super::Site;
use crate::fio::draft::Advise;
use crate::fio::fault::Fault;
use crate::fio::value::{Triple, Value};

/// Operations that are kept for logs without log_avg_msec, of a run and of a worker.
const KEPT_OF_RUN: u64 = 8 << 20;
const KEPT_OF_WORKER: u64 = 1 << 20;

impl Site<'_> {
    pub(super) fn control(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if let Some(weight) = draft.flow.filter(|&weight| weight > 0) {
            self.set("flow", "flow", &weight.to_string())?;
            if let Some(group) = draft.flow_id.filter(|&group| group > 0) {
                self.set("flow_id", "flow-group", &group.to_string())?;
            }
        }
        if draft.log_issue_time == Some(true)
            && (draft.write_lat_log.is_none() || draft.log_offset != Some(true))
        {
            return Err(Fault::of(
                "log_issue_time",
                "requires write_lat_log and log_offset=1, as in fio: give both",
            ));
        }
        if let Some(most_ns) = draft.max_latency.filter(|&most| most > 0) {
            self.set("max_latency", "latency-max", &format!("{most_ns}ns"))?;
        }
        if let Some(errors) = draft.ignore_error.clone().filter(|errors| !errors.is_empty()) {
            self.set("ignore_error", "ignore-error", &errors)?;
        }
        self.around()?;
        self.least_rates()?;
        self.search()?;
        self.steady()?;
        self.priorities()?;
        self.advice()?;
        self.kept()
    }

    /// Commands before and after, and the scheduler of the devices.
    fn around(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let given = [
            ("exec_prerun", "run-before", &draft.exec_prerun),
            ("exec_postrun", "run-after", &draft.exec_postrun),
            ("ioscheduler", "scheduler", &draft.ioscheduler),
        ];
        for (key, option, text) in given {
            if let Some(text) = text {
                self.set(key, option, text)?;
            }
        }
        Ok(())
    }

    /// Rates that a job must keep to; that of a phase is of its clones together.
    fn least_rates(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let clones = u64::from(self.clones.count);
        let done = [self.reads(), self.writes(), self.trims()];
        let sum = |rates: Triple<u64>| {
            let asked = rates.iter().zip(done).filter(|(_, is_done)| *is_done).filter_map(|(rate, _)| *rate);
            asked.sum::<u64>().saturating_mul(clones)
        };
        let (bytes, operations) = (draft.rate_min.map_or(0, sum), draft.rate_iops_min.map_or(0, sum));
        if bytes > 0 {
            self.set("rate_min", "rate-bytes-min", &bytes.to_string())?;
        }
        if operations > 0 {
            self.set("rate_iops_min", "rate-min", &operations.to_string())?;
        }
        match draft.rate_cycle.filter(|_| bytes > 0 || operations > 0) {
            Some(cycle_ns) if cycle_ns > 0 => self.set("rate_cycle", "rate-cycle", &format!("{cycle_ns}ns")),
            _ => Ok(()),
        }
    }

    fn search(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let Some(latency_ns) = draft.latency_target.filter(|&latency| latency > 0) else { return Ok(()) };
        let window_ns = draft.latency_window.filter(|&window| window > 0).ok_or_else(|| {
            Fault::of("latency_target", "requires latency_window, the time over which latency is judged")
        })?;
        let percent = draft.latency_percentile.unwrap_or(100.0);
        self.set("latency_target", "latency-target", &format!("{latency_ns}ns:{percent}:{window_ns}ns"))?;
        if let Some(target) = &mut self.spec.control.latency_target {
            target.goes_on = draft.latency_run.unwrap_or(false);
        }
        Ok(())
    }

    fn steady(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let Some((figure, limit)) = &draft.steadystate else { return Ok(()) };
        let Some(span_ns) = draft.steadystate_duration.filter(|&span| span > 0) else {
            self.warn("steadystate without steadystate_duration has no effect, as in fio");
            return Ok(());
        };
        let ramp_ns = draft.steadystate_ramp_time.unwrap_or(0);
        let interval_ns = draft.steadystate_check_interval.filter(|&interval| interval > 0);
        let interval_ns = interval_ns.unwrap_or(1_000_000_000);
        self.set(
            "steadystate",
            "end-when-steady",
            &format!("{figure}:{limit}:{span_ns}ns:{ramp_ns}ns:{interval_ns}ns"),
        )
    }

    fn priorities(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if let Some(nice) = draft.nice.filter(|&nice| nice != 0) {
            self.set("nice", "nice", &nice.to_string())?;
        }
        if draft.prio.is_some() || draft.prioclass.is_some() {
            // A level without a class is of the class that processes have.
            let word = priority("prio", draft.prioclass.unwrap_or(2), draft.prio.unwrap_or(0))?;
            self.set("prio", "priority", &word)?;
        }
        let shares = self.command_shares()?;
        if shares.is_empty() {
            return Ok(());
        }
        if !["libaio", "io_uring"].contains(&self.engine.ours) {
            return Err(Fault::of("cmdprio_percentage", "requires ioengine=libaio or io_uring"));
        }
        self.set("cmdprio_percentage", "operation-priority", &shares.join(","))
    }

    /// Shares of the operations with a priority, in the words of `--operation-priority`.
    fn command_shares(&self) -> Result<Vec<String>, Fault> {
        let draft = self.draft;
        let of = |triple: Option<Triple<u64>>, at: usize, default| {
            triple.and_then(|triple| triple[at]).unwrap_or(default)
        };
        let directions = [("read", self.reads()), ("write", self.writes())];
        let own = |at| priority("cmdprio_class", of(draft.cmdprio_class, at, 1), of(draft.cmdprio, at, 0));
        let mut shares = Vec::new();
        for (at, (class, _)) in directions.iter().enumerate().filter(|(_, (_, is_done))| *is_done) {
            let percent = draft.cmdprio_percentage.and_then(|percents| percents[at]).unwrap_or(0);
            if percent > 0 {
                shares.push(format!("{class}:{percent}@{}", own(at)?));
            }
            let parts = draft.cmdprio_bssplit.as_deref().unwrap_or_default();
            let mut lists = parts.split(',');
            let first = lists.next().unwrap_or_default();
            let list = if at == 0 { first } else { lists.next().unwrap_or(first) };
            for entry in list.split(':').filter(|entry| !entry.trim().is_empty()) {
                shares.extend(self.command_share(class, entry.trim(), &own(at)?)?);
            }
        }
        parse_all(&shares)?;
        Ok(shares)
    }

    /// `64k/25` or `64k/25/1/1`: size, share in percent, class, level.
    fn command_share(&self, class: &str, entry: &str, own: &str) -> Result<Option<String>, Fault> {
        let fault = |message: String| Fault::of("cmdprio_bssplit", message);
        let accepted = || {
            fault(format!("\"{entry}\": use SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL, such as 64k/25/1/1"))
        };
        let fields: Vec<&str> = entry.split('/').collect();
        let number = |text: &str| {
            Value::new(text, u64::from(self.draft.kb_base.unwrap_or(1024))).number().map_err(fault)
        };
        let [size, percent, rest @ ..] = &fields[..] else { return Err(accepted()) };
        let (size, percent) = (number(size)?, number(percent)?);
        let word = match rest {
            [] => own.to_owned(),
            [class, level] => priority("cmdprio_bssplit", number(class)?, number(level)?)?,
            _ => return Err(accepted()),
        };
        Ok((percent > 0).then(|| format!("{class}/{size}:{percent}@{word}")))
    }

    fn advice(&mut self) -> Result<(), Fault> {
        let has_advice = ["psync", "pvsync2", "libaio", "io_uring"].contains(&self.engine.ours);
        let word = match self.draft.fadvise_hint.unwrap_or(Advise::ByOrder) {
            Advise::Nothing => return Ok(()),
            Advise::ByOrder if self.operation.is_random() => "random",
            Advise::ByOrder | Advise::Sequential => "sequential",
            Advise::Random => "random",
            Advise::NoReuse => "noreuse",
        };
        if has_advice { self.set("fadvise_hint", "advise", word) } else { Ok(()) }
    }

    /// Operations one by one, for logs that hold them.
    fn kept(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let logs = [&draft.write_bw_log, &draft.write_iops_log, &draft.write_lat_log];
        let is_averaged = draft.log_avg_msec.unwrap_or(0) > 0;
        let needs = logs.iter().any(|log| log.is_some()) && !is_averaged;
        if !needs && draft.write_iolog.is_none() && !self.clones.job.traces {
            return Ok(());
        }
        let clones = u64::from(draft.numjobs.unwrap_or(1));
        let room = (KEPT_OF_RUN / clones).clamp(1, KEPT_OF_WORKER);
        // What never starts needs no room.
        let blocks = self.spec.bytes.map(|bytes| bytes.0 / self.blocks.min_bytes + 1);
        let blocks = blocks.or_else(|| {
            self.spec
                .time
                .is_none()
                .then(|| self.said_bytes("size").map(|size| size / self.blocks.min_bytes + 1))?
        });
        // What `size` says is of each file, and a trim has its write.
        let files = self.spec.targets.len().max(1) as u64;
        let times = if self.operation.is_pair() { 2 * files } else { files };
        let blocks = blocks.map(|blocks| blocks.saturating_mul(times));
        let replayed = self.spec.replay.as_ref().map(|replay| replay.steps.len() as u64);
        let least = replayed.or([blocks, self.spec.count].into_iter().flatten().min());
        if least.is_none_or(|least| least > room) {
            self.warn(format!(
                "logs of single operations contain only the first {room} operations of each worker"
            ));
        }
        let kept = least.map_or(room, |least| least.clamp(1, room));
        self.set("log_avg_msec", "keep-operations", &kept.to_string())
    }
}

/// In the words of `--priority`.
fn priority(key: &str, class: u64, level: u64) -> Result<String, Fault> {
    if level > 7 {
        return Err(Fault::of(key, format!("level {level}: use 0 (highest) to 7")));
    }
    match class {
        0 => Ok("none".to_owned()),
        1 => Ok(format!("realtime:{level}")),
        2 => Ok(format!("best-effort:{level}")),
        3 => Ok(format!("idle:{level}")),
        _ => Err(Fault::of(key, format!("class {class}: use 1 (realtime), 2 (best effort) or 3 (idle)"))),
    }
}

fn parse_all(shares: &[String]) -> Result<(), Fault> {
    for share in shares {
        parse_priority_shares(share).map_err(|error| Fault::of("cmdprio_bssplit", error.to_string()))?;
    }
    Ok(())
}

/// Whether an engine changes files or asks of them, and moves no data: each file is one operation.
pub(super) fn is_of_files(engine: &str) -> bool {
    matches!(engine, "filestat" | "filedelete" | "filecreate" | "dircreate" | "dirstat" | "dirdelete")
}

/// Operation of such an engine, whatever rw says.
pub(super) fn of_engine(engine: &str, operation: Operation) -> Operation {
    match engine {
        "filestat" | "dirstat" => Operation::Read,
        "filedelete" | "filecreate" | "dircreate" | "dirdelete" => Operation::Write,
        "cpu" | "exec" => Operation::Nop,
        _ => operation,
    }
}
