//! Remedies for files that hold a stack back.

use report::stack::{Remedy, RemedyCase};

/// Remedies, the most promising first.
pub(super) fn remedies(case: &RemedyCase<'_>) -> Vec<Remedy> {
    if case.below != "dfs" {
        return Vec::new();
    }
    vec![Remedy::told(
        "interception, which bypasses the kernel: LD_PRELOAD=$(strata mount --print-intercept), mount with --intercept",
    )]
}
