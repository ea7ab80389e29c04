//! Command lines and results of IOR.

mod lines;
mod results;

use crate::words::machine::{Machine, words};
use crate::{Request, Run};

fn run_on(line: &str, world: &Machine) -> Run {
    match super::parse(&words(line), world).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Request::Run(run) => *run,
        _ => panic!("{line} is no run"),
    }
}

fn run(line: &str) -> Run {
    run_on(line, &Machine::new())
}

fn refusal_on(line: &str, world: &Machine) -> String {
    match super::parse(&words(line), world) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{line} is taken"),
    }
}

fn refusal(line: &str) -> String {
    refusal_on(line, &Machine::new())
}
