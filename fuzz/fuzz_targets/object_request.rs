//! Requests on objects, as an engine reads them: any bytes are a request that writes them again, or are refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::service::wire::Request;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = Request::decode(bytes) {
        let mut again = vec![0; bytes.len()];
        let end = request.encode(&mut again).expect("as long as it was");
        again[end..].copy_from_slice(request.value);
        assert!(again == bytes);
    }
});
