//! Runs of the processes that a launcher (Open MPI, MPICH, Slurm, Kubernetes) has started together: rank 0 leads and is the first host, the
//! others serve it. Who they are comes from the environment; where they are, and the secret that each of them draws, by a [`channel`].

mod channel;
mod crew;
mod files;
mod pmi;
mod pmix;
mod rank;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use driver::Error;
use layer::Measures;
use workload::spec::Layer;

pub(crate) use crew::Crew;
pub(crate) use rank::serve;

/// Names the launcher, or says `none`, where the environment alone would say something else.
const LAUNCHER: &str = "STRATA_LAUNCHER";
/// Number of processes, where the launcher does not tell it.
const SIZE: &str = "STRATA_LAUNCH_SIZE";
/// Where a rank is reached: NAME[:PORT], with `{rank}` and `{host}` in it.
const ADDRESS: &str = "STRATA_LAUNCH_ADDRESS";
/// Directory that all ranks see and only their user can read.
const DIRECTORY: &str = "STRATA_LAUNCH_DIR";
/// Seconds that ranks wait for each other.
const TIMEOUT: &str = "STRATA_LAUNCH_TIMEOUT";
/// File with the secret of all ranks, where each has the same.
const TOKEN_FILE: &str = "STRATA_TOKEN_FILE";

/// Longest wait for other ranks, unless [`TIMEOUT`] says otherwise.
const WAIT_S_DEFAULT: u64 = 60;
/// Most processes of a launch.
const SIZE_MAX: u32 = 100_000;

/// A launcher: how its processes know who they are.
struct Launcher {
    name: &'static str,
    /// Variable with the rank.
    rank: &'static str,
    /// Variable with the number of processes.
    size: &'static str,
    /// Further variables without which a process was not started by it.
    also: &'static [&'static str],
    /// Variables that are equal where all processes are on one machine: a number of this machine or step, and what it must be (none: 1).
    one_machine: (&'static str, Option<&'static str>),
    /// Variables that name the job among those of the user.
    job: &'static [&'static str],
}

/// The launchers, in the order in which they count where the variables of several are there: one that was started by another inherits
/// its variables, and MPI's launchers start their processes by Slurm.
static LAUNCHERS: &[Launcher] = &[
    Launcher {
        name: "openmpi",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        also: &[],
        one_machine: ("OMPI_COMM_WORLD_LOCAL_SIZE", Some("OMPI_COMM_WORLD_SIZE")),
        job: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
    },
    Launcher {
        name: "mpich",
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        also: &[],
        one_machine: ("MPI_LOCALNRANKS", Some("PMI_SIZE")),
        job: &["PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"],
    },
    Launcher {
        name: "slurm",
        rank: "SLURM_PROCID",
        // A batch script has SLURM_NTASKS too, and is a lone process.
        size: "SLURM_STEP_NUM_TASKS",
        also: &["SLURM_STEP_ID"],
        one_machine: ("SLURM_STEP_NUM_NODES", None),
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    },
    Launcher {
        name: "kubernetes",
        rank: "JOB_COMPLETION_INDEX",
        size: SIZE,
        also: &[ADDRESS],
        one_machine: ("", None),
        job: &[],
    },
];

/// Reader of environment variables.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// This process among those that a launcher has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launched {
    launcher: &'static str,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// Whether all of them are on this machine.
    is_one_machine: bool,
    /// Name of the job.
    job: String,
    /// How long ranks wait for each other.
    wait: Duration,
}

/// Whether this process has met the others.
static HAS_MET: AtomicBool = AtomicBool::new(false);

