//! Command lines of elbencho: read or refused in one line, never a panic.
#![no_main]

#[path = "../world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;
use world::Machine;

// One word a line.
fuzz_target!(|text: &str| {
    registry::register();
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Err(error) = dialects::elbencho::parse(&words, &Machine(text)) {
        assert_eq!(error.to_string().lines().count(), 1);
    }
});
