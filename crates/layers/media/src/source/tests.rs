use std::sync::Arc;

use crate::plan::{EngineFacts, MediaPlan, resolve};
use crate::target::TargetFacts;
use driver::{Arena, PageSize, Source as _};
use workload::options;
use workload::spec::{Operation, Spec};
use workload::target::TargetKind;

use super::MediaSource;
use crate::operations_of;

const RANGE_BYTES: u64 = 6 << 20;

fn plan(operation: Operation, words: &[(&str, &str)]) -> MediaPlan {
    let mut spec = Spec { layer: crate::LAYER, ..Spec::default() };
    for (key, value) in words {
        options::apply(&mut spec, key, value).expect("option");
    }
    let fact = |path: &str| TargetFacts {
        path: path.to_owned(),
        kind: TargetKind::File,
        exists: true,
        size_bytes: RANGE_BYTES,
        allocated_bytes: RANGE_BYTES,
        direct_alignment_bytes: 512,
        free_bytes: None,
        zoned: None,
    };
    let engine = EngineFacts {
        name: "null",
        classes: &["read", "write", "sync"],
        asynchronous: true,
        depth_max: 64,
        targetless: false,
        direct: true,
        options: &[],
    };
    resolve(&spec, operation, &[fact("/a"), fact("/b")], &engine, 1).expect("plan")
}

/// Operations that the sources of all workers really have.
fn drawn(plan: &MediaPlan) -> u64 {
    let worker = |worker| {
        let arena = Arena::new(plan.load.depth, plan.block_size_bytes_max as usize, PageSize::Base);
        let mut source = MediaSource::new(plan, worker, Arc::new(arena.unwrap()), None, None).unwrap();
        let passed = std::iter::from_fn(|| source.next(0)).count();
        passed + std::iter::from_fn(|| source.finish(0)).count()
    };
    (0..plan.load.threads).map(worker).sum::<usize>() as u64
}

#[test]
fn the_operations_of_one_pass_are_known_beforehand() {
    let threads = ("threads", "4");
    for (operation, words) in [
        (Operation::Read, vec![("block-size", "64k")]),
        (Operation::Read, vec![("block-size", "64k"), threads]),
        (Operation::Read, vec![("block-size", "64k"), threads, ("share", "whole")]),
        (Operation::RandRead, vec![("block-size", "4k"), threads, ("share", "whole")]),
        (Operation::RandRead, vec![("block-size", "4k:50,16k:50"), threads]),
        (Operation::Write, vec![("block-size", "64k"), threads, ("fsync", "4"), ("end-fsync", "true")]),
    ] {
        let plan = plan(operation, &words);
        assert_eq!(operations_of(&plan), Some(drawn(&plan)), "{words:?}");
    }
}

#[test]
fn those_of_drawn_sizes_are_expected() {
    for share in ["partition", "whole"] {
        let words = [("block-size", "4k:50,12k:50"), ("threads", "3"), ("share", share)];
        let plan = plan(Operation::Read, &words);
        let (expected, drawn) = (operations_of(&plan).unwrap() as f64, drawn(&plan) as f64);
        // 1536 sizes and more: their sum is known to a few percent.
        assert!((expected / drawn - 1.0).abs() < 0.1, "{share}: {expected} of {drawn}");
    }
}

#[test]
fn a_limit_says_more_than_the_range() {
    for limit in [("count", "7"), ("bytes", "1m"), ("time", "1s")] {
        assert_eq!(operations_of(&plan(Operation::Read, &[limit])), None, "{limit:?}");
    }
}
