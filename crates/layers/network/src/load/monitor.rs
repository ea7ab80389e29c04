//! Activity of servers while others drive them, for live views.

use rpc::EndpointPlan;
use rpc::watch::{ServerReading, ServerWatch, WatchRequest, WatchedServer};
use statistics::{HostRole, HostSnapshot};

use super::run::Ready;
use super::sync::distinct;

/// More endpoints are not watched: each has a connection and is asked.
const ENDPOINTS_MAX: usize = 256;

/// Watches the endpoints of a stage until it is dropped.
pub(super) struct Monitor(Option<ServerWatch>);

impl Monitor {
    /// Begins to watch. Where that cannot be, the view shows no servers.
    pub(super) fn begin(stage: &[Ready<'_>]) -> Self {
        let endpoints = distinct(stage.iter().map(|ready| ready.plan));
        let Some(first) = stage.first().filter(|_| endpoints.len() <= ENDPOINTS_MAX) else {
            return Self(None);
        };
        let request = WatchRequest::new(
            by_engine(endpoints),
            first.plan.socket.clone(),
            first.control().secret.clone(),
        );
        Self(ServerWatch::start(request).ok())
    }

    /// The servers as they were last seen.
    pub(super) fn hosts(&self) -> Vec<HostSnapshot> {
        self.0.iter().flat_map(ServerWatch::latest).map(row).collect()
    }
}

/// The endpoints of each engine together: under their name where they share one, else under the engine's rank.
fn by_engine(endpoints: Vec<EndpointPlan>) -> Vec<WatchedServer> {
    let mut servers: Vec<WatchedServer> = Vec::new();
    for endpoint in endpoints {
        match servers.iter_mut().find(|server| server.endpoints[0].uri == endpoint.uri) {
            Some(server) => {
                if server.label != endpoint.label {
                    server.label = format!("rank {}", endpoint.rank);
                }
                server.endpoints.push(endpoint);
            }
            None => servers.push(WatchedServer { label: endpoint.label.clone(), endpoints: vec![endpoint] }),
        }
    }
    servers
}

fn row(server: ServerReading) -> HostSnapshot {
    HostSnapshot {
        label: server.label,
        role: HostRole::Server,
        operations: server.rpcs,
        bytes: server.received_bytes.saturating_add(server.sent_bytes),
        errors: server.errors,
        operations_per_second: server.rpcs_per_second,
        bytes_per_second: server.received_bytes_per_second + server.sent_bytes_per_second,
        workers_active: server.connections,
        cpus_used: server.cpus_used,
        failure: server.failure,
        ..HostSnapshot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(rank: u32, tag: u32, label: &str) -> EndpointPlan {
        EndpointPlan { rank, tag, uri: format!("tcp://10.0.0.{rank}:31416"), label: label.to_owned() }
    }

    #[test]
    fn endpoints_of_an_engine_are_one_server() {
        let endpoints = vec![
            endpoint(0, 2, "0:2"),
            endpoint(1, 2, "node01:1611"),
            endpoint(0, 3, "0:3"),
            endpoint(1, 3, "node01:1611"),
            endpoint(2, 2, "2:2"),
        ];
        let servers = by_engine(endpoints);
        let labels: Vec<_> =
            servers.iter().map(|server| (server.label.as_str(), server.endpoints.len())).collect();
        assert_eq!(labels, [("rank 0", 2), ("node01:1611", 2), ("2:2", 1)]);
    }

    #[test]
    fn both_directions_are_bytes_of_the_row() {
        let reading = ServerReading {
            received_bytes: 3,
            sent_bytes: 4,
            received_bytes_per_second: 1.5,
            sent_bytes_per_second: 2.5,
            connections: 5,
            ..ServerReading::default()
        };
        let row = row(reading);
        assert_eq!((row.bytes, row.bytes_per_second, row.workers_active), (7, 4.0, 5));
    }
}
