//! Endpoints: never more than the bound, each prints as text that reads the same, and masters are sorted and each there once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use network::{ENDPOINTS_MAX, add_masters, parse_endpoints};

fuzz_target!(|text: &str| match parse_endpoints(text) {
    Ok(endpoints) => {
        assert!((1..=ENDPOINTS_MAX as usize).contains(&endpoints.len()));
        for endpoint in endpoints.iter().take(16) {
            assert_eq!(parse_endpoints(&endpoint.to_string()), Ok(vec![*endpoint]));
        }
        let mut masters = Vec::new();
        add_masters(&mut masters, text).expect("they were read before");
        assert!(masters.is_sorted_by(|one, next| one < next));
        assert!(endpoints.iter().all(|endpoint| masters.binary_search(endpoint).is_ok()));
    }
    Err(error) => assert_eq!(error.to_string().lines().count(), 1),
});
