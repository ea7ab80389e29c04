//! `strata history`: keeps records of the same loads over time, shows them, and checks the newest against those before.

mod options;

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};
use driver::{Error, ErrorKind};
use history::{Added, Store, run_of};
use layer::command::{arguments, fill, table_as_markdown};
use options::{ADD, CHECK, HistorySpec, SHOW};
use report::compare::{self, Comparison, Limit, Operand};
use report::history::{self as views, History, HistoryCheck, HistoryRun};
use report::record::Record;
use units::{label_of, path_of};

use crate::commands::{read_input, read_record};
use crate::compare::records_in;
use crate::{forms, output};

/// Runs before a run that its expected range comes from.
const LAST_DEFAULT: usize = 10;
/// Limit of a check where none is given: what is significantly slower at all.
const LIMIT_DEFAULT: &str = "slower:0%";

/// The command.
pub(crate) fn command() -> Command {
    let directory = || {
        Arg::new("directory")
            .value_name("DIR")
            .required(true)
            .help("Directory of the history: records as files, and history.sqlite, an index of their results")
    };
    let records = |help: &'static str| Arg::new("records").value_name("RECORD").num_args(0..).help(help);
    Command::new("history")
        .about("Keep records over time, show them as graphs, and check the newest run against those before it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("add")
                .about("Add records to a history, which is made where it is missing")
                .arg(directory())
                .arg(
                    records("Records as JSON, or directories of them; - for standard input")
                        .num_args(1..)
                        .required(true),
                )
                .args(arguments(ADD)),
        )
        .subcommand(
            Command::new("show")
                .about("Show the newest run of each series, the range expected by those before it, and the trend")
                .arg(directory())
                .args(arguments(SHOW)),
        )
        .subcommand(
            Command::new("check")
                .about("Compare the newest run of each series with those before it; exit code 1 if it is slower")
                .arg(directory())
                .arg(records(
                    "Records to check, in the history or not; none: the newest run of each series and load",
                ))
                .args(arguments(CHECK))
                .mut_arg("fail-if", |argument| argument.action(ArgAction::Append)),
        )
}

/// The tables of options as Markdown.
pub(crate) fn document(text: &mut String) {
    for (name, table) in [("add", ADD), ("show", SHOW), ("check", CHECK)] {
        table_as_markdown(&format!("Options of `strata history {name}`"), table, text);
    }
}

/// Carries out the command below `strata history` that the words ask for.
///
/// # Errors
/// Bad usage, a directory that cannot be read or written, and a run that is slower than a limit allows.
pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Error> {
    let mut spec = HistorySpec::default();
    match matches.subcommand() {
        Some(("add", matches)) => {
            fill(ADD, matches, &mut spec)?;
            add(&directory(matches), &words(matches), &spec)
        }
        Some(("show", matches)) => {
            fill(SHOW, matches, &mut spec)?;
            show(&directory(matches), &spec)
        }
        Some(("check", matches)) => {
            fill(CHECK, matches, &mut spec)?;
            if spec.limits.is_empty() {
                spec.limits.extend(LIMIT_DEFAULT.parse::<Limit>().ok());
            }
            check(&directory(matches), &words(matches), &spec)
        }
        _ => Ok(2),
    }
}

fn usage(message: impl Into<String>) -> Error {
    Error::usage("history", message)
}

fn directory(matches: &ArgMatches) -> PathBuf {
    let word = matches.get_one::<String>("directory").map_or("", String::as_str);
    path_of(word).into_owned()
}

fn words(matches: &ArgMatches) -> Vec<String> {
    matches.get_many::<String>("records").into_iter().flatten().cloned().collect()
}

/// Records that words name: files, those of directories, and standard input.
fn places(words: &[String]) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for word in words {
        let place = path_of(word);
        if word != "-" && place.is_dir() {
            let inner = records_in("history", &place)?;
            found.extend(inner.iter().map(|path| label_of(path.as_os_str())));
        } else {
            found.push(word.clone());
        }
    }
    if found.iter().filter(|word| *word == "-").count() > 1 {
        return Err(usage("standard input (-) can be read only once"));
    }
    Ok(found)
}

fn add(directory: &Path, words: &[String], spec: &HistorySpec) -> Result<u8, Error> {
    let places = places(words)?;
    // All of them are read before the first is added.
    let mut records: Vec<(String, Record)> = Vec::new();
    for place in &places {
        let text = read_input("history", place)?;
        let record = report::from_json(&text).map_err(|message| usage(message).with("file", place))?;
        records.push((text, record));
    }
    let is_new = !directory.exists();
    output::make_directory(directory)?;
    let added = put(directory, &places, &records, spec);
    if is_new && added.is_err() {
        // An empty directory is no history; one with something in it stays.
        let _ = std::fs::remove_file(directory.join(history::INDEX_NAME));
        let _ = std::fs::remove_dir(directory);
    }
    output::print(&added?)?;
    Ok(0)
}

