//! An application on several targets, side by side: turns, options, the table and its chart, targets that fail, and bad input.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::engines::Engine;
use crate::support::{Scratch, class, csv_rows, names_in, read_record};

const FDB: &str = "app fdb-hammer --steps 2 --size 8KiB --levels 2 --params 5 --writers 2 --readers 2";
/// Fields of the load above.
const FIELDS: u64 = 2 * 2 * 2 * 5;

/// A run directory with two directories for data.
fn directories() -> Scratch {
    let scratch = Scratch::new();
    for name in ["a", "b"] {
        fs::create_dir(scratch.join(name)).unwrap();
        fs::write(scratch.join(name).join("others"), "stays").unwrap();
    }
    scratch
}

fn engine(scratch: &Scratch) -> (Engine, String) {
    let words = "--no-attach-info --interface lo --pool tank --dir tank --scm 128m --nvme 256m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let address = engine.uri().strip_prefix("tcp://").unwrap().to_owned();
    (engine, format!("engine://{address}/tank/fields"))
}

/// Number of the target and pass of each phase.
fn turns(record: &Value) -> Vec<(u64, u64)> {
    let beside = |phase: &Value| {
        let beside = &phase["plan"]["beside"];
        (beside["at"].as_u64().unwrap(), beside["pass"].as_u64().unwrap())
    };
    record["phases"].as_array().unwrap().iter().map(beside).collect()
}

