//! Applications that go wrong: descriptions that cannot be, damaged and missing items, full targets, signals, kills.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::support::{Mounted, Running, Scratch, assert_partial, names_in, read_record, state_of};

/// Writes, pauses, and reads.
const PAUSED: &str = "format = 1\nname = 'paused'\nversion = '1'\nsummary = 'Writes, pauses and reads'\n\
    [parameters]\npause = { default = '20s', help = 'Pause' }\nlate = { default = 'no', choices = ['no', 'yes'], help = 'Pause first' }\n\
    [[set]]\nname = 'field'\nkind = 'array'\nlayout = 'item'\nsize = '256KiB'\n\
    [[group]]\nname = 'early'\nstage = 'early'\nwhen = 'late=yes'\nprocesses = 1\niterations = 1\n\
    [[group.step]]\nname = 'sleep'\ncompute = 'pause'\nbegin = ['compute']\n\
    [[group]]\nname = 'writers'\nstage = 'write'\nprocesses = 2\niterations = 2\niteration = 'step'\n\
    [[group.step]]\nname = 'archive'\nitems = 4\ndimensions = ['level:2', 'param:2']\neach = ['create field', 'write field', 'sync field', 'close field']\n\
    [[group]]\nname = 'pause'\nstage = 'pause'\nprocesses = 1\niterations = 1\n\
    [[group.step]]\nname = 'sleep'\ncompute = 'pause'\nbegin = ['compute']\n\
    [[group]]\nname = 'readers'\nstage = 'read'\nprocesses = 2\niterations = 2\n\
    [[group.step]]\nname = 'get'\nof = 'writers.archive'\neach = ['open field', 'read field', 'close field']\n";

/// A run directory with the description and a directory for data.
fn paused() -> Scratch {
    let scratch = Scratch::new();
    fs::write(scratch.join("paused.toml"), PAUSED).unwrap();
    fs::create_dir(scratch.join("data")).unwrap();
    scratch
}

/// The directory of the run, once it is there and has all 16 fields.
fn fields_of(running: &Running, data: &Path) -> PathBuf {
    running.await_some(|| {
        let top = names_in(data).into_iter().find(|name| name.starts_with("strata-app-"))?;
        let fields = data.join(top).join("field");
        (fields.is_dir() && names_in(&fields).len() == 16).then_some(fields)
    })
}

#[test]
fn a_byte_that_was_changed_is_found_with_its_field_and_place() {
    let scratch = paused();
    let running = scratch.start("app paused.toml data --set pause=3s --json record.json");
    let fields = fields_of(&running, &scratch.join("data"));
    let file = fs::OpenOptions::new().read(true).write(true).open(fields.join("9")).unwrap();
    // The writer may still be at its last field, which is another one.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut byte = [0];
    file.read_exact_at(&mut byte, 70_001).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], 70_001).unwrap();
    drop(file);
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "damaged");
    // Item 1 of process 0 in step 1.
    let said = record["failure"].as_str().unwrap();
    let change = format!("expected {:#04x}, found {:#04x}", byte[0], byte[0] ^ 0x10);
    for part in ["field 9 (process 0", "1, item 1)", "byte 70001", &change] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn a_field_that_is_missing_is_named() {
    let scratch = paused();
    let running = scratch.start("app paused.toml data --set pause=3s --json record.json");
    let fields = fields_of(&running, &scratch.join("data"));
    std::thread::sleep(std::time::Duration::from_millis(300));
    fs::remove_file(fields.join("12")).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "field 12 (process 1");
    assert!(record["failure"].as_str().unwrap().contains("/field/12"), "{}", record["failure"]);
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn a_directory_that_was_not_marked_yet_goes_where_it_is_empty() {
    for (file, is_left) in [(None, false), (Some("0"), true)] {
        let scratch = paused();
        let running = scratch.start("app paused.toml data");
        let fields = fields_of(&running, &scratch.join("data"));
        running.signal(Signal::KILL);
        running.end();
        // As it is when the run is killed between the making and the marking of its directory.
        let lists = fs::read_dir(state_of(scratch.path()).join("strata")).unwrap().flatten();
        let list =
            lists.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "json"));
        let list = list.unwrap();
        let text = fs::read_to_string(&list).unwrap();
        let mut made: serde_json::Value = serde_json::from_str(&text).unwrap();
        let trees = made.as_object_mut().unwrap().values_mut().filter_map(serde_json::Value::as_array_mut);
        let marked = trees.flatten().filter_map(|tree| tree.as_object_mut()?.remove("identity")).count();
        assert_eq!(marked, 1, "{text}");
        fs::write(&list, made.to_string()).unwrap();
        let top = fields.parent().unwrap();
        fs::remove_dir_all(top).unwrap();
        fs::create_dir(top).unwrap();
        if let Some(file) = file {
            fs::write(top.join(file), "of others").unwrap();
        }
        let cleaned = scratch.run("clean --yes");
        assert_eq!(cleaned.code, Some(0), "{} {}", cleaned.stdout, cleaned.stderr);
        assert_eq!(top.exists(), is_left, "{}", cleaned.stdout);
    }
}

