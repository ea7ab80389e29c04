//! Random calls, on a file system over a store and on a directory of this machine: results and trees are the same.

use std::fmt::Debug;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use dfs::{Errno, FileKind, FileSystem, Handle, Inode, NewNode, OpenFlags, RenameFlags, SetAttributes};
use rustix::fs::{self as system, AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags};
use testkit::content;
use units::random::Random;

use super::support::{Ground, OWNER, Paths, READ_WRITE, scratch};

const CALLS: usize = 500;
const SIZE_MAX: u64 = 20_000;
const OPEN: usize = 4;

/// The same file on both sides.
struct Pair {
    handle: Handle,
    inode: Inode,
    file: OwnedFd,
}

pub(crate) struct Both<'a> {
    paths: Paths<'a>,
    real: PathBuf,
    random: Random,
    open: Vec<Pair>,
    log: Vec<String>,
    has_nodes: bool,
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        other => panic!("{other:?}"),
    }
}

/// Errors that POSIX leaves the choice between.
fn alike(error: Errno) -> Errno {
    match error {
        Errno::NOTEMPTY => Errno::ISDIR,
        other => other,
    }
}

impl<'a> Both<'a> {
    pub(crate) fn new(files: &'a dyn FileSystem, real: &Path, seed: u64) -> Self {
        let random = Random::new(seed);
        Self {
            paths: Paths(files),
            real: real.to_path_buf(),
            random,
            open: Vec::new(),
            log: Vec::new(),
            has_nodes: true,
        }
    }

    fn pick(&mut self, below: u64) -> u64 {
        self.random.below(below)
    }

    /// Symbolic links have names of their own, so that none is on the way to another name.
    fn path(&mut self, last: &[&str]) -> String {
        let mut path = String::new();
        for _ in 0..self.pick(3) {
            path.push_str(&format!("d{}/", self.pick(2)));
        }
        let kind = last[self.pick(last.len() as u64) as usize];
        format!("{path}{kind}{}", self.pick(3))
    }

    fn real(&self, path: &str) -> PathBuf {
        self.real.join(path)
    }

    fn same<T: PartialEq + Debug>(&mut self, call: String, own: Result<T, Errno>, real: Result<T, Errno>) {
        let is_same = match (&own, &real) {
            (Err(own), Err(real)) => alike(*own) == alike(*real),
            (own, real) => own == real,
        };
        self.log.push(format!("{call}: {real:?}"));
        assert!(is_same, "{call}: {own:?}, and the system says {real:?}, after\n{}", self.log.join("\n"));
    }

    fn step(&mut self) {
        match self.pick(24) {
            0..=2 => self.open_one(),
            3..=4 => self.make_directory(),
            5 => self.make_other(),
            6..=7 => self.remove(),
            8..=11 => self.rename(),
            12..=13 => self.look(),
            14..=20 => self.on_open(),
            21 => self.set_mode(),
            22 => self.list(),
            _ => self.close_one(),
        }
    }

    fn open_one(&mut self) {
        if self.open.len() >= OPEN {
            return self.close_one();
        }
        let path = self.path(&["f", "f", "d"]);
        let (exclusive, truncate) = (self.pick(4) == 0, self.pick(4) == 0);
        let mut flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        flags.set(OFlags::EXCL, exclusive);
        flags.set(OFlags::TRUNC, truncate);
        let real = system::open(self.real(&path), flags, Mode::from_raw_mode(0o644));
        let own = self.paths.at(&path, |parent, name| {
            let flags = OpenFlags { exclusive, truncate, ..READ_WRITE };
            self.paths.0.create(parent, name, 0o644, OWNER, flags)
        });
        let call = format!("open {path} exclusive {exclusive} truncate {truncate}");
        match (own, real) {
            (Ok((attributes, handle)), Ok(file)) => {
                self.log.push(format!("{call}: open"));
                self.open.push(Pair { handle, inode: attributes.inode, file });
            }
            (own, real) => self.same(call, own.map(drop), real.map(drop)),
        }
    }

    fn close_one(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.pick(self.open.len() as u64) as usize;
        let pair = self.open.swap_remove(at);
        self.paths.0.flush(pair.handle).expect("flushed");
        self.paths.0.release(pair.handle).expect("closed");
        self.paths.0.forget(pair.inode, 1);
        self.log.push("close".to_owned());
    }

    fn make_directory(&mut self) {
        let path = self.path(&["d", "d", "f"]);
        let own = self.paths.mkdir(&path);
        let real = system::mkdir(self.real(&path), Mode::from_raw_mode(0o755));
        self.same(format!("mkdir {path}"), own, real);
    }

