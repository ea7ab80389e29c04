//! Fields of a phase of the network layer besides its classes.

use report::page::{Page, Style};
use report::record::{PhaseRecord, ServerActivity};
use report::shares;
use report::words::processors;
use statistics::{PhaseSamples, ShareSummary, by_origin, by_part, tally};
use units::{clean, count, counted, human_ns, percent};

use super::heat;
use super::matrix::Matrix;
use super::words::{direction, directions, interface, masters, places};
use crate::NetworkPlan;

/// Lines about failures of single endpoints.
const FAILURES_MAX: usize = 8;

/// Where RPCs go, who sends them and through what.
pub(super) fn places_of(page: &mut Page, plan: &NetworkPlan) {
    for (at, place) in places(plan).iter().enumerate() {
        page.field(if at == 0 { "on" } else { "" }, place, Style::Plain);
    }
    if let Some(text) = masters(plan) {
        page.field("from", &text, Style::Plain);
    }
    if let Some(found) = &plan.interface {
        page.field("through", &interface(found), Style::Plain);
    }
}

/// Bytes by direction.
pub(super) fn moved(page: &mut Page, phase: &PhaseRecord, plan: &NetworkPlan) {
    for (label, bytes_per_second) in ["out", "in"].into_iter().zip(directions(phase, plan)) {
        if bytes_per_second > 0.0 {
            page.field(label, &direction(bytes_per_second, plan), Style::Plain);
        }
    }
}

/// Who did what, and what it cost.
pub(super) fn detail(page: &mut Page, phase: &PhaseRecord, plan: &NetworkPlan) {
    cpu(page, phase, plan);
    tcp(page, phase);
    let named = |at: usize| plan.endpoints.get(at).map_or_else(|| format!("#{at}"), |one| one.label.clone());
    let endpoints: Vec<(String, ShareSummary)> =
        by_part(&phase.samples).into_iter().map(|part| (named(part.part), part.figures)).collect();
    if endpoints.len() > 1 {
        shares::table(page, "by endpoint", &endpoints);
    }
    if !plan.masters.is_empty() {
        let mut done = by_origin(&phase.samples);
        let place = |label: &str| plan.masters.iter().position(|master| master.label == label);
        done.sort_by_key(|origin| origin.origin.as_deref().and_then(place));
        let masters: Vec<(String, ShareSummary)> =
            done.into_iter().map(|origin| (origin.origin.unwrap_or_default(), origin.figures)).collect();
        shares::table(page, "by master", &masters);
    }
    failures(page, &endpoints);
    if let Some(matrix) = Matrix::of(phase) {
        heat::maps(page, &matrix);
        for (at, sentence) in matrix.sentences().iter().enumerate() {
            page.field(if at == 0 { "links" } else { "" }, sentence, Style::Strong);
        }
    }
}

/// Failures by endpoint, when there are several endpoints; those of one stand with the phase.
fn failures(page: &mut Page, endpoints: &[(String, ShareSummary)]) {
    if endpoints.len() < 2 {
        return;
    }
    let mut failed: Vec<_> = endpoints.iter().filter(|(_, totals)| totals.errors > 0).collect();
    failed.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.errors));
    for (at, (name, totals)) in failed.iter().take(FAILURES_MAX).enumerate() {
        let causes = totals.causes.iter().map(|cause| format!("{} {}", count(cause.count), cause.cause));
        let text = format!("{name}: {}", causes.collect::<Vec<_>>().join(", "));
        page.field(if at == 0 { "failures" } else { "" }, &clean(&text), Style::Failure);
    }
    if failed.len() > FAILURES_MAX {
        let more = failed.len() - FAILURES_MAX;
        page.field("", &format!("and {}", counted(more as u64, "more endpoint")), Style::Plain);
    }
}

/// CPU time of one side: `2.00 us per RPC, 2.05 ms per GiB`.
fn cost_words(cpu_ns: u64, rpcs: u64, bytes: u64) -> String {
    let an_rpc = human_ns(cpu_ns as f64 / rpcs.max(1) as f64);
    let gib = bytes as f64 / f64::from(1u32 << 30);
    let a_gib =
        if bytes == 0 { String::new() } else { format!(", {} per GiB", human_ns(cpu_ns as f64 / gib)) };
    format!("{an_rpc} per RPC{a_gib}")
}

