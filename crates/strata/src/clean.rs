//! `strata clean`: removes what a run made and left: one that was killed, or one that kept it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use clap::{Arg, ArgAction, ArgMatches, Command};
use driver::{Error, ErrorKind};
use media::layout::{self, Leftover};
use object::backend::{Journal as _, driver_of};
use object::{Backend, ConnectRequest};
use units::{ByteSize, path_of};
use workload::object::{Made, MadeInStore};
use workload::target::MadeFile;

use crate::manifest::{self, Listing, Manifest};
use crate::output::{print, tell};
use crate::secret;
use crate::signals::Attention;

/// Files of a run that are named one by one.
const FILES_SHOWN_MAX: usize = 100;

/// The command.
pub(crate) fn command() -> Command {
    let file =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("FILE").help(help);
    Command::new("clean")
        .about("Remove what a run made, files or objects, and left; shows it, and removes it with --yes")
        .arg(Arg::new("runs").value_name("RECORD|MANIFEST").num_args(0..).help(
            "Records (--json) or manifests of runs; none: the manifests of all runs of this user that were killed here",
        ))
        .arg(Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Remove it"))
        .arg(file("token-file", "engine: file with the secret that engines beyond loopback demand"))
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
        return print("nothing is left: there is no manifest of a run that was killed\n").map(|()| 0);
    }
    let removes = matches.get_flag("yes");
    let interrupt = Arc::new(AtomicBool::new(false));
    let attention = Attention::begin(&interrupt)?;
    let mut failures = 0;
    for run in runs {
        if let Err(error) = one(run, matches, removes, &attention) {
            if named.len() == 1 {
                return Err(error);
            }
            failures += 1;
            tell(format_args!("strata: {error}"));
        }
    }
    if !removes {
        print("nothing was removed: --yes removes it\n")?;
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
                print(&format!("run {}: it is under way, and is left alone\n", listing.run_id))?;
            } else {
                runs.push(Run { listing, manifest: Some(path), name });
            }
        }
        return Ok(runs);
    }
    named
        .iter()
        .map(|name| {
            let mut listing = manifest::read(name)?;
            // What was noted last stands in the manifest.
            let path = manifest::of_run(&listing.run_id);
            if let Some(path) = &path {
                listing = manifest::read(&path.display().to_string())?;
            }
            let is_manifest = path.is_none() && listing.process.is_some();
            let manifest = path.or_else(|| is_manifest.then(|| PathBuf::from(name)));
            match listing.process.as_ref().filter(|process| process.is_alive()) {
                Some(process) => Err(Error::new(ErrorKind::Unsafe, "clean", "the run is under way")
                    .with("process", process.number)
                    .remedy("end it first: it removes what it made itself")),
                None => Ok(Run { listing, manifest, name: name.clone() }),
            }
        })
        .collect()
}

fn one(run: Run, matches: &ArgMatches, removes: bool, attention: &Attention) -> Result<(), Error> {
    let Run { listing, manifest, name } = run;
    print(&format!("run {}, begun {}:\n", listing.run_id, listing.started_at))?;
    let (stores, left) = (listing.made.clone(), listing.files.clone());
    if stores.is_empty() && left.is_empty() {
        return print("  nothing is left\n");
    }
    let run_id = listing.run_id.clone();
    let journal = Arc::new(Manifest::resume(listing, manifest)?);
    attention.knows(&journal);
    files(&left, &run_id, &journal, removes).map_err(|error| error.with("run", &name))?;
    for store in &stores {
        let at = |error: Error| error.with("run", &name).with("target", &store.target);
        clean(store, &journal, matches, removes).map_err(at)?;
    }
    Ok(())
}

