//! Loads on files and directories: what is on the disk afterwards, what is found wrong, and what is left alone.

use std::fs;
use std::os::unix::fs::FileExt as _;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Mounted, NO_ROOT, Scratch, assert_partial, class, names_in, skipped, state_of, total};

fn stage_names(record: &Value) -> Vec<&str> {
    record["phases"].as_array().unwrap().iter().map(|phase| phase["plan"]["name"].as_str().unwrap()).collect()
}

#[test]
fn a_whole_life_of_small_files_leaves_nothing() {
    let scratch = Scratch::new();
    let record =
        scratch.measured("fs t --threads 2 --dirs 3 --files 7 --file-size 5000 --block-size 4k --verify");
    assert_eq!(
        stage_names(&record),
        ["tree-create", "create", "stat", "write", "read", "unlink", "tree-remove"]
    );
    assert_eq!(class(&record, 0, "mkdir"), (8, 0), "a directory and three below, for each of two workers");
    assert_eq!((class(&record, 1, "create").0, class(&record, 2, "stat").0), (42, 42));
    assert_eq!(class(&record, 3, "write"), (84, 42 * 5000));
    assert_eq!(class(&record, 4, "read"), (84, 42 * 5000));
    assert_eq!((class(&record, 5, "unlink").0, class(&record, 6, "rmdir").0), (42, 8));
    assert_eq!(record["phases"][4]["observations"]["files"]["items"], 42);
    assert_eq!(scratch.names(), ["record.json"]);
}

/// Operations that change nothing take the items again, in any order; the others, and the fill, take each once.
#[test]
fn items_are_passed_over_as_often_as_asked_where_nothing_is_changed() {
    let scratch = Scratch::new();
    for order in ["", "--item-order random", "--engine io_uring --depth 3"] {
        let record = scratch.measured(&format!(
            "fs t --threads 2 --dirs 3 --files 7 --file-size 8k --block-size 4k --verify --item-passes 5 {order}"
        ));
        assert_eq!((class(&record, 1, "create").0, class(&record, 2, "stat").0), (42, 5 * 42), "{order}");
        assert_eq!(class(&record, 3, "write"), (84, 42 * 8192), "{order}");
        assert_eq!(class(&record, 4, "read"), (5 * 84, 5 * 42 * 8192), "{order}");
        assert_eq!(class(&record, 5, "unlink").0, 42, "{order}");
        let passes = record["phases"].as_array().unwrap().iter().map(|phase| &phase["plan"]["item_passes"]);
        let passes: Vec<Option<u64>> = passes.map(Value::as_u64).collect();
        assert_eq!(passes, [None, None, Some(5), None, Some(5), None, None], "{order}");
    }
    let filled = scratch.measured("fs t --op stat --files 7 --item-passes 3");
    assert_eq!((class(&filled, 0, "create").0, class(&filled, 1, "stat").0), (7, 21));
    let timed = scratch.measured("fs t --op stat --files 2 --item-passes 1000000000 --time 200ms");
    assert!(class(&timed, 1, "stat").0 > 2, "the time ends it");
    for words in ["--op create,unlink", "--shape private --op write,read", "--op find"] {
        let refused = scratch.run(&format!("fs t {words} --item-passes 2"));
        assert_eq!(refused.code, Some(2), "{words}: {}", refused.stderr);
        assert!(refused.stderr.contains("use --op stat, dir-stat"), "{}", refused.stderr);
    }
    assert_eq!(scratch.names(), ["record.json"]);
}

#[test]
fn every_phase_runs_on_trees_of_every_shape_and_naming() {
    let all = "tree-create,mkdir,dir-stat,dir-rename,rmdir,mknod,write,read,stat,readdir,find,rename,link,symlink,truncate,lock,fadvise,unlink,tree-remove";
    for shape in [
        "--names mdtest --branch 2 --levels 2 --items 9",
        "--names elbencho --dirs 2 --files 5",
        "--shared-tree --dirs 4 --files 3",
    ] {
        for manner in ["", "--engine io_uring --depth 3", "--paths full --item-order random"] {
            let scratch = Scratch::new();
            let record = scratch.measured(&format!("fs t --op {all} --threads 2 {shape} {manner}"));
            let found = &record["phases"][10]["observations"]["files"]["found"];
            assert_eq!(found["entries"], found["matched"], "{shape} {manner}");
            assert_eq!(scratch.names(), ["record.json"], "{shape} {manner}");
        }
    }
}

