//! Calls open to callers that have proven themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::audit::AuditEvent;
use crate::clock::unix_ns;
use crate::limits::{PLAN_TIMEOUT, PROTOCOL_VERSION, START_DELAY_MAX};
use crate::messages::{PlanMessage, Refusal, RefusalKind, line};
use crate::server::accept::Connection;
use crate::server::agent::Agent;
use crate::server::handshake::{STRATA_VERSION, connection};
use crate::server::job::{Job, JobEvent, Slot};
use crate::server::log::Log;
use crate::wire;
use crate::wire::control_server::Control;
use crate::wire::from_agent::Message as Said;
use crate::wire::from_coordinator::Message as Told;

/// Events of a job that wait for the channel, and messages that wait for the coordinator.
const QUEUE: usize = 8;

/// A start by the clock that is further from the delay than this is not believed: the clock was set since it was read.
const CLOCK_TRUST_MAX: Duration = Duration::from_secs(1);

/// Answers calls for an agent.
#[derive(Clone)]
pub(crate) struct ControlService {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) log: Log,
}

#[tonic::async_trait]
impl Control for ControlService {
    type RunStream = ReceiverStream<Result<wire::FromAgent, Status>>;

    async fn describe(
        &self,
        _: Request<wire::DescribeRequest>,
    ) -> Result<Response<wire::DescribeReply>, Status> {
        let agent = Arc::clone(&self.agent);
        let description = apart(move || agent.describe()).await?;
        Ok(Response::new(description.to_wire()))
    }

    async fn ping(&self, _: Request<wire::PingRequest>) -> Result<Response<wire::PingReply>, Status> {
        let received_unix_ns = unix_ns();
        Ok(Response::new(wire::PingReply { received_unix_ns, sent_unix_ns: unix_ns() }))
    }

    async fn run(
        &self,
        request: Request<Streaming<wire::FromCoordinator>>,
    ) -> Result<Response<Self::RunStream>, Status> {
        let caller = connection(&request)?;
        let (outbound, stream) = mpsc::channel(QUEUE);
        let control = self.clone();
        tokio::spawn(async move { control.attend(&caller, request.into_inner(), outbound).await });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    type SessionStream = ReceiverStream<Result<wire::FromHost, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<wire::FromLeader>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let caller = connection(&request)?;
        let host = self.agent.host().ok_or_else(|| {
            Status::permission_denied("this process does not take part in runs led by others")
        })?;
        let (outbound, stream) = mpsc::channel(QUEUE);
        let control = self.clone();
        tokio::spawn(async move { control.take_part(host, &caller, request.into_inner(), outbound).await });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn interrupt(
        &self,
        request: Request<wire::InterruptRequest>,
    ) -> Result<Response<wire::InterruptReply>, Status> {
        let connection = connection(&request)?;
        let peer = connection.peer;
        if !self.agent.may_interrupt() {
            return Err(Status::permission_denied("only its coordinators can end the jobs of this agent"));
        }
        let job = self.slot.interrupt(Some(connection.caller()));
        if let Some(job) = &job {
            let event = AuditEvent::Interrupted { run: line(job) };
            self.log.audit(peer, Some(connection.caller_name()), &event);
            self.log.say(&format!("control: {peer} interrupts job {job:?}"));
        }
        Ok(Response::new(wire::InterruptReply { job }))
    }

    async fn quit(&self, request: Request<wire::QuitRequest>) -> Result<Response<wire::QuitReply>, Status> {
        let connection = connection(&request)?;
        let peer = connection.peer;
        let agent = Arc::clone(&self.agent);
        match apart(move || agent.quit()).await? {
            Ok(()) => {
                self.log.say(&format!("control: {peer} ends this process"));
                self.log.audit(peer, Some(connection.caller_name()), &AuditEvent::Quit);
                self.slot.interrupt(Some(connection.caller()));
                Ok(Response::new(wire::QuitReply {}))
            }
            Err(error) => Err(Status::permission_denied(line(&error.to_string()))),
        }
    }
}

/// Runs what may take its time away from the threads of the channel.
pub(super) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Status::internal("the agent panicked"))
}

/// Stops a job or session whose coordinator is not attended to any more, for whatever reason.
pub(super) struct StopOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Outbound = mpsc::Sender<Result<wire::FromAgent, Status>>;

