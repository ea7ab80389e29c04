//! Known specs for command lines.

use media::of;
use media::spec::{CachePolicy, Layout};
use units::{ByteSize, Rate, Span};
use workload::spec::{Operation, Refill, Share, Warmup};

use super::{GIB, machine, run, run_on, spec, specs};
use crate::words::machine::{Machine, words};
use crate::{Progress, Request};

/// Percent of reads of a mix.
fn reads(spec: &workload::spec::Spec) -> Option<u8> {
    of(spec).mix.map(|mix| mix.read_percent)
}

#[test]
fn the_lines_of_the_slides_run() {
    let fresh = Machine::new();
    let write = &run_on("-w -s 50g /mnt/smb/myfile1 /mnt/smb/myfile2", &fresh).specs[0];
    assert_eq!(write.targets, ["/mnt/smb/myfile1", "/mnt/smb/myfile2"]);
    assert_eq!(of(write).operations, [Operation::Write]);
    assert_eq!((of(write).size, write.block_size.as_deref()), (Some(ByteSize(50 * GIB)), Some("1048576")));
    assert_eq!((write.threads, write.depth, of(write).engine.as_deref()), (Some(1), Some(1), Some("psync")));
    assert_eq!((write.time, write.count, of(write).options.direct), (None, None, false));
    assert_eq!((write.warmup, write.share), (Some(Warmup::None), Some(Share::Partition)));
    assert_eq!(
        (of(write).layout, write.refill, write.keep),
        (Some(Layout::Sparse), Some(Refill::Full), true)
    );

    let line = "-r -t 4 -b 4k --lat --direct --rand --timelimit 10 /mnt/smb/myfile1 /mnt/smb/myfile2";
    let read = spec(line);
    assert_eq!(of(&read).operations, [Operation::RandRead]);
    assert_eq!(
        (read.threads, of(&read).options.direct, read.pattern.as_deref()),
        (Some(4), true, Some("uniform"))
    );
    assert_eq!(read.time, Some(Span(10_000_000_000)));
    assert_eq!(read.count, Some(2 * 50 * GIB / 4096), "ends with its work if that is sooner");
    assert_eq!((read.refill, of(&read).layout, of(&read).cache), (None, None, None));

    let tmpfs = Machine::new().file("/mnt/tmpfs/file", GIB);
    for block in ["4k", "16k", "64k", "256k", "1m"] {
        let line = format!("--csvfile results.csv -t 4 -r -b {block} /mnt/tmpfs/file --timelimit 10 --rand");
        let run = run_on(&line, &tmpfs);
        assert_eq!(run.specs[0].block_size, Some(block.parse::<ByteSize>().unwrap().0.to_string()));
        assert_eq!(run.render.files(), [std::path::PathBuf::from("results.csv")]);
    }
}

#[test]
fn a_slip_of_the_slides_is_taken_as_meant() {
    let paths: Vec<String> = (1..=128).map(|number| format!("/data/file{number}")).collect();
    let world = paths.iter().fold(Machine::new(), |world, path| world.file(path, 10 * GIB));
    let run = run_on(&format!("-t 128 -r -s 10g -b 1m --direct -rand {}", paths.join(" ")), &world);
    assert_eq!(run.warnings, ["-rand is taken as --rand"]);
    assert_eq!((run.specs[0].targets.len(), run.specs[0].threads), (128, Some(128)));
    assert_eq!(of(&run.specs[0]).operations, [Operation::RandRead]);
    assert_eq!(run.specs[0].count, None, "one pass draws as many as there are blocks");
}

#[test]
fn brackets_in_paths_are_expanded() {
    let fresh = Machine::new();
    let targets = |line: &str| run_on(line, &fresh).specs[0].targets.clone();
    assert_eq!(targets("-w -s 1g f[1-3]"), ["f1", "f2", "f3"]);
    assert_eq!(
        targets("-w -s 1g d[1,3]/f[08-10]"),
        ["d1/f08", "d1/f09", "d1/f10", "d3/f08", "d3/f09", "d3/f10"]
    );
    assert_eq!(targets("-w -s 1g f[3-1]x"), ["f3x", "f2x", "f1x"]);
    assert_eq!(targets("-w -s 1g f[a] g[] file:///x"), ["f[a]", "g[]", "/x"]);
    assert_eq!(targets("-w -s 1g --nopathexp f[1-3] --path g"), ["g", "f[1-3]"]);
}

