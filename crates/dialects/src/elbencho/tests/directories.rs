//! Many files in directories.

use workload::spec::{OnError, Refill, Spec, Warmup};

use super::{machine, refusal, refusal_on, run, run_on};
use crate::options::asked::{assert_asks, assert_silent};
use crate::words::machine::{Machine, words};
use crate::{Progress, Request};

/// A directory and a file.
fn world() -> Machine {
    Machine::new().directory("/mnt/smb/mydir").file("/data/file", 1 << 30)
}

fn specs(line: &str) -> Vec<Spec> {
    run_on(line, &world()).specs
}

fn names(specs: &[Spec]) -> Vec<&str> {
    specs.iter().map(|spec| spec.name.as_deref().unwrap()).collect()
}

#[test]
fn the_lines_of_the_slides_run() {
    let read = &specs("/mnt/smb/mydir -r -t 3 -n 10 -N 30 -s 128k -b 128k --direct")[0];
    assert_eq!(read.layer.name, "filesystem");
    assert_eq!((read.targets.as_slice(), read.threads), (&["/mnt/smb/mydir".to_owned()][..], Some(3)));
    assert_eq!((read.block_size.as_deref(), read.keep), (Some("131072"), true));
    assert_eq!((read.warmup, read.on_error), (Some(Warmup::None), Some(OnError::Stop)));
    for (name, value) in [
        ("op", "read"),
        ("names", "elbencho"),
        ("dirs", "10"),
        ("files", "30"),
        ("file-size", "128k"),
        ("no-fill", "true"),
        ("direct", "true"),
    ] {
        assert_asks(read, name, value);
    }
    let write = specs("-w -d -t 4 -n 10 -N 100 -s 128k /mnt/smb/mydir");
    assert_eq!(names(&write), ["MKDIRS", "WRITE"]);
    assert_asks(&write[0], "op", "tree-create");
    assert_asks(&write[1], "op", "write");
    assert_eq!((write[0].refill, write[1].refill), (None, Some(Refill::Full)));
    assert_eq!(write[1].block_size.as_deref(), Some("131072"), "as small as the file");
}

#[test]
fn phases_are_in_the_order_of_the_tool() {
    let line = "-D -F -r --stat -w -d -n 2 -N 3 -s 8k -b 4k";
    let all = ["MKDIRS", "WRITE", "STAT", "READ", "RMFILES", "RMDIRS"];
    assert_eq!(names(&specs(&format!("{line} /mnt/smb/mydir"))), all);
    let run = run_on(
        "-w -r -i 2 --sync --dropcache --phasedelay 1 --verify 9 --verifydirect -s 4k /mnt/smb/mydir",
        &world(),
    );
    let steps = ["SYNC", "WRITE", "VERIFY", "SYNC", "READ", "SYNC"];
    assert_eq!(names(&run.specs), [steps, steps].concat());
    for (at, spec) in run.specs.iter().enumerate() {
        let is_sync = spec.name.as_deref() == Some("SYNC");
        let assert_is = if is_sync { assert_silent } else { assert_asks };
        assert_is(spec, "cache", "drop");
        assert_is(spec, "verify-run", "9");
        assert_eq!(spec.verify, !is_sync);
        assert_eq!(spec.start_delay.is_some(), at > 0);
        assert_eq!(spec.refill, None);
    }
    assert_eq!(run.warnings, ["--verifydirect reads the data back after the write phase, in a phase VERIFY"]);
}

#[test]
fn a_directory_is_meant_by_what_is_there_or_by_its_name() {
    for line in ["-w -d -s 4k new", "-w -n 1 -s 4k new", "-w -s 4k new/", "-w --dirsharing new"] {
        assert_eq!(specs(line)[0].layer.name, "filesystem", "{line}");
    }
    assert_eq!(specs("-w -s 4k new")[0].layer.name, "media", "a file, as for the tool");
}

#[test]
fn options_of_files_reach_the_phases_that_they_are_about() {
    let line = "-w -r -F -n 0 -N 4 -s 64k -b 4k --rand --trunc --preallocfile --nodelerr --dirsharing --blockvarpct 0 --blockvaralgo fast --timelimit 7";
    let all = specs(&format!("{line} /mnt/smb/mydir"));
    let [write, read, delete] = &all[..] else { panic!("{all:?}") };
    for (spec, name, value) in [
        (write, "order", "random"),
        (read, "order", "random-repeats"),
        (write, "truncate-first", "true"),
        (write, "preallocate", "true"),
        (delete, "ignore-missing", "true"),
        (write, "levels", "0"),
        (write, "shared-tree", "true"),
    ] {
        assert_asks(spec, name, value);
    }
    for (spec, name, value) in [
        (delete, "order", "random"),
        (read, "truncate-first", "true"),
        (read, "preallocate", "true"),
        (write, "dirs", "1"),
        (write, "truncate-to-size", "true"),
    ] {
        assert_silent(spec, name, value);
    }
    assert_eq!(write.refill, Some(Refill::Once));
    assert!(all.iter().all(|spec| spec.time.is_some()));
    let back = &specs("-w --backward --trunctosize -s 8k -b 4k /mnt/smb/mydir")[0];
    assert_asks(back, "order", "backward");
    assert_asks(back, "truncate-to-size", "true");
    assert_asks(&specs("-w /mnt/smb/mydir")[0], "file-size", "0");
    assert_asks(&specs("-w --rand --randalgo fast -s 8k -b 4k /mnt/smb/mydir")[0], "order", "random-repeats");
    let deep = &specs("-d -r --iodepth 8 /mnt/smb/mydir");
    assert_eq!((deep[0].depth, deep[1].depth), (None, Some(8)));
    assert_silent(&deep[0], "engine", "io_uring");
    assert_asks(&deep[1], "engine", "io_uring");
    assert_eq!(run_on("-r --live1n /mnt/smb/mydir", &world()).progress, Progress::Always);
}

