//! Command lines and results of elbencho.

mod directories;
mod hosts;
mod lines;
mod netbench;
mod refusals;
mod results;
mod s3;

use crate::words::machine::{Machine, words};
use crate::{Request, Run};
use workload::spec::Spec;

const GIB: u64 = 1 << 30;

/// Two files of 50 GiB, one of 1 GiB, two devices.
fn machine() -> Machine {
    Machine::new()
        .file("/mnt/smb/myfile1", 50 * GIB)
        .file("/mnt/smb/myfile2", 50 * GIB)
        .file("/data/file", GIB)
        .device("/dev/nvme0n1", 100 * GIB)
        .device("/dev/nvme1n1", 100 * GIB)
        .directory("/data")
}

fn run_on(line: &str, world: &Machine) -> Run {
    match super::parse(&words(line), world).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Request::Run(run) => *run,
        _ => panic!("{line} is no run"),
    }
}

fn run(line: &str) -> Run {
    run_on(line, &machine())
}

fn specs(line: &str) -> Vec<Spec> {
    run(line).specs
}

/// The only spec of a line.
fn spec(line: &str) -> Spec {
    let mut specs = specs(line);
    assert_eq!(specs.len(), 1, "{line}");
    specs.remove(0)
}

fn refusal_on(line: &str, world: &Machine) -> String {
    match super::parse(&words(line), world) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{line} is taken"),
    }
}

fn refusal(line: &str) -> String {
    refusal_on(line, &machine())
}
