//! Command lines of IOR, mdtest and IO500, and IOR's scripts: read or refused in one line, never a panic.
#![no_main]

#[path = "../world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;
use world::Machine;

// One word a line; files that words name hold the input.
fuzz_target!(|text: &str| {
    registry::register();
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    for parse in [dialects::ior::parse, dialects::mdtest::parse, dialects::io500::parse] {
        if let Err(error) = parse(&words, &Machine(text)) {
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
});
