//! Hosts that share their targets: the first makes what the trees of all lie in, the others look for it, and each has the trees of its own workers.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use driver::Error;
use layer::{MARK, MadeFile, identity_of};
use rustix::io::Errno;
use units::path_of;

use super::{Made, There, absolute, failed, foreign};
use crate::phases::FsOp;
use crate::plan::FsPlan;
use crate::progress::Progress;

/// Ranks whose trees this host makes and removes: of hosts that share their targets those of its own workers, and of a tree that all share that of
/// the first host. Where it is alone with its targets, all of them.
pub(crate) fn trees_here(plan: &FsPlan) -> Vec<u32> {
    let all = 0..plan.set.trees().max(plan.targets.len() as u32);
    if !plan.has_guests() {
        return all.collect();
    }
    match (plan.set.shared_tree, plan.load.is_guest()) {
        (true, false) => all.collect(),
        (true, true) => Vec::new(),
        (false, _) => (0..plan.load.threads).map(|worker| plan.load.worker_by_rank(worker)).collect(),
    }
}

/// Refuses a target at which this host does not see what the first one has made.
pub(crate) fn unseen(path: &str) -> Error {
    Error::usage("files", "another host of the run created a directory that this host does not see")
        .with("path", path)
        .remedy("use a directory that all hosts see, or --host-targets own if each host has its own")
}

/// Whether the file system of a path keeps no marks: then the first host alone can tell what is strata's.
fn keeps_no_marks(path: &Path) -> bool {
    matches!(rustix::fs::lgetxattr(path, MARK, &mut [0u8; 64][..]), Err(Errno::OPNOTSUPP))
}

/// Makes the directories of the trees that this host is to make, where no phase has made them.
pub(super) fn make_trees(plan: &FsPlan, makes: bool, progress: &Progress) -> Result<(), Error> {
    let has_tree = progress.has_tree.swap(makes, Ordering::Relaxed);
    if !makes || plan.operation == FsOp::TreeCreate || has_tree {
        return Ok(());
    }
    trees_here(plan).into_iter().try_for_each(|rank| make_nodes(plan, rank))
}

/// Makes the directories of the tree of a rank.
fn make_nodes(plan: &FsPlan, rank: u32) -> Result<(), Error> {
    for node in 0..plan.set.nodes() {
        let mut path = plan.target(rank).as_bytes().to_vec();
        path.push(b'/');
        plan.set.push_node(rank, node, &mut path);
        let path = String::from_utf8_lossy(&path).into_owned();
        let at = path_of(&path).into_owned();
        match std::fs::create_dir(&at) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("cannot create the directory", &at)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Made {
    /// Looks whether what the first host has made is there, or what was there before is strata's, and notes the trees of this host's workers.
    ///
    /// # Errors
    /// [`driver::ErrorKind::Unsafe`] for what is others', bad usage for what is not seen.
    pub(super) fn look_at_trees(
        &mut self,
        plan: &FsPlan,
        set: usize,
        makes: bool,
        destroy_data: bool,
    ) -> Result<(), Error> {
        let own = trees_here(plan);
        let ranks = if own.is_empty() { (0..plan.targets.len() as u32).collect() } else { own.clone() };
        let mut tops = Vec::new();
        for rank in ranks {
            let target = plan.target(rank);
            let top = if plan.set.is_flat() {
                target.to_owned()
            } else {
                format!("{target}/{}", plan.set.top(rank))
            };
            match self.look(&top)? {
                There::Free if makes => return Err(unseen(&top)),
                There::Free if plan.ignore_missing && plan.operation.removes() => {}
                There::Free => {
                    return Err(Error::usage("files", "no tree exists to change")
                        .with("path", &top)
                        .remedy("create one with --op tree-create,create"));
                }
                There::Foreign if !destroy_data && !keeps_no_marks(&path_of(&top)) => {
                    return Err(foreign(&top));
                }
                There::Own | There::Foreign => tops.push(top),
            }
        }
        if makes && !own.is_empty() && !plan.set.is_flat() {
            self.note_trees(set, own, &tops)?;
        }
        Ok(())
    }

    /// Notes the trees of this host's workers, which lie in directories that stay when they are removed.
    fn note_trees(&mut self, set: usize, ranks: Vec<u32>, tops: &[String]) -> Result<(), Error> {
        if self.sets[set].ranks == ranks {
            return Ok(());
        }
        let is_of_run = |top: &&String| {
            let mut mark = [0u8; 64];
            let length = rustix::fs::lgetxattr(&*path_of(top), MARK, &mut mark[..]);
            length.is_ok_and(|length| mark[..length] == *self.run_id.as_bytes())
        };
        let mut taken: Vec<MadeFile> = Vec::new();
        for top in tops.iter().filter(is_of_run) {
            let path = absolute(top);
            if taken.iter().all(|known| known.path != path) {
                let found = std::fs::symlink_metadata(path_of(top)).ok();
                taken.push(MadeFile { path, identity: found.map(|metadata| identity_of(&metadata)) });
            }
        }
        (self.sets[set].ranks, self.sets[set].taken) = (ranks, taken);
        self.note()
    }
}
