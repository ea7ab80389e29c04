//! Phases of fewer hosts than the run has (`hosts_used` of a phase).

use std::fs;

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use super::engines::Engine;
use super::launchers::{MPIRUN, has, launch, output, text};
use super::many_hosts::{Service, children, token};
use super::pool::target;
use super::support::{Ended, Scratch, assert_partial, read_record, total};

/// Runs a job of these lines before its phases, and of phases with these lines; its record.
fn measured(scratch: &Scratch, head: &str, phases: &[&str]) -> Value {
    scratch.measured(&format!("run {}", job(scratch, head, phases)))
}

fn job(scratch: &Scratch, head: &str, phases: &[&str]) -> &'static str {
    let phases: Vec<String> = phases.iter().map(|phase| format!("[[phase]]\n{phase}\n")).collect();
    fs::write(scratch.join("job.toml"), format!("{head}\n{}", phases.concat())).unwrap();
    "job.toml"
}

fn refused(scratch: &Scratch, head: &str, phases: &[&str]) -> Ended {
    let ended = scratch.run(&format!("run {}", job(scratch, head, phases)));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(scratch.names(), ["job.toml"], "nothing was touched");
    ended
}

fn phases(record: &Value) -> &[Value] {
    record["phases"].as_array().unwrap()
}

/// Hosts of each phase as the plan has them, and those whose workers measured it.
fn hosts(record: &Value) -> Vec<(u64, Vec<&str>)> {
    let of = |phase: &'_ Value| phase["plan"]["load"]["place"]["hosts"].as_u64().unwrap();
    phases(record).iter().map(|phase| (of(phase), origins(phase))).collect()
}

fn origins(phase: &Value) -> Vec<&str> {
    let workers = phase["samples"]["workers"].as_array().unwrap().iter();
    let mut origins: Vec<&str> = workers.map(|worker| worker["origin"].as_str().unwrap()).collect();
    origins.dedup();
    origins
}

fn operations(record: &Value) -> Vec<u64> {
    (0..phases(record).len()).map(|phase| total(record, phase, "operations").as_u64().unwrap()).collect()
}

fn has_no_errors(record: &Value) -> bool {
    (0..phases(record).len()).all(|phase| *total(record, phase, "errors") == 0)
}

#[test]
fn the_first_hosts_carry_a_phase_out_and_the_others_wait() {
    let scratch = Scratch::new();
    let head = "layer = 'media'\ntargets = ['file']\nsize = '28k'\nblock_size = '4k'\nhosts = ['local:3']";
    let record = measured(
        &scratch,
        head,
        &["op = 'write'", "op = 'read'\nhosts_used = 2", "op = 'read'\nhosts_used = 1", "op = 'read'"],
    );
    let all = vec!["local:0", "local:1", "local:2"];
    assert_eq!(
        hosts(&record),
        [(3, all.clone()), (2, all[..2].to_vec()), (1, all[..1].to_vec()), (3, all.clone())]
    );
    assert_eq!(operations(&record), [7; 4], "all of the file is shared out to the hosts of each phase");
    let run_hosts = phases(&record).iter().map(|phase| phase["plan"]["load"]["place"]["run_hosts"].as_u64());
    assert_eq!(run_hosts.collect::<Vec<_>>(), [None, Some(3), Some(3), None]);
    let starts = |phase: &Value| phase["host_starts"].as_array().unwrap().len();
    assert_eq!(phases(&record).iter().map(starts).collect::<Vec<_>>(), [3, 2, 1, 3]);
    assert_eq!(phases(&record)[1]["notes"][0], "carried out by 2 of 3 hosts: local:0 and local:1");
    assert_eq!(record["hosts"].as_array().unwrap().len(), 3);
    assert_eq!(scratch.names(), ["job.toml", "record.json"], "the first host has removed it");
    let text = scratch.run("report record.json").stdout;
    assert!(text.contains("2 of 3 hosts x 1 thread"), "{text}");
    let rows = scratch.run("report record.json --csv --by-host").stdout;
    assert_eq!(rows.lines().count(), 1 + 3 + 2 + 1 + 3, "{rows}");

    // What is for all hosts is shared out to those of the phase; the run has as many as the phase with the most.
    let head = "layer = 'media'\ntargets = ['null:']\ncount = 10\nhosts = ['local:4']\nhosts_used = 1";
    let record = measured(&scratch, head, &["op = 'read'", "op = 'read'\nhosts_used = 2"]);
    assert_eq!(
        (hosts(&record), operations(&record)),
        (vec![(1, all[..1].to_vec()), (2, all[..2].to_vec())], vec![10; 2])
    );
    assert_eq!(record["hosts"].as_array().unwrap().len(), 2, "the others are left alone");
    // Beside the file it is said for all phases.
    let record = scratch.measured("run job.toml --hosts-used 3");
    assert_eq!(hosts(&record), [(3, all.clone()), (3, all)]);
}

