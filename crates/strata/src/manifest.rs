//! The manifest of a run: what it made in object stores and which files, in a file that outlives it where it was killed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use driver::{Error, ErrorKind};
use layer::{Journal, Leftovers};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workload::plan::ServedStore;

/// The file of a manifest, and as much of a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Listing {
    /// Name of the run: 16 hexadecimal digits.
    pub(crate) run_id: String,
    /// When it began.
    pub(crate) started_at: String,
    /// The process, where it can be told apart from all others.
    #[serde(default)]
    pub(crate) process: Option<ProcessName>,
    /// Everything that it made, under the keys of its layers. A record has other fields beside them.
    #[serde(flatten)]
    pub(crate) made: BTreeMap<String, Value>,
}

impl Listing {
    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.made.values().all(|made| made.as_array().is_none_or(Vec::is_empty))
    }
}

/// A process, told apart from those that had its number before and will have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessName {
    /// The boot of the machine (`/proc/sys/kernel/random/boot_id`).
    boot: String,
    /// Its number.
    pub(crate) number: u32,
    /// When it began, in clock ticks since the boot.
    began: u64,
}

impl ProcessName {
    fn of(number: u32) -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // proc(5): the name, in parentheses, may hold anything; behind it comes the state, and the 20th field is the time.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        // One that has ended and that nobody has waited for yet does nothing any more.
        fields.next().filter(|state| !matches!(*state, "Z" | "X" | "x"))?;
        let began = fields.nth(18)?.parse().ok()?;
        Some(Self { boot: boot.trim().to_owned(), number, began })
    }

    /// Whether it lives, as far as this machine can tell.
    pub(crate) fn is_alive(&self) -> bool {
        Self::of(self.number).as_ref() == Some(self)
    }
}

#[derive(Debug, Default)]
struct State {
    listing: Option<Listing>,
    /// Where it is kept; none: nothing is removed, so nothing need be found again.
    path: Option<PathBuf>,
    keep: bool,
    /// Stores that engines of the run serve, which end with it: what is made there stands in the file as made in the store.
    served: Vec<ServedStore>,
    /// Rank of this host, where several carry out the run together: each has a list of its own.
    rank: Option<u32>,
}

/// The manifest of a run. Nothing is made before it is on disk.
#[derive(Debug)]
pub(crate) struct Manifest {
    run: AtomicU64,
    state: Mutex<State>,
}

impl Default for Manifest {
    fn default() -> Self {
        Self { run: AtomicU64::new(crate::session::draw_seed()), state: Mutex::default() }
    }
}

impl Manifest {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the name of the run. With `keep` what it makes stays, and there is no file.
    pub(crate) fn begin(&self, run: u64, started_at: &str, keep: bool) {
        self.begin_part(run, None, started_at, keep, Vec::new());
    }

    /// The same for the part of one of the hosts that carry the run out together.
    pub(crate) fn begin_part(
        &self,
        run: u64,
        rank: Option<u32>,
        started_at: &str,
        keep: bool,
        served: Vec<ServedStore>,
    ) {
        self.run.store(run, Ordering::Relaxed);
        let mut state = self.state();
        (state.keep, state.rank, state.served) = (keep, rank, served);
        state.listing = Some(Listing {
            run_id: format!("{run:016x}"),
            started_at: started_at.to_owned(),
            process: ProcessName::of(std::process::id()),
            made: BTreeMap::new(),
        });
    }

    /// Everything that is made and not removed, in a few words: of the last layer first.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words: Vec<Vec<String>> =
            leftovers().map(|kind| kind.words(&self.noted(kind.key()))).collect();
        words.reverse();
        words.concat()
    }

    /// Where it is, as long as something is left.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.state().path.clone()
    }

    /// Goes on with what an earlier run has left, which stands in the file at `path`, if in any.
    pub(crate) fn resume(listing: Listing, path: Option<PathBuf>) -> Result<Self, Error> {
        let run = u64::from_str_radix(&listing.run_id, 16)
            .map_err(|_| Error::usage("clean", format!("{:?} is not a run", listing.run_id)))?;
        let keep = path.is_none();
        let state = State { listing: Some(listing), path, keep, ..State::default() };
        Ok(Self { run: AtomicU64::new(run), state: Mutex::new(state) })
    }
}

