//! Remedies for an object store that holds a stack back.

use report::stack::{Remedy, RemedyCase};

/// Remedies, the most promising first.
pub(super) fn remedies(case: &RemedyCase<'_>) -> Vec<Remedy> {
    match case.below {
        "network" => vec![Remedy::told(
            "the engine's own service: use more targets (strata engine --targets N) on dedicated CPUs",
        )],
        "object" if !case.is_cpu_bound => {
            vec![Remedy::told(
                "run the client on the storage node: the store is faster in the process that has it open",
            )]
        }
        _ => Vec::new(),
    }
}
