//! `strata object audit`: a store against what `--acknowledged` wrote down.

use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::plan::ObjectOptions;
use clap::{Arg, ArgAction, ArgMatches, Command};
use driver::{Error, ErrorKind};
use layer::Console;
use units::path_of;

use crate::ConnectRequest;
use crate::acknowledged::{Acknowledged, AuditReport, Verdict, audit};
use crate::backend::driver_of;
use crate::load::of_files;

/// The command.
pub(super) fn command() -> Command {
    let targets = crate::LAYER.targets;
    let file =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("FILE").help(help);
    Command::new("audit")
        .about("Read every update that --acknowledged recorded, and report lost, older, damaged or unreadable values")
        .arg(Arg::new("file").value_name("FILE").required(true).help("File that --acknowledged wrote"))
        .arg(Arg::new("targets").value_name("TARGET").num_args(0..=1).help(format!("{targets}; default: the run's own target")))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON"))
        .arg(file("token-file", "engine: file with the secret; required by engines that are not on loopback"))
        .arg(file("s3-key-file", "s3: file with the access key and the secret key"))
}

/// Exit code 0 where every acknowledged update is there, or a newer one; else 1.
///
/// # Errors
/// A file that is none, a store that cannot be opened or broke.
pub(super) fn run(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let name = matches.get_one::<String>("file").map_or("", String::as_str);
    let file = File::open(path_of(name)).map_err(|error| {
        Error::usage("audit", format!("cannot read the file: {error}"))
            .with("file", name)
            .remedy("use a file that --acknowledged wrote")
    })?;
    let acknowledged = Acknowledged::read(BufReader::with_capacity(1 << 20, file), name)?;
    let target = matches.get_one::<String>("targets").unwrap_or(&acknowledged.target);
    let interrupt = Arc::new(AtomicBool::new(false));
    let _attention = console.interrupts(&interrupt)?;
    let request = request(&acknowledged, target, &interrupt, matches)?;
    let backend = crate::connect(&request)?;
    let report = audit(&acknowledged, &*backend, &interrupt);
    let closed = backend.close();
    let report = report?;
    closed?;
    if matches.get_flag("json") {
        let json = serde_json::to_string_pretty(&report)
            .map_err(|error| Error::new(ErrorKind::Run, "output", error.to_string()))?;
        console.print(&format!("{json}\n"))?;
    } else {
        console.print(&text(&acknowledged, target, &report))?;
    }
    Ok(u8::from(!report.is_good()))
}

/// How the store is reached: as the run reached it, with the keys that are given now.
fn request(
    acknowledged: &Acknowledged,
    target: &str,
    interrupt: &Arc<AtomicBool>,
    matches: &ArgMatches,
) -> Result<ConnectRequest, Error> {
    let file = |name: &str| matches.get_one::<String>(name).map(|file| path_of(file));
    let (keys, token) = (file("s3-key-file"), file("token-file"));
    let (s3_key, secret) = of_files(driver_of(target)?.name, keys.as_deref(), token.as_deref())?;
    let phases = acknowledged.phases();
    let options = phases.first().map_or_else(ObjectOptions::default, |plan| plan.options.clone());
    Ok(ConnectRequest {
        target: target.to_owned(),
        // A pool has the sizes that it was made with.
        options: ObjectOptions { scm_bytes: 0, nvme_bytes: 0, targets: 0, ..options },
        s3_key,
        secret,
        threads: phases.iter().map(|plan| plan.load.threads).max().unwrap_or(1),
        interrupt: Arc::clone(interrupt),
        ..ConnectRequest::default()
    })
}

fn text(acknowledged: &Acknowledged, target: &str, report: &AuditReport) -> String {
    let mut text = format!(
        "audit     {target}, run {:016x}: {} acknowledged updates of {} values\n",
        acknowledged.run, report.updates, report.values
    );
    // Writing to a String cannot fail.
    for verdict in Verdict::ALL {
        let count = report.verdicts.get(&verdict).copied().unwrap_or(0);
        if count > 0 || verdict == Verdict::Current {
            let _ = writeln!(text, "{:<10}{count} values", format!("{verdict}"));
        }
    }
    for example in &report.examples {
        let _ = writeln!(text, "  {}: {}: {}", example.verdict, example.place, example.what);
    }
    if report.without_version > 0 {
        let _ = writeln!(
            text,
            "note      {} values are shorter than 40 bytes and carry no version: they exist, but their version is unknown",
            report.without_version
        );
    }
    if report.is_cut {
        text.push_str(
            "note      the file ends in the middle of a line: the run was killed while writing it\n",
        );
    }
    let result = if report.is_good() {
        "every acknowledged update, or a newer one, is present"
    } else {
        "not all acknowledged updates are intact"
    };
    let _ = writeln!(text, "result    {result}");
    text
}
