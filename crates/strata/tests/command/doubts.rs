//! Doubts: each provoked with real parts where that can be done, and silent where all is well. The table of both is in
//! docs/doubts.md; what no machine shows on demand is in the unit tests of `report::doubts`.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;
use tempfile::TempDir;

use crate::loads::is_available;
use crate::support::{Ended, Loop, NO_ROOT, Scratch, class, read_record, skipped, tool, total};

/// 1.2 s of a thousand operations in each tenth: so few that every machine keeps up. It ends by count, so that none
/// is left over where the machine stalls at the end.
const PACED: &str = "media null: --op randread --rate 10k --count 12000 --warmup none";

/// Record and output of a run.
pub(crate) struct Told {
    pub(crate) record: Value,
    /// Text that was printed, every run of spaces and line ends as one space.
    text: String,
}

impl Told {
    pub(crate) fn new(ended: &Ended, record: Value) -> Self {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { record, text }
    }

    /// Runs a load in `scratch`.
    pub(crate) fn by(scratch: &Scratch, words: &str) -> Self {
        let (ended, record) = scratch.measure(words);
        Self::new(&ended, record)
    }

    /// The first run that is as `wanted`, or the first of five: a busy machine may disturb some, but not all.
    pub(crate) fn by_one_of_five(scratch: &Scratch, words: &str, wanted: impl Fn(&Self) -> bool) -> Self {
        let mut runs = (0..5).map(|_| Self::by(scratch, words));
        let first = runs.next().unwrap();
        if wanted(&first) { first } else { runs.find(wanted).unwrap_or(first) }
    }

    pub(crate) fn detail(&self, kind: &str) -> Option<&str> {
        let doubts = self.record["phases"][0]["doubts"].as_array().unwrap();
        doubts.iter().find(|doubt| doubt["kind"] == kind).map(|doubt| doubt["detail"].as_str().unwrap())
    }

    /// The doubt stands in the record and is printed with its remedy; its detail.
    pub(crate) fn raised(&self, kind: &str) -> &str {
        let doubts = self.record["phases"][0]["doubts"].as_array().unwrap();
        let doubt = doubts.iter().find(|doubt| doubt["kind"] == kind);
        let doubt = doubt.unwrap_or_else(|| panic!("no {kind}: {}", self.text));
        let [detail, remedy] = ["detail", "remedy"].map(|field| doubt[field].as_str().unwrap());
        let printed = format!("warning {kind}: {detail} try: {remedy} ");
        assert!(self.text.contains(&printed), "{printed:?} is not printed: {}", self.text);
        detail
    }

    pub(crate) fn silent(&self, kind: &str) {
        assert_eq!(self.detail(kind), None, "{kind}: {}", self.text);
        assert!(!self.text.contains(&format!("warning {kind}")), "{kind}: {}", self.text);
    }

    pub(crate) fn observed(&self, what: &str) -> &Value {
        &self.record["phases"][0]["observations"][what]
    }
}

/// Whether files there lie in memory.
fn is_in_memory(directory: &Path) -> bool {
    tool(&["stat", "--file-system", "--format", "%T", directory.to_str().unwrap()])
        .is_none_or(|kind| kind == "tmpfs" || kind == "ramfs")
}

/// A scratch directory on a drive; none where the build lies in memory.
pub(crate) fn on_a_drive(test: &str) -> Option<Scratch> {
    let scratch = Scratch::new();
    let found = !is_in_memory(scratch.path());
    if !found {
        skipped(test, "the build directory lies in memory");
    }
    found.then_some(scratch)
}

/// A directory in memory; none where the usual place is none.
pub(crate) fn in_memory(test: &str) -> Option<TempDir> {
    let place = Path::new("/dev/shm");
    let directory = tempfile::tempdir_in(place).ok().filter(|_| is_in_memory(place));
    if directory.is_none() {
        skipped(test, "no tmpfs at /dev/shm");
    }
    directory
}

/// A process that computes until it is dropped.
struct Burner(Child);

