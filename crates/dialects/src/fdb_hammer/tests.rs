//! Command lines of fdb-hammer and their refusals.

use super::*;
use crate::words::machine::{Machine, words};

const GOOD: &str =
    "--expver xxxx --class od --nsteps 4 --nensembles 2 --nlevels 3 --nparams 5 --target data template.grib";

fn machine() -> Machine {
    Machine::new().file("template.grib", 123_456)
}

fn run(line: &str) -> Run {
    match parse(&words(line), &machine()).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Request::Run(run) => *run,
        _ => panic!("{line} is no run"),
    }
}

#[test]
fn lines_become_loads_of_the_application() {
    let plain = run(GOOD);
    let mut expected = Spec { targets: vec!["data".to_owned()], ..Spec::of_layer("application").unwrap() };
    for (name, value) in [
        ("app", "fdb-hammer"),
        ("steps", "4"),
        ("members", "2"),
        ("levels", "3"),
        ("params", "5"),
        ("size", "123456"),
        ("writers", "1"),
        ("readers", "1"),
        ("index", "process"),
        ("set", "read=no"),
    ] {
        workload::options::apply(&mut expected, name, value).unwrap();
    }
    assert_eq!(plain.specs, [expected]);
    assert!(plain.warnings.iter().all(|warning| !warning.contains("--read")));
    let other = run(&GOOD.replace("--nlevels 3", "--levels 1,5,9"));
    assert_eq!(other.specs, plain.specs, "three levels");
    let reading = run(&format!("--read --full-check --ppn 8 --index shared {GOOD}"));
    assert_ne!(reading.specs, plain.specs);
    assert!(reading.warnings.iter().any(|warning| warning.contains("this run first writes the fields")));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (line, part) in [
        (GOOD.replace("--nsteps 4", ""), "no --nsteps"),
        (GOOD.replace("--nlevels 3", ""), "no --nlevels"),
        (GOOD.replace("--nparams 5", "--nparams 0"), "--nparams"),
        (GOOD.replace("--nparams 5", "--nparams 500"), "174 or fewer"),
        (GOOD.replace("--target data", ""), "no --target"),
        (GOOD.replace("template.grib", ""), "no GRIB file"),
        (GOOD.replace("template.grib", "absent.grib"), "is not a file or is empty"),
        (format!("{GOOD} more"), "one GRIB file"),
        (format!("--levels 1,x {}", GOOD.replace("--nlevels 3", "")), "numbers separated by commas"),
        (format!("--levels 1 {GOOD}"), "one of the two"),
        (format!("--itt {GOOD}"), "--pattern B"),
        (format!("--list {GOOD}"), "--op list"),
        (format!("--nodes a,b {GOOD}"), "--ppn"),
        (format!("--config fdb.yaml {GOOD}"), "--target"),
        (format!("--nosuch {GOOD}"), "is not an option"),
    ] {
        let error =
            parse(&words(&line), &machine()).err().unwrap_or_else(|| panic!("{line} is taken")).to_string();
        assert!(error.contains(part), "{line}: {error}");
    }
}

#[test]
fn help_has_the_options() {
    let Ok(Request::Show(pieces)) = parse(&words("--help"), &machine()) else { panic!("no help") };
    assert!(String::from_utf8_lossy(&pieces[0].content).contains("--nensembles"));
}

#[test]
fn the_docs_have_the_table() {
    crate::words::tests::check_docs(&TABLE, "fdb-hammer.md");
}