impl ControlService {
    /// One job from plan to result.
    async fn attend(
        self,
        caller: &Connection,
        mut inbound: Streaming<wire::FromCoordinator>,
        outbound: Outbound,
    ) {
        let peer = caller.peer;
        let note = |event: AuditEvent| self.log.audit(peer, Some(caller.caller_name()), &event);
        let plan = match tokio::time::timeout(PLAN_TIMEOUT, inbound.message()).await {
            Ok(Ok(Some(wire::FromCoordinator { message: Some(Told::Plan(plan)) }))) => plan,
            Ok(Ok(_)) => {
                return fail(&outbound, Status::invalid_argument("a run must begin with a plan")).await;
            }
            Ok(Err(status)) => {
                self.log.say(&format!("control: {peer}: the plan was rejected: {}", status.message()));
                return fail(&outbound, status).await;
            }
            Err(_) => return fail(&outbound, Status::deadline_exceeded("no plan arrived")).await,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let _stop_on_drop = StopOnDrop(Arc::clone(&stop));
        let (go_sender, go) = std::sync::mpsc::channel();
        let (events_sender, events) = mpsc::channel(QUEUE);
        let (run, what) = (line(&plan.name), line(&plan.layer));
        let begun = match self.check(plan).await {
            Ok(plan) => self.slot.take(caller.caller(), &plan.name, &stop).and_then(|lease| {
                let (agent, stop) = (Arc::clone(&self.agent), Arc::clone(&stop));
                Job { agent, plan, lease, events: events_sender, go, stop }.spawn()
            }),
            Err(refusal) => Err(refusal),
        };
        match begun {
            Ok(()) => {
                let roots = self.agent.roots();
                // A service, which alone is confined, takes no jobs.
                note(AuditEvent::Began { run: run.clone(), what, roots, confined: false });
                let failure =
                    self.relay(peer, Relay { inbound, outbound, events, go: Some(go_sender), stop }).await;
                note(AuditEvent::Ended { run, failure });
            }
            Err(refusal) => {
                note(AuditEvent::refused(&refusal.line));
                self.log.say(&format!("control: {peer} rejected: {}", refusal.line));
                drop(outbound.send(Ok(message(Said::Refused(refusal.to_wire())))).await);
            }
        }
    }

    /// Versions and sizes.
    async fn check(&self, plan: wire::Plan) -> Result<PlanMessage, Refusal> {
        let refuse = |line: String| Err(Refusal { kind: RefusalKind::Version, line });
        if plan.protocol_version != PROTOCOL_VERSION {
            return refuse(format!(
                "plan: the agent uses control protocol {PROTOCOL_VERSION} (strata {STRATA_VERSION}), the plan {}; \
                 use the same version of strata on all hosts",
                plan.protocol_version
            ));
        }
        let agent = Arc::clone(&self.agent);
        let schema_version = apart(move || agent.describe().schema_version).await.map_err(|status| {
            Refusal { kind: RefusalKind::Run, line: line(&format!("plan: {}", status.message())) }
        })?;
        if plan.schema_version != schema_version {
            return refuse(format!(
                "plan: the agent supports plans of version {schema_version} (strata {STRATA_VERSION}), this one \
                 has version {}; use the same version of strata on all hosts",
                plan.schema_version
            ));
        }
        let plan = PlanMessage::from_wire(plan);
        plan.check()?;
        Ok(plan)
    }

    /// Carries messages both ways until the job has ended or its coordinator is gone; why it came to nothing, where it did.
    async fn relay(&self, peer: std::net::SocketAddr, mut relay: Relay) -> Option<String> {
        let mut has_started = false;
        let mut is_listening = true;
        loop {
            tokio::select! {
                event = relay.events.recv() => {
                    // Without an event the thread died before it could say why.
                    let event = event.unwrap_or_else(|| JobEvent::Ended(Refusal {
                        kind: RefusalKind::Run,
                        line: "run: the job ended without a result".to_owned(),
                    }));
                    has_started |= matches!(event, JobEvent::Started(_));
                    let is_end = matches!(event, JobEvent::Done(..) | JobEvent::Ended(_));
                    let failure = if let JobEvent::Ended(refusal) = &event { Some(refusal.line.clone()) } else { None };
                    let is_sent = relay.outbound.send(Ok(message(said(event, has_started)))).await.is_ok();
                    if !is_sent {
                        let why = self.lost(peer);
                        return failure.or(why);
                    }
                    if is_end {
                        return failure;
                    }
                }
                told = relay.inbound.message(), if is_listening => match told {
                    Ok(Some(wire::FromCoordinator { message: Some(told) })) => {
                        if let Err(status) = relay.obey(told) {
                            let why = line(status.message());
                            fail(&relay.outbound, status).await;
                            return Some(why);
                        }
                    }
                    Ok(Some(_)) => {
                        fail(&relay.outbound, unexpected()).await;
                        return Some(line(unexpected().message()));
                    }
                    // It says no more, and may still listen.
                    Ok(None) => {
                        is_listening = false;
                        relay.stop.store(true, Ordering::Relaxed);
                    }
                    Err(status) => {
                        self.log.say(&format!("control: {peer} disconnected, its job is stopped: {}", status.message()));
                        return gone();
                    }
                },
                () = relay.outbound.closed() => return self.lost(peer),
            }
        }
    }

    /// Tells that a coordinator has gone, whichever side of its stream shows that first; why its run came to nothing.
    fn lost(&self, peer: std::net::SocketAddr) -> Option<String> {
        self.log.say(&format!("control: {peer} disconnected, its job is stopped"));
        gone()
    }
}

/// Both directions of a job's stream, and the job.
struct Relay {
    inbound: Streaming<wire::FromCoordinator>,
    outbound: Outbound,
    events: mpsc::Receiver<JobEvent>,
    go: Option<std::sync::mpsc::Sender<Instant>>,
    stop: Arc<AtomicBool>,
}

/// Until the start: by this host's clock, where that is known and says nearly the same as the delay, which also holds the time that the message waited.
fn start_delay(delay: Duration, start_unix_ns: u64, now_unix_ns: u64) -> Duration {
    let by_clock = Duration::from_nanos(start_unix_ns.saturating_sub(now_unix_ns));
    if start_unix_ns > 0 && by_clock.abs_diff(delay) <= CLOCK_TRUST_MAX { by_clock } else { delay }
}

impl Relay {
    fn obey(&mut self, told: Told) -> Result<(), Status> {
        match told {
            Told::Go(go) => {
                let delay = Duration::from_nanos(go.start_delay_ns);
                if delay > START_DELAY_MAX {
                    return Err(Status::invalid_argument(format!(
                        "a start delay of {delay:?}; at most {START_DELAY_MAX:?} are accepted"
                    )));
                }
                let gate = self.go.as_ref().ok_or_else(unexpected)?;
                // A job that ended before its start needs none; its end is on the way.
                let _ = gate.send(Instant::now() + start_delay(delay, go.start_unix_ns, unix_ns()));
            }
            Told::Stop(_) => self.stop.store(true, Ordering::Relaxed),
            Told::Plan(_) => return Err(unexpected()),
        }
        Ok(())
    }
}

/// Why a run ended whose coordinator did not wait for it.
#[allow(clippy::unnecessary_wraps, reason = "a failure is not allowed there")]
fn gone() -> Option<String> {
    Some("its coordinator disconnected".to_owned())
}

fn unexpected() -> Status {
    Status::invalid_argument("an unexpected message")
}

fn said(event: JobEvent, has_started: bool) -> Said {
    match event {
        JobEvent::Ready(notes) => Said::Ready(wire::Ready { notes }),
        JobEvent::Started(unix_ns) => Said::Started(wire::Started { unix_ns }),
        JobEvent::Progress(report, histograms) => Said::Progress(wire::Progress { report, histograms }),
        JobEvent::Done(outcome, histograms) => Said::Result(wire::Result { outcome, histograms }),
        JobEvent::Ended(refusal) if has_started => Said::Failed(wire::Failed { line: refusal.line }),
        JobEvent::Ended(refusal) => Said::Refused(refusal.to_wire()),
    }
}

fn message(said: Said) -> wire::FromAgent {
    wire::FromAgent { message: Some(said) }
}

async fn fail(outbound: &Outbound, status: Status) {
    drop(outbound.send(Err(status)).await);
}
