//! The side of the leader: the sessions of all hosts, from their plans to their ends. It blocks its caller.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::link::{self, Command, Event, Sink};
use super::meeting;
use super::messages::{SessionRequest, StagePart};
use super::stage::HostStageEnd;
use crate::address::HostAddress;
use crate::client::Fleet;
use crate::clock::ClockEstimate;
use crate::meetings::{Meetings, Met};
use crate::messages::{ProgressReport, Refusal, RefusalKind};

/// Events of hosts that wait for the leader.
const EVENTS: usize = 256;

/// Commands that wait for a host: there are as many meetings at a time as phases of a stage.
const COMMANDS: usize = 64;

/// How often interrupts and deadlines are looked at.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Time between two looks at all hosts, by host: a look takes about a hundredth of it.
const LOOK_BY_HOST: Duration = Duration::from_micros(5);

/// How long hosts may plan.
const PLAN_WAIT: Duration = Duration::from_secs(120);

/// How long a host may take to remove what it made.
const END_WAIT: Duration = Duration::from_secs(15 * 60);

/// Where a host is in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Planning,
    /// It waits for the next stage, or the end.
    Idle,
    Preparing,
    Ready,
    Running,
    Ending,
    /// The session is over.
    Over,
}

/// One host of the sessions.
pub(super) struct Member {
    pub(super) address: HostAddress,
    pub(super) state: State,
    pub(super) commands: Option<mpsc::Sender<Command>>,
    task: Option<JoinHandle<()>>,
    planned: Option<Value>,
    refusal: Option<Refusal>,
    pub(super) failure: Option<String>,
    pub(super) report: Option<ProgressReport>,
    pub(super) heard: Instant,
    pub(super) stage: HostStageEnd,
    left: Vec<String>,
    pub(super) clocks: Vec<(Instant, ClockEstimate)>,
}

impl Member {
    pub(super) fn tell(&mut self, command: Command) {
        // A host that does not take its commands is found by the deadlines.
        if let Some(commands) = self.commands.as_ref().filter(|_| self.state != State::Over) {
            let _ = commands.try_send(command);
        }
    }

