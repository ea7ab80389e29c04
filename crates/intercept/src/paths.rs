//! From paths of the program to entries of a file system.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dfs::{Attributes, Errno, FileKind, FileSystem, Inode};

use crate::hooks::kernel;
use crate::{permission, state, views};

/// Time for which a directory that was found is used without looking again: that of the kernel's own entries.
const LIFETIME: Duration = Duration::from_secs(1);
/// Directories that are remembered.
const REMEMBERED_MAX: usize = 4096;
/// Symbolic links on the way to one file, as the kernel has it.
const LINKS_MAX: usize = 40;

/// A directory that a reference is held to.
pub(crate) struct Directory {
    pub(crate) file_system: Arc<dyn FileSystem>,
    pub(crate) inode: Inode,
    pub(crate) attributes: Attributes,
    until: Instant,
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.inode != Inode::ROOT {
            self.file_system.forget(self.inode, 1);
        }
    }
}

/// A file that a reference is held to, which its receiver gives back.
pub(crate) struct Referenced {
    pub(crate) file_system: Arc<dyn FileSystem>,
    pub(crate) inode: Inode,
}

/// Where a path leads: an entry of a directory, there or not.
pub(crate) struct Located {
    pub(crate) mount: usize,
    /// The directory; none for the root itself.
    pub(crate) parent: Option<Arc<Directory>>,
    pub(crate) name: Vec<u8>,
    /// Its attributes, where there is such an entry.
    pub(crate) found: Option<Attributes>,
    pub(crate) file_system: Arc<dyn FileSystem>,
    /// A slash at the end of the path says that it is a directory.
    pub(crate) is_directory_meant: bool,
}

/// Why a path is not walked to its end.
pub(crate) enum Stop {
    /// It leads out of the mount, or to what the kernel decides.
    Leave,
    /// The walk fails so.
    Fail(Errno),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        // The kernel's way to the file system may still be there.
        if error == Errno::IO { Self::Leave } else { Self::Fail(error) }
    }
}

/// Absolute path of a descriptor, as the kernel knows it; none for what has none.
pub(crate) fn of_descriptor(descriptor: c_int) -> Option<Vec<u8>> {
    let path = kernel::read_link(&format!("/proc/self/fd/{descriptor}"))?;
    (path.first() == Some(&b'/') && !path.ends_with(b" (deleted)")).then_some(path)
}

fn parts_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

/// Whether a path can lie in a mount, judged without memory of its own: calls on all other paths are as safe in a signal handler as without this
/// library.
fn may_lie_in_a_mount(base: &[u8], path: &[u8]) -> bool {
    let parts = || parts_of(base).chain(parts_of(path));
    parts().any(|part| part == b"..")
        || views::all().iter().any(|view| {
            let mut parts = parts();
            let mount = view.mount.directory.as_os_str().as_encoded_bytes();
            parts_of(mount).all(|of_mount| parts.next() == Some(of_mount))
        })
}

/// The mount and the names in it that a path of the program leads to, seen from a directory's descriptor or `AT_FDCWD`.
pub(crate) fn classify(directory: c_int, path: &[u8]) -> Option<(usize, Vec<Vec<u8>>)> {
    let mut room = [0_u8; libc::PATH_MAX as usize];
    let of_directory;
    let base = match path.first()? {
        b'/' => &[][..],
        _ if directory == libc::AT_FDCWD => kernel::working_directory(&mut room)?,
        _ => {
            of_directory = of_descriptor(directory)?;
            &of_directory
        }
    };
    if !may_lie_in_a_mount(base, path) {
        return None;
    }
    // Names of the base are those of directories; `..` behind a name of the path needs a look at that name.
    let mut sure: Vec<&[u8]> = parts_of(base).collect();
    let mut rest = parts_of(path).peekable();
    while rest.next_if(|part| *part == b"..").is_some() {
        sure.pop();
    }
    let mut whole = Vec::new();
    let mut found = None;
    let mut all: Vec<Vec<u8>> = sure.iter().map(|part| part.to_vec()).collect();
    let sure_count = all.len();
    all.extend(rest.map(<[u8]>::to_vec));
    // The shortest beginning that is a mount: `..` before it would need a look at names outside.
    for (count, part) in (1..).zip(&all) {
        if part == b".." && count > sure_count {
            return None;
        }
        whole.push(b'/');
        whole.extend_from_slice(part);
        let is_mount =
            views::all().iter().position(|view| view.mount.directory.as_os_str().as_encoded_bytes() == whole);
        if let Some(number) = is_mount {
            found = Some((number, count));
            break;
        }
    }
    let (number, count) = found?;
    let names = all.split_off(count);
    (!views::is_hole(number, &names)).then_some((number, names))
}

fn root(mount: usize) -> Result<Arc<Directory>, Stop> {
    remembered(mount, &[], || {
        let file_system = views::file_system(mount).ok_or(Stop::Leave)?;
        let attributes = file_system.attributes(Inode::ROOT)?;
        Ok(Arc::new(Directory {
            file_system,
            inode: Inode::ROOT,
            attributes,
            until: Instant::now() + LIFETIME,
        }))
    })
}

/// The directory at these names, remembered or found anew.
fn remembered(
    mount: usize,
    names: &[Vec<u8>],
    find: impl FnOnce() -> Result<Arc<Directory>, Stop>,
) -> Result<Arc<Directory>, Stop> {
    let key = (mount, names.join(&b'/'));
    let known = state::read().known_directories.get(&key).cloned();
    if let Some(known) = known.filter(|known| known.until > Instant::now()) {
        return Ok(known);
    }
    let new = find()?;
    let mut state = state::write();
    let mut old = Vec::new();
    if state.known_directories.len() >= REMEMBERED_MAX {
        old.extend(std::mem::take(&mut state.known_directories).into_values());
    }
    old.extend(state.known_directories.insert(key, Arc::clone(&new)));
    drop(state);
    // References are given back without the lock.
    drop(old);
    Ok(new)
}

