//! Places, sizes and shares of items.

use super::*;

fn set(layout: Layout, by_item: bool) -> SetPlan {
    SetPlan {
        name: "s".to_owned(),
        is_index: false,
        layout,
        by_item,
        size_bytes_min: 10,
        size_bytes_max: 10,
        size_step_bytes: 1,
        transfer_bytes: 10,
        space: Space { iterations: 3, processes: 2, items: 4 },
        describes: None,
        is_renamed: false,
        log: None,
        data_sync: false,
        format: layer::storage::ObjectFormat::Raw,
        datasets: Vec::new(),
        parallel: None,
    }
}

#[test]
fn items_of_all_layouts_lie_side_by_side() {
    for layout in LAYOUTS.iter().map(|(_, layout)| *layout) {
        for by_item in [false, true] {
            let set = set(layout, by_item);
            let mut places: Vec<(u64, u64)> = (0..24).map(|item| set.place(item)).collect();
            places.sort_unstable();
            let per_object = 24 / set.objects();
            let expected =
                (0..set.objects()).flat_map(|object| (0..per_object).map(move |at| (object, at * 10)));
            assert_eq!(places, expected.collect::<Vec<_>>(), "{layout:?}");
            assert_eq!(set.object_bytes(), per_object * 10);
        }
    }
    // Item 1 of process 1 in iteration 2.
    assert_eq!(set(Layout::Iteration, false).place(21), (2, 50));
    assert_eq!(set(Layout::Iteration, true).place(21), (2, 30));
}

#[test]
fn sizes_follow_from_numbers_and_stay_in_their_range() {
    let set = SetPlan { size_bytes_min: 20, size_bytes_max: 40, ..set(Layout::Item, false) };
    let sizes: Vec<u64> = (0..1000).map(|item| set.size(item)).collect();
    assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&20), Some(&40)));
    assert_eq!(sizes[7], set.size(7));
    let set = SetPlan { size_step_bytes: 5, ..set };
    let sizes: std::collections::BTreeSet<u64> = (0..1000).map(|item| set.size(item)).collect();
    assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [20, 25, 30, 35, 40]);
}

#[test]
fn processes_share_what_others_wrote() {
    let step = StepPlan {
        together: false,
        skip: 0,
        name: "read".to_owned(),
        space: Space { iterations: 3, processes: 2, items: 5 },
        selection: Selection::Same,
        items: 0,
        shuffled: false,
        once: Vec::new(),
        begin: Vec::new(),
        each: Vec::new(),
        end: Vec::new(),
        compute_ns: 0,
        compute_with: ComputeWith::Sleep,
        after: Vec::new(),
        dimensions: Vec::new(),
    };
    let shares: Vec<(u64, u64)> = (0..3).map(|process| step.share(process, 3, 1)).collect();
    assert_eq!(shares, [(10, 3), (13, 3), (16, 4)]);
    let last = StepPlan { selection: Selection::Last, ..step.clone() };
    assert_eq!(last.share(0, 1, 0), (20, 10));
    let all = StepPlan { selection: Selection::All, ..step };
    assert_eq!(all.share(1, 2, 7), (15, 15));
    assert_eq!(StepPlan { items: 4, ..all }.share(1, 2, 7), (60, 4), "the passes follow each other");
}
