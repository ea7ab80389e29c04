//! The machine of the records.

use host::block::{BlockDevice, DeviceNumber};
use host::memory::MemoryFacts;
use host::processor::Processor;
use host::system::System;
use host::target::FilesystemFacts;
use host::{Environment, TargetEnvironment};

/// Facts of a machine with one drive.
pub fn environment() -> Environment {
    let device = BlockDevice {
        name: "nvme0n1".to_owned(),
        partition: Some("nvme0n1p2".to_owned()),
        number: DeviceNumber { major: 259, minor: 2 },
        size_bytes: Some(500 << 30),
        model: Some("Example SSD 980".to_owned()),
        vendor: None,
        transport: Some("pcie".to_owned()),
        rotational: Some(false),
        logical_block_size_bytes: Some(512),
        physical_block_size_bytes: Some(4096),
        scheduler: Some("none".to_owned()),
        nr_requests: Some(1023),
        request_size_bytes_max: Some(512 << 10),
        read_ahead_bytes: Some(128 << 10),
        write_cache: Some("write back".to_owned()),
        drive_write_cache: None,
        forced_unit_access: Some(true),
        keeps_counters: Some(true),
        discard: Some(true),
        zoned: None,
        dax: Some(false),
        polling: Some(false),
        read_only: Some(false),
        numa_node: None,
        backing_file: None,
        backing_filesystem: None,
        backing_direct: None,
        underlying: vec![],
    };
    Environment {
        system: System {
            kernel: Some("6.12.8".to_owned()),
            hostname: Some("store1".to_owned()),
            ..System::default()
        },
        processor: Processor {
            model: Some("Example EPYC 7B13".to_owned()),
            logical_cores: Some(8),
            governors: vec!["performance".to_owned()],
            virtualised: Some(false),
            ..Processor::default()
        },
        numa_nodes: vec![],
        memory: MemoryFacts { total_bytes: Some(64 << 30), ..MemoryFacts::default() },
        interfaces: vec![],
        load_averages: Some([0.5, 0.25, 0.125]),
        targets: vec![TargetEnvironment {
            path: "/data/file".into(),
            file_size_bytes: Some(10 << 30),
            file_allocated_bytes: Some(10 << 30),
            filesystem: Some(FilesystemFacts {
                kind: "ext4".to_owned(),
                mount_point: "/data".into(),
                source: "/dev/nvme0n1p2".into(),
                options: "rw,relatime".to_owned(),
                total_bytes: Some(400 << 30),
                free_bytes: Some(200 << 30),
                block_size_bytes: Some(4096),
                underlying: None,
            }),
            device: Some(device),
        }],
    }
}
