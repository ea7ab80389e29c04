//! `strata drive`: preconditioning and steady state as SNIA's performance test specification has them, and what data sheets state beside what was measured.

mod loads;
mod options;
mod sheet;

use clap::{Arg, ArgMatches};
use driver::Error;
use layer::command::{arguments, fill, fill_load, table_as_markdown};
use layer::{
    Bench, BenchRequest, Command, CommandKind, Console, LayerRun, Measured, Measures, Phase, Planning, Runs,
    Seed,
};
use report::record::{PresetFinding, PresetRecord, Record};
use statistics::{ROUNDS_OF_WINDOW, RoundsWindow};
use units::{ByteSize, Span};
use workload::help::{Example, Help};
use workload::spec::Spec;
use workload::target::TargetKind;

use crate::plan::MediaPlan;
use loads::{Many, TESTS, Test, ValueOf, preconditioning};
use options::{DriveSpec, OWN, of_loads};
use sheet::Sheet;

/// Length of a round where nothing is said, nanoseconds: SNIA's minute.
const ROUND_NS: u64 = 60_000_000_000;
/// The same for a quick look.
const QUICK_ROUND_NS: u64 = 1_000_000_000;
/// Most rounds where nothing is said: SNIA's.
const ROUNDS_MAX: u64 = 25;
/// Why a percentile is missing.
const TOO_FEW: &str =
    "a round has fewer than the 100,000 operations that p99.99 needs: give a longer --round";
const DEPTH: u64 = 32;
const THREADS: u64 = 4;
/// Preconditioning writes the range this many times.
const PASSES: u64 = 2;

const HELP: Help = Help {
    options: &["spec", "quick", "size", "round", "rounds-max", "destroy-data", "json"],
    examples: &[
        Example::new(
            "a drive against its data sheet; all data on it is lost",
            "drive /dev/nvme0n1 --destroy-data --spec seq_read=7000MB/s,rand_read=1M",
        ),
        Example::new(
            "data sheet from a file, results saved in a directory",
            "drive /dev/nvme0n1 --destroy-data --spec sheet.toml --out results",
        ),
        Example::new("a quick test on a file, without preconditioning", "drive data --size 1g --quick"),
    ],
};

/// The command.
pub(crate) fn command() -> Command {
    let help = &[("", HELP)];
    Command {
        name: "drive",
        kind: CommandKind::Preset,
        help,
        define,
        measures: Measures::Alone,
        run,
        document,
    }
}

fn define() -> clap::Command {
    clap::Command::new("drive")
        .about("Compare a drive with its data sheet, with preconditioning and steady state as specified by SNIA")
        .arg(Arg::new("targets").value_name("DEVICE|FILE").required(true).help(
            "The block device, or a file on it. All of it is overwritten: targets that `strata media` rejects without --destroy-data are rejected here too",
        ))
        .args(arguments(OWN))
        .args(arguments(of_loads()))
}

fn document(text: &mut String) {
    table_as_markdown("Options of `strata drive`", OWN, text);
    let shared: Vec<String> = of_loads().map(|option| format!("`--{}`", option.name)).collect();
    *text += &format!("\nAs for `strata media`: {}.\n", shared.join(", "));
}

