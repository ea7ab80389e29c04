//! Bad input: refused in one line that says what would be accepted, with exit code 2, and nothing is touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::support::Scratch;

/// Name, content and times of everything in a directory.
fn snapshot(directory: &Path) -> BTreeMap<String, (Vec<u8>, i64, i64)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let look = |entry: fs::DirEntry| {
        let metadata = entry.metadata().unwrap();
        let content = if metadata.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
        (entry.file_name().into_string().unwrap(), (content, metadata.mtime(), metadata.mtime_nsec()))
    };
    entries.map(look).collect()
}

/// A directory with what the lines below refer to.
fn prepared() -> Scratch {
    let scratch = Scratch::new();
    fs::write(scratch.join("data"), vec![7; 1 << 20]).unwrap();
    fs::write(scratch.join("empty"), "").unwrap();
    fs::create_dir(scratch.join("directory")).unwrap();
    std::os::unix::fs::symlink("nowhere", scratch.join("dangling")).unwrap();
    scratch
}

fn assert_refused(scratch: &Scratch, words: &str, expected: &str) {
    let before = snapshot(scratch.path());
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(2), "{words}: {ended:?}");
    assert_eq!(ended.stdout, "", "{words}");
    assert_eq!(ended.stderr.lines().count(), 1, "{words}: {}", ended.stderr);
    assert!(
        ended.stderr.starts_with("strata: ") && ended.stderr.contains(expected),
        "{words}: {}",
        ended.stderr
    );
    assert!(snapshot(scratch.path()) == before, "{words}: touched something");
}

fn assert_all_refused(table: &[(&str, &str)]) {
    let scratch = prepared();
    for (words, expected) in table {
        assert_refused(&scratch, words, expected);
    }
}

#[test]
fn values() {
    assert_all_refused(&[
        ("media data --op read -s 1zz", "--size: \"1zz\" is not a size: use a number with k, m, g, t"),
        ("media data --op read -s 0", "use a size above 0"),
        ("media data --op read -s -1", "\"-1\" is not a size"),
        ("media data --op read -b 1zz", "--block-size: \"1zz\" is not a block size"),
        ("media data --op read -b 0", "use at least 1 byte"),
        ("media data --op read -b 2g -s 4g", "use 1GiB or less"),
        ("media data --op read -q 0", "use a whole number from 1 to 65536"),
        ("media data --op read -q 65537", "use a whole number from 1 to 65536"),
        ("media data --op read -t 0", "use a whole number from 1 to 4096"),
        ("media data --op read -t -1", "--threads: \"-1\""),
        ("media data --op randrw --mix 101", "a percentage of reads from 0 to 100"),
        ("media data --op randrw --mix 150", "a percentage of reads from 0 to 100"),
        ("media data --op randrw --mix read=70,write=25", "shares that add up to 100"),
        ("media data --op read --time 0", "use a duration above 0"),
        ("media data --op read --time 1y", "use a number with ns, us, ms, s, m or h"),
        ("media data --op read --count 0", "use a whole number from 1"),
        ("media data --op read --rate 0", "use operations per second above 0"),
        ("media data --op read --interval 1us", "use 1ms or more"),
        ("media data --op read --ladder depth=1,0", "use a whole number from 1 to 65536"),
        ("media data --op read --ladder width=1", "WHAT one of depth, threads, rate, block-size"),
        ("media data --op reed", "randread"),
        ("media data --op read --on-error maybe", "use one of stop, continue"),
        ("media data --op read --live sometimes", "use auto, line, full or none"),
        ("media data --op read --pattern wobbly", "wobbly"),
        ("media data --op write --content xyz", "xyz"),
        ("media data --op write --compress 101", "101"),
        ("media data --op read --sync perhaps", "use one of none, dsync, sync"),
        ("media data --op read --layout holes", "use one of auto, fill, allocate, sparse"),
        ("media data --op read --verify --verify-run 0", "use a whole number from 1"),
        ("media data --op read --seed x", "seed"),
        ("stack --size 1m --dir directory", "use 64m or more"),
    ]);
}

