//! Shows a live view over simulated figures, to look at it without measuring anything.
//!
//! ```text
//! cargo run -p live --example demo -- [MODE [WORKERS [INTERVALS [INTERVAL_MS]]]] [--csv FILE|-] [--hosts N] [--panic]
//! ```
//!
//! MODE is `auto`, `line`, `full` or `none`. A preparation, then two phases of that many intervals each, are played
//! at the given pace. `--hosts` plays that many clients that drive two servers: the last one is slow in the middle, the first one dies
//! towards the end. `--panic` lets a thread panic in the middle. Ctrl-C ends it with exit code 130.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use live::{CsvTarget, LiveMode, View, open};
use statistics::{
    Event, Histogram, HostRole, HostSnapshot, MasterReport, PhaseSamples, Series, Snapshot, SparseHistogram,
    WorkerSnapshot, join_hosts,
};

struct Options {
    mode: LiveMode,
    csv: Option<CsvTarget>,
    workers: usize,
    intervals: u64,
    interval: Duration,
    hosts: usize,
    panic: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        mode: LiveMode::Auto,
        csv: None,
        workers: 4,
        intervals: 50,
        interval: Duration::from_millis(100),
        hosts: 0,
        panic: false,
    };
    let mut position = 0;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let number = || argument.parse::<u32>().map_err(|error| format!("{argument}: {error}"));
        match (argument.as_str(), position) {
            ("--csv", _) => {
                let target = arguments.next().unwrap_or_default();
                options.csv = Some(target.parse().map_err(|error| format!("{error}"))?);
                continue;
            }
            ("--hosts", _) => {
                let count = arguments.next().unwrap_or_default();
                options.hosts = count.parse().map_err(|error| format!("--hosts {count}: {error}"))?;
                continue;
            }
            ("--panic", _) => {
                options.panic = true;
                continue;
            }
            (mode, 0) => options.mode = mode.parse().map_err(|error| format!("{error}"))?,
            (_, 1) => options.workers = number()? as usize,
            (_, 2) => options.intervals = u64::from(number()?),
            (_, 3) => options.interval = Duration::from_millis(u64::from(number()?)),
            _ => return Err(format!("{argument}: one argument too many")),
        }
        position += 1;
    }
    Ok(options)
}

/// Noise between -1 and 1 that is the same in each run.
fn noise(seed: u64) -> f64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// One second of a phase: the rate swings, and falls for a while in the middle as a drive does that cleans up.
fn snapshot(options: &Options, phase: usize, interval: u64) -> Snapshot {
    let classes: &[&str] = if phase == 1 { &["read"] } else { &["read", "write"] };
    let share = interval as f64 / options.intervals as f64;
    let dip = if (0.5..0.7).contains(&share) { 0.45 } else { 1.0 };
    let rate = dip * (400_000.0 + 30_000.0 * (interval as f64 / 5.0).sin() + 15_000.0 * noise(interval));
    let of_class = |class: usize| if class == 0 { 1.0 - 0.3 * (classes.len() - 1) as f64 } else { 0.3 };
    let rates: Vec<f64> = (0..classes.len()).map(|class| rate * of_class(class)).collect();
    let operations = 400_000 * interval;
    let worker = |index: usize| WorkerSnapshot {
        operations: operations / options.workers as u64,
        bytes: 4096 * operations / options.workers as u64,
        operations_per_second: rate / options.workers as f64
            * (1.0 + 0.05 * noise(index as u64 * 977 + interval)),
        bytes_per_second: 4096.0 * rate / options.workers as f64,
        errors: if index == 1 { interval / 10 } else { 0 },
        running: index != 2 || share < 0.8,
    };
    Snapshot {
        phase: ["randread", "mixed 70/30"][phase - 1].to_owned(),
        phase_number: phase,
        phase_count: 2,
        elapsed_ns: interval * 1_000_000_000,
        done_fraction: Some(share),
        classes: classes.iter().map(|class| (*class).to_owned()).collect(),
        bytes_per_second: rates.iter().map(|rate| rate * 4096.0).collect(),
        operations_per_second: rates,
        p50_ns: Some((77_000.0 / dip * (1.0 + 0.1 * noise(interval * 3))) as u64),
        p99_ns: Some((210_000.0 / dip / dip * (1.0 + 0.3 * noise(interval * 7))) as u64),
        operations,
        bytes: operations * 4096,
        errors: interval / 10,
        cpus_used: 1.4 * dip + 0.1 * noise(interval * 11),
        workers: (0..options.workers).map(worker).collect(),
        ..Snapshot::default()
    }
}

