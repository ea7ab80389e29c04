//! Attach-info files: read or refused in one line, and what was read is written so that it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rpc::group::{parse, print};

fuzz_target!(|text: &str| {
    match parse(text) {
        Ok(file) => {
            let printed = print(&file);
            let again = parse(&printed).expect("it was written");
            assert_eq!(again, file);
            assert_eq!(print(&again), printed);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
});
