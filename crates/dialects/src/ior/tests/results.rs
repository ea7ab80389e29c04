//! The text of results, for figures that are known.

use report::record::{FileActivity, PhaseRecord, Record, StonewallActivity};
use report::sample;
use serde_json::Value;
use statistics::{ClassTotals, ErrorCount, Histogram, SparseHistogram, WorkerSamples};

use super::run;
use crate::words::machine::text_of;
use crate::{Destination, Render};

const MS: u64 = 1_000_000;

/// Calls of one class that took so long each.
fn class(name: &str, operations: u64, ns: u64, bytes: u64) -> ClassTotals {
    let mut latency = Histogram::new();
    latency.record_n(ns, operations);
    ClassTotals {
        class: name.to_owned(),
        operations,
        bytes: operations * bytes,
        latency: SparseHistogram::from(&latency),
        ..ClassTotals::default()
    }
}

/// One task: it opens for 1 ms, moves 4 blocks of 1 MiB until 2 ms before its end, and closes for 2 ms.
fn task(number: usize, access: &str, begun_ms: u64, ended_ms: u64) -> WorkerSamples {
    let open = if access == "write" { "create" } else { "open" };
    WorkerSamples {
        worker: number,
        started_ns: begun_ms * MS,
        finished_ns: ended_ms * MS,
        classes: vec![
            class(open, 1, MS, 0),
            class(access, 4, (ended_ms - begun_ms - 3) * MS / 4, 1 << 20),
            class("close", 1, 2 * MS, 0),
        ],
        ..WorkerSamples::default()
    }
}

fn phase(request: usize, workers: Vec<WorkerSamples>) -> PhaseRecord {
    let mut phase = crate::sampled::phase(&sample::DRIVE);
    phase.request = request;
    phase.started_at = "2026-11-24T19:43:57Z".to_owned();
    phase.samples.workers = workers;
    phase.samples.elapsed_ns = 2_000 * MS;
    phase.doubts.clear();
    phase
}

/// Two tasks whose phase takes 1 s, in figures that end evenly.
fn phases(write_s: u64) -> [PhaseRecord; 2] {
    [
        phase(0, vec![task(0, "write", 0, 803), task(1, "write", 200, 1000 * write_s)]),
        phase(1, vec![task(0, "read", 0, 83), task(1, "read", 0, 100)]),
    ]
}

fn record() -> Record {
    let mut record = sample::record(vec![]);
    record.started_at = "2026-11-24T19:43:56Z".to_owned();
    record.environment.system.hostname = Some("vm".to_owned());
    record
}

/// All of standard output of a run of a line, stage by stage.
fn output(line: &str, phases: impl IntoIterator<Item = PhaseRecord>) -> (String, Record, Box<dyn Render>) {
    let mut render = run(line).render;
    let mut record = record();
    let shown = |pieces: &[_]| text_of(pieces, &Destination::Stdout);
    let mut text = shown(&render.begin(&record));
    for phase in phases {
        record.phases.push(phase);
        let pieces = render.stage(&record, record.phases.len() - 1);
        text.push_str(&shown(&pieces));
    }
    text.push_str(&shown(&render.end(&record)));
    (text, record, render)
}

const TEXT: &str = "IOR-4.1.0: MPI Coordinated Test of Parallel I/O
Began               : Tue Nov 24 19:43:56 2026
Command line        : ior -N 2 -t 1m -b 4m -o /m/f
Machine             : Linux vm
TestID              : 0
StartTime           : Tue Nov 24 19:43:57 2026
Path                : /m/f

Options: 
api                 : POSIX
apiVersion          : 
test filename       : /m/f
access              : single-shared-file
type                : independent
segments            : 1
ordering in a file  : sequential
ordering inter file : no tasks offsets
nodes               : 1
tasks               : 2
clients per node    : 2
memoryBuffer        : CPU
dataAccess          : CPU
GPUDirect           : 0
repetitions         : 1
xfersize            : 1 MiB
blocksize           : 4 MiB
aggregate filesize  : 8 MiB

Results: 

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     8.00       10.00      0.199625    4096       1024.00    0.001000   0.800000   0.002000   1.00       0   
read      80.00      82.47      0.022125    4096       1024.00    0.001000   0.097000   0.002000   0.100000   0   

Max Write: 8.00 MiB/sec (8.39 MB/sec)
Max Read:  80.00 MiB/sec (83.89 MB/sec)

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum
write           8.00       8.00       8.00       0.00       8.00       8.00       8.00       0.00    1.00000         NA            NA     0      2   2    1   0     0        1         0    0      1  4194304  1048576       8.0 POSIX      0
read           80.00      80.00      80.00       0.00      80.00      80.00      80.00       0.00    0.10000         NA            NA     0      2   2    1   0     0        1         0    0      1  4194304  1048576       8.0 POSIX      0
Finished            : Tue Nov 24 19:43:59 2026
";

#[test]
fn the_text_is_that_of_the_tool() {
    let (text, ..) = output("-N 2 -t 1m -b 4m -o /m/f", phases(1));
    assert_eq!(text, TEXT);
}

