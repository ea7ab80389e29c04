//! The phases of IO500, in its order, each as the load of this layer that it is.

use driver::Error;
use report::record::SuitePhase;
use workload::options as load_options;
use workload::spec::Spec;

use super::settings::{Mode, RANDOM_BYTES, Settings};

/// Bytes of a transfer of ior-hard.
const HARD_TRANSFER_BYTES: u64 = 47_008;
/// Bytes of a file of mdtest-hard.
pub(super) const HARD_FILE_BYTES: u64 = 3901;
/// Random reads of a rank, at most.
const RANDOM_READS: u64 = 10_000_000;
/// Name that searches look for.
const FIND_NAME: &str = "*01*";

/// Group of a phase in the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Bandwidth,
    Metadata,
    /// It has a rate that does not count.
    Unscored,
}

impl Group {
    /// As the record has it.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Bandwidth => Some("bandwidth"),
            Self::Metadata => Some("metadata"),
            Self::Unscored => None,
        }
    }
}

/// Kind of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The file is made by whose time a search knows newer ones.
    Timestamp,
    /// Bytes are moved: their class.
    Transfer(&'static str),
    /// Files are worked on: the class that counts them.
    Items(&'static str),
    /// A search.
    Find,
}

/// A phase.
#[derive(Debug)]
pub(super) struct PhaseDef {
    pub(super) name: &'static str,
    pub(super) group: Group,
    pub(super) is_extended: bool,
    pub(super) kind: Kind,
    /// It ends at the stonewall and must not be shorter.
    pub(super) is_walled: bool,
    /// It makes files, or removes them.
    pub(super) changes: Changes,
}

/// Change that a phase makes to its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    Nothing,
    Makes,
    Removes,
}

const fn phase(name: &'static str, group: Group, kind: Kind, changes: Changes) -> PhaseDef {
    PhaseDef { name, group, is_extended: false, kind, is_walled: matches!(changes, Changes::Makes), changes }
}

const fn search(name: &'static str, is_extended: bool) -> PhaseDef {
    PhaseDef { is_extended, ..phase(name, Group::Metadata, Kind::Find, Changes::Nothing) }
}

use Changes::{Makes, Nothing, Removes};
use Group::{Bandwidth, Metadata, Unscored};
use Kind::{Items, Timestamp, Transfer};

/// All of them. What the extended mode has of mdworkbench is not among them.
pub(super) static PHASES: &[PhaseDef] = &[
    phase("ior-easy-write", Bandwidth, Transfer("write"), Makes),
    phase("mdtest-easy-write", Metadata, Items("create"), Makes),
    phase("timestamp", Unscored, Timestamp, Nothing),
    search("find-easy", true),
    phase("ior-hard-write", Bandwidth, Transfer("write"), Makes),
    phase("mdtest-hard-write", Metadata, Items("create"), Makes),
    search("find", false),
    search("find-hard", true),
    phase("ior-easy-read", Bandwidth, Transfer("read"), Nothing),
    phase("mdtest-easy-stat", Metadata, Items("stat"), Nothing),
    phase("ior-hard-read", Bandwidth, Transfer("read"), Nothing),
    phase("mdtest-hard-stat", Metadata, Items("stat"), Nothing),
    phase("mdtest-easy-delete", Metadata, Items("unlink"), Removes),
    phase("mdtest-hard-read", Metadata, Items("open"), Nothing),
    phase("mdtest-hard-delete", Metadata, Items("unlink"), Removes),
    phase("ior-rnd4K-easy-read", Unscored, Transfer("read"), Nothing),
];

/// The file sets, by what the names of their phases begin with, with the directory of each below that of the data.
pub(super) const SETS: [&str; 4] = ["ior-easy", "mdtest-easy", "ior-hard", "mdtest-hard"];