fn put(
    directory: &Path,
    places: &[String],
    records: &[(String, Record)],
    spec: &HistorySpec,
) -> Result<String, Error> {
    let mut store = Store::open_for_more(directory)?;
    records.iter().try_for_each(|(_, record)| store.check(record, spec.series.as_deref()))?;
    let mut lines = String::new();
    for (place, (text, record)) in places.iter().zip(records) {
        let name = if place == "-" { "standard input" } else { place };
        lines += &match store.add(record, text, spec.series.as_deref())? {
            Added::New(path) => format!("added {name} as {path}\n"),
            Added::Known(path) => format!("{name} is there already, as {path}\n"),
        };
    }
    Ok(lines)
}

/// Runs of the series and the time that are meant.
fn selected(store: &mut Store, spec: &HistorySpec) -> Result<(Vec<HistoryRun>, Vec<String>), Error> {
    let (mut runs, mut remarks) = store.runs()?;
    if let Some(why) = store.in_memory() {
        remarks.push(format!("there is no index, so all records are read each time: {why}"));
    }
    if let Some(since) = &spec.since {
        runs.retain(|run| run.started_at >= *since);
    }
    Ok((runs, remarks))
}

/// Refuses a series that no run belongs to.
fn of_series(mut runs: Vec<HistoryRun>, series: Option<&str>) -> Result<Vec<HistoryRun>, Error> {
    let Some(series) = series else { return Ok(runs) };
    let mut known: Vec<String> = Vec::new();
    for run in &runs {
        if !known.contains(&run.series) {
            known.push(run.series.clone());
        }
    }
    runs.retain(|run| run.series == series);
    if runs.is_empty() {
        let names: Vec<String> = known.iter().map(|name| format!("\"{}\"", name.escape_debug())).collect();
        return Err(usage(format!("no run belongs to the series \"{}\"", series.escape_debug()))
            .remedy(format!("give one of {}", names.join(", "))));
    }
    Ok(runs)
}

fn show(directory: &Path, spec: &HistorySpec) -> Result<u8, Error> {
    let given: Vec<&str> =
        [&spec.html, &spec.csv, &spec.json].into_iter().flatten().map(String::as_str).collect();
    let mut store = Store::open(directory)?;
    forms::check("history", &given, &[label_of(directory.join(history::INDEX_NAME).as_os_str())])?;
    let (runs, remarks) = selected(&mut store, spec)?;
    let runs = of_series(runs, spec.series.as_deref())?;
    if runs.is_empty() {
        let why = if spec.since.is_some() {
            "no run began after this date"
        } else {
            "none of its files is a record"
        };
        return Err(usage(format!("nothing to show: {why}")).with("path", directory.display()));
    }
    let last = spec.last.unwrap_or(LAST_DEFAULT);
    let mut series = views::build(&runs, spec.metric, last);
    if let Some(part) = &spec.phase {
        let part = part.to_lowercase();
        for one in &mut series {
            one.phases.retain(|phase| phase.name.to_lowercase().contains(&part));
        }
        series.retain(|one| !one.phases.is_empty());
        if series.is_empty() {
            return Err(usage(format!("no phase has \"{}\" in its name", part.escape_debug()))
                .remedy("strata history show DIR lists them"));
        }
    }
    let found = History {
        schema_version: views::SCHEMA_VERSION,
        strata_version: env!("CARGO_PKG_VERSION").to_owned(),
        directory: label_of(directory.as_os_str()),
        last,
        series,
        remarks,
    };
    let mut made: Vec<(&str, String)> = Vec::new();
    if let Some(place) = &spec.html {
        made.push((place, views::to_html(&found)));
    }
    if let Some(place) = &spec.csv {
        made.push((place, views::to_csv(&found)));
    }
    if let Some(place) = &spec.json {
        made.push((place, as_json(&found)?));
    }
    let printed = forms::write(made)?;
    let (width, colour) = output::page();
    output::print(&printed.unwrap_or_else(|| views::render(&found, width, colour)))?;
    Ok(0)
}

fn as_json(found: &impl serde::Serialize) -> Result<String, Error> {
    views::to_json(found).map_err(|message| Error::new(ErrorKind::Run, "history", message))
}

/// A run to check.
struct Checked {
    run: HistoryRun,
    source: String,
    record: Record,
}

