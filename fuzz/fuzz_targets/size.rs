//! Sizes: what is read prints as text that reads the same; a refusal is one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use units::ByteSize;

fuzz_target!(|text: &str| match text.parse::<ByteSize>() {
    Ok(size) => {
        assert_eq!(size.to_string().parse::<ByteSize>(), Ok(size));
        let _ = size.human();
    }
    Err(error) => assert_eq!(error.to_string().lines().count(), 1),
});
