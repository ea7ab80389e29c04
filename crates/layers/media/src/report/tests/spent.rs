//! Where the time of a drive's operations goes, on counters whose answer is known.

use layer::observations::DeviceActivity;
use report::record::PhaseRecord;
use report::sample::{self, DRIVE};

use super::{made, phase, plan};

/// Where the reads of a drive of 320 us spent their time, after a change.
fn spent(change: impl FnOnce(&mut PhaseRecord)) -> Option<String> {
    let mut record = sample::record(vec![made(&DRIVE)]);
    plan(&mut record).load.split_latency = true;
    let phase = phase(&mut record);
    let class = &phase.summary.classes[0];
    let (reads, read_bytes, mean_ns) =
        (class.operations, class.bytes, class.latency.as_ref().expect("a latency").mean_ns);
    phase.observations.devices = vec![DeviceActivity {
        name: "nvme0n1".to_owned(),
        reads,
        read_bytes,
        read_ns: (0.75 * mean_ns * reads as f64) as u64,
        ..DeviceActivity::default()
    }];
    change(phase);
    super::super::VIEW.spent(phase).pop().map(|(_, words)| words)
}

#[test]
fn the_time_of_a_device_is_told_where_its_requests_are_the_operations() {
    let device = |phase: &mut PhaseRecord| phase.observations.devices[0].clone();
    let line = spent(|_| ()).expect("a line");
    assert!(line.starts_with("75 % of the time in nvme0n1 (247 us of 330 us, by the block layer)"), "{line}");
    assert!(line.contains("the drive is the bottleneck"), "{line}");
    let quick = spent(|phase| phase.observations.devices[0].read_ns /= 3).expect("a line");
    assert!(quick.starts_with("25 % ") && quick.contains("the CPU path is the bottleneck"), "{quick}");
    assert_eq!(spent(|phase| phase.observations.devices[0].reads *= 2), None, "requests of others, or split");
    assert_eq!(spent(|phase| phase.observations.devices[0].read_bytes /= 2), None, "others are smaller");
    assert_eq!(spent(|phase| phase.observations.devices[0].read_ns *= 2), None, "longer than it can be");
    assert_eq!(spent(|phase| phase.observations.devices.clear()), None, "no counters");
    assert_eq!(
        spent(|phase| {
            let other = device(phase);
            phase.observations.devices.push(other);
        }),
        None,
        "which of them is not told"
    );
}
