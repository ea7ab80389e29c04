//! Names of the operations of one worker: the directory that each is relative to, and the bytes of its name and second name.

use std::ffi::CStr;
use std::sync::Arc;

use rustix::io::Errno;

use crate::operation::{FsOperation, NameKind};
use crate::plan::{FsPlan, PathForm};
use crate::set::Shape;
use crate::stores::{TOP, file_of, is_store};

/// Directories that a worker keeps open at most.
const DIRECTORIES_MAX: usize = 1024;

/// Rank and node of a directory that is open, and the directory.
type OpenDirectory<D> = ((u32, u64), D);

/// Directory that a name is relative to.
#[derive(Clone, Copy)]
pub(crate) enum At {
    /// Root of a target.
    Root(usize),
    /// Place in the cache of open directories.
    Open(usize),
}

/// Names of a worker's operations, and the directories that it keeps open; `D` is an open directory.
pub(crate) struct Names<D> {
    plan: Arc<FsPlan>,
    /// Root of each target: the directory itself, or of files without a tree the one that they lie in.
    roots: Vec<D>,
    /// Names of the one file of each rank, for sets that are no tree; NUL-terminated.
    files: Vec<Vec<u8>>,
    directories: Vec<Option<OpenDirectory<D>>>,
    /// A directory that makes room for another is not in use: nothing is in flight.
    replaces: bool,
    /// First and second name, NUL-terminated.
    name: Vec<u8>,
    second: Vec<u8>,
}

impl<D> Names<D> {
    /// Those of a plan; `roots` are open, one a target. With `replaces`, directories that are open make room for others.
    pub(crate) fn new(plan: &Arc<FsPlan>, roots: Vec<D>, replaces: bool) -> Self {
        let files = match plan.set.shape {
            Shape::Tree => Vec::new(),
            Shape::Private | Shape::Shared => (0..plan.set.ranks).map(|rank| file_name(plan, rank)).collect(),
        };
        let directories =
            plan.set.nodes().saturating_mul(u64::from(plan.set.trees())).clamp(1, DIRECTORIES_MAX as u64);
        Self {
            plan: Arc::clone(plan),
            roots,
            files,
            directories: (0..directories).map(|_| None).collect(),
            replaces,
            name: Vec::with_capacity(4096),
            second: Vec::with_capacity(4096),
        }
    }

    /// Makes the name of an operation, and its second name; the directory that they are relative to. `open` opens one below another.
    ///
    /// # Errors
    /// Directories that cannot be opened.
    pub(crate) fn locate(
        &mut self,
        operation: &FsOperation,
        open: &impl Fn(&D, &CStr) -> Result<D, Errno>,
    ) -> Result<At, Errno> {
        let FsOperation { rank, item, kind, .. } = *operation;
        let root = rank as usize % self.roots.len();
        let is_in_tree = self.plan.set.shape == Shape::Tree && kind != NameKind::Node;
        let at = if is_in_tree && self.plan.paths == PathForm::Relative {
            self.open_directory(root, rank, self.plan.set.node_of(item), open)?.map(At::Open)
        } else {
            None
        };
        self.name.clear();
        match at {
            Some(_) => self.plan.set.push_name(kind, rank, item, &mut self.name),
            None => self.push_path(operation),
        }
        self.name.push(0);
        self.second.clear();
        self.second.extend_from_slice(&self.name[..self.name.len() - 1]);
        self.second.extend_from_slice(b"~\0");
        Ok(at.unwrap_or(At::Root(root)))
    }

    /// Adds the path of an operation below the root of its target.
    fn push_path(&mut self, operation: &FsOperation) {
        let FsOperation { rank, item, kind, .. } = *operation;
        let set = &self.plan.set;
        match (set.shape, kind) {
            (Shape::Tree, NameKind::Node) => set.push_node(rank, item, &mut self.name),
            (Shape::Tree, _) => {
                set.push_node(rank, set.node_of(item), &mut self.name);
                self.name.push(b'/');
                set.push_name(kind, rank, item, &mut self.name);
            }
            _ => self.name.extend_from_slice(&self.files[rank as usize]),
        }
    }

    /// Makes the path of an operation below the root of its target the name; the number of the target.
    pub(crate) fn locate_below_root(&mut self, operation: &FsOperation) -> usize {
        self.name.clear();
        self.push_path(operation);
        self.name.push(0);
        operation.rank as usize % self.roots.len()
    }

    /// Opens a directory of the tree, or finds it among those that are open; none where it has no place among them.
    fn open_directory(
        &mut self,
        root: usize,
        rank: u32,
        node: u64,
        open: &impl Fn(&D, &CStr) -> Result<D, Errno>,
    ) -> Result<Option<usize>, Errno> {
        let rank = if self.plan.set.shared_tree { root as u32 } else { rank };
        let key = (rank, node);
        let number = u64::from(rank).wrapping_mul(self.plan.set.nodes()).wrapping_add(node);
        let place = (number % self.directories.len() as u64) as usize;
        match &self.directories[place] {
            Some((known, _)) if *known == key => return Ok(Some(place)),
            Some(_) if !self.replaces => return Ok(None),
            _ => {}
        }
        self.directories[place] = None;
        self.second.clear();
        self.plan.set.push_node(rank, node, &mut self.second);
        self.second.push(0);
        let opened = open(&self.roots[root], c_name(&self.second)?)?;
        self.directories[place] = Some((key, opened));
        Ok(Some(place))
    }

    /// A directory that is open.
    ///
    /// # Errors
    /// `EBADF` where it is not.
    pub(crate) fn directory(&self, at: At) -> Result<&D, Errno> {
        match at {
            At::Root(root) => self.roots.get(root).ok_or(Errno::BADF),
            At::Open(place) => self.directories[place].as_ref().map(|(_, open)| open).ok_or(Errno::BADF),
        }
    }

    /// The name that was made last.
    ///
    /// # Errors
    /// `EINVAL` where it holds a NUL.
    pub(crate) fn name(&self) -> Result<&CStr, Errno> {
        c_name(&self.name)
    }

    /// The second name that was made last.
    ///
    /// # Errors
    /// As [`Names::name`].
    pub(crate) fn second(&self) -> Result<&CStr, Errno> {
        c_name(&self.second)
    }

    /// The last part of the name: what a symbolic link in its directory says.
    ///
    /// # Errors
    /// As [`Names::name`].
    pub(crate) fn last_part(&self) -> Result<&CStr, Errno> {
        let begin = self.name.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        c_name(&self.name[begin..])
    }
}

/// Name of the one file of a rank below the root of its target.
fn file_name(plan: &FsPlan, rank: u32) -> Vec<u8> {
    let target = plan.target(rank);
    if is_store(target) {
        return format!("{TOP}/{}", file_of(&plan.set, rank)).into_bytes();
    }
    let path = plan.set.file_path(target, rank);
    let below =
        path.strip_prefix(root_of(target)).map_or(path.as_str(), |below| below.trim_start_matches('/'));
    below.as_bytes().to_vec()
}

/// Directory that the files of a target without a tree lie in, as typed.
pub(crate) fn root_of(target: &str) -> &str {
    match target.rsplit_once('/') {
        None => "",
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
    }
}

fn c_name(bytes: &[u8]) -> Result<&CStr, Errno> {
    CStr::from_bytes_with_nul(bytes).map_err(|_| Errno::INVAL)
}
