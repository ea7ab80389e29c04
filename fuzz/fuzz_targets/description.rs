//! Descriptions of applications: read, resolved or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let resolved = application::description::parse(text)
        .and_then(|description| application::description::resolve(&description, &[]).map(drop));
    if let Err(error) = resolved {
        assert_eq!(error.to_string().lines().count(), 1);
    }
});
