//! Checks of a resolved application: what could not be carried out is refused before anything is touched.

use driver::Error;
use units::ByteSize;

use super::parse::refused;
use super::resolve::Application;
use super::{logs, staging};
use crate::operation::AppClass;
use crate::plan::{CallPlan, GroupPlan, Layout, Selection, SetPlan, Space, StepPlan};

/// Most bytes of one call.
const TRANSFER_BYTES_MAX: u64 = 1 << 30;
/// Most items of a set.
const ITEMS_MAX: u64 = 1 << 40;

/// Refuses names that stand twice among what is there with these values.
pub(super) fn unique<'a>(
    sets: impl Iterator<Item = &'a String>,
    groups: impl Iterator<Item = &'a String>,
) -> Result<(), Error> {
    for (what, names) in [("a set", sets.collect::<Vec<_>>()), ("a group", groups.collect())] {
        if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            return Err(refused(
                format!("{:?} is used twice as the name of {what}", names[at]),
                "another name",
            ));
        }
    }
    Ok(())
}

/// Numbers of the items of a set: those of the one step that writes it.
pub(super) fn writer<'a>(set: &str, mut steps: impl Iterator<Item = &'a StepPlan>) -> Result<Space, Error> {
    match (steps.next(), steps.next()) {
        (Some(step), None) if step.selection == Selection::Own && step.space.items > 0 => Ok(step.space),
        (Some(step), None) => {
            let given = format!("the step {} writes the set {set} but has no items of its own", step.name);
            Err(refused(given, "items = ..."))
        }
        (None, _) => {
            Err(refused(format!("no step writes the set {set}"), "a step with \"write\" or \"put\" for it"))
        }
        (Some(one), Some(other)) => {
            let given = format!("the steps {} and {} both write the set {set}", one.name, other.name);
            Err(refused(given, "one writing step per set"))
        }
    }
}

/// Checks an application.
pub(super) fn check(application: &Application) -> Result<(), Error> {
    let Application { sets, stages, .. } = application;
    if sets.is_empty() || stages.is_empty() {
        return Err(refused(
            "the description has no sets or no groups".to_owned(),
            "at least one [[set]] and one [[group]]",
        ));
    }
    sets.iter().try_for_each(check_set)?;
    for (stage, groups) in stages {
        for group in groups {
            for step in &group.steps {
                check_items(group, step)?;
                check_calls(sets, group, step)?;
            }
        }
        check_waits(stage, groups)?;
        check_readers(sets, groups)?;
        staging::check(sets, groups)?;
    }
    Ok(())
}

fn check_set(set: &SetPlan) -> Result<(), Error> {
    let Space { iterations, processes, items } = set.space;
    let total = iterations.checked_mul(processes).and_then(|all| all.checked_mul(items));
    let bytes = total.and_then(|total| total.checked_mul(set.size_bytes_max));
    if total.is_none_or(|total| total > ITEMS_MAX) || bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
        let given = format!(
            "the set {} has {iterations} x {processes} x {items} items of {}",
            set.name,
            ByteSize(set.size_bytes_max)
        );
        return Err(refused(given, "at most 2^40 items and 8EiB"));
    }
    if set.transfer_bytes == 0 || set.transfer_bytes > TRANSFER_BYTES_MAX {
        let given = format!("a call on the set {} moves {}", set.name, ByteSize(set.transfer_bytes));
        return Err(refused(given, "a transfer of 1 byte to 1GiB"));
    }
    if set.transfer_bytes < set.size_bytes_max && !set.transfer_bytes.is_multiple_of(8) {
        return Err(refused(
            format!("transfers of the set {} have {} bytes", set.name, set.transfer_bytes),
            "a multiple of 8",
        ));
    }
    if set.log.is_some() {
        logs::check_set(set)?;
    }
    if set.is_index && !matches!(set.layout, Layout::Shared | Layout::Process) {
        return Err(refused(
            format!("the layout of the index {} is for arrays only", set.name),
            "shared or process",
        ));
    }
    Ok(())
}

