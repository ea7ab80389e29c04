//! The campaign, and defects one by one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::campaign::{Lived, live};
use units::random::derive_seed;

/// So many cuts where nobody asks for another number.
const CUTS: u64 = 1000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// `STRATA_CUTS=10000` makes more of them, `STRATA_CUT_SEED` others; `STRATA_CUT_LIFE` lives one life again.
#[test]
fn what_was_acknowledged_survives_every_cut() {
    let seed = number("STRATA_CUT_SEED").unwrap_or(20_261_122);
    let wanted = number("STRATA_CUTS").unwrap_or(CUTS);
    let mut all = Lived::default();
    let only = number("STRATA_CUT_LIFE");
    for life in only.unwrap_or(0).. {
        let lived = catch_unwind(AssertUnwindSafe(|| live(derive_seed(seed, &[life]))));
        let Ok(lived) = lived else {
            panic!(
                "life {life} broke a promise after {all:?}: STRATA_CUT_SEED={seed} STRATA_CUT_LIFE={life} lives it again"
            );
        };
        all.cuts += lived.cuts;
        all.nested += lived.nested;
        all.acknowledged += lived.acknowledged;
        if only.is_some() || all.cuts >= wanted {
            break;
        }
    }
    println!("{all:?}");
    assert!(
        only.is_some() || (all.cuts >= wanted && all.nested > 0 && all.acknowledged > wanted / 10),
        "{all:?}"
    );
}
