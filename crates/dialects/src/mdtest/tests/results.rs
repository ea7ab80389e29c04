//! The text of results, for figures that are known.

use report::record::PhaseRecord;
use report::sample;
use statistics::{ClassTotals, ErrorCount, WorkerSamples};

use super::run;
use crate::Destination;
use crate::words::machine::text_of;

/// A phase of two tasks: calls by class, the failed ones too, and the time of the slower task.
fn phase(request: usize, classes: &[(&str, u64, u64)], ms: u64) -> PhaseRecord {
    let mut phase = crate::sampled::phase(&sample::DRIVE);
    phase.request = request;
    phase.started_at = "2026-11-24T19:43:58Z".to_owned();
    phase.samples.elapsed_ns = 1_000_000_000;
    phase.samples.classes = classes.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let worker = |number: usize, finished_ms: u64| WorkerSamples {
        worker: number,
        finished_ns: finished_ms * 1_000_000,
        classes: classes
            .iter()
            .map(|(name, operations, errors)| ClassTotals {
                class: (*name).to_owned(),
                operations: *operations,
                errors: *errors,
                ..ClassTotals::default()
            })
            .collect(),
        ..WorkerSamples::default()
    };
    phase.samples.workers = vec![worker(0, ms), worker(1, ms / 2)];
    phase.doubts.clear();
    phase
}

fn output(line: &str, phases: Vec<PhaseRecord>) -> (String, Vec<crate::Piece>) {
    let mut render = run(line).render;
    let mut record = sample::record(vec![]);
    record.started_at = "2026-11-24T19:43:58Z".to_owned();
    let mut text = text_of(&render.begin(&record), &Destination::Stdout);
    for phase in phases {
        record.phases.push(phase);
        let pieces = render.stage(&record, record.phases.len() - 1);
        text.push_str(&text_of(&pieces, &Destination::Stdout));
    }
    let pieces = render.end(&record);
    text.push_str(&text_of(&pieces, &Destination::Stdout));
    (text, pieces)
}

const FILES: &str = "-- started at 11/24/2026 19:43:58 --

mdtest-4.1.0 was launched with 2 total task(s) on 1 node(s)
Command line used: mdtest '-n' '100' '-F' '-d' '/m' '-i' '2' '-N' '1' '-P' '--tasks' '2'
Nodemap: 11
Path                : /m
Shifting ranks by 1 for each phase.
2 tasks, 200 files

SUMMARY rate (in ops/sec): (of 2 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                2000.000       1000.000       1500.000        707.107
   File stat                   20000.000      20000.000      20000.000          0.000
   File read                    2000.000       1960.000       1980.000         28.284
   File removal                 2000.000       2000.000       2000.000          0.000
   Tree creation                1000.000       1000.000       1000.000          0.000
   Tree removal                 1000.000       1000.000       1000.000          0.000

SUMMARY time (in ms/op): (of 2 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                   1.000          0.500          0.750          0.354
   File stat                       0.050          0.050          0.050          0.000
   File read                       0.510          0.500          0.505          0.007
   File removal                    0.500          0.500          0.500          0.000
   Tree creation                   1.000          1.000          1.000          0.000
   Tree removal                    1.000          1.000          1.000          0.000

ERROR: verifying the data on read (4 errors)! Take the performance values with care!
WARNING: File read, iteration 1: 4 read: corrupt: /m/x, offset 3
-- finished at 11/24/2026 19:43:59 --
";

/// One task of a tree makes its only directory.
fn tree(request: usize, class: &str) -> PhaseRecord {
    let mut phase = phase(request, &[(class, 1, 0)], 1);
    phase.samples.workers.truncate(1);
    phase
}

fn iteration(first: usize, create_ms: u64, wrong: u64) -> Vec<PhaseRecord> {
    let mut read =
        phase(first + 3, &[("open", 100, 0), ("read", 100 - wrong, wrong), ("close", 100, 0)], 100);
    if wrong > 0 {
        read.samples.workers[0].errors = vec![ErrorCount {
            class: "read".to_owned(),
            cause: "corrupt: /m/x, offset 3".to_owned(),
            errno: None,
            count: 2 * wrong,
            first_at_ns: 0,
            is_ignored: false,
        }];
    }
    vec![
        tree(first, "mkdir"),
        phase(first + 1, &[("create", 100, 0), ("close", 100, 0)], create_ms),
        phase(first + 2, &[("stat", 100, 0)], 10),
        read,
        phase(first + 4, &[("unlink", 100, 0)], 100),
        tree(first + 5, "rmdir"),
    ]
}

#[test]
fn the_text_is_that_of_the_tool_with_true_times_an_item() {
    let phases = [iteration(0, 100, 0), iteration(6, 200, 2)].concat();
    let (text, _) = output("-n 100 -F -d /m -i 2 -N 1 -P --tasks 2", phases);
    assert_eq!(text, FILES);
}

#[test]
fn renames_go_forth_and_back_and_are_one() {
    let phases = vec![
        tree(0, "mkdir"),
        phase(1, &[("mkdir", 100, 0)], 100),
        phase(2, &[("stat", 100, 0)], 100),
        phase(3, &[("rename", 200, 0)], 100),
    ];
    let (text, _) = output("-n 100 -D --tasks 2", phases);
    assert!(text.contains("   Directory rename             2000.000 "), "{text}");
    assert!(text.contains("   Directory removal               0.000 ") && !text.contains("File"), "{text}");
}

#[test]
fn the_status_file_has_the_files_of_a_task() {
    let phases =
        vec![tree(0, "mkdir"), phase(1, &[("create", 70, 0), ("close", 70, 0), ("sync", 1, 0)], 100)];
    let (_, pieces) = output("-n 100 -F -C -W 1 -Y -x /r/s --tasks 2", phases);
    let file = Destination::File { path: "/r/s".into(), append: false };
    assert_eq!(text_of(&pieces, &file), "70\n");
}
