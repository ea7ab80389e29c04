//! Command lines of vos_perf and daos_perf, their refusals, and the text of their results.

mod lines;
mod results;

use crate::words::machine::Machine;
use crate::{Request, Run};
use workload::spec::Spec;

/// A machine with storage-class memory, and one store that was kept.
fn machine() -> Machine {
    Machine::new()
        .directory(".")
        .directory("/mnt/daos")
        .directory("/mnt/daos/vos_perf0.pmem")
        .directory("/dev/shm")
}

/// The words of a line; those between quotes are one.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(at, part)| {
        if at % 2 == 1 {
            vec![part.to_owned()]
        } else {
            part.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        }
    });
    words.collect()
}

fn parse(line: &str) -> Result<Request, driver::Error> {
    let words = words(line);
    match words[0].as_str() {
        "vos_perf" => super::parse_vos(&words[1..], &machine()),
        _ => super::parse_daos(&words[1..], &machine()),
    }
}

fn run(line: &str) -> Run {
    match parse(line).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Request::Run(run) => *run,
        _ => panic!("{line} is no run"),
    }
}

fn specs(line: &str) -> Vec<Spec> {
    run(line).specs
}

fn refusal(line: &str) -> String {
    match parse(line) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{line} is taken"),
    }
}
