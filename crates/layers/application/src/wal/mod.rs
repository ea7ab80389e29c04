//! `strata wal`: commits a second by the logs of databases, beside what these need.

mod needs;
mod options;

use clap::{Arg, ArgMatches};
use driver::Error;
use layer::command::{arguments, fill, fill_load, table_as_markdown};
use layer::{
    Bench, BenchRequest, Command, CommandKind, Console, LayerRun, Measured, Measures, Phase, Planning, Runs,
    Seed,
};
use report::preset::value_words;
use report::record::{PresetFigure, PresetFinding, PresetRecord, PresetUnit, Record};
use units::path_of;
use workload::help::{Example, Help};
use workload::spec::Spec;

use crate::spec::AppSpec;
use needs::{DATABASES, Database};
use options::{OWN, WalSpec, of_loads};

const COMMITS: u64 = 2000;
const ROUNDS: u64 = 5;
/// The stage of the application in which clients commit.
const STAGE: &str = " run";
const TOO_FEW: &str = "a round has fewer than the 1,000 commits that p99 requires: use more --commits";

const HELP: Help = Help {
    options: &["only", "commits", "rounds", "clients", "json"],
    examples: &[
        Example::new("commits in the directory of a database", "wal /var/lib/db"),
        Example::new("is this disk fast enough for etcd?", "wal /var/lib/etcd --only etcd"),
        Example::new("eight sessions with group commit", "wal /var/lib/db --only postgresql --clients 8"),
    ],
};

/// The command.
pub(crate) fn command() -> Command {
    let help = &[("", HELP)];
    Command { name: "wal", kind: CommandKind::Preset, help, define, measures: Measures::Alone, run, document }
}

fn define() -> clap::Command {
    clap::Command::new("wal")
        .about("Commits per second and p99 with the logs of etcd, PostgreSQL, SQLite and RocksDB, compared with their requirements")
        .arg(Arg::new("targets").value_name("DIR|FILE").required(true).help(
            "The directory of the database, or a file in it: the logs are created beside it and removed. All targets of strata app are supported",
        ))
        .args(arguments(OWN))
        .args(arguments(of_loads()))
}

fn document(text: &mut String) {
    table_as_markdown("Options of `strata wal`", OWN, text);
    let shared: Vec<String> = of_loads().map(|option| format!("`--{}`", option.name)).collect();
    *text += &format!("\nAs for `strata app`: {}.\n", shared.join(", "));
}

/// A database, its stages, and its figures in the record, from the first on.
struct Test {
    database: &'static Database,
    stages: Vec<Phase>,
    first: usize,
    /// Phases of its rounds in which clients committed.
    done: Vec<usize>,
}

/// Measures the logs.
///
/// # Errors
/// Bad usage, and what could not be measured.
fn run(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let mut own = WalSpec::default();
    fill(OWN, matches, &mut own)?;
    let mut named = Spec { layer: crate::LAYER, ..Spec::default() };
    fill_load(of_loads(), matches, &mut named)?;
    let target = directory_of(matches.get_one::<String>("targets").map_or("", String::as_str));
    named.targets = vec![target.clone()];
    let (seed, keep) = (named.seed.unwrap_or_else(|| console.draw_seed()), named.keep);
    let mut runs = Runs::new(console.context(keep));
    let mut applications = crate::Applications.begin(runs.context());
    let (mut tests, answer) = plan(&own, &named, &mut *applications, seed)?;
    runs.put(crate::LAYER.name, applications);
    let rounds = own.rounds.unwrap_or(ROUNDS);
    let phase_count = tests.iter().map(|test| test.stages.len()).sum::<usize>() * rounds as usize;
    named.own.get_mut::<AppSpec>().app = Some("database".to_owned());
    let paths: Vec<String> =
        crate::Applications.paths(&named).iter().map(|path| units::label_of(path.as_os_str())).collect();
    let mut bench = console.bench(&BenchRequest { paths: &paths, seed, keep, phase_count, record: None })?;
    Record::of(&mut *bench).preset = Some(answer);
    let adopted = bench.adopt(runs);
    let result = adopted.and_then(|()| measure(&mut *bench, &mut tests, rounds));
    tests.iter().for_each(|test| note(&mut *bench, test));
    conclude(&mut *bench, &tests);
    bench.finish(result)
}

/// The directory that a file lies in; any other target as it is.
fn directory_of(target: &str) -> String {
    let path = path_of(target);
    if !path.is_file() {
        return target.to_owned();
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| ".".to_owned(), |parent| units::label_of(parent.as_os_str()))
}