#[test]
fn targets_take_turns_and_stand_in_one_table_chart_and_record() {
    let scratch = directories();
    assert_eq!(scratch.run("pool create vos:pool --scm 64m").code, Some(0));
    let (_engine, behind) = engine(&scratch);
    let words = format!("{FDB} --passes 2 --on a,dfs+vos:pool,vos:store,{behind}");
    let ended = scratch.run(&format!("{words} --json record.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    let expected: Vec<(u64, u64)> =
        [1, 2].into_iter().flat_map(|pass| (0..4).flat_map(move |at| [(at, pass), (at, pass)])).collect();
    assert_eq!(turns(&record), expected, "a pass goes over all targets");
    for phase in 0..16 {
        let (class_name, plan) = (["write", "read"][phase % 2], &record["phases"][phase]["plan"]);
        assert_eq!(class(&record, phase, class_name), (FIELDS, FIELDS * 8192));
        assert_eq!(plan["content_seed"], record["phases"][0]["plan"]["content_seed"], "the same load");
    }
    let report = scratch.run("report record.json").stdout;
    for text in [&ended.stdout, &report] {
        for part in [
            "targets side by side",
            "2 passes over all targets",
            "fdb-hammer write\n",
            "vos:store",
            "fastest",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    // Nothing is left on any of them, and what others have stays.
    assert_eq!(names_in(&scratch.join("a")), ["others"]);
    assert!(!scratch.join("store").exists() && scratch.join("pool").exists());
    let csv = scratch.run("report record.json --csv").stdout;
    let is_second = |row: &BTreeMap<&str, &str>| (row["name"], row["pass"]) == ("fdb-hammer read on a", "2");
    assert!(csv_rows(&csv).iter().any(is_second), "{csv}");
    assert_eq!(scratch.run("report record.json --svg charts --html page.html").code, Some(0));
    let charts = names_in(&scratch.join("charts"));
    assert!(charts[0].ends_with("beside.svg"), "{charts:?}");
    // Rate, latency and percentiles of each of the two stages: targets are lines, and passes have no charts of their own.
    let of_percentiles = charts.iter().filter(|name| name.ends_with("side-by-side-percentiles.svg")).count();
    assert!(of_percentiles == 2 && charts.len() <= 1 + 2 * 3, "{charts:?}");
    let page = fs::read_to_string(scratch.join("page.html")).unwrap();
    assert!(page.contains("Targets side by side: I/O") && page.contains("dfs+vos:pool"));
    // A second run of the same targets is compared with the first, stage by stage.
    let again = scratch.run(&format!("{words} --json again.json"));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let compared = scratch.run("compare record.json again.json");
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    assert!(compared.stdout.contains("fdb-hammer write on vos:store"), "{}", compared.stdout);
}

#[test]
fn labels_stand_for_targets_in_table_record_and_chart() {
    let scratch = directories();
    let targets =
        ["--on", "files:./a,fast store:vos:store", "--target-options", "fast store:durability=batch"];
    let words = FDB.split_whitespace().chain(["--passes", "2", "--json", "record.json"]).chain(targets);
    let ended = scratch.run_words(&words.collect::<Vec<_>>());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    let plan = &record["phases"][2]["plan"];
    assert_eq!((&plan["target"], &plan["beside"]["labels"][1]), (&"vos:store".into(), &"fast store".into()));
    assert_eq!(plan["target_options"][0]["name"], "durability");
    assert!(record["phases"][0]["plan"]["target_options"].as_array().unwrap().is_empty());
    assert!(
        ended.stdout.lines().any(|line| line.starts_with("fast store ") && line.ends_with(" vos:store")),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.lines().any(|line| line.trim_start().starts_with("files ")), "{}", ended.stdout);
    let csv = scratch.run("report record.json --csv").stdout;
    assert!(csv.contains("fdb-hammer read on fast store,"), "{csv}");
    assert_eq!(scratch.run("report record.json --svg charts").code, Some(0));
    let charts = names_in(&scratch.join("charts"));
    let chart = fs::read_to_string(scratch.join("charts").join(&charts[0])).unwrap();
    assert!(chart.contains(">fast store<") && !chart.contains("vos:store"), "{chart}");
}

#[test]
fn labels_that_cannot_be_are_refused() {
    let scratch = directories();
    let here = scratch.join("a").display().to_string();
    // The type of the file system that the directory lies on, and another that this machine has mounted.
    let (own, other) = (mount_type(&here), "proc");
    for (on, said) in [
        (format!("vso:{here},b"), "too similar to vos".to_owned()),
        ("one:./a,one:./b".to_owned(), "names two targets one".to_owned()),
        (format!("{other}:{here},b"), format!("is on {own}, but its label is {other}")),
        ("x://a,b".to_owned(), "no layer provides".to_owned()),
        ("one:./a,./a".to_owned(), "names a target twice".to_owned()),
    ] {
        let ended = scratch.run(&format!("{FDB} --on {on}"));
        assert_eq!(ended.code, Some(2), "{on}: {}", ended.stderr);
        assert!(ended.stderr.contains(&said) && ended.stderr.lines().count() == 1, "{on}: {}", ended.stderr);
    }
    let ended = scratch.run(&format!("{FDB} --on one:./a,./b --target-options two:direct=true"));
    assert!(ended.code == Some(2) && ended.stderr.contains("no target has this label"), "{}", ended.stderr);
    let ended = scratch.run(&format!("{FDB} --passes 2 --on {own}:{here},b"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

/// Type of the file system that a path lies on, as the kernel says it.
fn mount_type(path: &str) -> String {
    let ended =
        std::process::Command::new("stat").args(["--file-system", "--format=%T", path]).output().unwrap();
    match String::from_utf8_lossy(&ended.stdout).trim() {
        "ext2/ext3" => "ext4".to_owned(),
        "overlayfs" => "overlay".to_owned(),
        name => name.to_owned(),
    }
}

#[test]
fn options_go_to_the_targets_that_have_them() {
    let scratch = directories();
    let server = S3Server::start(S3Options::default()).unwrap();
    server.store().create_bucket("fields");
    let options = S3Options::default();
    let keys =
        [("AWS_ACCESS_KEY_ID", options.access.clone()), ("AWS_SECRET_ACCESS_KEY", options.secret.clone())];
    let words = format!(
        "{FDB} --passes 2 --on a --on s3://fields --on vos:store \
         --target-options direct=true,s3-endpoint={},3:durability=batch --json record.json",
        server.endpoint()
    );
    let ended = scratch.start_in(&words, &keys).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    let options = |phase: usize| -> Vec<String> {
        let options = record["phases"][phase]["plan"]["target_options"].as_array().unwrap();
        options.iter().map(|option| option["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (options(0), options(2), options(4)),
        (vec!["direct".to_owned()], vec!["s3-endpoint".to_owned()], vec!["durability".to_owned()],)
    );
    assert!(server.store().keys("fields").is_empty(), "what the run put is removed");
}

#[test]
fn a_target_whose_server_goes_away_is_left_out_and_the_others_go_on() {
    let scratch = directories();
    let (engine, behind) = engine(&scratch);
    // The store computes for a while, so that the engine ends in the middle of a pass.
    let running = scratch.start(&format!(
        "{FDB} --passes 3 --set compute=300ms --on a,{behind},b --json record.json --live line"
    ));
    running.await_that(|| {
        let text = fs::read_to_string(scratch.join("record.json")).unwrap_or_default();
        text.contains("write on b")
    });
    engine.signal(Signal::KILL);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["status"], "partial");
    let of = |target: u64| {
        turns(&record).into_iter().filter(|(at, _)| *at == target).map(|(_, pass)| pass).collect::<Vec<_>>()
    };
    for target in [0, 2] {
        assert_eq!(of(target), [1, 1, 2, 2, 3, 3], "the others have all their turns");
    }
    assert!(of(1).iter().all(|pass| *pass <= 2), "{:?}", of(1));
    let text = scratch.run("report record.json").stdout;
    assert!(text.contains("partial") && text.contains("targets side by side"), "{text}");
    for name in ["a", "b"] {
        assert_eq!(names_in(&scratch.join(name)), ["others"]);
    }
}

#[test]
fn hosts_carry_out_the_turns_together() {
    let scratch = directories();
    let (_engine, behind) = engine(&scratch);
    let words = format!("{FDB} --passes 2 --on files:./a,{behind},b --hosts local:2");
    let record = scratch.measured(&words);
    assert_eq!(record["phases"].as_array().unwrap().len(), 2 * 3 * 2);
    for phase in 0..12 {
        let class_name = ["write", "read"][phase % 2];
        assert_eq!(class(&record, phase, class_name), (FIELDS, FIELDS * 8192), "all hosts have done {phase}");
    }
    for name in ["a", "b"] {
        assert_eq!(names_in(&scratch.join(name)), ["others"]);
    }
}

#[test]
fn hosts_end_the_run_when_the_server_of_a_target_goes_away() {
    let scratch = directories();
    let (engine, behind) = engine(&scratch);
    let running = scratch.start(&format!(
        "{FDB} --passes 3 --set compute=300ms --on a,{behind},b --hosts local:2 --json record.json --live line"
    ));
    running.await_that(|| {
        let text = fs::read_to_string(scratch.join("record.json")).unwrap_or_default();
        text.contains("write on b")
    });
    engine.signal(Signal::KILL);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["status"], "partial");
    assert!(ended.stderr.contains("cannot connect"), "{}", ended.stderr);
    let found = turns(&record);
    assert!(found.len() >= 6 && found.iter().all(|(_, pass)| *pass < 3), "{found:?}");
    for name in ["a", "b"] {
        assert_eq!(names_in(&scratch.join(name)), ["others"]);
    }
}

#[test]
fn an_interrupted_run_ends_with_what_it_has_and_leaves_nothing() {
    let scratch = directories();
    let running = scratch.start(&format!("{FDB} --set compute=500ms --on a,b --json record.json"));
    running.await_that(|| {
        fs::read_to_string(scratch.join("record.json")).unwrap_or_default().contains("write on a")
    });
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["status"], "partial");
    assert!(record["phases"].as_array().unwrap().len() < 12);
    for name in ["a", "b"] {
        assert_eq!(names_in(&scratch.join(name)), ["others"]);
    }
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_touched() {
    let scratch = directories();
    fs::create_dir(scratch.join("c,d")).unwrap();
    for (words, said) in [
        ("--on a", "a is the only one"),
        ("--on a,./a", "names a target twice"),
        ("--on vos:s,vos:s", "names a target twice"),
        ("--on a,missing", "requires an existing directory"),
        ("--on a,,b", "one comma between each two"),
        ("--on a,b --keep", "--keep"),
        ("--on a,vos:s --hosts local:2", "strata pool create vos:s"),
        ("--on a,b --hosts local:2 --host-targets own", "--host-targets shared"),
        ("--on a,b --passes 1", "passes"),
        ("--on a,b --target-options s3-endpoint=http://h:1", "no target of --on supports it"),
        ("--on a,vos:s --target-options 3:direct=true", "no target has this number"),
        ("--on a,vos:s --target-options 1:durability=batch", "does not support the option durability"),
        ("--on a,c,d", "requires an existing directory"),
        ("--on a,engine://127.0.0.1:1/tank/fields", "cannot connect"),
    ] {
        let ended = scratch.run(&format!("{FDB} {words}"));
        assert!(matches!(ended.code, Some(1 | 2)), "{words}: {:?}", ended.code);
        assert_eq!(ended.stderr.lines().count(), 1, "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{words}: {}", ended.stderr);
    }
    for (words, said) in [
        ("app fdb-hammer a --on a,b", "the target a is outside of --on"),
        ("app fdb-hammer a --passes 3", "--passes requires several targets"),
        ("app --on a,b", "no application named"),
        ("app dlio --accelerators max --on a,b", "accelerators=max"),
    ] {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{words}: {}", ended.stderr);
    }
    assert_eq!(names_in(&scratch.join("a")), ["others"]);
    // A target that holds a comma is given by repeating the option.
    let ended = scratch.run(&format!("{FDB} --passes 2 --on a --on c,d"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let job = "[[phase]]\nlayer = 'application'\napp = 'fdb-hammer'\non = ['a', 'c,d']\npasses = 2\nset = ['size=4KiB', 'steps=1,levels=1,params=1']\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    assert_eq!(turns(&scratch.measured("run job.toml")).len(), 8);
}

#[test]
fn logs_of_a_database_begin_anew_in_every_turn() {
    let scratch = directories();
    let words = "app database --on a,vos:s --passes 2 --set clients=2,readers=1,interval=10,steps=2,pages=64,dirty=8,reads=10";
    let (ended, record) = scratch.measure(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let commits: Vec<u64> = record["phases"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|phase| phase["observations"]["commits"]["commits"].as_u64())
        .filter(|commits| *commits > 0)
        .collect();
    assert_eq!(commits.len(), 4, "{commits:?}");
    assert!(commits.iter().all(|count| *count == commits[0]), "{commits:?}");
    assert_eq!(
        ended.stdout.matches("40 commits").count(),
        2,
        "each target, in the first pass: {}",
        ended.stdout
    );
}
