use report::record::{DeviceActivity, Doubt, PhaseRecord, Record};
use report::sample::{self, DRIVE, Shape};
use serde_json::Value;
use statistics::{DepthCounts, ErrorCount, Histogram, SparseHistogram};
use workload::spec::{OnError, Operation};

use super::*;
use crate::Destination;
use crate::fio::model::{Direction, Job, Log, LogKind, LogValue, Output, Unified};
use crate::sampled;

/// The percentiles that fio shows unless told otherwise.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

fn job(name: &str, request: usize) -> Job {
    Job {
        name: name.to_owned(),
        group: 0,
        number: request + 1,
        clones: 4,
        group_reporting: false,
        request,
        rw: "randread".to_owned(),
        directions: vec![Direction::Read],
        block_size_bytes: (4096, 4096),
        engine: "io_uring".to_owned(),
        depth: 32,
        description: None,
        options: vec![("name".to_owned(), name.to_owned()), ("bs".to_owned(), "4k".to_owned())],
        percentiles: PERCENTILES.to_vec(),
        shows_completion_percentiles: true,
        shows_submission_percentiles: false,
        shows_total_percentiles: false,
        shows_latency: true,
        shows_completion: true,
        shows_submission: true,
        unified: Unified::None,
        kb_base: 1024,
        unit_base: 8,
        bandwidth_average_ms: 500,
        logs: vec![],
        operation_log: None,
        states: Vec::new(),
        synced_every: None,
        log_average_ms: None,
        log_offset: false,
        log_priority: None,
        log_epoch: false,
        log_issue_time: false,
        log_compressed: false,
        log_value: LogValue::Mean,
        is_shown: true,
        per_job_logs: true,
        log_suffix: None,
    }
}

fn model(jobs: Vec<Job>, formats: &[Format]) -> Model {
    Model {
        jobs,
        global_options: vec![],
        output: Output {
            formats: formats.to_vec(),
            terse_version: 3,
            path: None,
            pace: crate::Pace::default(),
            idle: false,
            debug: Vec::new(),
            bandwidth_log: false,
            quiet: true,
        },
        host_name: "store1".to_owned(),
        process_id: 4711,
        warnings: vec![],
    }
}

/// The parts that a phase of the sample would have had, a tenth of every latency being submission.
fn split(mut phase: PhaseRecord) -> PhaseRecord {
    let scaled = |whole: &SparseHistogram, tenths: u64| {
        let mut part = Histogram::new();
        whole.buckets().for_each(|bucket| part.record_n(bucket.midpoint_ns() * tenths / 10, bucket.count));
        SparseHistogram::from(&part)
    };
    for worker in &mut phase.samples.workers {
        let operations = worker.operations();
        worker.depths = Some(DepthCounts {
            in_flight: vec![0, 0, 0, 0, 0, operations],
            submitted: vec![operations],
            completed: vec![0, 0, 0, operations],
        });
        for totals in &mut worker.classes {
            totals.submission = Some(scaled(&totals.latency, 1));
            totals.completion = Some(scaled(&totals.latency, 9));
        }
    }
    phase
}

/// 400k random reads of 4 KiB a second for 4 s, by 4 threads at depth 32.
fn reads() -> PhaseRecord {
    split(sampled::phase(&DRIVE))
}

fn of(operation: Operation, request: usize) -> PhaseRecord {
    let phase = sampled::phase(&Shape { operation, engine: "psync", threads: 1, depth: 1, ..DRIVE });
    PhaseRecord { request, ..phase }
}

fn shown(model: Model, record: &Record) -> String {
    let pieces = Show::new(model).end(record);
    String::from_utf8(pieces[0].content.clone()).unwrap()
}

