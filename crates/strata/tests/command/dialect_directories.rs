//! elbencho's words on many files in directories.

use std::fs;
use std::os::unix::fs::FileExt;

use serde_json::Value;

use crate::support::{Ended, Scratch};

fn elbencho(scratch: &Scratch, words: &str) -> Ended {
    scratch.run(&format!("as elbencho {words}"))
}

/// Runs words that must end well; what they print.
fn good(scratch: &Scratch, words: &str) -> String {
    let ended = elbencho(scratch, words);
    assert_eq!(ended.code, Some(0), "{words}: {}{}", ended.stdout, ended.stderr);
    ended.stdout
}

/// The last column of each row, by phase and kind.
fn last_columns(text: &str) -> Vec<(String, String, String)> {
    let mut phase = String::new();
    let rows = text.lines().skip(2).filter_map(|row| {
        let (head, figures) = row.split_once(" : ")?;
        let (name, kind) = head.split_at_checked(12)?;
        if !name.trim().is_empty() {
            phase = name.trim().to_owned();
        }
        Some((phase.clone(), kind.trim().to_owned(), figures.split_whitespace().last()?.to_owned()))
    });
    rows.collect()
}

fn figure(text: &str, phase: &str, kind: &str) -> String {
    let rows = last_columns(text);
    let row = rows.iter().find(|(of, name, _)| of == phase && name == kind);
    row.unwrap_or_else(|| panic!("no {kind} of {phase} in {text}")).2.clone()
}

/// Names below a directory, sorted.
fn below(scratch: &Scratch, directory: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![scratch.join(directory)];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            all.push(path.strip_prefix(scratch.join(directory)).unwrap().display().to_string());
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    all.sort_unstable();
    all
}

#[test]
fn a_tree_is_made_read_and_removed_by_three_command_lines() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("DIR")).unwrap();
    let made = good(&scratch, "-w -d -t 4 -n 10 -N 10 -s 128k DIR");
    assert_eq!(figure(&made, "MKDIRS", "Dirs total"), "40");
    assert_eq!(figure(&made, "WRITE", "Files total"), "400");
    assert_eq!(figure(&made, "WRITE", "Total MiB"), "50");
    assert!(!made.contains("IOPS"), "files of one block have no rate of their own for blocks: {made}");
    let names = below(&scratch, "DIR");
    assert_eq!(names.len(), 4 + 40 + 400);
    for name in ["r0", "r3/d9", "r2/d4/r2-f7"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
    assert_eq!(fs::metadata(scratch.join("DIR/r2/d4/r2-f7")).unwrap().len(), 128 << 10);

    let read = good(
        &scratch,
        "DIR --stat -r -t 4 -n 10 -N 10 -s 128k -b 32k --lat --dirstats --sync --csvfile r.csv --jsonfile r.json",
    );
    assert_eq!(figure(&read, "STAT", "Files total"), "400");
    assert_eq!(figure(&read, "READ", "Dirs total"), "40");
    for (phase, kind) in [
        ("STAT", "Files latency"),
        ("READ", "Files latency"),
        ("READ", "IO latency"),
        ("READ", "IOPS"),
        ("SYNC", "Elapsed time"),
    ] {
        figure(&read, phase, kind);
    }
    let csv = fs::read_to_string(scratch.join("r.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let of = |operation: &str, column: &str| {
        let at = |name: &str| rows[0].iter().position(|label| *label == name).unwrap();
        rows.iter().find(|row| row[at("operation")] == operation).unwrap()[at(column)]
    };
    assert_eq!((of("READ", "path type"), of("READ", "dirs"), of("READ", "files")), ("dir", "10", "10"));
    assert_eq!(
        (of("READ", "entries [last]"), of("STAT", "entries [last]"), of("READ", "truncate")),
        ("400", "400", "0")
    );
    assert_ne!(of("READ", "Ent lat us [avg]"), "");
    assert_eq!(of("SYNC", "entries [last]"), "");
    let json = fs::read_to_string(scratch.join("r.json")).unwrap();
    let objects: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let read = objects.iter().find(|object| object["phase_type"] == "READ").unwrap();
    assert_eq!(read["last_done"]["entries"], 400);
    let latency = &read["last_done"]["latency"];
    assert!(
        latency["entries"]["avg_us"].as_f64() > latency["IO"]["avg_us"].as_f64(),
        "a file is four blocks: {latency}"
    );

    let removed = good(&scratch, "-F -D -t 4 -n 10 -N 10 DIR");
    assert_eq!(figure(&removed, "RMFILES", "Files total"), "400");
    assert_eq!(figure(&removed, "RMDIRS", "Dirs total"), "40");
    assert_eq!(below(&scratch, "DIR"), Vec::<String>::new());
}

#[test]
fn what_was_corrupted_is_told_with_path_and_offset() {
    let scratch = Scratch::new();
    let words = "-t 2 -n 1 -N 3 -s 20k -b 8k --verify 7 data";
    good(&scratch, &format!("-d -w -r {words}"));
    good(&scratch, &format!("-r {words}"));
    let file = fs::File::options().write(true).open(scratch.join("data/r1/d0/r1-f2")).unwrap();
    file.write_all_at(b"x", 9000).unwrap();
    let ended = elbencho(&scratch, &format!("-r {words}"));
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("data/r1/d0/r1-f2") && ended.stderr.contains("offset 9000"),
        "{}",
        ended.stderr
    );
    let other = elbencho(&scratch, "-r -t 2 -n 1 -N 3 -s 20k -b 8k --verify 8 data");
    assert_eq!(other.code, Some(1), "another salt: {}", other.stdout);
}

