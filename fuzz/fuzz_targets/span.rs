//! Durations: what is read prints as text that reads the same; a refusal is one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use units::Span;

fuzz_target!(|text: &str| match text.parse::<Span>() {
    Ok(span) => {
        assert_eq!(span.to_string().parse::<Span>(), Ok(span));
        let _ = span.human();
    }
    Err(error) => assert_eq!(error.to_string().lines().count(), 1),
});
