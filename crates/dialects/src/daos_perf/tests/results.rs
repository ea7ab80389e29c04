//! The text of results, against that of the public guide.

use report::record::{PhaseRecord, Record};
use report::sample;
use statistics::{ClassTotals, Histogram, SparseHistogram, WorkerSamples};

use super::run;
use crate::words::machine::text_of;
use crate::{Destination, Render};

/// Output in the guide for 10 million single values of 4 KiB.
const GUIDE: &str = "Test :
        VOS (storage only)
Pool :
        a3b7ff28-56ff-4974-9283-62990dd770ad
Parameters :
        pool size     : SCM: 102400 MB, NVMe: 0 MB
        credits       : -1 (sync I/O for -ve)
        obj_per_cont  : 1 x 1 (procs)
        dkey_per_obj  : 10000000 (buf)
        akey_per_dkey : 1
        recx_per_akey : 1
        value type    : single
        stride size   : 4096
        zero copy     : yes
        VOS file      : ./vos0
Running test=UPDATE
Running UPDATE test (iteration=1)
UPDATE successfully completed:
        duration  : 124.478568 sec
        bandwidth : 313.809    MB/sec
        rate      : 80335.11   IO/sec
        latency   : 12.448     us (nonsense if credits > 1)
Duration across processes:
        MAX duration : 124.478568 sec
        MIN duration : 124.478568 sec
        Average duration : 124.478568 sec
Completed test=UPDATE
Running test=FETCH
Running FETCH test (iteration=1)
FETCH successfully completed:
        duration  : 23.884087  sec
        bandwidth : 1635.503   MB/sec
        rate      : 418688.81  IO/sec
        latency   : 2.388      us (nonsense if credits > 1)
Duration across processes:
        MAX duration : 23.884087  sec
        MIN duration : 23.884087  sec
        Average duration : 23.884087  sec
Completed test=FETCH
";

/// Output of vos_perf of DAOS 2.8 for it.
const NOW: &str = "Using compatible version
Test :
        VOS storage
Pool :
        a3b7ff28-56ff-4974-9283-62990dd770ad
Parameters :
        pool size     : SCM: 102400 MB, NVMe: 0 MB
        credits       : -1 (sync I/O for -ve)
        obj_per_cont  : 1 x 1 (procs)
        dkey_per_obj  : 10000000 (buf)
        akey_per_dkey : 1
        recx_per_akey : 1
        value type    : single
        value size    : 4096
        zero copy     : yes
        VOS file      : ./vos0
Running test=UPDATE
Running UPDATE test (iteration=1)
UPDATE successfully completed:
        duration : 124.478568 sec
        bandwith : 313.809    MB/sec
        rate     : 80335.11   IO/sec
        latency  : 12.448     us (nonsense if credits > 1)
Duration across processes:
        MAX duration : 124.478568 sec
        MIN duration : 124.478568 sec
        Average duration : 124.478568 sec
Completed test=UPDATE
Running test=FETCH
Running FETCH test (iteration=1)
FETCH successfully completed:
        duration : 23.884087  sec
        bandwith : 1635.503   MB/sec
        rate     : 418688.81  IO/sec
        latency  : 2.388      us (nonsense if credits > 1)
Duration across processes:
        MAX duration : 23.884087  sec
        MIN duration : 23.884087  sec
        Average duration : 23.884087  sec
Completed test=FETCH
";

/// One worker's part of a test.
fn worker(number: usize, class: &str, operations: u64, value_bytes: u64, span: (u64, u64)) -> WorkerSamples {
    let mut latency = Histogram::new();
    latency.record_n((span.1 - span.0) / operations.max(1), operations);
    let totals = ClassTotals {
        class: class.to_owned(),
        operations,
        bytes: operations * value_bytes,
        latency: SparseHistogram::from(&latency),
        ..ClassTotals::default()
    };
    WorkerSamples {
        worker: number,
        started_ns: span.0,
        finished_ns: span.1,
        classes: vec![totals],
        ..WorkerSamples::default()
    }
}

fn phase(request: usize, workers: Vec<WorkerSamples>) -> PhaseRecord {
    let mut phase = crate::sampled::phase(&sample::DRIVE);
    phase.request = request;
    phase.samples.started_ns = 0;
    phase.samples.workers = workers;
    phase.doubts.clear();
    phase
}

fn shown(render: &mut dyn Render, record: &Record, from: usize) -> String {
    text_of(&render.stage(record, from), &Destination::Stdout)
}

/// Without the lines that are not the tool's.
fn of_the_tool(text: &str) -> String {
    let own = |line: &&str| !line.trim_end().ends_with(" ns");
    text.replace('\t', "        ").lines().filter(own).map(|line| format!("{line}\n")).collect()
}

/// The whole output of the guide's line.
fn output(line: &str) -> String {
    let mut render = run(line).render;
    let mut record = sample::record(vec![]);
    record.run_id = "a3b7ff2856ff4974".to_owned();
    record.seed = 0x9283_6299_0dd7_70ad;
    let mut text = text_of(&render.begin(&record), &Destination::Stdout);
    for (request, class, ns) in [(0, "update", 124_478_568_000), (1, "fetch", 23_884_087_000)] {
        record.phases.push(phase(request, vec![worker(0, class, 10_000_000, 4096, (500, ns + 500))]));
        text.push_str(&shown(&mut *render, &record, request));
    }
    assert!(render.end(&record).is_empty());
    text
}

const LINE: &str = "vos_perf -f ./vos -P 100G -d 10000000 -a 1 -n 1 -s 4K -z -R \"U;p F;p\"";

