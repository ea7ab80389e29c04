//! `strata object recipes`: each recommendation with and without it on one store, in short phases next to each other.

mod options;
mod table;

use std::sync::Arc;

use crate::plan::{ObjectOp, ObjectPhase, ObjectPlan, ObjectSpec};
use clap::{Arg, ArgMatches};
use driver::Error;
use layer::command::{arguments, fill, table_as_markdown};
use layer::{Bench, BenchRequest, Command, CommandKind, Console, Measures, Runs};
use report::recipes::{factor_of, finding_of};
use report::record::{PhaseRecord, RecipeFinding, RecipeRecord, RecipesRecord, Record};
use units::{ByteSize, Span};
use workload::help::{Example, Help};
use workload::options as load_options;
use workload::random::{Random, derive_seed};
use workload::spec::{Spec, Warmup};

use options::{OWN, RecipesSpec, of_loads};
use table::{RECIPES, Recipe, Side};

use crate::load::plan::{names_container, one, only_phase};
use crate::load::{ObjectRun, Store, Stores, directory_of, refusal};

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
const IDLE: &str = "its phases completed no operation in time: use a longer --time";

/// A recipe that can be measured: what is done without it and with it.
struct Test {
    /// Place in the table of the record.
    at: usize,
    recipe: &'static Recipe,
    sides: [(Spec, ObjectPhase); 2],
}

const HELP: Help = Help {
    options: &["only", "rounds", "time", "threads", "depth", "s3-endpoint", "json"],
    examples: &[
        Example::new("on an embedded store in memory", "object recipes"),
        Example::new("a Ceph pool", "object recipes rados://bench"),
        Example::new(
            "a bucket, with longer phases",
            "object recipes s3://bucket --s3-endpoint https://s3.example --time 2s",
        ),
    ],
};

/// The command.
pub(crate) fn command() -> Command {
    let help = &[("", HELP)];
    Command {
        name: "recipes",
        kind: CommandKind::OfLayer,
        help,
        define,
        measures: Measures::Alone,
        run,
        document,
    }
}

fn define() -> clap::Command {
    clap::Command::new("recipes")
        .about("A/B-test common object-store tuning advice on this store and show what matters")
        .arg(Arg::new("targets").value_name("TARGET").num_args(0..=1).help(crate::LAYER.targets))
        .args(arguments(OWN))
        .args(arguments(of_loads()))
}

fn document(text: &mut String) {
    table_as_markdown("Options of `strata object recipes`", OWN, text);
    let shared: Vec<String> = of_loads().map(|option| format!("`--{}`", option.name)).collect();
    *text += &format!("\nSame as for a load on an object store: {}.\n", shared.join(", "));
}

