//! `strata clean`: removes what a run made and left: one that was killed, or one that kept it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Arg, ArgAction, ArgMatches, Command};
use driver::{Error, ErrorKind};
use layer::{CleanRequest, Journal};
use units::path_of;

use crate::manifest::{self, Listing, Manifest};
use crate::output::{print, tell};
use crate::signals::Attention;

/// The command.
pub(crate) fn command() -> Command {
    let file =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("FILE").help(help);
    Command::new("clean")
        .about("List files and objects that runs left behind; --yes removes them")
        .arg(Arg::new("runs").value_name("RECORD|MANIFEST").num_args(0..).help(
            "Records (--json) or manifests of runs; none: the manifests of all killed runs of this user on this machine",
        ))
        .arg(Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Remove the listed data"))
        .arg(file("token-file", "engine: file with the secret; required by engines that are not on loopback"))
        .arg(file("s3-key-file", "s3: file with the access key and the secret key"))
}

/// A run that has left something.
struct Run {
    listing: Listing,
    /// Its manifest, where it is still there.
    manifest: Option<PathBuf>,
    /// As it was named.
    name: String,
}

/// Shows what runs have left, and removes it where that is asked for.
///
/// # Errors
/// A name that stands for no run, a run that is under way, and objects that could not be removed.
pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Error> {
    let named: Vec<String> = matches.get_many::<String>("runs").into_iter().flatten().cloned().collect();
    let runs = find(&named)?;
    if runs.is_empty() {
        return print("nothing is left: no manifest of a killed run exists\n").map(|()| 0);
    }
    let removes = matches.get_flag("yes");
    let interrupt = Arc::new(AtomicBool::new(false));
    let attention = Attention::begin(&interrupt)?;
    let (mut failures, is_one) = (0, runs.len() == 1 && !named.is_empty());
    for run in runs {
        if let Err(error) = one(run, matches, removes, &attention) {
            if is_one {
                return Err(error);
            }
            failures += 1;
            tell(format_args!("strata: {error}"));
        }
    }
    if !removes {
        print("nothing was removed: use --yes to remove it\n")?;
    }
    Ok(u8::from(failures > 0))
}

/// The runs that are meant.
fn find(named: &[String]) -> Result<Vec<Run>, Error> {
    if named.is_empty() {
        let mut runs = Vec::new();
        for path in manifest::all() {
            let name = path.display().to_string();
            let listing = match manifest::read(&name) {
                // A run that ended meanwhile has removed it.
                Err(_) if !path.exists() => continue,
                read => read?,
            };
            if listing.process.as_ref().is_some_and(|process| process.is_alive()) {
                print(&format!("run {}: still running, skipped\n", listing.run_id))?;
            } else {
                runs.push(Run { listing, manifest: Some(path), name });
            }
        }
        return Ok(runs);
    }
    let mut runs = Vec::new();
    for name in named {
        runs.extend(of_name(name)?);
    }
    let mut processes = runs.iter().filter_map(|run| run.listing.process.as_ref());
    match processes.find(|process| process.is_alive()) {
        Some(process) => Err(Error::new(ErrorKind::Unsafe, "clean", "the run is still running")
            .with("process", process.number)
            .remedy("end it first: it then removes its own files and objects")),
        None => Ok(runs),
    }
}

/// The run of a record or manifest, by its manifests in this machine where it has some: what was noted last stands there.
fn of_name(name: &str) -> Result<Vec<Run>, Error> {
    let listing = manifest::read(name)?;
    let is_manifest = listing.process.is_some();
    let own = manifest::of_run(&listing.run_id);
    // A record, and the manifest of a leader, stand for all hosts, each of which has a manifest of its own.
    let is_of_host = is_manifest && path_of(name).file_stem().is_none_or(|stem| *stem != *listing.run_id);
    let mut paths = manifest::of_hosts(&listing.run_id);
    if is_of_host && !paths.is_empty() {
        paths.clear();
    } else {
        // Last: its directories hold what the hosts have made.
        paths.extend(own);
    }
    if paths.is_empty() {
        let manifest = is_manifest.then(|| PathBuf::from(name));
        return Ok(vec![Run { listing, manifest, name: name.to_owned() }]);
    }
    let of_path = |path: PathBuf| {
        let listing = manifest::read(&path.display().to_string())?;
        Ok(Run { listing, manifest: Some(path), name: name.to_owned() })
    };
    paths.into_iter().map(of_path).collect()
}

fn one(run: Run, matches: &ArgMatches, removes: bool, attention: &Attention) -> Result<(), Error> {
    let Run { listing, manifest, name } = run;
    print(&format!("run {}, begun {}:\n", listing.run_id, listing.started_at))?;
    if listing.is_empty() {
        return print("  nothing is left\n");
    }
    let made = listing.made.clone();
    let journal = Arc::new(Manifest::resume(listing, manifest)?);
    attention.knows(&journal);
    let file = |name: &str| matches.get_one::<String>(name).map(|file| path_of(file).into_owned());
    let request = CleanRequest {
        journal: Arc::clone(&journal) as Arc<dyn Journal>,
        removes,
        file: &file,
        print: &print,
        tell: |line| tell(line),
    };
    // What cannot be reached keeps nothing else from going.
    let mut result = Ok(());
    for kind in manifest::leftovers() {
        if let Some(made) = made.get(kind.key()) {
            result = result.and(kind.clean(made, &request).map_err(|error| error.with("run", &name)));
        }
    }
    result
}