impl PhaseDef {
    /// The file set that it works on; none for searches.
    pub(super) fn set(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Timestamp | Kind::Find => None,
            _ if self.name == "ior-rnd4K-easy-read" => Some("ior-easy"),
            _ => SETS.into_iter().find(|set| self.name.starts_with(set)),
        }
    }

    /// Unit of its rate.
    pub(super) fn unit(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Timestamp => None,
            Kind::Transfer(_) => Some("GiB/s"),
            Kind::Items(_) | Kind::Find => Some("kIOPS"),
        }
    }

    /// Its entry in the record, before it has run.
    pub(super) fn entry(&self) -> SuitePhase {
        SuitePhase {
            name: self.name.to_owned(),
            unit: self.unit().map(str::to_owned),
            group: self.group.name().map(str::to_owned),
            is_extended: self.is_extended,
            ..SuitePhase::default()
        }
    }

    /// Whether it is in a run of this mode.
    pub(super) fn is_in(&self, mode: Mode) -> bool {
        mode == Mode::Extended || !self.is_extended
    }
}

/// The load of a phase: its target, and its options by name.
#[derive(Debug)]
pub(super) struct Load {
    target: String,
    options: Vec<(&'static str, String)>,
}

impl Load {
    fn of(target: String) -> Self {
        Self { target, options: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.options.push((name, value.to_string()));
        self
    }

    fn on(self, name: &'static str) -> Self {
        self.with(name, "true")
    }

    fn on_if(self, name: &'static str, is_on: bool) -> Self {
        if is_on { self.on(name) } else { self }
    }

    /// The command line that makes the same load.
    pub(super) fn words(&self) -> String {
        let mut words = vec!["strata fs".to_owned(), quoted(&self.target)];
        for (name, value) in &self.options {
            words.push(format!("--{name}"));
            if value != "true" {
                words.push(quoted(value));
            }
        }
        words.join(" ")
    }

    /// Its spec.
    ///
    /// # Errors
    /// A value that an option does not take.
    pub(super) fn spec(&self, name: &str) -> Result<Spec, Error> {
        let mut spec = Spec { layer: crate::LAYER, name: Some(name.to_owned()), ..Spec::default() };
        spec.targets = vec![self.target.clone()];
        for (key, value) in &self.options {
            load_options::apply(&mut spec, key, value)
                .map_err(|error| Error::usage("io500", format!("{name}: {error}")))?;
        }
        Ok(spec)
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Conditions of a search below a directory, and the search by another program's arguments.
pub(super) struct Search {
    pub(super) directory: String,
    is_of_new: bool,
}

impl Search {
    pub(super) fn of(settings: &Settings, phase: &PhaseDef) -> Self {
        let data = &settings.data;
        match phase.name {
            "find-easy" => Self { directory: format!("{data}/mdtest-easy"), is_of_new: false },
            "find-hard" => Self { directory: format!("{data}/mdtest-hard"), is_of_new: true },
            _ => Self { directory: data.clone(), is_of_new: true },
        }
    }

    /// As arguments of find(1), as IO500 gives them to an external script.
    pub(super) fn arguments(&self, settings: &Settings) -> String {
        let directory = quoted(&self.directory);
        let newer = quoted(&stamp_file(settings));
        if self.is_of_new {
            format!("{directory} -newer {newer} -size {HARD_FILE_BYTES}c -name \"{FIND_NAME}\"")
        } else {
            format!("{directory}/ -name \"{FIND_NAME}\"")
        }
    }
}

/// The file by whose time a search knows newer ones.
pub(super) fn stamp_file(settings: &Settings) -> String {
    units::label_of(settings.results.join("timestampfile").as_os_str())
}

/// The load of a phase, where strata's loop measures it.
///
/// # Errors
/// Settings of a search that cannot be.
pub(super) fn load(settings: &Settings, phase: &PhaseDef) -> Result<Option<Load>, Error> {
    let Some(set) = phase.set() else {
        return if phase.kind == Kind::Find { find(settings, phase) } else { Ok(None) };
    };
    let load = on_set(settings, set).with("threads", settings.ranks / settings.processes).on("no-fill");
    let stonewall = |load: Load| load.with("time", format!("{}s", settings.stonewall_s)).on("wear-out");
    let stopped = |load: Load| load.with("on-error", "stop");
    let counted = |load: Load| load.with("on-error", "continue");
    let is_direct = set == "ior-easy" && settings.is_direct(phase.name);
    let transfer =
        |load: Load, bytes: u64| load.with("block-size", bytes).on("barriers").on_if("direct", is_direct);
    let easy_bytes = settings.easy.transfer_bytes;
    Ok(Some(match phase.name {
        "ior-easy-write" => {
            stopped(stonewall(transfer(load.with("op", "write"), easy_bytes).on("end-fsync").on("verify")))
        }
        "ior-hard-write" => stopped(stonewall(
            transfer(load.with("op", "write"), HARD_TRANSFER_BYTES).on("end-fsync").on("verify"),
        )),
        "ior-easy-read" => {
            counted(transfer(load.with("op", "read"), easy_bytes).with("rank-shift", 1).on("verify"))
        }
        "ior-hard-read" => {
            counted(transfer(load.with("op", "read"), HARD_TRANSFER_BYTES).with("rank-shift", 1).on("verify"))
        }
        "ior-rnd4K-easy-read" => {
            let shift = if settings.easy.is_private { 2 } else { 0 };
            let load = transfer(load.with("op", "read"), RANDOM_BYTES).with("order", "random-repeats");
            counted(stonewall(load.with("transfers", RANDOM_READS).with("rank-shift", shift)))
        }
        "mdtest-easy-write" => stopped(stonewall(load.with("op", "create").on("phase-sync"))),
        "mdtest-hard-write" => {
            let load = load.with("op", "write").on("verify").on("phase-sync");
            stopped(if settings.hard_per_directory.is_some() { load } else { stonewall(load) })
        }
        "mdtest-hard-read" => counted(load.with("op", "read").with("rank-shift", 2).on("verify")),
        "mdtest-easy-stat" | "mdtest-hard-stat" => counted(load.with("op", "stat").with("rank-shift", 1)),
        _ => counted(load.with("op", "unlink").with("rank-shift", 3)),
    }))
}

/// Bytes of a block by which the blocks of a set of files without a tree are counted.
pub(super) fn block_bytes(settings: &Settings, set: &str) -> u64 {
    if set == "ior-easy" { settings.easy.transfer_bytes } else { HARD_TRANSFER_BYTES }
}

/// The files of a set.
fn on_set(settings: &Settings, set: &str) -> Load {
    let data = &settings.data;
    let easy = &settings.easy;
    let tree = |name: &str| Load::of(format!("{data}/{name}")).with("names", "mdtest");
    match set {
        "ior-easy" => Load::of(format!("{data}/ior-easy/ior_file_easy"))
            .with("shape", if easy.is_private { "private" } else { "shared" })
            .on_if("unique-directories", easy.unique_directories)
            .with("file-size", easy.block_bytes),
        "ior-hard" => Load::of(format!("{data}/ior-hard/file"))
            .with("shape", "shared")
            .with("file-size", HARD_TRANSFER_BYTES)
            .with("segments", settings.segments),
        "mdtest-easy" => tree(set).with("branch", 1).with("levels", 0).with("items", settings.easy_items),
        _ => {
            let load = tree(set).on("shared-tree").with("items", settings.hard_items);
            let load = match settings.hard_per_directory {
                Some(files) => load.with("dirs", settings.hard_items.div_ceil(files)).with("files", files),
                None => load.with("branch", 1).with("levels", 0),
            };
            load.with("file-size", HARD_FILE_BYTES).with("block-size", HARD_FILE_BYTES)
        }
    }
}

fn find(settings: &Settings, phase: &PhaseDef) -> Result<Option<Load>, Error> {
    let own = settings.find(phase.name)?;
    if own.external.is_some() {
        return Ok(None);
    }
    let search = Search::of(settings, phase);
    let load = Load::of(search.directory).with("op", "find").with("find-name", FIND_NAME);
    let load = if search.is_of_new {
        load.with("find-size", HARD_FILE_BYTES).with("find-newer", stamp_file(settings))
    } else {
        load
    };
    let threads = own.threads.unwrap_or(settings.ranks);
    let load = match threads < settings.processes {
        true => load.with("hosts-used", threads),
        false => load,
    };
    Ok(Some(load.with("threads", (threads / settings.processes).max(1)).with("on-error", "continue")))
}
