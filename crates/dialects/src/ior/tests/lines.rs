//! Command lines of IOR, and what is asked of the load for them.

use workload::spec::{OnError, Spec, Warmup};

use super::{refusal, refusal_on, run, run_on};
use crate::options::asked::{assert_asks, assert_silent, made, with};
use crate::words::machine::{Machine, text_of, words};
use crate::{Destination, Request};

/// Asserts that a spec is one of files with these options and nothing else but what all have.
#[track_caller]
fn assert_is(spec: &Spec, options: &[(&str, &str)]) {
    let common = Spec {
        name: spec.name.clone(),
        targets: spec.targets.clone(),
        warmup: Some(Warmup::None),
        on_error: spec.on_error,
        ..made("filesystem", &[])
    };
    assert_eq!(*spec, with(common, options));
}

#[test]
fn a_bare_line_writes_and_reads_one_file() {
    let run = run("-o /mnt/f");
    assert_eq!(run.specs.len(), 2);
    let file = [("shape", "shared"), ("file-size", "1m"), ("block-size", "262144"), ("threads", "1")];
    assert_is(
        &run.specs[0],
        &[&file[..], &[("op", "write"), ("replace", "true"), ("verify", "true")]].concat(),
    );
    assert_is(&run.specs[1], &[&file[..], &[("op", "read"), ("no-fill", "true")]].concat());
    assert_eq!(run.specs[0].targets, ["/mnt/f"]);
    assert!(run.warnings.is_empty());
}

#[test]
fn the_lines_of_io500_are_read_as_written() {
    let easy = "-C -Q 1 -g -G 271 -k -e -t 2m -b 9920000m -F -N 4 -o /d/easy";
    let write = run(&format!("{easy} -w -D 300 -O stoneWallingWearOut=1,stoneWallingStatusFile=/r/easy"));
    let file = [
        ("shape", "private"),
        ("file-size", "9920000m"),
        ("block-size", "2097152"),
        ("threads", "4"),
        ("barriers", "true"),
        ("verify-run", "271"),
        ("keep", "true"),
        ("verify", "true"),
    ];
    let of_write =
        [("op", "write"), ("replace", "true"), ("time", "300s"), ("wear-out", "true"), ("end-fsync", "true")];
    assert_is(&write.specs[0], &[&file[..], &of_write].concat());
    assert_eq!(write.specs.len(), 1);
    assert_eq!(write.render.files(), [std::path::Path::new("/r/easy")]);

    let noted = Machine::new().text("/r/easy", "1234\n");
    let read = run_on(&format!("{easy} -r -R -O stoneWallingStatusFile=/r/easy"), &noted);
    let of_read = [("op", "read"), ("no-fill", "true"), ("rank-shift", "1"), ("transfers", "1234")];
    assert_is(&read.specs[0], &[&file[..], &of_read].concat());
    assert_eq!(read.specs[0].on_error, Some(OnError::Continue));
    assert!(read.render.files().is_empty());

    let hard = run(
        "-C -Q 1 -g -G 271 -k -e -t 47008 -b 47008 -s 10000000 -N 2 -o /d/hard -w -D 300 -O stoneWallingWearOut=1",
    );
    for (name, value) in
        [("shape", "shared"), ("file-size", "47008"), ("block-size", "47008"), ("segments", "10000000")]
    {
        assert_asks(&hard.specs[0], name, value);
    }
}

#[test]
fn random_reads_with_repeats_are_drawn_in_the_files_that_are_there() {
    let line = "-F -r -D 300 -z -z -t 4096 -b 4096 -s 10000000 -O stoneWallingWearOut=1 -N 2 -k -o /d/e";
    let there = Machine::new().file("/d/e.00000000", 10_000_000).file("/d/e.00000001", 9_000_001);
    let spec = &run_on(line, &there).specs[0];
    for (name, value) in [("file-size", "8998912"), ("order", "random-repeats"), ("transfers", "10000000")] {
        assert_asks(spec, name, value);
    }
    assert_silent(spec, "segments", "7");
    let spec = &run(line).specs[0];
    assert_asks(spec, "segments", "10000000");
}

