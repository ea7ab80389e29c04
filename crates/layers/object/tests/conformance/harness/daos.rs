//! A container of its own in the libdaos of the tests: no DAOS system is needed, and none is tested.
#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Harness, Stand};

#[path = "../../fake_daos/mod.rs"]
mod fake_daos;

pub(super) struct Daos;

impl Harness for Daos {
    fn name(&self) -> &'static str {
        "daos on a libdaos of the tests"
    }

    fn driver(&self) -> &'static str {
        "daos"
    }

    fn start(&self) -> Result<Stand, String> {
        static READY: OnceLock<Result<(), String>> = OnceLock::new();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        READY
            .get_or_init(|| {
                let file = fake_daos::compile()?;
                // SAFETY: set once, before the driver asks for it; others read the environment through std, which takes turns.
                unsafe { std::env::set_var("STRATA_LIBDAOS", &file) };
                // The driver has it open from here on.
                let stand = Stand::new("daos://absent".to_owned(), ());
                object::connect(&stand.request(false)).err().expect("there is no such pool");
                std::fs::remove_file(&file).map_err(|error| error.to_string())
            })
            .clone()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Stand::new(format!("daos://pool/conformance-{number}"), ()))
    }
}
