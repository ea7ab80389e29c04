use super::*;
use workload::access::Pattern;
use workload::class_sizes::ClassSizes;

const KIB: u64 = 1024;

fn extents(sizes: &[u64]) -> Vec<Extent> {
    let extent = |(number, &size): (usize, &u64)| Extent {
        target: number as u16,
        offset_bytes: 0,
        size_bytes: size * KIB,
    };
    sizes.iter().enumerate().map(extent).collect()
}

fn course(plan: &CoursePlan, sizes: &str, pattern: &Pattern, extents: &[Extent]) -> Course {
    let sizes: ClassSizes = sizes.parse().unwrap();
    Course::new(plan, &Ground::new(extents, &sizes, pattern, None), false, 7).unwrap()
}

/// Target and offset in KiB of so many reads.
fn reads(course: &mut Course, count: usize) -> Vec<(u16, u64)> {
    (0..count).map(|_| course.next(0).unwrap()).map(|at| (at.target, at.offset_bytes / KIB)).collect()
}

fn offsets(course: &mut Course, count: usize) -> Vec<u64> {
    reads(course, count).into_iter().map(|(_, offset)| offset).collect()
}

#[test]
fn gaps_are_left_out_and_the_end_wraps() {
    let go = |gap: &str, size: u64, count| {
        let plan = CoursePlan { gap_bytes: parse_gap(gap).unwrap(), ..CoursePlan::default() };
        offsets(&mut course(&plan, "4k", &Pattern::Sequential, &extents(&[size])), count)
    };
    assert_eq!(go("4k", 32, 8), [0, 8, 16, 24, 0, 8, 16, 24]);
    assert_eq!(go("20k", 64, 7), [0, 24, 48, 0, 24, 48, 0]);
    assert_eq!(go("-8k", 32, 8), [0, 24, 20, 16, 12, 8, 4, 0]);
    assert_eq!(go("-12k", 32, 8), [0, 20, 12, 4, 20, 12, 4, 20]);
    assert_eq!(go("-4k", 32, 3), [0, 0, 0]);
}

#[test]
fn runs_follow_or_repeat() {
    let identical = |text: &str| CoursePlan { run: text.parse().unwrap(), ..CoursePlan::default() };
    let whole = extents(&[4096]);
    let made = offsets(&mut course(&identical("4"), "4k", &Pattern::Uniform, &whole), 400);
    for run in made.chunks(4) {
        // A run that meets the end of the range breaks off there.
        assert!(
            run.windows(2).all(|pair| pair[1] == pair[0] + 4) || run.iter().any(|at| *at >= 4080),
            "{run:?}"
        );
    }
    assert!(made.chunks(4).map(|run| run[0]).collect::<std::collections::BTreeSet<_>>().len() > 50);
    let made = offsets(&mut course(&identical("identical:3"), "4k", &Pattern::Uniform, &whole), 300);
    assert!(made.chunks(3).all(|run| run.iter().all(|at| *at == run[0])));
}

#[test]
fn a_share_of_the_operations_is_random() {
    let plan = CoursePlan { random_percent: "30".parse().unwrap(), ..CoursePlan::default() };
    let made = offsets(&mut course(&plan, "4k", &Pattern::Uniform, &extents(&[1 << 20])), 10_000);
    let follow = made.windows(2).filter(|pair| pair[1] == pair[0] + 4).count();
    assert!((6_700..7_300).contains(&follow), "{follow}");
}

#[test]
fn zones_are_worked_on_one_after_the_other() {
    let go = |zones: &str, size: u64, count| {
        let plan = CoursePlan { zones: Some(zones.parse().unwrap()), ..CoursePlan::default() };
        offsets(&mut course(&plan, "4k", &Pattern::Sequential, &extents(&[size])), count)
    };
    assert_eq!(go("8k/16k/16k", 128, 10), [0, 4, 32, 36, 64, 68, 96, 100, 0, 4]);
    assert_eq!(go("24k/16k/16k", 128, 9), [0, 4, 8, 12, 0, 4, 32, 36, 40]);
    assert_eq!(go("8k/16k", 64, 10), [0, 4, 16, 20, 32, 36, 48, 52, 0, 4]);
    let plan = CoursePlan { zones: Some("8k/16k/16k".parse().unwrap()), ..CoursePlan::default() };
    let made = offsets(&mut course(&plan, "4k", &Pattern::Permutation, &extents(&[128])), 80);
    for (place, offset) in made.iter().enumerate() {
        let zone = (place / 2 % 4) as u64 * 32;
        assert!((zone..zone + 16).contains(offset), "{place}: {offset}");
    }
}

