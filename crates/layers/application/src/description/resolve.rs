//! From a description and values of its parameters to what each process does.

use driver::Error;
use layer::storage::ObjectFormat;

use super::logs::{self, Kind};
use super::parse::refused;
use super::values::{Range, Values};
use super::{AskedFormat, Description, Group, Quantity, Set, Step, Utilisation};
use super::{checks, datasets, staging};
use crate::operation::AppClass;
use crate::plan::{
    AfterPlan, CallPlan, ComputeWith, Dimension, GroupPlan, INDEX_VALUE_BYTES, LAYOUTS, Layout,
    ParameterPlan, Selection, SetPlan, Space, StepPlan, UtilisationPlan,
};

/// Most processes of a stage.
const PROCESSES_MAX: u64 = 65_536;

/// An application with all its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// Name.
    pub name: String,
    /// Version of its description.
    pub version: String,
    /// Lines for the notes of a record.
    pub notes: Vec<String>,
    /// Values of its parameters.
    pub parameters: Vec<ParameterPlan>,
    /// Its sets, raw so far.
    pub sets: Vec<SetPlan>,
    /// Forms that were asked for, set by set.
    pub formats: Vec<AskedFormat>,
    /// Its stages: name and groups.
    pub stages: Vec<(String, Vec<GroupPlan>)>,
}

impl Application {
    /// All steps of all stages.
    pub fn steps(&self) -> impl Iterator<Item = &StepPlan> {
        self.stages.iter().flat_map(|(_, groups)| groups).flat_map(|group| &group.steps)
    }
}

/// Resolves a description; `settings` are values of parameters.
///
/// # Errors
/// Values that are none, steps that cannot be carried out, with what would be accepted.
pub fn resolve(description: &Description, settings: &[(String, String)]) -> Result<Application, Error> {
    let values = Values::new(description, settings)?;
    let sets: Vec<&Set> = values.those(&description.sets, |set| &set.when)?;
    let groups: Vec<&Group> = values.those(&description.groups, |group| &group.when)?;
    checks::unique(sets.iter().map(|set| &set.name), groups.iter().map(|group| &group.name))?;
    let resolver = Resolver { values, sets, groups };
    let application = resolver.application(description)?;
    checks::check(&application)?;
    Ok(application)
}

struct Resolver<'a> {
    values: Values<'a>,
    sets: Vec<&'a Set>,
    groups: Vec<&'a Group>,
}

