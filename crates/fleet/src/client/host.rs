//! One host's part of a run, on the threads of the channel.

use std::time::Instant;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::address::HostAddress;
use crate::client::connect::{Link, called};
use crate::clock::{ClockEstimate, unix_ns};
use crate::messages::{OutcomeMessage, PlanMessage, ProgressReport, Refusal, line};
use crate::packing::{unpack_outcome, unpack_progress};
use crate::wire;
use crate::wire::from_agent::Message as Said;
use crate::wire::from_coordinator::Message as Told;

/// Commands of the coordinator to a host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    /// To start then.
    Go(Instant),
    Stop,
}

/// How a host's part ended.
#[derive(Clone, Debug, PartialEq)]
pub enum HostEnd {
    /// The job brought samples; [`OutcomeMessage::failure`] tells whether they are all.
    Finished(OutcomeMessage),
    /// The agent did not begin.
    Refused(Refusal),
    /// The host was not reached, was lost, or its job had nothing to show. One line.
    Failed(String),
}

/// Events that a host reports.
#[derive(Debug)]
pub(crate) enum HostEvent {
    Ready(Vec<String>),
    Started(u64),
    Progress(Box<ProgressReport>),
    /// Something that cannot be read, and why.
    Unreadable(String),
    End(HostEnd),
}

/// Where a host's events go, with its place in the run.
#[derive(Clone)]
pub(crate) struct Sink {
    pub(crate) place: usize,
    pub(crate) events: mpsc::Sender<(usize, HostEvent)>,
}

impl Sink {
    /// Waits where the coordinator is slower than its hosts. A coordinator that is gone needs no events.
    async fn send(&self, event: HostEvent) {
        let _ = self.events.send((self.place, event)).await;
    }
}

/// Runs a plan on a host and reports until its end, which is always reported, unless the task is aborted.
pub(crate) async fn drive(
    address: HostAddress,
    link: Link,
    plan: PlanMessage,
    commands: mpsc::Receiver<Command>,
    sink: Sink,
) {
    let end = match attempt(&address, link, &plan, commands, &sink).await {
        Ok(end) => end,
        Err(status) => HostEnd::Failed(line(&called(&address, "run", &status).to_string())),
    };
    sink.send(HostEvent::End(end)).await;
}

async fn attempt(
    address: &HostAddress,
    mut link: Link,
    plan: &PlanMessage,
    mut commands: mpsc::Receiver<Command>,
    sink: &Sink,
) -> Result<HostEnd, tonic::Status> {
    if let Err(refusal) = plan.check() {
        return Ok(HostEnd::Refused(refusal));
    }
    let (tell, told) = mpsc::channel(4);
    // There is room: the channel is new.
    let _ = tell.send(message(Told::Plan(plan.to_wire()))).await;
    let mut said = link.calls.run(ReceiverStream::new(told)).await?.into_inner();
    let mut has_commands = true;
    loop {
        let heard = tokio::select! {
            command = commands.recv(), if has_commands => {
                match command {
                    Some(command) => {
                        let told = message(spell(command, link.clock));
                        // Where the stream is gone, its other direction tells why.
                        let _ = tell.send(told).await;
                    }
                    None => has_commands = false,
                }
                continue;
            }
            heard = said.message() => heard?,
        };
        let Some(wire::FromAgent { message: Some(heard) }) = heard else {
            return Ok(HostEnd::Failed(format!("run: {address} ended without a result")));
        };
        match understand(heard) {
            HostEvent::End(end) => return Ok(end),
            event => sink.send(event).await,
        }
    }
}

/// The delay is counted from when the message arrives: half a round trip from now. The time is by the clock of the host.
fn spell(command: Command, clock: ClockEstimate) -> Told {
    match command {
        Command::Go(at) => {
            let left =
                u64::try_from(at.saturating_duration_since(Instant::now()).as_nanos()).unwrap_or(u64::MAX);
            let start_unix_ns = unix_ns().saturating_add(left).saturating_add_signed(clock.offset_ns);
            Told::Go(wire::Go { start_delay_ns: left.saturating_sub(clock.round_trip_ns / 2), start_unix_ns })
        }
        Command::Stop => Told::Stop(wire::Stop {}),
    }
}

fn understand(said: Said) -> HostEvent {
    match said {
        Said::Ready(ready) => HostEvent::Ready(ready.notes.iter().map(|note| line(note)).collect()),
        Said::Started(started) => HostEvent::Started(started.unix_ns),
        Said::Progress(progress) => match unpack_progress(progress.report, &progress.histograms) {
            Ok(report) => HostEvent::Progress(Box::new(report)),
            Err(error) => HostEvent::Unreadable(line(&format!("progress cannot be read: {error}"))),
        },
        Said::Result(result) => HostEvent::End(match unpack_outcome(result.outcome, &result.histograms) {
            Ok(outcome) => HostEnd::Finished(outcome),
            Err(error) => HostEnd::Failed(line(&format!("run: the result cannot be read: {error}"))),
        }),
        Said::Refused(refused) => HostEvent::End(HostEnd::Refused(Refusal::from_wire(&refused))),
        Said::Failed(failed) => HostEvent::End(HostEnd::Failed(line(&failed.line))),
    }
}

fn message(told: Told) -> wire::FromCoordinator {
    wire::FromCoordinator { message: Some(told) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_and_ends_nothing_but_itself() {
        let report = br#"{"running":{"cpus_used":null}}"#.to_vec();
        let event = understand(Said::Progress(wire::Progress { report, histograms: Vec::new() }));
        assert!(matches!(event, HostEvent::Unreadable(why) if why.contains("progress cannot be read")));
        let event = understand(Said::Result(wire::Result { outcome: b"{".to_vec(), histograms: Vec::new() }));
        assert!(
            matches!(event, HostEvent::End(HostEnd::Failed(why)) if why.contains("result cannot be read"))
        );
        let event = understand(Said::Failed(wire::Failed { line: "a\x1b[2Jb\nc".to_owned() }));
        assert!(matches!(event, HostEvent::End(HostEnd::Failed(why)) if why == "a [2Jb c"));
    }
}