impl Journal for Manifest {
    fn run(&self) -> u64 {
        self.run.load(Ordering::Relaxed)
    }

    fn owner(&self) -> u64 {
        // Without a place to keep it nothing is anybody's later.
        owner().unwrap_or_else(|_| self.run())
    }

    fn note(&self, key: &'static str, made: Value) -> Result<(), Error> {
        self.change(|listing| {
            listing.made.insert(key.to_owned(), made);
        })
    }

    fn noted(&self, key: &str) -> Value {
        let state = self.state();
        state.listing.as_ref().and_then(|listing| listing.made.get(key).cloned()).unwrap_or_default()
    }

    fn take_over(&self, run: u64) -> Result<(), Error> {
        let run_id = format!("{run:016x}");
        let path = of_run(&run_id)
            .ok_or_else(|| Error::usage("manifest", "the run left nothing to resume").with("run", &run_id))?;
        let earlier = read(&path.display().to_string())?;
        if earlier.process.as_ref().is_some_and(ProcessName::is_alive) {
            return Err(Error::new(ErrorKind::Unsafe, "manifest", "the run is still running")
                .with("run", &run_id)
                .remedy("end it first"));
        }
        // In both lists for a moment: what is in none would be left for ever.
        self.change(|listing| {
            for (key, made) in earlier.made {
                let own = listing.made.entry(key).or_insert_with(|| Value::Array(Vec::new()));
                if let (Value::Array(own), Value::Array(made)) = (own, made) {
                    own.splice(0..0, made);
                }
            }
        })?;
        fs::remove_file(&path).map_err(|error| {
            Error::system("manifest", "cannot remove the manifest of the earlier run", error)
                .with("path", path.display())
        })
    }
}

impl Manifest {
    /// Changes what it lists, and has that on disk.
    fn change(&self, change: impl FnOnce(&mut Listing)) -> Result<(), Error> {
        let mut state = self.state();
        let State { listing, path, keep, rank, served } = &mut *state;
        let Some(listing) = listing else { return Ok(()) };
        change(listing);
        if *keep {
            return Ok(());
        }
        if listing.is_empty() {
            return match path.take().map(fs::remove_file) {
                Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                    Err(Error::system("manifest", "cannot remove the manifest of this run", error))
                }
                _ => Ok(()),
            };
        }
        let place = match path {
            Some(path) => path.clone(),
            None => {
                let rank = rank.map_or_else(String::new, |rank| format!("-{rank}"));
                directory_to_write()?.join(format!("{}{rank}.json", listing.run_id))
            }
        };
        let mut lasting = Cow::Borrowed(&*listing);
        if !served.is_empty() {
            lasting.to_mut().made.values_mut().for_each(|made| name_stores(made, served));
        }
        save(&place, &lasting).map_err(|error| {
            Error::system("manifest", "cannot write the manifest of this run", error)
                .with("path", place.display())
                .remedy("set XDG_STATE_HOME to another directory")
        })?;
        *path = Some(place);
        Ok(())
    }
}

/// Names the stores themselves, where a list names targets by which engines of the run serve them.
fn name_stores(made: &mut Value, served: &[ServedStore]) {
    match made {
        Value::String(text) => {
            if let Some(served) = served.iter().find(|served| served.target == *text) {
                text.clone_from(&served.store);
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|made| name_stores(made, served)),
        Value::Object(all) => all.values_mut().for_each(|made| name_stores(made, served)),
        _ => {}
    }
}

/// Where manifests are kept, the first place first: `$XDG_STATE_HOME/strata`, `~/.local/state/strata`, and a directory of this user's own among
/// temporary files.
pub(crate) fn directories() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let home = variable("HOME").map(|home| home.join(".local/state"));
    let user = rustix::process::geteuid().as_raw();
    let temporary = std::env::temp_dir().join(format!("strata-state-{user}"));
    let named = state.or(home).map(|state| state.join("strata"));
    named.into_iter().chain([temporary]).collect()
}

