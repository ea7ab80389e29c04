//! Frames of the handshake: any bytes are survived on both sides, and what was read is written to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rpc::handshake::{
    HELLO_BYTES_MAX, MAGIC, PROOF_BYTES, hello_bytes, parse_hello, parse_proof, parse_reply, reply_bytes,
};

// The magic is what a fuzzer finds last.
fuzz_target!(|input: (bool, &[u8])| {
    let (is_ours, bytes) = input;
    let mut bytes = bytes.to_vec();
    if is_ours && bytes.len() >= MAGIC.len() {
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    }
    match parse_hello(&bytes) {
        Ok(Some((hello, length))) => {
            assert!(length <= HELLO_BYTES_MAX);
            assert_eq!(hello_bytes(&hello).expect("it was read"), &bytes[..length]);
            assert_eq!(parse_hello(&bytes[..length - 1]), Ok(None));
        }
        Ok(None) => assert!(bytes.len() < HELLO_BYTES_MAX),
        Err(_) => {}
    }
    if let Ok(Some((reply, length))) = parse_reply(&bytes) {
        assert_eq!(reply_bytes(&reply).expect("it was read"), &bytes[..length]);
        assert_eq!(parse_reply(&bytes[..length - 1]), Ok(None));
    }
    if let Some(frame) = bytes.first_chunk::<PROOF_BYTES>()
        && let Ok(proof) = parse_proof(frame)
    {
        assert_eq!(&proof.bytes(), frame);
    }
});
