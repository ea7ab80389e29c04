//! The `strata` command: wires the crates together. A build with layers of its own adds them ([`layer::add`]) and calls [`run`].

mod charts;
mod clean;
mod cli;
mod commands;
mod compare;
mod console;
mod dialect;
mod help;
mod lifetime;
mod manifest;
mod open_loop;
mod options;
mod output;
mod planning;
mod saturate;
mod session;
mod signals;
mod stack;
mod status;
mod tell;
mod tool_cost;
mod world;

/// Runs the command of these words, the name of the program first. Failures are told on standard error; the exit code is 0 where all was good,
/// 1 where the run failed or is partial, 2 for bad usage.
#[must_use]
pub fn run(words: &[String]) -> u8 {
    registry::register();
    match commands::dispatch(words) {
        Ok(code) => code,
        Err(error) => {
            output::tell(format_args!("strata: {error}"));
            error.exit_code()
        }
    }
}
