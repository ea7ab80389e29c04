//! A plan of the network as a plan of any layer.

use rpc::Poll;
use units::{ByteSize, clean};
use workload::plan::{LayerPlan, MasterPlan, Terms};
use workload::spec::Spec;

use super::{EndpointOrder, NetworkPlan, Payload, PayloadKind};
use crate::spec;

/// Terms of the network.
const TERMS: Terms = Terms {
    operations: "RPCs",
    depth: "RPCs in flight",
    depth_column: "in flight",
    depth_points: "RPCs in flight",
    size: "payloads",
    size_column: "payloads",
    size_points: "payloads",
};

impl LayerPlan for NetworkPlan {
    workload::plan_parts!("network");

    fn operation_name(&self) -> &'static str {
        "rpc"
    }

    fn operation_size(&self) -> String {
        format!("{} {}", self.request, self.reply)
    }

    fn operation_bytes_max(&self) -> u64 {
        self.rpc_bytes()
    }

    fn operation_words(&self) -> String {
        let words = |payload: Payload| match payload.kind {
            PayloadKind::Empty => "nothing".to_owned(),
            PayloadKind::Iov => format!("{} inline", ByteSize(payload.size_bytes)),
            PayloadKind::Bulk => format!("{} bulk", ByteSize(payload.size_bytes)),
        };
        if self.rpc_bytes() == 0 {
            return "empty RPCs".to_owned();
        }
        format!("RPCs, {} out, {} back", words(self.request), words(self.reply))
    }

    fn manner(&self) -> Vec<String> {
        let poll = match self.poll {
            Poll::Spin => "poll spin",
            Poll::Adaptive => "poll adaptive",
            Poll::Block => "poll block",
        };
        let mut words = vec![clean(&self.provider).into_owned(), poll.to_owned()];
        if self.connections > 1 {
            words.push(format!("{} connections a pair", self.connections));
        }
        match self.order {
            EndpointOrder::RoundRobin => {}
            EndpointOrder::Random => words.push("endpoints at random".to_owned()),
            EndpointOrder::Pinned => words.push("slots pinned to endpoints".to_owned()),
        }
        if self.verify {
            words.push("verified".to_owned());
        }
        words.extend(self.memory.words().filter(|_| self.rpc_bytes() > 0));
        words
    }

    fn target_names(&self) -> Vec<&str> {
        self.endpoints.iter().map(|endpoint| endpoint.label.as_str()).collect()
    }

    fn target_addresses(&self) -> Vec<&str> {
        self.endpoints.iter().map(|endpoint| endpoint.uri.as_str()).collect()
    }

    fn terms(&self) -> &'static Terms {
        &TERMS
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("provider", self.provider.clone()),
            ("poll", format!("{:?}", self.poll).to_lowercase()),
            ("endpoints", self.endpoints.len().to_string()),
            ("masters", self.masters.len().to_string()),
            ("connections", self.connections.to_string()),
            ("interface", self.interface.as_ref().map_or_else(String::new, |one| one.name.clone())),
            ("request_bytes", self.request.size_bytes.to_string()),
            ("reply_bytes", self.reply.size_bytes.to_string()),
        ]
    }

    fn master_plans(&self) -> &[MasterPlan] {
        &self.masters
    }

    fn is_served_by(&self, rank: u32) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.rank == rank)
    }

    fn is_busy_on_purpose(&self) -> bool {
        self.poll == Poll::Spin || self.engine == "null"
    }

    fn local_endpoints(&self) -> u64 {
        let mut places: Vec<_> = self.endpoints.iter().map(|one| (one.rank, one.tag, &one.uri)).collect();
        places.sort_unstable();
        places.dedup();
        if self.is_loopback() && self.engine != "null" { places.len() as u64 } else { 0 }
    }

    fn direction_bytes(&self) -> Option<(u64, u64)> {
        Some((self.request.size_bytes, self.reply.size_bytes))
    }

    fn part_label(&self, part: usize) -> Option<&str> {
        self.endpoints.get(part).map(|endpoint| endpoint.label.as_str())
    }

    fn settle_depth(&mut self, depth: u32, spec: &Spec) {
        if spec::of(spec).pipeline.is_none() {
            self.pipeline = depth;
        }
    }
}