impl Burner {
    fn start(launcher: &[&str]) -> Self {
        let command = [launcher, &["sh", "-c", "while :; do :; done"]].concat();
        let started = Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()).spawn();
        Self(started.unwrap())
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn data(scratch: &Scratch) {
    fs::write(scratch.join("data"), vec![0x5a; 8 << 20]).unwrap();
}

#[test]
fn a_debug_build() {
    let told = Told::by(&Scratch::new(), "media null: --op nop --count 10");
    if cfg!(debug_assertions) {
        assert!(told.raised("debug_build").contains("debug assertions"));
    } else {
        told.silent("debug_build");
    }
}

#[test]
fn a_short_run() {
    let told = Told::by(&Scratch::new(), "media null: --op randread --time 100ms");
    assert!(told.raised("too_short").contains("less than 1 s"));
    let told = Told::by(&Scratch::new(), "media null: --op randread --rate 200 --time 1200ms --warmup none");
    assert!(told.raised("too_short").contains("fewer than 10 of them determine"), "240 operations");
}

#[test]
fn a_paced_run() {
    let kinds = ["too_short", "not_steady", "arrivals_unserved", "all_processors_busy"];
    let is_quiet = |told: &Told| kinds.iter().all(|kind| told.detail(kind).is_none());
    let told = Told::by_one_of_five(&Scratch::new(), PACED, is_quiet);
    kinds.iter().for_each(|kind| told.silent(kind));
}

/// The first processor that tests may use.
fn any_core() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    allowed.trim().chars().take_while(char::is_ascii_digit).collect()
}

/// Number of the thread of that name of a process.
fn thread_of(process: u32, name: &str) -> String {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let found = tasks
        .map(|task| task.unwrap().path())
        .find(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name));
    found.unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_rate_that_falls() {
    let core = any_core();
    if tool(&["taskset", "-c", &core, "chrt", "--idle", "0", "true"]).is_none() {
        return skipped("a_rate_that_falls", "no taskset or chrt");
    }
    let scratch = Scratch::new();
    let mut running = scratch.start(&format!(
        "media null: --op randread --cores {core} --time 4s --warmup none --interval 50ms --live-csv - \
         --json record.json"
    ));
    // What comes after the first half cannot pass for a warm-up.
    let elapsed_ns = |row: String| row.split(',').nth(1).unwrap().parse::<u64>().unwrap();
    while elapsed_ns(running.await_row("randread")) < 2_100_000_000 {}
    // From here on the worker gets what its neighbour leaves: next to nothing.
    let burner = Burner::start(&["taskset", "-c", &core]);
    tool(&["chrt", "--idle", "--pid", "0", &thread_of(running.id(), "worker-0")]).unwrap();
    let ended = running.end();
    drop(burner);
    let told = Told::new(&ended, read_record(&scratch.join("record.json")));
    // Down to next to nothing, or to nothing at all for a while: as the scheduler has it.
    told.raised(if told.detail("rate_dropped").is_some() { "rate_dropped" } else { "not_steady" });
}

#[test]
fn a_file_in_memory() {
    let Some(directory) = in_memory("a_file_in_memory") else { return };
    let file = directory.path().join("file");
    let scratch = Scratch::new();
    for words in ["--op read -b 64k", "--op write -b 64k --content zero"] {
        let told = Told::by(&scratch, &format!("media {} -s 8m {words}", file.display()));
        assert!(told.raised("memory_target").contains("(tmpfs)"));
        // Their remedies would not help there.
        for kind in ["page_cache", "buffered_writes", "compressible_content"] {
            told.silent(kind);
        }
    }
}

#[test]
fn a_file_on_a_drive() {
    let Some(scratch) = on_a_drive("a_file_on_a_drive") else { return };
    Told::by(&scratch, "media file -s 1m --op read").silent("memory_target");
}

#[test]
fn data_in_the_page_cache() {
    let Some(scratch) = on_a_drive("data_in_the_page_cache") else { return };
    data(&scratch);
    let told = Told::by(&scratch, "media data --op read -b 64k");
    assert!(told.raised("page_cache").contains("of the range was in the page cache before the phase"));
    Told::by(&scratch, "media data --op read -b 64k --cache warm").silent("page_cache");
    let told = Told::by(&scratch, "media data --op randread -b 64k --cache drop --count 1000");
    // Others may read the same drive meanwhile.
    if told.observed("device_read_bytes").as_u64().is_some_and(|read| read < 32 << 20) {
        assert!(
            told.raised("page_cache").contains("the rest came from memory"),
            "one pass is 128 operations"
        );
    }
}

#[test]
fn data_read_from_the_drive() {
    let Some(scratch) = on_a_drive("data_read_from_the_drive") else { return };
    data(&scratch);
    Told::by(&scratch, "media data --op read -b 64k --cache drop").silent("page_cache");
}

#[test]
fn a_range_never_written() {
    let scratch = Scratch::new();
    File::create(scratch.join("sparse")).unwrap().set_len(8 << 20).unwrap();
    let told = Told::by(&scratch, "media sparse --op randread");
    assert_eq!(
        told.raised("unwritten_range"),
        "100% of the range was never written: reads there do not access the medium"
    );
    let file = File::create(scratch.join("allocated")).unwrap();
    let allocated = fallocate(&file, FallocateFlags::empty(), 0, 8 << 20);
    if allocated.is_err() || is_in_memory(scratch.path()) {
        return skipped("a_range_never_written", "the file system knows no unwritten extents");
    }
    Told::by(&scratch, "media allocated --op randread").raised("unwritten_range");
}