#[test]
fn sizes_with_every_suffix_are_exact() {
    let size =
        |text: &str| of(&run_on(&format!("-w -s {text} -b 1k f"), &Machine::new()).specs[0]).size.unwrap().0;
    assert_eq!((size("1MiB"), size("1.5g"), size("4k"), size("2M")), (1 << 20, 3 * GIB / 2, 4096, 2 << 20));
}

#[test]
fn engines_and_queues() {
    let engine = |options: &str| of(&spec(&format!("-r {options} /data/file"))).engine.clone().unwrap();
    assert_eq!(
        [engine(""), engine("--iodepth 1"), engine("--iodepth 2"), engine("--mmap")],
        ["psync", "psync", "libaio", "mmap"]
    );
    assert_eq!(spec("-r --iodepth 16 /data/file").depth, Some(16));
}

#[test]
fn write_and_read_are_phases_in_fixed_order_and_iterations() {
    let run = run_on("-r -w -i 2 --phasedelay 3 --timelimit 9 -s 1g f", &Machine::new());
    let names: Vec<_> = run.specs.iter().map(|spec| spec.name.clone().unwrap()).collect();
    assert_eq!(names, ["WRITE", "READ", "WRITE", "READ"]);
    let delays: Vec<_> = run.specs.iter().map(|spec| spec.start_delay.map(|delay| delay.0)).collect();
    assert_eq!(delays, [None, Some(3_000_000_000), Some(3_000_000_000), Some(3_000_000_000)]);
    assert!(run.specs.iter().all(|spec| !spec.concurrent && spec.time == Some(Span(9_000_000_000))));
    assert_eq!(run.warnings, ["if --timelimit ends a phase, the later phases still run"]);
}

#[test]
fn orders_of_blocks() {
    let pattern = |line: &str| spec(line).pattern;
    assert_eq!(pattern("-r --backward /data/file").as_deref(), Some("backward"));
    assert_eq!(pattern("-r /data/file"), None);
    assert_eq!(pattern("-w --rand -s 1g /dev/nvme0n1").as_deref(), Some("permutation"));
    assert_eq!(pattern("-w --rand --randalgo fast -s 1g /dev/nvme0n1").as_deref(), Some("uniform"));
    assert_eq!(pattern("-r --strided /data/file"), None, "one thread takes all blocks in order");
    let unaligned = spec("-r --rand --norandalign -b 4k --randamount 10m -t 2 /data/file");
    assert_eq!((of(&unaligned).align, unaligned.count), (Some(ByteSize(1)), Some(2560)));
    let direct = run("-r --rand --norandalign --direct -b 4k /data/file");
    assert_eq!((of(&direct.specs[0]).align, direct.specs[0].count), (None, None));
    assert_eq!(direct.warnings, ["--norandalign is ignored: --direct requires aligned positions"]);
    let amount = run("-r --rand --randamount 10000000 -b 4k -t 2 /data/file");
    assert_eq!(amount.specs[0].count, Some(2440));
    assert_eq!(
        amount.warnings,
        ["--randamount is reduced to 9994240 bytes, a whole number of blocks per thread"]
    );
    let endless = spec("-r --infloop --timelimit 5 /data/file");
    assert_eq!((endless.time, endless.count), (Some(Span(5_000_000_000)), None));
}

#[test]
fn strided_threads_take_blocks_in_turn() {
    let specs = specs("-r --strided -t 4 -b 1m --cores 0,1 /data/file");
    assert_eq!(specs.len(), 4);
    for (thread, spec) in (0u64..).zip(&specs) {
        assert_eq!(of(spec).offset.map_or(0, |offset| offset.0), thread << 20);
        assert_eq!(of(spec).size, Some(ByteSize(GIB - (thread << 20))));
        assert_eq!(
            (spec.threads, spec.count, spec.pattern.as_deref()),
            (Some(1), Some(256), Some("strided:4"))
        );
        assert_eq!((spec.concurrent, spec.cores.as_ref().unwrap()[0]), (thread > 0, (thread % 2) as u32));
    }
}

