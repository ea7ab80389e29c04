//! Which processors a worker may run on.

use driver::Error;
use workload::plan::LoadPlan;
use workload::spec::CoresPolicy;

/// Whether the workers of a load can run where it says: for plans to be refused before anything is touched.
///
/// # Errors
/// Bad usage: a processor or NUMA node, of the workers or of their memory, that is not there or not allowed to this process.
pub fn check_placement(load: &LoadPlan) -> Result<(), Error> {
    let nodes: Vec<u32> = host::topology::numa_nodes().iter().map(|node| node.node).collect();
    let asked = load.control.memory.iter().flat_map(|memory| &memory.nodes);
    if let Some(missing) = asked.filter(|_| !nodes.is_empty()).find(|node| !nodes.contains(node)) {
        let list: Vec<_> = nodes.iter().map(u32::to_string).collect();
        return Err(Error::usage("memory", format!("there is no NUMA node {missing} to take memory from"))
            .remedy(format!("this machine has {}", list.join(", "))));
    }
    Placement::plan(load).map(|_| ())
}

/// Processors of one worker; empty: anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    cores: Vec<u32>,
}

impl Placement {
    /// The place of each worker, round robin over `--cores` or `--numa`; shared processors are one place.
    pub(crate) fn plan(load: &LoadPlan) -> Result<Vec<Self>, Error> {
        let mut places = Vec::new();
        match load.cores_policy {
            CoresPolicy::Split => {
                places.extend(load.cores.iter().map(|core| Self { cores: vec![*core] }));
            }
            CoresPolicy::Shared if load.cores.is_empty() => {}
            CoresPolicy::Shared => {
                let mut cores = load.cores.clone();
                cores.sort_unstable();
                cores.dedup();
                places.push(Self { cores });
            }
        }
        for node in &load.numa {
            let cores =
                host::topology::cores_of_node(*node).filter(|cores| !cores.is_empty()).ok_or_else(|| {
                    let nodes: Vec<_> =
                        host::topology::numa_nodes().iter().map(|node| node.node.to_string()).collect();
                    Error::usage("pin", format!("there is no NUMA node {node} with CPUs"))
                        .remedy(format!("this machine has {}", nodes.join(", ")))
                })?;
            places.push(Self { cores });
        }
        if places.is_empty() {
            places.push(Self::default());
        }
        Self::check(&places)?;
        Ok(places.iter().cycle().take(load.threads as usize).cloned().collect())
    }

    fn check(places: &[Self]) -> Result<(), Error> {
        let allowed = host::topology::current_affinity().unwrap_or_default();
        let missing = places.iter().flat_map(|place| &place.cores).find(|core| !allowed.contains(core));
        match missing {
            Some(core) if !allowed.is_empty() => {
                let list: Vec<_> = allowed.iter().map(u32::to_string).collect();
                Err(Error::usage("pin", format!("CPU {core} does not exist, or this process may not use it"))
                    .remedy(format!("use CPUs from {}", list.join(","))))
            }
            _ => Ok(()),
        }
    }

    /// Moves the calling thread there.
    pub(crate) fn apply(&self) -> Result<(), Error> {
        if self.cores.is_empty() {
            return Ok(());
        }
        host::topology::set_current_affinity(&self.cores).map_err(|error| {
            Error::system("pin", "cannot pin the worker", error).with("cores", format!("{:?}", self.cores))
        })
    }

    /// The one processor, where it is pinned to one.
    pub(crate) fn core(&self) -> Option<usize> {
        match self.cores[..] {
            [core] => Some(core as usize),
            _ => None,
        }
    }
}
