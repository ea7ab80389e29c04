//! Drivers of memory of the host with buffers on a device, by copies within the operations.

use driver::{Completions, Wait};
use gpu::{GpuPlan, Staging};
use media::{DRIVERS, MediaClass};

use crate::support::{BLOCK, Entry, Rig, Scratch, on_files, operation, pattern};

/// Drivers that take `--memory gpu` and work on files.
fn staged() -> impl Iterator<Item = &'static Entry> {
    on_files().filter(|entry| entry.capabilities.options.contains(&"gpu-staging"))
}

#[test]
fn what_moves_blocks_may_be_staged() {
    let on_gpu = DRIVERS.iter().filter(|entry| entry.capabilities.options.contains(&"memory"));
    let names: Vec<_> = on_gpu.map(|entry| entry.name).collect();
    assert_eq!(
        names,
        [
            "psync",
            "pvsync2",
            "libaio",
            "io_uring",
            "mmap",
            "rbd",
            "cufile",
            "cufile_batch",
            "cufile_stream",
            "gpu_copy",
            "gpu_mem"
        ]
    );
}

#[test]
fn blocks_go_from_the_device_to_the_file_and_back() {
    const BLOCKS: usize = 16;
    for (entry, staging) in
        staged().flat_map(|entry| [Staging::Pinned, Staging::Pageable].map(|staging| (entry, staging)))
    {
        let bytes = BLOCKS * BLOCK as usize;
        let scratch = Scratch::with(&vec![0; bytes]);
        let plan = GpuPlan { staging, ..GpuPlan::default() };
        let mut rig = Rig::staged(entry, &scratch.file, bytes as u64, plan);
        let mut expected = vec![0; bytes];
        for round in 0..BLOCKS / rig.depth as usize {
            let blocks = (0..rig.depth).map(|slot| (slot, round * rig.depth as usize + slot as usize));
            let operations = blocks.map(|(slot, block)| {
                let data = pattern(block as u64, BLOCK as usize);
                rig.fill(slot, &data);
                expected[block * BLOCK as usize..][..BLOCK as usize].copy_from_slice(&data);
                media::MediaOperation {
                    slot,
                    ..operation(MediaClass::Write, (block * BLOCK as usize) as u64)
                }
            });
            let operations: Vec<_> = operations.collect();
            let finished = rig.run_all(&operations);
            assert!(
                finished.iter().all(|done| done.result == i64::from(BLOCK)),
                "{}: {finished:?}",
                entry.name
            );
        }
        assert_eq!(rig.run(operation(MediaClass::Sync, 0)), 0, "{}", entry.name);
        assert!(scratch.content() == expected, "{}: the file has other bytes", entry.name);
        let reads = (0..rig.depth).map(|slot| media::MediaOperation {
            slot,
            ..operation(MediaClass::Read, u64::from(slot) * u64::from(BLOCK))
        });
        let reads: Vec<_> = reads.collect();
        rig.run_all(&reads);
        for slot in 0..rig.depth {
            assert!(
                rig.bytes(slot, BLOCK as usize) == pattern(u64::from(slot), BLOCK as usize),
                "{}",
                entry.name
            );
        }
    }
}

#[test]
fn a_wait_with_a_limit_ends() {
    for entry in staged().filter(|entry| entry.capabilities.asynchronous) {
        let scratch = Scratch::with(&[7; BLOCK as usize]);
        let mut rig = Rig::staged(entry, &scratch.file, u64::from(BLOCK), GpuPlan::default());
        let mut done = Completions::with_depth(8);
        rig.driver
            .reap(Wait::Timeout { count: 1, timeout_ns: 1_000_000 }, &mut done)
            .expect("nothing is in flight");
        assert!(done.is_empty());
        assert_eq!(rig.run(operation(MediaClass::Read, 0)), i64::from(BLOCK));
        assert!(rig.bytes(0, BLOCK as usize).iter().all(|&byte| byte == 7), "{}", entry.name);
    }
}
