//! Sessions on the channel: messages between a leader and the thread of its session, and the lease that the leader keeps.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use crate::limits::PLAN_TIMEOUT;
use crate::messages::{Refusal, RefusalKind, line};
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
        peer: SocketAddr,
        mut inbound: Streaming<wire::FromLeader>,
        outbound: Outbound,
    ) {
        let begin = match tokio::time::timeout(PLAN_TIMEOUT, inbound.message()).await {
            Ok(Ok(Some(wire::FromLeader { message: Some(Asked::Begin(begin)) }))) => begin,
            Ok(Ok(_)) => {
                return fail(&outbound, Status::invalid_argument("a session begins with Begin")).await;
            }
            Ok(Err(status)) => return fail(&outbound, status).await,
            Err(_) => return fail(&outbound, Status::deadline_exceeded("no Begin came")).await,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let _stop_on_drop = StopOnDrop(Arc::clone(&stop));
        let (told, commands) = std::sync::mpsc::channel();
        let (said, events) = mpsc::channel(QUEUE);
        let meetings = HostMeetings::new(&said, &stop);
        let shared = Arc::clone(&meetings);
        let begun = self.admit(begin).await.and_then(|request| {
            let name = format!("run {:016x} of {}", request.run, request.leader);
            let lease = self.slot.take(peer, &name, &stop)?;
            self.log.say(&format!("control: {peer} begins {name}"));
            let link = SessionLink::new(said, commands, Arc::clone(&stop), request.progress_interval);
            let limit = request.lease;
            SessionJob { host, request, peer, link, meetings: shared, lease }.spawn().map(|()| limit)
        });
        match begun {
            Ok(lease) => {
                self.carry(peer, SessionRelay { inbound, outbound, events, told, stop, meetings, lease })
                    .await;
            }
            Err(refusal) => {
                self.log.say(&format!("control: {peer} refused: {}", refusal.line));
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

    /// Carries messages both ways until the session has ended or its leader is gone.
    async fn carry(&self, peer: SocketAddr, mut relay: SessionRelay) {
        loop {
            tokio::select! {
                said = relay.events.recv() => {
                    // Without one the thread died before it could say why.
                    let said = said.unwrap_or_else(|| Said::Refused(Refusal {
                        kind: RefusalKind::Run,
                        line: "session: it ended without a word".to_owned(),
                    }.to_wire()));
                    let is_end = matches!(said, Said::Ended(_) | Said::Refused(_));
                    if relay.outbound.send(Ok(message(said))).await.is_err() || is_end {
                        return;
                    }
                }
                heard = tokio::time::timeout(relay.lease, relay.inbound.message()) => {
                    let gone = |why: &str| self.log.say(&format!("control: {peer} is gone, its run ends: {why}"));
                    match heard {
                        Ok(Ok(Some(wire::FromLeader { message: Some(asked) }))) => {
                            if let Err(status) = relay.obey(asked) {
                                return fail(&relay.outbound, status).await;
                            }
                        }
                        Ok(Ok(_)) => return gone("it closed the stream"),
                        Ok(Err(status)) => return gone(status.message()),
                        Err(_) => return gone(&format!("nothing was heard of it for {:?}", relay.lease)),
                    }
                }
                () = relay.outbound.closed() => {
                    self.log.say(&format!("control: {peer} is gone, its run ends"));
                    return;
                }
            }
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
            Asked::Begin(_) => return Err(Status::invalid_argument("a message that has no place here")),
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