#[test]
fn files_of_more_hosts_are_worked_on_by_fewer() {
    let scratch = Scratch::new();
    let shapes = [
        "files = 3\ndirs = 1",
        "files = 3\ndirs = 1\nshared_tree = true",
        "shape = 'private'",
        "shape = 'shared'",
    ];
    for shape in shapes {
        let head = format!(
            "layer = 'filesystem'\ntargets = ['tree']\nfile_size = '12k'\nblock_size = '4k'\nverify = true\nhosts = ['local:4']\n{shape}"
        );
        let few = [
            "op = 'write'",
            "op = 'read'\nhosts_used = 2",
            "op = 'read'\nhosts_used = 2\nthreads = 2",
            "op = 'read'",
        ];
        let record = measured(&scratch, &head, &few);
        let done = operations(&record);
        assert!(has_no_errors(&record), "{shape}");
        assert_eq!((done.len(), done[1] * 2, done[2]), (4, done[3], done[3]), "{shape}: {done:?}");
        assert_eq!(scratch.names(), ["job.toml", "record.json"], "{shape}");
        // More hosts than wrote have what they read made for all of them.
        let many = ["op = 'write'\nhosts_used = 1", "op = 'read'\nhosts_used = 1", "op = 'read'"];
        let record = measured(&scratch, &head, &many);
        let names: Vec<&str> =
            phases(&record).iter().map(|phase| phase["plan"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["write", "read", "fill", "read"], "{shape}");
        let origins: Vec<usize> = hosts(&record).into_iter().map(|(_, origins)| origins.len()).collect();
        assert_eq!((origins, has_no_errors(&record)), (vec![1, 1, 4, 4], true), "{shape}");
        assert_eq!(scratch.names(), ["job.toml", "record.json"], "{shape}");
    }
    // Hosts that take part meet in barriers and at the end of what a time allows; those that do not are not waited for.
    let head = "layer = 'filesystem'\ntargets = ['tree']\nhosts = ['local:3']\nfiles = 100000\ndirs = 1";
    let record = measured(
        &scratch,
        head,
        &[
            "op = 'create'\nwear_out = true\ntime = '200ms'",
            "op = 'stat'\nhosts_used = 1\nthreads = 3",
            "op = 'unlink'\nhosts_used = 2",
        ],
    );
    let done = operations(&record);
    assert!(has_no_errors(&record) && done[0] == done[1] * 2 && done[2] * 3 == done[1] * 2, "{done:?}");
    let head = "layer = 'filesystem'\ntargets = ['file']\nhosts = ['local:3']\nshape = 'shared'\nfile_size = '8k'\nblock_size = '4k'\nbarriers = true";
    let record = measured(
        &scratch,
        head,
        &["op = 'write'\nhosts_used = 2", "op = 'read'\nhosts_used = 1", "op = 'write'"],
    );
    assert_eq!(hosts(&record).iter().map(|(hosts, _)| *hosts).collect::<Vec<_>>(), [2, 1, 3]);
}

#[test]
fn objects_of_more_hosts_are_read_by_fewer_and_the_other_way_round() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields --scm 128m --targets 2");
    let at = format!("{}/fields", target(&engine));
    let server = S3Server::start(S3Options { is_anonymous: true, ..S3Options::default() }).unwrap();
    let s3 = format!("targets = ['s3://bucket']\ns3_endpoint = '{}'\ns3_signing = 'none'", server.endpoint());
    for target in [format!("targets = ['{at}']"), s3] {
        for scope in ["", "object_scope = 'private'"] {
            let head = format!(
                "layer = 'object'\n{target}\ndkeys = 100\nvalue_size = '1k'\nverify = true\nhosts = ['local:3']\n{scope}"
            );
            let around = [
                "op = 'put'",
                "op = 'get'\ncount = 60\nhosts_used = 2",
                "op = 'put'\nhosts_used = 1",
                "op = 'get'\ncount = 60",
            ];
            let record = measured(&scratch, &head, &around);
            let done = operations(&record);
            let few = if scope.is_empty() { [100, 60, 100, 60] } else { [300, 60, 100, 60] };
            assert_eq!((done, has_no_errors(&record)), (few.to_vec(), true), "{head}");
        }
    }
    let head = format!(
        "layer = 'object'\ntargets = ['{at}']\ndkeys = 100\nvalue_size = '1k'\nhosts = ['local:2']\nkeep = true\nacknowledged = 'acks'"
    );
    let ended =
        scratch.run(&format!("run {}", job(&scratch, &head, &["op = 'put'", "op = 'put'\nhosts_used = 1"])));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("leave out --acknowledged"), "{}", ended.stderr);
}

