//! Paths of a service held by the kernel (Landlock): what it opens lies below its roots at the very moment of opening, whatever links are in the way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use driver::Error;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus,
};
use runner::Outcome;
use rustix::io::Errno;

/// Oldest interface that will do: before it the kernel truncates files outside, and renames nothing from one directory to another. Linux 6.2.
const OLDEST: ABI = ABI::V3;
/// Answers of the kernel: the second to renames and links that lead out.
const REFUSALS: [Errno; 2] = [Errno::ACCESS, Errno::XDEV];
/// Directories of programs and libraries.
const PROGRAMS: &[&str] =
    &["/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store"];
/// Files that programs and libraries read: settings, facts of machine and devices, addresses of name servers, certificates.
const FACTS: &[&str] = &[
    "/etc",
    "/proc",
    "/sys",
    "/run/udev",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/var/lib/ca-certificates",
];
/// Devices without data of anybody's.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Directories of devices that libraries of networks and GPUs use.
const DEVICE_DIRECTORIES: &[&str] = &["/dev/infiniband", "/dev/nvidia-caps"];
/// Beginning of the names of devices of GPUs in `/dev`.
const GPU_DEVICES: &str = "nvidia";
/// Drops the page cache of the machine; its mode lets root alone write to it.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// Variables that name files and directories, parted by colons, which libraries read or are loaded from; so do all that begin with `STRATA_LIB`.
const VARIABLES: &[&str] = &[
    "LD_LIBRARY_PATH",
    "FI_PROVIDER_PATH",
    "HDF5_PLUGIN_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "AWS_CA_BUNDLE",
    "CEPH_CONF",
    "CUFILE_ENV_PATH_JSON",
    "CRT_ATTACH_INFO_PATH",
];
const LIBRARY_VARIABLES: &str = "STRATA_LIB";

/// Paths that a confined process may write to.
#[derive(Clone, Copy, Debug)]
pub struct ConfinedPaths<'a> {
    /// Directories and devices, resolved, below which it may do everything but run programs and make device nodes.
    pub roots: &'a [PathBuf],
    /// Directory of the manifests, where files are made, replaced and removed.
    pub state: Option<&'a Path>,
    /// Directory of the audit log, where files are made, appended to and renamed.
    pub audit: Option<&'a Path>,
}

/// This process is held to paths by the kernel, with all threads and processes that it starts from here on. There is no way back.
#[derive(Clone, Debug)]
pub struct Confinement {
    /// The roots, as messages name them.
    roots: String,
}

impl Confinement {
    /// Confines this process. To be called before any other thread is there: threads that run already would stay as they are. None where the
    /// kernel has no Landlock, has it switched off, or has one older than Linux 6.2.
    ///
    /// # Errors
    /// Where threads run already, where a path cannot be opened, and where the kernel refuses.
    pub fn begin(paths: ConfinedPaths<'_>) -> Result<Option<Self>, Error> {
        let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads != 1 {
            return Err(Error::usage(
                "confine",
                format!("{threads} threads already run and would not be confined"),
            )
            .remedy("start the service with --confine off"));
        }
        let created = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(OLDEST))
            .map(|ruleset| ruleset.set_compatibility(CompatLevel::BestEffort))
            // Linux 6.10.
            .and_then(|ruleset| ruleset.handle_access(AccessFs::IoctlDev));
        let ruleset = match created {
            Ok(ruleset) => ruleset.create().map_err(refused)?,
            Err(RulesetError::HandleAccesses(_)) => return Ok(None),
            Err(error) => return Err(refused(error)),
        };
        let status = rules(ruleset, paths)?.restrict_self().map_err(refused)?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Ok(None);
        }
        let roots: Vec<String> = paths.roots.iter().map(|root| root.display().to_string()).collect();
        Ok(Some(Self { roots: roots.join(", ") }))
    }

    /// Where paths lie, for the context of an error.
    fn place(&self) -> String {
        let place = if self.roots.is_empty() { "no paths" } else { self.roots.as_str() };
        format!("{place}; links to other places are not followed")
    }

    /// Adds to an error of permissions where it may come from: the kernel does not say whether a path lies outside or its mode is at fault.
    #[must_use]
    pub fn explained(&self, error: Error) -> Error {
        if error.errno().is_some_and(is_refusal) { error.with("confined_to", self.place()) } else { error }
    }

    /// Adds the same to an outcome: to the text of its failure, and as a note where operations failed so.
    pub fn explain(&self, outcome: &mut Outcome) {
        let is_meant = |text: &String| REFUSALS.iter().any(|errno| text.contains(&in_words(*errno)));
        let words = format!("confined to {}", self.place());
        let workers = &outcome.samples.workers;
        let mut counted = workers.iter().flat_map(|worker| &worker.errors).filter_map(|error| error.errno);
        let mut failures = workers.iter().filter_map(|worker| worker.failure.as_ref());
        let is_noted = counted.any(is_refusal) || failures.any(is_meant);
        if let Some(failure) = outcome.failure.as_mut().filter(|failure| is_meant(failure)) {
            *failure = format!("{failure}; {words}");
        } else if is_noted {
            outcome
                .notes
                .push(format!("operations were rejected (permission denied): this service is {words}"));
        }
    }
}