#[test]
fn a_written_range() {
    let scratch = Scratch::new();
    data(&scratch);
    Told::by(&scratch, "media data --op randread").silent("unwritten_range");
    // strata fills the files that it makes.
    Told::by(&scratch, "media own -s 4m --op randread").silent("unwritten_range");
}

#[test]
fn writes_that_stay_in_memory() {
    let Some(scratch) = on_a_drive("writes_that_stay_in_memory") else { return };
    let told = Told::by(&scratch, "media file -s 8m --op write -b 64k");
    assert!(told.raised("buffered_writes").contains("are not made durable"));
    let told = Told::by(&scratch, "media file -s 8m --op write -b 64k --fsync 1000");
    assert!(told.raised("buffered_writes").contains("are not made durable"), "only 128 writes");
    let told =
        Told::by(&scratch, "media file -s 8m --op write -b 64k --count 1280 --refill once --end-fsync");
    // Others may write to the same drive meanwhile.
    if told.observed("device_written_bytes").as_u64().is_some_and(|written| written < 64 << 20) {
        assert!(told.raised("buffered_writes").contains("were overwritten in the page cache"));
    }
}

#[test]
fn writes_made_durable() {
    let Some(scratch) = on_a_drive("writes_made_durable") else { return };
    for how in ["--end-fsync", "--fsync 8", "--sync dsync"] {
        let told = Told::by(&scratch, &format!("media file -s 8m --op write -b 64k {how}"));
        told.silent("buffered_writes");
    }
}

#[test]
fn data_that_shrink() {
    let Some(scratch) = on_a_drive("data_that_shrink") else { return };
    for (how, start) in [
        ("--content zero", "only zeros are written; "),
        ("--content 0xdeadbeef", "one short pattern is written repeatedly; "),
        ("--compress 50", "50% of the data is compressible; "),
        ("--dedupe 20", "20% of the data are duplicates; "),
        ("--refill once", "buffers are filled once and written repeatedly; "),
        ("--refill stamp", "only 16 bytes of each 4 KiB change; "),
    ] {
        let told = Told::by(&scratch, &format!("media file -s 1m --op write -b 64k {how}"));
        let detail = told.raised("compressible_content");
        assert!(detail.starts_with(start) && detail.contains("compress"), "{how}: {detail}");
    }
}

#[test]
fn data_that_do_not_shrink() {
    let Some(scratch) = on_a_drive("data_that_do_not_shrink") else { return };
    for how in ["--op write", "--op write --verify", "--op read --content zero"] {
        let told = Told::by(&scratch, &format!("media file -s 1m -b 64k {how}"));
        told.silent("compressible_content");
    }
    Told::by(&scratch, "media mem: --op write --count 10 --content zero").silent("compressible_content");
}

#[test]
fn a_client_that_fills_buffers() {
    let scratch = Scratch::new();
    let told = Told::by(&scratch, "media file -s 16m --op write -b 1m --count 64");
    assert!(told.raised("client_saturated").ends_with("most of it filling and verifying buffers"));
}

#[test]
fn a_client_that_waits() {
    let Some(scratch) = on_a_drive("a_client_that_waits") else { return };
    let (ended, record) = scratch.measure("media file -s 8m --op randread -b 256k --direct --count 200");
    if ended.code == Some(2) {
        return skipped("a_client_that_waits", "the file system takes no direct I/O");
    }
    Told::new(&ended, record).silent("client_saturated");
}

/// CPU time of the process and of its worker threads, nanoseconds.
fn cpu_ns(told: &Told) -> (u64, u64) {
    let samples = &told.record["phases"][0]["samples"];
    let sum =
        |place: &Value, names: [&str; 2]| names.iter().map(|name| place[name].as_u64().unwrap()).sum::<u64>();
    let workers = samples["workers"].as_array().unwrap();
    let of_workers = workers.iter().map(|worker| sum(worker, ["cpu_user_ns", "cpu_system_ns"])).sum();
    (sum(samples, ["process_cpu_user_ns", "process_cpu_system_ns"]), of_workers)
}

#[test]
fn operations_by_the_kernels_workers() {
    let Some(directory) = in_memory("operations_by_the_kernels_workers") else { return };
    let scratch = Scratch::new();
    if !is_available(&scratch, "io_uring") {
        return;
    }
    let file = directory.path().join("file");
    let words =
        format!("media {} -s 16m --op randwrite -b 64k -q 16 --refill once --time 600ms", file.display());
    let told = Told::by(&scratch, &format!("{words} --engine io_uring"));
    assert!(told.raised("kernel_workers").contains("io_uring passed operations to them"));
    // The CPU figures are those of the whole process.
    let (process, workers) = cpu_ns(&told);
    let of_kernel = told.observed("kernel_worker_cpu_ns").as_u64().unwrap();
    assert!(of_kernel > process / 10 && workers + of_kernel <= process, "{process} {workers} {of_kernel}");
    let summary = &told.record["phases"][0]["summary"];
    let operations = total(&told.record, 0, "operations").as_f64().unwrap();
    let charged = summary["cpu_ns_per_operation"].as_f64().unwrap() * operations;
    assert!((charged / process as f64 - 1.0).abs() < 1e-6, "{charged} of {process}");
    assert_eq!(class(&told.record, 0, "write").1, operations as u64 * 65536);
}

