//! Counters of the endpoints and of the kernel's TCP during a stage.

use std::time::Duration;

use host::network::TcpCounters;
use layer::observations::ServerActivity;
use rpc::EndpointPlan;
use rpc::inquiry::{ServerStatistics, statistics};

use super::run::Ready;
use super::sync::{distinct, for_each};
use crate::NetworkPlan;

/// Longest wait for one endpoint.
const WAIT: Duration = Duration::from_secs(2);
/// More endpoints are not asked: it would take longer than many a phase.
const ENDPOINTS_MAX: usize = 1024;

/// Counters just before a stage.
pub(super) struct ServerWatch {
    endpoints: Vec<EndpointPlan>,
    before: Vec<Option<ServerStatistics>>,
    tcp: Option<TcpCounters>,
}

/// Counters of the activity in between.
#[derive(Default)]
pub(super) struct Seen {
    servers: Vec<(EndpointPlan, ServerStatistics)>,
    /// CPU time of service threads on this machine, in nanoseconds.
    pub(super) local_cpu_ns: u64,
    /// Segments sent again, and all that were sent.
    pub(super) segments: Option<(u64, u64)>,
}

impl ServerWatch {
    /// Asks all endpoints.
    pub(super) fn begin(stage: &[Ready<'_>]) -> Self {
        let mut endpoints =
            distinct(stage.iter().map(|ready| ready.plan).filter(|plan| plan.engine != "null"));
        endpoints.truncate(ENDPOINTS_MAX);
        let before = ask(stage, &endpoints);
        Self { endpoints, before, tcp: TcpCounters::read() }
    }

    /// Asks them again.
    pub(super) fn end(self, stage: &[Ready<'_>]) -> Seen {
        let tcp = self.tcp.zip(TcpCounters::read()).map(|(before, after)| after.since(&before));
        let after = ask(stage, &self.endpoints);
        let servers: Vec<(EndpointPlan, ServerStatistics)> = self
            .endpoints
            .into_iter()
            .zip(self.before.into_iter().zip(after))
            .filter_map(|(endpoint, (before, after))| Some((endpoint, after?.since(&before?))))
            .collect();
        let is_local = stage.iter().all(|Ready { plan, access, .. }| {
            access.engine.is_some() || plan.interface.as_ref().is_some_and(|interface| interface.is_loopback)
        });
        let cpu_ns = servers.iter().map(|(_, done)| done.cpu_user_ns + done.cpu_system_ns).sum();
        Seen {
            servers,
            local_cpu_ns: if is_local { cpu_ns } else { 0 },
            segments: tcp.and_then(|done| {
                let again = done.retransmitted_segments?;
                Some((again, done.sent_segments? + again))
            }),
        }
    }
}

fn ask(stage: &[Ready<'_>], endpoints: &[EndpointPlan]) -> Vec<Option<ServerStatistics>> {
    let Some(first) = stage.first() else { return Vec::new() };
    for_each(endpoints, |endpoint| {
        statistics(endpoint, &first.plan.socket, first.control().secret.as_ref(), WAIT).ok()
    })
}

impl Seen {
    /// Activity of the endpoints of a plan, each once, as far as they could be asked before and after.
    pub(super) fn of(&self, plan: &NetworkPlan) -> Vec<ServerActivity> {
        let own = |endpoint: &EndpointPlan| {
            plan.endpoints.iter().any(|own| (&own.uri, own.tag) == (&endpoint.uri, endpoint.tag))
        };
        let activity = |(endpoint, done): &(EndpointPlan, ServerStatistics)| ServerActivity {
            label: endpoint.label.clone(),
            rpcs: done.rpcs,
            received_bytes: done.received_bytes,
            sent_bytes: done.sent_bytes,
            errors: done.errors,
            cpu_user_ns: done.cpu_user_ns,
            cpu_system_ns: done.cpu_system_ns,
            poll: Some(done.poll),
        };
        self.servers.iter().filter(|(endpoint, _)| own(endpoint)).map(activity).collect()
    }
}
