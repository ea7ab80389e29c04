//! Command lines and job files of fio: read or refused, never a panic.
#![no_main]

#[path = "../world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;
use world::Machine;

// The first line is the command line, the rest a job file.
fuzz_target!(|text: &str| {
    registry::register();
    let (line, job) = text.split_once('\n').unwrap_or((text, ""));
    let words: Vec<String> = line.split(' ').chain(["a"]).map(str::to_owned).collect();
    if let Err(error) = dialects::fio::parse(&words, &Machine(job)) {
        assert_eq!(error.to_string().lines().count(), 1);
    }
});
