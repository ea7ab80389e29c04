//! `strata object recipes`: each recommendation with and without it on one store, in short phases next to each other.

mod options;
mod table;

use std::sync::Arc;

use driver::Error;
use object::load::plan::{names_container, one, only_phase};
use object::load::{ObjectRun, Store, Stores, directory_of, refusal};
use object::plan::{ObjectOp, ObjectPhase, ObjectPlan, ObjectSpec};
use report::recipes::{factor_of, finding_of};
use report::record::{RecipeFinding, RecipeRecord, RecipesRecord};
use units::{ByteSize, Span};
use workload::options as load_options;
use workload::random::{Random, derive_seed};
use workload::spec::{Spec, Warmup};

pub(crate) use options::{OWN, RecipesSpec, of_loads};
use table::{RECIPES, Recipe, Side};

use crate::options::OutputSpec;
use crate::planning::{Layers, Planned};
use crate::session::{self, Session};

/// Pairs of phases a recipe, where nothing is said.
const ROUNDS: u32 = 8;
/// Length of a phase, where nothing is said, in nanoseconds.
const TIME_NS: u64 = 300_000_000;
/// Most workers where nothing is said: enough to contend.
const THREADS: u32 = 4;
/// Label of the container, where the target names none.
const CONTAINER: &str = "strata-recipes";
/// Mapped memory of a store that is made, where nothing is said, in bytes.
const SCM_BYTES: u64 = 1 << 30;
/// Distance of the ids of objects of one recipe from those of the next, and within a recipe of one phase's from the next's.
const IDS_OF_RECIPE: u64 = 1 << 32;
const IDS_OF_PHASE: u64 = 1 << 20;

/// Why a recipe whose phases ran says nothing.
const IDLE: &str = "its phases completed nothing in their time: give a longer --time";

/// A recipe that can be measured: what is done without it and with it.
struct Test {
    /// Place in the table of the record.
    at: usize,
    recipe: &'static Recipe,
    sides: [(Spec, ObjectPhase); 2],
}

/// Measures the recipes.
///
/// # Errors
/// Bad usage, and what could not be measured.
pub(crate) fn run(
    words: &[String],
    own: &RecipesSpec,
    spec: &Spec,
    output: &OutputSpec,
) -> Result<u8, Error> {
    let seed = spec.seed.unwrap_or_else(session::draw_seed);
    let mut layers = Layers::new(spec.keep);
    let (mut stores, mut named) = (Stores::new(layers.runs.context()), spec.clone());
    stores.name_target(&mut named)?;
    let target = named.targets.first().cloned().unwrap_or_default();
    let (tests, mut found) = plan(own, &named)?;
    let mut specs: Vec<Spec> =
        tests.iter().flat_map(|test| test.sides.iter().map(|(spec, _)| spec.clone())).collect();
    if specs.is_empty() {
        return Err(
            Error::usage("recipes", "the store has the operations of no recipe").with("target", target)
        );
    }
    stores.find(&mut specs.iter_mut().collect::<Vec<_>>())?;
    let store = Arc::clone(stores.of(&specs[0])?);
    let paths: Vec<String> = directory_of(&target).map(str::to_owned).into_iter().collect();
    let mut session = Session::begin(words, output, &paths, seed, spec.keep, None)?;
    let rounds = own.rounds.unwrap_or(ROUNDS);
    session.phase_count = tests.len() * 2 * rounds as usize;
    found.rounds = rounds;
    session.record.recipes = Some(found);
    layers.runs.put(spec.layer.name, Box::new(ObjectRun::on(stores)));
    let adopted = session.adopt(layers);
    let result = adopted.and_then(|()| measure(&mut session, &tests, &store, rounds, seed));
    session.finish(result)
}

/// The recipes that the store of the spec has the operations for, and the record of all.
fn plan(own: &RecipesSpec, spec: &Spec) -> Result<(Vec<Test>, RecipesRecord), Error> {
    let asked = RECIPES
        .iter()
        .filter(|recipe| own.only.is_empty() || own.only.iter().any(|name| name == recipe.name));
    let (mut tests, mut records) = (Vec::new(), Vec::new());
    for (at, recipe) in asked.enumerate() {
        let without = side(own, spec, recipe, &recipe.without, at)?;
        let with = side(own, spec, recipe, &recipe.with, at)?;
        let reason = refusal(&without).or(refusal(&with));
        if reason.is_none() {
            let phase = |spec: Spec| only_phase(&spec).map(|phase| (spec, phase));
            tests.push(Test { at, recipe, sides: [phase(without)?, phase(with)?] });
        }
        records.push(record(recipe, reason));
    }
    let target = spec.targets.first().cloned().unwrap_or_default();
    Ok((tests, RecipesRecord { target, rounds: 0, recipes: records }))
}

fn record(recipe: &Recipe, reason: Option<String>) -> RecipeRecord {
    RecipeRecord {
        name: recipe.name.to_owned(),
        question: recipe.question.to_owned(),
        without: recipe.without.words.to_owned(),
        with: recipe.with.words.to_owned(),
        unit: recipe.unit.to_owned(),
        advice: recipe.advice.to_owned(),
        pairs: Vec::new(),
        factor: None,
        finding: RecipeFinding::NotTested,
        reason,
    }
}

