//! The dialect of elbencho: large files, block devices, files in directories, objects of S3, networks.

mod config;
mod console;
mod directories;
mod figures;
mod files;
mod gpu;
mod hosts;
mod netbench;
mod paths;
mod render;
mod s3;
mod service;
mod settings;
mod specs;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use driver::Error;

use crate::words::{Words, quoted};
use crate::{PathFacts, Piece, Request, Run, World};
use files::Configuration;
use hosts::Hosts;
use netbench::NetSettings;
use paths::{Dataset, Kind};
use render::Model;
use settings::{Mix, Order, Output, Settings};
use specs::Step;
use table::{TABLE, TOOL, VERSION};

/// Reads the words after the name.
///
/// # Errors
/// Bad usage.
pub fn parse(words: &[String], world: &dyn World) -> Result<Request, Error> {
    let mut split = TABLE.split(words)?;
    if let Some(piece) = only_output(&split) {
        return Ok(Request::Show(vec![piece]));
    }
    config::merge(&mut split, world)?;
    if let Some(request) = service::request(&split, world)? {
        return Ok(request);
    }
    let mut warnings = split.warnings.clone();
    if split.has("netbench") {
        return netbench(words, &split, world, warnings);
    }
    refuse_netbench(&split)?;
    let hosts = Hosts::read(&split, world)?;
    if s3::is_meant(&split) {
        return objects(words, &split, world, &hosts, warnings);
    }
    s3::refuse_options(&split)?;
    if directories::is_meant(&split, world) {
        return in_directories(words, &split, world, &hosts, warnings);
    }
    directories::refuse_options(&split)?;
    let settings = Settings::read(&split, world, &mut warnings)?;
    let given: Vec<String> =
        split.values("path").map(str::to_owned).chain(split.paths.iter().cloned()).collect();
    let expands = !split.has("nopathexp");
    let dataset = paths::dataset(&given, expands, &settings, world, &mut warnings)?;
    if settings.dry_run {
        return Ok(Request::Show(vec![Piece::stdout(specs::dry_run(&settings, &dataset))]));
    }
    let csv_is_new = check_csv(&settings.output, world)?;
    let mut programme = specs::build(&settings, &dataset, &mut warnings)?;
    hosts.carry_out(&mut programme.specs)?;
    warnings.extend(specs::later_phases_run(&settings, &programme));
    let render = Model {
        steps: programme.steps,
        step_of: programme.step_of,
        iterations: settings.iterations,
        is_mix: settings.mix != Mix::None,
        configuration: configuration(words, &settings, &dataset, &hosts),
        csv_is_new,
        begun: 0,
        told: Vec::new(),
        show: settings.output,
    };
    let (specs, progress) = (programme.specs, settings.progress);
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs,
        render: Box::new(render),
        warnings,
        token_file: service::token_file(&split),
        secrets: Vec::new(),
        progress,
    })))
}

/// Clients and servers of the network.
fn netbench(
    words: &[String],
    split: &Words,
    world: &dyn World,
    mut warnings: Vec<String>,
) -> Result<Request, Error> {
    let settings = NetSettings::read(split, world, &mut warnings)?;
    let csv_is_new = check_csv(&settings.output, world)?;
    let step = |iteration| Step { operation: "NET".to_owned(), iteration };
    let render = Model {
        steps: (0..settings.iterations).map(step).collect(),
        step_of: (0..settings.iterations as usize).collect(),
        iterations: settings.iterations,
        is_mix: false,
        configuration: Configuration {
            path_type: "netbench",
            hosts: settings.servers.len() + settings.clients.len(),
            shares_paths: None,
            paths: 0,
            threads: settings.threads,
            size_bytes: settings.size_bytes.unwrap_or(0),
            block_bytes: settings.block_bytes,
            direct: false,
            random: false,
            unaligned: false,
            depth: settings.depth,
            truncate: None,
            dirs_and_files: None,
            shows_directories: false,
            command: command(words, &[]),
        },
        csv_is_new,
        begun: 0,
        told: Vec::new(),
        show: settings.output.clone(),
    };
    let (specs, progress) = (settings.specs(), settings.progress);
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs,
        render: Box::new(render),
        warnings,
        token_file: service::token_file(split),
        secrets: Vec::new(),
        progress,
    })))
}

/// Files in a directory.
fn in_directories(
    words: &[String],
    split: &Words,
    world: &dyn World,
    hosts: &Hosts,
    mut warnings: Vec<String>,
) -> Result<Request, Error> {
    let settings = directories::Settings::read(split, world, &mut warnings)?;
    if settings.dry_run {
        return Ok(Request::Show(vec![Piece::stdout(settings.dry_run())]));
    }
    hosts.check_phases(split)?;
    let csv_is_new = check_csv(&settings.output, world)?;
    let mut programme = settings.build()?;
    hosts.carry_out(&mut programme.specs)?;
    let render = Model {
        steps: programme.steps,
        step_of: programme.step_of,
        iterations: settings.iterations,
        is_mix: false,
        configuration: settings.configuration(command(words, &[]), hosts),
        csv_is_new,
        begun: 0,
        told: Vec::new(),
        show: settings.output.clone(),
    };
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs: programme.specs,
        render: Box::new(render),
        warnings,
        token_file: service::token_file(split),
        secrets: Vec::new(),
        progress: settings.progress,
    })))
}

