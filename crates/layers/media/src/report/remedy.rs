//! Remedies that take the place of a kind's usual one where that names what is already so.

use crate::plan::MediaPlan;
use crate::spec::CachePolicy;
use report::doubts::Evidence;
use workload::plan::ContentChoice;
use workload::spec::Refill;

use super::path;

/// A kind, when its usual remedy is already so, and what to do then.
struct Instead {
    kind: &'static str,
    applies: fn(&Evidence<'_>) -> bool,
    remedy: &'static str,
}

fn media(evidence: &Evidence<'_>, is: impl Fn(&MediaPlan) -> bool) -> bool {
    evidence.plan.of::<MediaPlan>().is_some_and(is)
}

const INSTEAD: &[Instead] = &[
    Instead {
        kind: "direct_not_honoured",
        applies: |evidence| path::cached_loop(evidence).is_some(),
        remedy: "set the loop device up with direct I/O (losetup --direct-io=on), or measure the file itself",
    },
    Instead {
        kind: "page_cache",
        applies: |evidence| media(evidence, |plan| plan.cache == CachePolicy::Drop),
        remedy: "read with --direct, or read each block once: one pass over a range that no other process reads",
    },
    Instead {
        kind: "buffered_writes",
        applies: |evidence| media(evidence, |plan| plan.end_fsync),
        remedy: "write with --direct or --sync dsync; or write each block once (one pass), then sync",
    },
    Instead {
        kind: "compressible_content",
        applies: |evidence| {
            media(evidence, |plan| {
                let content = &plan.content;
                let is_random = matches!(content.content, ContentChoice::Random);
                is_random && content.compress_percent == 0 && content.dedupe_percent == 0
            })
        },
        remedy: "write with --refill full (the default)",
    },
    Instead {
        kind: "compressible_content",
        applies: |evidence| media(evidence, |plan| matches!(plan.content.content, ContentChoice::Random)),
        remedy: "leave out --compress and --dedupe, unless your data are like this",
    },
    Instead {
        kind: "compressible_content",
        applies: |evidence| media(evidence, |plan| plan.content.refill == Refill::Full),
        remedy: "write --content random (the default), unless your data are like this",
    },
    Instead {
        kind: "client_saturated",
        applies: |evidence| media(evidence, |plan| plan.content.refill != Refill::Full),
        remedy: "use more threads (-t) on cores of their own (--cores), or larger blocks",
    },
    Instead {
        kind: "kernel_workers",
        applies: |evidence| media(evidence, |plan| plan.options.direct),
        remedy: "use engine psync with more threads: on this file system direct I/O goes to kernel workers too",
    },
];

/// The remedy that fits better than the usual one of a kind; none where that fits.
pub(super) fn instead(kind: &str, evidence: &Evidence<'_>) -> Option<&'static str> {
    let line = INSTEAD.iter().find(|line| line.kind == kind && (line.applies)(evidence))?;
    Some(line.remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_of_a_kind_and_fits_a_line() {
        for line in INSTEAD {
            assert!(super::super::KINDS.iter().any(|kind| kind.name == line.kind), "{}", line.kind);
            assert!(line.remedy.len() <= 110, "{}", line.remedy);
        }
    }
}
