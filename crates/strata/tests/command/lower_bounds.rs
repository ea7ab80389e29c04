//! Latencies that are lower bounds, because an operation hangs: every output says so.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use testkit::{Arrival, SlowFile};

use crate::engines::await_gone;
use crate::support::{Ended, Running, Scratch, assert_partial, skipped};

/// The read that hangs: so many came before it, those of a slow machine before the run begins among them.
const HANGS: u64 = 150;
/// How long it hangs: longer than any run waits for it. It comes back before when it is released.
const HANG: Duration = Duration::from_secs(3600);

/// A run of one worker on a file of its own.
struct Case {
    words: String,
    hangs: Arc<AtomicBool>,
    file: SlowFile,
}

fn case(scratch: &Scratch, name: &str, words: &str) -> std::io::Result<Case> {
    let directory = scratch.join(name);
    fs::create_dir(&directory)?;
    let hangs = Arc::new(AtomicBool::new(false));
    let arrived = Arc::clone(&hangs);
    let time = move |arrival: &Arrival| {
        let is_it = arrival.number == HANGS;
        arrived.fetch_or(is_it, Ordering::Relaxed);
        if is_it { HANG } else { Duration::from_millis(1) }
    };
    let file = SlowFile::mount(&directory, 1 << 20, 0, time)?;
    Ok(Case { words: words.replace("FILE", &format!("{name}/data")), hangs, file })
}

/// Interrupts a run once its worker hangs.
fn interrupt(running: &Running, case: &Case) {
    let begun = Instant::now();
    while !case.hangs.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    running.signal(Signal::INT);
}

#[test]
fn every_output_says_which_latencies_are_lower_bounds() {
    let scratch = Scratch::new();
    let fio = "as fio --name=a --filename=FILE --rw=randread --bs=4k --ioengine=psync --size=1m --time_based --runtime=100";
    let all = [
        (
            "own",
            "media FILE --op randread -b 4k -e psync -t 1 --time 100s --json own.json --csv own.csv"
                .to_owned(),
        ),
        ("normal", fio.to_owned()),
        ("terse", format!("{fio} --minimal")),
        ("json", format!("{fio} --output-format=json")),
        (
            "elbencho",
            "as elbencho -r --rand -t 1 -b 4k -s 1m --infloop --timelimit 100 --lat FILE".to_owned(),
        ),
        ("spdk", "as spdk_nvme_perf -q 1 -o 4096 -w randread -c 0x1 -t 100 -L FILE".to_owned()),
    ];
    let mut runs = Vec::new();
    for (name, words) in &all {
        match case(&scratch, name, words) {
            Ok(case) => runs.push((*name, scratch.start(&case.words), case)),
            Err(error) => return skipped("lower_bounds", &format!("FUSE cannot be mounted here: {error}")),
        }
    }
    for (_, running, case) in &runs {
        interrupt(running, case);
    }
    // They have said all that they have to say; what hangs comes back then.
    for (_, running, case) in &runs {
        await_gone(running.id());
        case.file.release();
    }
    let ended: Vec<(&str, Ended)> =
        runs.into_iter().map(|(name, running, _)| (name, running.end())).collect();
    // Some reads are those that look at the file before the run.
    let told = |text: &str| {
        let text = text.split_once("the mean latency, the percentiles above p9").map(|(_, rest)| rest);
        text.is_some_and(|rest| rest.contains(" and the maximum are lower bounds: 1 of "))
    };
    for (name, ended) in &ended {
        assert_eq!(ended.code, Some(1), "{name}: {}", ended.stderr);
        let text = if *name == "terse" { &ended.stderr } else { &ended.stdout };
        match *name {
            "own" => assert!(text.contains(">="), "{name}: {text}"),
            _ => assert!(told(text), "{name}: {text}\n{}", ended.stderr),
        }
    }
    let csv = fs::read_to_string(scratch.join("own.csv")).unwrap();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (header, row) = (lines.next().unwrap(), lines.next().unwrap());
    let cell = |column: &str| row[header.iter().position(|name| *name == column).unwrap()];
    let own = crate::support::read_record(&scratch.join("own.json"));
    let latency = &own["phases"][0]["summary"]["total"]["latency"];
    assert_eq!((cell("latency_lower_bounds"), &latency["lower_bounds"]), ("1", &1.into()));
    let from = cell("latency_lower_bound_from_percent");
    assert!(from.parse() == Ok(latency["lower_bound_from_percent"].as_f64().unwrap()), "{from}");
    let html = scratch.run("report own.json --html own.html");
    assert_eq!(html.code, Some(0), "{}", html.stderr);
    let page = fs::read_to_string(scratch.join("own.html")).unwrap();
    assert!(page.contains("<td>&gt;="), "the table of the page");
}

#[test]
fn a_count_whose_operation_hangs_ends_by_itself() {
    let scratch = Scratch::new();
    let directory = scratch.join("mount");
    fs::create_dir(&directory).unwrap();
    // Longer than anything is waited for without a completion.
    let time = |arrival: &Arrival| Duration::from_millis(if arrival.number == 50 { 40_000 } else { 1 });
    let _file = match SlowFile::mount(&directory, 1 << 20, 0, time) {
        Ok(file) => file,
        Err(error) => return skipped("lower_bounds", &format!("FUSE cannot be mounted here: {error}")),
    };
    let words = "media mount/data --op randread -b 4k -e psync -t 1 --count 1000 --live line";
    let (ended, record) = scratch.measure(words);
    assert_partial(&scratch, &ended, &record, "nothing completed for 30 s, an operation hangs");
    assert!(ended.stderr.contains("in flight"), "it is shown that it waits: {}", ended.stderr);
    let phase = &record["phases"][0];
    let kinds: Vec<_> = phase["doubts"].as_array().unwrap().iter().map(|doubt| &doubt["kind"]).collect();
    assert!(kinds.contains(&&"unfinished_operations".into()), "{kinds:?}");
    let latency = &phase["summary"]["total"]["latency"];
    assert_eq!(latency["lower_bounds"], 1, "{latency}");
    assert!(latency["max_ns"].as_u64().unwrap() >= 30_000_000_000, "{latency}");
}