    fn make_other(&mut self) {
        let is_link = self.pick(2) == 0 || !self.has_nodes;
        let path = self.path(if is_link { &["s"] } else { &["p"] });
        let (own, real) = if is_link {
            let target = content(self.pick(9), 1 + self.pick(200) as usize);
            let target: Vec<u8> = target.iter().map(|byte| b'a' + byte % 26).collect();
            let own =
                self.paths.at(&path, |parent, name| self.paths.0.make_symlink(parent, name, &target, OWNER));
            (own, system::symlink(target.as_slice(), self.real(&path)))
        } else {
            let node = NewNode { kind: FileKind::Fifo, permissions: 0o600, owner: OWNER, device: 0 };
            let own = self.paths.at(&path, |parent, name| self.paths.0.make_node(parent, name, &node));
            let mode = Mode::from_raw_mode(0o600);
            (own, system::mknodat(CWD, self.real(&path), FileType::Fifo, mode, 0))
        };
        let own = own.map(|attributes| self.paths.0.forget(attributes.inode, 1));
        self.same(format!("make {path}"), own, real);
    }

    fn remove(&mut self) {
        let path = self.path(&["f", "d", "s", "p"]);
        let is_directory = self.pick(2) == 0;
        let own = self.paths.at(&path, |parent, name| match is_directory {
            true => self.paths.0.remove_directory(parent, name),
            false => self.paths.0.unlink(parent, name),
        });
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let real = system::unlinkat(CWD, self.real(&path), flags);
        self.same(format!("remove {path} as a directory {is_directory}"), own, real);
    }

    fn rename(&mut self) {
        // A pipe that is opened by the name of a file would wait.
        let kinds: &[&[&str]] = &[&["s"], &["p"], &["f", "d"], &["d", "f"], &["f", "d", "d"]];
        let kinds = kinds[self.pick(5) as usize];
        let (from, to) = (self.path(kinds), self.path(kinds));
        let choice = self.pick(5);
        let flags = RenameFlags { no_replace: choice == 0, exchange: choice == 1 };
        let mut real_flags = system::RenameFlags::empty();
        real_flags.set(system::RenameFlags::NOREPLACE, flags.no_replace);
        real_flags.set(system::RenameFlags::EXCHANGE, flags.exchange);
        let own = self.paths.at(&from, |parent, name| {
            self.paths.at(&to, |new_parent, new_name| {
                self.paths.0.rename(parent, name, new_parent, new_name, flags)
            })
        });
        let real = system::renameat_with(CWD, self.real(&from), CWD, self.real(&to), real_flags);
        self.same(format!("rename {from} {to} {flags:?}"), own, real);
    }

    fn look(&mut self) {
        let path = self.path(&["f", "d", "s", "p"]);
        let own = self.paths.stat(&path).map(|attributes| {
            let is_sized = matches!(attributes.kind, FileKind::File | FileKind::Symlink);
            (attributes.kind, attributes.permissions, if is_sized { attributes.size_bytes } else { 0 })
        });
        let real = system::lstat(self.real(&path)).map(|stat| {
            let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
            let is_sized = matches!(kind, FileKind::File | FileKind::Symlink);
            (kind, (stat.st_mode & 0o7777) as u16, if is_sized { stat.st_size as u64 } else { 0 })
        });
        self.same(format!("stat {path}"), own, real);
        let own = self.paths.with(&path, |found| self.paths.0.read_link(found.inode));
        let real = system::readlink(self.real(&path), Vec::new()).map(|target| target.into_bytes());
        self.same(format!("readlink {path}"), own, real);
    }

    fn set_mode(&mut self) {
        let path = self.path(&["f", "d"]);
        let bits = [0o755, 0o644, 0o700][self.pick(3) as usize];
        let to = SetAttributes { permissions: Some(bits), ..SetAttributes::default() };
        let own = self.paths.with(&path, |found| self.paths.0.set_attributes(found.inode, &to).map(drop));
        let real = system::chmod(self.real(&path), Mode::from_raw_mode(u32::from(bits)));
        self.same(format!("chmod {path} {bits:o}"), own, real);
    }

    fn list(&mut self) {
        let path = self.path(&["d"]);
        self.compare_names(&path);
    }

