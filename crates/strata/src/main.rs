//! The `strata` command: wires the crates together.

mod admin;
mod around;
mod charts;
mod clean;
mod cli;
mod commands;
mod compare;
mod dialect;
mod engine;
mod ledgers;
mod manifest;
mod net;
mod objects;
mod open_loop;
mod options;
mod output;
mod phase;
mod planning;
mod recipes;
mod saturate;
mod secret;
mod session;
mod signals;
mod stack;
mod status;
mod target_engine;
mod target_watch;
mod tool_cost;
mod watch;
mod world;

use std::process::ExitCode;

use units::label_of;

fn main() -> ExitCode {
    // The clock's calibration runs on while the command line is read.
    // Words are text from here on; a name that is not UTF-8 is spelled out, and made itself again where a file is opened.
    let words: Vec<String> = std::env::args_os().map(|word| label_of(&word)).collect();
    match commands::dispatch(&words) {
        Ok(code) => code,
        Err(error) => {
            output::tell(format_args!("strata: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}
