//! Doubts about the way to the medium, on records: what no machine shows on demand.

use crate::engine::SyncMode;
use crate::spec::CachePolicy;
use host::control_group::IoLimitKind;
use workload::spec::Operation;

use report::record::{DeviceActivity, IoLimitActivity, MachineTraffic};

use super::*;

const FSYNCED: Shape = Shape { direct: false, ..WRITES };

fn seen(record: &mut Record) -> &mut Observations {
    &mut phase(record).observations
}

fn moved(record: &Record, class: &str) -> u64 {
    record.phases[0].summary.classes.iter().find(|found| found.class == class).unwrap().bytes
}

fn bottom(read_bytes: u64, written_bytes: u64) -> Vec<DeviceActivity> {
    vec![DeviceActivity { name: "vda".to_owned(), read_bytes, written_bytes, ..DeviceActivity::default() }]
}

fn synced(record: &mut Record) {
    plan(record).options.sync = SyncMode::Dsync;
}

#[test]
fn direct_not_honoured() {
    let told = |shape: &Shape, change: &dyn Fn(&mut Record)| detail("direct_not_honoured", shape, change);
    let through_cache = on_device("loop0", |device| {
        device.backing_direct = Some(false);
        device.backing_file = Some("/images/a".into());
    });
    assert_eq!(
        told(&DRIVE, &through_cache).unwrap(),
        "loop0 accesses /images/a through the page cache, which ignores --direct"
    );
    assert_eq!(told(&BUFFERED, &through_cache), None, "not asked for");
    assert_eq!(told(&DRIVE, &on_device("loop0", |device| device.backing_direct = Some(true))), None);
    let share = |percent: u64| {
        move |record: &mut Record| {
            let bytes = moved(record, "read");
            seen(record).device_read_bytes = Some(bytes);
            seen(record).bottom_devices = bottom(bytes / 100 * percent, 0);
        }
    };
    assert!(told(&DRIVE, &share(4)).unwrap().starts_with("the devices delivered 4.0"));
    assert_eq!(told(&DRIVE, &share(95)), None);
    assert_eq!(told(&DRIVE, &share(300)), None, "others read from it too");
    let holes = |record: &mut Record| {
        share(4)(record);
        seen(record).unwritten_fraction = Some(0.96);
    };
    assert_eq!(told(&DRIVE, &holes), None, "told by unwritten_range");
    let lost = |record: &mut Record| {
        let bytes = moved(record, "write");
        seen(record).device_written_bytes = Some(bytes);
        seen(record).bottom_devices = bottom(0, bytes / 5);
    };
    assert!(told(&WRITES, &lost).unwrap().starts_with("20.0% of the bytes written with --direct"));
    let compressed = |record: &mut Record| {
        lost(record);
        place(record).filesystem.as_mut().unwrap().kind = "btrfs".to_owned();
        place(record).filesystem.as_mut().unwrap().options = "rw,compress=zstd".to_owned();
    };
    assert_eq!(told(&WRITES, &compressed), None, "compressed data are fewer");
}

/// Traffic through a RAID is the sum of the traffic of its members.
#[test]
fn direct_through_a_raid() {
    let members = |read_bytes: u64, written_bytes: u64| {
        [bottom(read_bytes, written_bytes), bottom(read_bytes, written_bytes)].concat()
    };
    let read = |percent: u64| {
        detail("direct_not_honoured", &DRIVE, |record| {
            on_device("md127", |device| device.transport = Some("raid".to_owned()))(record);
            let bytes = moved(record, "read");
            seen(record).device_read_bytes = Some(bytes);
            seen(record).bottom_devices = members(bytes / 200 * percent, 0);
        })
    };
    assert_eq!(read(100), None, "each gave a half");
    assert!(read(4).unwrap().starts_with("the devices delivered 4.0"));
    let written = |percent: u64| {
        detail("direct_not_honoured", &WRITES, |record| {
            let bytes = moved(record, "write");
            seen(record).device_written_bytes = Some(bytes);
            seen(record).bottom_devices = members(0, bytes / 100 * percent);
        })
    };
    assert_eq!(written(100), None, "a mirror writes all of it twice");
    assert!(written(20).unwrap().starts_with("40.0% of the bytes written with --direct"));
}