/// Shows, or removes, the files and directories that a run made, the last first.
fn files(all: &[MadeFile], run_id: &str, journal: &Manifest, removes: bool) -> Result<(), Error> {
    let (mut shown, mut removed) = (0, 0);
    for file in all.iter().rev() {
        let found = if removes { layout::remove(file, run_id)? } else { layout::look(file, run_id)? };
        let line = match found {
            Leftover::Own(_) if removes => {
                removed += 1;
                continue;
            }
            Leftover::Own(bytes) => format!("{}: {}", file.path, ByteSize(bytes).human()),
            Leftover::Gone if removes => continue,
            Leftover::Gone => format!("{}: it is not there any more", file.path),
            Leftover::Stays(why) => format!("{}: left: {why}", file.path),
        };
        shown += 1;
        if shown <= FILES_SHOWN_MAX {
            print(&format!("  {line}\n"))?;
        }
    }
    if shown > FILES_SHOWN_MAX {
        print(&format!("  and {} more files\n", shown - FILES_SHOWN_MAX))?;
    }
    if !removes || all.is_empty() {
        return Ok(());
    }
    layout::Journal::note(journal, &[])?;
    print(&format!("  files: removed {removed}\n"))
}

/// Shows, or removes, what was made in one store.
fn clean(
    store: &MadeInStore,
    journal: &Arc<Manifest>,
    matches: &ArgMatches,
    removes: bool,
) -> Result<(), Error> {
    let request = request(store, journal, matches)?;
    if let Some(directory) = unfinished(store) {
        if !removes {
            return print(&format!("  {}: pool that was not finished\n", store.target));
        }
        vos::Pool::destroy_begun(&directory)?;
        journal.note(&request, &[])?;
        return print(&format!("  {}: removed 1\n", store.target));
    }
    if is_gone(store)? {
        print(&format!("  {}: it is not there any more\n", store.target))?;
        return if removes { journal.note(&request, &[]) } else { Ok(()) };
    }
    let backend = object::connect(&request)?;
    backend.take_over(&store.made)?;
    for line in backend.look()? {
        print(&format!("  {}: {line}\n", store.target))?;
    }
    if !removes {
        return Ok(());
    }
    let removed = AtomicU64::new(0);
    let left = remove(&*backend, &removed);
    backend.close()?;
    for line in left? {
        print(&format!("  {}: left: {line}\n", store.target))?;
    }
    print(&format!("  {}: removed {}\n", store.target, removed.into_inner()))
}

fn remove(backend: &dyn Backend, removed: &AtomicU64) -> Result<Vec<String>, Error> {
    let told = crate::objects::progress::Told::default();
    backend.clean(&|count| {
        removed.store(count, std::sync::atomic::Ordering::Relaxed);
        told.tell(count);
    })
}

fn request(
    store: &MadeInStore,
    journal: &Arc<Manifest>,
    matches: &ArgMatches,
) -> Result<ConnectRequest, Error> {
    let (s3_key, secret) = secret::of_store(driver_of(&store.target)?.name, matches)?;
    Ok(ConnectRequest {
        target: store.target.clone(),
        options: store.options.clone(),
        s3_key,
        secret,
        journal: Arc::clone(journal) as Arc<dyn object::backend::Journal>,
        ..ConnectRequest::default()
    })
}

/// The directory of a pool that the run was making when it was killed.
fn unfinished(store: &MadeInStore) -> Option<PathBuf> {
    let directory = path_of(crate::objects::stores::directory_of(&store.target)?).into_owned();
    let is_own = |made: &Made| match made {
        Made::Pool { id: Some(id) } => vos::Pool::is_begun(&directory, id),
        _ => false,
    };
    store.made.iter().any(is_own).then_some(directory)
}

/// Whether the pool in this machine that a run made, or used, is not there any more.
fn is_gone(store: &MadeInStore) -> Result<bool, Error> {
    let Some(directory) = crate::objects::stores::directory_of(&store.target).map(path_of) else {
        return Ok(false);
    };
    if vos::Pool::exists(&directory) {
        return Ok(false);
    }
    let was_making = store.made.iter().any(|made| matches!(made, Made::Pool { .. }));
    if was_making && directory.exists() {
        return Err(Error::new(
            ErrorKind::Run,
            "clean",
            "the run was killed while it made the pool, and what is there does not say that it is that one",
        )
        .with("directory", directory.display())
        .remedy(format!("strata pool destroy vos:{} --destroy-data", directory.display())));
    }
    Ok(true)
}
