//! The report of the network layer: lines, doubts, charts and its place in the stack.

mod charts;
mod doubts;
mod heat;
mod matrix;
mod stack_remedies;
mod text;
mod words;

#[cfg(test)]
mod tests;

use report::chart::Chart;
use report::doubts::Kind;
use report::page::Page;
use report::record::PhaseRecord;
use report::stack::{Remedy, RemedyCase};
use report::view::View;

/// The report of the network layer.
pub static VIEW: &dyn View = &Network;

struct Network;

impl View for Network {
    fn layer(&self) -> &'static str {
        "network"
    }

    fn places(&self, page: &mut Page, phase: &PhaseRecord) {
        if let Some(plan) = phase.plan.of() {
            text::places_of(page, plan);
        }
    }

    fn moved(&self, page: &mut Page, phase: &PhaseRecord) {
        if let Some(plan) = phase.plan.of() {
            text::moved(page, phase, plan);
        }
    }

    fn detail(&self, page: &mut Page, phase: &PhaseRecord) {
        if let Some(plan) = phase.plan.of() {
            text::detail(page, phase, plan);
        }
    }

    fn stack_remedies(&self, case: &RemedyCase<'_>) -> Vec<Remedy> {
        stack_remedies::remedies(case)
    }

    fn doubts(&self) -> &'static [Kind] {
        doubts::KINDS
    }

    fn charts(&self, phase: &PhaseRecord, title: &str) -> Vec<(&'static str, Chart)> {
        charts::charts(phase, title)
    }
}
