//! A load that an engine drives for another process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use driver::{Error, ErrorKind, HostClock};
use fleet::{OutcomeMessage, Prepared, ProgressReport, StartGate};
use report::record::LinkActivity;
use rpc::address::Address;
use serde::{Deserialize, Serialize};
use workload::network::{EndpointPlan, NetworkPlan};
use workload::plan::{buffer_bytes_max, check_received};

use crate::net::link::LinkWatch;
use crate::net::run::{Access, job};

/// Parts of one job at most: phases of a stage, and masters that one process is in each.
const PARTS_MAX: usize = 1000;
/// Workers of one job at most, as for one phase.
const THREADS_MAX: u64 = 4096;

/// Job of one process in a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MasterJob {
    /// One entry for each phase of the stage and each master that this process is in it.
    pub(crate) parts: Vec<MasterPart>,
}

/// A phase as one master drives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MasterPart {
    /// The phase.
    pub(crate) plan: NetworkPlan,
    /// Which of its masters this is.
    pub(crate) master: usize,
}

/// How a part ended, besides its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartEnd {
    /// Notes of the drivers.
    pub(crate) notes: Vec<String>,
    /// Why it failed or ended early.
    pub(crate) failure: Option<String>,
    /// Arrivals of an open loop: started and never started.
    pub(crate) arrivals: Option<(u64, u64)>,
    /// Counters of the interface that it sent through.
    #[serde(default)]
    pub(crate) link: Option<LinkActivity>,
}

impl MasterJob {
    /// Checks what a coordinator sent, before any of it is carried out: by the limits of a plan that is made here, for all parts
    /// together. Without a token nobody knows who the coordinator is, and the load stays on this machine.
    ///
    /// # Errors
    /// A part that cannot be carried out, with what is accepted.
    pub(super) fn check(&self, memory_bytes: Option<u64>, has_token: bool) -> Result<(), Error> {
        let refused = |message: String| Err(Error::usage("plan", message));
        if self.parts.is_empty() || self.parts.len() > PARTS_MAX {
            return refused(format!("{} parts: accepted are 1 to {PARTS_MAX}", self.parts.len()));
        }
        let (mut threads, mut buffer_bytes) = (0_u64, 0_u64);
        for MasterPart { plan, .. } in &self.parts {
            let bytes = check_received(plan, memory_bytes);
            let bytes = bytes.map_err(|error| Error::usage("plan", error.to_string()))?;
            buffer_bytes = buffer_bytes.saturating_add(bytes);
            threads += u64::from(plan.load.threads);
            if !has_token && plan.engine != "null" {
                plan.endpoints.iter().try_for_each(check_stays_here)?;
            }
        }
        let accepted_bytes = buffer_bytes_max(memory_bytes);
        if threads > THREADS_MAX || buffer_bytes > accepted_bytes {
            return refused(format!(
                "{threads} workers with {buffer_bytes} bytes of buffers: accepted are {THREADS_MAX} and {accepted_bytes}"
            ));
        }
        Ok(())
    }
}

/// Refuses an endpoint beyond loopback.
fn check_stays_here(endpoint: &EndpointPlan) -> Result<(), Error> {
    let found = Address::parse(&endpoint.uri)?.resolve();
    let is_here =
        found.is_ok_and(|found| found.iter().all(|address| address.ip().to_canonical().is_loopback()));
    if is_here {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsafe, "plan", "an engine without a token drives no load beyond loopback")
        .with("endpoint", &endpoint.label)
        .with("address", &endpoint.uri)
        .remedy("start the engines with the same --token-file"))
}

impl MasterPart {
    /// Puts the workers where the master's service thread is, unless the plan says where they are.
    ///
    /// # Errors
    /// A master or an endpoint that the plan does not have; processors that this machine does not have.
    pub(super) fn take_place(&mut self, cores: &[u32]) -> Result<(), Error> {
        let plan = &mut self.plan;
        let master = plan
            .masters
            .get(self.master)
            .ok_or_else(|| Error::usage("plan", format!("there is no master {} in it", self.master)))?;
        if master.endpoints.iter().any(|&endpoint| endpoint as usize >= plan.endpoints.len()) {
            return Err(Error::usage("plan", "a master sends to an endpoint that is not in it"));
        }
        let is_free = plan.load.cores.is_empty() && plan.load.numa.is_empty();
        if let Some(tag) = master.tag.filter(|_| is_free && !cores.is_empty()) {
            plan.load.cores = vec![cores[tag as usize % cores.len()]];
        }
        runner::check_placement(&plan.load)
    }
}

/// A job that can begin.
pub(super) struct PreparedJob {
    pub(super) job: MasterJob,
    pub(super) access: Arc<Access>,
}

