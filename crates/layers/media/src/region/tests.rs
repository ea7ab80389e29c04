use crate::plan::{EngineFacts, MediaPlan, resolve};
use crate::target::TargetFacts;
use workload::options;
use workload::spec::{Operation, Spec};
use workload::target::TargetKind;

use super::{Region, SizedCursor};

fn plan(options: &[(&str, &str)], sizes: &[u64]) -> MediaPlan {
    let mut spec = Spec { layer: crate::LAYER, ..Spec::default() };
    for (key, value) in options {
        options::apply(&mut spec, key, value).expect("option");
    }
    let fact = |(number, size): (usize, &u64)| TargetFacts {
        path: format!("/t{number}"),
        kind: TargetKind::File,
        exists: true,
        size_bytes: *size,
        allocated_bytes: *size,
        direct_alignment_bytes: 512,
        free_bytes: None,
        zoned: None,
    };
    let facts: Vec<_> = sizes.iter().enumerate().map(fact).collect();
    let engine = EngineFacts {
        name: "null",
        classes: &["read", "write"],
        asynchronous: true,
        depth_max: 64,
        targetless: false,
        direct: true,
        options: &[],
    };
    resolve(&spec, Operation::Read, &facts, &engine, 1).expect("plan")
}

#[test]
fn workers_cover_every_place_once() {
    let plan = plan(&[("block-size", "4k"), ("threads", "3")], &[5 * 4096, 2 * 4096, 4096 + 100]);
    let mut seen = Vec::new();
    for worker in 0..3 {
        let region = Region::new(&plan, worker).expect("region");
        for place in region.first()..region.first() + region.places() {
            seen.push(region.locate(place));
        }
    }
    let blocks = |target, count| (0..count).map(move |block| (target, block * 4096));
    let expected: Vec<_> = blocks(0u16, 5).chain(blocks(1, 2)).chain(blocks(2, 1)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn sized_cursor_leaves_no_gap() {
    let plan = plan(&[("block-size", "4k:50,12k:50"), ("threads", "2")], &[100 * 4096, 7 * 4096]);
    let mut covered = [vec![0u8; 100], vec![0u8; 7]];
    for worker in 0..2 {
        let region = Region::new(&plan, worker).expect("region");
        let mut cursor = SizedCursor::new(&region, 4096, true);
        let mut size = 4096;
        while let Some((target, offset, length)) = cursor.next(&region, size) {
            for block in offset / 4096..(offset + u64::from(length)) / 4096 {
                covered[usize::from(target)][block as usize] += 1;
            }
            size = 16384 - size;
        }
    }
    assert!(covered.iter().flatten().all(|&times| times == 1), "{covered:?}");
}
