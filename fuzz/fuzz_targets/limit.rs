//! Limits of a comparison: what is read prints as text that reads the same; a refusal is one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use report::compare::Limit;

fuzz_target!(|text: &str| match text.parse::<Limit>() {
    Ok(limit) => assert_eq!(limit.to_string().parse::<Limit>(), Ok(limit)),
    Err(error) => assert_eq!(error.to_string().lines().count(), 1),
});