/// Objects of a bucket.
fn objects(
    words: &[String],
    split: &Words,
    world: &dyn World,
    hosts: &Hosts,
    mut warnings: Vec<String>,
) -> Result<Request, Error> {
    let settings = s3::Settings::read(split, world, hosts, &mut warnings)?;
    let csv_is_new = check_csv(&settings.output, world)?;
    let secrets = s3::secrets(split);
    let (steps, mut specs) = settings.build()?;
    hosts.carry_out(&mut specs)?;
    let render = Model {
        step_of: (0..steps.len()).collect(),
        steps,
        iterations: settings.iterations,
        is_mix: false,
        configuration: Configuration {
            path_type: "dir",
            hosts: hosts.count(),
            shares_paths: hosts.share_paths(),
            paths: 1,
            threads: settings.threads,
            size_bytes: settings.size_bytes,
            block_bytes: settings.block_bytes,
            direct: false,
            random: false,
            unaligned: false,
            depth: settings.depth,
            truncate: None,
            dirs_and_files: Some(settings.dirs_and_files()),
            shows_directories: false,
            command: command(words, &secrets),
        },
        csv_is_new,
        begun: 0,
        told: Vec::new(),
        show: settings.output.clone(),
    };
    let progress = settings.progress;
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs,
        render: Box::new(render),
        warnings,
        token_file: service::token_file(split),
        secrets,
        progress,
    })))
}

/// Options of networks without `--netbench` would be ignored.
fn refuse_netbench(words: &Words) -> Result<(), Error> {
    const OF_NETBENCH: &[&str] =
        &["servers", "serversfile", "clients", "clientsfile", "respsize", "sendbuf", "recvbuf", "netdevs"];
    match OF_NETBENCH.iter().find(|option| words.has(option)) {
        Some(option) => {
            TABLE.refuse(format!("--{option} requires --netbench"), "add --netbench, or leave it out")
        }
        None => Ok(()),
    }
}

/// The words as result files show them, quoted each, without `secrets`.
fn command(words: &[String], secrets: &[String]) -> String {
    let words = crate::words::without(words, secrets);
    let all = std::iter::once(TOOL).chain(words.iter().map(String::as_str));
    all.map(|word| format!("\"{}\"", word.replace(['\n', '\r'], " "))).collect::<Vec<_>>().join(" ")
}

fn only_output(words: &Words) -> Option<Piece> {
    if words.has("version") {
        return Some(Piece::stdout(format!(
            "{TOOL}\n * Version: {VERSION}\n * Provided by: strata {}\n",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let is_help = ["help", "help-large", "help-bdev", "help-multi", "help-s3", "help-dist", "help-all"]
        .iter()
        .any(|long| words.has(long));
    is_help.then(|| {
        Piece::stdout(format!(
            "Usage: {TOOL} OPTIONS PATH [PATH...]\n\nMeasures large files, block devices, files in a directory, S3 buckets and networks. Options:\n{}",
            TABLE.help()
        ))
    })
}

fn configuration(words: &[String], settings: &Settings, dataset: &Dataset, hosts: &Hosts) -> Configuration {
    Configuration {
        path_type: if dataset.kind == Kind::BlockDevice { "blockdev" } else { "file" },
        hosts: hosts.count(),
        shares_paths: hosts.share_paths(),
        paths: dataset.paths.len(),
        threads: settings.threads,
        size_bytes: dataset.size_bytes,
        block_bytes: dataset.block_bytes,
        direct: settings.direct,
        random: matches!(settings.order, Order::Random { .. }),
        unaligned: matches!(settings.order, Order::Random { unaligned: true, .. }),
        depth: settings.depth,
        truncate: (dataset.kind == Kind::File).then_some(settings.truncate),
        dirs_and_files: None,
        shows_directories: false,
        command: command(words, &[]),
    }
}

/// Columns of a line, whose commas may be quoted.
fn columns_of(line: &str) -> usize {
    let mut is_quoted = false;
    let is_end = |letter: char| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    };
    line.chars().filter(|&letter| letter == ',' || letter == '"').map(is_end).filter(|&end| end).count() + 1
}

/// Whether the CSV file is new or empty. One that is there must have the same columns.
fn check_csv(output: &Output, world: &dyn World) -> Result<bool, Error> {
    let Some(path) = output.csv.as_ref().and_then(|path| path.to_str()) else { return Ok(true) };
    if matches!(world.look(path), PathFacts::Missing | PathFacts::File { size_bytes: 0 }) {
        return Ok(true);
    }
    let text = world
        .read(path)
        .map_err(|error| Error::system(TOOL, "cannot read the CSV file", error).with("path", quoted(path)))?;
    let columns = columns_of(text.lines().next().unwrap_or_default());
    if columns != files::csv_columns() {
        return TABLE.refuse(
            format!("--csvfile {} has {columns} columns, not {}", quoted(path), files::csv_columns()),
            "give a new file",
        );
    }
    Ok(false)
}