#[test]
fn the_output_is_that_of_the_tool() {
    let text = output(LINE);
    assert_eq!(of_the_tool(&text), NOW);
    assert!(text.contains("\tp99      : 12447      ns\n"), "{text}");
    assert_eq!(output(&format!("{LINE} --text-of 2.8")), text);
}

#[test]
fn the_output_is_that_of_the_guide_where_it_is_asked_for() {
    let text = output(&format!("{LINE} --text-of 2.0"));
    assert_eq!(of_the_tool(&text), GUIDE);
    assert!(text.contains("\tp99       : 12447      ns\n"), "{text}");
    assert!(text.contains("\tmean      : 12447      ns\n") && text.contains("\tp99.9     : "), "{text}");
}

#[test]
fn pools_that_are_there_are_named_as_the_tool_does() {
    let own = "a3b7ff28-56ff-4974-9283-62990dd770ad";
    let record = sample::record(vec![]);
    let begin = |line: &str| text_of(&run(line).render.begin(&record), &Destination::Stdout);
    let line = format!("vos_perf -u {own} -X {own} -R F");
    assert!(
        begin(&line)
            .starts_with("Using compatible version\nUsing pool:a3b7ff28\nUsing cont:a3b7ff28\nTest :\n")
    );
    assert!(begin(&format!("{line} --text-of 2.0")).starts_with("Test :\n"));
    assert!(begin("daos_perf --target engine://h:1/p/c -c R4S -R U").contains("R4S (full stack, 4 replics)"));
}

#[test]
fn processes_are_apart_in_their_durations() {
    let mut render =
        run("daos_perf --target engine://h:1/p/c --procs 2 -C 16 -d 1k -a 1 -n 1 -s 1m -R U;p").render;
    let mut record = sample::record(vec![]);
    let head = text_of(&render.begin(&record), &Destination::Stdout);
    for line in [
        "\tDAOS LARGE (full stack, non-replica)\n",
        "\tengine://h:1/p/c\n",
        "\tcredits       : 16 (sync I/O for -ve)\n",
        "\tobj_per_cont  : 1 x 2 (procs)\n",
    ] {
        assert!(head.contains(line), "{head}");
    }
    assert!(!head.contains("zero copy") && !head.contains("VOS file"), "{head}");
    let second = 1_000_000_000;
    record.phases.push(phase(
        0,
        vec![
            worker(0, "update", 1024, 1 << 20, (0, second)),
            worker(1, "update", 1024, 1 << 20, (second / 2, 2 * second)),
        ],
    ));
    let text = shown(&mut *render, &record, 0);
    for line in [
        "\tduration : 2.000000   sec\n",
        "\tbandwith : 1024.000   MB/sec\n",
        "\trate     : 1024.00    IO/sec\n",
        "\tlatency  : 1464.844   us (nonsense if credits > 1)\n",
        "\tMAX duration : 1.500000   sec\n",
        "\tMIN duration : 1.000000   sec\n",
        "\tAverage duration : 1.250000   sec\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn stores_of_their_own_are_one_result() {
    let mut render = run("vos_perf -f ./vos --procs 2 -d 10 -a 1 -n 1 -R U;p").render;
    let phases = (0..2).map(|request| phase(request, vec![worker(0, "update", 10, 64, (0, 1000))])).collect();
    let text = shown(&mut *render, &sample::record(phases), 0);
    assert_eq!(text.matches("UPDATE successfully completed").count(), 1, "{text}");
    assert!(text.contains("\trate     : 20000000.00 IO/sec\n"), "{text}");
}

#[test]
fn results_are_printed_only_where_they_are_asked_for() {
    let mut render = run("vos_perf -f ./vos -d 10 -a 1 -n 1 -R \"U;d=5 F;i=2;d=5;p\"").render;
    let mut record = sample::record(vec![phase(0, vec![worker(0, "update", 5, 64, (0, 1000))])]);
    assert!(
        text_of(&render.begin(&record), &Destination::Stdout)
            .ends_with("UPDATE test (iteration=1, dkeys=5)\n")
    );
    let text = shown(&mut *render, &record, 0);
    assert_eq!(
        text,
        "Completed test=UPDATE\nRunning test=FETCH\nRunning FETCH test (iteration=2, dkeys=5)\n"
    );
    record.phases.push(phase(1, vec![worker(0, "fetch", 10, 64, (0, 1000))]));
    assert!(shown(&mut *render, &record, 1).starts_with("FETCH successfully completed:\n"));
}

#[test]
fn a_test_that_failed_says_so_and_the_next_is_not_announced() {
    let mut render = run("vos_perf -f ./vos -R \"U;p V;p F\"").render;
    let mut failed = phase(1, vec![worker(0, "fetch", 5, 64, (0, 1000))]);
    failed.failure = Some("fetch failed: Input/output error".to_owned());
    let record = sample::record(vec![failed]);
    let pieces = render.stage(&record, 0);
    assert_eq!(text_of(&pieces, &Destination::Stdout), "VERIFY failed\n");
    assert_eq!(text_of(&pieces, &Destination::Stderr), "Failed: fetch failed: Input/output error\n");
}

#[test]
fn entries_that_were_walked_are_counted_where_objects_are() {
    let mut render = run("vos_perf -f ./vos -o 2 -d 10 -a 3 -n 4 -R \"U I;p\"").render;
    let record = sample::record(vec![phase(1, vec![worker(0, "iterate", 2, 0, (0, 1_000_000_000))])]);
    let text = shown(&mut *render, &record, 0);
    assert!(text.contains("\trate     : 240.00     IO/sec\n") && !text.contains("bandwi"), "{text}");
}
