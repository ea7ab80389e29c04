//! Plans of the network layer in words.

use std::collections::BTreeMap;

use report::record::PhaseRecord;
use rpc::{EndpointPlan, InterfacePlan};
use units::{clean, counted, human_bits_per_second, human_bytes_per_second, percent};

use crate::{NetworkPlan, Traffic};

/// Addresses that are named; of more, the rest is counted.
const ADDRESSES_SHOWN: usize = 3;

/// Who drives and which way, where it is not this process: `4 masters (0:0, 1:0, 2:0, ...), full matrix`.
pub(super) fn masters(plan: &NetworkPlan) -> Option<String> {
    let labels: Vec<_> =
        plan.masters.iter().take(ADDRESSES_SHOWN).map(|master| clean(&master.label)).collect();
    let more = if plan.masters.len() > labels.len() { ", ..." } else { "" };
    let traffic = match plan.traffic {
        Traffic::All => "each to every endpoint",
        Traffic::Matrix => "each to every endpoint of other ranks",
        Traffic::Pairs => "each to a separate endpoint",
        Traffic::Ring => "each to the next",
        Traffic::Incast => "all to the first endpoint",
    };
    let count = counted(plan.masters.len() as u64, "master");
    (!labels.is_empty()).then(|| format!("{count} ({}{more}), {traffic}", labels.join(", ")))
}

/// `2-17` of sorted numbers.
fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if number == *last || Some(number) == last.checked_add(1) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let words = runs.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}

/// The endpoints, those of a rank together: `0:2-17 at tcp://10.0.0.1:31416`; then how many more ranks there are, and their group.
pub(super) fn places(plan: &NetworkPlan) -> Vec<String> {
    let is_numbered = |one: &EndpointPlan| one.label == format!("{}:{}", one.rank, one.tag);
    let mut found: Vec<String> = Vec::new();
    if plan.endpoints.iter().all(is_numbered) {
        let mut ranks: BTreeMap<(u32, &str), Vec<u32>> = BTreeMap::new();
        for endpoint in &plan.endpoints {
            // Names of a fabric differ by tag: the rank has one line all the same.
            let uri = if plan.provider.starts_with("ofi") { "" } else { endpoint.uri.as_str() };
            ranks.entry((endpoint.rank, uri)).or_default().push(endpoint.tag);
        }
        found.extend(ranks.into_iter().map(|((rank, uri), mut tags)| {
            tags.sort_unstable();
            let at = if uri.is_empty() { String::new() } else { format!(" at {}", clean(uri)) };
            format!("{rank}:{}{at}", ranges(&tags))
        }));
    } else {
        found.extend(plan.endpoints.iter().map(|endpoint| {
            let at = if endpoint.uri == endpoint.label {
                String::new()
            } else {
                format!(" at {}", clean(&endpoint.uri))
            };
            format!("{}{at}", clean(&endpoint.label))
        }));
    }
    let more = found.len().saturating_sub(ADDRESSES_SHOWN);
    if more > 0 {
        found.truncate(ADDRESSES_SHOWN);
        found.push(format!("and {more} more, {} in total", counted(plan.endpoints.len() as u64, "endpoint")));
    }
    if let (Some(group), Some(last)) = (&plan.group, found.last_mut()) {
        last.push_str(&format!(", group {}", clean(group)));
    }
    found
}

/// `eth0 (mlx5_0): 100 Gbit/s, MTU 9000, NUMA node 1; on the NUMA node of the workers`.
pub(super) fn interface(interface: &InterfacePlan) -> String {
    let domain = if interface.domain == interface.name || interface.domain.is_empty() {
        String::new()
    } else {
        format!(" ({})", clean(&interface.domain))
    };
    let facts = [
        interface.is_loopback.then(|| "loopback".to_owned()),
        interface.speed_bits_per_second.map(|bits| human_bits_per_second(bits as f64)),
        interface.mtu_bytes.map(|mtu| format!("MTU {mtu}")),
        interface.numa_node.map(|node| format!("NUMA node {node}")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let facts = if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", ")) };
    let why =
        if interface.chosen.is_empty() { String::new() } else { format!("; {}", clean(&interface.chosen)) };
    format!("{}{domain}{facts}{why}", clean(&interface.name))
}

/// Bytes a second that left and that came in, over the steady window; each byte counts once.
pub(super) fn directions(phase: &PhaseRecord, plan: &NetworkPlan) -> [f64; 2] {
    let rpcs = phase.summary.total.operations_per_second;
    [plan.request, plan.reply].map(|payload| rpcs * payload.size_bytes as f64)
}

/// `3.71 GiB/s, 31.9 Gbit/s, 31.9% of the link's 100 Gbit/s`.
pub(super) fn direction(bytes_per_second: f64, plan: &NetworkPlan) -> String {
    let bits = bytes_per_second * 8.0;
    // The link of this machine carries nothing of what masters send each other.
    let speed = plan.interface.as_ref().filter(|_| plan.masters.is_empty());
    let speed = speed.and_then(|interface| interface.speed_bits_per_second).filter(|speed| *speed > 0);
    let share = speed.map_or_else(String::new, |speed| {
        let speed = speed as f64;
        format!(", {} of the link's {}", percent(bits / speed), human_bits_per_second(speed))
    });
    format!("{}, {}{share}", human_bytes_per_second(bytes_per_second), human_bits_per_second(bits))
}
