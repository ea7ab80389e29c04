//! The report of the object layer: lines, doubts and its place in the stack.

mod doubts;
mod spent;
mod stack_remedies;
mod text;
mod words;

#[cfg(test)]
mod tests;

use report::doubts::Kind;
use report::page::Page;
use report::record::PhaseRecord;
use report::stack::{Remedy, RemedyCase};
use report::view::View;

/// The report of the object layer.
pub static VIEW: &dyn View = &Object;

struct Object;

impl View for Object {
    fn layer(&self) -> &'static str {
        "object"
    }

    fn places(&self, page: &mut Page, phase: &PhaseRecord) {
        if let Some(plan) = phase.plan.of() {
            text::places_of(page, plan);
        }
    }

    fn detail(&self, page: &mut Page, phase: &PhaseRecord) {
        if let Some(plan) = phase.plan.of() {
            text::detail(page, phase, plan);
        }
        spent::lines(page, phase);
    }

    fn stack_remedies(&self, case: &RemedyCase<'_>) -> Vec<Remedy> {
        stack_remedies::remedies(case)
    }

    fn doubts(&self) -> &'static [Kind] {
        doubts::KINDS
    }
}
