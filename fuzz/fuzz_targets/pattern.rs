//! Patterns: what is read prints as text that reads the same, and every position drawn lies within the range.
#![no_main]

use libfuzzer_sys::fuzz_target;
use workload::access::{Access, Pattern};

fuzz_target!(|input: (u32, &str)| {
    let (blocks, text) = input;
    match text.parse::<Pattern>() {
        Ok(pattern) => {
            assert_eq!(pattern.to_string().parse::<Pattern>().as_ref(), Ok(&pattern));
            if let Ok(mut access) = Access::new(&pattern, u64::from(blocks), 1) {
                for _ in 0..8 {
                    assert!(access.next().block < access.blocks());
                }
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
});
