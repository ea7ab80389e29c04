//! AccessPaths: the ways to one file system over objects (its library, a mount, that mount with interception), measured in turns.

mod mounted;
mod options;
mod passing;

pub(crate) use options::ACCESS_PATHS;
pub(crate) use passing::AccessPaths;

use std::path::PathBuf;

use driver::{Error, ErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::plan::PhasePlan;
use workload::spec::Spec;

use crate::drivers::C_LIBRARY;
use crate::phases::FsOp;
use crate::plan::FsPlan;
use crate::set::Shape;
use crate::spec::{self, FsSpec};
use crate::stores::{self, TOP, is_store};

/// A way to a file system over objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessPath {
    /// The library of files over objects, in this process.
    Library,
    /// A mount by FUSE.
    Mount,
    /// That mount, with the interception library.
    Intercept,
}

impl AccessPath {
    /// All of them, in the order of tables.
    pub(crate) const ALL: [Self; 3] = [Self::Library, Self::Mount, Self::Intercept];

    /// As options and plans have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Mount => "mount",
            Self::Intercept => "intercept",
        }
    }
}

/// Turns of each door where nothing is said, of several doors: fewer give no interval.
const TURNS: u32 = 3;

fn usage(message: impl Into<String>) -> Error {
    Error::usage("plan", message)
}

/// A turn: the spec of one door, and what its plans say of it.
pub(crate) struct Turn {
    pub(crate) spec: Spec,
    door: Option<(AccessPath, String, u32)>,
}

impl Turn {
    /// Whether it is of a door.
    pub(crate) fn is_of_door(&self) -> bool {
        self.door.is_some()
    }

    /// Notes the door in a plan.
    pub(crate) fn mark(&self, plan: &mut FsPlan) {
        let Some((door, target, turn)) = &self.door else { return };
        plan.name = format!("{} {}", door.name(), plan.name);
        (plan.door, plan.door_target, plan.door_turn) = (Some(*door), Some(target.clone()), Some(*turn));
    }
}

/// The turns of a spec, in order: of one without doors, the spec itself.
///
/// # Errors
/// What does not go with doors, and what is missing here for them.
pub(crate) fn turns(spec: &Spec) -> Result<Vec<Turn>, Error> {
    let own = spec::of(spec);
    let Some(doors) = &own.door else {
        return match own.door_turns {
            Some(_) => Err(usage("--door-turns requires several doors: add --door all")),
            None => Ok(vec![Turn { spec: spec.clone(), door: None }]),
        };
    };
    check(spec, own)?;
    check_machine(spec, doors)?;
    let target = &spec.targets[0];
    let rounds = own.door_turns.unwrap_or(if doors.len() > 1 { TURNS } else { 1 });
    let mut turns = Vec::new();
    for turn in 0..rounds {
        for door in doors {
            let mut spec = spec.clone();
            if *door != AccessPath::Library {
                spec.own.get_mut::<FsSpec>().engine = Some(C_LIBRARY.to_owned());
                spec.targets = vec![path_behind(own)?];
            }
            turns.push(Turn { spec, door: Some((*door, target.clone(), turn + 1)) });
        }
    }
    Ok(turns)
}

/// Refuses doors beside other loads on files: each turn removes what the run made.
///
/// # Errors
/// Bad usage.
pub(crate) fn check_others(spec: &Spec, before: &[&PhasePlan]) -> Result<(), Error> {
    let is_of_door = spec::of(spec).door.is_some();
    let mut files = before.iter().filter_map(|plan| plan.of::<FsPlan>());
    if files.any(|plan| plan.door.is_some() != is_of_door) {
        return Err(usage(
            "phases with door and other phases on files require separate jobs: each turn of a door removes the files of the run",
        ));
    }
    Ok(())
}

/// Target on the mount: files without a tree lie where the library has them.
fn path_behind(own: &FsSpec) -> Result<String, Error> {
    let directory = mounted::directory()?.display().to_string();
    Ok(match own.shape.unwrap_or(Shape::Tree) {
        Shape::Tree => directory,
        Shape::Private | Shape::Shared => format!("{directory}/{TOP}/{}", stores::DATA),
    })
}

fn check(spec: &Spec, own: &FsSpec) -> Result<(), Error> {
    if spec.targets.len() != 1 || !spec.targets.iter().all(|target| is_store(target)) {
        return Err(usage("--door requires one file system over objects: a path is accessible only through the kernel").remedy(
            "use one target, dfs+vos:DIR, dfs+engine://HOST:PORT/POOL/CONTAINER or dfs+daos://POOL/CONTAINER, or omit --door",
        ));
    }
    let refused = [
        (own.engine.is_some(), "--engine: each door has its own engine"),
        (own.operations.contains(&FsOp::Link), "--op link: files over objects have no hard links"),
        (spec.concurrent, "--concurrent: doors are measured one after another"),
        (spec.place.is_some(), "--hosts: a mount serves one machine"),
        (spec.saturate, "--saturate: use --threads or a ladder (--threads 1,2,4)"),
        (spec.depth.is_some_and(|depth| depth > 1), "--depth: calls are synchronous, use --threads"),
    ];
    match refused.iter().find(|(is_said, _)| *is_said) {
        Some((_, what)) => Err(usage(format!("--door does not support {what}"))),
        None => Ok(()),
    }
}

/// Refuses what this machine lacks for these doors, before anything is made.
fn check_machine(spec: &Spec, doors: &[AccessPath]) -> Result<(), Error> {
    let behind = doors.iter().any(|door| *door != AccessPath::Library);
    if let Some(error) = mount::missing().filter(|_| behind) {
        return Err(error.with("option", "--door"));
    }
    if doors.contains(&AccessPath::Intercept) {
        library()?;
        if spec.token_file.is_some() && std::env::var_os("STRATA_TOKEN_FILE").is_none() {
            return Err(Error::new(
                ErrorKind::Usage,
                "plan",
                "the interception library reads the secret of engines from STRATA_TOKEN_FILE",
            )
            .remedy("export STRATA_TOKEN_FILE=FILE with the file of --token-file"));
        }
    }
    if behind {
        stores::check_pool(&spec.targets[0])?;
    }
    Ok(())
}

/// The interception library.
fn library() -> Result<PathBuf, Error> {
    mount::intercept_library()
}