#[test]
fn direct_through_fuse() {
    let told = |kind: &str, drives: u64, network: u64| {
        detail("direct_not_honoured", &DRIVE, |record| {
            on_filesystem(kind, "rw")(record);
            seen(record).machine_traffic = Some(MachineTraffic {
                drives_read_bytes: drives,
                network_received_bytes: network,
                ..MachineTraffic::default()
            });
        })
    };
    let text = told("fuse.passthrough", 30 << 20, 0).unwrap();
    assert!(text.contains("read with --direct, at most 30 MiB came from drives and networks"), "{text}");
    assert_eq!(told("fuse.sshfs", 0, u64::MAX / 2), None, "the network brought it");
    assert_eq!(told("virtiofs", 0, 0), None, "a hypervisor brings it");
    assert_eq!(told("nfs4", 0, 0), None);
}

#[test]
fn shares_are_those_of_the_lowest_device() {
    let half = |record: &mut Record| {
        let bytes = moved(record, "read");
        seen(record).device_read_bytes = Some(bytes);
        seen(record).bottom_devices = bottom(bytes / 2, 0);
    };
    let text = detail("page_cache", &BUFFERED, half).unwrap();
    assert!(text.starts_with("the device delivered 50.0% of the bytes read"), "{text}");
    let encoded = |record: &mut Record| {
        half(record);
        seen(record).range.encoded_fraction = Some(0.9);
    };
    assert_eq!(detail("page_cache", &BUFFERED, encoded), None, "compressed data are fewer");
}

#[test]
fn dax_has_no_page_cache() {
    let mapped = |record: &mut Record| {
        seen(record).range.dax_fraction = Some(1.0);
        seen(record).device_written_bytes = Some(0);
        seen(record).device_read_bytes = Some(0);
    };
    assert_eq!(found(&FSYNCED, mapped), [""; 0]);
    assert_eq!(found(&BUFFERED, mapped), [""; 0]);
    assert_eq!(found(&DRIVE, mapped), [""; 0]);
    assert_eq!(found(&FSYNCED, |record| seen(record).range.dax_fraction = Some(0.0)), ["buffered_writes"]);
}

#[test]
fn read_amplification() {
    let times = |times: u64| {
        move |record: &mut Record| {
            seen(record).process_fetched_bytes = Some(moved(record, "read") * times);
        }
    };
    let mapped = Shape { engine: "mmap", ..BUFFERED };
    let text = detail("read_amplification", &mapped, times(13)).unwrap();
    assert_eq!(text, "the kernel read 13.0 times the requested bytes from the device (read-ahead)");
    assert_eq!(detail("read_amplification", &mapped, times(1)), None);
    assert_eq!(detail("read_amplification", &DRIVE, times(13)), None, "past the page cache");
    let ahead = |record: &mut Record| {
        times(13)(record);
        let bytes = moved(record, "read");
        place(record).device.as_mut().unwrap().read_ahead_bytes = Some(12 * bytes);
    };
    assert_eq!(detail("read_amplification", &mapped, ahead), None, "what is read ahead once at the end");
    let delayed = |record: &mut Record| {
        times(13)(record);
        plan(record).load.start_delay_ns = 1;
    };
    assert_eq!(detail("read_amplification", &mapped, delayed), None, "counted over more than the samples");
}

#[test]
fn unwritten_extents() {
    let told = |shape: &Shape, unwritten: f64| {
        detail("unwritten_extents", shape, |record| {
            let bytes = moved(record, if shape.operation == Operation::Read { "read" } else { "write" });
            plan(record).targets[0].size_bytes = bytes;
            seen(record).unwritten_fraction = Some(unwritten);
        })
    };
    let text = told(&WRITES, 0.97).unwrap();
    assert!(text.starts_with("97.0% of the range was never written: the first write"), "{text}");
    assert_eq!(told(&WRITES, 0.005), None);
    assert_eq!(told(&WRITES, 0.05), None, "nineteen of twenty writes find their block");
    assert_eq!(told(&FSYNCED, 0.97), None, "written back later");
    assert_eq!(told(&Shape { operation: Operation::Read, ..DRIVE }, 0.97), None);
}