/// The items of a step that are others' are there.
fn check_items(group: &GroupPlan, step: &StepPlan) -> Result<(), Error> {
    if step.selection == Selection::Own && step.space.items == 0 && !step.each.is_empty() {
        return Err(refused(
            format!("{}.{} has calls on each item but no items", group.name, step.name),
            "items = ...",
        ));
    }
    if step.selection == Selection::Same && group.iterations > step.space.iterations {
        let given = format!(
            "{}.{} reads the items of the same iteration and has {} iterations, but the items have only {}",
            group.name, step.name, group.iterations, step.space.iterations
        );
        return Err(refused(given, "at most as many iterations, or from = \"all\""));
    }
    Ok(())
}

/// Whether all items of a process in an iteration lie in one object.
fn is_one_object(set: &SetPlan, group: &GroupPlan, step: &StepPlan) -> bool {
    let is_own = step.selection == Selection::Own || step.space.processes == u64::from(group.processes);
    match (set.layout, step.selection) {
        (Layout::Shared, _) => true,
        (_, Selection::All) | (Layout::Item, _) => false,
        (Layout::Iteration, _) => true,
        (Layout::Process | Layout::ProcessIteration, _) => is_own,
    }
}

/// Each call has what it needs: sets of its kind, an object that is open.
fn check_calls(sets: &[SetPlan], group: &GroupPlan, step: &StepPlan) -> Result<(), Error> {
    let place = format!("{}.{}", group.name, step.name);
    for call in step.calls().filter(|call| call.class.has_set()) {
        let set = &sets[usize::from(call.set)];
        if call.class.is_of_index() != set.is_index {
            let given = format!("{place}: {} {}", call.class.name(), set.name);
            return Err(refused(given, "put, get and list for indexes, the other calls for arrays"));
        }
        logs::check_call(&place, set, call.class)?;
        if set.space != step.space && !matches!(call.class, AppClass::List | AppClass::Allocate) {
            let given = format!("the items of {place} are not those of the set {}", set.name);
            return Err(refused(given, "of = the step that writes the set"));
        }
    }
    let around = step.once.iter().chain(&step.begin).chain(&step.end);
    for call in around.filter(|call| call.class.has_set()) {
        let set = &sets[usize::from(call.set)];
        if call.class.is_on_bytes() && call.class != AppClass::Allocate {
            let given = format!("{place}: {} {} requires an item", call.class.name(), set.name);
            return Err(refused(given, "it in each"));
        }
        if call.class != AppClass::List && set.log.is_none() && !is_one_object(set, group, step) {
            let given = format!(
                "{place}: {} {}, but an iteration has several objects of the set",
                call.class.name(),
                set.name
            );
            return Err(refused(given, "it in each, or a layout with one object per process and iteration"));
        }
    }
    for (at, set) in sets.iter().enumerate() {
        match set.log {
            Some(_) => logs::check_step(&place, at, set, step)?,
            None => check_open(&place, at, set, step)?,
        }
    }
    Ok(())
}

/// Goes through two iterations of two items: what is used is open then, and nothing is opened twice.
fn check_open(place: &str, at: usize, set: &SetPlan, step: &StepPlan) -> Result<(), Error> {
    let is_of = |call: &&CallPlan| call.class.has_set() && usize::from(call.set) == at;
    let turn = || step.begin.iter().chain(&step.each).chain(&step.each).chain(&step.end);
    let mut is_open = false;
    for call in step.once.iter().chain(turn()).chain(turn()).filter(is_of) {
        let (is_fault, opens) = match call.class {
            AppClass::Create | AppClass::Open => (is_open, true),
            AppClass::Close => (!is_open, false),
            AppClass::Write | AppClass::Read | AppClass::Sync | AppClass::Update => (!is_open, is_open),
            _ => (false, is_open),
        };
        if is_fault {
            let state = if is_open { "already open" } else { "not open" };
            let given = format!("{place}: {} {} while its object is {state}", call.class.name(), set.name);
            return Err(refused(given, "create or open before the first use, and close after the last"));
        }
        is_open = opens;
    }
    Ok(())
}