/// Forgets directories that were found: one of them was moved, removed or changed.
pub(crate) fn forget_directories() {
    let old = std::mem::take(&mut state::write().known_directories);
    drop(old);
}

/// Walks to the entry that a path names; a symbolic link at the end is followed or not.
pub(crate) fn walk(directory: c_int, path: &[u8], follow: bool) -> Result<Located, Stop> {
    let (mount, names) = classify(directory, path).ok_or(Stop::Leave)?;
    let is_directory_meant = path.ends_with(b"/") || path.ends_with(b"/.") || path == b".";
    Walk { mount, directories: vec![root(mount)?], names: Vec::new(), links: 0 }.finish(
        names.into(),
        follow || is_directory_meant,
        is_directory_meant,
    )
}

/// Looks a file up by names without symbolic links among them.
pub(crate) fn look_up(mount: usize, names: Vec<Vec<u8>>) -> Option<Referenced> {
    let walk = Walk { mount, directories: vec![root(mount).ok()?], names: Vec::new(), links: 0 };
    let place = walk.finish(names.into(), false, false).ok()?;
    let parent = place.parent?;
    let found = parent.file_system.look_up(parent.inode, &place.name).ok()?;
    Some(Referenced { file_system: place.file_system, inode: found.inode })
}

/// The root of a mount, which needs no reference.
pub(crate) fn root_of(mount: usize) -> Option<Referenced> {
    let root = root(mount).ok()?;
    Some(Referenced { file_system: Arc::clone(&root.file_system), inode: Inode::ROOT })
}

struct Walk {
    mount: usize,
    /// From the root to where the walk is.
    directories: Vec<Arc<Directory>>,
    /// Names of all but the root.
    names: Vec<Vec<u8>>,
    links: usize,
}

impl Walk {
    fn here(&self) -> Result<&Arc<Directory>, Stop> {
        self.directories.last().ok_or(Stop::Leave)
    }

    fn finish(
        mut self,
        mut rest: VecDeque<Vec<u8>>,
        follow: bool,
        is_directory_meant: bool,
    ) -> Result<Located, Stop> {
        while let Some(part) = rest.pop_front() {
            if part == b".." {
                self.directories.pop();
                self.names.pop();
                // Above the root lies another file system.
                self.here()?;
                continue;
            }
            let here = Arc::clone(self.here()?);
            if !permission::allows(&here.attributes, permission::SEARCH) {
                return Err(Stop::Leave);
            }
            if rest.is_empty() {
                let found = match here.file_system.stat(here.inode, &part) {
                    Ok(found) => Some(found),
                    Err(Errno::NOENT) => None,
                    Err(error) => return Err(error.into()),
                };
                if follow && found.is_some_and(|found| found.kind == FileKind::Symlink) {
                    self.follow(&here, &part, &mut rest)?;
                    continue;
                }
                let file_system = Arc::clone(&here.file_system);
                let (mount, parent) = (self.mount, Some(here));
                return Ok(Located { mount, parent, name: part, found, file_system, is_directory_meant });
            }
            self.descend(&here, part, &mut rest)?;
        }
        self.at_directory(is_directory_meant)
    }

    /// The place of the directory where the walk has ended.
    fn at_directory(mut self, is_directory_meant: bool) -> Result<Located, Stop> {
        let here = Arc::clone(self.here()?);
        self.directories.pop();
        Ok(Located {
            mount: self.mount,
            parent: self.directories.pop(),
            name: self.names.pop().unwrap_or_default(),
            found: Some(here.file_system.attributes(here.inode)?),
            file_system: Arc::clone(&here.file_system),
            is_directory_meant,
        })
    }

    /// Goes into a directory, or along a symbolic link.
    fn descend(
        &mut self,
        here: &Arc<Directory>,
        part: Vec<u8>,
        rest: &mut VecDeque<Vec<u8>>,
    ) -> Result<(), Stop> {
        self.names.push(part);
        if views::is_hole(self.mount, &self.names) {
            return Err(Stop::Leave);
        }
        let part = self.names.last().map_or(&[][..], Vec::as_slice);
        let mut kind = FileKind::Directory;
        let found = remembered(self.mount, &self.names, || {
            let found = here.file_system.look_up(here.inode, part)?;
            kind = found.kind;
            let file_system = Arc::clone(&here.file_system);
            let until = Instant::now() + LIFETIME;
            let found = Directory { file_system, inode: found.inode, attributes: found, until };
            // What is none is given back at once, and not remembered.
            if kind == FileKind::Directory { Ok(Arc::new(found)) } else { Err(Stop::Fail(Errno::NOTDIR)) }
        });
        match found {
            Ok(found) => self.directories.push(found),
            Err(Stop::Fail(Errno::NOTDIR)) if kind == FileKind::Symlink => {
                let part = self.names.pop().unwrap_or_default();
                self.follow(here, &part, rest)?;
            }
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    /// Puts the target of a symbolic link before the rest of the way.
    fn follow(&mut self, here: &Directory, name: &[u8], rest: &mut VecDeque<Vec<u8>>) -> Result<(), Stop> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Stop::Fail(Errno::LOOP));
        }
        let link = here.file_system.look_up(here.inode, name)?;
        let target = here.file_system.read_link(link.inode);
        here.file_system.forget(link.inode, 1);
        let target = target?;
        if target.first() == Some(&b'/') {
            return Err(Stop::Leave);
        }
        for part in parts_of(&target).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(part.to_vec());
        }
        Ok(())
    }
}
