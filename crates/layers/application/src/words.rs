//! Items in words, as faults name them.

use std::fmt::Write;

use layer::storage::{Dataset, DatasetPlace};

use crate::content::Difference;
use crate::operation::AppOperation;
use crate::plan::{AppPlan, GroupPlan, StepPlan};

/// A byte of an item that is not what was written, with its dataset and element where it lies in one.
pub(crate) fn damage_words(plan: &AppPlan, operation: &AppOperation, found: &Difference) -> String {
    let set = &plan.sets[usize::from(operation.set)];
    let place = DatasetPlace::of(operation.offset_bytes + found.at, set.object_bytes(), set.datasets.len());
    let element = match set.datasets.get(place.dataset) {
        Some(Dataset { name, element }) => {
            format!(" (dataset {name}, element {})", place.offset_bytes / element.bytes())
        }
        None => String::new(),
    };
    format!(
        "{}, byte {} of the item{element}: expected {:#04x}, found {:#04x}",
        item_words(plan, operation),
        operation.item_offset_bytes + found.at,
        found.expected,
        found.found
    )
}

/// The step that wrote a set, and its group's name for iterations where the stage of the plan has it.
fn writer(plan: &AppPlan, set: u16) -> Option<(&GroupPlan, &StepPlan)> {
    let space = plan.sets.get(usize::from(set))?.space;
    let steps = plan.groups.iter().flat_map(|group| group.steps.iter().map(move |step| (group, step)));
    let mut named = steps.filter(|(_, step)| step.space == space);
    let first = named.next()?;
    Some(
        named
            .find(|(_, step)| !step.dimensions.is_empty())
            .filter(|_| first.1.dimensions.is_empty())
            .unwrap_or(first),
    )
}

/// Set, number and place of the item of an operation: `field 17 of set field (process 1, step 2, level 0, param 5)`.
pub(crate) fn item_words(plan: &AppPlan, operation: &AppOperation) -> String {
    let Some(set) = plan.sets.get(usize::from(operation.set)) else { return String::new() };
    let space = set.space;
    let (items, processes) = (space.items.max(1), space.processes.max(1));
    let (turn, mut k) = (operation.item / items, operation.item % items);
    let found = writer(plan, operation.set);
    let iteration = found.map_or("iteration", |(group, _)| group.iteration.as_str());
    let mut text = format!(
        "{} {} (process {}, {iteration} {}",
        set.name,
        operation.item,
        turn % processes,
        turn / processes
    );
    let dimensions = found.map_or(&[][..], |(_, step)| &step.dimensions);
    if dimensions.is_empty() && items > 1 {
        // Writing to a String cannot fail.
        let _ = write!(text, ", item {k}");
    }
    for (at, dimension) in dimensions.iter().enumerate() {
        let below: u64 = dimensions[at + 1..].iter().map(|below| below.count).product();
        let _ = write!(text, ", {} {}", dimension.name, k / below.max(1));
        k %= below.max(1);
    }
    text.push(')');
    text
}