#[test]
fn words() {
    assert_all_refused(&[
        ("media data", "no operation; give --op: read, write, randread"),
        ("media", "TARGET"),
        ("media data --op", "--op"),
        ("media data --op read --bogus", "unexpected argument '--bogus'"),
        ("media data --op read --blocksize 4k", "similar argument exists: '--block-size'"),
        ("media data --op read --op write", "--op"),
        ("frobnicate", "unrecognized subcommand 'frobnicate'"),
        ("completions tcsh", "tcsh"),
        ("report missing.json", "No such file or directory"),
        ("report data", "not a record"),
        ("report directory", "directory"),
        ("run missing.toml", "No such file or directory"),
        ("stack --dir missing", "no such directory (dir=missing)"),
        ("stack --dir data", "no such directory (dir=data)"),
        (
            "stack --dir directory --device missing",
            "strata: stack: the block device does not exist (device=missing)",
        ),
        ("stack --dir directory --device data", "the block device does not exist (device=data)"),
    ]);
}

#[test]
fn targets() {
    assert_all_refused(&[
        ("media missing --op read", "no such file (path=missing); give --size to create it"),
        ("media missing/file --op write -s 1m", "no such directory"),
        ("media directory --op read", "is a directory"),
        ("media dangling --op write -s 1m", "dangling symbolic link"),
        ("media s3://bucket --op read", "not a target of the media layer"),
        ("media data data --op read", "a target is given twice"),
        ("media data null: --op read", "null: and mem: cannot be combined with other targets"),
        (
            "media data --op read -b 2m",
            "block size 2MiB is larger than the range of data (1MiB): use 1MiB or less",
        ),
        ("media new --op write -s 4k -b 8k", "use 4KiB or less"),
        ("media data --op read --offset 2m", "past the end of data"),
        ("media data --op read -s 2m", "strata did not create it"),
        ("media data --op read -t 1000", "cannot share"),
        (
            "media new --op randwrite -b 4k -s 32k --pattern zoned:90/10,10/90",
            "use zones of at least one block",
        ),
        ("media new --op write -b 64k -s 256k --verify -q 8", "use a larger --size or a smaller --depth"),
        (
            "media new --op write -s 1m --zones zbd",
            "is not a zoned block device: give a size for emulated zones",
        ),
        ("media new --op write -s 1m --zones zbd,size=300k", "use multiples of that for --offset and --size"),
        ("media new --op write -s 1m -b 512k --zones zbd,size=256k", "its capacity is 256KiB"),
        ("media new --op write -s 1m -b 4k --zones zbd,size=256k --verify", "leave out one of them"),
        ("media new --op write -s 1m -b 4k --zones zbd,size=256k -t 8", "8 threads cannot share 4 zones"),
        (
            "media new --op write -s 1m -b 4k --zones zbd,size=256k,max-open=2 -t 4",
            "use --threads 2, or --share whole",
        ),
        ("media data --op read --cores 65535", "CPU 65535 does not exist"),
        ("media empty --op write -s 1m --cores 65535", "CPU 65535 does not exist"),
        ("media new --op write -s 1m --numa 1023", "no NUMA node 1023"),
    ]);
}

#[test]
fn direct_needs_alignment() {
    let scratch = prepared();
    let record = scratch.measured("media data --op read --count 1");
    let alignment = record["phases"][0]["plan"]["targets"][0]["direct_alignment_bytes"].as_u64().unwrap();
    if alignment == 0 {
        return crate::support::skipped("direct_needs_alignment", "the file system takes no direct I/O");
    }
    fs::remove_file(scratch.join("record.json")).unwrap();
    let expected = format!("use multiples of {alignment} bytes");
    for words in ["-b 1000", "-b 4k --offset 100", "-b 4100:50,4k:50"] {
        assert_refused(&scratch, &format!("media data --op read --direct {words}"), &expected);
    }
    assert_refused(&scratch, "media data --op randread --direct -b 4k --align 100", &expected);
}

