//! The `strata` command: wires the crates together.

mod admin;
mod charts;
mod cli;
mod commands;
mod compare;
mod dialect;
mod engine;
mod ledgers;
mod net;
mod objects;
mod options;
mod output;
mod phase;
mod planning;
mod recipes;
mod saturate;
mod secret;
mod session;
mod stack;
mod target_watch;
mod tool_cost;
mod watch;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The clock's calibration runs on while the command line is read.
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match commands::dispatch(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("strata: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
