//! The report of the object layer: lines, doubts and its place in the stack.

mod doubts;
mod stack;
mod text;
mod words;

#[cfg(test)]
mod tests;

use report::doubts::Kind;
use report::page::Page;
use report::record::{PhaseRecord, Record};
use report::stack::Outlook;
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
    }

    fn doubts(&self) -> &'static [Kind] {
        doubts::KINDS
    }

    fn stack_rows(&self) -> &'static [&'static str] {
        stack::ROWS
    }

    fn outlook(&self, record: &Record) -> Outlook {
        stack::outlook(record)
    }
}
