//! Remedies for an object store that holds a stack back.

use report::stack::{Remedy, RemedyCase};

/// Remedies, the most promising first.
pub(super) fn remedies(case: &RemedyCase<'_>) -> Vec<Remedy> {
    match case.below {
        "network" => vec![Remedy::told(
            "the engine's own service: more targets (strata engine --targets N), CPUs of its own",
        )],
        "object" if !case.is_cpu_bound => {
            vec![Remedy::told(
                "run the client where the data are: the store gives more in the process that has it open",
            )]
        }
        _ => Vec::new(),
    }
}
