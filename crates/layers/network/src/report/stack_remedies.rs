//! Remedies for a link that holds a stack back.

use report::stack::{Remedy, RemedyCase};

/// Remedies, the most promising first.
pub(super) fn remedies(case: &RemedyCase<'_>) -> Vec<Remedy> {
    let provider = case.phase.plan.value("/provider");
    let is_fabric =
        provider.as_ref().and_then(|value| value.as_str()).is_some_and(|name| name.starts_with("ofi"));
    let mut found = Vec::new();
    if case.is_cpu_bound && !is_fabric {
        found.push(Remedy::told(
            "use a fabric that needs less CPU than sockets, if available: --provider ofi+verbs",
        ));
    }
    if case.is_limit && !case.is_cpu_bound {
        found.push(Remedy::told(
            "use a faster link, or several links: the layers behind it cannot exceed its speed",
        ));
    }
    found
}
