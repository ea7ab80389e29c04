//! `strata compare`: reads or runs both sides, in turns where they are run, and shows what `report` makes of them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;
use driver::{Error, ErrorKind};
use live::LiveMode;
use report::compare::{Comparison, Limit, Operand, compare, render, to_html, to_junit, to_markdown};
use report::record::{Record, Status};
use units::{label_of, path_of};
use workload::options::{Group, OptionDef, path, switch};
use workload::random::derive_seed;
use workload::spec::{Layer, Spec};

use crate::commands::{job_specs, read_record, targets_of};
use crate::hosts::{self, Carriers};
use crate::options::{OUTPUT, OutputSpec};
use crate::output::{self, WIDTH_DEFAULT};
use crate::session::{Session, draw_run, draw_seed};
use crate::{cli, dialect, forms, planning, saturate};

/// Most repeats of a side.
const REPEATS_MAX: u64 = 1000;
/// Name of the comparison among the results.
const JSON_NAME: &str = "comparison.json";
const TEXT_NAME: &str = "comparison.txt";

/// Options of a comparison: repeats, limits, seed and places of the results.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompareSpec {
    repeat: Option<u64>,
    force: bool,
    limits: Vec<Limit>,
    seed: Option<u64>,
    json: Option<String>,
    /// Other forms of the comparison, and where they go.
    forms: Vec<(Form, String)>,
    out: Option<PathBuf>,
    live: Option<LiveMode>,
}

/// A form that a comparison is written in.
pub(crate) type Form = fn(&[Comparison]) -> String;

/// The option that writes a comparison in a form.
const fn form(
    name: &'static str,
    help: &'static str,
    apply: fn(&mut CompareSpec, &str) -> Result<(), units::ParseError>,
) -> OptionDef<CompareSpec> {
    OptionDef { name, short: None, value: "FILE", default: "none", help, group: Group::Output, apply }
}

fn add_form(spec: &mut CompareSpec, name: &str, form: Form, place: &str) -> Result<(), units::ParseError> {
    path(name, place)?;
    spec.forms.push((form, place.to_owned()));
    Ok(())
}