#[test]
fn shared_files_have_the_blocks_of_all_workers_where_ior_has_them() {
    let scratch = Scratch::new();
    let words =
        "fs data --shape shared --threads 2 --file-size 8k --block-size 4k --segments 3 --verify --keep";
    let record = scratch.measured(&format!("{words} --op write,read --rank-shift 1 --end-fsync"));
    assert_eq!((class(&record, 0, "write"), class(&record, 0, "fsync").0), ((12, 12 * 4096), 2));
    let file = std::fs::read(scratch.join("data")).unwrap();
    assert_eq!(file.len(), 2 * 3 * 8192);
    // Blocks say where they belong: a header of 48 bytes, the offset at byte 24.
    for (number, block) in file.chunks(4096).enumerate() {
        assert_eq!(block[24..32], (number as u64 * 4096).to_le_bytes(), "block {number}");
    }
    // A block that lies where another belongs, and one that was changed, are found and named.
    let changed = std::fs::OpenOptions::new().write(true).open(scratch.join("data")).unwrap();
    changed.write_all_at(&file[4096..8192], 0).unwrap();
    changed.write_all_at(b"x", 20_000).unwrap();
    let (ended, record) = scratch.measure(&format!("{words} --op read --on-error continue"));
    assert_partial(&scratch, &ended, &record, "2 operations failed");
    let errors = record["phases"][0].to_string();
    assert!(errors.contains("misplaced: belongs at offset 4096"), "{errors}");
    assert!(errors.contains("data, offset 20000: corrupt: expected byte 0x"), "{errors}");
}

#[test]
fn a_stonewall_with_wear_out_leaves_every_worker_with_as_much() {
    let scratch = Scratch::new();
    let record = scratch.measured(
        "fs t --op tree-create,create,stat,unlink,tree-remove --files 1000000 --threads 3 --time 200ms --wear-out",
    );
    let seen = &record["phases"][1]["observations"]["files"];
    let wall = &seen["stonewall"];
    let (most, items) = (wall["items_max"].as_u64().unwrap(), seen["items"].as_u64().unwrap());
    assert!(most > 0 && wall["after_ns"] == 200_000_000, "{seen}");
    // A create that completes between two looks at the wall belongs to one more round.
    assert!((most * 3..=most * 3 + 3).contains(&items), "{seen}");
    assert!(class(&record, 3, "unlink").0 <= items);
    assert_eq!(scratch.names(), ["record.json"]);
}

#[test]
fn trees_and_files_of_others_are_left_alone() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.join("t/strata/w0/d1")).unwrap();
    std::fs::write(scratch.join("t/strata/w0/d1/f0.0"), "theirs").unwrap();
    std::fs::write(scratch.join("file"), "theirs").unwrap();
    for words in
        ["fs t --op unlink", "fs t --op write", "fs t --op tree-remove", "fs file --shape shared --op write"]
    {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}");
        assert!(
            ended.stderr.contains("it was not created by strata") && ended.stderr.contains("--destroy-data"),
            "{}",
            ended.stderr
        );
    }
    assert_eq!(std::fs::read(scratch.join("file")).unwrap(), b"theirs");
    // Looking at them is allowed, and changes nothing.
    let record = scratch.measured("fs t --op stat --files 1");
    assert_eq!(class(&record, 0, "stat").0, 1);
    assert_eq!(std::fs::read(scratch.join("t/strata/w0/d1/f0.0")).unwrap(), b"theirs");
    let missing = scratch.run("fs nothing --op unlink --no-fill");
    assert!(missing.stderr.contains("no tree exists to change"), "{}", missing.stderr);
}

#[test]
fn a_kept_tree_is_worked_on_by_later_runs_and_removed_by_one() {
    let scratch = Scratch::new();
    scratch.measured("fs t --op write --files 20 --file-size 1k --keep --verify");
    assert_eq!(names_in(&scratch.join("t/strata/w0/d1")).len(), 20);
    let record = scratch.measured("fs t --op read,stat --files 20 --file-size 1k --verify");
    assert_eq!(stage_names(&record), ["read", "stat"], "nothing is made before what is there");
    assert_eq!(names_in(&scratch.join("t/strata/w0/d1")).len(), 20);
    let (ended, _) = scratch.measure("fs t --op unlink,tree-remove --files 20");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(names_in(&scratch.join("t")).is_empty());
}

#[test]
fn phases_of_one_run_have_more_and_fewer_workers_on_one_tree() {
    for shape in ["", "shared_tree = true", "names = 'elbencho'"] {
        let scratch = Scratch::new();
        let phases = "[[phase]]\nop = 'create'\n[[phase]]\nop = 'create'\nthreads = 3\n[[phase]]\nop = 'stat'\nthreads = 2\n";
        let head = format!("layer = 'filesystem'\ntargets = ['tree']\ndirs = 1\nfiles = 3\n{shape}\n");
        fs::write(scratch.join("job.toml"), head + phases).unwrap();
        let record = scratch.measured("run job.toml");
        assert_eq!(stage_names(&record), ["create", "create", "stat"], "{shape}: nothing is made again");
        assert_eq!(total(&record, 2, "operations"), 6);
        assert_eq!(scratch.names(), ["job.toml", "record.json"], "{shape}: nothing is left");
    }
}