#[test]
fn volatile_cache() {
    let told = |change: &dyn Fn(&mut Record)| {
        detail("volatile_cache", &FSYNCED, |record| {
            synced(record);
            change(record);
        })
    };
    let mounted = |options: &'static str| {
        move |record: &mut Record| place(record).filesystem.as_mut().unwrap().options = options.to_owned()
    };
    assert_eq!(
        told(&mounted("rw,nobarrier")).unwrap(),
        "/data is mounted with nobarrier: fsync does not empty the drive's volatile cache"
    );
    assert!(told(&mounted("rw,barrier=0")).is_some());
    assert_eq!(told(&mounted("rw,relatime")), None);
    let safe = |record: &mut Record| {
        mounted("rw,nobarrier")(record);
        place(record).device.as_mut().unwrap().write_cache = Some("write through".to_owned());
    };
    assert_eq!(told(&safe), None, "a drive without a volatile cache loses nothing");
    assert_eq!(detail("volatile_cache", &WRITES, mounted("rw,nobarrier")), None, "nothing is made durable");
    let claimed = |name: &'static str, transport: &'static str, itself: Option<&'static str>| {
        move |record: &mut Record| {
            on_device(name, |device| {
                device.write_cache = Some("write through".to_owned());
                device.drive_write_cache = itself.map(str::to_owned);
                device.transport = Some(transport.to_owned());
            })(record);
        }
    };
    assert!(
        told(&claimed("sda", "sata", Some("write back"))).unwrap().contains("the kernel never flushes sda")
    );
    assert_eq!(told(&claimed("sda", "sata", Some("write through"))), None);
    assert_eq!(told(&claimed("nvme0n1", "pcie", None)), None);
    assert!(told(&claimed("vda", "virtio", None)).unwrap().starts_with("the hypervisor accepts no flushes"));
}

#[test]
fn nearly_full() {
    let told =
        |shape: &Shape, free| detail("nearly_full", shape, |record| seen(record).free_fraction = Some(free));
    assert_eq!(told(&WRITES, 0.03).unwrap(), "only 3.00% of the file system is free");
    assert_eq!(told(&WRITES, 0.05), None);
    assert_eq!(told(&DRIVE, 0.03), None, "reads allocate nothing");
}

#[test]
fn encoded_extents() {
    let told = |shape: &Shape, encoded, shared| {
        detail("encoded_extents", shape, |record| {
            seen(record).range.encoded_fraction = Some(encoded);
            seen(record).range.shared_fraction = Some(shared);
        })
    };
    assert!(told(&DRIVE, 0.5, 0.0).unwrap().contains("is stored compressed"));
    assert!(told(&WRITES, 0.0, 1.0).unwrap().ends_with("the first write to a block copies it"));
    assert_eq!(told(&WRITES, 0.5, 0.0), None, "written over, they are compressed anew or not");
    assert_eq!(told(&DRIVE, 0.01, 0.01), None);
}

#[test]
fn io_throttled() {
    let told = |device: &str, reached_per_second| {
        detail("io_throttled", &DRIVE, |record| {
            seen(record).io_limits = vec![IoLimitActivity {
                device: device.to_owned(),
                kind: IoLimitKind::Reads,
                limit_per_second: 1000,
                reached_per_second,
            }];
        })
    };
    assert_eq!(
        told("nvme0n1", 990.0).unwrap(),
        "a control group limits reads of nvme0n1 to 1.00k/s, and the load reached 990/s: the result shows the limit, not the device"
    );
    assert_eq!(told("nvme0n1", 500.0), None);
    assert_eq!(told("sdb", 990.0), None, "another device");
}

#[test]
fn remedies_do_not_name_what_is_so() {
    let remedy = |kind: &str, shape: &Shape, change: &dyn Fn(&mut Record)| {
        let mut record = sample::record(vec![made(shape)]);
        change(&mut record);
        doubts(&record).into_iter().find(|doubt| doubt.kind == kind).unwrap().remedy
    };
    let cached = |record: &mut Record| seen(record).cached_before_fraction = Some(1.0);
    assert!(remedy("page_cache", &BUFFERED, &cached).contains("--cache drop"));
    let dropped = |record: &mut Record| {
        cached(record);
        plan(record).cache = CachePolicy::Drop;
    };
    assert!(!remedy("page_cache", &BUFFERED, &dropped).contains("--cache drop"));
    let stamped = |record: &mut Record| {
        plan(record).content.refill = Refill::Stamp;
        phase(record).summary.tool_share_max = 0.4;
    };
    assert!(!remedy("client_saturated", &WRITES, &stamped).contains("--refill stamp"));
    assert!(!remedy("compressible_content", &WRITES, &stamped).contains("--content random"));
    let looped = on_device("loop0", |device| device.backing_direct = Some(false));
    assert!(remedy("direct_not_honoured", &DRIVE, &looped).contains("losetup --direct-io=on"));
}
