//! Rows on one host and on several.

use super::*;
use crate::record::{StackRowHosts, StackSlowHost};

/// A row of a test: as others have it, and operations a second on all hosts in each pass.
type OnAll<'a> = (Given<'a>, &'a [f64]);

/// A stack of two hosts at one load.
fn measured_on_two(given: &[OnAll<'_>]) -> Record {
    let ones: Vec<Given<'_>> = given.iter().map(|(one, _)| *one).collect();
    let mut record = measured(&ones);
    for (at, ((layer, ..), rates)) in given.iter().enumerate() {
        let shapes: Vec<_> = rates.iter().map(|rate| ("media", RandRead, 4096, *rate)).collect();
        let first = record.phases.len();
        record.phases.extend(sample::stack(&shapes).phases);
        let passes = (0..rates.len()).map(|pass| StackPass { pass: pass as u32, phase: first + pass });
        let one_host = rates.is_empty().then(|| format!("{layer} is of one process"));
        record.stack.as_mut().unwrap().rows[at].hosts = Some(StackRowHosts {
            count: if one_host.is_some() { 1 } else { 2 },
            passes: passes.collect(),
            one_host,
            ..StackRowHosts::default()
        });
    }
    record
}

const ALL_OF_MEMORY: &[f64] = &[2e6, 2.02e6, 1.98e6, 2e6, 2.04e6];
const FILE: Given<'static> = ("file", Software, Some("media"), &[0.97e5, 0.98e5, 0.97e5, 0.97e5, 0.96e5]);

#[test]
fn scaling_is_the_rate_of_all_hosts_by_so_many_times_that_of_one() {
    let record = measured_on_two(&[
        (MEMORY, ALL_OF_MEMORY),
        (DRIVE, &[1.5e5, 1.52e5, 1.5e5, 1.48e5, 1.5e5]),
        (FILE, &[]),
    ]);
    let found = scaling(&record);
    assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1], "one host alone has no scaling");
    let of_drive = &found[1].1;
    let [value, low, high] =
        [of_drive.scaling, of_drive.scaling_low, of_drive.scaling_high].map(Option::unwrap);
    assert!((value - 0.75).abs() < 0.01 && low < value && value < high && high < 0.8, "{of_drive:?}");
    let of_memory = &found[0].1;
    assert!((of_memory.scaling.unwrap() - 1.0).abs() < 0.001, "{of_memory:?}");
    let text = crate::render_in(&record, 80, false, Detail::Screen);
    assert!(text.contains("1 host") && text.contains("2 hosts"), "{text}");
    let media = text.lines().rfind(|line| line.starts_with("media")).unwrap();
    assert!(media.contains("150k/s") && media.ends_with(" 75%"), "{text}");
    assert!(text.contains("1 host    file: file is of one process"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let full = crate::render_in(&record, 100, false, Detail::Full);
    assert!(full.contains("75% (1.5x)") && full.contains("1.5x of 2x"), "{full}");
}

#[test]
fn a_shared_layer_that_does_not_scale_is_named_and_not_what_stands_on_it() {
    let parts = [0.6, 0.61, 0.6, 0.59, 0.6];
    // Memory and drive are alike, so that no row loses against another.
    let drive: Given<'_> = ("media", Hardware, Some("memory"), MEMORY.3);
    let file: Given<'_> = ("file", Software, Some("media"), MEMORY.3);
    let less: Vec<f64> = ALL_OF_MEMORY.iter().zip(parts).map(|(rate, part)| rate * part).collect();
    let record = measured_on_two(&[(MEMORY, ALL_OF_MEMORY), (drive, &less), (file, &less)]);
    let found = verdict(&record);
    assert_eq!((found.found.kind, found.found.layer.as_deref()), (StackVerdictKind::Limit, Some("media")));
    assert_eq!((found.found.hosts, found.found.below.as_deref()), (Some(2), None));
    let (low, factor, high) =
        (found.found.low.unwrap(), found.found.factor.unwrap(), found.found.high.unwrap());
    assert!(low < factor && factor < high && (factor - 1.0 / 0.6).abs() < 0.01, "{:?}", found.found);
    let sentence = &found.found.sentence;
    assert!(
        sentence.starts_with("media does not scale, at 4 KiB random read: 2 hosts reach 1.20x"),
        "{sentence}"
    );
    assert!(sentence.contains("10 more runs") && found.remedies.len() == 1, "{sentence}");

    // Where only the software above it does not scale, that is named; and a larger loss against what carries a row comes first.
    let record = measured_on_two(&[(MEMORY, ALL_OF_MEMORY), (drive, ALL_OF_MEMORY), (file, &less)]);
    let found = verdict(&record).found;
    assert_eq!((found.kind, found.layer.as_deref()), (StackVerdictKind::Loss, Some("file")));
    let slow: Given<'_> = ("file", Software, Some("media"), &[2.5e5; 5]);
    let record = measured_on_two(&[(MEMORY, ALL_OF_MEMORY), (drive, &less), (slow, &[])]);
    let found = verdict(&record).found;
    assert_eq!(
        (found.hosts, found.layer.as_deref(), found.below.as_deref()),
        (None, Some("file"), Some("media"))
    );
}

#[test]
fn hosts_that_are_slower_than_the_others_beyond_chance_are_named() {
    let mut record = measured_on_two(&[(MEMORY, ALL_OF_MEMORY)]);
    let passes = record.stack.as_ref().unwrap().rows[0].hosts.as_ref().unwrap().passes.clone();
    for (number, pass) in passes.iter().enumerate() {
        let phase = &mut record.phases[pass.phase];
        let pattern = phase.samples.workers[0].clone();
        phase.samples.workers = (0..4u64)
            .map(|host| {
                let mut worker = pattern.clone();
                worker.origin = Some(format!("node{host}"));
                // The fourth takes twice as long for as much, the third now more and now less.
                let percent = match host {
                    3 => 200,
                    2 => 60 + 80 * (number as u64 % 2),
                    _ => 100 + host + number as u64,
                };
                worker.finished_ns =
                    worker.started_ns + (worker.finished_ns - worker.started_ns) * percent / 100;
                worker
            })
            .collect();
    }
    let slow = scaling(&record).remove(0).1.slow;
    let [StackSlowHost { name, below_median }] = &slow[..] else { panic!("{slow:?}") };
    assert!(name == "node3" && (below_median - 0.5).abs() < 0.05, "{slow:?}");
    let text = crate::render_in(&record, 80, false, Detail::Screen);
    assert!(text.contains("slow      memory at 4 KiB random read on node3: 4"), "{text}");
}
