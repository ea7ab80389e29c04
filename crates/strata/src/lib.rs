//! The `strata` command: wires the crates together. A build with layers of its own adds them ([`layer::add`]) and calls [`run`].

mod charts;
mod clean;
mod cli;
mod commands;
mod compare;
mod console;
mod dialect;
mod failures;
mod forms;
mod help;
mod history;
mod hosts;
mod lifetime;
mod manifest;
mod open_loop;
mod options;
mod output;
mod phase_record;
mod planning;
mod rotation;
mod saturate;
mod service;
mod session;
mod sides;
mod signals;
mod stack;
mod status;
mod subsets;
mod tell;
mod tool_cost;
mod world;

use driver::Error;

pub use hosts::Program;
use hosts::launcher;

/// Has processes of this strata that it needs beside it (`--hosts local:N`) started by a command of the build's own, where its file does not take
/// the words of strata as its arguments.
pub fn start_by(program: Program) {
    hosts::start_by(program);
}

/// Runs the command of these words, the name of the program first. Failures are told on standard error; the exit code is 0 where all was good,
/// 1 where the run failed or is partial, 2 for bad usage.
#[must_use]
pub fn run(words: &[String]) -> u8 {
    registry::register();
    match carry_out(words) {
        Ok(code) => code,
        Err(error) => {
            output::tell(format_args!("strata: {error}"));
            error.exit_code()
        }
    }
}

/// Settles variables of the environment that libraries which are loaded later read. Called before any other thread is there.
pub fn settle_environment() {
    launcher::settle_environment();
}

/// Carries out the command, or serves the process that does, where a launcher has started several.
fn carry_out(words: &[String]) -> Result<u8, Error> {
    let launched = if launcher::is_shared_out(words) { launcher::launched()? } else { None };
    match launched {
        // What the words say is read by rank 0 alone, and told by it alone.
        Some(launched) if !launched.leads() => launcher::serve(&launched),
        Some(launched) => {
            let result = commands::dispatch(words);
            launcher::leave(&launched);
            result
        }
        None => commands::dispatch(words),
    }
}