fn json_of(jobs: Vec<Job>, record: &Record) -> Value {
    serde_json::from_str(&shown(model(jobs, &[Format::Json]), record)).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Words of a list.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// A line with its figures taken out, so that only what stays the same from run to run is left.
fn skeleton(line: &str) -> String {
    let mut text = String::new();
    let mut is_figure = false;
    for letter in line.chars() {
        let is_part = letter.is_ascii_digit() || (is_figure && letter == '.');
        if is_part && !is_figure {
            // Padding belongs to the figure.
            text.truncate(text.trim_end().len());
            text.push('#');
        }
        is_figure = is_part;
        if !is_part {
            text.push(letter);
        }
    }
    for prefix in ["#Ki", "#Mi", "#Gi", "#k", "#M", "#G"] {
        text = text.replace(prefix, "#");
    }
    ["nsec", "usec", "msec"].iter().fold(text, |text, unit| text.replace(unit, "UNIT"))
}

/// The lines of a job of random reads at depth 32 by two threads, as fio 3.33 has them.
const NORMAL: &str = "\
a: (groupid=0, jobs=2): err= 0: pid=8671: Sat Nov 21 10:28:44 2026
  read: IOPS=864k, BW=3376MiB/s (3540MB/s)(3379MiB/1001msec)
    slat (nsec): min=610, max=4031.1k, avg=977.78, stdev=5875.37
    clat (usec): min=17, max=5006, avg=72.84, stdev=60.57
     lat (usec): min=18, max=5007, avg=73.82, stdev=60.95
    clat percentiles (usec):
     |  1.00th=[   32],  5.00th=[   64], 10.00th=[   65], 20.00th=[   67],
     | 30.00th=[   68], 40.00th=[   68], 50.00th=[   69], 60.00th=[   71],
     | 70.00th=[   72], 80.00th=[   73], 90.00th=[   75], 95.00th=[   99],
     | 99.00th=[  151], 99.50th=[  202], 99.90th=[  433], 99.95th=[  988],
     | 99.99th=[ 3621]
   bw (  MiB/s): min= 3248, max= 3248, per=96.23%, avg=3248.55, stdev= 0.00, samples=2
   iops        : min=831628, max=831628, avg=831628.00, stdev= 0.00, samples=2
  cpu          : usr=11.75%, sys=38.20%, ctx=44406, majf=0, minf=0
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=0.1%, 32=100.0%, >=64=0.0%
     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     complete  : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.1%, 64=0.0%, >=64=0.0%
     issued rwts: total=865091,0,0,0 short=0,0,0,0 dropped=0,0,0,0
     latency   : target=0.00ns, window=0.00ns, percentile=100.00%, depth=32

Run status group 0 (all jobs):
   READ: bw=3376MiB/s (3540MB/s), 3376MiB/s-3376MiB/s (3540MB/s-3540MB/s), io=3379MiB (3543MB), run=1001-1001msec
";

#[test]
fn the_text_has_the_lines_of_fio() {
    let text = shown(model(vec![job("a", 0)], &[Format::Normal]), &sample::record(vec![reads()]));
    let lines = text.lines().skip(1).filter(|line| !line.starts_with("  lat ("));
    for (ours, theirs) in lines.clone().zip(NORMAL.lines()) {
        let strip = |line: &str| line.split(": pid").next().unwrap_or_default().to_owned();
        assert_eq!(skeleton(&strip(ours)), skeleton(&strip(theirs)), "{text}");
    }
    assert_eq!(lines.count(), NORMAL.lines().count());
}

#[test]
fn the_text_has_the_figures_of_the_record() {
    let text = shown(model(vec![job("a", 0)], &[Format::Normal]), &sample::record(vec![reads()]));
    for line in [
        "\na: (groupid=0, jobs=4): err= 0: pid=4711: Fri Jan  2 03:04:10 2026\n",
        "  read: IOPS=400k, BW=1563MiB/s (1638MB/s)(6250MiB/4000msec)\n",
        "    slat (usec): min=25, max=128, avg=32.97, stdev=10.54\n",
        "    clat (usec): min=230, max=1152, avg=296.72, stdev=94.89\n",
        "     lat (usec): min=256, max=1280, avg=329.57, stdev=105.39\n",
        "     |  1.00th=[  231],  5.00th=[  231], 10.00th=[  231], 20.00th=[  260],\n",
        "  lat (usec)   : 250=19.80%, 500=79.21%\n",
        "  lat (msec)   : 2=1.00%\n",
        "  cpu          : usr=6.00%, sys=18.00%, ctx=0, majf=0, minf=0\n",
        "  IO depths    : 1=0.0%, 2=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=100.0%, >=64=0.0%\n",
        "     complete  : 0=0.0%, 4=0.0%, 8=100.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%\n",
        "     issued rwts: total=1600000,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n",
        "   READ: bw=1563MiB/s (1638MB/s), 1563MiB/s-1563MiB/s (1638MB/s-1638MB/s), \
         io=6250MiB (6554MB), run=4000-4000msec\n",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}

#[test]
fn the_header_names_every_section_once() {
    let mut clone = job("b", 1);
    clone.clones = 1;
    clone.block_size_bytes = (131_072, 1 << 20);
    let mut second = clone.clone();
    second.number = 3;
    let record = sample::record(vec![]);
    let pieces = Show::new(model(vec![job("a", 0), clone, second], &[Format::Normal])).begin(&record);
    let expected = "\
a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=io_uring, iodepth=32
...
b: (g=0): rw=randread, bs=(R) 128KiB-1024KiB, (W) 128KiB-1024KiB, (T) 128KiB-1024KiB, ioengine=io_uring, iodepth=32
...
fio-3.42 (strata)
Starting 6 threads
";
    assert_eq!(String::from_utf8(pieces[0].content.clone()).unwrap(), expected);
    assert!(Show::new(model(vec![job("a", 0)], &[Format::Json])).begin(&record).is_empty());
}

/// Keys of fio 3.33, from `fio --output-format=json` and `json+`.
const ROOT: &str = "fio_version timestamp timestamp_ms time jobs";
const JOB: &str = "jobname groupid error eta elapsed job_options read write trim sync job_runtime usr_cpu sys_cpu ctx \
    majf minf iodepth_level iodepth_submit iodepth_complete latency_ns latency_us latency_ms latency_depth \
    latency_target latency_percentile latency_window";
const WAY: &str = "io_bytes io_kbytes bw_bytes bw iops runtime total_ios short_ios drop_ios slat_ns clat_ns lat_ns \
    bw_min bw_max bw_agg bw_mean bw_dev bw_samples iops_min iops_max iops_mean iops_stddev iops_samples";
const DISK: &str = "name read_ios write_ios read_merges write_merges read_ticks write_ticks in_queue util";

/// Asserts that the keys are fio's in fio's order, but for these of ours.
fn assert_keys(value: &Value, theirs: &str, ours: &[&str]) {
    let found: Vec<_> = keys(value).into_iter().filter(|key| !ours.contains(key)).collect();
    let expected: Vec<_> =
        words(theirs)
            .into_iter()
            .map(|key| {
                if ["fio_version", "job_options"].contains(&key) { key.replace('_', " ") } else { key.into() }
            })
            .collect();
    assert_eq!(found, expected);
    assert!(ours.iter().all(|key| value.get(key).is_some()), "{ours:?}");
}

#[test]
fn json_has_the_keys_of_fio() {
    let mut record = sample::record(vec![reads()]);
    let device = DeviceActivity { name: "nvme0n1".to_owned(), ..DeviceActivity::default() };
    record.phases[0].observations.devices = vec![device];
    let text = shown(model(vec![job("a", 0)], &[Format::JsonPlus]), &record);
    let root: Value = serde_json::from_str(&text).unwrap();
    assert_keys(&root, ROOT, &["disk_util", "strata"]);
    let job = &root["jobs"][0];
    assert_keys(job, JOB, &["job_start", "doubts"]);
    for direction in ["read", "write", "trim"] {
        assert_keys(&job[direction], WAY, &[]);
    }
    assert_eq!(keys(&job["read"]["slat_ns"]), words("min max mean stddev N"));
    assert_eq!(keys(&job["read"]["clat_ns"]), words("min max mean stddev N percentile bins"));
    assert_eq!(keys(&job["write"]["clat_ns"]), words("min max mean stddev N"));
    assert_eq!(keys(&job["sync"]), ["total_ios", "lat_ns"]);
    assert_eq!(keys(&job["iodepth_level"]), words("1 2 4 8 16 32 >=64"));
    assert_eq!(keys(&job["iodepth_submit"]), words("0 4 8 16 32 64 >=64"));
    assert_eq!(keys(&job["iodepth_complete"]), words("0 4 8 16 32 64 >=64"));
    assert_eq!(keys(&job["latency_ns"]), words("2 4 10 20 50 100 250 500 750 1000"));
    assert_eq!(keys(&job["latency_us"]), words("2 4 10 20 50 100 250 500 750 1000"));
    assert_eq!(keys(&job["latency_ms"]), words("2 4 10 20 50 100 250 500 750 1000 2000 >=2000"));
    assert_keys(&root["disk_util"][0], DISK, &["read_sectors", "write_sectors"]);
    assert_eq!(keys(&job["read"]["clat_ns"]["percentile"])[..2], ["1.000000", "5.000000"]);
}

#[test]
fn json_has_the_figures_of_the_record() {
    let mut record = sample::record(vec![reads()]);
    record.phases[0].doubts =
        vec![Doubt { kind: "too_short".into(), detail: "ran for 4 s".into(), remedy: "--time 10s".into() }];
    let mut model = model(vec![job("a", 0)], &[Format::JsonPlus]);
    model.global_options = vec![("rw".to_owned(), "randread".to_owned())];
    model.warnings = vec!["loops: ...".to_owned()];
    let text = shown(model, &record);
    assert!(text.contains("\n      \"jobname\" : \"a\",\n"), "{text}");
    assert!(text.contains("\n        \"iops\" : 400000.000000,\n"), "{text}");
    let root: Value = serde_json::from_str(&text).unwrap();
    let (job, read) = (&root["jobs"][0], &root["jobs"][0]["read"]);
    assert_eq!(root["global options"]["rw"], "randread");
    assert_eq!(
        (&root["timestamp"], &root["time"]),
        (&1_767_323_050.into(), &"Fri Jan  2 03:04:10 2026".into())
    );
    assert_eq!((&read["total_ios"], &read["io_bytes"]), (&1_600_000.into(), &6_553_600_000_u64.into()));
    assert_eq!((&read["runtime"], &read["bw_bytes"]), (&4000.into(), &1_638_400_000.into()));
    assert_eq!((&read["bw"], &job["job_runtime"]), (&1_600_000.into(), &16_000.into()));
    assert_eq!((read["bw_samples"].as_u64(), read["bw_mean"].as_f64()), (Some(8), Some(1_600_000.0)));
    let latencies = || record.phases[0].samples.workers.iter().map(|worker| &worker.classes[0].latency);
    let mean_ns = latencies().map(|latency| latency.sum_ns()).sum::<u128>() as f64 / 1_600_000.0;
    assert_eq!(read["lat_ns"]["mean"].as_f64(), Some(mean_ns));
    assert!((mean_ns - 1.03 * 320_000.0).abs() < 100.0, "{mean_ns}");
    assert_eq!(read["clat_ns"]["N"], read["total_ios"]);
    let bins = read["clat_ns"]["bins"].as_object().unwrap();
    assert_eq!(bins.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 1_600_000);
    assert_eq!(job["elapsed"], 4);
    assert_eq!(job["doubts"][0]["kind"], "too_short");
    assert_eq!(job["doubts"][0]["remedy"], "run longer: runtime=10 time_based");
    assert_eq!((&root["strata"]["seed"], &root["strata"]["warnings"][0]), (&42.into(), &"loops: ...".into()));
    assert_eq!(root["strata"]["run_id"], "00c0ffee00c0ffee");
}

#[test]
fn what_completes_at_once_has_no_submission_latency() {
    let mut phase = split(of(Operation::RandRead, 0));
    for totals in phase.samples.workers.iter_mut().flat_map(|worker| &mut worker.classes) {
        totals.submission = Some(SparseHistogram::default());
        totals.completion = Some(totals.latency.clone());
    }
    let root = json_of(vec![job("a", 0)], &sample::record(vec![phase]));
    let read = &root["jobs"][0]["read"];
    assert_eq!(read["slat_ns"]["N"], 0);
    assert_eq!(read["clat_ns"]["mean"], read["lat_ns"]["mean"]);
}

#[test]
fn one_at_a_time_is_known_without_counting() {
    let root = json_of(vec![job("a", 0)], &sample::record(vec![of(Operation::RandRead, 0)]));
    assert_eq!(root["jobs"][0]["iodepth_level"]["1"].as_f64(), Some(100.0));
    assert_eq!(root["jobs"][0]["iodepth_submit"]["4"].as_f64(), Some(100.0));
}

#[test]
fn a_read_back_goes_under_reads_of_the_same_job() {
    let write = of(Operation::RandWrite, 0);
    let mut back = of(Operation::Read, 0);
    (back.stage, back.is_read_back, back.samples.started_ns) = (1, true, 4_000_000_000);
    back.started_at = "2026-01-02T03:04:10Z".to_owned();
    let root = json_of(vec![job("a", 0)], &sample::record(vec![write, back]));
    let job = &root["jobs"][0];
    assert_eq!(root["jobs"].as_array().unwrap().len(), 1);
    for direction in ["read", "write"] {
        assert_eq!(job[direction]["total_ios"], 1_600_000);
        assert_eq!(job[direction]["runtime"], 4000);
        assert_eq!(job[direction]["iops"].as_f64(), Some(400_000.0));
        assert_eq!(job[direction]["bw_samples"], 8);
    }
    assert_eq!((&job["job_runtime"], &job["elapsed"]), (&8000.into(), &8.into()));
    assert_eq!(root["time"], "Fri Jan  2 03:04:14 2026");
}

#[test]
fn a_group_is_one_entry_under_the_name_of_its_first_job() {
    let mut jobs = vec![job("a", 0), job("b", 1), job("c", 2)];
    jobs[0].group_reporting = true;
    jobs[1].group_reporting = true;
    (jobs[2].group, jobs[2].group_reporting) = (1, true);
    let mut phases =
        vec![of(Operation::RandRead, 0), of(Operation::RandWrite, 1), of(Operation::RandRead, 2)];
    phases[2].stage = 1;
    phases[0].observations.context_switches = 7;
    phases[1].observations.context_switches = 9;
    let record = sample::record(phases);
    let root = json_of(jobs.clone(), &record);
    let entries = root["jobs"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!((&entries[0]["jobname"], &entries[1]["jobname"]), (&"a".into(), &"c".into()));
    assert_eq!(
        (&entries[0]["read"]["total_ios"], &entries[0]["write"]["total_ios"]),
        (&1_600_000.into(), &1_600_000.into())
    );
    assert_eq!((&entries[0]["job_runtime"], &entries[0]["ctx"]), (&8000.into(), &9.into()));
    let text = shown(model(jobs, &[Format::Normal]), &record);
    assert!(text.contains("a: (groupid=0, jobs=8): err= 0"), "{text}");
    let groups = text.split("Run status group ").count() - 1;
    assert_eq!(groups, 2);
    assert!(text.contains("  WRITE: bw=1563MiB/s"), "{text}");
}

#[test]
fn jobs_that_are_not_grouped_share_a_group_line() {
    let record = sample::record(vec![of(Operation::RandRead, 0), of(Operation::RandRead, 1)]);
    let text = shown(model(vec![job("a", 0), job("b", 1)], &[Format::Normal]), &record);
    assert_eq!(text.matches("(groupid=0, jobs=4)").count(), 2);
    assert!(text.contains("   READ: bw=3125MiB/s (3277MB/s), 1563MiB/s-1563MiB/s"), "{text}");
    assert_eq!(text.matches("per=50.00%").count(), 2);
}

fn failed(count: u64, at_ns: u64, errno: i32, cause: &str) -> ErrorCount {
    ErrorCount {
        is_ignored: false,
        class: "read".to_owned(),
        cause: cause.to_owned(),
        errno: Some(errno),
        count,
        first_at_ns: at_ns,
    }
}

#[test]
fn failures_are_told_and_never_counted_as_operations() {
    let mut phase = reads();
    phase.plan.load_mut().on_error = OnError::Continue;
    phase.samples.workers[0].errors = vec![failed(3, 900, 28, "No space left on device")];
    phase.samples.workers[1].errors = vec![failed(2, 500, 5, "Input/output error")];
    let record = sample::record(vec![phase]);
    let text = shown(model(vec![job("a", 0)], &[Format::Normal]), &record);
    assert!(text.contains("a: (groupid=0, jobs=4): err= 5 (Input/output error): pid=4711: "), "{text}");
    assert!(text.contains("     errors    : total=5, first_error=5/<Input/output error>\n"), "{text}");
    assert!(text.contains("total=1600000,0,0,0"), "{text}");
    let root = json_of(vec![job("a", 0)], &record);
    let job_object = &root["jobs"][0];
    assert_eq!((&job_object["error"], &job_object["total_err"]), (&5.into(), &5.into()));
    assert_eq!(
        (&job_object["first_error"], &job_object["read"]["total_ios"]),
        (&5.into(), &1_600_000.into())
    );
    let terse = shown(model(vec![job("a", 0)], &[Format::Terse]), &record);
    assert!(terse.starts_with("3;fio-3.42;a;0;5;"), "{terse}");
    assert!(terse.ends_with(";5;5\n"), "{terse}");
}

#[test]
fn an_interrupted_job_is_no_success() {
    let mut phase = reads();
    phase.failure = Some("interrupted".to_owned());
    phase.samples.interrupted = Some("interrupted by a signal".to_owned());
    let root = json_of(vec![job("a", 0)], &sample::record(vec![phase]));
    assert_eq!(
        (&root["jobs"][0]["error"], &root["jobs"][0]["read"]["total_ios"]),
        (&4.into(), &1_600_000.into())
    );
}

#[test]
fn a_job_the_run_never_came_to_is_an_error() {
    let mut record = sample::record(vec![reads()]);
    record.failure = Some("stopped".to_owned());
    let root = json_of(vec![job("a", 0), job("b", 1)], &record);
    assert_eq!((&root["jobs"][0]["error"], &root["jobs"][1]["error"]), (&0.into(), &125.into()));
    assert_eq!(root["jobs"][1]["read"]["total_ios"], 0);
    let text = shown(model(vec![job("a", 0), job("b", 1)], &[Format::Normal]), &record);
    assert!(text.contains("b: (groupid=0, jobs=4): err=125 (stopped): "), "{text}");
}

#[test]
fn a_run_that_measured_nothing_is_still_well_formed() {
    let mut record = sample::record(vec![]);
    record.failure = Some("cannot open \"/dev/x\": no such file".to_owned());
    let root = json_of(vec![job("a", 0)], &record);
    assert_eq!((&root["jobs"], &root["error"]), (&Value::Array(vec![]), &record.failure.clone().into()));
    assert_eq!(shown(model(vec![job("a", 0)], &[Format::Terse]), &record), "");
    assert_eq!(shown(model(vec![job("a", 0)], &[Format::Normal]), &record), "\n");
}

#[test]
fn nothing_is_ever_not_a_number() {
    let mut phase = of(Operation::RandRw, 0);
    for worker in &mut phase.samples.workers {
        for totals in &mut worker.classes {
            (totals.operations, totals.bytes) = (0, 0);
            totals.latency = SparseHistogram::default();
        }
    }
    phase.samples.series.points.clear();
    let mut instant = of(Operation::RandWrite, 0);
    instant.samples.elapsed_ns = 0;
    let mut tiny = of(Operation::RandRead, 0);
    tiny.samples.elapsed_ns = 3000;
    for phase in [phase, instant, tiny] {
        let record = sample::record(vec![phase]);
        let formats = [Format::Normal, Format::JsonPlus, Format::Terse];
        for format in formats {
            let mut model = model(vec![job("a", 0)], &[format]);
            model.output.terse_version = 5;
            let text = shown(model, &record);
            let text = text.replace("minf", "");
            assert!(!text.contains("inf") && !text.to_lowercase().contains("nan"), "{text}");
        }
    }
}

#[test]
fn terse_lines_have_the_fields_of_fio() {
    let mut phase = reads();
    for (version, fields) in [(3, 121), (4, 162), (5, 180)] {
        let mut model = model(vec![job("a", 0)], &[Format::Terse]);
        model.output.terse_version = version;
        let line = shown(model, &sample::record(vec![phase.clone()]));
        let found: Vec<_> = line.trim_end().split(';').collect();
        assert_eq!(found.len(), fields, "{line}");
        assert_eq!(found[..5], [&version.to_string(), "fio-3.42", "a", "0", "0"]);
        assert_eq!(found[5..9], ["6400000", "1600000", "400000", "4000"]);
        assert_eq!(found[13..15], ["230", "1152"]);
        assert_eq!((found[17], found[33], found[36]), ("1.000000%=230", "99.990000%=1152", "0%=0"));
        assert_eq!(found[37..39], ["256", "1280"]);
        assert_eq!(found[41..46].len(), 5);
        assert_eq!(found[43..45], ["100.000000%", "1600000.000000"]);
    }
    let device =
        DeviceActivity { name: "vda".into(), reads: 5, busy_ns: 1_000_000_000, ..Default::default() };
    phase.observations.devices = vec![device];
    let mut described = job("a", 0);
    described.description = Some("hello".to_owned());
    let line = shown(model(vec![described], &[Format::Terse]), &sample::record(vec![phase]));
    assert!(line.ends_with(";vda;5;0;0;0;0;0;0;25.00%;hello\n"), "{line}");
}

#[test]
fn disks_are_counted_once_a_stage() {
    let device = |reads, busy_ns| DeviceActivity {
        name: "vda".to_owned(),
        reads,
        read_bytes: reads * 4096,
        busy_ns,
        ..DeviceActivity::default()
    };
    let mut phases = vec![of(Operation::RandRead, 0), of(Operation::RandRead, 1), of(Operation::RandRead, 0)];
    phases[2].stage = 1;
    for (phase, reads) in phases.iter_mut().zip([100, 90, 10]) {
        phase.observations.devices = vec![device(reads, 1_000_000_000)];
    }
    let text = shown(model(vec![job("a", 0), job("b", 1)], &[Format::Normal]), &sample::record(phases));
    let expected = "\nDisk stats (read/write):\n  vda: ios=110/0, sectors=880/0, merge=0/0, ticks=0/0, in_queue=0, util=25.00%\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn doubts_come_after_everything() {
    let mut phase = reads();
    phase.doubts =
        vec![Doubt { kind: "k".into(), detail: "it was short".into(), remedy: "run longer".into() }];
    let text = shown(model(vec![job("a", 0)], &[Format::Normal]), &sample::record(vec![phase]));
    assert!(text.ends_with("\nstrata warning a: it was short; run longer\n"), "{text}");
}

#[test]
fn what_is_doubted_of_clones_is_told_once() {
    let doubted = |operation, request| {
        let mut phase = of(operation, request);
        phase.doubts =
            vec![Doubt { kind: "page_cache".into(), detail: "seen".into(), remedy: "use --direct".into() }];
        phase
    };
    let mut read_back = doubted(Operation::Read, 0);
    read_back.stage = 1;
    let phases = vec![doubted(Operation::RandWrite, 0), doubted(Operation::RandWrite, 1), read_back];
    let jobs = vec![job("a", 0), job("a", 1)];
    let text = shown(model(jobs, &[Format::Normal]), &sample::record(phases));
    assert_eq!(text.matches("strata warning a: seen; read with direct=1").count(), 1, "{text}");
}

#[test]
fn percentages_have_the_decimals_that_they_need() {
    let shown_with = |percentiles: &[f64]| {
        let mut job = job("a", 0);
        job.percentiles = percentiles.to_vec();
        shown(model(vec![job], &[Format::Normal]), &sample::record(vec![reads()]))
    };
    let text = shown_with(&[50.0, 99.9]);
    assert!(text.contains("     | 50.0th=[") && text.contains("], 99.9th=["), "{text}");
    assert!(shown_with(&[5.0, 50.0]).contains("     |   5th=["));
    assert!(shown_with(&[50.0, 99.9999]).contains("     | 50.0000th=["));
}

#[test]
fn wrong_data_is_an_illegal_sequence_and_a_short_read_is_not() {
    let error_with = |cause: &str| {
        let mut phase = reads();
        let error = ErrorCount { errno: None, ..failed(1, 5, 0, cause) };
        phase.samples.workers[0].errors = vec![error];
        json_of(vec![job("a", 0)], &sample::record(vec![phase]))["jobs"][0]["error"].clone()
    };
    assert_eq!(error_with("corrupt: f, block at offset 0, from its byte 0 on: corrupt"), 84);
    assert_eq!(error_with("short: 10 of 4096 bytes"), 5);
}

#[test]
fn a_job_that_another_stopped_is_cancelled() {
    let mut phase = reads();
    phase.failure = Some("stopped: phase bad failed".to_owned());
    assert_eq!(json_of(vec![job("a", 0)], &sample::record(vec![phase]))["jobs"][0]["error"], 125);
}

#[test]
fn formats_come_in_the_order_of_fio_and_into_the_file() {
    let mut model = model(vec![job("a", 0)], &[Format::Normal, Format::Json, Format::Terse]);
    model.output.path = Some("out.txt".into());
    let mut show = Show::new(model);
    assert_eq!(show.files(), [PathBuf::from("out.txt")]);
    let record = sample::record(vec![reads()]);
    let places: Vec<_> =
        show.begin(&record).into_iter().chain(show.end(&record)).map(|piece| piece.place).collect();
    let file = |append| Destination::File { path: "out.txt".into(), append };
    assert_eq!(places, [file(false), file(true)]);
    let text = String::from_utf8(show.end(&record)[0].content.clone()).unwrap();
    let (terse, json) = (text.find("3;fio-3.42").unwrap(), text.find("\"fio version\"").unwrap());
    assert!(terse < json && json < text.find("Run status group").unwrap());
}

#[test]
fn bits_and_decimal_units_are_honoured() {
    let mut bits = job("a", 0);
    (bits.kb_base, bits.unit_base) = (1000, 1);
    let text = shown(model(vec![bits], &[Format::Normal]), &sample::record(vec![reads()]));
    assert!(text.contains("BW=13.1Gbit/s (12.2Gibit/s)(6554MB/4000msec)"), "{text}");
    assert!(text.contains("   bw (Mibit/s): min="), "{text}");
}

#[test]
fn what_is_switched_off_is_not_shown() {
    let mut quiet = job("a", 0);
    (quiet.shows_latency, quiet.shows_completion) = (false, false);
    quiet.shows_submission = false;
    let record = sample::record(vec![reads()]);
    let text = shown(model(vec![quiet.clone()], &[Format::Normal]), &record);
    assert!(!text.contains("lat (") && !text.contains("percentiles"), "{text}");
    assert!(
        text.contains("   bw (") && text.contains("   iops        :"),
        "fio samples rates without its clock calls too: {text}"
    );
    let root = json_of(vec![quiet], &record);
    let read = &root["jobs"][0]["read"];
    assert_eq!((&read["lat_ns"]["N"], &read["bw_samples"]), (&0.into(), &8.into()));
    assert_eq!(read["total_ios"], 1_600_000);
}

fn logged(kinds: &[LogKind], average_ms: Option<u64>) -> Job {
    let log = |kind: &LogKind| Log { kind: *kind, prefix: "run".to_owned() };
    Job { logs: kinds.iter().map(log).collect(), log_average_ms: average_ms, ..job("a", 0) }
}

fn files_of(job: Job, record: &Record) -> Vec<(String, String)> {
    let mut show = Show::new(model(vec![job], &[Format::Json]));
    let named = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let files: Vec<_> = show
        .end(record)
        .into_iter()
        .filter_map(|piece| match piece.place {
            Destination::File { path, .. } => Some((named(&path), String::from_utf8(piece.content).unwrap())),
            _ => None,
        })
        .collect();
    let tried: Vec<_> = show.files().iter().map(|path| named(path)).collect();
    assert_eq!(tried, files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>());
    files
}

#[test]
fn logs_have_a_line_for_every_window() {
    let record = sample::record(vec![reads()]);
    let files = files_of(logged(&[LogKind::Bandwidth, LogKind::Iops], Some(1000)), &record);
    assert_eq!((files[0].0.as_str(), files[1].0.as_str()), ("run_bw.1.log", "run_iops.1.log"));
    let bandwidth: Vec<_> = files[0].1.lines().collect();
    assert_eq!(
        bandwidth,
        [
            "1000, 1600000, 0, 0, 0",
            "2000, 1600000, 0, 0, 0",
            "3000, 1600000, 0, 0, 0",
            "4000, 1600000, 0, 0, 0"
        ]
    );
    assert_eq!(files[1].1.lines().next(), Some("1000, 400000, 0, 0, 0"));
}

#[test]
fn logs_without_an_average_have_a_line_for_every_operation_that_was_kept() {
    let mut phase = reads();
    let kept = |ended_ns, offset_bytes| statistics::OperationSample {
        ended_ns,
        latency_ns: 2_048,
        submission_ns: Some(48),
        class: 0,
        bytes: 4096,
        offset_bytes,
        target: 0,
    };
    phase.samples.workers[0].kept = vec![kept(3_000_000, 8192), kept(5_000_000, 0)];
    phase.samples.workers[1].kept = vec![kept(4_000_000, 4096)];
    let record = sample::record(vec![phase]);
    let files = files_of(logged(&[LogKind::Bandwidth, LogKind::Latency], None), &record);
    let texts: Vec<&str> = files.iter().map(|(_, text)| text.as_str()).collect();
    // 4096 bytes in 2048 ns are 2e9 bytes a second, in KiB.
    assert_eq!(texts[0], "3, 1953125, 0, 4096, 0\n4, 1953125, 0, 4096, 0\n5, 1953125, 0, 4096, 0\n");
    assert_eq!(texts[1].lines().next(), Some("3, 2048, 0, 4096, 0"));
    assert_eq!(texts[2].lines().next(), Some("3, 48, 0, 4096, 0"));
    assert_eq!(texts[3].lines().next(), Some("3, 2000, 0, 4096, 0"));
    let job = Job { log_offset: true, log_priority: Some(0x4007), ..logged(&[LogKind::Iops], None) };
    let files = files_of(job, &record);
    assert_eq!(files[0].1.lines().next(), Some("3, 1, 0, 4096, 8192, 0x4007"));
}

#[test]
fn latency_logs_are_three_and_submission_is_one_line() {
    let files = files_of(logged(&[LogKind::Latency], Some(2000)), &sample::record(vec![reads()]));
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["run_lat.1.log", "run_slat.1.log", "run_clat.1.log"]);
    assert_eq!(files[0].1, "2000, 329566, 0, 0, 0\n4000, 329568, 0, 0, 0\n");
    assert_eq!(files[1].1.lines().count(), 1);
    assert!(files[1].1.starts_with("4000, 329"), "{}", files[1].1);
}

#[test]
fn histogram_logs_count_every_operation() {
    let files = files_of(logged(&[LogKind::Histogram], Some(1000)), &sample::record(vec![reads()]));
    assert_eq!(files[0].0, "run_clat_hist.1.log");
    let counted: u64 = files[0]
        .1
        .lines()
        .map(|line| {
            let fields: Vec<u64> = line.split(", ").map(|field| field.parse().unwrap()).collect();
            assert_eq!((fields.len(), fields[1], fields[2]), (1856 + 3, 0, 4096));
            fields[3..].iter().sum::<u64>()
        })
        .sum();
    assert_eq!(counted, 1_600_000);
}

#[test]
fn jobs_may_share_a_log() {
    let mut jobs = vec![logged(&[LogKind::Iops], Some(4000)), logged(&[LogKind::Iops], Some(4000))];
    jobs.iter_mut().for_each(|job| job.per_job_logs = false);
    let mut show = Show::new(model(jobs, &[Format::Json]));
    assert_eq!(show.files(), [PathBuf::from("run_iops.log")]);
    let pieces = show.end(&sample::record(vec![reads()]));
    let file = |append| Destination::File { path: "run_iops.log".into(), append };
    assert_eq!((&pieces[1].place, &pieces[2].place), (&file(false), &file(true)));
}
