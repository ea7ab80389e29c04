//! Options: any keys and values, then the plan that they make; every refusal is one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use media::plan::{EngineFacts, default_engine, resolve};
use media::target::TargetFacts;
use workload::plan::expand_ladder;
use workload::spec::{Operation, Spec};
use workload::target::TargetKind;

const ENGINE: EngineFacts = EngineFacts {
    name: "io_uring",
    classes: &["read", "write", "discard", "fsync", "nop"],
    asynchronous: true,
    depth_max: 4096,
    targetless: false,
    direct: true,
    options: &["register-files", "register-buffers", "defer-taskrun", "sqpoll", "sqpoll-core", "iopoll"],
};

// Lines of `key=value`.
fuzz_target!(|input: (u8, u64, &str)| {
    let (kind, size_bytes, text) = input;
    let mut spec = Spec { layer: media::LAYER, ..Spec::default() };
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        if let Err(error) = workload::options::apply(&mut spec, key, value) {
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
    let facts = [target(kind, size_bytes)];
    let _ = default_engine(&spec, &facts, true);
    let given = &media::of(&spec).operations;
    let operations = if given.is_empty() { &vec![Operation::RandRead] } else { given };
    for step in expand_ladder(&spec).iter().take(4) {
        for &operation in operations.iter().take(4) {
            match resolve(step, operation, &facts, &ENGINE, 1) {
                Ok(plan) => {
                    assert!(plan.load.threads > 0 && plan.load.depth > 0);
                    assert!((1..=plan.load.depth).contains(&plan.load.batch));
                    assert!(
                        plan.block_size_bytes_max > 0
                            && plan.block_size_bytes_max <= plan.targets[0].size_bytes
                    );
                }
                Err(error) => assert_eq!(error.to_string().lines().count(), 1),
            }
        }
    }
});

fn target(kind: u8, size_bytes: u64) -> TargetFacts {
    let kinds = [TargetKind::File, TargetKind::BlockDevice, TargetKind::CharacterDevice, TargetKind::Null];
    TargetFacts {
        path: "target".to_owned(),
        kind: kinds[usize::from(kind) % kinds.len()],
        exists: kind < 128,
        size_bytes,
        allocated_bytes: size_bytes / 2,
        direct_alignment_bytes: 512,
        free_bytes: Some(1 << 40),
        zoned: None,
    }
}