#[test]
fn trees_of_the_tool_are_read_and_not_deleted() {
    let scratch = Scratch::new();
    for directory in ["r0/d0", "r0/d1", "r1/d0", "r1/d1"] {
        let at = scratch.join("theirs").join(directory);
        fs::create_dir_all(&at).unwrap();
        for file in 0..2 {
            fs::write(at.join(format!("{}-f{file}", &directory[..2])), [7; 4096]).unwrap();
        }
    }
    let read = good(&scratch, "-r --stat -t 2 -n 2 -N 2 -s 4k theirs");
    assert_eq!(figure(&read, "READ", "Files total"), "8");
    for words in ["-F -t 2 -n 2 -N 2", "-D -t 2 -n 2", "-w -t 2 -n 2 -N 2 -s 8k"] {
        let ended = elbencho(&scratch, &format!("{words} theirs"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stdout);
        assert!(
            ended.stderr.contains("not created by strata") && ended.stderr.contains("theirs/r"),
            "{}",
            ended.stderr
        );
    }
    assert_eq!(below(&scratch, "theirs").len(), 2 + 4 + 8);
    let allowed = scratch.run("as --destroy-data elbencho -F -D -t 2 -n 2 -N 2 theirs");
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    assert_eq!(below(&scratch, "theirs"), Vec::<String>::new());
}

#[test]
fn files_without_directories_lie_in_an_empty_directory() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("flat")).unwrap();
    good(&scratch, "-w -t 2 -n 0 -N 2 -s 4k flat");
    assert_eq!(below(&scratch, "flat"), ["r0-f0", "r0-f1", "r1-f0", "r1-f1"]);
    good(&scratch, "-r -F -t 2 -n 0 -N 2 -s 4k flat");
    assert_eq!(below(&scratch, "flat"), Vec::<String>::new());
    fs::create_dir(scratch.join("others")).unwrap();
    fs::write(scratch.join("others/r0-f0"), "mine").unwrap();
    let ended = elbencho(&scratch, "-w -n 0 -N 2 -s 4k others");
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert_eq!(fs::read_to_string(scratch.join("others/r0-f0")).unwrap(), "mine");
}

#[test]
fn threads_share_directories_and_files_get_their_length() {
    let scratch = Scratch::new();
    let made = good(
        &scratch,
        "-d -w -t 2 -n 3 -N 2 -s 8k -b 4k --dirsharing --trunctosize --preallocfile --rand shared",
    );
    assert_eq!(figure(&made, "MKDIRS", "Dirs total"), "3");
    assert_eq!(figure(&made, "WRITE", "Files total"), "12");
    assert_eq!(below(&scratch, "shared").len(), 1 + 3 + 12);
    // A longer file that is written again is cut to its length.
    good(&scratch, "-w -t 2 -n 3 -N 2 -s 4k --dirsharing --trunctosize shared");
    assert_eq!(fs::metadata(scratch.join("shared/r0/d2/r1-f1")).unwrap().len(), 4096);
    fs::remove_file(scratch.join("shared/r0/d0/r0-f0")).unwrap();
    let missing = elbencho(&scratch, "-F -t 2 -n 3 -N 2 --dirsharing shared");
    assert_eq!(missing.code, Some(1), "{}", missing.stdout);
    good(&scratch, "-F -D -t 2 -n 3 -N 2 --dirsharing --nodelerr shared");
    assert_eq!(below(&scratch, "shared"), Vec::<String>::new());
}