#[test]
fn items_that_a_phase_needs_are_made_before_it() {
    let scratch = Scratch::new();
    let record = scratch.measured("fs t --op read,dir-stat --files 5 --file-size 2k");
    assert_eq!(stage_names(&record), ["fill", "read", "fill", "dir-stat"]);
    assert_eq!(class(&record, 1, "read"), (5, 10_240));
    let refused = scratch.run("fs t --op stat --files 5 --no-fill");
    assert_eq!(refused.code, Some(1));
    assert_eq!(scratch.names(), ["record.json"]);
}

#[test]
fn a_killed_run_is_cleaned_and_what_others_put_there_stays() {
    let scratch = Scratch::new();
    let mut running = scratch.start("fs t --op create --files 10000000 --time 60s --live-csv -");
    running.await_row("create");
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    let directory = scratch.join("t/strata/w0/d1");
    assert!(!names_in(&directory).is_empty());
    std::fs::write(directory.join("mine"), "mine").unwrap();
    let shown = scratch.run("clean");
    assert!(shown.stdout.contains("t/strata"), "{}", shown.stdout);
    let cleaned = scratch.run("clean --yes");
    assert_eq!(names_in(&directory), ["mine"], "{}", cleaned.stderr);
    assert_eq!(cleaned.code, Some(1), "it says what is left");
    std::fs::remove_file(directory.join("mine")).unwrap();
    assert_eq!(scratch.run("clean --yes").code, Some(0));
    assert!(names_in(&state_of(scratch.path())).iter().all(|name| !name.ends_with(".json")));
}

#[test]
fn an_interrupted_run_removes_what_it_made() {
    let scratch = Scratch::new();
    let mut running =
        scratch.start("fs t --op create --files 10000000 --time 60s --live-csv - --json record.json");
    running.await_row("create");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(1));
    assert_eq!(scratch.names(), ["record.json"]);
}

#[test]
fn a_full_disk_is_told_and_what_was_measured_is_kept() {
    let Some(disk) = Mounted::tmpfs("8m") else {
        return skipped("a_full_disk_is_told_and_what_was_measured_is_kept", NO_ROOT);
    };
    let scratch = Scratch::new();
    let target = disk.path().join("t");
    let (ended, record) =
        scratch.measure(&format!("fs {} --op write --files 1000 --file-size 64k", target.display()));
    assert_partial(&scratch, &ended, &record, "No space left on device");
    assert!(class(&record, 0, "write").0 > 50);
    assert!(names_in(disk.path()).is_empty(), "it is empty again");
    let note = record["phases"][0]["notes"].to_string();
    assert!(note.contains("is in memory (tmpfs): no storage is measured"), "{note}");
}

#[test]
fn what_cannot_be_is_refused_with_what_would_be() {
    let scratch = Scratch::new();
    let cases = [
        ("fs", "TARGET"),
        ("fs t --op creat", "create"),
        ("fs t --depth 4 --engine posix", "--threads"),
        ("fs t --dirs 2 --levels 3", "use one of them"),
        ("fs t --items 50 --files 10", "at most 10 items"),
        ("fs t --shape shared --files 3", "requires --shape tree"),
        ("fs t --shape shared --op mkdir", "mkdir requires --shape tree"),
        ("fs t --segments 2", "requires --shape private or shared"),
        ("fs t --direct --file-size 1000", "multiples of 512"),
        ("fs t --wear-out", "--time"),
        ("fs t --find-name x", "require --op find"),
        ("fs t --shape private --file-size 10k --block-size 4k", "not a multiple"),
        ("fs t --pattern random", "--order"),
        ("fs t --block-size 4k-8k", "one size"),
        ("fs t --cache warm", "keep, drop"),
    ];
    for (words, expected) in cases {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(expected) && ended.stderr.lines().count() == 1,
            "{words}: {}",
            ended.stderr
        );
    }
    assert!(scratch.names().is_empty());
}