#[test]
fn operations_by_its_own_threads() {
    let scratch = Scratch::new();
    let words = "media file -s 16m --op randwrite -b 64k -t 2 --refill once --time 600ms --engine psync";
    let told = Told::by(&scratch, words);
    told.silent("kernel_workers");
    let (process, workers) = cpu_ns(&told);
    let of_kernel = told.observed("kernel_worker_cpu_ns").as_u64().unwrap();
    assert!(of_kernel <= process / 10 && workers <= process, "{process} {workers} {of_kernel}");
}

#[test]
fn more_threads_than_processors() {
    let processors = std::thread::available_parallelism().unwrap().get();
    let scratch = Scratch::new();
    let words = format!("media null: --op randread -t {} --time 600ms", processors * 8);
    let is_told = |told: &Told| told.detail("all_processors_busy").is_some();
    let told = Told::by_one_of_five(&scratch, &words, is_told);
    let cores = told.record["environment"]["processor"]["logical_cores"].as_u64();
    let observed = |what| told.observed(what).as_f64().unwrap_or(0.0);
    let others = observed("stolen_cpus") + observed("other_cpus_busy");
    if cores != Some(processors as u64) || others > 0.7 * processors as f64 {
        return skipped("more_threads_than_processors", "others have the processors");
    }
    assert!(told.raised("all_processors_busy").contains("threads waited for a CPU"));
}

#[test]
fn others_that_compute() {
    let burners = [(); 2].map(|()| Burner::start(&[]));
    let told = Told::by(&Scratch::new(), "media null: --op randread --rate 1k --time 800ms");
    drop(burners);
    told.raised("other_load");
    assert!(told.observed("other_cpus_user").as_f64().unwrap() > 0.1);
}

#[test]
fn others_on_the_same_device() {
    let Some(scratch) = on_a_drive("others_on_the_same_device") else { return };
    let Some(disk) = Loop::new(scratch.path(), 64 << 20) else {
        return skipped("others_on_the_same_device", NO_ROOT);
    };
    let words =
        format!("media {} --op randread --direct --rate 200 --time 1s --json record.json", disk.device);
    let mut running = scratch.start(&format!("{words} --live-csv -"));
    running.await_row("randread");
    let target = format!("of={}", disk.device);
    let written = tool(&["dd", "if=/dev/zero", &target, "bs=1M", "count=64", "oflag=direct"]);
    assert!(written.is_some(), "dd failed");
    let ended = running.end();
    let told = Told::new(&ended, read_record(&scratch.join("record.json")));
    assert!(told.raised("other_io").contains("to the devices while this load only read"));
}

#[test]
fn a_device_of_its_own() {
    let Some(scratch) = on_a_drive("a_device_of_its_own") else { return };
    let Some(disk) = Loop::new(scratch.path(), 64 << 20) else {
        return skipped("a_device_of_its_own", NO_ROOT);
    };
    let words = format!("media {} --op randread --direct --rate 200 --time 500ms", disk.device);
    Told::by(&scratch, &words).silent("other_io");
}

#[test]
fn a_writer_beside_a_reader_on_one_device() {
    let Some(scratch) = on_a_drive("a_writer_beside_a_reader_on_one_device") else { return };
    let Some(disk) = Loop::new(scratch.path(), 64 << 20) else {
        return skipped("a_writer_beside_a_reader_on_one_device", NO_ROOT);
    };
    let job = format!(
        "targets = ['{}']\ndirect = true\ntime = '500ms'\n\
         [[phase]]\nop = 'randread'\nrate = 200\n[[phase]]\nop = 'write'\nconcurrent = true\n",
        disk.device
    );
    fs::write(scratch.join("job.toml"), job).unwrap();
    let told = Told::by(&scratch, "run job.toml");
    assert!(told.observed("device_written_bytes").as_u64().unwrap() > 8 << 20);
    told.silent("other_io");
}

#[test]
fn more_arrivals_than_it_can_serve() {
    let told = Told::by(&Scratch::new(), "media null: --op randread --rate 200m --time 200ms");
    assert!(told.raised("arrivals_unserved").contains("operations were never issued"));
}
