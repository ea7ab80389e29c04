//! Command lines of spdk_nvme_perf, their refusals, and its table.

use media::engine::SyncMode;
use media::of;
use proptest::prelude::*;
use report::record::{Doubt, PhaseRecord, Record};
use report::sample::{self, Shape};
use statistics::{ErrorCount, Histogram, WarmUp, summarise};
use units::Span;
use workload::spec::{OnError, Operation, Share, Spec, Warmup};

use super::*;
use crate::Destination;
use crate::words::machine::{Machine, text_of, words};

fn machine() -> Machine {
    Machine::new()
        .namespace("/dev/nvme0n1", Some("0000:3b:00.0"))
        .namespace("/dev/nvme1n1", Some("0000:5e:00.0"))
        .namespace("/dev/nvme2n1", None)
        .device("/dev/sdb", 1 << 40)
        .file("/data/file", 1 << 30)
        .directory("/data")
}

fn run_on(line: &str, world: &Machine) -> Run {
    match parse(&words(line), world).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Request::Run(run) => *run,
        _ => panic!("{line} is no run"),
    }
}

fn specs(line: &str) -> Vec<Spec> {
    run_on(line, &machine()).specs
}

fn refusal(line: &str) -> String {
    match parse(&words(line), &machine()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{line} is taken"),
    }
}

/// Percent of reads of a mix.
fn reads(spec: &Spec) -> Option<u8> {
    of(spec).mix.map(|mix| mix.read_percent)
}

#[test]
fn the_lines_of_the_tuning_guide_run_on_all_drives() {
    for block in [1_048_576u64, 4096] {
        let specs = specs(&format!("-q 16 -o {block} -w read -c 0xff -t 60"));
        assert_eq!(specs.len(), 2, "the two drives on PCIe");
        assert_eq!(specs[0].targets, ["/dev/nvme0n1"]);
        assert_eq!(specs[0].cores.as_deref(), Some(&[0, 2, 4, 6][..]), "cores are dealt in turn");
        assert_eq!(specs[1].cores.as_deref(), Some(&[1, 3, 5, 7][..]));
        assert_eq!((specs[0].concurrent, specs[1].concurrent), (false, true));
        for spec in &specs {
            assert_eq!((spec.threads, spec.depth), (Some(4), Some(16)));
            assert_eq!(of(spec).operations, [Operation::Read]);
            assert_eq!(spec.block_size.as_deref(), Some(block.to_string().as_str()));
            assert_eq!(spec.time, Some(Span(60_000_000_000)));
            assert_eq!((spec.warmup, spec.share), (Some(Warmup::None), Some(Share::Whole)));
            assert_eq!((of(spec).options.direct, of(spec).engine.as_deref()), (true, Some("io_uring")));
            assert_eq!((spec.pattern.as_deref(), of(spec).mix, spec.count), (None, None, None));
        }
    }
}

#[test]
fn allowed_addresses_and_vmd_choose_drives() {
    let by_address = specs("-q 1 -o 4k -w randread -t 1 --allowed-pci-addr 5e:00.0 --enable-vmd");
    assert_eq!(by_address.len(), 1);
    assert_eq!(by_address[0].targets, ["/dev/nvme1n1"]);
    assert_eq!(by_address[0].pattern.as_deref(), Some("uniform"));
    assert_eq!(specs("-q1 -o4k -wread -t1 -b 0000:3b:00.0 -b 5e:0").len(), 2);
    assert_eq!(
        refusal("-q 1 -o 4k -w read -t 1 -b 0000:99:00.0"),
        "spdk_nvme_perf: no NVMe drive with a kernel driver was found at \"0000:99:00.0\"; available addresses: 0000:3b:00.0, 0000:5e:00.0"
    );
}