    /// The host is no longer part of the run. Its stream goes with the task, and where it is still at work, that stops it.
    pub(super) fn lose(&mut self, why: String) {
        if self.state != State::Over {
            self.state = State::Over;
            self.stage.failure.get_or_insert(why.clone());
            self.failure = Some(why);
        }
        self.commands = None;
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    fn note(&mut self, event: Event) {
        self.heard = Instant::now();
        match event {
            Event::Planned(planned) => (self.planned, self.state) = (Some(planned), State::Idle),
            Event::Refused(refusal) => {
                let why = refusal.line.clone();
                self.refusal = Some(refusal);
                self.lose(why);
            }
            Event::Ready(notes) => {
                self.stage.notes.extend(notes);
                self.state = State::Ready;
            }
            // It is for all hosts: see [`Sessions::take`].
            Event::Meet(..) => {}
            Event::Progress(report) => self.report = Some(*report),
            Event::Part(part) => self.stage.take(*part),
            Event::StageEnd(failure) => {
                self.stage.failure = self.stage.failure.take().or(failure);
                self.state = State::Idle;
            }
            Event::Ended(left) => (self.left, self.state) = (left, State::Over),
            Event::Lost(why) => self.lose(why),
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

/// Settings of the sessions of a run.
#[derive(Clone, Copy, Debug)]
pub struct SessionTerms {
    /// Whether the others go on when a host fails.
    pub goes_on: bool,
}

/// Sessions of all hosts of a fleet. They end when this is dropped: the hosts stop and clean up.
pub struct Sessions {
    pub(super) fleet: Fleet,
    pub(super) members: Vec<Member>,
    events: mpsc::Receiver<(usize, Event)>,
    pub(super) terms: SessionTerms,
    pub(super) meetings: Meetings,
}

impl Sessions {
    /// Begins a session with each host of the fleet: `request` makes what the one with this number is asked.
    #[must_use]
    pub fn begin(fleet: Fleet, terms: SessionTerms, request: &dyn Fn(usize) -> SessionRequest) -> Self {
        let (sender, events) = mpsc::channel(EVENTS);
        let mut members = Vec::with_capacity(fleet.len());
        for host in 0..fleet.len() {
            let sink = Sink { host, events: sender.clone() };
            let (commands, received) = mpsc::channel(COMMANDS);
            let (address, link) = fleet.host(host);
            let task = link.as_ref().ok().map(|link| {
                fleet.spawn(link::keep(address.clone(), link.clone(), request(host), received, sink))
            });
            let mut member = Member {
                address: address.clone(),
                state: State::Planning,
                commands: Some(commands),
                task,
                planned: None,
                refusal: None,
                failure: None,
                report: None,
                heard: Instant::now(),
                stage: HostStageEnd::default(),
                left: Vec::new(),
                clocks: fleet.clock(host).into_iter().map(|clock| (Instant::now(), clock)).collect(),
            };
            if let Err(error) = link {
                member.lose(error.to_string());
            }
            members.push(member);
        }
        let meetings = Meetings::new(fleet.len() as u32);
        Self { fleet, members, events, terms, meetings }
    }

    /// Hosts, whatever became of them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Why a host is no longer part of the run.
    #[must_use]
    pub fn failure(&self, host: usize) -> Option<&str> {
        self.members[host].failure.as_deref()
    }

    /// A host's clock against that of this process, at each time that it was looked at.
    #[must_use]
    pub fn clocks(&self, host: usize) -> &[(Instant, ClockEstimate)] {
        &self.members[host].clocks
    }

    /// Takes what hosts have said, and waits a tick for it. Looking at all of them after each word would take time that grows with their square.
    pub(super) fn hear(&mut self) {
        let mut next = self.next_within(TICK);
        let until = Instant::now() + LOOK_BY_HOST * u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        while let Some((host, event)) = next {
            self.take(host, event);
            let left = until.saturating_duration_since(Instant::now());
            if until.elapsed() > TICK {
                return;
            }
            next = self.events.try_recv().ok();
            if next.is_none() && !left.is_zero() {
                next = self.next_within(left);
            }
        }
    }

    fn next_within(&mut self, limit: Duration) -> Option<(usize, Event)> {
        let events = &mut self.events;
        self.fleet.block_on(async { tokio::time::timeout(limit, events.recv()).await }).ok().flatten()
    }

    /// Takes what a host said. A host that has ended its stage, or is lost, is not waited for where the others meet.
    fn take(&mut self, host: usize, event: Event) {
        let rank = host as u32;
        let over = match &event {
            Event::Meet(meeting, said) => match self.meetings.say(rank, meeting, said) {
                Ok(met) => met.map(|met| (meeting.clone(), met)).into_iter().collect(),
                Err(error) => {
                    self.members[host].lose(error.to_string());
                    self.meetings.leave(rank)
                }
            },
            Event::StageEnd(_) | Event::Refused(_) | Event::Ended(_) | Event::Lost(_) => {
                self.meetings.leave(rank)
            }
            _ => Vec::new(),
        };
        self.members[host].note(event);
        self.announce(over);
    }

    /// Tells all hosts the outcomes of meetings.
    pub(super) fn announce(&mut self, over: Vec<(String, Met)>) {
        for (meeting, met) in over {
            let met = meeting::to_wire(meeting, &met);
            self.members.iter_mut().for_each(|member| member.tell(Command::Met(met.clone())));
        }
    }

    /// Waits until all hosts have planned; the plans by host.
    ///
    /// # Errors
    /// The first refusal, with the host that gave it, or an interruption. Nothing was touched.
    pub fn plans(&mut self, interrupt: &AtomicBool) -> Result<Vec<Value>, Error> {
        let until = Instant::now() + PLAN_WAIT;
        while self.members.iter().any(|member| member.state == State::Planning) {
            self.hear();
            if interrupt.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Run, "plan", "interrupted during planning on the hosts"));
            }
            if Instant::now() >= until {
                let late = self.members.iter_mut().filter(|member| member.state == State::Planning);
                late.for_each(|member| {
                    member.lose(format!("session: {} did not plan within {PLAN_WAIT:?}", member.address));
                });
            }
        }
        let refused: Vec<Error> = self.members.iter().filter_map(refusal_of).collect();
        let count = refused.len();
        match refused.into_iter().next() {
            None => Ok(self.members.iter_mut().filter_map(|member| member.planned.take()).collect()),
            Some(error) if count == 1 => Err(error),
            Some(error) => Err(error.with("failed_hosts", count)),
        }
    }

    /// Tells all hosts to end, those of the highest rank first and rank 0 when all others have ended; lines about what is left, by host.
    pub fn end(&mut self, interrupt: &AtomicBool) -> Vec<(usize, Vec<String>)> {
        let count = self.members.len();
        for group in [1..count, 0..count.min(1)] {
            for member in &mut self.members[group.clone()] {
                if member.state != State::Over {
                    member.tell(Command::End);
                    member.state = State::Ending;
                }
            }
            let until = Instant::now() + END_WAIT;
            while self.members[group.clone()].iter().any(|member| member.state == State::Ending) {
                self.hear();
                if Instant::now() >= until {
                    for member in &mut self.members[group.clone()] {
                        member.lose(format!("session: {} did not end within {END_WAIT:?}", member.address));
                    }
                }
            }
        }
        // A signal that came meanwhile has nothing left to end.
        let _ = interrupt;
        let left = self.members.iter_mut().enumerate();
        left.map(|(host, member)| (host, std::mem::take(&mut member.left))).collect()
    }
}

/// The refusal of a host as an error that names it.
fn refusal_of(member: &Member) -> Option<Error> {
    let address = &member.address;
    if let Some(refusal) = &member.refusal {
        let kind = match refusal.kind {
            RefusalKind::Usage | RefusalKind::Size => ErrorKind::Usage,
            RefusalKind::Unsafe => ErrorKind::Unsafe,
            RefusalKind::Unsupported | RefusalKind::Version => ErrorKind::Unsupported,
            RefusalKind::System | RefusalKind::Run | RefusalKind::Busy => ErrorKind::Run,
        };
        return Some(Error::new(kind, "hosts", format!("{address}: {}", refusal.line)));
    }
    let failure = member.failure.as_ref()?;
    let text = if failure.contains(&address.to_string()) {
        failure.clone()
    } else {
        format!("{address}: {failure}")
    };
    Some(Error::new(ErrorKind::Run, "hosts", text))
}

impl HostStageEnd {
    /// Takes some of what a phase measured.
    fn take(&mut self, part: StagePart) {
        let StagePart { phase, samples, workers, details } = part;
        match samples {
            Some(samples) => self.phases.push((phase, samples, details)),
            None => {
                let known = self.phases.iter_mut().find(|(known, ..)| *known == phase);
                known.into_iter().for_each(|(_, samples, _)| samples.workers.extend_from_slice(&workers));
            }
        }
    }
}