    fn compare_names(&mut self, path: &str) -> Vec<(Vec<u8>, FileKind)> {
        let own = self.paths.names(path);
        let real = system::open(self.real(path), OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
        let real = real.and_then(system::Dir::new).and_then(|directory| {
            let mut all = Vec::new();
            for entry in directory {
                let entry = entry?;
                let name = entry.file_name().to_bytes().to_vec();
                if name != b"." && name != b".." {
                    all.push((name, kind_of(entry.file_type())));
                }
            }
            all.sort_unstable_by(|one: &(Vec<u8>, _), other| one.0.cmp(&other.0));
            Ok(all)
        });
        let names = own.clone().unwrap_or_default();
        self.same(format!("list {path:?}"), own, real);
        names
    }

    fn on_open(&mut self) {
        if self.open.is_empty() {
            return self.open_one();
        }
        let at = self.pick(self.open.len() as u64) as usize;
        let (offset, length) = (self.pick(SIZE_MAX), self.pick(9000));
        let (choice, seed) = (self.pick(8), self.pick(1 << 30));
        let (files, pair) = (self.paths.0, &self.open[at]);
        let (handle, inode, file) = (pair.handle, pair.inode, pair.file.as_fd());
        let call = format!("call {choice} of file {at} at {offset} of {length} bytes");
        let (own, real) = match choice {
            0..=2 => {
                let data = content(seed, length as usize);
                let own = files.write(handle, offset, &data).map(|bytes| vec![bytes]);
                (own, rustix::io::pwrite(file, &data, offset).map(|bytes| vec![bytes]))
            }
            3 => {
                let to = SetAttributes { size_bytes: Some(offset), ..SetAttributes::default() };
                let own = files.set_attributes(inode, &to).map(|found| vec![found.size_bytes as usize]);
                (own, system::ftruncate(file, offset).map(|()| vec![offset as usize]))
            }
            4 => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let own = files.allocate(handle, offset, length, true, true).map(|()| vec![]);
                (own, system::fallocate(file, flags, offset, length).map(|()| vec![]))
            }
            5 => {
                let own = files.allocate(handle, offset, length, false, false).map(|()| vec![]);
                (own, system::fallocate(file, FallocateFlags::empty(), offset, length).map(|()| vec![]))
            }
            _ => {
                let read = |read: &dyn Fn(&mut [u8]) -> Result<usize, Errno>| {
                    let mut bytes = vec![0xee; length as usize];
                    let count = read(&mut bytes)?;
                    Ok(bytes[..count].iter().map(|byte| usize::from(*byte)).collect())
                };
                let own = read(&|bytes| files.read(handle, offset, bytes));
                (own, read(&|bytes| rustix::io::pread(file, bytes, offset)))
            }
        };
        self.same(call, own, real);
        let counts_links = self.has_nodes;
        let links = |links: u32| if counts_links { links } else { 1 };
        let own = files.attributes(inode).map(|found| (found.size_bytes, links(found.links)));
        let real =
            system::fstat(&self.open[at].file).map(|stat| (stat.st_size as u64, links(stat.st_nlink as u32)));
        self.same(format!("fstat of file {at}"), own, real);
    }

    /// The trees are the same, with what the files hold.
    fn compare(&mut self, path: &str) {
        for (name, kind) in self.compare_names(path) {
            let name = String::from_utf8(name).expect("ASCII");
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            match kind {
                FileKind::Directory => self.compare(&path),
                FileKind::File => {
                    let own = self.paths.get(&path);
                    let real = std::fs::read(self.real(&path)).expect("read");
                    assert!(own == Ok(real), "{path} holds something else");
                    let own = self.paths.stat(&path).expect("there").permissions;
                    let real = system::lstat(self.real(&path)).expect("there").st_mode;
                    assert_eq!(u32::from(own), real & 0o7777, "{path}");
                }
                _ => {}
            }
        }
    }

    pub(crate) fn run(&mut self) {
        for _ in 0..CALLS {
            self.step();
        }
        while !self.open.is_empty() {
            self.close_one();
        }
        self.compare("");
    }
}

/// Runs calls of a seed on a store; another client sees the same tree then. Without `has_nodes` it has no pipes, and its open files do not tell whether
/// they have a name.
pub(crate) fn run(ground: &dyn Ground, seed: u64, has_nodes: bool) {
    // The mask of this process would be applied on one side alone.
    rustix::process::umask(Mode::empty());
    let (real, files) = (scratch(), ground.client());
    Both { has_nodes, ..Both::new(&*files, real.path(), seed) }.run();
    drop(files);
    let other = ground.client();
    Both::new(&*other, real.path(), 0).compare("");
    assert_eq!(other.take_findings(), Vec::<String>::new());
}
