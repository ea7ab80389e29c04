//! Sessions on the channel: messages between a leader and the thread of its session, and the lease that the leader keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use crate::audit::AuditEvent;
use crate::limits::PLAN_TIMEOUT;
use crate::messages::{Refusal, RefusalKind, line};
use crate::server::accept::Connection;
use crate::server::service::{ControlService, StopOnDrop, apart};
use crate::session::host::{SessionJob, SessionLink, Told};
use crate::session::meeting::HostMeetings;
use crate::session::{SessionHost, SessionRequest};
use crate::wire;
use crate::wire::from_host::Message as Said;
use crate::wire::from_leader::Message as Asked;

/// Messages that wait for the channel, and for the leader.
const QUEUE: usize = 8;

type Outbound = mpsc::Sender<Result<wire::FromHost, Status>>;

impl ControlService {
    /// One session from its request to its end.
    pub(super) async fn take_part(
        self,
        host: Arc<dyn SessionHost>,
        caller: &Connection,
        mut inbound: Streaming<wire::FromLeader>,
        outbound: Outbound,
    ) {
        let peer = caller.peer;
        let begin = match tokio::time::timeout(PLAN_TIMEOUT, inbound.message()).await {
            Ok(Ok(Some(wire::FromLeader { message: Some(Asked::Begin(begin)) }))) => begin,
            Ok(Ok(_)) => {
                return fail(&outbound, Status::invalid_argument("a session must begin with Begin")).await;
            }
            Ok(Err(status)) => return fail(&outbound, status).await,
            Err(_) => return fail(&outbound, Status::deadline_exceeded("no Begin arrived")).await,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let _stop_on_drop = StopOnDrop(Arc::clone(&stop));
        let (told, commands) = std::sync::mpsc::channel();
        let (said, events) = mpsc::channel(QUEUE);
        let meetings = HostMeetings::new(&said, &stop);
        let shared = Arc::clone(&meetings);
        let begun = self.admit(begin).await.and_then(|request| {
            let name = format!("run {:016x} of {}", request.run, request.leader);
            let lease = self.slot.take(caller.caller(), &name, &stop)?;
            self.log.say(&format!("control: {peer} begins {name}"));
            let link = SessionLink::new(said, commands, Arc::clone(&stop), request.progress_interval);
            let limit = request.lease;
            let began = AuditEvent::Began {
                run: line(&name),
                what: line(&host.what(&request)),
                roots: host.roots(),
                confined: host.is_confined(),
            };
            SessionJob { host, request, peer, link, meetings: shared, lease }
                .spawn()
                .map(|()| (limit, name, began))
        });
        match begun {
            Ok((lease, name, began)) => {
                let audit = SessionAudit { run: line(&name), began: Some(began), failure: None };
                let relay = SessionRelay { inbound, outbound, events, told, stop, meetings, lease };
                self.carry(caller, relay, audit).await;
            }
            Err(refusal) => {
                self.log.audit(peer, Some(caller.caller_name()), &AuditEvent::refused(&refusal.line));
                self.log.say(&format!("control: {peer} rejected: {}", refusal.line));
                drop(outbound.send(Ok(message(Said::Refused(refusal.to_wire())))).await);
            }
        }
    }

    async fn admit(&self, begin: wire::Begin) -> Result<SessionRequest, Refusal> {
        let agent = Arc::clone(&self.agent);
        let version = apart(move || agent.describe().schema_version).await.map_err(|status| {
            let line = line(&format!("session: {}", status.message()));
            Refusal { kind: RefusalKind::Run, line }
        })?;
        SessionRequest::from_wire(begin, version)
    }

    /// Carries messages both ways until the session has ended or its leader is gone, and notes what becomes of it.
    async fn carry(&self, caller: &Connection, mut relay: SessionRelay, mut audit: SessionAudit) {
        let note = |event: &AuditEvent| self.log.audit(caller.peer, Some(caller.caller_name()), event);
        let failure = loop {
            tokio::select! {
                said = relay.events.recv() => {
                    // Without one the thread died before it could say why.
                    let said = said.unwrap_or_else(|| Said::Refused(Refusal {
                        kind: RefusalKind::Run,
                        line: "session: it ended without a message".to_owned(),
                    }.to_wire()));
                    audit.hear(&said, &note);
                    let is_end = matches!(said, Said::Ended(_) | Said::Refused(_));
                    let is_heard = relay.outbound.send(Ok(message(said))).await.is_ok();
                    if is_end {
                        return;
                    }
                    if !is_heard {
                        break "it closed the stream".to_owned();
                    }
                }
                heard = tokio::time::timeout(relay.lease, relay.inbound.message()) => match heard {
                    Ok(Ok(Some(wire::FromLeader { message: Some(asked) }))) => {
                        if let Err(status) = relay.obey(asked) {
                            let why = status.message().to_owned();
                            fail(&relay.outbound, status).await;
                            break why;
                        }
                    }
                    Ok(Ok(_)) => break "it closed the stream".to_owned(),
                    Ok(Err(status)) => break status.message().to_owned(),
                    Err(_) => break format!("no message from it for {:?}", relay.lease),
                },
                () = relay.outbound.closed() => break "it closed the connection".to_owned(),
            }
        };
        self.log.say(&format!("control: {} disconnected, its run ends: {failure}", caller.peer));
        audit.end(Some(format!("the leader disconnected: {failure}")), &note);
    }
}

/// A session in the audit log: it begins when it is planned, because until then it may be refused.
struct SessionAudit {
    run: String,
    began: Option<AuditEvent>,
    failure: Option<String>,
}

impl SessionAudit {
    /// Messages of the session to its leader.
    fn hear(&mut self, said: &Said, note: &dyn Fn(&AuditEvent)) {
        match said {
            Said::Planned(_) => self.began.take().iter().for_each(note),
            Said::Refused(refusal) if self.began.is_some() => note(&AuditEvent::refused(&refusal.line)),
            Said::Refused(refusal) => self.end(Some(refusal.line.clone()), note),
            Said::StageEnd(end) => self.failure = self.failure.take().or_else(|| end.failure.clone()),
            Said::Ended(_) => {
                let failure = self.failure.take();
                self.end(failure, note);
            }
            _ => {}
        }
    }

