//! `--client`: which job files are whose, and in which order all of them run.

use super::*;
use crate::fio::clients::{Together, assemble};

fn machine() -> Machine {
    registry::register();
    let text = |name: &str| (format!("{name}.fio"), format!("[{name}]\nioengine=null\nsize=1m\n"));
    let mut machine = Machine { texts: ["a", "b", "c"].map(text).into(), ..Machine::default() };
    let stages = "[one]\nioengine=null\nsize=1m\n[two]\nstonewall\nioengine=null\nsize=1m\n";
    machine.texts.insert("stages.fio".to_owned(), stages.to_owned());
    machine.texts.insert("hosts".to_owned(), "h1\nh2,7\n".to_owned());
    machine.paths.insert("hosts".to_owned(), PathFacts::File { size_bytes: 8 });
    machine
}

fn together(line: &str) -> Result<Together, Fault> {
    assemble(&super::super::command::read(&words(line))?, &machine())
}

/// The jobs of a line with the hosts that carry them out.
#[track_caller]
fn dealt(line: &str) -> Vec<String> {
    let together = together(line).unwrap_or_else(|fault| panic!("{line}: {fault}"));
    let job = |spec: &Spec| {
        let host = &spec.hosts[spec.host.expect("a host") as usize];
        format!("{} {host}", spec.name.as_deref().unwrap_or_default())
    };
    together.specs.iter().map(job).collect()
}

#[test]
fn files_behind_a_client_are_its_own_and_others_of_those_without() {
    assert_eq!(dealt("--client=h1 a.fio --client h2 b.fio c.fio"), ["a h1:1611", "b h2:1611", "c h2:1611"]);
    assert_eq!(dealt("a.fio --client=h1 --client=h2"), ["a h1:1611", "a h2:1611"]);
    assert_eq!(dealt("--client=h1 --client=h2 --eta=never a.fio"), ["a h1:1611", "a h2:1611"]);
    assert_eq!(dealt("a.fio --client=h1 b.fio --client=h2"), ["b h1:1611", "a h2:1611"]);
    assert_eq!(dealt("--client=hosts a.fio --client=h3 b.fio"), ["a h1:1611", "a h2:7", "b h3:1611"]);
    assert_eq!(dealt("--client=h1 --client=h2 a.fio"), ["a h2:1611"], "of the last one alone");
    let left = together("--client=h1 --client=h2 a.fio").expect("read").model.warnings;
    assert!(left.len() == 1 && left[0].contains("--client=h1,1611 has no job file"), "{left:?}");
}

#[test]
fn stages_of_all_clients_run_together() {
    let both = together("--client=h1 stages.fio --client=h2 a.fio --client=h3 stages.fio").expect("read");
    let names: Vec<_> = both.specs.iter().map(|spec| spec.name.clone().unwrap_or_default()).collect();
    assert_eq!(names, ["one", "a", "one", "two", "two"]);
    let concurrent: Vec<_> = both.specs.iter().map(|spec| spec.concurrent).collect();
    assert_eq!(concurrent, [false, true, true, false, true]);
    let requests: Vec<Vec<usize>> =
        both.clients.iter().map(|client| client.model.jobs.iter().map(|job| job.request).collect()).collect();
    assert_eq!(requests, [vec![0, 3], vec![1], vec![2, 4]]);
    assert!(both.model.warnings.iter().any(|warning| warning.contains("start each stage")));
}

#[test]
fn sections_are_those_of_the_clients_before() {
    assert_eq!(dealt("--client=h1 stages.fio --section=two --client=h2 a.fio"), ["two h1:1611", "a h2:1611"]);
    let both = "--client=h1 stages.fio --client=h2 stages.fio --section=one";
    assert_eq!(dealt(both), ["one h1:1611", "one h2:1611"]);
    assert_eq!(dealt("--section=one stages.fio --client=h1 --client=h2"), ["one h1:1611", "one h2:1611"]);
}

#[test]
fn facts_of_other_machines_are_not_those_of_this_one() {
    let mut machine = machine();
    machine.texts.insert("file.fio".to_owned(), "[f]\nfilename=/data\n".to_owned());
    machine.texts.insert("many.fio".to_owned(), "[m]\nioengine=null\nsize=1m\nnumjobs=$ncpus\n".to_owned());
    machine.paths.insert("/data".to_owned(), PathFacts::File { size_bytes: 1 << 20 });
    let read = |line: &str| assemble(&super::super::command::read(&words(line))?, &machine);
    assert!(read("--client=127.0.0.1 file.fio").is_ok() && read("--client=localhost many.fio").is_ok());
    let refusal = |line: &str| read(line).map(|_| ()).expect_err(line).to_string();
    let size = refusal("--client=far file.fio");
    assert!(size.contains("size: /data has no size") && size.contains("(client far,1611)"), "{size}");
    assert!(refusal("--client=far many.fio").contains("$ncpus depends on the client's machine"));
}

#[test]
fn hosts_may_share_a_directory() {
    let mut machine = machine();
    let text =
        "[d]\ndirectory=/shared\nsize=1m\n[e]\ndirectory=/shared\nfilename=x\nsize=1m\nunique_filename=0\n";
    machine.texts.insert("d.fio".to_owned(), text.to_owned());
    let targets = |line: &str| -> Vec<String> {
        let together = assemble(&super::super::command::read(&words(line)).expect("read"), &machine);
        together.expect("read").specs.iter().flat_map(|spec| spec.targets.clone()).collect()
    };
    let of_two = ["/shared/h1.d.0.0", "/shared/x", "/shared/h2.d.0.0", "/shared/x"];
    assert_eq!(targets("d.fio --client=h1 --client=h2,7"), of_two);
    let of_one = ["/shared/h1.1611.d.0.0", "/shared/x", "/shared/h1.7.d.0.0", "/shared/x"];
    assert_eq!(targets("d.fio --client=h1 --client=h1,7"), of_one);
}

#[test]
fn what_fio_would_leave_out_is_refused() {
    for (line, part) in [
        ("--client=h1", "no job file: give one after each --client"),
        ("--client=h1 a.fio --eta=never b.fio", "b.fio belongs to no client"),
        ("a.fio b.fio --client=h1", "b.fio is the second job file"),
        ("--client=h1 a.fio --client=h1 b.fio", "h1,1611 is given twice"),
        ("--client=h1 a.fio --bs=4k", "--bs: is not supported with --client"),
        ("--client=h1 a.fio --section=x", "section [x] does not exist (client h1,1611)"),
        ("--client=h1 a.fio --showcmd", "--showcmd: is not supported with --client"),
        ("--client=h1 a.fio --idle-prof=system", "--idle-prof: is not supported with --client"),
        ("--client=h1 a.fio --status-interval=1", "--status-interval: is not supported with --client"),
        ("--client=h1:99 a.fio", "is not a valid host address"),
        ("--client=h1 missing.fio", "missing.fio: cannot be read"),
    ] {
        let message = together(line).map(|_| ()).expect_err(line).to_string();
        assert!(message.contains(part) && message.lines().count() == 1, "{line}: {message}");
    }
}