#[test]
fn mixes_are_in_the_write_phase() {
    let mixed = spec("-w --rwmixpct 70 --rand -b 4k -s 1g /dev/nvme0n1");
    assert_eq!((of(&mixed).operations.as_slice(), reads(&mixed)), (&[Operation::RandRw][..], Some(70)));
    assert_eq!((mixed.pattern.as_deref(), mixed.name.as_deref()), (Some("permutation"), Some("RWMIX70")));
    assert_eq!(of(&mixed).layout, None, "what is read must be filled");
    let edges = ["0", "100"].map(|percent| {
        of(&spec(&format!("-w --rwmixpct {percent} -s 1g /dev/nvme0n1"))).mix.unwrap().read_percent
    });
    assert_eq!(edges, [0, 100]);

    let split = specs("-w --rwmixthr 1 -t 4 -b 1m -s 1g --limitread 10m --limitwrite 20m /dev/nvme0n1");
    let shape = |at: usize| {
        let spec = &split[at];
        (
            of(spec).operations[0],
            spec.threads.unwrap(),
            of(spec).offset.map_or(0, |offset| offset.0),
            of(spec).size.unwrap().0,
        )
    };
    assert_eq!(shape(0), (Operation::Write, 3, GIB / 4, GIB / 4 * 3));
    assert_eq!(shape(1), (Operation::Read, 1, 0, GIB / 4));
    assert_eq!((split[0].concurrent, split[1].concurrent), (false, true));
    assert_eq!((split[0].rate, split[1].rate), (Rate::new(60.0).ok(), Rate::new(10.0).ok()));
    let all = spec("-w --rwmixthr 2 -t 2 -s 1g /dev/nvme0n1");
    assert_eq!((of(&all).operations[0], all.name.as_deref()), (Operation::Read, Some("MIX-T2")));
    assert_eq!(of(&spec("-w --rwmixthr 0 -s 1g /dev/nvme0n1")).operations[0], Operation::Write);
    let many = specs("-w --rwmixthr 1 -t 4 -b 1m -s 1g /dev/nvme0n1 /dev/nvme1n1");
    assert_eq!((of(&many[1]).size, many[1].targets.len()), (Some(ByteSize(GIB / 4)), 2));
}

#[test]
fn verification_carries_the_salt() {
    let run = run_on("-w -r --verify 7 -s 1g f", &Machine::new());
    for spec in &run.specs {
        assert!(spec.verify && of(spec).no_read_back);
        assert_eq!((of(spec).verify_run, spec.refill), (Some(7), None));
    }
    let direct = run_on("-w --verify 7 --verifydirect -s 1g f", &Machine::new());
    assert!(!of(&direct.specs[0]).no_read_back);
    assert_eq!(direct.warnings, ["--verifydirect reads the data back after the write phase"]);
    assert!(!spec("-r --verify 0 /data/file").verify);
    assert!(spec("-r --rand --verify 3 /data/file").verify);
}

#[test]
fn data_caches_and_files() {
    let fresh = |line: &str| run_on(line, &Machine::new()).specs.remove(0);
    assert_eq!(fresh("-w -s 1g --blockvarpct 0 --blockvaralgo strong f").refill, Some(Refill::Once));
    assert_eq!(of(&fresh("-w -s 1g --preallocfile f")).layout, Some(Layout::Allocate));
    assert_eq!(of(&fresh("-w -s 1g --trunctosize --trunc f")).layout, Some(Layout::Sparse));
    assert!(!fresh("-w -F -s 1g f").keep);
    assert_eq!(of(&spec("-w -s 1g /dev/nvme0n1")).layout, None);
    let cold = run_on("-w -r --sync --dropcache --timelimit 4 -s 1g f", &Machine::new());
    assert_eq!((of(&cold.specs[0]).cache, of(&cold.specs[1]).cache), (None, Some(CachePolicy::Drop)));
    assert!(!of(&cold.specs[0]).end_fsync);
    let synced = run_on("-w -r --sync -s 1g f", &Machine::new());
    assert_eq!((of(&synced.specs[0]).end_fsync, of(&synced.specs[1]).end_fsync), (true, false));
    assert_eq!(synced.warnings, ["--sync runs at the end of the write phase and counts in its time"]);
}

#[test]
fn limits_are_rates_of_all_threads() {
    assert_eq!(spec("-r -t 4 -b 1m --limitread 100m /data/file").rate, Rate::new(400.0).ok());
    assert_eq!(spec("-w -t 2 -b 4k -s 1g --limitwrite 1m /dev/nvme0n1").rate, Rate::new(512.0).ok());
    assert_eq!(spec("-r --limitread 0 /data/file").rate, None);
}