/// Phases of the test, with every default resolved.
struct Programme {
    precondition: Option<Phase>,
    /// The rounds of each test, as many as may be needed.
    tests: Vec<(&'static Test, Vec<Phase>)>,
    /// Figures of each test in the record, from the first on.
    values: Vec<Vec<ValueOf>>,
    is_quick: bool,
}

/// Measures the drive.
///
/// # Errors
/// Bad usage, data that would be destroyed without leave, and what could not be measured.
fn run(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let mut own = DriveSpec::default();
    fill(OWN, matches, &mut own)?;
    let mut named = Spec { layer: crate::LAYER, ..Spec::default() };
    fill_load(of_loads(), matches, &mut named)?;
    let target = matches.get_one::<String>("targets").cloned().unwrap_or_default();
    named.targets = vec![target.clone()];
    if own.is_quick && own.rounds_max.is_some() {
        return Err(Error::usage(
            "drive",
            "--rounds-max has no effect with --quick, which does not wait for a steady state",
        )
        .remedy("leave out one of them"));
    }
    let sheet = own.sheet.as_deref().map(Sheet::read).transpose()?.unwrap_or_default();
    let (seed, keep) = (named.seed.unwrap_or_else(|| console.draw_seed()), named.keep);
    let mut runs = Runs::new(console.context(keep));
    let mut media = crate::Media.begin(runs.context());
    let (programme, answer) = plan(&own, &named, &sheet, &mut *media, seed)?;
    runs.put(crate::LAYER.name, media);
    let phase_count = usize::from(programme.precondition.is_some()) + TESTS.len() * ROUNDS_OF_WINDOW;
    let paths = [target];
    let mut bench = console.bench(&BenchRequest { paths: &paths, seed, keep, phase_count, record: None })?;
    Record::of(&mut *bench).preset = Some(answer);
    let adopted = bench.adopt(runs);
    let result = adopted.and_then(|()| measure(&mut *bench, &programme));
    conclude(&mut *bench, programme.is_quick);
    bench.finish(result)
}

/// Plans all phases before any is run, so that what is refused has touched nothing.
fn plan(
    own: &DriveSpec,
    named: &Spec,
    sheet: &Sheet,
    media: &mut dyn LayerRun,
    seed: u64,
) -> Result<(Programme, PresetRecord), Error> {
    let many = Many { depth: own.depth.unwrap_or(DEPTH), threads: own.threads.unwrap_or(THREADS) };
    let usual_ns = if own.is_quick { QUICK_ROUND_NS } else { ROUND_NS };
    let round = own.round.unwrap_or(Span(usual_ns));
    let rounds_max = own.rounds_max.unwrap_or(ROUNDS_MAX);
    let mut number = 0;
    let mut one = |spec: &Spec| -> Result<Phase, Error> {
        let planning = Planning { before: &[], number, seed: Seed::OfRun(seed) };
        number += 1;
        let mut phases = media.phases(spec, &planning)?;
        phases.pop().ok_or_else(|| Error::usage("drive", "a load without a phase"))
    };
    let mut tests = Vec::new();
    let (mut figures, mut values) = (Vec::new(), Vec::new());
    for test in TESTS {
        let goes_on = test.writes && !own.is_quick;
        let rounds = if goes_on { rounds_max } else { ROUNDS_OF_WINDOW as u64 };
        let phases = (1..=rounds).map(|number| one(&test.spec(named, many, round, number)?));
        tests.push((test, phases.collect::<Result<Vec<_>, _>>()?));
        let (made, read): (Vec<_>, Vec<_>) = test.figures(sheet, many).unzip();
        figures.extend(made);
        values.push(read);
    }
    let (kind, bytes) = range_of(&tests[0].1[0])?;
    let precondition = if own.is_quick {
        None
    } else {
        Some(one(&preconditioning(named, many, bytes.saturating_mul(PASSES))?)?)
    };
    let target = named.targets[0].clone();
    let answer = PresetRecord {
        name: "drive".to_owned(),
        against: "stated".to_owned(),
        method: method(own, bytes, round, rounds_max),
        warnings: warnings_before(own, &target, kind, bytes),
        target,
        figures,
        ..PresetRecord::default()
    };
    Ok((Programme { precondition, tests, values, is_quick: own.is_quick }, answer))
}

/// Kind and bytes of the range that the phase works on.
fn range_of(phase: &Phase) -> Result<(TargetKind, u64), Error> {
    let target = phase.plan.of::<MediaPlan>().and_then(|plan| plan.targets.first());
    match target {
        Some(target)
            if matches!(target.kind, TargetKind::File | TargetKind::BlockDevice | TargetKind::Image) =>
        {
            Ok((target.kind, target.size_bytes))
        }
        _ => Err(Error::usage("drive", "the target is not a drive")
            .remedy("give a block device, or a file on the drive")),
    }
}

fn method(own: &DriveSpec, bytes: u64, round: Span, rounds_max: u64) -> Vec<String> {
    let size = ByteSize(bytes).human();
    let purge =
        "purge: not done by strata; only the vendor's command restores a drive (nvme format, blkdiscard)";
    if own.is_quick {
        return vec![format!("{ROUNDS_OF_WINDOW} rounds of {round} per load over {size}"), purge.to_owned()];
    }
    vec![
        format!(
            "SNIA PTS: {PASSES} sequential passes over {size}; then rounds of {round}; writes repeat until {ROUNDS_OF_WINDOW} consecutive rounds are steady \
             (range at most 20 % of their mean, slope at most 10 %), at most {rounds_max}"
        ),
        purge.to_owned(),
    ]
}

/// Warnings that are known before anything runs.
fn warnings_before(own: &DriveSpec, target: &str, kind: TargetKind, bytes: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    if own.is_quick {
        warnings.push(
            "no preconditioning and no steady state (--quick): a fresh or idle drive is faster than in steady state; to compare with a data sheet, run without --quick"
                .to_owned(),
        );
    }
    let whole = crate::probe::probe(target, true).map_or(bytes, |facts| facts.size_bytes);
    if kind == TargetKind::BlockDevice && bytes < whole {
        let (size, whole) = (ByteSize(bytes).human(), ByteSize(whole).human());
        warnings.push(format!(
            "only {size} of {whole} were used: a partly filled drive is faster than a full one; leave out --size"
        ));
    }
    if kind == TargetKind::File {
        warnings.push(
            "the target is a file: the results include its file system, and the drive is not full".to_owned(),
        );
    }
    warnings
}

/// Runs everything.
fn measure(bench: &mut dyn Bench, programme: &Programme) -> Result<(), Error> {
    if let Some(phase) = &programme.precondition {
        let at = bench.run_phase(phase)?;
        if Record::ends_with(bench, at) {
            return Ok(());
        }
    }
    let mut first = 0;
    for ((test, rounds), values) in programme.tests.iter().zip(&programme.values) {
        let waits = test.writes && !programme.is_quick;
        let goes_on = measure_one(bench, rounds, waits, first, values)?;
        first += values.len();
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// Runs the rounds of one test and notes its figures, from number `first` on; whether the run goes on.
fn measure_one(
    bench: &mut dyn Bench,
    rounds: &[Phase],
    waits: bool,
    first: usize,
    values: &[ValueOf],
) -> Result<bool, Error> {
    let mut done = Vec::new();
    let result = run_rounds(bench, rounds, values[0], &mut done);
    let window = done[done.len().saturating_sub(ROUNDS_OF_WINDOW)..].to_vec();
    let steady = RoundsWindow::of(&series(bench, &done, values[0])).filter(|_| waits);
    for (number, value) in values.iter().enumerate() {
        let found = series(bench, &window, *value);
        let figure = &mut PresetRecord::of(bench).figures[first + number];
        figure.rounds.clone_from(&done);
        figure.steady = steady;
        figure.take(&found, &window, TOO_FEW);
    }
    result
}

/// Runs rounds until five in a row are steady or there are no more, and notes those that are whole, also where it fails; whether the run goes on.
fn run_rounds(
    bench: &mut dyn Bench,
    rounds: &[Phase],
    value: ValueOf,
    done: &mut Vec<usize>,
) -> Result<bool, Error> {
    for phase in rounds {
        let at = bench.run_phase(phase)?;
        if Record::ends_with(bench, at) {
            return Ok(false);
        }
        done.push(at);
        if RoundsWindow::of(&series(bench, done, value)).is_some_and(|found| found.is_steady) {
            break;
        }
    }
    Ok(true)
}

/// Values of these phases, without those that have none.
fn series(bench: &mut dyn Bench, phases: &[usize], value: ValueOf) -> Vec<f64> {
    let record = Record::of(bench);
    phases.iter().filter_map(|at| value(record.phases.get(*at)?)).collect()
}

/// Writes the answer, from the figures that there are.
fn conclude(bench: &mut dyn Bench, is_quick: bool) {
    let answer = PresetRecord::of(bench);
    let mut unsteady = Vec::new();
    for figure in &answer.figures {
        let Some(found) = figure.steady.filter(|found| !found.is_steady) else { continue };
        unsteady.push(format!(
            "{}: no steady state in {} rounds (range {:.1} % of the mean, SNIA allows 20; slope {:.1} %, SNIA allows 10): raise --rounds-max or --round",
            figure.key, found.rounds, found.data_excursion_percent, found.slope_excursion_percent
        ));
    }
    answer.warnings.extend(unsteady);
    answer.verdict = verdict(answer, is_quick);
}

fn verdict(answer: &PresetRecord, is_quick: bool) -> Vec<String> {
    let stated = answer.figures.iter().filter(|figure| figure.stated.is_some()).count();
    if stated == 0 {
        return vec!["no data sheet to compare with: give one with --spec".to_owned()];
    }
    let with = |finding| answer.figures.iter().filter(move |figure| figure.finding == Some(finding));
    let met = with(PresetFinding::Meets).count() + with(PresetFinding::Better).count();
    let but = if is_quick { ", without preconditioning" } else { "" };
    let mut lines = vec![format!("{met} of {stated} data sheet values are met (within 5 %){but}")];
    for (finding, word) in
        [(PresetFinding::Worse, "worse than the data sheet"), (PresetFinding::CannotTell, "cannot tell")]
    {
        let found: Vec<String> = with(finding).map(|figure| figure.ratio_words()).collect();
        if !found.is_empty() {
            lines.push(format!("{word}: {}", found.join(", ")));
        }
    }
    let missing: Vec<&str> = answer
        .figures
        .iter()
        .filter(|figure| figure.stated.is_some() && figure.value.is_none())
        .map(|figure| &*figure.key)
        .collect();
    if !missing.is_empty() {
        lines.push(format!("not measured: {}", missing.join(", ")));
    }
    lines
}