impl Resolver<'_> {
    fn application(&self, description: &Description) -> Result<Application, Error> {
        let mut stages: Vec<(String, Vec<GroupPlan>)> = Vec::new();
        // Groups by their numbers in their stages: steps wait for each other by them.
        for group in &self.groups {
            if !stages.iter().any(|(name, _)| *name == group.stage) {
                stages.push((group.stage.clone(), Vec::new()));
            }
            let plan = self.group(group)?;
            if let Some((_, groups)) = stages.iter_mut().find(|(name, _)| *name == group.stage) {
                groups.push(plan);
            }
        }
        let sets = self.sets.iter().enumerate().map(|(at, set)| self.set(at, set, &stages));
        let sets = sets.collect::<Result<_, Error>>()?;
        let formats = self.sets.iter().zip(&sets).map(|(set, plan)| datasets::asked(&self.values, set, plan));
        let formats = formats.collect::<Result<_, Error>>()?;
        Ok(Application {
            name: description.name.clone(),
            version: description.version.clone(),
            notes: description.notes.clone(),
            parameters: self.values.plans(),
            sets,
            formats,
            stages,
        })
    }

    fn group(&self, group: &Group) -> Result<GroupPlan, Error> {
        let processes = self.values.number(&group.processes)?;
        let iterations = self.values.number(&group.iterations)?;
        if processes == 0 || processes > PROCESSES_MAX || iterations == 0 {
            let given = format!("group {} has {processes} processes and {iterations} iterations", group.name);
            return Err(refused(given, &format!("1 to {PROCESSES_MAX} processes and at least 1 iteration")));
        }
        let steps = self.values.those(&group.steps, |step| &step.when)?;
        let steps = steps.into_iter().map(|step| self.step(group, step, (iterations, processes)));
        Ok(GroupPlan {
            name: group.name.clone(),
            processes: processes as u32,
            iterations,
            checkpoint: group.checkpoint,
            iteration: group.iteration.clone().unwrap_or_else(|| "iteration".to_owned()),
            utilisation: group
                .utilisation
                .as_ref()
                .map(|asked| self.utilisation(asked, iterations))
                .transpose()?,
            steps: steps.collect::<Result<_, Error>>()?,
        })
    }

    fn utilisation(&self, asked: &Utilisation, iterations: u64) -> Result<UtilisationPlan, Error> {
        let or = |quantity: &Option<Quantity>, default| {
            quantity.as_ref().map_or(Ok(default), |given| self.values.number(given))
        };
        let (low, high, _) = self.sizes("of samples", &asked.sample_bytes)?;
        let plan = UtilisationPlan {
            permille_min: or(&asked.permille_min, 0)?,
            first: or(&asked.exclude_first, 1)?,
            last: or(&asked.exclude_last, 0)?,
            samples: self.values.number(&asked.samples)?,
            sample_bytes: u64::midpoint(low, high),
            epoch_samples: or(&asked.epoch_samples, 0)?,
        };
        if plan.permille_min > 1000 {
            return Err(refused(
                format!("a utilisation of {} thousandths", plan.permille_min),
                "1000 at most",
            ));
        }
        if plan.first.saturating_add(plan.last) >= iterations {
            let given = format!(
                "utilisation excludes {} of {iterations} iterations",
                plan.first.saturating_add(plan.last)
            );
            return Err(refused(given, "more steps, or exclude fewer"));
        }
        Ok(plan)
    }

    fn step(
        &self,
        group: &Group,
        step: &Step,
        (iterations, processes): (u64, u64),
    ) -> Result<StepPlan, Error> {
        let name = format!("{}.{}", group.name, step.name);
        let items = step.items.as_ref().map(|items| self.values.number(items)).transpose()?;
        let (selection, space, items) = match &step.of {
            None => {
                if step.from.is_some() || step.order.is_some() {
                    return Err(refused(
                        format!("{name} has from or order but no of"),
                        "of = \"group.step\" too",
                    ));
                }
                (Selection::Own, Space { iterations, processes, items: items.unwrap_or(0) }, 0)
            }
            Some(of) => {
                let choices = [("same", Selection::Same), ("last", Selection::Last), ("all", Selection::All)];
                let from = step.from.as_deref().unwrap_or("same");
                let selection = self.values.chosen("from", from, &choices)?;
                if items.is_some() && selection != Selection::All {
                    return Err(refused(
                        format!("{name} has its own items and items of {of}"),
                        "items only with from = \"all\"",
                    ));
                }
                if items == Some(0) {
                    return Err(refused(format!("{name} works on 0 items"), "at least 1"));
                }
                (selection, self.space_of(of)?, items.unwrap_or(0))
            }
        };
        let skip = step.skip.as_ref().map_or(Ok(0), |skip| self.values.number(skip))?;
        if (step.together || step.skip.is_some()) && (selection != Selection::All || items == 0) {
            let accepted = "them with from = \"all\" and items";
            return Err(refused(format!("{name} has together or skip for its own items"), accepted));
        }
        let orders = [("sequential", false), ("shuffled", true)];
        let ways = [("sleep", ComputeWith::Sleep), ("busy", ComputeWith::Busy)];
        let compute_ns = step.compute.as_ref().map_or(Ok(0), |length| self.values.number(length))?;
        let calls = |texts: &[String]| self.calls(&name, texts, compute_ns);
        Ok(StepPlan {
            name: step.name.clone(),
            space,
            selection,
            items,
            together: step.together,
            skip,
            shuffled: self.values.chosen("order", step.order.as_deref().unwrap_or("sequential"), &orders)?,
            once: calls(&step.once)?,
            begin: calls(&step.begin)?,
            each: calls(&step.each)?,
            end: calls(&step.end)?,
            compute_ns,
            compute_with: self.values.chosen(
                "compute_with",
                step.compute_with.as_deref().unwrap_or("sleep"),
                &ways,
            )?,
            after: self.after(group, &name, step)?,
            dimensions: self.dimensions(&name, step, if step.of.is_none() { space.items } else { 0 })?,
        })
    }

    /// Calls of a list. Computations of no length are left out.
    fn calls(&self, step: &str, texts: &[String], compute_ns: u64) -> Result<Vec<CallPlan>, Error> {
        let mut calls = Vec::new();
        for text in texts {
            let accepted = "a call and its set, such as \"write field\", \"allocate-ids every 100\", \"stat field when sizes=asked\", \"compute\"";
            let unknown = || refused(format!("{step}: {text:?} is not a call"), accepted);
            let (call, condition) =
                text.split_once(" when ").map_or((&**text, None), |(call, when)| (call, Some(when)));
            let mut words = call.split_whitespace();
            let class = words.next().and_then(AppClass::named).ok_or_else(unknown)?;
            let mut set = 0;
            if class.has_set() {
                let name = words.next().ok_or_else(unknown)?;
                let at = self.sets.iter().position(|set| set.name == name);
                let unknown = || refused(format!("{step}: no set {name} exists"), "the name of a set");
                set = at.ok_or_else(unknown)?;
            }
            let every = match (words.next(), words.next(), words.next()) {
                (None, ..) => 1,
                (Some("every"), Some(count), None) => {
                    self.values.number(&Quantity::Text(count.to_owned()))?
                }
                _ => return Err(unknown()),
            };
            if every == 0 {
                return Err(unknown());
            }
            let is_made =
                condition.map_or(Ok(true), |condition| self.values.holds(Some(&condition.to_owned())))?;
            if is_made && (class != AppClass::Compute || compute_ns > 0) {
                calls.push(CallPlan { class, set: set as u16, every });
            }
        }
        Ok(calls)
    }

    /// Group and step of `group.step`.
    fn find(&self, text: &str) -> Result<(usize, usize), Error> {
        let unknown = || {
            refused(
                format!("no step {text:?} exists"),
                "the names of a group and of one of its steps: \"group.step\"",
            )
        };
        let (group, step) = text.split_once('.').ok_or_else(unknown)?;
        let at = self.groups.iter().position(|known| known.name == group).ok_or_else(unknown)?;
        let steps = self.values.those(&self.groups[at].steps, |step| &step.when)?;
        Ok((at, steps.iter().position(|known| known.name == step).ok_or_else(unknown)?))
    }

    fn space_of(&self, text: &str) -> Result<Space, Error> {
        let (group, step) = self.find(text)?;
        let group = self.groups[group];
        let steps = self.values.those(&group.steps, |step| &step.when)?;
        let items = match (&steps[step].of, &steps[step].items) {
            (None, Some(items)) => self.values.number(items)?,
            _ => {
                return Err(refused(
                    format!("{text} has no items of its own"),
                    "a step with items and without of",
                ));
            }
        };
        let (iterations, processes) =
            (self.values.number(&group.iterations)?, self.values.number(&group.processes)?);
        Ok(Space { iterations, processes, items })
    }

    /// Steps that a step waits for, of its own stage: earlier stages are done by then.
    fn after(&self, group: &Group, name: &str, step: &Step) -> Result<Vec<AfterPlan>, Error> {
        let mut after = Vec::new();
        for text in &step.after {
            let (of, lag) = match text.split_once(" - ") {
                Some((of, lag)) => (of, self.values.number(&Quantity::Text(lag.to_owned()))?),
                None => (text.as_str(), 0),
            };
            let (at, step) = self.find(of.trim())?;
            let other = self.groups[at];
            if other.stage == group.stage {
                let own = self.groups[..at].iter().filter(|known| known.stage == group.stage).count();
                after.push(AfterPlan { group: own as u16, step: step as u16, lag });
                continue;
            }
            let stage_of = |name: &str| self.groups.iter().position(|known| known.stage == *name);
            if stage_of(&other.stage) > stage_of(&group.stage) {
                let given = format!("{name} waits for {of}, which is of the later stage {}", other.stage);
                return Err(refused(given, "steps of the same stage or an earlier one"));
            }
        }
        Ok(after)
    }

    fn dimensions(&self, name: &str, step: &Step, items: u64) -> Result<Vec<Dimension>, Error> {
        let mut dimensions = Vec::new();
        for text in &step.dimensions {
            let (word, count) = text.split_once(':').unwrap_or((text, ""));
            let count = self.values.number(&Quantity::Text(count.to_owned()))?;
            dimensions.push(Dimension { name: word.trim().to_owned(), count });
        }
        let product = dimensions.iter().try_fold(1u64, |all, one| all.checked_mul(one.count));
        if !dimensions.is_empty() && product != Some(items) {
            let given = format!(
                "{name}: the product of the dimensions is {}, but the step has {items} items",
                product.unwrap_or(u64::MAX)
            );
            return Err(refused(given, "dimensions whose product is the number of items"));
        }
        Ok(dimensions)
    }

    fn set(&self, at: usize, set: &Set, stages: &[(String, Vec<GroupPlan>)]) -> Result<SetPlan, Error> {
        let kinds = [("array", Kind::Array), ("index", Kind::Index), ("log", Kind::Log)];
        let kind = self.values.chosen("kind", &set.kind, &kinds)?;
        let is_index = kind == Kind::Index;
        let layout: Layout = self.values.chosen("layout", &set.layout, LAYOUTS)?;
        let orders = [("process", false), ("item", true)];
        let by_item = self.values.chosen("order", set.order.as_deref().unwrap_or("process"), &orders)?;
        let steps = || stages.iter().flat_map(|(_, groups)| groups).flat_map(|group| &group.steps);
        let writes = |step: &&StepPlan| {
            step.calls().any(|call| {
                usize::from(call.set) == at
                    && matches!(call.class, AppClass::Write | AppClass::Put | AppClass::Append)
            })
        };
        let space = staging::space(&set.name, at, steps, writes)?;
        let (min, max, step) = match (&set.size, is_index) {
            (None, true) => (INDEX_VALUE_BYTES, INDEX_VALUE_BYTES, 1),
            (Some(size), false) => self.sizes(&set.name, size)?,
            (None, false) => {
                return Err(refused(format!("the set {} has no size", set.name), "size = \"1MiB\""));
            }
            (Some(_), true) => {
                return Err(refused(
                    format!("the index {} has a size", set.name),
                    "no size: its values have 32 bytes",
                ));
            }
        };
        let mut log = logs::log_of(&self.values, set, kind)?;
        if let (Some(log), Some(step)) = (log.as_mut().filter(|log| log.is_grouped), steps().find(writes)) {
            log.segment_bytes = logs::group_bytes(step, at, max);
        }
        let transfer = set.transfer.as_ref().map_or(Ok(max), |transfer| self.values.number(transfer))?;
        // Records are written by one call, and so are groups of them.
        let transfer = log.as_ref().map_or(transfer.min(max), |log| {
            if log.is_grouped { log.segment_bytes.max(max) } else { transfer.min(log.segment_bytes).max(max) }
        });
        let syncs = [("all", false), ("data", true)];
        let uses = |class| {
            steps().any(|step| step.calls().any(|call| call.class == class && usize::from(call.set) == at))
        };
        let describes = steps()
            .find(writes)
            .and_then(|step| step.calls().find(|call| call.class == AppClass::Write).map(|call| call.set));
        Ok(SetPlan {
            name: set.name.clone(),
            is_index,
            layout,
            by_item,
            size_bytes_min: min,
            size_bytes_max: max,
            size_step_bytes: step,
            transfer_bytes: transfer,
            space,
            describes: describes.filter(|_| is_index),
            is_renamed: uses(AppClass::Rename),
            log,
            data_sync: self.values.chosen("sync", set.sync.as_deref().unwrap_or("all"), &syncs)?,
            format: ObjectFormat::Raw,
            datasets: Vec::new(),
            parallel: None,
        })
    }

    /// Smallest and largest item of a set, and how far their sizes are apart, in bytes: `SIZE`, `SIZE..SIZE` or `SIZE..SIZE/STEP`.
    fn sizes(&self, name: &str, size: &Quantity) -> Result<(u64, u64, u64), Error> {
        let text = size.text();
        // The value of a parameter may be a range too.
        let text = self.values.word(&text).map_or(text.clone(), str::to_owned);
        let range = Range::of(&text);
        let bytes = |text: &str| self.values.number(&Quantity::Text(text.to_owned()));
        let (low, high) = (bytes(range.low)?, bytes(range.high)?);
        let step = range.step.map_or(Ok(1), bytes)?;
        if step == 0 || (high.saturating_sub(low)) % step != 0 {
            return Err(refused(
                format!("sizes of items of the set {name} are {step} bytes apart, from {low} to {high}"),
                "a step that divides the range from smallest to largest, such as 20KiB..40KiB/4KiB",
            ));
        }
        if low == 0 || low > high {
            return Err(refused(
                format!("items of the set {name} have {low} to {high} bytes"),
                "sizes of at least 1, the smaller first",
            ));
        }
        Ok((low, high, step))
    }
}