#[test]
fn combinations() {
    assert_all_refused(&[
        (
            "media data --op read --engine bogus",
            "use one of null, mem, psync, pvsync2, libaio, io_uring, mmap",
        ),
        ("media data --op read --engine psync -q 4", "use --threads 4, or --engine io_uring or libaio"),
        ("media data --op read --engine psync --sqpoll", "--sqpoll is not an option of engine psync"),
        ("media data --op read --engine io_uring --hipri", "--hipri is not an option of engine io_uring"),
        ("media data --op read --engine mmap --direct", "--direct has no effect on engine mmap"),
        ("media data --op discard --engine ftruncate", "engine ftruncate has no discard: it supports write"),
        ("media null: --op read --engine psync", "null: is measured by engine null"),
        ("media mem: --op read --engine psync", "mem: is measured by engine mem"),
        ("media data --op read --engine mem", "give the target mem:"),
        ("media data --op read --mix 50", "--mix goes with --op readwrite or randrw"),
        ("media data --op read,write --ladder depth=1,2", "a ladder requires one operation in one phase"),
        ("media data --op read --saturate --rate 100", "leave out --rate and --ladder"),
        ("media data --op read --arrivals poisson", "add --rate"),
        ("media data --op read --batch-min 2", "use 1 or less"),
        ("media data --op read --pattern zipf:1.0", "use sequential, backward or strided"),
        ("media data --op randread --pattern backward", "use permutation, fitted, uniform, zipf"),
        ("media data --op read --align 4k", "--align is for random operations"),
        ("media new --op write -s 1m --sync-call fsync", "add one of them"),
        ("media data --op read --think-time 1ms --no-catch-up", "give both"),
        ("media data --op read --think-after 1s", "require --think-time: add it"),
        ("media data --op read --think-time 1ms --think-spin 2ms", "use a shorter --think-spin"),
        ("media data --op read --think-blocks 2", "requires --think-time: add it"),
        ("media data --op read --verify-run 2", "requires --verify: add it"),
        ("media new --op write -s 1m --no-read-back", "requires --verify: add it"),
        ("media data --op read --cores-policy shared", "requires --cores: add it"),
        ("media new --op write -s 1m --verify --content zero", "--verify generates its own data"),
        ("media data --op read --verify-interval 4k", "--verify-interval requires --verify"),
        ("media data --op read --cores 0 --numa 0", "exclude each other: give one of them"),
        ("media data --op read --json - --csv -", "give one of them a file"),
        ("media data --op read --json missing/record", "cannot write"),
        ("media data --op read --json directory", "directory"),
        ("media data --op read --out data", "cannot make the directory"),
        ("media data --op read --live-csv missing/rows", "missing/rows"),
        ("media data --op read --json data", "this is a target"),
        ("media data --op read --csv ./data", "this is a target"),
        ("media data --op read --live-csv data", "this is a target"),
        ("media data --op read --json both --csv ./both", "another output"),
    ]);
}

#[test]
fn job_files() {
    let scratch = prepared();
    let table: &[(&str, &str)] = &[
        ("targets = ['data']\nop = 'read'\nx = [\n", "line "),
        ("targets = ['data']\n[[phase]]\nop = 'read'\n[[phase]]\ndepht = 3\n", "phase 2: depht: "),
        ("targets = ['data']\n[[phase]]\nop = 'read'\ndepht = 3\n", "depth (the closest match)"),
        ("targets = ['data']\nblock_size = '1zz'\n", "block_size: \"1zz\""),
        ("targets = 'data'\nop = 'read'\n", "an array of strings"),
        ("targets = ['data']\nphase = 3\n", "[[phase]]"),
        ("targets = ['data']\n", "no operation"),
        ("op = 'read'\n", "no target"),
        ("targets = ['missing']\nop = 'read'\n", "no such file"),
        ("targets = ['data']\nop = 'read'\nthreads = 0\n", "threads: \"0\""),
        ("targets = ['data']\nop = 'read'\nthreads = -1\n", "threads: \"-1\""),
        ("targets = ['data']\nop = 'read'\ndirect = 'maybe'\n", "use one of true, false"),
        ("targets = ['data']\nop = 'read'\nsize = { a = 1 }\n", "size: "),
        // The second phase is wrong: the first must not have begun.
        (
            "targets = ['new']\nsize = '1m'\n[[phase]]\nop = 'write'\n[[phase]]\nop = 'read'\nblock_size = '2m'\n",
            "2MiB",
        ),
    ];
    for (text, expected) in table {
        fs::write(scratch.join("job.toml"), text).unwrap();
        assert_refused(&scratch, "run job.toml", expected);
    }
    fs::write(scratch.join("job.toml"), "targets = ['data']\nop = 'read'\ndepth = 'x'\n\u{1}").unwrap();
    assert_refused(&scratch, "run job.toml", "line 4");
}

#[test]
fn nothing_at_all_shows_the_help() {
    let ended = Scratch::new().run("");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    for command in ["stack", "media", "run", "report", "list"] {
        assert!(ended.stderr.contains(command), "{}", ended.stderr);
    }
}