/// Processes that wait for each other come to an end: no circle within an iteration, and enough iterations.
fn check_waits(stage: &str, groups: &[GroupPlan]) -> Result<(), Error> {
    let mut first = Vec::new();
    let mut names = Vec::new();
    for group in groups {
        first.push(names.len());
        names.extend(group.steps.iter().map(|step| format!("{}.{}", group.name, step.name)));
    }
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    for (at, group) in groups.iter().enumerate() {
        for (number, step) in group.steps.iter().enumerate() {
            let own = first[at] + number;
            if number > 0 {
                before[own].push(own - 1);
            }
            for after in &step.after {
                let other = &groups[usize::from(after.group)];
                if after.lag == 0 {
                    before[own].push(first[usize::from(after.group)] + usize::from(after.step));
                }
                if group.iterations.saturating_sub(after.lag) > other.iterations {
                    let given = format!(
                        "{} has {} iterations and waits for {}, which has only {}",
                        names[own],
                        group.iterations,
                        names[first[usize::from(after.group)] + usize::from(after.step)],
                        other.iterations
                    );
                    return Err(refused(given, "as many iterations in the other group"));
                }
            }
        }
    }
    match circle(&before) {
        None => Ok(()),
        Some(circle) => {
            let names: Vec<&str> = circle.iter().rev().map(|&at| names[at].as_str()).collect();
            let given =
                format!("stage {stage}: steps wait for each other in a circle: {}", names.join(" -> "));
            Err(refused(given, "\"group.step - 1\" to wait for the previous iteration"))
        }
    }
}

/// A circle of a graph, its first node at both ends.
fn circle(before: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; before.len()];
    for start in 0..before.len() {
        // Nodes on the way, each with the number of its next edge.
        let mut way: Vec<(usize, usize)> =
            if states[start] == State::New { vec![(start, 0)] } else { Vec::new() };
        while let Some((node, edge)) = way.pop() {
            states[node] = State::Open;
            let Some(&next) = before[node].get(edge) else {
                states[node] = State::Done;
                continue;
            };
            way.push((node, edge + 1));
            match states[next] {
                State::New => way.push((next, 0)),
                State::Open => {
                    let from = way.iter().position(|(known, _)| *known == next).unwrap_or(0);
                    let mut found: Vec<usize> = way[from..].iter().map(|(known, _)| *known).collect();
                    found.push(next);
                    return Some(found);
                }
                State::Done => {}
            }
        }
    }
    None
}