#[test]
fn options_say_what_they_say_in_the_tool() {
    let first = |line: &str| run(&format!("{line} -o /m/f")).specs.remove(0);
    let rows: &[(&str, &str, &str)] = &[
        ("-w -z", "order", "random"),
        ("-w -F", "shape", "private"),
        ("-w -F -u", "unique-directories", "true"),
        ("-w -Y", "fsync", "1"),
        ("-w -e", "end-fsync", "true"),
        ("-w -K", "keep-on-error", "true"),
        ("-w -k", "keep", "true"),
        ("-w -m", "file-suffix", ".0"),
        ("-w -d 3", "start-delay", "3s"),
        ("-w -O interIODelay=20", "think-time", "20us"),
        ("-w -a DUMMY", "engine", "null"),
        ("-w --posix.odirect", "direct", "true"),
        ("-w -O useO_DIRECT=1", "direct", "true"),
        ("-w -t=1m -b=2m", "block-size", "1048576"),
        ("-r -C -Q 3 -N 8", "rank-shift", "3"),
        ("-W -C -Q 3 -N 8", "rank-shift", "4"),
        ("-r -Z -N 8", "rank-shift", "random"),
        ("-r -Z -X 5 -N 8", "seed", "5"),
        ("-r -R", "verify", "true"),
        ("-w -O stoneWallingWearOutIterations=2", "transfers", "2"),
        ("-w -O segmentCount=4", "segments", "4"),
        ("-w -O SEGMENTCOUNT=4,keepFile=1", "keep", "true"),
    ];
    for (line, name, value) in rows {
        assert_asks(&first(line), name, value);
    }
    for (line, name, value) in
        [("-w -E", "replace", "true"), ("-r", "rank-shift", "1"), ("-a DUMMY", "verify", "true")]
    {
        assert_silent(&first(line), name, value);
    }
    let all = run("-o a@b@c -F -N 3 -w -i 2 -W -r");
    assert_eq!(all.specs.len(), 6);
    assert_eq!(all.specs[0].targets, ["a", "b", "c"]);
    assert_eq!(run("-o a@b -w").specs[0].targets, ["a"], "one shared file is the first");
    let seeds: Vec<_> = run("-r -Z -X -5 -i 2 -N 2 -o f").specs.iter().map(|spec| spec.seed).collect();
    assert_eq!(seeds, [Some(5), Some(6)]);
    assert_eq!(run("-r -o f").warnings.len(), 1, "what it does not write stays");
}

#[test]
fn scripts_have_one_test_a_run() {
    let script = "a comment\nIOR START\n# one\napi=POSIX, transferSize=1m # what follows is none\nblockSize=4m\nrun\n\
                  --filePerProc=1\nrepetitions=2\nRUN\nRUN\nIOR STOP\nnonsense\n";
    let world = Machine::new().text("job", script);
    let specs = run_on("-N 2 -w -o f -f job", &world).specs;
    assert_eq!(specs.len(), 1 + 2 + 2);
    assert_asks(&specs[0], "shape", "shared");
    for spec in &specs[1..] {
        assert_asks(spec, "shape", "private");
        assert_asks(spec, "file-size", "4m");
    }
    for (script, part) in [
        ("blockSize=1m\nRUN\n", "IOR START"),
        ("IOR START\nRUN now\n", "is not a directive"),
        ("IOR START\nblokSize=3m\nRUN\n", "the closest match is blockSize"),
        ("IOR START\ncollective=1\nRUN\n", "no collective calls"),
    ] {
        let told = refusal_on("-f job", &Machine::new().text("job", script));
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(
        run_on("-f job", &Machine::new().text("job", "IOR START\ncollective=0\nRUN\nIOR STOP")).specs.len(),
        2
    );
    assert!(refusal("-f missing").contains("cannot read the script"));
}

#[test]
fn refusals_say_what_would_be_taken() {
    let rows = [
        ("-a MPIIO", "strata does not use MPI; use -a POSIX"),
        ("-a dfs", "dfuse"),
        ("-a XYZ", "use POSIX or DUMMY"),
        ("-c", "no collective calls"),
        ("-t 3k -b 4k", "-b 4KiB is not a multiple of -t 3KiB"),
        ("-t 0", "a number above 0"),
        ("-N none", "-N/--numTasks: \"none\" is not a whole number above 0"),
        ("-C -Z", "give one of them"),
        ("-z -C", "add -F, or give only one of them"),
        ("-O stoneWallingWearOut=1", "add -D SECONDS"),
        ("-O stoneWallingStatusFile=f", "add -k"),
        ("-k -w -O stoneWallingStatusFile=f", "add -D SECONDS and -O stoneWallingWearOut=1"),
        ("-k -r -O stoneWallingStatusFile=f", "run a write first with the same"),
        ("-u", "add -F"),
        ("-u -F -o a@b", "give one path"),
        ("-o a@@b", "a path is empty"),
        ("-w -r -z -z", "give -z once"),
        ("-w -r -z -D 3 -b 4m", "leave out -z or -D"),
        ("-a DUMMY -R", "no data to check"),
        ("-T 5", "limit each phase with -D SECONDS"),
        ("-M 50%", "does not allocate memory"),
        ("-O summaryFormat=XML", "use default, JSON or CSV"),
        ("-O checkRead", "write NAME=VALUE"),
        ("-O minTimeDuration=3", "a larger -s"),
        ("-l x", "use offset, incompressible"),
        ("-w file", "give the file with -o FILE"),
        ("--nothing", "is not an option"),
    ];
    for (line, part) in rows {
        let told = refusal(line);
        assert!(
            told.contains(part) && told.starts_with("ior:") && told.lines().count() == 1,
            "{line}: {told}"
        );
    }
    assert_eq!(run("-O minTimeDuration=0,memoryPerTask=0").specs.len(), 2, "what is off is not asked for");
}

#[test]
fn a_dry_run_and_help_touch_nothing() {
    for (line, part) in [("--dryRun -w -N 2", "dryRun              : 1"), ("-h", "-b, --blockSize SIZE")] {
        match super::super::parse(&words(line), &Machine::new()) {
            Ok(Request::Show(pieces)) => {
                let shown = text_of(&pieces, &Destination::Stdout);
                assert!(shown.contains(part), "{shown}");
            }
            _ => panic!("{line} runs"),
        }
    }
}

#[test]
fn the_page_has_every_option() {
    crate::words::tests::check_docs(&crate::ior::table::TABLE, "ior.md");
}
