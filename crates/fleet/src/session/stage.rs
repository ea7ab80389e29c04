//! A stage on all hosts: made ready, begun at a common moment, watched, and brought home.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind};
use serde_json::Value;
use statistics::{HostRole, MasterReport, PhaseSamples};

use super::leader::{Member, Sessions, State};
use super::link::Command;
use crate::clock::{ClockEstimate, unix_ns};
use crate::messages::ProgressReport;

/// How often progress is shown: of few hosts, and of any number at least. In between, showing takes one part of so many of the time.
const SHOW_INTERVAL: Duration = Duration::from_millis(100);
const SHOW_INTERVAL_MAX: Duration = Duration::from_secs(1);
const SHOW_PARTS: u32 = 100;

/// Room for the start to reach all hosts before it comes: in general, and by host.
const LEAD: Duration = Duration::from_millis(10);
const LEAD_BY_HOST: Duration = Duration::from_micros(100);

/// How long a host may say nothing: while it gets ready, and while it measures.
const SILENCE_PREPARING: Duration = Duration::from_secs(600);
const SILENCE_RUNNING: Duration = Duration::from_secs(120);

/// How long hosts that were told to stop may take to bring what they have.
const COLLECT_WAIT: Duration = Duration::from_secs(60);

/// Tasks of hosts in a stage, as strata has it.
#[derive(Clone, Debug)]
pub enum StageTasks {
    /// All of them the same.
    Common(Value),
    /// Each its own; none: it takes no part in this stage.
    Apart(Vec<Option<Value>>),
}

impl StageTasks {
    /// The tasks of hosts by number, as bytes.
    fn bytes(&self, hosts: usize) -> Vec<Option<Vec<u8>>> {
        let bytes = |value: &Value| value.to_string().into_bytes();
        match self {
            Self::Common(value) => vec![Some(bytes(value)); hosts],
            Self::Apart(values) => (0..hosts).map(|host| values.get(host)?.as_ref().map(bytes)).collect(),
        }
    }
}

/// A stage to run on all hosts.
#[derive(Clone, Debug)]
pub struct StageRequest {
    /// The tasks of the hosts.
    pub tasks: StageTasks,
    /// Rank 0 is ready before the others begin to get ready: it makes what they share.
    pub first_alone: bool,
}

/// Results of a host in a stage.
#[derive(Clone, Debug, Default)]
pub struct HostStageEnd {
    /// Phases by their number in the stage, with what else there is of them.
    pub phases: Vec<(usize, PhaseSamples, Value)>,
    /// Notes that it gave when it was ready.
    pub notes: Vec<String>,
    /// Why the host failed: one line.
    pub failure: Option<String>,
}

/// A stage that ran.
#[derive(Clone, Debug, Default)]
pub struct StageOutcome {
    /// One entry a host.
    pub hosts: Vec<HostStageEnd>,
    /// When it began for all, by the clock of this process; none where it could not begin.
    pub start_unix_ns: Option<u64>,
}

/// A host in the middle of a stage.
#[derive(Clone, Copy, Debug)]
pub struct SessionProgress<'a> {
    /// Its number.
    pub host: usize,
    /// The latest that it told; none before the first of this stage.
    pub report: Option<&'a ProgressReport>,
    /// Whether it has ended its part of the stage.
    pub has_ended: bool,
    /// Why it is no longer part of the run: one line.
    pub failure: Option<&'a str>,
}