/// Data that is read in the stage that writes it is waited for.
fn check_readers(sets: &[SetPlan], groups: &[GroupPlan]) -> Result<(), Error> {
    let writes = |call: &CallPlan| matches!(call.class, AppClass::Write | AppClass::Put | AppClass::Append);
    let reads = |call: &CallPlan| {
        let also = matches!(call.class, AppClass::Get | AppClass::Open | AppClass::Stat | AppClass::Update);
        also || call.class.reads()
    };
    for (at, set) in sets.iter().enumerate() {
        let is_of = |call: &CallPlan| call.class.has_set() && usize::from(call.set) == at;
        let steps = || {
            groups.iter().enumerate().flat_map(|(group, plan)| {
                plan.steps.iter().enumerate().map(move |(step, plan)| ((group, step), plan))
            })
        };
        let writer = steps().find(|(_, step)| step.calls().any(|call| is_of(call) && writes(call)));
        let Some(((writer_group, writer_step), _)) = writer else { continue };
        for ((group, number), step) in steps() {
            let is_writer = (group, number) == (writer_group, writer_step);
            if is_writer || !step.calls().any(|call| is_of(call) && reads(call)) {
                continue;
            }
            let waits = step.after.iter().any(|after| {
                (usize::from(after.group), usize::from(after.step)) == (writer_group, writer_step)
                    && after.lag == 0
            });
            let of =
                format!("{}.{}", groups[writer_group].name, groups[writer_group].steps[writer_step].name);
            let own = format!("{}.{}", groups[group].name, step.name);
            if step.selection != Selection::Same || !waits {
                let given = format!("{own} reads the set {} while {of} writes it", set.name);
                return Err(refused(
                    given,
                    &format!("from = \"same\" and after = [\"{of}\"], or a later stage"),
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{parse, resolve};

    const HEAD: &str = "format = 1\nname = 'a'\nversion = '1'\nsummary = 'b'\n\
        [[set]]\nname = 'data'\nkind = 'array'\nlayout = 'item'\nsize = '8KiB'\n\
        [[group]]\nname = 'w'\nstage = 'one'\nprocesses = 2\niterations = 3\n\
        [[group.step]]\nname = 'put'\nitems = 4\neach = ['create data', 'write data', 'close data']\n";
    const READER: &str = "[[group]]\nname = 'r'\nstage = 'one'\nprocesses = 3\niterations = 3\n\
        [[group.step]]\nname = 'get'\nof = 'w.put'\nafter = ['w.put']\neach = ['open data', 'read data', 'close data']\n";

    fn told(text: &str) -> Result<Application, String> {
        let description = parse(text).map_err(|error| error.to_string())?;
        resolve(&description, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_sound_passes() {
        let application = told(&format!("{HEAD}{READER}")).unwrap();
        assert_eq!(application.stages[0].1[1].steps[0].after.len(), 1);
        assert_eq!(application.sets[0].space, Space { iterations: 3, processes: 2, items: 4 });
        let later = READER.replace("'one'", "'two'").replace("after = ['w.put']\n", "");
        assert_eq!(told(&format!("{HEAD}{later}")).unwrap().stages.len(), 2);
    }

    #[test]
    fn a_condition_names_one_value_or_several() {
        let with = |condition: &str, value: &str| {
            let parameter = format!(
                "[parameters]\nkind = {{ default = '{value}', choices = ['a', 'b', 'c'], help = 'Kind' }}\n"
            );
            let sets = HEAD.replacen("[[set]]", &format!("{parameter}[[set]]"), 1);
            let reader = READER.replace("name = 'r'\n", &format!("name = 'r'\nwhen = '{condition}'\n"));
            told(&format!("{sets}{reader}")).map(|application| application.stages[0].1.len())
        };
        for (condition, value, groups) in [
            ("kind=a", "a", 2),
            ("kind=a", "b", 1),
            ("kind=a|c", "c", 2),
            ("kind=a | c", "a", 2),
            ("kind=a|c", "b", 1),
        ] {
            assert_eq!(with(condition, value), Ok(groups), "{condition} {value}");
        }
        for condition in ["kind=d", "kind=a|d", "kind=a|", "sort=a", "kind"] {
            let error = with(condition, "a").expect_err(condition);
            assert!(error.contains("is not valid") && error.contains("pattern=A|B"), "{error}");
        }
    }

    #[test]
    fn faults_are_named() {
        let second = "[[group.step]]\nname = 'more'\nafter = ['r.get']\n";
        for (text, said) in [
            (format!("{HEAD}{READER}").replace("after = ['w.put']\n", ""), "while w.put writes it"),
            (
                format!("{HEAD}{READER}").replace(
                    "iterations = 3\n[[group.step]]\nname = 'get'",
                    "iterations = 4\n[[group.step]]\nname = 'get'",
                ),
                "4 iterations",
            ),
            (HEAD.replace("'create data', ", ""), "not open"),
            (HEAD.replace(", 'close data'", ""), "already open"),
            (HEAD.replace("'write data', ", ""), "no step writes the set data"),
            (HEAD.replace("items = 4", "items = 0"), "no items"),
            (HEAD.replace("layout = 'item'", "layout = 'pile'"), "layout"),
            (HEAD.replace("'8KiB'", "'2GiB'"), "transfer of 1 byte to 1GiB"),
            (HEAD.replace("'write data'", "'write date'"), "no set date"),
            (HEAD.replace("'write data'", "'sing data'"), "is not a call"),
            (
                HEAD.replace("items = 4", "items = 4\nbegin = ['stat data']"),
                "an iteration has several objects of the set",
            ),
            (HEAD.replace("processes = 2", "processes = 0"), "0 processes"),
            (HEAD.replace("items = 4", "items = 4\nafter = ['w.put']"), "in a circle: w.put -> w.put"),
            (
                format!("{}{second}{READER}", HEAD.replace("items = 4", "items = 4\nafter = ['w.more']")),
                "in a circle",
            ),
            (
                format!(
                    "{HEAD}{second}{}",
                    READER.replace("after = ['w.put']", "after = ['w.put', 'w.more']")
                ),
                "in a circle",
            ),
        ] {
            let error = told(&text).expect_err(said);
            assert!(error.contains(said) && !error.contains('\n'), "{said}: {error}");
        }
        // The iteration before is no circle.
        assert!(told(&HEAD.replace("items = 4", "items = 4\nafter = ['w.put - 1']")).is_ok());
    }
}