#[test]
fn transports_are_drives_or_paths() {
    let parse = |transport: &str| {
        let mut words = words("-q 4 -o 4k -w write -t 2 -r");
        words.push(transport.to_owned());
        super::parse(&words, &machine())
    };
    let target = |transport: &str| match parse(transport) {
        Ok(Request::Run(run)) => run.specs[0].targets[0].clone(),
        Ok(_) => panic!("{transport} is no run"),
        Err(error) => error.to_string(),
    };
    assert_eq!(target("trtype:PCIe traddr:3b:00.0"), "/dev/nvme0n1");
    assert_eq!(target("trtype:PCIe traddr:0000.3b.00.0 ns:1"), "/dev/nvme0n1");
    assert_eq!(target("/data/file"), "/data/file");
    assert_eq!(target("/dev/nvme2n1"), "/dev/nvme2n1");
    assert_eq!(
        target("trtype:TCP adrfam:IPv4 traddr:127.0.0.1 trsvcid:4420 subnqn:nqn.2016-06.io.spdk:cnode1"),
        "spdk_nvme_perf: -r/--transport: \"trtype:tcp\" is supported only through the kernel; connect with `nvme connect` and give the /dev node"
    );
    assert!(target("trtype:PCIe traddr:3b:00.0 ns:2").contains("no PCIe NVMe drive with a kernel driver"));
    assert!(target("trtype:PCIe traddr:zz").contains("is not a PCI address"));
    assert!(target("traddr:3b:00.0").contains("has no trtype"));
}

#[test]
fn paths_are_driven_by_libaio_or_io_uring() {
    let spec = &specs("-q 8 -o 4096 -w rw -M 70 -t 5 -a 2 --fua -F 0.9 -w randrw /dev/sdb")[0];
    assert_eq!(
        (of(spec).engine.as_deref(), spec.targets.as_slice()),
        (Some("libaio"), &["/dev/sdb".to_owned()][..])
    );
    assert_eq!((reads(spec), spec.pattern.as_deref()), (Some(70), Some("zipf:0.9")));
    assert_eq!((spec.warmup, of(spec).options.sync), (Some(Warmup::Fixed(2_000_000_000)), SyncMode::Dsync));
    assert_eq!((spec.threads, spec.cores.as_deref()), (Some(1), Some(&[0][..])));
    assert!(of(spec).engine_options_given.contains(&"sync"));
    assert_eq!(of(&specs("-R -q 8 -o 4096 -w read -t 5 /dev/sdb")[0]).engine.as_deref(), Some("io_uring"));
    let without = Machine { engines: vec!["psync", "libaio"], ..machine() };
    let run = run_on("-R -q 8 -o 4096 -w read -t 5 /dev/sdb", &without);
    assert_eq!(of(&run.specs[0]).engine.as_deref(), Some("libaio"));
    assert_eq!(run.warnings, ["io_uring is not permitted here: using libaio"]);
}

#[test]
fn queue_pairs_share_the_depth_and_counts_are_for_each_core() {
    let spec = &specs("-q 16 -P 4 -d 100 -o 4k -w randread -t 9 -c [0,2-3] -Q 10 /dev/sdb")[0];
    assert_eq!((spec.threads, spec.depth, spec.count), (Some(12), Some(4), Some(300)));
    assert_eq!((spec.cores.as_deref(), spec.on_error), (Some(&[0, 2, 3][..]), Some(OnError::Continue)));
    let percent = &specs("-q 16 -d 50% -o 1m -w read -t 9 /data/file")[0];
    assert_eq!(percent.count, Some(512), "half of the 1024 blocks");
    let all = specs("-q 1 -o 4k -w read -t 1 -c 0x3 --use-every-core");
    assert!(all.iter().all(|spec| spec.cores.as_deref() == Some(&[0, 1][..])));
}

#[test]
fn cores_that_are_not_there_are_named_and_left_out() {
    let two = Machine { processors: vec![0, 1], ..machine() };
    let run = run_on("-q 16 -o 4096 -w read -c 0xff -t 60 /dev/sdb", &two);
    assert_eq!(run.warnings, ["cores 2, 3, 4, 5, 6, 7 of -c are not available here and are ignored"]);
    assert_eq!(run.specs[0].threads, Some(2));
    let other = Machine { processors: vec![2, 3], ..machine() };
    assert_eq!(
        run_on("-q 1 -o 4k -w read -t 1 /dev/sdb", &other).warnings,
        ["core 0 is not available here: using core 2"]
    );
    let error = parse(&words("-q 1 -o 4k -w read -t 1 -c 0x1 /dev/sdb"), &other).err().unwrap();
    assert_eq!(
        error.to_string(),
        "spdk_nvme_perf: none of the cores 0 is available here; give one or more of 2, 3"
    );
}

