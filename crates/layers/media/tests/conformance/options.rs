//! The options of the drivers of the media layer: every one works or is refused by name.

use std::path::Path;
use std::sync::Arc;

use crate::support::{BLOCK, Entry, Rig, Scratch, on_files, operation, pattern, plan, plan_for};
use driver::{Arena, PageSize};
use media::engine::{Advice, EngineOptions, MemoryOperation, SyncMode};
use media::{DRIVERS, MediaClass, OpenRequest};
use workload::control::parse_priority_shares;
use workload::engine::Feature;
use workload::target::TargetKind;

/// The settings of an option that can be tried on any machine, and the words that a refusal must have.
fn settings(option: &str) -> Vec<(EngineOptions, &'static str)> {
    let none = EngineOptions::default;
    let direct = || EngineOptions { direct: true, ..none() };
    match option {
        "sync" => vec![
            (EngineOptions { sync: SyncMode::Dsync, ..none() }, ""),
            (EngineOptions { sync: SyncMode::Sync, ..none() }, ""),
        ],
        "register-files" => {
            features(|feature, options| options.register_files = feature, "register the files")
        }
        "register-buffers" => {
            features(|feature, options| options.register_buffers = feature, "register the buffers")
        }
        "defer-taskrun" => features(|feature, options| options.defer_taskrun = feature, "Linux 6.1"),
        "sqpoll" => vec![
            (EngineOptions { sqpoll: true, ..none() }, "io_uring"),
            (EngineOptions { sqpoll: true, ..direct() }, "io_uring"),
        ],
        "sqpoll-core" => vec![
            (EngineOptions { sqpoll: true, sqpoll_core: Some(0), ..none() }, "CPU 0"),
            (EngineOptions { sqpoll: true, sqpoll_core: Some(99_999), ..none() }, "CPU 99999"),
            (EngineOptions { sqpoll_core: Some(0), ..none() }, "--sqpoll"),
        ],
        "iopoll" => vec![
            (EngineOptions { iopoll: true, ..direct() }, "no poll queues"),
            (EngineOptions { iopoll: true, ..none() }, "--direct"),
        ],
        "hipri" => vec![
            (EngineOptions { hipri: true, ..direct() }, "RWF_HIPRI"),
            (EngineOptions { hipri: true, ..none() }, "--direct"),
        ],
        "nowait" => vec![(EngineOptions { nowait: true, ..none() }, "RWF_NOWAIT")],
        "rwf-dsync" => vec![(EngineOptions { rwf_dsync: true, ..none() }, "")],
        "dontcache" => vec![(EngineOptions { dontcache: true, ..none() }, "RWF_DONTCACHE")],
        "map-sync" => vec![(EngineOptions { map_sync: true, ..none() }, "MAP_SYNC")],
        // What they do, no block tells: the tests of the command look at it.
        "memory-operation" | "cpu-chunk" | "cpu-sort" => Vec::new(),
        // Where buffers lie is no option of a driver's own: gpu.rs.
        "memory" | "gpu-path" | "gpu-staging" | "gpu-register" | "gpu-per" => Vec::new(),
        "program" | "program-arguments" | "program-output" | "program-time" | "program-grace" => Vec::new(),
        "advise" => [Advice::Sequential, Advice::Random, Advice::NoReuse]
            .map(|advice| (EngineOptions { advice, ..none() }, "advi"))
            .to_vec(),
        "force-async" => vec![(EngineOptions { force_async: Some(2), ..none() }, "io_uring")],
        "operation-priority" => {
            let shares = parse_priority_shares("read:50@best-effort:7,write:100@idle").unwrap();
            vec![(EngineOptions { operation_priorities: shares, ..none() }, "priorit")]
        }
        other => panic!("no test for the option {other}"),
    }
}

fn features(
    set: impl Fn(Feature, &mut EngineOptions),
    refusal: &'static str,
) -> Vec<(EngineOptions, &'static str)> {
    [Feature::Auto, Feature::On, Feature::Off]
        .map(|feature| {
            let mut options = EngineOptions::default();
            set(feature, &mut options);
            (options, refusal)
        })
        .to_vec()
}