#[test]
fn a_run_that_is_interrupted_or_killed_leaves_nothing() {
    let scratch = paused();
    let running = scratch.start("app paused.toml data --json record.json");
    fields_of(&running, &scratch.join("data"));
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(read_record(&scratch.join("record.json"))["status"], "partial");
    assert!(names_in(&scratch.join("data")).is_empty());
    let running = scratch.start("app paused.toml data");
    let fields = fields_of(&running, &scratch.join("data"));
    fs::write(fields.join("notes.txt"), "of others").unwrap();
    running.signal(Signal::KILL);
    running.end();
    let shown = scratch.run("clean");
    assert!(shown.stdout.contains("strata-app-"), "{}", shown.stdout);
    assert_eq!(names_in(&fields).len(), 17, "nothing is removed without --yes");
    let refused = scratch.run("clean --yes");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("it contains files that this run did not create"), "{}", refused.stderr);
    assert_eq!(names_in(&fields), ["notes.txt"]);
    fs::remove_file(fields.join("notes.txt")).unwrap();
    let cleaned = scratch.run("clean --yes");
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn a_target_that_is_too_small_is_refused_and_one_that_fills_up_ends_the_run() {
    let scratch = paused();
    let Some(small) = Mounted::tmpfs("8m") else { return };
    let target = small.path().display().to_string();
    let refused = scratch.run(&format!("app checkpoint {target} --size 5MiB --steps 1"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("writes 10 MiB") && refused.stderr.contains("free"),
        "{}",
        refused.stderr
    );
    assert!(names_in(small.path()).is_empty());
    let words = format!("app paused.toml {target} --set pause=3s,late=yes --json record.json --live-csv -");
    // Before it computes, the room is looked at: with less it would not begin.
    let mut running = scratch.start(&words);
    running.await_row("paused");
    fs::write(small.path().join("others"), vec![0; 6 << 20]).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "No space left");
    assert_eq!(names_in(small.path()), ["others"]);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let scratch = paused();
    let write = |name: &str, text: &str| fs::write(scratch.join(name), text).unwrap();
    let circle = "name = 'archive'\nafter = ['writers.more']";
    let more = "close field']\n[[group.step]]\nname = 'more'\n";
    write("circle.toml", &PAUSED.replace("name = 'archive'", circle).replacen("close field']\n", more, 1));
    write("field.toml", &PAUSED.replace("kind = 'array'", "kind = 'array'\ncolour = 'red'"));
    write("format.toml", &PAUSED.replace("format = 1", "format = 7"));
    write("text.toml", "format = [");
    for (words, said) in [
        ("app circle.toml data", "in a circle: writers.archive -> writers.more -> writers.archive"),
        ("app field.toml data", "unknown field `colour`"),
        ("app format.toml data", "format 7"),
        ("app text.toml data", "line 1"),
        ("app absent.toml data", "cannot read the description"),
        ("app fdb-hamer data", "fdb-hammer (the closest match)"),
        ("app fdb-hammer", "has no target"),
        ("app", "no application named"),
        ("app fdb-hammer nowhere", "mkdir -p nowhere"),
        ("app fdb-hammer tcp://127.0.0.1:1", "no layer provides the target"),
        ("app fdb-hammer data --set colour=red", "no parameter colour"),
        ("app fdb-hammer data --set steps", "NAME=VALUE"),
        ("app fdb-hammer data --steps 0", "steps"),
        ("app fdb-hammer data --steps many", "not a number"),
        ("app fdb-hammer data --pattern C", "A, B"),
        ("app vpic data --members 2", "vpic has no parameter members"),
        ("app fdb-hammer data --size 2GiB", "transfer of 1 byte to 1GiB"),
        ("app fdb-hammer data --size 1000 --target-options direct", "multiples of 4096"),
        ("app fdb-hammer data --target-options files=3", "does not support the option files"),
        ("app fdb-hammer vos:store --target-options durability=never", "durability"),
        ("app checkpoint vos:store", "vos does not support rename"),
        ("app fdb-hammer data --threads 4", "writers=8"),
        ("app fdb-hammer data --steps 100000000 --size 1GiB", "the target has"),
    ] {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(said) && ended.stderr.lines().count() == 1,
            "{words}: {}",
            ended.stderr
        );
    }
    assert!(names_in(&scratch.join("data")).is_empty() && !scratch.join("store").exists());
}

#[test]
fn two_runs_at_once_in_one_directory_do_not_meet() {
    let scratch = paused();
    let words = "app fdb-hammer data --steps 3 --size 4KiB";
    let both = [scratch.start(words), scratch.start(words)];
    for running in both {
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    assert!(names_in(&scratch.join("data")).is_empty());
}
