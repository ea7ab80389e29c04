//! Headers of messages and of bulk transfers: any bytes are survived, and what was read is written to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rpc::wire::{
    BULK_HEADER_BYTES, BULK_MAGIC, BulkHeader, HEADER_BYTES, Header, MAGIC, SIZE_BYTES_MAX, flag,
};

// The magic is what a fuzzer finds last.
fuzz_target!(|input: (bool, [u8; HEADER_BYTES])| {
    let (is_ours, mut bytes) = input;
    if is_ours {
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    }
    if let Ok(header) = Header::decode(&bytes) {
        assert_eq!(header.flags & !flag::ALL, 0);
        let sizes = [header.inline_bytes, header.bulk_bytes, header.reply_inline_bytes, header.reply_bulk_bytes];
        assert!(sizes.iter().all(|&size| size <= SIZE_BYTES_MAX));
        let mut again = [0; HEADER_BYTES];
        header.encode(&mut again);
        assert_eq!(again, bytes);
    }
    let mut bulk = [0; BULK_HEADER_BYTES];
    bulk.copy_from_slice(&bytes[..BULK_HEADER_BYTES]);
    if is_ours {
        bulk[..BULK_MAGIC.len()].copy_from_slice(&BULK_MAGIC);
    }
    if let Ok(header) = BulkHeader::decode(&bulk) {
        assert!(header.bytes <= SIZE_BYTES_MAX);
        let mut again = [0; BULK_HEADER_BYTES];
        header.encode(&mut again);
        assert_eq!(again, bulk);
    }
});
