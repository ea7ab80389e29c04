//! Memory: small, and the same however long the run.

use crate::support::{Scratch, total};

fn peak_rss_bytes(scratch: &Scratch, words: &str, operations: u64) -> u64 {
    let record = scratch.measured(&format!("{words} --count {operations}"));
    assert_eq!(total(&record, 0, "operations"), operations, "{words}");
    record["peak_rss_bytes"].as_u64().unwrap()
}

#[test]
fn memory_does_not_grow_with_the_run() {
    let scratch = Scratch::new();
    for words in [
        "media null: --op randrw -t 4 -q 32",
        "media file -s 16m --op randrw -b 4k -t 4 -q 32",
        "media file -s 16m --op randwrite -b 4k -t 4 -q 32 --rate 1m",
    ] {
        let short = peak_rss_bytes(&scratch, words, 40_000);
        let long = peak_rss_bytes(&scratch, words, 400_000);
        assert!(short < 64 << 20 && long < 64 << 20, "{words}: {short} and {long} bytes");
        assert!(short.abs_diff(long) < 8 << 20, "{words}: {short} bytes became {long}");
    }
}
