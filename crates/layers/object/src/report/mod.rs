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
use report::profile::ProfileRemedy;
use report::record::PhaseRecord;
use report::stack::{Remedy, RemedyCase};
use report::view::View;
use statistics::ClassSummary;

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

    fn spent<'a>(&self, phase: &'a PhaseRecord) -> Vec<(&'a ClassSummary, String)> {
        spent::told(phase)
    }

    fn stack_remedies(&self, case: &RemedyCase<'_>) -> Vec<Remedy> {
        stack_remedies::remedies(case)
    }

    fn doubts(&self) -> &'static [Kind] {
        doubts::KINDS
    }

    fn profile_remedies(&self) -> &'static [ProfileRemedy] {
        PROFILE_REMEDIES
    }
}

/// Operations that applications can do without.
const PROFILE_REMEDIES: &[ProfileRemedy] = &[
    ProfileRemedy::OPEN_CONTAINER,
    ProfileRemedy {
        part: "allocate-ids",
        against: None,
        text: "allocate many object ids per call and keep them: one call for 100 objects or more (--ids-per-call 1000)",
    },
    ProfileRemedy {
        part: "create",
        against: Some(("write", 0.5)),
        text: "open arrays with known attributes (open-with-attr) instead of creating them, and put several items into one object",
    },
    ProfileRemedy {
        part: "open",
        against: Some(("read", 0.5)),
        text: "keep objects open between reads, or open them with known attributes (open-with-attr)",
    },
    ProfileRemedy {
        part: "size",
        against: Some(("read", 0.5)),
        text: "store sizes in an index, or read into a buffer that is large enough",
    },
    ProfileRemedy {
        part: "stat",
        against: Some(("get", 0.5)),
        text: "store sizes in an index: a get also returns the size",
    },
    ProfileRemedy::LIST,
];