#[test]
fn empty_files_and_many_in_flight() {
    let scratch = Scratch::new();
    let empty = good(&scratch, "-d -w -r -F -D -t 2 -n 2 -N 5 empty");
    assert_eq!(figure(&empty, "READ", "Files total"), "20");
    assert!(!empty.contains("Throughput"), "{empty}");
    assert_eq!(below(&scratch, "empty"), Vec::<String>::new());
    let ended = elbencho(&scratch, "-d -w -r -F -D --iodepth 4 -t 2 -n 2 -N 5 -s 16k -b 4k --verify 3 deep");
    if ended.stderr.contains("does not allow io_uring") {
        return;
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(figure(&ended.stdout, "READ", "Files total"), "20");
}

#[test]
fn a_tree_from_a_list_is_made_verified_and_removed() {
    let scratch = Scratch::new();
    let list = "# a tree\nd empty\nf 100 a/small\nf 200000 a/b/large one\nf 0 none\nf 5000 a/middle\n";
    fs::write(scratch.join("list"), list).unwrap();
    let words = "--treefile list -t 3 -b 4k --sharesize 64k --verify 5 tree";
    let made = good(&scratch, &format!("-d -w --stat {words}"));
    assert_eq!(figure(&made, "MKDIRS", "Dirs total"), "3");
    assert_eq!(figure(&made, "STAT", "Files total"), "4");
    assert_eq!(
        below(&scratch, "tree"),
        ["a", "a/b", "a/b/large one", "a/middle", "a/small", "empty", "none"]
    );
    for (name, bytes) in [("a/b/large one", 200_000), ("a/middle", 5000), ("a/small", 100), ("none", 0)] {
        assert_eq!(fs::metadata(scratch.join("tree").join(name)).unwrap().len(), bytes, "{name}");
    }
    // Other numbers of threads read what three wrote.
    good(&scratch, "-r --treerand --treefile list -t 2 -b 4k --sharesize 8k --verify 5 tree");
    let file = fs::File::options().write(true).open(scratch.join("tree/a/b/large one")).unwrap();
    file.write_all_at(b"x", 150_000).unwrap();
    let ended = elbencho(&scratch, &format!("-r {words}"));
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stderr.contains("tree/a/b/large one, offset 150000"), "{}", ended.stderr);
    let removed = good(&scratch, &format!("-F -D {words}"));
    assert_eq!(figure(&removed, "RMFILES", "Files total"), "4");
    assert_eq!(below(&scratch, "tree"), Vec::<String>::new());
}

#[test]
fn a_scan_writes_the_list_and_others_trees_are_read_only() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.join("theirs/x/y")).unwrap();
    fs::write(scratch.join("theirs/x/y/data"), [7; 9000]).unwrap();
    fs::write(scratch.join("theirs/top"), [7; 10]).unwrap();
    let read = good(&scratch, "-r --treescan theirs --treefile list -t 2 theirs");
    assert_eq!(figure(&read, "READ", "Files total"), "2");
    assert_eq!(fs::read_to_string(scratch.join("list")).unwrap(), "d x\nd x/y\nf 10 top\nf 9000 x/y/data\n");
    let ended = elbencho(&scratch, "-F --treefile list theirs");
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(scratch.join("theirs/top").exists());
    // The same tree elsewhere, by strata's own words, which leave nothing.
    let copy = scratch.run("fs copy --tree-file list --threads 2 --verify");
    assert_eq!(copy.code, Some(0), "{}", copy.stderr);
    assert!(!scratch.join("copy").exists());
    let kept = scratch.run("fs copy --tree-file list --op write --keep --direct --tree-round-up 4k");
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    assert_eq!(fs::metadata(scratch.join("copy/x/y/data")).unwrap().len(), 12 << 10);
    fs::write(scratch.join("theirs/new"), "").unwrap();
    let other = elbencho(&scratch, "-r --treescan theirs --treefile list theirs");
    assert_eq!(other.code, Some(2), "a list is not written over: {}", other.stdout);
}
