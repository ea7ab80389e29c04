//! Command lines of vos_perf and daos_perf, and their tests: read or refused in one line, never a panic.
#![no_main]

#[path = "../world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;
use world::Machine;

// One word a line; the whole as a list of tests too.
fuzz_target!(|text: &str| {
    registry::register();
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    for parse in [dialects::daos_perf::parse_vos, dialects::daos_perf::parse_daos] {
        if let Err(error) = parse(&words, &Machine(text)) {
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
    for is_daos in [false, true] {
        match dialects::daos_perf::parse_commands(text, is_daos) {
            Ok(commands) => assert_eq!(commands, text.split_whitespace().count()),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1),
        }
    }
});