#[test]
fn a_search_counts_what_meets_all_its_conditions() {
    let scratch = Scratch::new();
    scratch.measured("fs t --op write --threads 2 --dirs 3 --files 40 --file-size 100 --keep --names mdtest");
    std::fs::write(scratch.join("old"), "").unwrap();
    let find = |words: &str| {
        let record = scratch.measured(&format!("fs t --op find --threads 2 {words}"));
        let found = record["phases"][0]["observations"]["files"]["found"].clone();
        (found["entries"].as_u64().unwrap(), found["matched"].as_u64().unwrap())
    };
    // A directory of the target, two trees with three directories each, and the files.
    let entries = 1 + 2 + 6 + 240;
    assert_eq!(find(""), (entries, entries));
    // Names end in 0 to 119.
    assert_eq!(find("--find-name *.11?"), (entries, 20));
    assert_eq!(find("--find-name file* --find-size 100"), (entries, 240));
    assert_eq!(find("--find-size 101"), (entries, 0));
    assert_eq!(find("--find-newer old"), (entries, 0));
    std::fs::write(scratch.join("t/later"), "x").unwrap();
    assert_eq!(find("--find-newer old --find-name later"), (entries + 1, 1));
}

#[test]
fn space_that_is_known_to_be_written_is_ready_before_the_phase() {
    let load = "--shape private --file-size 400m --block-size 1m --op write --live none";
    for (more, grows) in [("", false), ("--time 60s", true), ("--time 60s --bytes 400m", false)] {
        // In memory: a drive that stalls would take longer, and prove no more.
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let (scratch, pool) = (Scratch::new(), format!("vos:{}", memory.path().join("pool").display()));
        assert_eq!(scratch.run(&format!("pool create {pool} --scm 768m")).code, Some(0));
        let record = scratch.measured(&format!("fs dfs+{pool} {load} {more}"));
        let phase = &record["phases"][0];
        let grown_bytes = phase["observations"]["files"]["grown_bytes"].as_u64().unwrap();
        let doubts = phase["doubts"].to_string();
        assert_eq!(doubts.contains("store_grew"), grows, "{more}: {grown_bytes}: {doubts}");
        assert_eq!(grown_bytes >= 64 << 20, grows, "{more}: {grown_bytes}");
        assert_eq!(class(&record, 0, "write"), (400, 400 << 20));
    }
}

#[test]
fn files_over_objects_are_measured_by_the_library_and_removed() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("pool create vos:pool --scm 128m").code, Some(0));
    let record = scratch
        .measured("fs dfs+vos:pool --threads 2 --dirs 2 --files 9 --file-size 6000 --block-size 4k --verify");
    assert_eq!(record["phases"][3]["plan"]["engine"], "dfs");
    assert_eq!(class(&record, 4, "read"), (72, 36 * 6000));
    scratch.measured("fs dfs+vos:pool --op write --shape shared --threads 2 --file-size 64k --block-size 8k --verify --keep");
    let record = scratch
        .measured("fs dfs+vos:pool --op read --no-fill --shape shared --threads 2 --file-size 64k --block-size 8k --verify --rank-shift 1");
    assert_eq!(class(&record, 0, "read"), (16, 128 << 10));
    for (words, expected) in [
        ("fs dfs+vos:pool --op link", "does not support link"),
        ("fs dfs+vos:pool --op find", "strata mount"),
        ("fs dfs+vos:pool --engine posix", "--engine dfs"),
        ("fs t --engine dfs", "dfs+vos:DIR"),
        ("fs dfs+vos:nothing", "strata pool create vos:nothing"),
        ("fs dfs+vos:pool --depth 2 --engine dfs", "--threads"),
        ("fs dfs+vos:pool --op unlink --no-fill --names mdtest", "no tree exists"),
    ] {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
    // What a killed run made is removed by its mark.
    let mut running =
        scratch.start("fs dfs+vos:pool --names elbencho --op create --files 1000000 --time 60s --live-csv -");
    running.await_row("create");
    running.signal(Signal::KILL);
    running.end();
    let cleaned = scratch.run("clean --yes");
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
    assert!(cleaned.stdout.contains("dfs+vos:pool: removed "), "{}", cleaned.stdout);
}

#[test]
fn all_that_a_limit_has_left_is_read_in_blocks_of_another_size() {
    let scratch = Scratch::new();
    let job = "layer = \"filesystem\"\ntargets = [\"file\"]\nshape = \"private\"\nfile_size = \"1m\"\n\
               [[phase]]\nop = \"write\"\nblock_size = \"64k\"\nbytes = \"256k\"\n\
               [[phase]]\nop = \"read\"\nblock_size = \"4k\"\n[[phase]]\nop = \"read\"\nblock_size = \"128k\"\n";
    std::fs::write(scratch.join("job.toml"), job).unwrap();
    let record = scratch.measured("run job.toml");
    assert_eq!(class(&record, 0, "write"), (4, 256 << 10));
    assert_eq!(class(&record, 1, "read"), (64, 256 << 10));
    assert_eq!(class(&record, 2, "read"), (2, 256 << 10));
}