#[test]
fn services_and_engines_have_phases_of_fewer_hosts() {
    let scratch = Scratch::new();
    let token = token(&scratch);
    let services = [(); 3].map(|()| Service::start(&scratch, &["--token-file", &token]));
    let [a, b, c] = services.each_ref().map(|service| service.address.as_str());
    let head = format!(
        "layer = 'filesystem'\ntargets = ['tree']\nfiles = 3\ndirs = 1\ntoken_file = '{token}'\nhosts = ['{a},{b},{c}']"
    );
    let record =
        measured(&scratch, &head, &["op = 'create'", "op = 'stat'\nhosts_used = 2", "op = 'unlink'"]);
    assert_eq!((hosts(&record)[1].clone(), operations(&record)), ((2, vec![a, b]), vec![18, 6, 9]));

    let server = Engine::start(scratch.path(), "--no-attach-info");
    let head =
        format!("layer = 'network'\nservers = '{}'\ncount = 12\nhosts = ['local:3']", server.control());
    let record = measured(&scratch, &head, &["hosts_used = 1", "hosts_used = 2", "threads = 1"]);
    assert_eq!(hosts(&record).iter().map(|(hosts, _)| *hosts).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(operations(&record), [12; 3]);
}

#[test]
fn phases_that_hosts_cannot_leave_out_are_refused() {
    let scratch = Scratch::new();
    let media = "layer = 'media'\ntargets = ['data']\nsize = '64k'\nblock_size = '4k'\nhosts = ['local:3']";
    let files = "layer = 'filesystem'\ntargets = ['tree']\nfiles = 3\ndirs = 1\nhosts = ['local:3']";
    let add = |head: &str, line: &str| format!("{head}\n{line}");
    let (write, few) = ("op = 'write'", "op = 'read'\nhosts_used = 2");
    for (head, phases, expected) in [
        (add(media, ""), vec![write, "op = 'read'\nhosts_used = 4"], "give 1 to 3"),
        (add(media, ""), vec![write, "op = 'read'\nhosts_used = 0"], "from 1 to 65536"),
        (add(media, "rotate_hosts = 1"), vec![write, few], "leave out --rotate-hosts"),
        (add(media, "verify = true"), vec![write, few], "blocks that it wrote itself"),
        (
            add(media, "host_targets = 'own'"),
            vec!["op = 'write'\nhosts_used = 2", "op = 'read'"],
            "from many hosts to few",
        ),
        (
            add(media, ""),
            vec![write, "op = 'read'\nhosts_used = 2\nconcurrent = true"],
            "the same hosts_used, or leave out concurrent",
        ),
        (media.replace("data", "mem:"), vec![write, few], "memory is local to each host"),
        (
            add(files, "time = '1s'"),
            vec!["op = 'create'\nhosts_used = 1\nthreads = 3", "op = 'stat'"],
            "do not know the number",
        ),
        (
            "layer = 'application'\ntargets = ['.']\napp = 'vpic'\nhosts = ['local:2']".to_owned(),
            vec!["seed = 1", "hosts_used = 1"],
            "an application requires all hosts",
        ),
    ] {
        let ended = refused(&scratch, &head, &phases);
        assert!(ended.stderr.contains(expected), "{head} {phases:?}: {}", ended.stderr);
    }
    // Each host has taken part in all that came before.
    let own = add(files, "host_targets = 'own'\ntargets = ['null:']").replace("targets = ['tree']\n", "");
    measured(
        &scratch,
        &own.replace("files = 3\ndirs = 1\n", "engine = 'null'\nfiles = 3\ndirs = 1\n"),
        &["op = 'create'", "op = 'stat'\nhosts_used = 1"],
    );
    let memory = add(&media.replace("data", "mem:"), "host_targets = 'own'\ncount = 12");
    let record = measured(&scratch, &memory, &[write, few]);
    let of_each: Vec<_> = hosts(&record).iter().map(|(hosts, _)| *hosts).collect();
    assert_eq!((of_each, operations(&record)), (vec![3, 2], vec![12; 2]), "each has all of its own memory");
}

#[test]
fn a_host_outside_a_phase_that_dies_is_found() {
    for (terms, goes_on, time) in [("stop", false, "60s"), ("continue", true, "8s")] {
        let scratch = Scratch::new();
        let head = format!(
            "layer = 'media'\ntargets = ['file']\nsize = '1m'\nrate = '1k'\nhosts = ['local:3']\non_host_failure = '{terms}'"
        );
        let name = job(
            &scratch,
            &head,
            &[
                &format!("op = 'randread'\nhosts_used = 2\ntime = '{time}'"),
                "op = 'randread'\nhosts_used = 2\ncount = 100",
            ],
        );
        // The run has the third host by the last phase.
        let last = "[[phase]]\nop = 'randread'\ncount = 90\n";
        let text = fs::read_to_string(scratch.join(name)).unwrap();
        fs::write(scratch.join(name), format!("{text}{last}")).unwrap();
        let mut running = scratch.start(&format!("run {name} --live-csv - --json record.json"));
        running.await_row("randread");
        while !running.await_row("randread").contains("local:1,client,1") {}
        kill_process(children(running.id())[2], Signal::KILL).unwrap();
        let ended = running.end();
        let record = read_record(&scratch.join("record.json"));
        assert_partial(&scratch, &ended, &record, "host local:2");
        let first = phases(&record)[0]["failure"].as_str().unwrap();
        assert!(first.starts_with("host local:2, not used in this phase: "), "{first}");
        let failed: Vec<bool> = phases(&record).iter().map(|phase| !phase["failure"].is_null()).collect();
        let expected: &[bool] = if goes_on { &[true, false, true] } else { &[true] };
        assert_eq!(failed, expected, "{terms}: {}", ended.stderr);
        assert_eq!(origins(&phases(&record)[0]), ["local:0", "local:1"]);
        assert!(total(&record, 0, "operations").as_u64().unwrap() > 0);
        assert_eq!(scratch.names(), ["job.toml", "record.json"]);
    }
}

#[test]
fn ranks_of_a_launcher_have_phases_of_fewer_hosts() {
    if !has("mpirun of hosts", "mpirun.openmpi") {
        return;
    }
    let scratch = Scratch::new();
    let head = "layer = 'filesystem'\ntargets = ['tree']\nfiles = 2\ndirs = 1\nhost_targets = 'shared'";
    let name = job(&scratch, head, &["op = 'create'", "op = 'stat'\nhosts_used = 2", "op = 'unlink'"]);
    let three = [MPIRUN, &["-np", "3"]].concat();
    let ended = output(launch(&scratch, &three, &format!("run {name} --json record.json"), &[]));
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(
        (operations(&record), hosts(&record)[1].clone()),
        (vec![12, 4, 6], (2, vec!["rank 0", "rank 1"]))
    );
}