/// Options of `strata compare`.
pub(crate) static COMPARE: &[OptionDef<CompareSpec>] = &[
    OptionDef {
        name: "repeat",
        short: None,
        value: "N",
        default: "off: A and B are records",
        help: "Run A and B N times each, in turns, so that drift affects both equally; use 6 or more",
        group: Group::Run,
        apply: |spec, text| {
            spec.repeat = Some(units::parse_u64_in("number of repeats", text, 1..=REPEATS_MAX)?);
            Ok(())
        },
    },
    OptionDef {
        name: "force",
        short: None,
        value: "",
        default: "off",
        help: "Compare records of different loads; by default these are rejected, because their results differ anyway",
        group: Group::Run,
        apply: |spec, text| {
            spec.force = switch("force", text)?;
            Ok(())
        },
    },
    OptionDef {
        name: "fail-if",
        short: None,
        value: "LIMIT",
        default: "none",
        help: "Exit with 1 if B is significantly slower, by at least this: slower:5% (the verdict), or \
               p99-slower:10% (rate, mean, p50, p90, p99, p99.9 or cpu); may be given several times",
        group: Group::Run,
        apply: |spec, text| {
            spec.limits.push(text.parse()?);
            Ok(())
        },
    },
    OptionDef {
        name: "seed",
        short: None,
        value: "N",
        default: "random; stored in the records",
        help: "With --repeat: derive the seeds of the runs from this one; both runs of a pair use the same seed",
        group: Group::Run,
        apply: |spec, text| {
            spec.seed = Some(units::parse_u64_in("seed", text, 0..=u64::MAX)?);
            Ok(())
        },
    },
    OptionDef {
        name: "json",
        short: None,
        value: "FILE",
        default: "none",
        help: "Write the comparison as JSON; - for standard output",
        group: Group::Output,
        apply: |spec, text| {
            path("json", text)?;
            spec.json = Some(text.to_owned());
            Ok(())
        },
    },
    form(
        "html",
        "Write one page: verdicts, and each difference with its confidence interval as a dot with a whisker; - for standard output",
        |spec, text| add_form(spec, "html", to_html, text),
    ),
    form(
        "markdown",
        "Write the verdicts and tables as Markdown, for summaries in CI; - for standard output",
        |spec, text| add_form(spec, "markdown", to_markdown, text),
    ),
    form(
        "junit",
        "Write the limits of --fail-if as JUnit XML, a test case for each phase; - for standard output",
        |spec, text| add_form(spec, "junit", to_junit, text),
    ),
    OptionDef {
        name: "out",
        short: Some('o'),
        value: "DIR",
        default: "none",
        help: "Write comparison.json and comparison.txt into this directory; with --repeat also the records a-1.json, \
               b-1.json, ...",
        group: Group::Output,
        apply: |spec, text| {
            spec.out = Some(path("out", text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "live",
        short: None,
        value: "auto|line|full|none",
        default: "auto: a progress line on a terminal, plain lines elsewhere",
        help: "With --repeat: what to show during the run, on standard error",
        group: Group::Output,
        apply: |spec, text| {
            spec.live = Some(text.parse()?);
            Ok(())
        },
    },
];

/// Compares, and shows it.
pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Error> {
    let spec = cli::compare_spec(matches)?;
    let operand = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let (a, b) = (operand("a"), operand("b"));
    let Some(repeats) = spec.repeat else {
        for (name, given) in [("--seed", spec.seed.is_some()), ("--live", spec.live.is_some())] {
            if given {
                return Err(usage(format!("{name} applies to runs, but A and B are records"))
                    .remedy("give --repeat N"));
            }
        }
        let (a, b) = (read(a)?, read(b)?);
        let read: Vec<String> = a.records.iter().chain(&b.records).map(|(path, _)| path.clone()).collect();
        check_places(&spec, &read)?;
        return show(&spec, &a, &b, None);
    };
    if spec.force {
        return Err(usage("--force applies to records only: with --repeat nothing is rejected")
            .remedy("leave it out"));
    }
    let sides = [load(a)?, load(b)?];
    let targets: Vec<String> = sides.iter().flat_map(|side| targets_of(&side.specs)).collect();
    check_places(&spec, &targets)?;
    for side in &sides {
        // What is wrong with either is told before anything runs.
        // Hosts check what they are asked when they plan.
        if !hosts::are_asked(&side.specs) {
            planning::plan(&side.specs, 0)?;
        }
    }
    let (records, stopped) = run_in_turns(&spec, &sides, repeats)?;
    let ([load_a, load_b], [a, b]) = (sides, records);
    let (a, b) = (Operand { label: load_a.label, records: a }, Operand { label: load_b.label, records: b });
    show(&spec, &a, &b, stopped)
}

fn usage(message: impl Into<String>) -> Error {
    Error::usage("compare", message)
}

/// Tries every place that something is written to.
fn check_places(spec: &CompareSpec, taken: &[String]) -> Result<(), Error> {
    let given: Vec<&str> =
        spec.json.iter().chain(spec.forms.iter().map(|(_, place)| place)).map(String::as_str).collect();
    forms::check("compare", &given, taken)?;
    if let Some(directory) = &spec.out {
        output::make_directory(directory)?;
        for name in [JSON_NAME, TEXT_NAME] {
            output::try_place(&directory.join(name))?;
        }
    }
    Ok(())
}

/// Prints and writes the comparison; fails where a limit was exceeded or the runs were stopped.
fn show(spec: &CompareSpec, a: &Operand, b: &Operand, stopped: Option<String>) -> Result<u8, Error> {
    let comparison =
        compare(a, b, spec.repeat.is_some(), &spec.limits).map_err(|message| match &stopped {
            Some(why) => Error::new(ErrorKind::Run, "compare", format!("{why}: too little data to compare")),
            None => usage(message),
        })?;
    let others = comparison.other_loads();
    if spec.repeat.is_none() && !spec.force && !others.is_empty() {
        return Err(usage(format!("A and B are different loads: {}", others.join("; ")))
            .remedy("use --force to compare them anyway"));
    }
    let json = comparison.to_json().map_err(|message| Error::new(ErrorKind::Run, "compare", message))?;
    if let Some(directory) = &spec.out {
        output::write_or_fail(&directory.join(JSON_NAME), &json)?;
        output::write_or_fail(&directory.join(TEXT_NAME), &render(&comparison, WIDTH_DEFAULT, false))?;
    }
    let others =
        spec.forms.iter().map(|(form, place)| (place.as_str(), form(std::slice::from_ref(&comparison))));
    let printed = forms::write(spec.json.iter().map(|place| (place.as_str(), json.clone())).chain(others))?;
    let (width, colour) = output::page();
    output::print(&printed.unwrap_or_else(|| render(&comparison, width, colour)))?;
    verdict(&comparison, stopped)
}

fn verdict(comparison: &Comparison, stopped: Option<String>) -> Result<u8, Error> {
    if let Some(why) = stopped {
        return Err(Error::new(ErrorKind::Run, "compare", format!("partial: {why}")));
    }
    match comparison.fails() {
        true => Err(Error::new(ErrorKind::Run, "compare", comparison.exceeded().join("; "))),
        false => Ok(0),
    }
}

/// Records: a file, a directory of them, or several with commas between them.
fn read(label: &str) -> Result<Operand, Error> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let parts: Vec<&str> = if path_of(label).exists() { vec![label] } else { label.split(',').collect() };
    for part in parts {
        let path = &*path_of(part);
        if path.is_dir() {
            paths.extend(records_in("compare", path)?);
        } else if path.extension().is_some_and(|extension| extension == "toml")
            || (!path.exists() && part.contains(' '))
        {
            return Err(usage(format!("\"{}\" is not a record", part.escape_debug()))
                .remedy("give --repeat N to run it"));
        } else {
            paths.push(path.to_owned());
        }
    }
    let read = |path: &PathBuf| {
        let name = label_of(path.as_os_str());
        read_record("compare", &name).map(|record| (name, record))
    };
    Ok(Operand { label: label.to_owned(), records: paths.iter().map(read).collect::<Result<_, Error>>()? })
}

/// The records of a directory by name; a comparison beside them is none.
pub(crate) fn records_in(operation: &'static str, directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let refuse = |error: std::io::Error| {
        Error::usage(operation, format!("cannot read the directory: {error}"))
            .with("path", directory.display())
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        if is_record(&path) && !path.ends_with(JSON_NAME) {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(Error::usage(operation, "no record in this directory")
            .with("path", directory.display())
            .remedy("give a directory with records as *.json or *.json.gz"));
    }
    Ok(paths)
}

fn is_record(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".json") || name.ends_with(".json.gz")
}

/// A side that is run.
struct Load {
    label: String,
    /// The command line that would run it alone.
    words: Vec<String>,
    specs: Vec<Spec>,
}

/// A job file, or the words of a command line as a shell would split them.
fn load(label: &str) -> Result<Load, Error> {
    let refuse = |message: String| {
        usage(message).remedy(
            "with --repeat, give a job file (.toml) or a quoted command line such as 'media FILE --op randread --time 2s' \
             or 'as fio JOB'",
        )
    };
    let is_job = label.ends_with(".toml") && (path_of(label).exists() || !label.contains(' '));
    let mut words = if is_job {
        vec!["run".to_owned(), label.to_owned()]
    } else {
        shlex::split(label)
            .ok_or_else(|| refuse(format!("\"{}\" has an open quote", label.escape_debug())))?
    };
    if words.first().is_none_or(|word| word != "strata") {
        words.insert(0, "strata".to_owned());
    }
    let not_run = || refuse(format!("\"{}\" cannot be run", label.escape_debug()));
    let command = words.get(1).map_or("", String::as_str);
    if !matches!(command, "run" | "as") && Layer::of_command(command).is_none() {
        return Err(not_run());
    }
    let matches = cli::command().try_get_matches_from(&words).map_err(|error| match error.use_stderr() {
        true => cli::usage_error(&words, &error).with("side", label),
        false => not_run(),
    })?;
    if let Some((_, own)) = matches.subcommand() {
        refuse_output(own)?;
    }
    let specs = match matches.subcommand() {
        Some(("run", matches)) => job_specs(matches)?,
        Some(("as", matches)) => {
            dialect::specs(matches).map_err(|error| error.with("side", label))?.ok_or_else(not_run)?
        }
        Some((command, matches)) if matches.subcommand().is_none() => match Layer::of_command(command) {
            Some(layer) => vec![cli::load_spec(layer, matches)?],
            None => return Err(not_run()),
        },
        _ => return Err(not_run()),
    };
    Ok(Load { label: label.to_owned(), words, specs })
}

/// Refuses options of a side that say where its output goes.
fn refuse_output(matches: &ArgMatches) -> Result<(), Error> {
    for option in OUTPUT {
        if matches.value_source(option.name) == Some(ValueSource::CommandLine) {
            return Err(usage(format!("--{} applies to the comparison, not to one side", option.name))
                .remedy("give --json, --out or --live after A and B"));
        }
    }
    Ok(())
}

/// Records of both sides.
type Records = [Vec<(String, Record)>; 2];

/// Runs both sides in turns: A B, B A, B A, A B, ... (the sequence of Thue and Morse), so that what drifts evenly, or
/// faster and faster, favours neither. Records, and why it ended early.
fn run_in_turns(
    spec: &CompareSpec,
    sides: &[Load; 2],
    repeats: u64,
) -> Result<(Records, Option<String>), Error> {
    let seed = spec.seed.unwrap_or_else(draw_seed);
    let live = spec.live.unwrap_or_default();
    let mut records: Records = [Vec::new(), Vec::new()];
    for pair in 0..repeats {
        let first = (pair.count_ones() % 2) as usize;
        for at in [first, 1 - first] {
            let name = format!("{}-{}", ["a", "b"][at], pair + 1);
            if live != LiveMode::None {
                output::tell(format_args!("strata: compare: {name} of {repeats}"));
            }
            let (record, is_interrupted) = match run_once(&sides[at], derive_seed(seed, &[pair]), live) {
                Ok(ran) => ran,
                Err(error) if records.iter().all(Vec::is_empty) => return Err(error),
                Err(error) => return Ok((records, Some(format!("{name}: {error}")))),
            };
            if let Some(directory) = &spec.out {
                output::write_or_fail(&directory.join(format!("{name}.json")), &output::to_json(&record)?)?;
            }
            if is_interrupted || record.status != Status::Complete {
                let why = record.failure.unwrap_or_else(|| "interrupted".to_owned());
                return Ok((records, Some(format!("{name}: {why}"))));
            }
            records[at].push((name, record));
        }
    }
    Ok((records, None))
}

/// One run of a side: its record, and whether it was interrupted.
fn run_once(load: &Load, seed: u64, live: LiveMode) -> Result<(Record, bool), Error> {
    let seed = load.specs.iter().find_map(|spec| spec.seed).unwrap_or(seed);
    let run = draw_run(seed);
    crate::hosts::launcher::refuse_several("compare --repeat")?;
    let (programme, carriers) = Carriers::plan(&load.specs, run, seed, None)?;
    let output = OutputSpec { live, ..OutputSpec::default() };
    let mut session =
        Session::begin_run(run, &load.words, &output, &targets_of(&load.specs), seed, programme.keep, None)?;
    let adopted = carriers.join(&mut session);
    let result = adopted.and_then(|()| saturate::run(&mut session, &programme));
    session.close(&result)?;
    let is_interrupted = session.is_interrupted();
    match result {
        // Nothing was measured: the error alone tells more than an empty record.
        Err(error) if session.record.phases.is_empty() && !is_interrupted => Err(error),
        _ => Ok((session.record, is_interrupted)),
    }
}
