//! A run on many hosts: all made ready, started together, watched, and their results collected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::address::HostAddress;
use crate::client::host::{Command, HostEnd, HostEvent};
use crate::clock::{ClockEstimate, unix_ns};
use crate::messages::ProgressReport;

/// How often interrupt and deadlines are looked at.
const TICK: Duration = Duration::from_millis(50);

/// How often progress is shown, at most.
const SHOW_INTERVAL: Duration = Duration::from_millis(100);

/// Room for the start to reach all hosts before it comes: in general, and by host.
const LEAD: Duration = Duration::from_millis(10);
const LEAD_BY_HOST: Duration = Duration::from_micros(100);

/// Action when some hosts cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// The others begin without them.
    GoOn,
    /// Nobody begins.
    StopAll,
}

/// How patient a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPolicy {
    /// Action when some hosts cannot begin.
    pub on_refusal: OnRefusal,
    /// How long hosts may take to be ready.
    pub ready_timeout: Duration,
    /// How long a running host may be silent until it counts as hung.
    pub silence_timeout: Duration,
    /// How long hosts that were told to stop may take to bring their results.
    pub collect_timeout: Duration,
}

impl Default for RunPolicy {
    /// Nobody begins without the others; a minute to be ready or silent, half a minute to bring results.
    fn default() -> Self {
        Self {
            on_refusal: OnRefusal::StopAll,
            ready_timeout: Duration::from_secs(60),
            silence_timeout: Duration::from_secs(60),
            collect_timeout: Duration::from_secs(30),
        }
    }
}

/// Where a host is in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStage {
    /// It has the plan and is making ready.
    Preparing,
    /// It waits for the start.
    Ready,
    /// It is at work.
    Running,
    /// It has ended, as its [`HostOutcome`] will tell.
    Ended,
}

/// A host in the middle of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct HostProgress {
    /// Its place in the fleet.
    pub host: usize,
    /// Where it is.
    pub address: HostAddress,
    /// Where it is in the run.
    pub stage: HostStage,
    /// The latest that it told.
    pub report: Option<ProgressReport>,
    /// Failure of the host, if any: one line.
    pub failure: Option<String>,
}

/// A host after a run.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOutcome {
    /// Its place in the fleet.
    pub host: usize,
    /// Where it is.
    pub address: HostAddress,
    /// Its clock against that of this process; none when it was not reached.
    pub clock: Option<ClockEstimate>,
    /// Notes that it gave when it was ready, and its messages that could not be read.
    pub notes: Vec<String>,
    /// How long after the common start it began, nanoseconds by the clock of this process, as well as
    /// [`ClockEstimate::uncertainty_ns`] allows; negative when before. None when it did not begin.
    pub start_lateness_ns: Option<i64>,
    /// The latest progress before its end.
    pub progress: Option<ProgressReport>,
    /// How it ended.
    pub end: HostEnd,
}

impl HostEnd {
    /// Failure that ended the host's part, if any: one line.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Finished(outcome) => outcome.failure.as_deref(),
            Self::Refused(refusal) => Some(&refusal.line),
            Self::Failed(line) => Some(line),
        }
    }
}

impl HostOutcome {
    /// Failure of the host, if any: one line.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.end.failure()
    }
}

/// One host of a run.
pub(crate) struct Member {
    pub(crate) progress: HostProgress,
    pub(crate) clock: Option<ClockEstimate>,
    pub(crate) commands: Option<mpsc::Sender<Command>>,
    pub(crate) task: Option<JoinHandle<()>>,
    pub(crate) end: Option<HostEnd>,
    pub(crate) notes: Vec<String>,
    pub(crate) started_unix_ns: Option<u64>,
    pub(crate) heard: Instant,
}

