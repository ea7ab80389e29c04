//! Message sizes: what is read lies within the bounds and prints as text that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use network::{PAYLOAD_BYTES_MAX, PayloadKind, message_sizes_text, parse_message_sizes};

fuzz_target!(|text: &str| match parse_message_sizes(text) {
    Ok(pairs) => {
        for payload in pairs.iter().flat_map(|pair| [pair.0, pair.1]) {
            assert!(payload.size_bytes <= PAYLOAD_BYTES_MAX);
            assert_eq!(payload.kind == PayloadKind::Empty, payload.size_bytes == 0);
        }
        assert_eq!(parse_message_sizes(&message_sizes_text(&pairs)), Ok(pairs));
    }
    Err(error) => assert_eq!(error.to_string().lines().count(), 1),
});