impl<'a> SessionProgress<'a> {
    /// The same as a report on a host that drives load, under this label.
    #[must_use]
    pub fn labelled(&self, label: &'a str) -> MasterReport<'a> {
        let snapshot = match self.report {
            Some(ProgressReport::Running(snapshot)) => Some(snapshot),
            _ => None,
        };
        let (has_ended, failure) = (self.has_ended, self.failure);
        MasterReport { label, role: HostRole::Client, snapshot, has_ended, failure }
    }
}

impl Sessions {
    /// Runs a stage on all hosts that are still part of the run, and returns when each has ended. `observe` sees all of them about every 100 ms, less often where it
    /// takes long, and at least about once a second. When
    /// `interrupt` is raised they are told to stop, and what they measured until then is still brought home.
    ///
    /// # Errors
    /// No host is left.
    pub fn stage(
        &mut self,
        request: &StageRequest,
        observe: &mut dyn FnMut(&[SessionProgress<'_>]),
        interrupt: &AtomicBool,
    ) -> Result<StageOutcome, Error> {
        for member in &mut self.members {
            (member.stage, member.report) = (HostStageEnd::default(), None);
            member.stage.failure.clone_from(&member.failure);
        }
        if self.members.iter().all(|member| member.state == State::Over) {
            return Err(Error::new(ErrorKind::Run, "hosts", "no host is left"));
        }
        let mut stage = Running {
            tasks: request.tasks.bytes(self.members.len()),
            first_alone: request.first_alone,
            shown: None,
            show_interval: SHOW_INTERVAL,
            start_unix_ns: None,
            stopped: None,
        };
        let members = &self.members;
        let takes_part = |host: usize| stage.tasks[host].is_some() && members[host].state != State::Over;
        self.meetings.begin_stage(|rank| takes_part(rank as usize));
        stage.prepare(&mut self.members);
        while !stage.is_over(&self.members) {
            self.hear();
            stage.look_after(&mut self.members, self.terms.goes_on, interrupt.load(Ordering::Relaxed));
            self.part_from_lost();
            if stage.is_due(&self.members) {
                self.read_clocks();
                stage.go(&mut self.members);
            }
            stage.show(&self.members, observe);
        }
        stage.shown = None;
        stage.show(&self.members, observe);
        let hosts = self.members.iter_mut().map(|member| std::mem::take(&mut member.stage)).collect();
        Ok(StageOutcome { hosts, start_unix_ns: stage.start_unix_ns })
    }

    /// Has meetings go on without hosts that were given up.
    fn part_from_lost(&mut self) {
        let lost = self.members.iter().enumerate().filter(|(_, member)| member.state == State::Over);
        let lost: Vec<u32> = lost.map(|(host, _)| host as u32).collect();
        let over = lost.into_iter().flat_map(|rank| self.meetings.leave(rank)).collect();
        self.announce(over);
    }

    /// Looks at the clocks of all hosts again.
    pub fn read_clocks(&mut self) {
        for (host, clock) in self.fleet.read_clocks().into_iter().enumerate() {
            self.members[host].clocks.extend(clock.map(|clock| (Instant::now(), clock)));
        }
    }
}

/// A stage in progress.
struct Running {
    /// By host; none: it takes no part.
    tasks: Vec<Option<Vec<u8>>>,
    first_alone: bool,
    shown: Option<Instant>,
    show_interval: Duration,
    start_unix_ns: Option<u64>,
    /// Since when all were told to stop.
    stopped: Option<Instant>,
}

impl Running {
    /// Tells those to get ready whose turn it is.
    fn prepare(&mut self, members: &mut [Member]) {
        let turn = if self.first_alone { 1 } else { members.len() };
        for (member, task) in members.iter_mut().zip(&self.tasks).take(turn) {
            let Some(task) = task.as_ref().filter(|_| member.state == State::Idle) else { continue };
            member.tell(Command::Prepare(task.clone()));
            (member.state, member.heard) = (State::Preparing, Instant::now());
        }
    }

    /// The hosts that take part.
    fn part<'m>(&self, members: &'m [Member]) -> impl Iterator<Item = &'m Member> {
        members.iter().zip(&self.tasks).filter(|(_, task)| task.is_some()).map(|(member, _)| member)
    }

    /// Whether every host has ended its part.
    fn is_over(&self, members: &[Member]) -> bool {
        let is_done = |member: &Member| matches!(member.state, State::Idle | State::Over);
        let is_lost = |member: &Member| member.state == State::Over;
        let has_begun = self.start_unix_ns.is_some() || self.stopped.is_some();
        (has_begun || self.part(members).all(is_lost)) && members.iter().all(is_done)
    }

