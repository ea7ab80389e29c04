//! Cores and NUMA nodes, and on which of them a thread may run.
#![allow(unsafe_code)]

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{memory, source};

/// Cores that an affinity mask has room for: more than any kernel is built for (8192).
const CORES_MAX: usize = 16_384;
const WORD_BITS: usize = u64::BITS as usize;

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Logical cores on it; none for a node of memory alone.
    pub cores: Vec<u32>,
    /// Memory on it, in bytes.
    pub memory_bytes: Option<u64>,
}

/// Parses a list of numbers such as `0-3,8,10-11` (cpuset(7), "List format", strides left aside).
///
/// `None` when it does not have that form, runs backwards or names a number of 16384 or more.
#[must_use]
pub fn parse_cpulist(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    let mut cores = Vec::new();
    if text.is_empty() {
        return Some(cores);
    }
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (parse_core(first)?, parse_core(last)?);
        if first > last {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

fn parse_core(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&core| digits && (core as usize) < CORES_MAX)
}

/// Logical cores that are online.
#[must_use]
pub fn online_cores() -> Option<Vec<u32>> {
    parse_cpulist(&source::text("/sys/devices/system/cpu/online")?)
}

/// All NUMA nodes; empty where the kernel knows of none.
#[must_use]
pub fn numa_nodes() -> Vec<NumaNode> {
    let online = source::text("/sys/devices/system/node/online");
    let nodes = online.and_then(|text| parse_cpulist(&text)).unwrap_or_default();
    nodes.into_iter().map(numa_node).collect()
}

fn numa_node(node: u32) -> NumaNode {
    let directory = format!("/sys/devices/system/node/node{node}");
    let cores = source::text(format!("{directory}/cpulist")).and_then(|text| parse_cpulist(&text));
    let memory = source::text(format!("{directory}/meminfo"));
    let memory_bytes = memory.and_then(|text| memory::parse_meminfo(&text).total_bytes);
    NumaNode { node, cores: cores.unwrap_or_default(), memory_bytes }
}

/// Logical cores of NUMA node `node`; `None` where there is no such node.
#[must_use]
pub fn cores_of_node(node: u32) -> Option<Vec<u32>> {
    numa_nodes().into_iter().find(|found| found.node == node).map(|found| found.cores)
}

/// Chooses the nodes that memory of the calling thread comes from: `mode` is one of the kernel's (`MPOL_DEFAULT` is 0, `MPOL_LOCAL` 4).
///
/// # Errors
/// As set_mempolicy(2): `EINVAL` for nodes without memory or outside the thread's cpuset, `ENOSYS` without support for NUMA.
pub fn set_memory_policy(mode: i32, nodes: &[u32]) -> io::Result<()> {
    let bits = nodes.iter().max().map_or(0, |node| *node as usize + 1);
    let mut mask = vec![0_u64; bits.div_ceil(WORD_BITS)];
    for node in nodes {
        mask[*node as usize / WORD_BITS] |= 1 << (*node as usize % WORD_BITS);
    }
    // The kernel takes one bit fewer than it is told of.
    let length = if mask.is_empty() { 0 } else { mask.len() * WORD_BITS + 1 };
    let pointer = if mask.is_empty() { std::ptr::null() } else { mask.as_ptr() };
    // SAFETY: the mask lives until the call returns and has as many bits as it is said to have.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::c_long::from(mode), pointer, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Where a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaPlace {
    /// The node that it is bound to, or that it runs on at the moment; none where the kernel knows of no nodes.
    pub node: Option<u32>,
    /// Whether all cores that it may run on are on that node.
    pub is_bound: bool,
    /// Nodes with cores that the machine has; 0 where the kernel knows of none.
    pub nodes: u32,
}

/// Where the calling thread runs: by the cores that it may run on, and while they are on several nodes by the core it is
/// on now.
#[must_use]
pub fn current_place() -> NumaPlace {
    place(&numa_nodes(), &current_affinity().unwrap_or_default(), current_core())
}

/// The node of a thread that may run on `allowed` and is on `core`.
#[must_use]
pub fn place(nodes: &[NumaNode], allowed: &[u32], core: Option<u32>) -> NumaPlace {
    let node_of = |core: &u32| nodes.iter().find(|node| node.cores.contains(core)).map(|node| node.node);
    let mut homes: Vec<Option<u32>> = allowed.iter().map(node_of).collect();
    homes.sort_unstable();
    homes.dedup();
    let with_cores = nodes.iter().filter(|node| !node.cores.is_empty()).count() as u32;
    match homes[..] {
        [Some(node)] => NumaPlace { node: Some(node), is_bound: true, nodes: with_cores },
        _ => NumaPlace { node: core.as_ref().and_then(node_of), is_bound: false, nodes: with_cores },
    }
}

fn current_core() -> Option<u32> {
    // SAFETY: takes no arguments and touches no memory of ours.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Lets the calling thread run on `core` alone.
///
/// # Errors
/// The kernel's: `EINVAL` when the core is offline, absent or outside this process's cpuset.
pub fn pin_current_thread(core: u32) -> io::Result<()> {
    set_current_affinity(&[core])
}

/// Lets the calling thread run on `cores` alone.
///
/// # Errors
/// As [`pin_current_thread`]; `EINVAL` too when a core's number is beyond what any kernel has.
pub fn set_current_affinity(cores: &[u32]) -> io::Result<()> {
    let mut mask = [0u64; CORES_MAX / WORD_BITS];
    for &core in cores {
        let word = mask.get_mut(core as usize / WORD_BITS);
        let word = word.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word |= 1 << (core as usize % WORD_BITS);
    }
    // SAFETY: the kernel reads `size_of_val(&mask)` bytes of `mask`, which outlives the call; 0 is the
    // calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Logical cores that the calling thread may run on.
///
/// # Errors
/// The kernel's.
pub fn current_affinity() -> io::Result<Vec<u32>> {
    let mut mask = [0u64; CORES_MAX / WORD_BITS];
    // SAFETY: the kernel writes at most `size_of_val(&mask)` bytes to `mask`; 0 is the calling thread.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let allowed = |core: &u32| mask[*core as usize / WORD_BITS] >> (*core as usize % WORD_BITS) & 1 == 1;
    Ok((0..CORES_MAX as u32).filter(allowed).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpulist_known_answers() {
        assert_eq!(parse_cpulist("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_cpulist("5,1,1-2"), Some(vec![1, 2, 5]));
        assert_eq!(parse_cpulist(""), Some(vec![]));
        for bad in ["a", "1-", "-1", "3-1", "1,,2", "1-2-3", "+1", "16384", "0-4294967295"] {
            assert_eq!(parse_cpulist(bad), None, "{bad}");
        }
    }

    #[test]
    fn pins_and_reads_back() {
        std::thread::spawn(|| {
            let allowed = current_affinity().unwrap();
            let core = *allowed.last().unwrap();
            pin_current_thread(core).unwrap();
            assert_eq!(current_affinity().unwrap(), [core]);
            set_current_affinity(&allowed).unwrap();
            assert_eq!(current_affinity().unwrap(), allowed);
        })
        .join()
        .unwrap();
        assert_eq!(pin_current_thread(16_383).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(pin_current_thread(u32::MAX).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn a_thread_is_placed_by_its_cores() {
        let node = |node, cores: &[u32]| NumaNode { node, cores: cores.to_vec(), memory_bytes: None };
        let nodes = [node(0, &[0, 1]), node(1, &[2, 3]), node(2, &[])];
        let at = |allowed: &[u32], core| place(&nodes, allowed, core);
        assert_eq!(at(&[2, 3], Some(2)), NumaPlace { node: Some(1), is_bound: true, nodes: 2 });
        assert_eq!(at(&[0, 1, 2], Some(2)), NumaPlace { node: Some(1), is_bound: false, nodes: 2 });
        assert_eq!(at(&[0, 3], None), NumaPlace { node: None, is_bound: false, nodes: 2 });
        assert_eq!(at(&[0, 9], Some(0)), NumaPlace { node: Some(0), is_bound: false, nodes: 2 });
        let unknown = NumaPlace { node: None, is_bound: false, nodes: 0 };
        assert_eq!(place(&[], &[0, 1], Some(0)), unknown);
        let here = current_place();
        assert_eq!(here.nodes as usize, numa_nodes().iter().filter(|node| !node.cores.is_empty()).count());
        assert_eq!(here.node.is_some(), here.nodes > 0);
    }

    #[test]
    fn nodes_cover_the_online_cores() {
        let nodes = numa_nodes();
        if nodes.is_empty() {
            return;
        }
        let mut cores: Vec<u32> = nodes.iter().flat_map(|node| node.cores.clone()).collect();
        cores.sort_unstable();
        assert_eq!(Some(cores), online_cores());
        assert_eq!(cores_of_node(nodes[0].node), Some(nodes[0].cores.clone()));
        assert_eq!(cores_of_node(9999), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,40}", list in "[0-9,-]{0,40}") {
            let _ = parse_cpulist(&text);
            let _ = parse_cpulist(&list);
        }

        #[test]
        fn printed_lists_parse_back(cores in proptest::collection::btree_set(0u32..16_384, 0..50)) {
            let cores: Vec<u32> = cores.into_iter().collect();
            let text = cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            prop_assert_eq!(parse_cpulist(&text), Some(cores));
        }
    }
}