fn check(directory: &Path, words: &[String], spec: &HistorySpec) -> Result<u8, Error> {
    let places = places(words)?;
    let given: Vec<&str> =
        spec.json.iter().chain(spec.forms.iter().map(|(_, place)| place)).map(String::as_str).collect();
    let mut store = Store::open(directory)?;
    let mut taken = vec![label_of(directory.join(history::INDEX_NAME).as_os_str())];
    taken.extend(places.iter().cloned());
    forms::check("history", &given, &taken)?;
    let (runs, remarks) = selected(&mut store, spec)?;
    let checked = match places.is_empty() {
        true => newest(&store, of_series(runs.clone(), spec.series.as_deref())?)?,
        false => places.iter().map(|place| named(place, spec)).collect::<Result<Vec<_>, _>>()?,
    };
    if checked.is_empty() {
        return Err(usage("nothing to check: no complete run").with("path", directory.display()));
    }
    let last = spec.last.unwrap_or(LAST_DEFAULT);
    let comparisons = checked.into_iter().map(|one| against(&store, &runs, one, last, &spec.limits));
    let found = HistoryCheck {
        schema_version: views::SCHEMA_VERSION,
        strata_version: env!("CARGO_PKG_VERSION").to_owned(),
        directory: label_of(directory.as_os_str()),
        comparisons: comparisons.collect::<Result<Vec<_>, _>>()?,
        remarks,
    };
    let mut made: Vec<(&str, String)> =
        spec.forms.iter().map(|(form, place)| (place.as_str(), form(&found.comparisons))).collect();
    if let Some(place) = &spec.json {
        made.push((place, as_json(&found)?));
    }
    let printed = forms::write(made)?;
    let (width, colour) = output::page();
    output::print(&printed.unwrap_or_else(|| views::render_check(&found, width, colour)))?;
    verdict(&found)
}

/// Exit code of a check.
fn verdict(found: &HistoryCheck) -> Result<u8, Error> {
    if !found.fails() {
        return Ok(0);
    }
    let exceeded = |comparison: &Comparison| -> Vec<String> {
        let words = comparison.exceeded().into_iter();
        words.map(|words| format!("{}: {words}", comparison.b.label)).collect()
    };
    let exceeded: Vec<String> = found.comparisons.iter().flat_map(exceeded).collect();
    Err(Error::new(ErrorKind::Run, "history", exceeded.join("; ")))
}

/// The newest complete run of each series and load.
fn newest(store: &Store, runs: Vec<HistoryRun>) -> Result<Vec<Checked>, Error> {
    let mut found: Vec<HistoryRun> = Vec::new();
    for run in runs.into_iter().filter(|run| run.failure.is_none()) {
        // They come in the order of their moments.
        match found.iter_mut().find(|known| known.is_of_series(&run)) {
            Some(known) => *known = run,
            None => found.push(run),
        }
    }
    let read = |run: HistoryRun| {
        let record = store.record(&run.path)?;
        Ok(Checked { source: run.path.clone(), record, run })
    };
    found.into_iter().map(read).collect()
}

/// A record that is named, which may be in the history or not.
fn named(place: &str, spec: &HistorySpec) -> Result<Checked, Error> {
    let record = read_record("history", place)?;
    let mut run = run_of(&record, place.to_owned());
    run.series = spec.series.clone().unwrap_or_else(|| views::series_of(&record));
    if let Some(failure) = &run.failure {
        return Err(usage(format!("the run is not complete: {failure}")).with("file", place));
    }
    Ok(Checked { run, source: place.to_owned(), record })
}

/// A run against the last complete ones of its series and load before it.
fn against(
    store: &Store,
    runs: &[HistoryRun],
    checked: Checked,
    last: usize,
    limits: &[Limit],
) -> Result<Comparison, Error> {
    let Checked { run, source, record } = checked;
    let is_before = |other: &&HistoryRun| {
        other.is_of_series(&run)
            && other.failure.is_none()
            && other.run_id != run.run_id
            && other.started_at <= run.started_at
    };
    let before: Vec<&HistoryRun> = runs.iter().filter(is_before).collect();
    let before = &before[before.len().saturating_sub(last)..];
    let records = before.iter().map(|other| Ok((other.path.clone(), store.record(&other.path)?)));
    let a = Operand {
        label: match before.len() {
            0 => "nothing".to_owned(),
            1 => "the run before".to_owned(),
            count => format!("the {count} runs before"),
        },
        records: records.collect::<Result<Vec<_>, Error>>()?,
    };
    let b = Operand { label: format!("{}, {}", run.series, run.load), records: vec![(source, record)] };
    compare::check(&a, &b, limits).map_err(usage)
}