#[test]
fn a_ratio_without_a_mix_is_left_out_with_a_warning() {
    let run = run_on("-q 1 -o 4k -w read -M 50 -t 1 /dev/sdb", &machine());
    assert_eq!(run.warnings, ["-M/--rwmixread is ignored: it applies only to -w rw and randrw"]);
    assert_eq!(of(&run.specs[0]).mix, None);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let base = "-q 1 -o 4k -w read -t 1 /dev/sdb";
    for (line, part) in [
        ("-o 4k -w read -t 1 /dev/sdb", "no -q/--io-depth"),
        ("-q 0 -o 4k -w read -t 1 /dev/sdb", "no -q/--io-depth above 0"),
        ("-q 1 -w read -t 1 /dev/sdb", "no -o/--io-size"),
        ("-q 1 -o 4k -t 1 /dev/sdb", "no -w/--io-pattern"),
        ("-q 1 -o 4k -w read /dev/sdb", "no -t/--time"),
        ("-q 1 -o 4zz -w read -t 1 /dev/sdb", "--io-size \"4zz\""),
        ("-q 1 -o 4KB -w read -t 1 /dev/sdb", "--io-size \"4KB\""),
        ("-q 1 -o 1.5k -w read -t 1 /dev/sdb", "--io-size \"1.5k\""),
        ("-q 1 -o 4k -w verify -t 1 /dev/sdb", "use one of read, write, randread"),
        ("-q 1 -o 4k -w read -t -1 /dev/sdb", "\"-1\" is not a value of time"),
        ("-q 1 -o 4k -w rw -t 1 /dev/sdb", "no -M/--rwmixread"),
        ("-q 1 -o 4k -w rw -M 101 -t 1 /dev/sdb", "from 0 to 100"),
        ("-q 3 -P 2 -o 4k -w read -t 1 /dev/sdb", "multiple of -P"),
        ("-q 9 -d 8 -o 4k -w read -t 1 /dev/sdb", "less than the depth"),
        ("-q 1 -d x% -o 4k -w read -t 1 /dev/sdb", "in percent"),
        ("-q 1 -o 4k -w read -F 1 -t 1 /dev/sdb", "requires random positions"),
        ("-q 1 -o 4k -w randread -F x -t 1 /dev/sdb", "is not a valid theta"),
        ("-q 1 -o 4k -w read -t 1 -c 0xg /dev/sdb", "is not a core mask or list"),
        ("-q 1 -o 4k -w read -t 1 -c [1 /dev/sdb", "is not a core mask or list"),
        ("-q 1 -o 4k -w read -t 1 -c 0x0 /dev/sdb", "is not a core mask or list"),
        ("-q 1 -o 4k -w read -t 1 -A 100 /dev/sdb", "power of two"),
        ("-q 1 -o 4k -w read -t 1 /data/none", "does not exist"),
        ("-q 1 -o 4k -w read -t 1 /data", "neither a file nor a block device"),
        ("-q 1 -o 4k -w read -t 1 /dev/sdb /dev/sdb", "given twice"),
    ] {
        let error = refusal(line);
        assert!(error.contains(part) && error.starts_with("spdk_nvme_perf: "), "{line}: {error}");
    }
    let nothing = parse(&words("-q 1 -o 4k -w read -t 1"), &Machine::new()).err().unwrap().to_string();
    assert!(nothing.contains("give a device or a file"), "{nothing}");
    for flag in super::table::TABLE.flags {
        if let crate::words::Fate::Refused(why, nearest) = flag.fate {
            let value = if flag.value.is_empty() { "" } else { "1" };
            let error = refusal(&format!("--{} {value} {base}", flag.long));
            assert!(error.contains(flag.long) && error.contains(why) && error.ends_with(nearest), "{error}");
        }
    }
}

#[test]
fn options_that_change_nothing_are_taken() {
    let taken = "-V -E -N -s 512 -g -i 3 --iova-mode pa --no-huge --enforce-numa --env-context x -A 4096";
    assert_eq!(specs(&format!("{taken} -q 1 -o 4k -w read -t 1 /dev/sdb")).len(), 1);
    assert!(matches!(parse(&words("--help"), &machine()), Ok(Request::Show(_))));
}

/// 1000 operations a second of 4 KiB at 100 us, for 4 s on each of two cores.
fn phase(request: usize) -> PhaseRecord {
    let shape = Shape {
        threads: 2,
        operations_per_second: 2000.0,
        latency_ns: 100_000,
        jitter: 0.0,
        ..sample::DRIVE
    };
    let mut phase = crate::sampled::phase(&shape);
    phase.summary = summarise(&phase.samples, WarmUp::None);
    phase.request = request;
    phase
}