#[test]
fn targets_are_visited_as_asked() {
    let go = |visit: &str, count| {
        let plan = CoursePlan { visit: visit.parse().unwrap(), gap_bytes: 0, ..CoursePlan::default() };
        reads(&mut course(&plan, "4k", &Pattern::Sequential, &extents(&[8, 8, 8])), count)
    };
    assert_eq!(go("roundrobin", 6), [(0, 0), (1, 0), (2, 0), (0, 4), (1, 4), (2, 4)]);
    assert_eq!(go("roundrobin:2", 6), [(0, 0), (0, 4), (1, 0), (1, 4), (2, 0), (2, 4)]);
    assert_eq!(go("sequential", 7), [(0, 0), (0, 4), (1, 0), (1, 4), (2, 0), (2, 4), (0, 0)]);
    let random = go("random:5", 1000);
    assert!(random.chunks(5).all(|turn| turn.iter().all(|(target, _)| *target == turn[0].0)));
    assert!((0..3).all(|target| random.iter().filter(|(of, _)| *of == target).count() > 200));
}

#[test]
fn classes_have_sizes_and_places_of_their_own() {
    let plan = CoursePlan { own_positions: true, ..CoursePlan::default() };
    let mut course = course(&plan, "read=4k,write=16k", &Pattern::Sequential, &extents(&[64]));
    let made: Vec<_> = [0, 0, 1, 0, 1].iter().map(|class| course.next(*class).unwrap()).collect();
    let made: Vec<_> = made.iter().map(|at| (at.offset_bytes / KIB, at.length_bytes)).collect();
    assert_eq!(made, [(0, 4096), (4, 4096), (0, 16384), (8, 4096), (16, 16384)]);
}

#[test]
fn a_pass_ends_when_the_range_was_moved() {
    let sizes: ClassSizes = "4k".parse().unwrap();
    let (whole, pattern) = (extents(&[32]), Pattern::Permutation);
    let plan = CoursePlan { run: "2".parse().unwrap(), ..CoursePlan::default() };
    let mut course = Course::new(&plan, &Ground::new(&whole, &sizes, &pattern, None), true, 1).unwrap();
    assert_eq!(std::iter::from_fn(|| course.next(0)).count(), 8);
}

#[test]
fn words_that_make_no_sense_are_refused() {
    for text in ["", "k", "--4k", "4k:1"] {
        parse_gap(text).unwrap_err();
    }
    for text in ["0", "", "identical:", "same:4", "-1"] {
        text.parse::<Run>().unwrap_err();
    }
    for text in ["8k", "0/4k", "4k/0", "1/2/3/4", "a/b"] {
        text.parse::<Zones>().unwrap_err();
    }
    for text in ["sideways", "sequential:2", "random:0", "roundrobin:"] {
        text.parse::<Visit>().unwrap_err();
    }
    for text in ["101", "read=50,erase=2", "read"] {
        text.parse::<Percents>().unwrap_err();
    }
    for text in ["read=4k,read=8k", "erase=4k", "4k,write=8k", "read="] {
        text.parse::<ClassSizes>().unwrap_err();
    }
    let sizes: ClassSizes = "write=4k:50,8k:50,read=1k".parse().unwrap();
    assert_eq!(sizes.to_string().parse::<ClassSizes>().unwrap(), sizes);
    assert_eq!((sizes.of(0).max(), sizes.of(1).max(), sizes.of(2).max()), (1024, 8192, 8192));
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_operation_lies_in_its_extent(
            gap in -64i64..64,
            run in 1u64..5,
            identical: bool,
            percent in 0u8..=100,
            zones in proptest::option::of((1u64..20, 4u64..20, 0u64..20)),
            visit in 0u8..3,
            own: bool,
            random: bool,
            sizes in proptest::collection::vec(64u64..200, 1..4),
        ) {
            let zones = zones.filter(|_| gap == 0 || random).map(|(size, range, skip)| Zones {
                size_bytes: size * KIB,
                range_bytes: range * KIB,
                skip_bytes: skip * KIB,
            });
            let plan = CoursePlan {
                gap_bytes: if random { 0 } else { gap * KIB as i64 },
                run: Run { operations: run, identical },
                random_percent: Percents([percent; 3]),
                own_positions: own,
                zones,
                visit: [Visit::Sequential, Visit::RoundRobin(run), Visit::Random(run)][usize::from(visit)],
            };
            let pattern = if random { Pattern::Permutation } else { Pattern::Sequential };
            let whole = extents(&sizes);
            let mut course = course(&plan, "read=1k-4k,write=2k", &pattern, &whole);
            for step in 0..500 {
                let at = course.next(step % 2).unwrap();
                let size = whole[usize::from(at.target)].size_bytes;
                prop_assert!(at.length_bytes > 0);
                prop_assert!(at.offset_bytes + u64::from(at.length_bytes) <= size, "{at:?} {size}");
            }
        }
    }
}