/// Plans the stages of all databases.
fn plan(
    own: &WalSpec,
    named: &Spec,
    applications: &mut dyn LayerRun,
    seed: u64,
) -> Result<(Vec<Test>, PresetRecord), Error> {
    let asked = DATABASES
        .iter()
        .filter(|database| own.only.is_empty() || own.only.iter().any(|name| name == database.name));
    let (mut tests, mut figures) = (Vec::<Test>::new(), Vec::new());
    let commits = own.commits.unwrap_or(COMMITS);
    for database in asked {
        let clients = if database.is_single { 1 } else { own.clients.unwrap_or(1) };
        let spec = load(named, database, commits, clients);
        let number = tests.iter().map(|test| test.stages.len()).sum();
        let planning = Planning { before: &[], number, seed: Seed::OfRun(seed) };
        let stages = applications.phases(&spec, &planning)?;
        tests.push(Test { database, stages, first: figures.len(), done: Vec::new() });
        let client = units::counted(clients, "client");
        for need in database.needs {
            let load = format!("{}, {client}", database.log);
            let mut figure = PresetFigure::new(need.key, load, need.unit, need.needed);
            figure.source = need.needed.map(|_| need.source.to_owned());
            figures.push(figure);
        }
    }
    let mut method = vec![format!(
        "{} rounds of {commits} commits per client, databases in turn (the application `database`)",
        own.rounds.unwrap_or(ROUNDS)
    )];
    for database in tests.iter().map(|test| test.database) {
        let source = database.needs.iter().map(|need| need.source).find(|source| !source.is_empty());
        method.extend(source.map(|source| format!("requirement, {source}")));
    }
    let answer = PresetRecord {
        name: "wal".to_owned(),
        target: named.targets[0].clone(),
        against: "needed".to_owned(),
        method,
        figures,
        ..PresetRecord::default()
    };
    Ok((tests, answer))
}

/// The load of a round: commits, with as little beside them as the application has.
fn load(named: &Spec, database: &Database, commits: u64, clients: u64) -> Spec {
    let mut spec = named.clone();
    spec.name = Some(database.name.to_owned());
    let settings = [
        ("wal", database.name.to_owned()),
        ("clients", clients.to_string()),
        ("interval", commits.to_string()),
        ("steps", "1".to_owned()),
        ("readers", "1".to_owned()),
        ("reads", "1".to_owned()),
        ("pages", "1".to_owned()),
        ("dirty", "1".to_owned()),
    ];
    // sqlite takes no number of clients but its own.
    let settings = settings.into_iter().filter(|(name, _)| !(database.is_single && *name == "clients"));
    let own = spec.own.get_mut::<AppSpec>();
    own.app = Some("database".to_owned());
    own.settings = settings.map(|(name, value)| (name.to_owned(), value)).collect();
    own.is_repeated = true;
    spec
}

/// Runs the rounds, one of each database after the other.
fn measure(bench: &mut dyn Bench, tests: &mut [Test], rounds: u64) -> Result<(), Error> {
    for _ in 0..rounds {
        for test in &mut *tests {
            for phase in &test.stages {
                let at = bench.run_phase(phase)?;
                if Record::ends_with(bench, at) {
                    return Ok(());
                }
                if phase.plan.name().ends_with(STAGE) {
                    test.done.push(at);
                }
            }
        }
    }
    Ok(())
}

/// Notes the figures of a database.
fn note(bench: &mut dyn Bench, test: &Test) {
    let Record { preset, phases, .. } = Record::of(bench);
    let Some(answer) = preset else { return };
    for (figure, need) in answer.figures[test.first..].iter_mut().zip(test.database.needs) {
        let values: Vec<f64> = test.done.iter().filter_map(|at| (need.value)(phases.get(*at)?)).collect();
        figure.rounds.clone_from(&test.done);
        figure.take(&values, &test.done, TOO_FEW);
    }
}

/// Writes a line for each database.
fn conclude(bench: &mut dyn Bench, tests: &[Test]) {
    let answer = PresetRecord::of(bench);
    answer.verdict = tests
        .iter()
        .map(|test| {
            let figures = &answer.figures[test.first..test.first + test.database.needs.len()];
            format!("{}: {}", test.database.name, sentence(figures))
        })
        .collect();
}

/// `901 commits/s, p99 1.52 ms; etcd heavy load 1.80x (95 % CI 1.71-1.89x): enough`.
fn sentence(figures: &[PresetFigure]) -> String {
    let of = |unit| figures.iter().find(|figure| figure.unit == unit).and_then(|figure| figure.value);
    let Some(rate) = of(PresetUnit::OperationsPerSecond) else { return "not measured".to_owned() };
    let mut text = format!("{} commits", value_words(PresetUnit::OperationsPerSecond, rate));
    if let Some(p99) = of(PresetUnit::Nanoseconds) {
        text += &format!(", p99 {}", value_words(PresetUnit::Nanoseconds, p99));
    }
    let with = |finding| {
        let found = figures.iter().filter(move |figure| figure.finding == Some(finding));
        found.map(PresetFigure::ratio_words).collect::<Vec<_>>().join(", ")
    };
    let (worse, unclear) = (with(PresetFinding::Worse), with(PresetFinding::CannotTell));
    if figures.iter().all(|figure| figure.stated.is_none()) {
        return text + "; no published requirement";
    }
    match (worse.is_empty(), unclear.is_empty()) {
        (true, true) if figures.iter().all(|figure| figure.stated.is_none() || figure.value.is_some()) => {
            text + "; enough"
        }
        (true, true) => text + "; enough for the measured results",
        (false, _) => format!("{text}; not enough: {worse} of the requirement"),
        (true, false) => format!("{text}; cannot tell: {unclear} of the requirement"),
    }
}