    /// The session is over.
    fn end(&self, failure: Option<String>, note: &dyn Fn(&AuditEvent)) {
        if self.began.is_none() {
            note(&AuditEvent::Ended { run: self.run.clone(), failure: failure.as_deref().map(line) });
        }
    }
}

/// Both directions of a session's stream, and its thread.
struct SessionRelay {
    inbound: Streaming<wire::FromLeader>,
    outbound: Outbound,
    events: mpsc::Receiver<Said>,
    told: std::sync::mpsc::Sender<Told>,
    stop: Arc<AtomicBool>,
    meetings: Arc<HostMeetings>,
    lease: Duration,
}

impl SessionRelay {
    fn obey(&self, asked: Asked) -> Result<(), Status> {
        // A thread that has ended needs no command; its last word is on the way.
        let tell = |told| drop(self.told.send(told));
        match asked {
            Asked::Prepare(prepare) => tell(Told::Prepare(prepare.stage)),
            Asked::GoAt(go) => tell(Told::GoAt(go.start_unix_ns)),
            Asked::End(_) => tell(Told::End),
            Asked::Stop(_) => self.stop.store(true, Ordering::Relaxed),
            Asked::Met(met) => self.meetings.told(met),
            Asked::KeepAlive(_) => {}
            Asked::Begin(_) => return Err(Status::invalid_argument("an unexpected message")),
        }
        Ok(())
    }
}

fn message(said: Said) -> wire::FromHost {
    wire::FromHost { message: Some(said) }
}

async fn fail(outbound: &Outbound, status: Status) {
    drop(outbound.send(Err(status)).await);
}
