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
mod open_loop;
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

use std::ffi::OsString;
use std::process::ExitCode;

use driver::Error;

/// A word of the command line. One that is not UTF-8 would be another name once it is shown or recorded.
fn readable(word: OsString) -> Result<String, Error> {
    word.into_string().map_err(|word| {
        Error::usage("usage", format!("{word:?} is not UTF-8"))
            .remedy("give a name in UTF-8: a link of such a name to the file or directory will do")
    })
}

fn main() -> ExitCode {
    // The clock's calibration runs on while the command line is read.
    let words = std::env::args_os().map(readable).collect::<Result<Vec<String>, Error>>();
    match words.and_then(|words| commands::dispatch(&words)) {
        Ok(code) => code,
        Err(error) => {
            output::tell(format_args!("strata: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}