/// How the standard library writes an error number at the end of a message.
fn in_words(errno: Errno) -> String {
    format!("(os error {})", errno.raw_os_error())
}

fn is_refusal(errno: i32) -> bool {
    REFUSALS.iter().any(|refused| refused.raw_os_error() == errno)
}

fn refused(error: RulesetError) -> Error {
    Error::system("confine", "the kernel cannot confine this process", io::Error::other(error))
        .remedy("start the service with --confine off")
}

/// All that the process needs, and no more.
fn rules(ruleset: RulesetCreated, paths: ConfinedPaths<'_>) -> Result<RulesetCreated, Error> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let append = AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::RemoveFile;
    let mut ruleset = ruleset;
    for root in paths.roots {
        ruleset = allow(ruleset, root, below_roots())?;
    }
    let own = [(paths.state, read | append | AccessFs::Truncate), (paths.audit, append)];
    for (directory, rights) in own {
        if let Some(directory) = directory {
            ruleset = allow(ruleset, directory, rights)?;
        }
    }
    let programs = PROGRAMS.iter().map(PathBuf::from).chain(std::env::current_exe()).chain(named_files());
    let facts = FACTS.iter().map(PathBuf::from);
    let devices = DEVICES.iter().chain(DEVICE_DIRECTORIES).map(PathBuf::from).chain(gpu_devices());
    let others = (programs.map(|path| (path, read | AccessFs::Execute)))
        .chain(facts.map(|path| (path, read)))
        .chain(devices.map(|path| (path, device | AccessFs::ReadDir)))
        .chain([(PathBuf::from(DROP_CACHES), AccessFs::WriteFile | AccessFs::Truncate)]);
    for (path, rights) in others.filter(|(path, _)| path.exists()) {
        ruleset = allow(ruleset, &path, rights)?;
    }
    Ok(ruleset)
}

/// Everything but what could lead out: programs, and nodes of devices, which lie below a root wherever their data are.
fn below_roots() -> BitFlags<AccessFs> {
    let excluded = AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock;
    (AccessFs::from_all(OLDEST) & !excluded) | AccessFs::IoctlDev
}

/// Allows these accesses to a path and all below it; to what is no directory those that there are for files.
fn allow(ruleset: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> Result<RulesetCreated, Error> {
    let failed = |error: String| {
        Error::system("confine", "a path that the service uses cannot be opened", io::Error::other(error))
            .with("path", path.display())
            .remedy("make it accessible, or start the service with --confine off")
    };
    let beneath = PathFd::new(path).map_err(|error| failed(error.to_string()))?;
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(ABI::V5) };
    ruleset.add_rule(PathBeneath::new(beneath, rights)).map_err(refused)
}

/// Devices of GPUs.
fn gpu_devices() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
    let gpus = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(GPU_DEVICES));
    gpus.map(|entry| entry.path()).collect()
}

/// Files and directories that variables of the environment name to libraries.
fn named_files() -> Vec<PathBuf> {
    let is_meant = |name: &str| VARIABLES.contains(&name) || name.starts_with(LIBRARY_VARIABLES);
    let variables = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_meant));
    let paths = variables.flat_map(|(_, value)| std::env::split_paths(&value).collect::<Vec<_>>());
    // An empty part would be the directory of the moment, and `/` everything.
    paths.filter(|path| path.is_absolute() && path.parent().is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_below_roots_lead_nowhere_else() {
        let rights = below_roots();
        assert!(
            rights.contains(AccessFs::Refer | AccessFs::Truncate | AccessFs::IoctlDev | AccessFs::MakeSym)
        );
        for excluded in [AccessFs::Execute, AccessFs::MakeBlock, AccessFs::MakeChar] {
            assert!(!rights.contains(excluded), "{excluded:?}");
        }
    }

    #[test]
    fn errors_of_permissions_name_the_confinement_and_others_do_not() {
        let confinement = Confinement { roots: "/scratch".to_owned() };
        let error = |errno| Error::system("open", "cannot open", io::Error::from_raw_os_error(errno));
        let said = confinement.explained(error(13)).to_string();
        assert!(said.contains("os error 13") && said.contains("confined_to=/scratch; links"), "{said}");
        assert!(!confinement.explained(error(2)).to_string().contains("confined"));
        let none = Confinement { roots: String::new() };
        assert!(none.explained(error(13)).to_string().contains("confined_to=no paths"));
    }
}