/// The processes among which this one was started, by its environment; none where it is alone.
///
/// # Errors
/// Bad usage: variables that cannot be.
pub(crate) fn launched() -> Result<Option<Launched>, Error> {
    Launched::of(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// Number of processes that were started together; 1 where this one is alone.
pub(crate) fn ranks() -> u32 {
    launched().ok().flatten().map_or(1, |launched| launched.size)
}

/// Whether all processes that were started together are on this machine.
pub(crate) fn are_here() -> bool {
    launched().ok().flatten().is_none_or(|launched| launched.is_one_machine)
}

impl Launched {
    fn of(variables: Variables<'_>) -> Result<Option<Self>, Error> {
        let Some(launcher) = named(variables)? else { return Ok(None) };
        let (rank, size) = (number(variables, launcher.rank)?, number(variables, launcher.size)?);
        if size <= 1 {
            return Ok(None);
        }
        if rank >= size || size > u64::from(SIZE_MAX) {
            let message = format!("{}={rank} with {}={size} is impossible", launcher.rank, launcher.size);
            return Err(
                bad(message).remedy(format!("a rank must be below the size; the size is at most {SIZE_MAX}"))
            );
        }
        let is_one_machine = match launcher.one_machine {
            ("", _) => false,
            (here, None) => variables(here).as_deref() == Some("1"),
            (here, Some(all)) => variables(here).is_some() && variables(here) == variables(all),
        };
        let job: Vec<String> = launcher.job.iter().filter_map(|name| variables(name)).collect();
        let wait_s = match variables(TIMEOUT) {
            Some(text) => units::parse_u64_in(TIMEOUT, &text, 1..=86_400)
                .map_err(|error| Error::usage("launcher", error.to_string()))?,
            None => WAIT_S_DEFAULT,
        };
        Ok(Some(Self {
            launcher: launcher.name,
            rank: rank as u32,
            size: size as u32,
            is_one_machine,
            job: job.join("."),
            wait: Duration::from_secs(wait_s),
        }))
    }

    /// Whether this process leads the others.
    pub(crate) fn leads(&self) -> bool {
        self.rank == 0
    }
}

pub(crate) use pmix::settle_environment;

fn bad(message: impl Into<String>) -> Error {
    Error::usage("launcher", message.into())
}

/// The launcher that the environment names, or whose variables are all there.
fn named(variables: Variables<'_>) -> Result<Option<&'static Launcher>, Error> {
    let has = |launcher: &&Launcher| {
        let names = [launcher.rank, launcher.size];
        names.iter().chain(launcher.also).all(|name| variables(name).is_some())
    };
    match variables(LAUNCHER).as_deref() {
        None | Some("auto") => Ok(LAUNCHERS.iter().find(has)),
        Some("none") => Ok(None),
        Some(name) => {
            let names: Vec<&str> = LAUNCHERS.iter().map(|launcher| launcher.name).collect();
            let launcher = LAUNCHERS.iter().find(|launcher| launcher.name == name).ok_or_else(|| {
                bad(format!("{LAUNCHER}={} is not a launcher", name.escape_debug()))
                    .remedy(format!("accepted: auto, none, {}", names.join(", ")))
            })?;
            let needed = [launcher.rank, launcher.size].into_iter().chain(launcher.also.iter().copied());
            match needed.into_iter().find(|name| variables(name).is_none()) {
                Some(missing) => Err(bad(format!("{LAUNCHER}={name}, but the environment has no {missing}"))
                    .remedy(format!("set {missing}, or {LAUNCHER}=none"))),
                None => Ok(Some(launcher)),
            }
        }
    }
}

fn number(variables: Variables<'_>, name: &str) -> Result<u64, Error> {
    let text = variables(name).unwrap_or_default();
    units::parse_u64_in(name, &text, 0..=u64::from(u32::MAX))
        .map_err(|error| bad(error.to_string()).remedy(format!("or set {LAUNCHER}=none")))
}

/// Whether the command of these words may become one run of all ranks. The others (servers, reports, lists) are each process's own.
pub(crate) fn is_shared_out(words: &[String]) -> bool {
    if crate::dialect::of_link(words).is_some() {
        return true;
    }
    let Some(command) = words.get(1) else { return false };
    if ["run", "as", "stack"].contains(&command.as_str()) {
        return true;
    }
    let below = words.get(2).map_or("", String::as_str);
    match Layer::of_command(command) {
        Some(layer) => {
            let own = layer::find(layer.name).map(|layer| layer.commands()).unwrap_or_default();
            own.iter().find(|own| own.name == below).is_none_or(|own| own.measures != Measures::Nothing)
        }
        None => {
            let all = layer::all().into_iter().flat_map(|layer| layer.commands());
            all.filter(|own| own.name == command).any(|own| own.measures != Measures::Nothing)
        }
    }
}

/// Refuses a command that runs in one process alone, where several were started.
///
/// # Errors
/// Bad usage.
pub(crate) fn refuse_several(what: &str) -> Result<(), Error> {
    match launched()? {
        Some(Launched { size, launcher, .. }) => {
            Err(bad(format!("{what} runs in one process, and {launcher} has started {size}")).remedy(
                format!("start one process, or set {LAUNCHER}=none to run it in each process independently"),
            ))
        }
        None => Ok(()),
    }
}

/// Tells the other ranks that this one, which they wait for, has no run for them. It does nothing where they have met.
pub(crate) fn leave(launched: &Launched) {
    if !HAS_MET.swap(true, Ordering::Relaxed) {
        crew::leave(launched);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Launched>, String> {
        let of = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Launched::of(&of).map_err(|error| error.to_string())
    }

    fn place(variables: &[(&str, &str)]) -> Option<(&'static str, u32, u32, bool)> {
        read(variables).unwrap().map(|it| (it.launcher, it.rank, it.size, it.is_one_machine))
    }

    const SLURM: [(&str, &str); 5] = [
        ("SLURM_PROCID", "2"),
        ("SLURM_STEP_NUM_TASKS", "3"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_NODES", "1"),
        ("SLURM_JOB_ID", "7"),
    ];

    #[test]
    fn ranks_come_from_the_environment() {
        assert_eq!(place(&SLURM), Some(("slurm", 2, 3, true)));
        assert_eq!(read(&SLURM).unwrap().unwrap().job, "7.0");
        // A batch script is a lone process, although it has SLURM_NTASKS.
        assert_eq!(place(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7")]), None);
        let ompi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        assert_eq!(place(&[&SLURM[..], &ompi].concat()), Some(("openmpi", 1, 4, false)));
        let kubernetes = [("JOB_COMPLETION_INDEX", "1"), (SIZE, "2"), (ADDRESS, "job-{rank}.jobs")];
        assert_eq!(place(&kubernetes), Some(("kubernetes", 1, 2, false)));
        assert_eq!(place(&kubernetes[..1]), None);
        assert_eq!(place(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
    }

    #[test]
    fn the_user_has_the_last_word() {
        assert_eq!(place(&[&SLURM[..], &[(LAUNCHER, "none")]].concat()), None);
        assert_eq!(place(&[&SLURM[..], &[(LAUNCHER, "slurm")]].concat()), Some(("slurm", 2, 3, true)));
        for (more, why) in [
            (vec![(LAUNCHER, "lsf")], "accepted: auto, none, openmpi, mpich, slurm, kubernetes"),
            (vec![(LAUNCHER, "mpich")], "has no PMI_RANK"),
            (vec![("PMI_RANK", "x"), ("PMI_SIZE", "2")], "PMI_RANK"),
            (vec![("PMI_RANK", "2"), ("PMI_SIZE", "2")], "below the size"),
            (vec![(TIMEOUT, "0")], TIMEOUT),
        ] {
            let refused = read(&[&SLURM[..], &more].concat()).expect_err(why);
            assert!(refused.contains(why) && !refused.contains('\n'), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn no_environment_panics(rank in "\\PC{0,8}", size in "[0-9]{0,12}", name in "\\PC{0,6}") {
            let _ = read(&[("PMI_RANK", &rank), ("PMI_SIZE", &size), (LAUNCHER, &name)]);
        }
    }
}