#[test]
fn binding_and_progress() {
    assert_eq!(spec("-r --cores all /data/file").cores, Some((0..8).collect()));
    assert_eq!(spec("-r --cores 0,[2-3] /data/file").cores, Some(vec![0, 2, 3]));
    assert_eq!(spec("-r --zones [0-1] /data/file").numa, Some(vec![0, 1]));
    let progress = |option: &str| run(&format!("-r {option} /data/file")).progress;
    assert_eq!(
        [progress(""), progress("--live1"), progress("--live1n"), progress("--nolive")],
        [Progress::Auto, Progress::Auto, Progress::Always, Progress::Never]
    );
}

#[test]
fn what_is_made_smaller_is_told() {
    let small = run("-r -s 300k /data/file");
    assert_eq!(small.specs[0].block_size.as_deref(), Some("307200"));
    assert_eq!(small.warnings, ["the block size is reduced to the path size of 307200 bytes"]);
    let odd = run("-r -s 10001 -b 1k /data/file");
    assert_eq!(of(&odd.specs[0]).size, Some(ByteSize(9216)));
    assert_eq!(odd.warnings, ["the last 785 bytes of each path are not used: they are less than a block"]);
    let uneven = run("-r -s 10m -t 3 --timelimit 5 /data/file");
    assert!(uneven.warnings[0].starts_with("10 blocks cannot be divided evenly among 3 threads"));
    let idle = run("-r --preallocfile --randamount 1m --latpercent9s 2 --nocsvlabels /data/file").warnings;
    assert_eq!(
        idle,
        [
            "--preallocfile changes nothing without -w",
            "--randamount changes nothing without --rand",
            "--latpercent9s changes nothing without --latpercent",
            "--nocsvlabels changes nothing without --csvfile",
        ]
    );
}

#[test]
fn configuration_files_give_way_to_the_command_line() {
    let text = "# a comment\nthreads = 8\nblock=64k\nlat=true\ndirect=1 # too\nread=true\nwrite=false\n\n";
    let world = machine().text("/etc/e.conf", text);
    let spec = &run_on("-c /etc/e.conf -t 2 /data/file", &world).specs[0];
    assert_eq!(
        (spec.threads, of(spec).options.direct, spec.block_size.as_deref()),
        (Some(2), true, Some("65536"))
    );
    let off = run_on("-c /etc/e.conf --direct=false /data/file", &world);
    assert_eq!((of(&off.specs[0]).options.direct, off.specs[0].threads), (false, Some(8)));
}

#[test]
fn a_dry_run_shows_how_much() {
    let Ok(Request::Show(pieces)) =
        super::super::parse(&words("-w -r -t 4 -s 1g --dryrun f1 f2"), &Machine::new())
    else {
        panic!("a dry run shows");
    };
    assert_eq!(
        String::from_utf8(pieces[0].content.clone()).unwrap(),
        ["WRITE", "READ"]
            .map(|name| format!(
                "Phase: {name}\n* Entries per thread: 2 | 0 K | 0 M\n* Entries total:      8 | 0 K | 0 M\n\
                 * Bytes per thread:   536870912 | 512 MiB | 0 GiB\n* Bytes total:        2147483648 | 2048 MiB | 2 GiB\n"
            ))
            .concat()
    );
    for line in ["--version", "--help", "--help-large", "-h", "--help-all"] {
        assert!(matches!(super::super::parse(&words(line), &machine()), Ok(Request::Show(_))), "{line}");
    }
}

#[test]
fn buffers_lie_on_gpus() {
    for (line, wanted) in [
        ("-r -t 4 --gpuids 0,1 /data/file", "psync gpu:0,1 Some(Pageable) None false"),
        ("-r --iodepth 8 --gpuids all --cuhostbufreg /data/file", "libaio gpu Some(Pinned) None false"),
        (
            "-r --gpuids [0-2] --cufile --cufiledriveropen /data/file",
            "cufile gpu:0,1,2 None Some(false) false",
        ),
        ("-w -s 1g --gpuids 1 --gds --gpuperservice /data/file", "cufile gpu:1 None Some(true) true"),
    ] {
        let spec = spec(line);
        let own = of(&spec);
        let memory = &own.memory;
        let said = format!(
            "{} {} {:?} {:?} {}",
            own.engine.as_deref().unwrap_or_default(),
            memory.memory.clone().unwrap_or_default(),
            memory.gpu_staging,
            memory.gpu_register,
            own.options.direct
        );
        assert_eq!(said, wanted, "{line}");
    }
}