fn rendered(line: &str, record: &Record) -> (String, String) {
    let mut render = run_on(line, &machine()).render;
    let mut pieces = render.begin(record);
    pieces.extend(render.stage(record, 0));
    pieces.extend(render.end(record));
    (text_of(&pieces, &Destination::Stdout), text_of(&pieces, &Destination::Stderr))
}

#[test]
fn the_table_is_that_of_the_tool() {
    let record = sample::record(vec![phase(0), phase(1)]);
    let (text, errors) = rendered("-q 16 -o 4096 -w read -c 0xf -t 4", &record);
    let expected = "\
Initializing NVMe Controllers
Attached to NVMe Controller at PCIE (0000:3b:00.0)
Attached to NVMe Controller at PCIE (0000:5e:00.0)
Associating PCIE (0000:3b:00.0) NSID 1 with lcore 0
Associating PCIE (0000:5e:00.0) NSID 1 with lcore 1
Associating PCIE (0000:3b:00.0) NSID 1 with lcore 2
Associating PCIE (0000:5e:00.0) NSID 1 with lcore 3
Initialization complete. Launching workers.
========================================================
HEAD
Device Information                     :       IOPS      MiB/s    Average        min        max
PCIE (0000:3b:00.0) NSID 1 from core  0:    1000.00       3.91     103.80      80.00     400.00
PCIE (0000:5e:00.0) NSID 1 from core  1:    1000.00       3.91     103.80      80.00     400.00
PCIE (0000:3b:00.0) NSID 1 from core  2:    1000.00       3.91     103.80      80.00     400.00
PCIE (0000:5e:00.0) NSID 1 from core  3:    1000.00       3.91     103.80      80.00     400.00
========================================================
Total                                  :    4000.00      15.62     103.80      80.00     400.00

";
    assert_eq!(text, expected.replace("HEAD", &format!("{:>86}", "Latency(us)")));
    assert!(errors.is_empty(), "{errors}");
}

#[test]
fn percentiles_and_histogram_come_after_the_table() {
    let record = sample::record(vec![phase(0)]);
    let (text, _) = rendered("-LL -q 16 -o 4096 -w read -c 0x3 -t 4 /dev/sdb", &record);
    let summaries: Vec<&str> = text.lines().filter(|line| line.starts_with("Summary")).collect();
    let padded = format!("{:<43}", "/dev/sdb");
    assert_eq!(
        summaries,
        ["core 0", "core 1", "all cores"]
            .map(|cores| format!("Summary latency data for {padded} from {cores}:"))
    );
    let first: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("Summary"))
        .skip(2)
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(first.len(), 15);
    assert!(first[0].starts_with("  1.00000% :    80.0"), "{}", first[0]);
    let median_us: f64 =
        first[3].strip_prefix(" 50.00000% : ").unwrap().trim_end_matches("us").trim().parse().unwrap();
    assert!((median_us - 100.0).abs() <= 0.05, "{median_us}");
    assert_eq!(first[14], " 99.99999% :   400.000us");
    let histogram: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("Latency histogram"))
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(histogram[0], format!("Latency histogram for {padded} from core 0:"));
    assert_eq!(histogram[2], "       Range in us     Cumulative    IO count");
    assert!(histogram.last().unwrap().contains(" 400.000:  100.0000%  (       40)"), "{histogram:?}");
    let counted: u64 = histogram[3..]
        .iter()
        .map(|line| line.rsplit_once('(').unwrap().1.trim_end_matches(')').trim().parse::<u64>().unwrap())
        .sum();
    assert_eq!(counted, 4000, "every operation of the core is in the histogram");
}