/// The load of one side.
fn side(own: &RecipesSpec, spec: &Spec, recipe: &Recipe, side: &Side, at: usize) -> Result<Spec, Error> {
    let mut made = spec.clone();
    for (key, value) in recipe.common.iter().chain(side.options) {
        load_options::apply(&mut made, key, value)
            .map_err(|error| Error::usage("recipes", error.to_string()))?;
    }
    let cores = host::topology::current_affinity().map_or(1, |cores| cores.len() as u32);
    made.threads.get_or_insert(cores.clamp(2, THREADS));
    made.time = Some(own.time.unwrap_or(Span(TIME_NS)));
    made.warmup = Some(Warmup::None);
    // Each side has objects of its own: what one stores the other must not find.
    let first = 1 + at as u64 * IDS_OF_RECIPE;
    let is_without = std::ptr::eq(side, &recipe.without);
    let driver = object::backend::driver_of(made.targets.first().map_or("", String::as_str))?;
    let honours = |name: &str| driver.capabilities.options.contains(&name);
    let names_container = names_container(&made);
    let own = ObjectSpec::of_mut(&mut made);
    own.first_id = Some(if is_without { first } else { first + IDS_OF_RECIPE / 2 });
    if honours("container") && own.container.is_none() && !names_container {
        own.container = Some(CONTAINER.to_owned());
    }
    if honours("scm") && own.scm.is_none() {
        own.scm = Some(ByteSize(SCM_BYTES));
    }
    Ok(made)
}

/// Measures every test in pairs.
fn measure(
    session: &mut Session,
    tests: &[Test],
    store: &Arc<Store>,
    rounds: u32,
    seed: u64,
) -> Result<(), Error> {
    store.connect()?;
    for test in tests {
        if test.recipe.needs_targets && store.told().targets < 2 {
            note(session, test.at, |record| record.reason = Some("the store has one target".to_owned()));
            continue;
        }
        let result = measure_one(session, test, store, rounds, seed);
        if session.is_interrupted() {
            return result;
        }
        let failure = result.err().map(|error| error.to_string()).or_else(|| failure_of(session, test.at));
        let factor = if failure.is_none() { factor(session, test.at) } else { None };
        let is_idle = factor.is_none() && failure.is_none();
        let failure = failure.or_else(|| is_idle.then(|| IDLE.to_owned()));
        note(session, test.at, |record| {
            record.factor = factor;
            record.finding = match (&factor, &failure) {
                (Some(factor), _) => finding_of(factor),
                (None, _) => RecipeFinding::NotTested,
            };
            record.reason = failure;
        });
    }
    Ok(())
}

/// Changes the record of a recipe.
fn note(session: &mut Session, at: usize, change: impl FnOnce(&mut RecipeRecord)) {
    if let Some(record) = session.record.recipes.as_mut().and_then(|found| found.recipes.get_mut(at)) {
        change(record);
    }
}

/// Runs the pairs of one recipe; within a pair, which side comes first is drawn.
fn measure_one(
    session: &mut Session,
    test: &Test,
    store: &Arc<Store>,
    rounds: u32,
    seed: u64,
) -> Result<(), Error> {
    let seed = derive_seed(seed, &[test.at as u64]);
    let mut order = Random::new(seed);
    for round in 0..rounds {
        let first = order.below(2) as usize;
        let mut pair = [0; 2];
        for number in [first, 1 - first] {
            let (spec, phase) = &test.sides[number];
            let mut spec = spec.clone();
            let phase_number = u64::from(round) * 2 + number as u64;
            if test.recipe.is_fresh {
                let own = ObjectSpec::of_mut(&mut spec);
                own.first_id = own.first_id.map(|id| id + (1 + phase_number) * IDS_OF_PHASE);
            }
            let name = if number == 0 { "without" } else { "with" };
            spec.name = Some(format!("{} {name} {}", test.recipe.name, round + 1));
            let planned = one(&spec, phase, store, derive_seed(seed, &[phase_number]))?;
            let planned = Planned::of(planned);
            session.fill(&planned)?;
            pair[number] = session.run_phase(&planned)?;
            if crate::saturate::ends_run(session, pair[number]) {
                note(session, test.at, |record| record.pairs.push([pair[number]; 2]));
                return Ok(());
            }
        }
        note(session, test.at, |record| record.pairs.push(pair));
    }
    Ok(())
}

/// Failure in the phases of a recipe.
fn failure_of(session: &Session, at: usize) -> Option<String> {
    let found = session.record.recipes.as_ref()?.recipes.get(at)?;
    found.pairs.iter().flatten().find_map(|&at| session.record.phases[at].failure.clone())
}

/// Factor computed from the pairs of a recipe. Pairs in which one side completed nothing have no ratio; they are left out.
fn factor(session: &Session, at: usize) -> Option<report::record::RecipeFactor> {
    let found = session.record.recipes.as_ref()?.recipes.get(at)?;
    let rates = found.pairs.iter().map(|pair| pair.map(|at| rate(&session.record.phases[at])));
    let (without, with): (Vec<f64>, Vec<f64>) = rates
        .filter(|pair| pair.iter().all(|rate| *rate > 0.0))
        .map(|[without, with]| (without, with))
        .unzip();
    factor_of(&without, &with)
}

/// Rate a second: of records, however many operations each took; of ids, however many each operation took.
fn rate(phase: &report::record::PhaseRecord) -> f64 {
    let per_second = phase.summary.total.operations_per_second;
    let Some(plan) = phase.plan.of::<ObjectPlan>() else { return per_second };
    let takes_ids = plan.operations().all(|operation| operation == ObjectOp::AllocateIds);
    let ids = if takes_ids { f64::from(plan.ids_per_call) } else { 1.0 };
    per_second * ids / plan.sequence.len().max(1) as f64
}
