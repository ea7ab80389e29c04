//! Small grammars of the layer: operations, mixes.

use units::{ParseError, Percent, split_list};

use super::{OBJECT_OPERATIONS, ObjectOp, OpShare};

/// Operations of one sequence, or of one list of phases.
const OPERATIONS_MAX: usize = 64;

fn operation(what: &str, word: &str) -> Result<ObjectOp, ParseError> {
    let found = ObjectOp::ALL.iter().find(|operation| operation.name() == word);
    found.copied().ok_or_else(|| {
        let accepted = match units::nearest(word, OBJECT_OPERATIONS.iter().copied()) {
            Some(name) => format!("{name} (the closest match)"),
            None => format!("one of {}", OBJECT_OPERATIONS.join(", ")),
        };
        ParseError::new(format!("an operation of {what}"), word, accepted)
    })
}

/// Reads `put,get`; `what` is the option.
///
/// # Errors
/// A word that is no operation, with the nearest one.
pub fn parse_operations(what: &str, text: &str) -> Result<Vec<ObjectOp>, ParseError> {
    let words = split_list(what, text)?;
    if words.len() > OPERATIONS_MAX {
        let accepted = format!("at most {OPERATIONS_MAX} operations");
        return Err(ParseError::new(format!("a value of {what}"), text, accepted));
    }
    words.into_iter().map(|word| operation(what, word)).collect()
}

/// Reads `get=70,put=30` or `get:70,put:30`.
///
/// # Errors
/// A word that is no operation, an operation twice, shares that do not add up to 100.
pub fn parse_mix(text: &str) -> Result<Vec<OpShare>, ParseError> {
    let refuse =
        || ParseError::new("a mix", text, "operations with shares that add up to 100, such as get=70,put=30");
    let mut mix: Vec<OpShare> = Vec::new();
    for part in text.split(',') {
        let (word, percent) = part.split_once(['=', ':']).ok_or_else(refuse)?;
        let operation = operation("mix", word.trim())?;
        let percent = percent.trim().parse::<Percent>().map_err(|_| refuse())?.get();
        if percent == 0 || mix.iter().any(|share| share.operation == operation) {
            return Err(refuse());
        }
        mix.push(OpShare { operation, percent });
    }
    let sum: u32 = mix.iter().map(|share| u32::from(share.percent)).sum();
    if sum == 100 { Ok(mix) } else { Err(refuse()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_texts() {
        let shares = |text: &str| {
            parse_mix(text)
                .expect(text)
                .iter()
                .map(|share| (share.operation.name(), share.percent))
                .collect::<Vec<_>>()
        };
        assert_eq!(shares("get=70,put=30"), [("get", 70), ("put", 30)]);
        assert_eq!(shares("get:70%, put : 30"), [("get", 70), ("put", 30)]);
        assert_eq!(
            parse_operations("op", "open-with-attr, read"),
            Ok(vec![ObjectOp::OpenWithAttr, ObjectOp::Read])
        );
        let line = |text: &str| parse_mix(text).expect_err(text).to_string();
        assert_eq!(line("git=100"), "\"git\" is not an operation of mix: use get (the closest match)");
        for text in [
            "",
            "get",
            "get=",
            "get=101",
            "get=0,put=100",
            "get=60,put=30",
            "get=50,get=50",
            "get=99,put=256",
            "=100",
        ] {
            assert!(!line(text).contains('\n'), "{text}");
        }
        assert!(parse_operations("op", &"get,".repeat(64)).is_err(), "an empty word at the end");
        let many = ["get"; 65].join(",");
        assert!(
            parse_operations("op", &many)
                .expect_err("too many")
                .to_string()
                .contains("at most 64 operations")
        );
    }

    proptest! {
        /// Every list of operations is read as it was written, and every list of shares that adds up.
        #[test]
        fn lists_are_read_as_written(picks in prop::collection::vec(0..ObjectOp::ALL.len(), 1..20), cuts in prop::collection::btree_set(1u8..100, 0..10)) {
            let operations: Vec<_> = picks.iter().map(|&at| ObjectOp::ALL[at]).collect();
            let words: Vec<_> = operations.iter().map(|operation| operation.name()).collect();
            prop_assert_eq!(parse_operations("op", &words.join(",")), Ok(operations));
            let ends: Vec<u8> = cuts.into_iter().chain([100]).collect();
            let percents: Vec<u8> = ends.iter().enumerate().map(|(at, end)| end - at.checked_sub(1).map_or(0, |before| ends[before])).collect();
            let parts: Vec<_> = percents.iter().zip(ObjectOp::ALL).map(|(percent, operation)| format!("{}={percent}", operation.name())).collect();
            let mix = parse_mix(&parts.join(",")).expect("it adds up");
            prop_assert_eq!(mix.iter().map(|share| share.percent).collect::<Vec<_>>(), percents);
        }

        /// Anything else is refused in a line.
        #[test]
        fn garbage_is_refused_in_a_line(text in "[a-z0-9=:,% -]{0,40}") {
            if let Err(error) = parse_mix(&text) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
            if let Err(error) = parse_operations("op", &text) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
}