/// The first of them that can be written by this user, and by nobody else.
pub(crate) fn directory_to_write() -> Result<PathBuf, Error> {
    let mut last = None;
    for directory in directories() {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        let checked = made.and_then(|()| fs::symlink_metadata(&directory)).and_then(|facts| {
            let is_own = facts.is_dir() && facts.uid() == rustix::process::geteuid().as_raw();
            if is_own && facts.mode() & 0o022 == 0 {
                rustix::fs::access(&directory, rustix::fs::Access::WRITE_OK).map_err(io::Error::from)
            } else {
                Err(io::Error::other("other users may write to the directory"))
            }
        });
        match checked {
            Ok(()) => return Ok(directory),
            Err(error) => last = Some((directory, error)),
        }
    }
    let (directory, error) = last.unwrap_or_else(|| (PathBuf::new(), io::ErrorKind::NotFound.into()));
    Err(Error::system("manifest", "no directory for the manifest of this run", error)
        .with("path", directory.display())
        .remedy("set XDG_STATE_HOME to a directory that only you may write to"))
}

/// Number of this user in this machine, drawn once: it stands in `owner`, beside the manifests.
fn owner() -> Result<u64, Error> {
    let place = |directory: PathBuf| directory.join("owner");
    let read = |path: &PathBuf| u64::from_str_radix(fs::read_to_string(path).ok()?.trim(), 16).ok();
    if let Some(owner) = directories().into_iter().map(place).find_map(|path| read(&path)) {
        return Ok(owner);
    }
    let path = place(directory_to_write()?);
    let failed = |error| {
        Error::system("manifest", "cannot store the number of this user", error).with("path", path.display())
    };
    let text = format!("{:016x}\n", crate::session::draw_seed());
    // Of two runs that begin at once, the one that linked its file first has drawn it for both.
    let beside = path.with_extension(format!("part-{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    let linked = written.and_then(|()| fs::hard_link(&beside, &path));
    let _ = fs::remove_file(&beside);
    match (linked, read(&path)) {
        (_, Some(owner)) => Ok(owner),
        (Err(error), None) => Err(failed(error)),
        (Ok(()), None) => Err(failed(io::ErrorKind::InvalidData.into())),
    }
}

/// Writes it beside its place, moves it there, and has both on the disk.
fn save(path: &Path, listing: &Listing) -> io::Result<()> {
    let text = serde_json::to_string_pretty(listing).map_err(io::Error::other)?;
    let beside = path.with_extension("json.part");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// The manifest or record in a file.
///
/// # Errors
/// When it is neither.
pub(crate) fn read(path: &str) -> Result<Listing, Error> {
    let text = crate::commands::read_input("clean", path)?;
    let mut listing: Listing = serde_json::from_str(&text).map_err(|error| {
        Error::new(ErrorKind::Usage, "clean", format!("not a record and not a manifest: {error}"))
            .with("file", path)
    })?;
    listing.made.retain(|key, _| leftovers().any(|kind| kind.key() == key));
    Ok(listing)
}

/// Things that runs of the layers make and may leave.
pub(crate) fn leftovers() -> impl Iterator<Item = &'static dyn Leftovers> {
    layer::all().into_iter().flat_map(|layer| layer.leftovers())
}

/// The manifest of a run in this machine, where it has one.
pub(crate) fn of_run(run_id: &str) -> Option<PathBuf> {
    let is_name = run_id.len() == 16 && run_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let place = |directory: PathBuf| directory.join(format!("{run_id}.json"));
    directories().into_iter().map(place).find(|path| is_name && path.is_file())
}

/// The manifests that hosts of a run in this machine have, each its own.
pub(crate) fn of_hosts(run_id: &str) -> Vec<PathBuf> {
    let is_part = |path: &PathBuf| {
        let rank = path.file_stem().and_then(|name| name.to_str()?.strip_prefix(run_id)?.strip_prefix('-'));
        rank.is_some_and(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()))
    };
    all().into_iter().filter(is_part).collect()
}

/// All manifests in this machine, in the order of their names.
pub(crate) fn all() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = directories()
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    all.sort();
    all
}