/// The same second as `hosts` clients and two servers see it.
fn by_host(options: &Options, phase: usize, interval: u64) -> Snapshot {
    let share = interval as f64 / options.intervals as f64;
    let own = |client: usize| {
        let slow = client + 1 == options.hosts && (0.3..0.6).contains(&share);
        let factor = (1.0 + 0.05 * noise(client as u64 * 31 + interval)) * if slow { 0.6 } else { 1.0 };
        let mut own = snapshot(options, phase, interval);
        own.operations_per_second.iter_mut().for_each(|rate| *rate *= factor);
        own.bytes_per_second.iter_mut().for_each(|rate| *rate *= factor);
        let mut latency = Histogram::new();
        latency.record_n(own.p50_ns.unwrap_or(0), 98);
        latency.record_n(own.p99_ns.unwrap_or(0), 2);
        own.latency = SparseHistogram::from(&latency);
        own
    };
    let clients: Vec<(String, Snapshot)> = (0..options.hosts)
        .map(|client| (format!("172.200.5.{}:1611", 131 + 2 * client), own(client)))
        .collect();
    let reports: Vec<MasterReport<'_>> = clients
        .iter()
        .enumerate()
        .map(|(client, (label, snapshot))| MasterReport {
            label,
            role: HostRole::Client,
            snapshot: Some(snapshot),
            has_ended: false,
            failure: (client == 0 && share > 0.7).then_some("the connection was reset"),
        })
        .collect();
    let driven = |rates: fn(&Snapshot) -> &[f64]| -> f64 {
        clients.iter().map(|(_, snapshot)| rates(snapshot).iter().sum::<f64>()).sum::<f64>() / 2.0
    };
    let server = |number: usize| HostSnapshot {
        label: format!("172.200.5.{}:1611", 91 + 2 * number),
        role: HostRole::Server,
        operations_per_second: driven(|snapshot| &snapshot.operations_per_second),
        bytes_per_second: driven(|snapshot| &snapshot.bytes_per_second),
        bytes: clients.iter().map(|(_, snapshot)| snapshot.bytes / 2).sum(),
        workers_active: (options.hosts * options.workers / 2) as u64,
        cpus_used: Some(0.4),
        ..HostSnapshot::default()
    };
    join_hosts(&reports, (0..2).map(server).collect())
}

fn samples(options: &Options) -> PhaseSamples {
    PhaseSamples {
        classes: vec!["read".to_owned()],
        window_ns: None,
        started_ns: 0,
        elapsed_ns: options.intervals * 1_000_000_000,
        workers: Vec::new(),
        series: Series::new(1_000_000_000, 2, 1),
        interrupted: None,
        process_cpu_user_ns: 0,
        process_cpu_system_ns: 0,
    }
}

/// Plays the run; false when it was interrupted.
fn play(options: &Options, view: &mut dyn View, interrupted: &AtomicBool) -> bool {
    for step in 0..=20 {
        if interrupted.load(Ordering::Relaxed) {
            return false;
        }
        view.event(&Event::Preparing("laying out /scratch/strata.0", f64::from(step) / 20.0));
        thread::sleep(options.interval / 4);
    }
    for phase in 1..=2 {
        for interval in 1..=options.intervals {
            if interrupted.load(Ordering::Relaxed) {
                return false;
            }
            if options.panic && interval == options.intervals / 2 {
                let ended = thread::spawn(|| panic!("a worker of the demonstration")).join();
                assert!(ended.is_err());
            }
            let snapshot = match options.hosts {
                0 => snapshot(options, phase, interval),
                _ => by_host(options, phase, interval),
            };
            view.event(&Event::Running(&snapshot));
            thread::sleep(options.interval);
        }
        view.event(&Event::Finished(["randread", "mixed 70/30"][phase - 1], &samples(options)));
    }
    true
}

fn main() -> ExitCode {
    let interrupted = Arc::new(AtomicBool::new(false));
    let opened = options().and_then(|options| {
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted))
            .map_err(|error| error.to_string())?;
        let view = open(options.mode, options.csv.as_ref(), live::Tempo::default())
            .map_err(|error| error.to_string())?;
        Ok((options, view))
    });
    let (options, mut view) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            eprintln!("demo: {error}");
            return ExitCode::from(2);
        }
    };
    let complete = play(&options, view.as_mut(), &interrupted);
    view.finish();
    println!("the report would stand here");
    if complete { ExitCode::SUCCESS } else { ExitCode::from(130) }
}
