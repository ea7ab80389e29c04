//! Checks of items that one step copies into memory, and another one writes from there.

use driver::Error;

use super::checks;
use super::parse::refused;
use crate::operation::AppClass;
use crate::plan::{CallPlan, GroupPlan, Selection, SetPlan, Space, StepPlan};

/// Whether a step has a call of a class on a set.
fn has(step: &StepPlan, class: AppClass, set: usize) -> bool {
    step.calls().any(|call| call.class == class && usize::from(call.set) == set)
}

/// Numbers of the items of a set: those of the step that copies it, or else of the one that `writes` it.
pub(super) fn space<'a, S: Iterator<Item = &'a StepPlan>>(
    name: &str,
    set: usize,
    steps: impl Fn() -> S,
    writes: impl Fn(&&'a StepPlan) -> bool,
) -> Result<Space, Error> {
    if steps().any(|step| has(step, AppClass::Copy, set)) {
        return checks::writer(name, steps().filter(|step| has(step, AppClass::Copy, set)));
    }
    checks::writer(name, steps().filter(writes))
}

/// Checks the sets that the steps of a stage copy.
pub(super) fn check(sets: &[SetPlan], groups: &[GroupPlan]) -> Result<(), Error> {
    for (at, group) in groups.iter().enumerate() {
        for (number, step) in group.steps.iter().enumerate() {
            for call in step.calls().filter(|call| call.class == AppClass::Copy) {
                check_call(sets, groups, (at, number), call)?;
            }
        }
    }
    Ok(())
}

/// A step by the numbers of its group and its own.
type StepNumber = (usize, usize);

fn check_call(sets: &[SetPlan], groups: &[GroupPlan], own: StepNumber, call: &CallPlan) -> Result<(), Error> {
    let name_of =
        |(group, step): StepNumber| format!("{}.{}", groups[group].name, groups[group].steps[step].name);
    let (place, set) = (name_of(own), &sets[usize::from(call.set)]);
    let refuse =
        |what: String, accepted: &str| Err(refused(format!("{place} copies {}{what}", set.name), accepted));
    let writers = groups.iter().enumerate().flat_map(|(at, group)| {
        let steps = group.steps.iter().enumerate();
        let writes = steps.filter(|(_, step)| has(step, AppClass::Write, usize::from(call.set)));
        writes.map(move |(number, _)| (at, number))
    });
    let &[writer] = &writers.collect::<Vec<_>>()[..] else {
        let accepted = "one step of the same stage, in another group, with \"write\" for the set";
        return refuse(", but not exactly one step of the stage writes it".to_owned(), accepted);
    };
    let (group, step) = (&groups[writer.0], &groups[writer.0].steps[writer.1]);
    let waits = |step: &StepPlan, lag: u64, is_meant: &dyn Fn(StepNumber) -> bool| {
        let mut after = step.after.iter().filter(|after| after.lag == lag);
        after.any(|after| is_meant((usize::from(after.group), usize::from(after.step))))
    };
    let is_same = step.selection == Selection::Same
        && group.processes == groups[own.0].processes
        && group.iterations == groups[own.0].iterations
        && waits(step, 0, &|of| of == own);
    if !is_same || writer.0 == own.0 {
        let accepted = format!(
            "of = \"{place}\" and after = [\"{place}\"] in a separate group with as many processes and iterations"
        );
        return refuse(format!(", but {} does not write the copied items", name_of(writer)), &accepted);
    }
    let is_whole = |step: &StepPlan, class| {
        step.calls()
            .filter(|known| known.class == class && known.set == call.set)
            .all(|known| known.every == 1)
    };
    if !is_whole(&groups[own.0].steps[own.1], AppClass::Copy) || !is_whole(step, AppClass::Write) {
        return refuse(" in part".to_owned(), "copy and write on each item, without every");
    }
    let own_step = &groups[own.0].steps[own.1];
    if !waits(own_step, 1, &|of| follows(groups, of, writer)) {
        let what = format!(" while {} can still be writing the previous copy", name_of(writer));
        return refuse(what, &format!("after = [\"{} - 1\"], or a step after it", name_of(writer)));
    }
    Ok(())
}

/// Whether a step of an iteration is begun after another one of it has been done, or is that one.
fn follows(groups: &[GroupPlan], later: StepNumber, earlier: StepNumber) -> bool {
    let mut seen: Vec<StepNumber> = Vec::new();
    let mut open = vec![later];
    while let Some((group, step)) = open.pop() {
        if (group, step) == earlier {
            return true;
        }
        if seen.contains(&(group, step)) {
            continue;
        }
        seen.push((group, step));
        if step > 0 {
            open.push((group, step - 1));
        }
        let after = groups[group].steps[step].after.iter().filter(|after| after.lag == 0);
        open.extend(after.map(|after| (usize::from(after.group), usize::from(after.step))));
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::description::{parse, resolve};

    const STAGED: &str = "format = 1\nname = 'a'\nversion = '1'\nsummary = 'b'\n\
        [[set]]\nname = 'data'\nkind = 'array'\nlayout = 'item'\nsize = 64\n\
        [[group]]\nname = 'r'\nstage = 'one'\nprocesses = 2\niterations = 3\n\
        [[group.step]]\nname = 'copy'\nitems = 2\nafter = ['f.done - 1']\neach = ['copy data']\n\
        [[group]]\nname = 'f'\nstage = 'one'\nprocesses = 2\niterations = 3\n\
        [[group.step]]\nname = 'flush'\nof = 'r.copy'\nafter = ['r.copy']\neach = ['create data', 'write data', 'close data']\n\
        [[group.step]]\nname = 'done'\n";

    #[test]
    fn items_are_those_of_the_step_that_stages_them() {
        let application = resolve(&parse(STAGED).unwrap(), &[]).unwrap();
        let space = application.sets[0].space;
        assert_eq!((space.iterations, space.processes, space.items), (3, 2, 2));
    }

    #[test]
    fn faults_are_named() {
        let second = "name = 'f'\nstage = 'one'\nprocesses = 2";
        for (from, to, said) in [
            (
                "after = ['f.done - 1']\n",
                "",
                "can still be writing the previous copy; use after = [\"f.flush - 1\"]",
            ),
            ("'f.done - 1'", "'f.done - 2'", "can still be writing"),
            ("'f.done - 1'", "'f.done'", "in a circle"),
            ("after = ['r.copy']\n", "", "f.flush does not write the copied items"),
            ("of = 'r.copy'\n", "of = 'r.copy'\nfrom = 'last'\n", "does not write the copied items"),
            (second, &second.replace('2', "1"), "as many processes"),
            (second, &second.replace("'one'", "'two'"), "of the later stage two"),
            ("'write data', ", "'write data every 2', ", "in part"),
            (
                "'create data', 'write data', 'close data'",
                "'create data', 'close data'",
                "not exactly one step of the stage",
            ),
            ("each = ['copy data']", "begin = ['copy data']", "it in each"),
            (
                "kind = 'array'\nlayout = 'item'\nsize = 64",
                "kind = 'log'\nlayout = 'shared'\nsize = 64\nsegment = 640",
                "append, commit",
            ),
        ] {
            assert!(STAGED.contains(from), "{from}");
            let described = parse(&STAGED.replacen(from, to, 1));
            let error =
                described.and_then(|description| resolve(&description, &[])).expect_err(said).to_string();
            assert!(error.contains(said) && !error.contains('\n'), "{said}: {error}");
        }
    }
}