#[test]
fn failures_and_doubts_are_shown_and_not_counted() {
    let mut failed = phase(0);
    failed.samples.workers[0].errors.push(ErrorCount {
        is_ignored: false,
        class: "read".to_owned(),
        cause: "Input/output error".to_owned(),
        errno: Some(5),
        count: 7,
        first_at_ns: 1,
    });
    failed.failure = Some("operations failed".to_owned());
    failed.doubts.push(Doubt {
        kind: "too_short".to_owned(),
        detail: "the window is 4 s long".to_owned(),
        remedy: "run for longer".to_owned(),
    });
    let mut record = sample::record(vec![failed]);
    record.failure = Some("sdb: operations failed".to_owned());
    let (text, errors) = rendered("-q 16 -o 4096 -w read -c 0x3 -t 4 /dev/sdb", &record);
    assert!(text.contains("/dev/sdb from core  0:    1000.00 "), "{text}");
    assert!(text.contains("strata warning /dev/sdb: the window is 4 s long; run longer: -t 10\n"), "{text}");
    assert_eq!(
        errors,
        "/dev/sdb: 7 read operations failed and are excluded from the results: Input/output error\n\
         spdk_nvme_perf: errors occurred\n"
    );
    let nothing = sample::record(vec![]);
    assert!(!rendered("-q 16 -o 4096 -w read -t 4 /dev/sdb", &nothing).0.contains("====="));
}

#[test]
fn what_is_doubted_of_all_devices_is_said_once_and_the_gravest_first() {
    let doubt = |kind: &str, detail: &str| Doubt {
        kind: kind.to_owned(),
        detail: detail.to_owned(),
        remedy: "look".to_owned(),
    };
    let (mut first, mut second) = (phase(0), phase(1));
    first.doubts = vec![doubt("too_short", "1 s"), doubt("other_load", "busy")];
    second.doubts = vec![doubt("not_steady", "wanders"), doubt("other_load", "busy")];
    let record = sample::record(vec![first, second]);
    let (text, _) = rendered("-q 16 -o 4096 -w read -c 0xf -t 4 /dev/sdb /data/file", &record);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("strata warning")).collect();
    assert_eq!(
        lines,
        [
            "strata warning /dev/sdb: 1 s; run longer: -t 10",
            "strata warning /data/file: wanders; run longer (-t 60 -a 10); write a drive over twice first (-w write)",
            "strata warning: busy; look",
        ]
    );
}

#[test]
fn where_all_operations_failed_nothing_is_doubted() {
    let mut failed = phase(0);
    for worker in &mut failed.samples.workers {
        worker.classes.iter_mut().for_each(|class| class.operations = 0);
    }
    failed.failure = Some("read failed".to_owned());
    failed.doubts.push(Doubt {
        kind: "too_short".to_owned(),
        detail: "nothing completed".to_owned(),
        remedy: "look".to_owned(),
    });
    let record = sample::record(vec![failed]);
    assert!(!rendered("-q 16 -o 4096 -w read -c 0x3 -t 4 /dev/sdb", &record).0.contains("doubts"));
}

#[test]
fn a_character_device_has_no_size() {
    let mut world = machine();
    world.paths.insert("/dev/full".to_owned(), PathFacts::CharacterDevice);
    let refused = match parse(&words("-q 1 -o 4k -w write -t 1 /dev/full"), &world) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is taken"),
    };
    assert!(refused.contains("is a character device, which has no size"), "{refused}");
}

#[test]
fn the_histogram_is_as_coarse_as_the_tools() {
    let mut latency = Histogram::new();
    for ns in [100_000, 100_100, 100_200, 100_900, 5] {
        latency.record(ns);
    }
    // 128 ranges to a power of two: from 65.536 us on they are 512 ns wide.
    assert_eq!(super::render::ranges(&latency), [(5, 6, 1), (99_840, 100_352, 3), (100_864, 101_376, 1)]);
}

#[test]
fn the_docs_have_all_options() {
    crate::words::tests::check_docs(&super::table::TABLE, "spdk_nvme_perf.md");
}

proptest! {
    #[test]
    fn no_words_panic(words in prop::collection::vec("-{0,2}[a-zA-Z0-9:=.,%\\[\\]/ é-]{0,12}", 0..8)) {
        if let Err(error) = parse(&words, &machine()) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn no_values_panic(
        flag in prop::sample::select(super::table::TABLE.flags),
        value in "[0-9a-zA-Z%x:.,\\[\\]-]{0,10}",
    ) {
        let line = ["-q", "4", "-o", "4k", "-w", "randrw", "-M", "50", "-t", "1", "/dev/sdb"];
        let mut words: Vec<String> = line.map(str::to_owned).to_vec();
        words.extend([format!("--{}", flag.long), value]);
        if let Err(error) = parse(&words, &machine()) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}
