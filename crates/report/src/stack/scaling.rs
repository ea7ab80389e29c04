//! The verdict about a row that does not scale from one host to several.

use layer::StackKind;

use super::hosts::OnHosts;
use super::remedy::Remedy;
use super::rows::Row;
use super::step::Step;
use super::verdict::{Verdict, about};
use crate::record::{StackVerdict, StackVerdictKind};
use crate::words::{clean, factor};

/// The verdict that a row loses most on the way from one host to all.
pub(super) fn verdict(step: &Step, hosts: &OnHosts<'_>, rows: &[Row<'_>]) -> Verdict {
    let at = hosts.of[step.row];
    let (row, count) = (&rows[at], hosts.count);
    let (shared, remedy) = match hosts.shares_target(step.row) {
        Some(true) => (
            "; the hosts share it",
            "the hosts share it: add drives, links or servers, or use a separate one per host",
        ),
        of_all => (
            if of_all.is_some() { "; each host has a separate one" } else { "" },
            "each host has a separate one: check the resources that they share below it, such as CPUs, a switch or a storage network",
        ),
    };
    let sentence = |interval: &str| {
        format!(
            "{} does not scale, at {}: {count} hosts reach {}x one host, {}x less than {count}x{interval}{shared}",
            clean(&row.row.layer),
            clean(&row.row.load),
            factor(f64::from(count) / step.factor),
            factor(step.factor),
        )
    };
    let kind = match row.kind {
        StackKind::Software => StackVerdictKind::Loss,
        _ => StackVerdictKind::Limit,
    };
    let found = StackVerdict { hosts: Some(count), ..about((row, step), &hosts.steps, kind, sentence) };
    Verdict { found, row: Some(at), varies: false, remedies: vec![Remedy::told(remedy)] }
}
