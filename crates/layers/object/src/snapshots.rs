//! Snapshots that a phase reads: they must be there.

use driver::Error;

use vos::model::Epoch;

/// Command that makes a snapshot in the embedded store and in engines.
pub(crate) const MAKER: &str = "strata container snapshot TARGET LABEL";
/// Snapshots that a refusal names.
const NAMED_MAX: usize = 16;

/// Refuses an epoch that is no snapshot of a container, which has these.
pub(crate) fn check(epoch: Epoch, label: &str, there: &[Epoch], maker: &str) -> Result<(), Error> {
    if there.contains(&epoch) {
        return Ok(());
    }
    // The last ones are those that are looked for.
    let left_out = there.len().saturating_sub(NAMED_MAX);
    let named: Vec<String> = there[left_out..].iter().map(ToString::to_string).collect();
    let remedy = match left_out {
        _ if there.is_empty() => format!("the container has no snapshots: {maker} creates one"),
        0 => format!("existing snapshots: {}", named.join(", ")),
        more => format!("existing snapshots: {more} older ones and {}", named.join(", ")),
    };
    Err(Error::usage("object", format!("the container has no snapshot with epoch {epoch}"))
        .with("container", label)
        .remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_snapshot_is_refused_with_those_that_are() {
        check(7, "c", &[3, 7], "x").expect("there");
        for (there, expected) in [
            (vec![], "the container has no snapshots: strata container snapshot creates one"),
            (vec![3, 9], "existing snapshots: 3, 9"),
            ((1..=18).map(|number| number * 10).collect(), "existing snapshots: 2 older ones and 30, 40,"),
        ] {
            let error = check(7, "c", &there, "strata container snapshot").expect_err("none");
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains("no snapshot with epoch 7"), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