/// Measures the recipes.
///
/// # Errors
/// Bad usage, and what could not be measured.
fn run(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let mut own = RecipesSpec::default();
    fill(OWN, matches, &mut own)?;
    let mut named = Spec { layer: crate::LAYER, ..Spec::default() };
    fill(of_loads(), matches, &mut named)?;
    named.targets = matches.get_many::<String>("targets").into_iter().flatten().cloned().collect();
    let (seed, keep) = (named.seed.unwrap_or_else(|| console.draw_seed()), named.keep);
    let mut runs = Runs::new(console.context(keep));
    let mut stores = Stores::new(runs.context());
    stores.name_target(&mut named)?;
    let target = named.targets.first().cloned().unwrap_or_default();
    let (tests, mut found) = plan(&own, &named)?;
    let mut specs: Vec<Spec> =
        tests.iter().flat_map(|test| test.sides.iter().map(|(spec, _)| spec.clone())).collect();
    if specs.is_empty() {
        return Err(
            Error::usage("recipes", "the store supports the operations of no recipe").with("target", target)
        );
    }
    stores.find(&mut specs.iter_mut().collect::<Vec<_>>())?;
    let store = Arc::clone(stores.of(&specs[0])?);
    let paths: Vec<String> = directory_of(&target).map(str::to_owned).into_iter().collect();
    let rounds = own.rounds.unwrap_or(ROUNDS);
    let phase_count = tests.len() * 2 * rounds as usize;
    let mut bench = console.bench(&BenchRequest { paths: &paths, seed, keep, phase_count, record: None })?;
    found.rounds = rounds;
    Record::of(&mut *bench).recipes = Some(found);
    runs.put(named.layer.name, Box::new(ObjectRun::on(stores)));
    let adopted = bench.adopt(runs);
    let result = adopted.and_then(|()| measure(&mut *bench, &tests, &store, rounds, seed));
    bench.finish(result)
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
    let driver = crate::backend::driver_of(made.targets.first().map_or("", String::as_str))?;
    let honours = |name: &str| driver.capabilities.options.contains(&name);
    let names_container = names_container(&made);
    let own = ObjectSpec::of_mut(&mut made);
    own.first_id = Some(if is_without { first } else { first + IDS_OF_RECIPE / 2 });
    // Names in a bucket may leave out the object, so that its number alone does not keep sides apart.
    if driver.name == "s3" && own.dkey_prefix.is_none() {
        own.dkey_prefix =
            Some(format!("{}-{}-", recipe.name, if is_without { "without" } else { "advised" }));
    }
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
    bench: &mut dyn Bench,
    tests: &[Test],
    store: &Arc<Store>,
    rounds: u32,
    seed: u64,
) -> Result<(), Error> {
    store.connect()?;
    for test in tests {
        if test.recipe.needs_targets && store.told().targets < 2 {
            note(bench, test.at, |record| record.reason = Some("the store has only one target".to_owned()));
            continue;
        }
        let result = measure_one(bench, test, store, rounds, seed);
        if bench.is_interrupted() {
            return result;
        }
        let failure = result.err().map(|error| error.to_string()).or_else(|| failure_of(bench, test.at));
        let factor = if failure.is_none() { factor(bench, test.at) } else { None };
        let is_idle = factor.is_none() && failure.is_none();
        let failure = failure.or_else(|| is_idle.then(|| IDLE.to_owned()));
        note(bench, test.at, |record| {
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
fn note(bench: &mut dyn Bench, at: usize, change: impl FnOnce(&mut RecipeRecord)) {
    if let Some(record) = Record::of(bench).recipes.as_mut().and_then(|found| found.recipes.get_mut(at)) {
        change(record);
    }
}

/// Runs the pairs of one recipe; within a pair, which side comes first is drawn.
fn measure_one(
    bench: &mut dyn Bench,
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
            bench.fill(&planned)?;
            pair[number] = bench.run_phase(&planned)?;
            if Record::ends_with(bench, pair[number]) {
                note(bench, test.at, |record| record.pairs.push([pair[number]; 2]));
                return Ok(());
            }
        }
        note(bench, test.at, |record| record.pairs.push(pair));
    }
    Ok(())
}

/// Failure in the phases of a recipe.
fn failure_of(bench: &mut dyn Bench, at: usize) -> Option<String> {
    let Record { recipes, phases, .. } = Record::of(bench);
    let found = recipes.as_ref()?.recipes.get(at)?;
    found.pairs.iter().flatten().find_map(|&at| phases[at].failure.clone())
}

/// Factor computed from the pairs of a recipe. Pairs in which one side completed nothing have no ratio; they are left out.
fn factor(bench: &mut dyn Bench, at: usize) -> Option<report::record::RecipeFactor> {
    let Record { recipes, phases, .. } = Record::of(bench);
    let found = recipes.as_ref()?.recipes.get(at)?;
    let rates = found.pairs.iter().map(|pair| pair.map(|at| rate(&phases[at])));
    let (without, with): (Vec<f64>, Vec<f64>) = rates
        .filter(|pair| pair.iter().all(|rate| *rate > 0.0))
        .map(|[without, with]| (without, with))
        .unzip();
    factor_of(&without, &with)
}

/// Rate a second: of records, however many operations each took; of ids, however many each operation took.
fn rate(phase: &PhaseRecord) -> f64 {
    let per_second = phase.summary.total.operations_per_second;
    let Some(plan) = phase.plan.of::<ObjectPlan>() else { return per_second };
    let takes_ids = plan.operations().all(|operation| operation == ObjectOp::AllocateIds);
    let ids = if takes_ids { f64::from(plan.ids_per_call) } else { 1.0 };
    per_second * ids / plan.sequence.len().max(1) as f64
}
