//! The hosts that carry out a run together, as one of them sees the others.

mod meeting;
mod together;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use driver::Error;
use host::TargetEnvironment;
use workload::plan::{HostPlace, HostTargets};
use workload::spec::Spec;

pub use fleet::{Figure, Met};
pub use meeting::Meeting;
pub use together::Together;

/// Way to the other hosts of a run.
pub trait HostLink: Send + Sync {
    /// Says figures at a meeting, and waits until all hosts have said theirs that are not gone. Each host comes to each meeting once, and all name it
    /// the same. Several threads may wait at different meetings at the same time.
    ///
    /// # Errors
    /// The run is being stopped, or the way to the others is lost: a wait never outlasts the run.
    fn meet(&self, meeting: &str, said: &[u64]) -> Result<Met, Error>;
}

/// How hosts lie on machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Machines {
    /// All on one.
    One,
    /// Each on its own.
    Each,
    /// Neither, or not known.
    #[default]
    Mixed,
}

/// The hosts that carry out a run together.
#[derive(Clone)]
pub struct Hosts {
    /// How many there are, and which of them this is.
    pub place: HostPlace,
    /// How they lie on machines.
    pub machines: Machines,
    /// Way to the others.
    pub link: Arc<dyn HostLink>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("place", &self.place).field("machines", &self.machines).finish_non_exhaustive()
    }
}

/// Hosts that see nobody else: what a single one says is all that is said.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOthers;

impl HostLink for NoOthers {
    fn meet(&self, _meeting: &str, said: &[u64]) -> Result<Met, Error> {
        Ok(Met::alone(said))
    }
}

/// File systems whose files other machines see too, by their types in `/proc/self/mountinfo`.
const NETWORK_FILESYSTEMS: &[&str] = &[
    "nfs", "nfs4", "lustre", "beegfs", "ceph", "fuse.ceph", "fuse.ceph-fuse", "gpfs", "pvfs2", "cifs", "smb3", "9p", "afs", "ocfs2",
    "gfs2", "fuse.glusterfs", "fuse.sshfs", "fuse.daos", "fuse.dfuse", "fuse.juicefs", "wekafs", "panfs", "orangefs", "fhgfs",
];

/// Whether a path lies on a file system that other machines see too. Of a path that is to be made its nearest directory counts.
#[must_use]
pub fn is_on_network(path: &Path) -> bool {
    let place = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = place.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    let facts = TargetEnvironment::gather(there).filesystem;
    facts.is_some_and(|facts| NETWORK_FILESYSTEMS.contains(&facts.bottom().kind.as_str()))
}

/// Refuses `--host-targets` where one process carries a spec out alone.
///
/// # Errors
/// Bad usage.
pub fn check_alone(spec: &Spec) -> Result<(), Error> {
    if spec.place.is_none() && spec.host_targets.is_some() {
        return Err(Error::usage("plan", "--host-targets is of runs by many hosts: give --hosts too, or leave it out"));
    }
    Ok(())
}

/// The place of this host among those that carry a spec out together, with whether they see the same files at the paths of it: as it says, or
/// found out by how the hosts lie on machines and by the file systems. None where one process carries it out alone.
///
/// # Errors
/// Bad usage where it cannot be told.
pub fn place_at_paths<'a>(
    hosts: Option<&Hosts>,
    spec: &Spec,
    paths: impl IntoIterator<Item = &'a Path>,
) -> Result<Option<HostPlace>, Error> {
    check_alone(spec)?;
    let Some(place) = spec.place else { return Ok(None) };
    let machines = hosts.map(|hosts| hosts.machines).unwrap_or_default();
    let targets = match (spec.host_targets, machines) {
        (Some(said), _) => said,
        (None, Machines::One) => HostTargets::Shared,
        (None, _) => {
            let on_network: Vec<bool> = paths.into_iter().map(is_on_network).collect();
            let (all, any) = (on_network.iter().all(|is| *is), on_network.iter().any(|is| *is));
            match machines {
                _ if all => HostTargets::Shared,
                Machines::Each if !any => HostTargets::Own,
                _ => return Err(untold()),
            }
        }
    };
    Ok(Some(HostPlace { targets, ..place }))
}

/// The place of this host where the target of a spec is a store that a process opens by itself, in a directory: one process alone can have it
/// open, so each host has its own. None where one process carries the spec out alone.
///
/// # Errors
/// Bad usage where the hosts would open the same.
pub fn place_at_store(hosts: Option<&Hosts>, spec: &Spec, directory: &Path) -> Result<Option<HostPlace>, Error> {
    check_alone(spec)?;
    let Some(place) = spec.place else { return Ok(None) };
    let machines = hosts.map(|hosts| hosts.machines).unwrap_or_default();
    let is_own = match (spec.host_targets, machines) {
        (Some(HostTargets::Shared), _) | (_, Machines::One) => false,
        (Some(HostTargets::Own), _) => true,
        (None, Machines::Each) => !is_on_network(directory),
        (None, Machines::Mixed) => false,
    };
    if !is_own {
        return Err(Error::usage("plan", "one process alone can have the store in a directory open, and several hosts would open it")
            .with("directory", directory.display())
            .remedy("serve it (strata engine --pool POOL --dir DIR) and give engine://HOST:PORT/POOL, or give each host a machine and a directory of its own (--host-targets own)"));
    }
    Ok(Some(HostPlace { targets: HostTargets::Own, ..place }))
}

/// The place of this host where the target of a spec is a service that all hosts reach, unless it says that each has its own. None where one process
/// carries the spec out alone.
///
/// # Errors
/// Bad usage.
pub fn place_at_service(spec: &Spec) -> Result<Option<HostPlace>, Error> {
    check_alone(spec)?;
    let targets = spec.host_targets.unwrap_or(HostTargets::Shared);
    Ok(spec.place.map(|place| HostPlace { targets, ..place }))
}

fn untold() -> Error {
    Error::usage("plan", "whether the hosts see the same files at the targets cannot be told")
        .remedy("say it: --host-targets shared, or --host-targets own")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(machines: Machines) -> Hosts {
        Hosts { place: HostPlace { rank: 0, hosts: 2, ..HostPlace::default() }, machines, link: Arc::new(NoOthers) }
    }

    #[test]
    fn targets_are_shared_where_hosts_see_the_same() {
        let local = std::env::temp_dir();
        let mut spec = Spec { place: Some(hosts(Machines::One).place), ..Spec::default() };
        let find = |machines, spec: &Spec| {
            let place = place_at_paths(Some(&hosts(machines)), spec, [local.as_path()])?;
            Ok::<_, Error>(place.map(|place| place.targets))
        };
        assert_eq!(find(Machines::One, &spec).expect("told"), Some(HostTargets::Shared));
        assert_eq!(find(Machines::Each, &spec).expect("told"), Some(HostTargets::Own));
        let error = find(Machines::Mixed, &spec).expect_err("not told").to_string();
        assert!(error.contains("--host-targets shared"), "{error}");
        spec.host_targets = Some(HostTargets::Own);
        assert_eq!(find(Machines::One, &spec).expect("said"), Some(HostTargets::Own));
        spec.place = None;
        let error = find(Machines::One, &spec).expect_err("alone").to_string();
        assert!(error.contains("--hosts"), "{error}");
        assert_eq!(place_at_paths(None, &Spec::default(), [local.as_path()]).expect("alone"), None);
    }
}