fn cpu(page: &mut Page, phase: &PhaseRecord, plan: &NetworkPlan) {
    let (samples, done) = (&phase.samples, &phase.summary.last_done);
    let mut sides = Vec::new();
    if done.operations > 0 {
        let cpu_ns = samples.process_cpu_user_ns + samples.process_cpu_system_ns;
        let who = if plan.masters.is_empty() { "client" } else { "masters" };
        sides.push(format!("{who} {}", cost_words(cpu_ns, done.operations, done.bytes)));
    }
    let servers = &phase.observations.servers;
    let sum = |figure: fn(&ServerActivity) -> u64| servers.iter().map(figure).sum::<u64>();
    let rpcs = sum(|server| server.rpcs);
    if rpcs > 0 {
        let cpu_ns = sum(|server| server.cpu_user_ns + server.cpu_system_ns);
        let busy = cpu_ns as f64 / samples.elapsed_ns.max(1) as f64;
        sides.push(format!(
            "servers {} ({}, {} busy)",
            cost_words(cpu_ns, rpcs, sum(|server| server.received_bytes + server.sent_bytes)),
            counted(servers.len() as u64, "endpoint"),
            processors(busy)
        ));
    }
    if !sides.is_empty() {
        page.field("CPU", &sides.join("; "), Style::Plain);
    }
}

fn sum(samples: &PhaseSamples, name: &str) -> Option<f64> {
    tally(samples, name, None).map(|(sum, _)| sum)
}

fn mean(samples: &PhaseSamples, name: &str) -> Option<f64> {
    tally(samples, name, None).map(|(_, mean)| mean)
}

/// Counters of the kernel for the TCP connections.
fn tcp(page: &mut Page, phase: &PhaseRecord) {
    let samples = &phase.samples;
    let window = match (
        mean(samples, "tcp_congestion_window_packets"),
        mean(samples, "tcp_congestion_window_bytes"),
    ) {
        (Some(packets), Some(bytes)) => Some(format!(
            "congestion window {packets:.0} packets ({})",
            units::human::human_bytes(bytes.round())
        )),
        (Some(packets), None) => Some(format!("congestion window {packets:.0} packets")),
        (None, Some(bytes)) => {
            Some(format!("congestion window {}", units::human::human_bytes(bytes.round())))
        }
        (None, None) => None,
    };
    let seen = &phase.observations;
    let of_machine = seen.tcp_retransmitted_segments.map(|again| {
        let share = seen.tcp_sent_segments.filter(|sent| *sent > 0).map_or_else(String::new, |sent| {
            format!(" ({} of {})", percent(again as f64 / sent as f64), count(sent))
        });
        format!("{} retransmitted by this machine{share}", counted(again, "segment"))
    });
    let facts = [
        sum(samples, "tcp_connections").map(|sum| counted(sum.round() as u64, "connection")),
        mean(samples, "tcp_round_trip_ns").map(|ns| match mean(samples, "tcp_round_trip_variance_ns") {
            Some(variance) => format!("round trip {} ± {}", human_ns(ns), human_ns(variance)),
            None => format!("round trip {}", human_ns(ns)),
        }),
        window,
        sum(samples, "sessions_reopened")
            .map(|sum| format!("{} after a time-out", counted(sum.round() as u64, "reconnection"))),
        sum(samples, "tcp_retransmits").map(|sum| counted(sum.round() as u64, "retransmit")),
        sum(samples, "zero_copy_sends").filter(|sends| *sends > 0.0).map(|sends| {
            let copied = sum(samples, "zero_copy_copied").unwrap_or(0.0);
            format!(
                "{} zero-copy sends, {} copied by the kernel",
                count(sends as u64),
                percent(copied / sends)
            )
        }),
        of_machine,
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    if !facts.is_empty() {
        page.field("TCP", &facts.join(", "), Style::Plain);
    }
}