    /// Whether all are ready and none has begun.
    fn is_due(&self, members: &[Member]) -> bool {
        let is_there = |member: &Member| matches!(member.state, State::Ready | State::Over);
        self.start_unix_ns.is_none()
            && self.stopped.is_none()
            && self.part(members).all(is_there)
            && self.part(members).any(|member| member.state == State::Ready)
    }

    /// Tells the hosts a common moment, far enough ahead that each hears of it in time.
    fn go(&mut self, members: &mut [Member]) {
        let clock = |member: &Member| member.clocks.last().map(|(_, clock)| *clock);
        let slowest =
            members.iter().filter_map(|member| Some(clock(member)?.round_trip_ns)).max().unwrap_or(0);
        let hosts = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let lead = LEAD + LEAD_BY_HOST * hosts + Duration::from_nanos(slowest);
        let start = unix_ns().saturating_add(u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX));
        for member in members.iter_mut().filter(|member| member.state == State::Ready) {
            let offset_ns = clock(member).map_or(0, |clock: ClockEstimate| clock.offset_ns);
            member.tell(Command::GoAt(start.saturating_add_signed(offset_ns)));
            (member.state, member.heard) = (State::Running, Instant::now());
        }
        self.start_unix_ns = Some(start);
    }

    /// Finds hosts that are silent, stops all where one has failed, and lets further ones get ready.
    fn look_after(&mut self, members: &mut [Member], goes_on: bool, is_interrupted: bool) {
        let now = Instant::now();
        let is_late = self.stopped.is_some_and(|stopped| now.duration_since(stopped) > COLLECT_WAIT);
        for member in members.iter_mut() {
            let limit = match member.state {
                State::Preparing => SILENCE_PREPARING,
                State::Running => SILENCE_RUNNING,
                _ => continue,
            };
            if is_late {
                member.lose(format!("run: {} sent no results within {COLLECT_WAIT:?}", member.address));
            } else if now.duration_since(member.heard) > limit {
                member.lose(format!("run: {} has been silent for {limit:?}", member.address));
            }
        }
        // Without the one that makes what all share, none of them can begin. One that could not get ready has failed too.
        let has_failed = |member: &Member| member.stage.failure.is_some();
        let is_first_lost =
            self.first_alone && self.start_unix_ns.is_none() && members.first().is_some_and(has_failed);
        let fails = members.iter().any(has_failed) && !goes_on;
        if self.stopped.is_none() && (is_interrupted || is_first_lost || fails) {
            self.stopped = Some(Instant::now());
            // Whoever looks on learns it at once: a launcher may leave no more time than that.
            self.shown = None;
            for member in members.iter_mut() {
                member.tell(Command::Stop);
            }
        }
        if self.stopped.is_none() && self.start_unix_ns.is_none() {
            self.prepare_next(members, goes_on);
        }
    }

    fn prepare_next(&mut self, members: &mut [Member], goes_on: bool) {
        let is_first_ready = members.first().is_some_and(|first| first.state == State::Ready);
        if self.first_alone && is_first_ready {
            self.first_alone = false;
            self.prepare(members);
        }
        // One that could not get ready while the others go on is left out.
        if goes_on {
            for member in members.iter_mut() {
                if member.state == State::Idle && member.stage.failure.is_some() {
                    let why = member.stage.failure.clone().unwrap_or_default();
                    member.lose(why);
                }
            }
        }
    }

    fn show(&mut self, members: &[Member], observe: &mut dyn FnMut(&[SessionProgress<'_>])) {
        if self.shown.is_some_and(|shown| shown.elapsed() < self.show_interval) {
            return;
        }
        let began = Instant::now();
        let progress = members.iter().enumerate().map(|(host, member)| SessionProgress {
            host,
            report: member.report.as_ref(),
            has_ended: self.start_unix_ns.is_some() && matches!(member.state, State::Idle | State::Over),
            failure: member.failure.as_deref(),
        });
        observe(&progress.collect::<Vec<_>>());
        self.show_interval = (began.elapsed() * SHOW_PARTS).clamp(SHOW_INTERVAL, SHOW_INTERVAL_MAX);
        self.shown = Some(Instant::now());
    }
}
