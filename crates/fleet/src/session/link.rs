//! One host's session, on the threads of the channel.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::messages::{SessionRequest, StagePart};
use super::patch;
use crate::address::HostAddress;
use crate::client::connect::{Link, chain};
use crate::messages::{ProgressReport, Refusal, line, read_json};
use crate::wire;
use crate::wire::from_host::Message as Said;
use crate::wire::from_leader::Message as Asked;

/// Commands to a host.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Prepare(Vec<u8>),
    /// By the host's clock.
    GoAt(u64),
    Stop,
    End,
    Met(wire::Met),
}

/// Messages of a host.
#[derive(Debug)]
pub(crate) enum Event {
    Planned(Value),
    Refused(Refusal),
    Ready(Vec<String>),
    Progress(Box<ProgressReport>),
    Meet(String, Vec<u64>),
    Part(Box<StagePart>),
    StageEnd(Option<String>),
    Ended(Vec<String>),
    Lost(String),
}

/// Where what a host says goes, with its number.
#[derive(Clone)]
pub(crate) struct Sink {
    pub(crate) host: usize,
    pub(crate) events: mpsc::Sender<(usize, Event)>,
}

/// Keeps a session until its end, which is always reported.
pub(crate) async fn keep(
    address: HostAddress,
    link: Link,
    request: SessionRequest,
    commands: mpsc::Receiver<Command>,
    sink: Sink,
) {
    let lost = match attempt(&address, link, &request, commands, &sink).await {
        Ok(Some(why)) => why,
        Ok(None) => return,
        Err(status) => format!("session: the connection to {address} broke: {}", why(&status)),
    };
    // A leader that is gone needs no events.
    let _ = sink.events.send((sink.host, Event::Lost(lost))).await;
}

/// Reason that the channel gives for a call that broke.
fn why(status: &tonic::Status) -> String {
    let cause = std::error::Error::source(status).map(|source| chain(source).to_string());
    line(&cause.unwrap_or_else(|| status.message().to_owned()))
}

/// Carries messages both ways; why the session was lost, where it did not come to its end.
async fn attempt(
    address: &HostAddress,
    mut link: Link,
    request: &SessionRequest,
    mut commands: mpsc::Receiver<Command>,
    sink: &Sink,
) -> Result<Option<String>, tonic::Status> {
    let (tell, told) = mpsc::channel(8);
    // There is room: the channel is new.
    let _ = tell.send(message(Asked::Begin(request.to_wire()))).await;
    let mut said = link.calls.session(ReceiverStream::new(told)).await?.into_inner();
    let mut keep_alive = tokio::time::interval(request.lease / 4);
    keep_alive.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut shown = Value::Null;
    loop {
        let heard = tokio::select! {
            command = commands.recv() => match command {
                // Where the stream is gone, its other direction tells why.
                Some(command) => {
                    if matches!(command, Command::Prepare(_)) {
                        shown = Value::Null;
                    }
                    let _ = tell.send(message(spell(command))).await;
                    continue;
                }
                // Dropping the stream tells the host that its leader is gone.
                None => return Ok(None),
            },
            _ = keep_alive.tick() => {
                let _ = tokio::time::timeout(
                    Duration::from_secs(1),
                    tell.send(message(Asked::KeepAlive(wire::KeepAlive {}))),
                ).await;
                continue;
            }
            heard = said.message() => heard?,
        };
        let Some(wire::FromHost { message: Some(heard) }) = heard else {
            return Ok(Some(format!("session: {address} ended without a word")));
        };
        let event = match understand(heard, &mut shown) {
            Ok(Some(event)) => event,
            Ok(None) => continue,
            Err(error) => {
                return Ok(Some(line(&format!("session: {address} sent what cannot be read: {error}"))));
            }
        };
        let is_last = matches!(event, Event::Ended(_) | Event::Refused(_));
        if sink.events.send((sink.host, event)).await.is_err() || is_last {
            return Ok(None);
        }
    }
}

fn spell(command: Command) -> Asked {
    match command {
        Command::Prepare(stage) => Asked::Prepare(wire::Prepare { stage }),
        Command::GoAt(start_unix_ns) => Asked::GoAt(wire::GoAt { start_unix_ns }),
        Command::Stop => Asked::Stop(wire::Stop {}),
        Command::End => Asked::End(wire::End {}),
        Command::Met(met) => Asked::Met(met),
    }
}

fn understand(said: Said, shown: &mut Value) -> Result<Option<Event>, serde_json::Error> {
    let lines = |lines: &[String]| lines.iter().map(|one| line(one)).collect();
    Ok(Some(match said {
        Said::Planned(planned) => Event::Planned(read_json(planned.planned)?),
        Said::Refused(refused) => Event::Refused(Refusal::from_wire(&refused)),
        Said::Ready(ready) => Event::Ready(lines(&ready.notes)),
        Said::Progress(progress) => {
            patch::apply(shown, read_json(progress.report)?);
            match serde_json::from_value(shown.clone()) {
                Ok(report) => Event::Progress(Box::new(report)),
                // It would only be missed on a screen.
                Err(_) => return Ok(None),
            }
        }
        Said::Meet(meet) => Event::Meet(meet.meeting, meet.said),
        Said::Part(part) => Event::Part(Box::new(read_json(part.part)?)),
        Said::StageEnd(end) => Event::StageEnd(end.failure.as_deref().map(line)),
        Said::Ended(ended) => Event::Ended(lines(&ended.left)),
    }))
}

fn message(asked: Asked) -> wire::FromLeader {
    wire::FromLeader { message: Some(asked) }
}
