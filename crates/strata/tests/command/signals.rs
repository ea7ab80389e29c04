//! Signals: what was measured so far is kept, and the run's own files go.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use testkit::{Arrival, SlowFile};

use crate::engines::await_gone;
use crate::support::{Scratch, assert_partial, read_record, skipped, total};

#[test]
fn every_signal_that_ends_a_process_ends_cleanly() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let scratch = Scratch::new();
        let words =
            "media a b -s 2m --op randwrite -t 2 --time 60s --live-csv - --json record.json --csv table.csv";
        let mut running = scratch.start(words);
        running.await_row("randwrite");
        assert_eq!(scratch.names(), ["a", "b", "record.json", "table.csv"]);
        running.signal(signal);
        let ended = running.end();
        let record = read_record(&scratch.join("record.json"));
        assert_partial(&scratch, &ended, &record, "interrupted");
        let operations = total(&record, 0, "operations").as_u64().unwrap();
        assert!(operations > 0 && ended.stdout.contains("randwrite"), "{}", ended.stdout);
        let elapsed_ns = record["phases"][0]["samples"]["elapsed_ns"].as_u64().unwrap();
        assert!((50_000_000..60_000_000_000).contains(&elapsed_ns), "{elapsed_ns}");
        let rate = total(&record, 0, "operations_per_second").as_f64().unwrap();
        assert!(rate > 0.0);
        assert!(fs::read_to_string(scratch.join("table.csv")).unwrap().contains(",interrupted,"));
        assert_eq!(scratch.names(), ["record.json", "table.csv"], "left something behind");
    }
}

#[test]
fn later_phases_do_not_begin() {
    let scratch = Scratch::new();
    let job = "targets = ['file']\nsize = '2m'\n[[phase]]\nop = 'randread'\ntime = '60s'\n[[phase]]\nop = 'write'\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    let mut running = scratch.start("run job.toml --live-csv - --json record.json");
    running.await_row("randread");
    running.signal(Signal::INT);
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "interrupted");
    assert_eq!(record["phases"].as_array().unwrap().len(), 1);
}

#[test]
fn kept_files_outlive_an_interrupt() {
    let scratch = Scratch::new();
    let mut running = scratch.start("media file -s 1m --op randread --time 60s --keep --live-csv -");
    running.await_row("randread");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(1));
    assert_eq!(fs::read(scratch.join("file")).unwrap().len(), 1 << 20);
}

#[test]
fn a_second_signal_ends_at_once() {
    let scratch = Scratch::new();
    // One operation takes so long that the run is still waiting for it when the second signal comes.
    let mounted = scratch.join("mounted");
    fs::create_dir(&mounted).unwrap();
    let (hangs, is_hanging) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (wanted, seen) = (Arc::clone(&hangs), Arc::clone(&is_hanging));
    let time = move |_: &Arrival| {
        let is_it = wanted.load(Ordering::Relaxed);
        seen.fetch_or(is_it, Ordering::Relaxed);
        if is_it { Duration::from_secs(3600) } else { Duration::from_millis(1) }
    };
    let file = match SlowFile::mount(&mounted, 1 << 20, 0, time) {
        Ok(file) => file,
        Err(error) => return skipped("signals", &format!("FUSE cannot be mounted here: {error}")),
    };
    let mut running = scratch.start(
        "media mounted/data -b 4k --op randread --direct -e psync --time 60s --live-csv - --json record.json",
    );
    running.await_row("randread");
    hangs.store(true, Ordering::Relaxed);
    running.await_that(|| is_hanging.load(Ordering::Relaxed));
    running.signal(Signal::INT);
    running.signal_again(Signal::TERM);
    await_gone(running.id());
    // The kernel keeps a process until its request comes back.
    file.release();
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.contains("strata ")), (Some(1), false), "{}", ended.stdout);
    assert_eq!(read_record(&scratch.join("record.json"))["status"], "running");
}

/// timeout(1) signals its child and then its process group.
#[test]
fn a_signal_that_comes_twice_is_one() {
    let scratch = Scratch::new();
    let mut running =
        scratch.start("media /dev/zero -b 1g -s 1g --op read --time 60s --live-csv - --json record.json");
    running.await_row("read");
    running.signal(Signal::INT);
    running.await_delivery();
    running.signal(Signal::INT);
    let ended = running.end();
    assert!(ended.code == Some(1) && ended.stdout.contains("strata "), "{}", ended.stderr);
    assert_eq!(read_record(&scratch.join("record.json"))["status"], "partial");
}

#[test]
fn a_killed_run_leaves_the_phases_done() {
    let scratch = Scratch::new();
    let job = "targets = ['file']\nsize = '2m'\nblock_size = '64k'\nkeep = true\n\
               [[phase]]\nname = 'first'\nop = 'write'\n\
               [[phase]]\nname = 'second'\nop = 'randread'\ntime = '60s'\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    let mut running = scratch.start("run job.toml --live-csv - --json record.json --out results");
    running.await_row("second");
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    for path in ["record.json", "results/record.json"] {
        let record = read_record(&scratch.join(path));
        assert_eq!(record["status"], "running");
        assert_eq!(record["phases"].as_array().unwrap().len(), 1);
        assert_eq!(
            (total(&record, 0, "operations"), total(&record, 0, "bytes")),
            (&32.into(), &(2 << 20).into())
        );
        let shown = scratch.run(&format!("report {path}"));
        assert_eq!(shown.code, Some(0));
        assert!(shown.stdout.contains("first") && shown.stdout.contains("killed"), "{}", shown.stdout);
    }
    // The next run takes the file over: it carries the mark of its maker.
    scratch.measured("media file --op write -b 64k");
}