#[test]
fn every_option_works_or_is_refused_by_name() {
    for entry in DRIVERS {
        for option in entry.capabilities.options {
            for (options, refusal) in settings(option) {
                let scratch = Scratch::with(&pattern(1, 4 * BLOCK as usize));
                let target = plan_for(entry, &scratch.file, 4 * u64::from(BLOCK));
                match Rig::open(entry, vec![target], true, options.clone()) {
                    Ok(mut rig) if options.nowait => {
                        // Written through the cache just now: nothing to wait for.
                        assert_eq!(rig.run(operation(MediaClass::Read, 0)), i64::from(BLOCK));
                    }
                    Ok(mut rig) => rig.write_and_read_back(entry.name, u64::from(BLOCK), 5),
                    Err(error) => {
                        let text = error.to_string();
                        assert!(!refusal.is_empty() && text.contains(refusal), "{option}: {text}");
                    }
                }
            }
        }
    }
}

#[test]
fn direct_io_is_refused_where_it_means_nothing() {
    for entry in DRIVERS.iter().filter(|entry| !entry.capabilities.direct && entry.name != "null") {
        let scratch = Scratch::with(&[0; BLOCK as usize]);
        let options = EngineOptions { direct: true, ..EngineOptions::default() };
        let target = plan_for(entry, &scratch.file, u64::from(BLOCK));
        let error = Rig::open(entry, vec![target], true, options).err().expect("a refusal");
        assert_eq!(error.exit_code(), 2, "{error}");
    }
}

#[test]
fn depth_is_refused_beyond_what_a_driver_takes() {
    for entry in on_files() {
        let scratch = Scratch::with(&[0; BLOCK as usize]);
        let arena = Arc::new(Arena::new(2, BLOCK as usize, PageSize::Base).expect("memory"));
        for depth in [0, entry.capabilities.depth_max + 1] {
            let targets = vec![plan_for(entry, &scratch.file, u64::from(BLOCK))];
            let request = OpenRequest {
                targets,
                writes: false,
                depth,
                options: EngineOptions::default(),
                images: Arc::default(),
                arena: Arc::clone(&arena),
                device: None,
            };
            let error = (entry.open)(&request).err().expect("a refusal");
            assert_eq!(error.exit_code(), 2, "{error}");
            assert!(error.to_string().contains(&format!("queue depth {depth} ")), "{error}");
        }
    }
}

#[test]
fn buffered_libaio_says_that_it_is_not_asynchronous() {
    let scratch = Scratch::with(&[0; BLOCK as usize]);
    let entry = driver::find(DRIVERS, "libaio").expect("libaio");
    let rig = Rig::on(entry, &scratch.file, u64::from(BLOCK));
    assert!(rig.notes.iter().any(|note| note.contains("not asynchronous")), "{:?}", rig.notes);
}

#[test]
fn memory_is_copied_filled_or_read() {
    let entry: &Entry = driver::find(DRIVERS, "mem").expect("mem");
    let open = |memory_operation| {
        let target = plan(Path::new("mem:"), TargetKind::Memory, 2 * u64::from(BLOCK));
        let options = EngineOptions { memory_operation, ..EngineOptions::default() };
        Rig::open(entry, vec![target], true, options).expect("open")
    };
    let full = i64::from(BLOCK);
    let mut copy = open(MemoryOperation::Copy);
    copy.write_and_read_back("mem", u64::from(BLOCK), 3);
    let last = operation(MediaClass::Read, 2 * u64::from(BLOCK) - 10);
    assert_eq!(copy.run(last), 10);
    assert_eq!(copy.run(operation(MediaClass::Write, 2 * u64::from(BLOCK))), -i64::from(libc::ENOSPC));

    let mut fill = open(MemoryOperation::Fill);
    fill.fill(0, &[1; BLOCK as usize]);
    assert_eq!(fill.run(operation(MediaClass::Write, 0)), full);
    assert_eq!(fill.run(operation(MediaClass::Read, 0)), full);
    assert!(fill.bytes(0, BLOCK as usize).iter().all(|&byte| byte == 0xa5));

    let mut read = open(MemoryOperation::Read);
    read.fill(0, &[1; BLOCK as usize]);
    assert_eq!(read.run(operation(MediaClass::Read, 0)), full);
    assert!(
        read.bytes(0, BLOCK as usize).iter().all(|&byte| byte == 1),
        "a read that only loads fills no buffer"
    );
}