#[test]
fn trees_come_from_a_list() {
    let line = "-d -w --stat --sync --treefile t --treescan file:///mnt/data --treerand --treeroundup 4k --sharesize 1m -b 64k";
    let run = run_on(&format!("{line} /mnt/smb/mydir"), &world());
    assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    for spec in run.specs.iter().filter(|spec| spec.name.as_deref() != Some("SYNC")) {
        assert_eq!(spec.block_size.as_deref(), Some("65536"), "by it shared files are dealt out");
        for (name, value) in [
            ("tree-file", "t"),
            ("tree-scan", "/mnt/data"),
            ("item-order", "random"),
            ("tree-round-up", "4k"),
            ("share-size", "1m"),
        ] {
            assert_asks(spec, name, value);
        }
        assert_silent(spec, "dirs", "1");
    }
    let told = run_on("-r --treefile t -n 4 -s 4k /mnt/smb/mydir", &world()).warnings;
    assert_eq!(
        told,
        ["dirs", "size"].map(|name| format!(
            "--{name} changes nothing with --treefile, which lists the directories and files"
        ))
    );
}

#[test]
fn options_that_change_nothing_are_told() {
    let told = |line: &str| run_on(line, &world()).warnings;
    assert_eq!(
        told("-d -w -n 0 -s 4k /mnt/smb/mydir"),
        ["-d and -D change nothing with -n 0: there are no directories"]
    );
    assert_eq!(
        told("--stat --trunc --dirstats --nodelerr /mnt/smb/mydir"),
        [
            "--trunc changes nothing without -w",
            "--dirstats changes nothing without -w or -r",
            "--nodelerr changes nothing without -F or -D"
        ]
    );
    assert_eq!(told("-w -F --timelimit 5 /mnt/smb/mydir").len(), 1);
}

#[test]
fn what_directories_cannot_do_is_refused() {
    for (line, part) in [
        ("-w --rwmixpct 50", "concurrent = true"),
        ("-w --rwmixthr 1", "concurrent = true"),
        ("-r --iodepth 5000", "4096"),
        ("-r --mmap", "leave it out"),
        ("-r --strided", "--rand or --backward"),
        ("-r --infloop --timelimit 5", "each phase visits each file once"),
        ("-r --limitread 1m", "strata fs --rate"),
        ("-r --randamount 1m", "always cover the whole file"),
        ("-r --treerand", "add --treefile FILE"),
        ("-r --treescan /mnt", "the name of a new file"),
        ("-r --treefile t --treescan s3://b", "give a directory"),
        ("-r --treefile t --treeroundrob", "leave it out"),
        ("-r --treefile t --dryrun", "leave it out"),
        ("-r --statinline", "use --stat"),
        ("-w --readinline", "use -w -r"),
        ("-r --flock range", "file locks are not supported"),
        ("-r --fadv seq", "--dropcache"),
        ("-r --rand --backward", "give one of them"),
        ("-r --rand -s 1k -b 4k", "smaller than the block size"),
        ("-w --trunc --trunctosize", "give one of them"),
        ("-r --verifydirect", "--verify SALT"),
        ("-w --verify 1 --rand --randalgo fast -s 8k -b 4k", "leave out --randalgo"),
        ("-t 2", "-d (make directories)"),
        ("-r /mnt/smb/mydir", "only one directory can be measured"),
        ("-w -N 0", "files"),
    ] {
        let error = refusal_on(&format!("{line} /mnt/smb/mydir"), &world());
        assert!(error.contains(part) && error.lines().count() == 1, "{line}: {error}");
    }
    assert!(refusal("-r -n 1 /data/none").contains("create its directories and files first (-d -w)"));
    assert!(refusal("-r -n 1 /data/file").contains("-n/--dirs applies only to directories"));
    assert!(refusal_on("-r -n 1 /data/file /mnt/smb/mydir", &world()).contains("2 paths"));
}

#[test]
fn a_dry_run_counts_entries() {
    let line = "-d -w -F -t 4 -n 10 -N 100 -s 128k --dryrun /mnt/smb/mydir";
    let Ok(Request::Show(pieces)) = super::super::parse(&words(line), &world()) else {
        panic!("a dry run shows");
    };
    assert_eq!(
        String::from_utf8(pieces[0].content.clone()).unwrap(),
        "Phase: MKDIRS\n* Entries per thread: 10 | 0 K | 0 M\n* Entries total:      40 | 0 K | 0 M\n\
         Phase: WRITE\n* Entries per thread: 1000 | 1 K | 0 M\n* Entries total:      4000 | 4 K | 0 M\n\
         * Bytes per thread:   131072000 | 125 MiB | 0 GiB\n* Bytes total:        524288000 | 500 MiB | 0 GiB\n\
         Phase: RMFILES\n* Entries per thread: 1000 | 1 K | 0 M\n* Entries total:      4000 | 4 K | 0 M\n"
    );
    let Ok(Request::Show(_)) = super::super::parse(&words("--help-multi"), &machine()) else {
        panic!("help is shown");
    };
    assert!(run("-r /data/file").warnings.is_empty());
}
