//! One host's session, on the threads of the channel.

use std::time::Duration;

use driver::{Error, ErrorKind};
use serde::Deserialize as _;
use serde_json::Value;
use statistics::Pack as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::messages::{SessionRequest, StagePart};
use super::patch;
use crate::address::HostAddress;
use crate::client::connect::{Link, chain};
use crate::messages::{ProgressReport, Refusal, line, read_json};
use crate::packing::unpack_part;
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
        Err(status) => format!("session: the connection to {address} was lost: {}", why(&status)),
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
            return Ok(Some(format!("session: {address} ended without a message")));
        };
        let event = match understand(heard, &mut shown) {
            Ok(Some(event)) => event,
            Ok(None) => continue,
            Err(error) => {
                return Ok(Some(line(&format!("session: {address} sent an unreadable message: {error}"))));
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

fn understand(said: Said, shown: &mut Value) -> Result<Option<Event>, Error> {
    let unreadable = |error: serde_json::Error| Error::new(ErrorKind::Run, "session", error.to_string());
    let lines = |lines: &[String]| lines.iter().map(|one| line(one)).collect();
    Ok(Some(match said {
        Said::Planned(planned) => Event::Planned(read_json(planned.planned).map_err(unreadable)?),
        Said::Refused(refused) => Event::Refused(Refusal::from_wire(&refused)),
        Said::Ready(ready) => Event::Ready(lines(&ready.notes)),
        Said::Progress(progress) => {
            patch::apply(shown, read_json(progress.report).map_err(unreadable)?);
            match report_of(shown, &progress.histograms) {
                Some(report) => Event::Progress(Box::new(report)),
                // It would only be missed on a screen.
                None => return Ok(None),
            }
        }
        Said::Meet(meet) => Event::Meet(meet.meeting, meet.said),
        Said::Part(part) => Event::Part(Box::new(unpack_part(part.part, &part.histograms)?)),
        Said::StageEnd(end) => Event::StageEnd(end.failure.as_deref().map(line)),
        Said::Ended(ended) => Event::Ended(lines(&ended.left)),
    }))
}

/// The report that a host has shown up to now; none where it cannot be read.
fn report_of(shown: &Value, mut histograms: &[u8]) -> Option<ProgressReport> {
    let mut report = ProgressReport::deserialize(shown).ok()?;
    if let ProgressReport::Running(snapshot) = &mut report {
        snapshot.unpack(&mut histograms).ok()?;
    }
    Some(report)
}

fn message(asked: Asked) -> wire::FromLeader {
    wire::FromLeader { message: Some(asked) }
}

#[cfg(test)]
mod tests {
    use statistics::{Histogram, Snapshot, SparseHistogram};

    use super::*;
    use crate::session::host::value_of;

    fn report(second: u64) -> ProgressReport {
        let mut latency = Histogram::new();
        latency.record_n(1000 * (1 + second), 7);
        let latency = if second == 2 { SparseHistogram::default() } else { SparseHistogram::from(&latency) };
        ProgressReport::Running(Snapshot { operations: second, latency, ..Snapshot::default() })
    }

    #[test]
    fn reports_arrive_as_they_left() {
        let (mut known, mut shown) = (Value::Null, Value::Null);
        let preparing = ProgressReport::Preparing { what: "a file".to_owned(), done_fraction: 0.5 };
        for sent in [preparing, report(0), report(1), report(2), report(3)] {
            let (new, histograms) = value_of(&sent).expect("JSON");
            let patch = patch::between(&known, &new).to_string();
            assert!(!patch.contains("latency"), "{patch}");
            known = new;
            let said = Said::Progress(wire::Progress { report: patch.into_bytes(), histograms });
            let heard = understand(said, &mut shown).expect("JSON");
            assert!(matches!(heard, Some(Event::Progress(heard)) if *heard == sent));
        }
    }

    #[test]
    fn a_report_whose_histograms_cannot_be_read_is_missed_and_ends_nothing() {
        let (new, _) = value_of(&report(0)).expect("JSON");
        let said = wire::Progress { report: new.to_string().into_bytes(), histograms: vec![255; 3] };
        let heard = understand(Said::Progress(said), &mut Value::Null);
        assert!(matches!(heard, Ok(None)));
    }

    #[test]
    fn a_part_that_cannot_be_read_is_an_error() {
        let said = Said::Part(wire::Part { part: b"{}".to_vec(), histograms: vec![1] });
        assert!(understand(said, &mut Value::Null).is_err());
    }
}