#[test]
fn repetitions_are_summed_up_as_the_tool_does() {
    let [first, read] = phases(1);
    let [mut second, mut again] = phases(2);
    (second.request, again.request) = (2, 3);
    let (text, ..) = output("-N 2 -t 1m -b 4m -o /m/f -i 2", [first, read, second, again]);
    assert!(text.contains("\nwrite           8.00       4.00       6.00       2.00       8.00 "), "{text}");
    assert!(text.contains("\nwrite     4.00       4.45       0.324625    4096"), "{text}");
}

#[test]
fn data_that_are_wrong_are_counted_and_are_in_no_rate() {
    let [write, mut read] = phases(1);
    let worker = &mut read.samples.workers[1];
    worker.classes[1] = class("read", 1, MS, 1 << 20);
    let error = |cause: &str, errno, count| ErrorCount {
        class: "read".to_owned(),
        cause: cause.to_owned(),
        errno,
        count,
        first_at_ns: 0,
        is_ignored: false,
    };
    worker.errors = vec![error("corrupt: /m/f, offset 1", None, 3), error("Input/output error", Some(5), 2)];
    let (text, ..) = output("-N 2 -t 1m -b 4m -o /m/f -R -w", [write.clone(), read.clone()]);
    for line in [
        "\nread      50.00 ",
        "\nWARNING: Incorrect data on read (3 errors found).\nWARNING: 2 calls failed on read.\n",
        "WARNING: 3 read: corrupt: /m/f, offset 1\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (text, ..) = output("-N 2 -t 1m -b 4m -o /m/f -W -w", [write, read]);
    assert!(!text.contains("\nread ") && text.contains("Incorrect data on read (3"), "{text}");
}

#[test]
fn a_stonewall_is_in_the_summary_and_in_its_file() {
    let [mut write, _] = phases(1);
    let stonewall = StonewallActivity { after_ns: 500 * MS, items_max: 4, items_min: 2, items: 6 };
    write.observations.files =
        Some(FileActivity { items: 8, stonewall: Some(stonewall), found: None, grown_bytes: None });
    let line = "-w -k -N 2 -t 1m -b 4m -o /m/f -D 1 -O stoneWallingWearOut=1,stoneWallingStatusFile=/r/s";
    let (text, record, mut render) = output(line, [write]);
    assert!(text.contains("    1.00000       0.50         12.00     0      2 "), "{text}");
    let file = Destination::File { path: "/r/s".into(), append: false };
    assert_eq!(text_of(&render.end(&record), &file), "4\n");
}

#[test]
fn json_has_the_keys_of_the_tool() {
    let (text, ..) = output("-N 2 -t 1m -b 4m -o /m/f -O summaryFormat=JSON -A 7", phases(1));
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let result = &document["tests"][0]["Results"][0];
    assert_eq!((&result["access"], &result["bwMiB"]), (&"write".into(), &8.0.into()));
    assert_eq!((&result["wrRdTime"], &result["openTime"]), (&0.8.into(), &0.001.into()));
    let summary = &document["summary"][1];
    assert_eq!((&summary["operation"], &summary["bwMaxMIB"]), (&"read".into(), &80.0.into()));
    assert_eq!((&summary["ReferenceNumber"], &summary["OPsSD"]), (&7.into(), &0.0.into()));
    assert_eq!(document["tests"][0]["Parameters"]["transferSize"], 1 << 20);
    assert_eq!(document["tests"][0]["Options"]["xfersize"], "1 MiB");
    let (text, ..) = output("-O summaryFormat=JSON -o /m/f", []);
    assert!(
        serde_json::from_str::<Value>(&text).is_ok(),
        "well-formed where nothing could be measured: {text}"
    );
}

#[test]
fn csv_and_files_are_those_of_the_tool() {
    let (text, ..) = output("-N 2 -t 1m -b 4m -o /m/f -O summaryFormat=CSV", phases(1));
    let expected = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n\
                    write,8.000000,10.000000,0.199625,4096.000000,1024.000000,0.001000,0.800000,0.002000,1.000000,2,0\n";
    assert!(text.starts_with(expected), "{text}");
    let line = "-N 2 -t 1m -b 4m -o /m/f -O summaryFile=out,saveRankPerformanceDetailsCSV=ranks";
    let mut render = run(line).render;
    assert_eq!(render.files().len(), 2);
    let mut record = record();
    let begun = text_of(&render.begin(&record), &Destination::Stdout);
    assert_eq!(begun, "Writing output to out\n");
    record.phases.extend(phases(1));
    assert!(render.stage(&record, 0).is_empty());
    let pieces = render.end(&record);
    let file = |path: &str| text_of(&pieces, &Destination::File { path: path.into(), append: false });
    assert_eq!(
        file("out").replace(&line.replace("-N", "ior -N"), ""),
        TEXT.replace("ior -N 2 -t 1m -b 4m -o /m/f", "")
    );
    let ranks = file("ranks");
    assert!(ranks.starts_with("access,rank,runtime-with-openclose,"), "{ranks}");
    assert!(ranks.contains("\nwrite,1,8.0000000000e-1,7.9700000000e-1,"), "{ranks}");
}
