//! Rates: what is read prints as text that reads the same; a refusal is one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use units::Rate;

fuzz_target!(|text: &str| match text.parse::<Rate>() {
    Ok(rate) => {
        assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        let _ = rate.human();
    }
    Err(error) => assert_eq!(error.to_string().lines().count(), 1),
});
