//! Job files: read or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    registry::register();
    if let Err(error) = workload::job::parse(text) {
        assert_eq!(error.to_string().lines().count(), 1);
    }
});