impl Prepared for PreparedJob {
    fn run(
        self: Box<Self>,
        gate: StartGate,
        observe: &mut dyn FnMut(ProgressReport),
        stop: Arc<AtomicBool>,
    ) -> Result<OutcomeMessage, Error> {
        let Self { job: MasterJob { parts }, access } = *self;
        let links: Vec<_> =
            parts.iter().map(|part| LinkWatch::begin(&part.plan, Some(part.master))).collect();
        let jobs = parts.iter().map(|part| job(&part.plan, Some(part.master), &access, Arc::clone(&stop)));
        let mut gate = Some(gate);
        let mut ready = || match gate.take() {
            // The start lies in the past once the wait is over.
            Some(gate) => gate.wait(Vec::new()).map(|_: Instant| None),
            None => Ok(None),
        };
        let outcomes =
            runner::run_coordinated(jobs.collect(), HostClock::get(), &mut ready, &mut |snapshot| {
                observe(ProgressReport::Running(snapshot.clone()));
            })?;
        let mut message = OutcomeMessage::default();
        let mut ends = Vec::new();
        for (outcome, link) in outcomes.into_iter().zip(links) {
            message.failure = message.failure.or_else(|| outcome.failure.clone());
            ends.push(PartEnd {
                notes: outcome.notes,
                failure: outcome.failure,
                arrivals: outcome.arrivals.map(|tally| (tally.started, tally.unserved)),
                link: link.and_then(LinkWatch::end),
            });
            message.samples.push(outcome.samples);
        }
        message.details = serde_json::to_value(ends).unwrap_or_default();
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan as a coordinator sends it, sending to `uri`.
    fn job(uri: &str, threads: u32) -> MasterJob {
        let plan = serde_json::json!({
            "name": "a", "engine": "tcp", "provider": "tcp", "group": null,
            "endpoints": [{"rank": 0, "tag": 2, "uri": uri, "label": "0:2"}],
            "masters": [{"label": "0:0", "control": "127.0.0.1:1", "rank": 0, "tag": 0, "endpoints": [0]}],
            "traffic": "all", "order": "round_robin", "share": "whole",
            "request": {"kind": "bulk", "size_bytes": 1 << 20}, "reply": {"kind": "empty", "size_bytes": 0},
            "connections": 1, "pipeline": 4, "align": null, "verify": false, "poll": "block", "timeout_ns": 1_000_000_000,
            "socket": {"send_buffer_bytes": null, "receive_buffer_bytes": null, "no_delay": true, "zero_copy": "auto",
                "device": null, "source": null},
            "interface": null,
            "load": {"threads": threads, "depth": 4, "batch": 4, "batch_min": 1, "batch_max": 4,
                "limit": {"time_ns": 1, "operations": null, "bytes": null}, "warmup": "none", "arrivals": null,
                "interval_ns": 1_000_000, "on_error": "stop", "cores": [], "numa": [], "seed": 1},
        });
        let part = serde_json::json!({"plan": plan, "master": 0});
        serde_json::from_value(serde_json::json!({"parts": [part]})).expect("a job")
    }

    fn refusal(job: &MasterJob, has_token: bool) -> String {
        job.check(Some(1 << 30), has_token).expect_err("refused").to_string()
    }

    #[test]
    fn all_parts_together_are_held_to_the_limits() {
        let here = job("tcp://127.0.0.1:9", 1);
        assert!(here.check(Some(1 << 30), false).is_ok());
        let times = |count: usize| MasterJob { parts: vec![here.parts[0].clone(); count] };
        assert!(refusal(&times(0), false).contains("0 parts"));
        assert!(refusal(&times(1001), false).contains("1001 parts"));
        // 4 MiB each; half a GiB is for buffers.
        assert!(times(128).check(Some(1 << 30), false).is_ok());
        assert!(refusal(&times(129), false).contains("129 workers with 541065216 bytes"));
        assert!(refusal(&job("tcp://127.0.0.1:9", 0), true).contains("threads 0"));
    }

    #[test]
    fn without_a_token_the_load_stays_here() {
        for uri in
            ["tcp://192.0.2.1:80", "tcp://[2001:db8::1]:80", "ofi+tcp://192.0.2.1:80", "tcp://0.0.0.0:80"]
        {
            assert!(refusal(&job(uri, 1), false).contains("beyond loopback"), "{uri}");
            assert!(job(uri, 1).check(Some(1 << 30), true).is_ok(), "{uri}");
        }
        assert!(job("tcp://[::1]:80", 1).check(Some(1 << 30), false).is_ok());
        assert!(refusal(&job("file:///etc/passwd", 1), false).contains("no address of an endpoint"));
    }
}
