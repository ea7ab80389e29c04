//! Plans that other processes send: what is accepted of them.

use driver::{Error, ErrorKind};
use layer::AcceptLimits;
use rpc::EndpointPlan;
use rpc::address::Address;
use workload::plan::PhasePlan;

use crate::NetworkPlan;
use crate::plan::check_received;

/// Accepts a plan that a coordinator sent; the bytes of its buffers. Without a shared secret nobody knows who the coordinator is, and the load stays on
/// this machine.
///
/// # Errors
/// A plan that cannot be carried out, with what is accepted.
pub(super) fn accept(plan: &PhasePlan, limits: &AcceptLimits) -> Result<u64, Error> {
    let Some(plan) = plan.of::<NetworkPlan>() else {
        return Err(Error::usage("plan", "it is not a network plan"));
    };
    let bytes = check_received(plan, limits.memory_bytes);
    let bytes = bytes.map_err(|error| Error::usage("plan", error.to_string()))?;
    if !limits.has_secret && plan.engine != "null" {
        plan.endpoints.iter().try_for_each(check_stays_here)?;
    }
    Ok(bytes)
}

/// Refuses an endpoint beyond loopback.
fn check_stays_here(endpoint: &EndpointPlan) -> Result<(), Error> {
    let found = Address::parse(&endpoint.uri)?.resolve();
    let is_here =
        found.is_ok_and(|found| found.iter().all(|address| address.ip().to_canonical().is_loopback()));
    if is_here {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsafe, "plan", "an engine without a token generates no load beyond loopback")
        .with("endpoint", &endpoint.label)
        .with("address", &endpoint.uri)
        .remedy("start the engines with the same --token-file"))
}

#[cfg(test)]
mod tests {
    use layer::masters::MasterJob;

    use super::*;
    use crate::Network;

    /// A plan as a coordinator sends it, sending to `uri`.
    fn job(uri: &str, threads: u32) -> MasterJob {
        layer::add(&Network);
        let plan = serde_json::json!({
            "layer": "network", "name": "a", "engine": "tcp", "provider": "tcp", "group": null,
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

    fn check(job: &MasterJob, has_secret: bool) -> Result<(), Error> {
        job.check(&AcceptLimits { memory_bytes: Some(1 << 30), has_secret })
    }

    fn refusal(job: &MasterJob, has_secret: bool) -> String {
        check(job, has_secret).expect_err("refused").to_string()
    }

    #[test]
    fn all_parts_together_are_held_to_the_limits() {
        let here = job("tcp://127.0.0.1:9", 1);
        assert!(check(&here, false).is_ok());
        let times = |count: usize| MasterJob { parts: vec![here.parts[0].clone(); count] };
        assert!(refusal(&times(0), false).contains("0 parts"));
        assert!(refusal(&times(1001), false).contains("1001 parts"));
        // 4 MiB each; half a GiB is for buffers.
        assert!(check(&times(128), false).is_ok());
        assert!(refusal(&times(129), false).contains("129 workers with 541065216 bytes"));
        assert!(refusal(&job("tcp://127.0.0.1:9", 0), true).contains("threads 0"));
    }

    #[test]
    fn without_a_token_the_load_stays_here() {
        for uri in
            ["tcp://192.0.2.1:80", "tcp://[2001:db8::1]:80", "ofi+tcp://192.0.2.1:80", "tcp://0.0.0.0:80"]
        {
            assert!(refusal(&job(uri, 1), false).contains("beyond loopback"), "{uri}");
            assert!(check(&job(uri, 1), true).is_ok(), "{uri}");
        }
        assert!(check(&job("tcp://[::1]:80", 1), false).is_ok());
        assert!(refusal(&job("file:///etc/passwd", 1), false).contains("not an endpoint address"));
    }
}
