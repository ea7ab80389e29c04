//! Network, server or this process: what the parts of a latency say about it (`--split-latency`).

use report::record::PhaseRecord;
use statistics::{ClassSummary, tally};
use units::human::human_ns;

/// Share of the time from which on a part is what counts.
const SHARE_MIN: f64 = 0.5;

/// Parts that say the same, and what that is.
struct Cause {
    parts: &'static [&'static str],
    /// Noun in the line.
    name: &'static str,
    advice: &'static str,
}

const CAUSES: &[Cause] = &[
    Cause {
        parts: &["first-byte"],
        name: "the server",
        advice: "time to its first byte: check its CPUs, its drives, and how many requests it handles at a time",
    },
    Cause {
        parts: &["service"],
        name: "the server's own work",
        advice: "check its CPUs: use more targets, dedicated cores, and cheaper checksums",
    },
    Cause {
        parts: &["storage"],
        name: "the server's drives",
        advice: "reads, writes and syncs of its files: measure the layers below with strata media and strata stack; --durability sets what updates wait for",
    },
    Cause {
        parts: &["queue"],
        name: "the server's queue",
        advice: "requests wait for the thread of their target: use more targets, spread keys over more of them, or lower the depth",
    },
    Cause {
        parts: &["network"],
        name: "the network",
        advice: "check the link (strata net measures it) and the CPUs of both sides",
    },
    Cause {
        parts: &["connect", "tls"],
        name: "new connections",
        advice: "connections are opened again: find out why the server, or a proxy before it, closes them",
    },
    Cause {
        parts: &["send", "receive"],
        name: "the transfer",
        advice: "bytes in transfer: check the link (strata net measures it), and how fast the server receives and sends them",
    },
    Cause {
        parts: &["pause"],
        name: "pauses before retries",
        advice: "the server rejected requests or lost them: lower the depth, or request a higher limit",
    },
    Cause {
        parts: &["client"],
        name: "this process",
        advice: "its CPUs are the bottleneck: use more threads, fewer operations in flight on each, no TLS, or more hosts (--hosts)",
    },
];

/// The classes whose parts were told apart, with the words on each.
pub(super) fn told(phase: &PhaseRecord) -> Vec<(&ClassSummary, String)> {
    let least_ns = tally(&phase.samples, "tcp_round_trip_min_ns", None).map(|(_, mean_ns)| mean_ns);
    let classes = phase.summary.classes.iter().filter(|class| !class.latency_parts.is_empty());
    classes.map(|class| (class, line(class, least_ns))).collect()
}

/// `least_ns` is the shortest round trip of the network, where it is known.
fn line(class: &ClassSummary, least_ns: Option<f64>) -> String {
    let all_ns: f64 = class.latency_parts.iter().map(|part| part.latency.sum_ns()).sum();
    let of = |cause: &Cause| {
        let parts = class.latency_parts.iter().filter(|part| cause.parts.contains(&part.part.as_str()));
        parts.map(|part| part.latency.sum_ns()).sum::<f64>() / all_ns.max(1.0)
    };
    let mut shares: Vec<(f64, &Cause)> = CAUSES.iter().map(|cause| (of(cause), cause)).collect();
    shares.sort_by(|one, other| other.0.total_cmp(&one.0));
    let [(share, cause), (next, second), ..] = shares[..] else { return String::new() };
    if share < SHARE_MIN {
        return format!(
            "{:.0} % in {} and {:.0} % in {}: no part dominates",
            share * 100.0,
            cause.name,
            next * 100.0,
            second.name
        );
    }
    let trip = trip_of(class, cause, least_ns).unwrap_or_default();
    format!("{:.0} % of the time in {}{trip}; {}", share * 100.0, cause.name, cause.advice)
}

/// Round trip of the network, in words, to be held against the time in `cause`.
fn trip_of(class: &ClassSummary, cause: &Cause, least_ns: Option<f64>) -> Option<String> {
    match cause.name {
        // A connection is made in about one round trip: what the wait has beyond it is not the network's.
        "the server" => {
            let part = class.latency_parts.iter().find(|part| part.part == "connect")?;
            let ns = human_ns(part.latency.p50_ns as f64);
            Some(format!(" (a network round trip takes {ns}, measured by connections made)"))
        }
        "the network" => {
            Some(format!(" (the shortest round trip seen by TCP takes {})", human_ns(least_ns?)))
        }
        "the server's own work" | "the server's drives" | "the server's queue" => {
            Some(format!(" (a network round trip takes {})", human_ns(least_ns?)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use statistics::{Histogram, LatencyPartSummary, LatencySummary};

    use super::*;

    /// A class with parts of so many nanoseconds in each of 100 operations.
    fn class(parts: &[(&str, u64)]) -> ClassSummary {
        let part = |(name, ns): &(&str, u64)| {
            let mut times = Histogram::new();
            (0..100).for_each(|_| times.record(*ns));
            LatencyPartSummary { part: (*name).to_owned(), latency: LatencySummary::of(&times).unwrap() }
        };
        let sample = crate::sample::object_phase(&crate::sample::KV).summary.classes.remove(0);
        ClassSummary { class: "get".to_owned(), latency_parts: parts.iter().map(part).collect(), ..sample }
    }

    #[test]
    fn the_cause_with_most_of_the_time_is_named() {
        for (parts, told) in [
            (
                &[("connect", 100), ("first-byte", 9000), ("receive", 500), ("client", 400)][..],
                "90 % of the time in the server (a network round trip",
            ),
            (&[("first-byte", 9000), ("receive", 1000)], "90 % of the time in the server; "),
            (&[("send", 4000), ("receive", 4000), ("first-byte", 2000)], "80 % of the time in the transfer"),
            (&[("client", 6000), ("first-byte", 4000)], "60 % of the time in this process"),
            (&[("pause", 6000), ("first-byte", 4000)], "60 % of the time in pauses"),
            (
                &[("connect", 3000), ("tls", 5000), ("first-byte", 2000)],
                "80 % of the time in new connections",
            ),
            (&[("send", 4000), ("first-byte", 4000), ("client", 2000)], "no part dominates"),
        ] {
            let line = line(&class(parts), None);
            assert!(line.contains(told), "{line}");
        }
        for (parts, told) in [
            (
                &[("network", 2000), ("queue", 1000), ("service", 7000)][..],
                "70 % of the time in the server's own work (a network round trip takes 25.0 us); check",
            ),
            (
                &[("network", 2000), ("service", 1000), ("storage", 7000)],
                "70 % of the time in the server's drives (a network round trip takes 25.0 us); reads",
            ),
            (
                &[("network", 2000), ("queue", 7000), ("service", 1000)],
                "70 % of the time in the server's queue (a",
            ),
            (
                &[("network", 9000), ("service", 500), ("client", 500)],
                "90 % of the time in the network (the shortest round trip seen by TCP takes 25.0 us); check",
            ),
            (&[("network", 4000), ("service", 4000), ("client", 2000)], "no part dominates"),
        ] {
            let line = line(&class(parts), Some(25e3));
            assert!(line.contains(told), "{line}");
        }
    }
}