impl Member {
    fn finish(&mut self, end: HostEnd) {
        if self.end.is_none() {
            self.progress.failure = end.failure().map(str::to_owned);
            self.end = Some(end);
            self.progress.stage = HostStage::Ended;
        }
        // The stream goes with the task; where the agent is still at work, that stops it.
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    fn tell(&self, command: Command) {
        if let Some(commands) = &self.commands
            && self.end.is_none()
        {
            // At most a start and a stop are ever told, and there is room for both.
            let _ = commands.try_send(command);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// Where the run as a whole is.
#[derive(Clone, Debug)]
enum Stage {
    Gathering { until: Instant },
    Running,
    Collecting { until: Instant, why: String },
}

/// A run in progress.
pub(crate) struct Run<'a> {
    members: Vec<Member>,
    events: mpsc::Receiver<(usize, HostEvent)>,
    policy: &'a RunPolicy,
    stage: Stage,
    start_unix_ns: Option<u64>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        members: Vec<Member>,
        events: mpsc::Receiver<(usize, HostEvent)>,
        policy: &'a RunPolicy,
    ) -> Self {
        let stage = Stage::Gathering { until: Instant::now() + policy.ready_timeout };
        Self { members, events, policy, stage, start_unix_ns: None }
    }

    /// Goes on until every host has ended.
    pub(crate) fn finish(
        mut self,
        runtime: &Runtime,
        observe: &mut dyn FnMut(&[HostProgress]),
        interrupt: &AtomicBool,
    ) -> Vec<HostOutcome> {
        let mut shown: Option<Instant> = None;
        loop {
            self.hear(runtime);
            self.advance(interrupt.load(Ordering::Relaxed));
            let is_over = self.members.iter().all(|member| member.end.is_some());
            if is_over || shown.is_none_or(|shown| shown.elapsed() >= SHOW_INTERVAL) {
                shown = Some(Instant::now());
                let progress: Vec<_> = self.members.iter().map(|member| member.progress.clone()).collect();
                observe(&progress);
            }
            if is_over {
                return self.outcomes();
            }
        }
    }

    /// Takes what hosts have said, and waits a tick for it.
    fn hear(&mut self, runtime: &Runtime) {
        let first = runtime.block_on(async { tokio::time::timeout(TICK, self.events.recv()).await });
        let mut next = first.ok().flatten();
        while let Some((place, event)) = next {
            self.note(place, event);
            next = self.events.try_recv().ok();
        }
    }

    fn note(&mut self, place: usize, event: HostEvent) {
        let member = &mut self.members[place];
        member.heard = Instant::now();
        if member.end.is_some() {
            return;
        }
        match event {
            HostEvent::Ready(notes) => {
                member.notes.extend(notes);
                member.progress.stage = HostStage::Ready;
            }
            HostEvent::Started(unix_ns) => {
                member.started_unix_ns = Some(unix_ns);
                member.progress.stage = HostStage::Running;
            }
            HostEvent::Progress(report) => member.progress.report = Some(*report),
            HostEvent::Unreadable(why) => {
                if !member.notes.contains(&why) {
                    member.notes.push(why);
                }
            }
            HostEvent::End(end) => member.finish(end),
        }
    }

    /// Decides what comes next, now that all has been heard.
    fn advance(&mut self, is_interrupted: bool) {
        if is_interrupted && !matches!(self.stage, Stage::Collecting { .. }) {
            self.stop_all("the run was interrupted".to_owned());
        }
        match self.stage.clone() {
            Stage::Gathering { until } => self.gather(until),
            Stage::Running => {
                let limit = self.policy.silence_timeout;
                for member in self.members.iter_mut().filter(|member| member.heard.elapsed() > limit) {
                    member.finish(HostEnd::Failed(format!(
                        "run: {} has been silent for {limit:?} and is considered hung",
                        member.progress.address
                    )));
                }
            }
            Stage::Collecting { until, why } => {
                if Instant::now() >= until {
                    for member in &mut self.members {
                        let address = &member.progress.address;
                        let end =
                            HostEnd::Failed(format!("run: {address} sent no result in time after: {why}"));
                        member.finish(end);
                    }
                }
            }
        }
    }

    fn gather(&mut self, until: Instant) {
        if Instant::now() >= until {
            let limit = self.policy.ready_timeout;
            for member in &mut self.members {
                if member.progress.stage == HostStage::Preparing {
                    let address = &member.progress.address;
                    let end = HostEnd::Failed(format!("run: {address} was not ready within {limit:?}"));
                    member.finish(end);
                }
            }
        }
        let failed: Vec<&Member> = self.members.iter().filter(|member| is_failure(member)).collect();
        if self.policy.on_refusal == OnRefusal::StopAll
            && let Some(first) = failed.first()
        {
            let more = match failed.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let why = format!("{}{more} could not start", first.progress.address);
            return self.stop_all(why);
        }
        if self.members.iter().any(|member| member.progress.stage == HostStage::Preparing) {
            return;
        }
        let waiting = self.members.iter().filter(|member| member.progress.stage == HostStage::Ready).count();
        if waiting > 0 {
            self.go(waiting);
        }
    }

    /// Tells the hosts a common moment, far enough ahead that each hears of it in time.
    fn go(&mut self, hosts: usize) {
        let slowest =
            self.members.iter().filter_map(|member| Some(member.clock?.round_trip_ns)).max().unwrap_or(0);
        let lead =
            LEAD + LEAD_BY_HOST * u32::try_from(hosts).unwrap_or(u32::MAX) + Duration::from_nanos(slowest);
        let at = Instant::now() + lead;
        self.start_unix_ns =
            Some(unix_ns().saturating_add(u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX)));
        for member in &mut self.members {
            member.tell(Command::Go(at));
            member.heard = Instant::now();
        }
        self.stage = Stage::Running;
    }

    /// Those that have not begun end at once; the others are told, and their results awaited.
    fn stop_all(&mut self, why: String) {
        for member in &mut self.members {
            member.tell(Command::Stop);
            if matches!(self.stage, Stage::Gathering { .. }) {
                member.finish(HostEnd::Failed(format!("run: not started: {why}")));
            }
        }
        self.stage = Stage::Collecting { until: Instant::now() + self.policy.collect_timeout, why };
    }

    fn outcomes(mut self) -> Vec<HostOutcome> {
        let start = self.start_unix_ns;
        self.members.iter_mut().map(|member| member.outcome(start)).collect()
    }
}

fn is_failure(member: &Member) -> bool {
    !matches!(member.end, None | Some(HostEnd::Finished(_)))
}

impl Member {
    fn outcome(&mut self, start_unix_ns: Option<u64>) -> HostOutcome {
        let lateness = || {
            let started = self.clock?.here(self.started_unix_ns?);
            i64::try_from(started - i128::from(start_unix_ns?)).ok()
        };
        HostOutcome {
            host: self.progress.host,
            address: self.progress.address.clone(),
            clock: self.clock,
            start_lateness_ns: lateness(),
            notes: std::mem::take(&mut self.notes),
            progress: self.progress.report.take(),
            end: self.end.take().unwrap_or_else(|| HostEnd::Failed("run: it did not end".to_owned())),
        }
    }
}
