//! Block sizes: what is read prints as text that reads the same, and every size drawn lies within the bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use workload::block_size::BlockSizes;
use workload::random::Random;

fuzz_target!(|text: &str| match text.parse::<BlockSizes>() {
    Ok(sizes) => {
        assert_eq!(sizes.to_string().parse::<BlockSizes>(), Ok(sizes.clone()));
        let mut random = Random::new(1);
        for _ in 0..8 {
            let size = sizes.next(&mut random);
            assert!((sizes.min()..=sizes.max()).contains(&size));
            assert!(size > 0 && size.is_multiple_of(sizes.granularity()));
        }
    }
    Err(error) => assert_eq!(error.to_string().lines().count(), 1),
});
