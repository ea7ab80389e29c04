//! A disk with its durable part and the rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::image::{Image, Node};
use super::inode::{Inode, Volatile};
use crate::files::Event;
use crate::memory::Region;
use crate::storage_target::Access;

const LINE_BYTES: usize = 64;
/// Of so many events one writes back by itself what nobody asked for.
const WRITE_BACK_EVERY: u64 = 40;

/// Random numbers of a seed.
#[derive(Clone, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(units::random::mix64(seed) | 1)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        units::random::mix64(self.0) % bound
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(super) fn of_ten(&mut self, count: u64) -> bool {
        self.below(10) < count
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Directory,
    File(usize),
}

/// A change of names that is not durable.
#[derive(Clone, Debug)]
enum Change {
    Set(PathBuf, Entry),
    Unset(PathBuf),
    Move(PathBuf, PathBuf, Entry),
}

impl Change {
    fn directory(&self) -> &Path {
        let (Self::Set(path, _) | Self::Unset(path) | Self::Move(_, path, _)) = self;
        path.parent().unwrap_or(Path::new(""))
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Entry>) {
        match self {
            Self::Set(path, entry) => drop(names.insert(path.clone(), *entry)),
            Self::Unset(path) => drop(names.remove(path)),
            Self::Move(from, to, entry) => {
                names.remove(from);
                names.insert(to.clone(), *entry);
            }
        }
    }
}

#[derive(Debug)]
struct Inner {
    dice: Dice,
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, Entry>,
    durable: BTreeMap<PathBuf, Entry>,
    pending: Vec<Change>,
    events: u64,
    /// Of so many events one is a cut; 0: none.
    every: u64,
    /// Mapped memory is made durable by CPU flushes, and torn by words.
    by_words: bool,
    cuts: Vec<Image>,
    /// So many syncs from now, one fails.
    failing: Option<u64>,
}

/// The disk.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    access: Access,
    inner: Mutex<Inner>,
    /// A hook that a read waits for, once.
    on_read: Mutex<Option<Hook>>,
}

/// Something done in the middle of a read.
pub(super) struct Hook(pub(super) Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

impl Disk {
    /// A disk under an empty directory.
    pub(super) fn new(root: &Path, access: Access, seed: u64, every: u64) -> Arc<Self> {
        Self::of_image(root, access, seed, every, &Image::default())
    }

    /// A disk that holds an image, which has been laid down in its directory.
    pub(super) fn of_image(root: &Path, access: Access, seed: u64, every: u64, image: &Image) -> Arc<Self> {
        let (mut inodes, mut names) = (Vec::new(), BTreeMap::new());
        for (path, node) in &image.nodes {
            let entry = match node {
                Node::Directory => Entry::Directory,
                Node::File(content) => {
                    inodes.push(Inode {
                        durable: content.clone(),
                        volatile: Volatile::Plain(Some(root.join(path))),
                        bytes: None,
                        forgotten: BTreeMap::new(),
                    });
                    Entry::File(inodes.len() - 1)
                }
            };
            names.insert(path.clone(), entry);
        }
        let inner = Inner {
            dice: Dice::new(seed),
            inodes,
            durable: names.clone(),
            names,
            pending: Vec::new(),
            events: 0,
            every,
            by_words: matches!(access, Access::Mapped { by_msync: false, .. }),
            cuts: Vec::new(),
            failing: None,
        };
        let disk =
            Self { root: root.to_path_buf(), access, inner: Mutex::new(inner), on_read: Mutex::new(None) };
        let disk = Arc::new(disk);
        super::mount(root, &disk);
        disk
    }

    /// How pools on it are written.
    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// The cuts since the last call.
    pub(super) fn take_cuts(&self) -> Vec<Image> {
        std::mem::take(&mut self.inner.lock().cuts)
    }

    /// Image that a cut at this moment leaves.
    pub(super) fn cut(&self) -> Image {
        self.inner.lock().image()
    }

    /// Makes cuts at one of so many events from now on.
    pub(super) fn cut_every(&self, every: u64) {
        self.inner.lock().every = every;
    }

    /// Lets one sync fail, after so many others.
    pub(super) fn fail_a_sync(&self, after: u64) {
        self.inner.lock().failing = Some(after);
    }

    /// Does something in the middle of the next read.
    pub(super) fn at_next_read(&self, hook: Hook) {
        *self.on_read.lock() = Some(hook);
    }

    pub(super) fn run_hook(&self) {
        let hook = self.on_read.lock().take();
        if let Some(Hook(hook)) = hook {
            hook();
        }
    }

    /// A moment at which the power may fail.
    pub(super) fn event(&self) {
        self.inner.lock().event();
    }

    fn own<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).expect("a path on this disk")
    }

    /// Something happens to a name or a file.
    pub(super) fn note(&self, event: Event<'_>) {
        let mut inner = self.inner.lock();
        if !matches!(event, Event::Renamed(..)) {
            inner.event();
        }
        match event {
            Event::MadeDirectory(path) => inner.change(Change::Set(self.own(path).into(), Entry::Directory)),
            Event::Made(path) => {
                inner.inodes.push(Inode {
                    durable: Vec::new(),
                    volatile: Volatile::Plain(Some(path.to_path_buf())),
                    bytes: None,
                    forgotten: BTreeMap::new(),
                });
                let entry = Entry::File(inner.inodes.len() - 1);
                inner.change(Change::Set(self.own(path).into(), entry));
            }
            Event::Syncing(_) | Event::SyncingDirectory(_) | Event::Renaming(_) => {}
            Event::Synced(path) => {
                if let Some(Entry::File(inode)) = inner.names.get(self.own(path)).copied() {
                    inner.inodes[inode].sync_whole();
                }
            }
            Event::Renamed(from, to) => {
                let (from, own) = (self.own(from).to_path_buf(), self.own(to).to_path_buf());
                let entry = *inner.names.get(&from).expect("a file that is renamed");
                if let Some(Entry::File(gone)) = inner.names.get(&own).copied() {
                    inner.inodes[gone].lose();
                }
                if let Entry::File(inode) = entry {
                    inner.inodes[inode].volatile = Volatile::Plain(Some(to.to_path_buf()));
                }
                inner.change(Change::Move(from, own, entry));
            }
            Event::Removing(path) => {
                if let Some(Entry::File(gone)) = inner.names.get(self.own(path)).copied() {
                    inner.inodes[gone].lose();
                    inner.change(Change::Unset(self.own(path).into()));
                }
            }
            Event::RemovedDirectory(path) => {
                // The pool's own directory is made and removed with those who look at it.
                inner.change(Change::Unset(self.own(path).into()));
            }
            Event::SyncedDirectory(path) => {
                let own = self.own(path).to_path_buf();
                let Inner { pending, durable, .. } = &mut *inner;
                pending.retain(|change| {
                    let is_there = change.directory() == own;
                    if is_there {
                        change.apply(durable);
                    }
                    !is_there
                });
            }
        }
    }

    /// The file of a log or of a data file: its content is told by its medium from now on.
    pub(super) fn adopt(&self, path: &Path, mapped: Option<&Arc<Region>>, bytes: u64) -> usize {
        let mut inner = self.inner.lock();
        let Some(Entry::File(inode)) = inner.names.get(self.own(path)).copied() else {
            panic!("{} was made without a word", path.display())
        };
        let own = &mut inner.inodes[inode];
        own.bytes = Some(bytes as usize);
        own.volatile = match mapped {
            Some(region) => Volatile::Mapped(Arc::clone(region)),
            None => Volatile::Written(Vec::new()),
        };
        inode
    }

    /// Lines of mapped memory around a slice that lies in a file of this disk: which file, where, and what they hold.
    pub(super) fn lines_of(&self, bytes: &[u8]) -> Option<(usize, usize, Vec<u8>)> {
        let inner = self.inner.lock();
        let (from, to) = (bytes.as_ptr() as usize, bytes.as_ptr() as usize + bytes.len());
        inner.inodes.iter().enumerate().find_map(|(number, inode)| {
            let Volatile::Mapped(region) = &inode.volatile else { return None };
            let base = region.at(0) as usize;
            let is_inside = from >= base && to <= base + region.len();
            is_inside.then(|| {
                let low = (from - base) / LINE_BYTES * LINE_BYTES;
                let high = (to - base).next_multiple_of(LINE_BYTES).min(region.len());
                (number, low, region.bytes(low, high - low).to_vec())
            })
        })
    }

    /// A part of a file is durable.
    pub(super) fn persist(&self, inode: usize, at: usize, content: &[u8]) {
        let mut inner = self.inner.lock();
        let own = &mut inner.inodes[inode];
        let end = (at + content.len()).min(own.durable.len());
        if at < end {
            own.durable[at..end].copy_from_slice(&content[..end - at]);
        }
    }

    /// A write that waits for a sync.
    pub(super) fn write(&self, inode: usize, at: u64, content: &[u8]) {
        let mut inner = self.inner.lock();
        if let Volatile::Written(pending) = &mut inner.inodes[inode].volatile {
            pending.push((at, content.to_vec()));
        }
    }

    /// A sync of a log or data file: of mapped ones, of the pages around a range. False where it fails.
    pub(super) fn sync(&self, inode: usize, at: usize, bytes: usize) -> bool {
        let mut inner = self.inner.lock();
        inner.event();
        let fails = match &mut inner.failing {
            Some(0) => {
                inner.failing = None;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        let own = &mut inner.inodes[inode];
        match (&own.volatile, fails) {
            (Volatile::Mapped(_), true) => own.forget(at, bytes),
            (Volatile::Mapped(_), false) => own.sync_pages(at, bytes),
            // The kernel drops what it could not write.
            (Volatile::Written(_), true) => own.volatile = Volatile::Written(Vec::new()),
            _ => own.sync_whole(),
        }
        !fails
    }
}

impl Inner {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    fn event(&mut self) {
        self.events += 1;
        if self.dice.one_in(WRITE_BACK_EVERY) {
            let kept = self.dice.below(6);
            for inode in &mut self.inodes {
                if matches!(inode.volatile, Volatile::Mapped(_)) {
                    inode.durable = inode.survives(&mut self.dice, kept, self.by_words);
                }
            }
        }
        if self.every > 0 && self.dice.one_in(self.every) {
            let image = self.image();
            self.cuts.push(image);
        }
    }

    fn image(&mut self) -> Image {
        let Self { dice, inodes, durable, pending, events, by_words, .. } = self;
        let kept = [0, 2, 5, 8, 10][dice.below(5) as usize];
        let mut names = durable.clone();
        if dice.one_in(2) {
            // A journal: those up to some moment.
            let count = dice.below(pending.len() as u64 + 1) as usize;
            pending[..count].iter().for_each(|change| change.apply(&mut names));
        } else {
            for change in pending.iter() {
                if dice.one_in(2) {
                    change.apply(&mut names);
                }
            }
        }
        let contents: Vec<Vec<u8>> =
            inodes.iter().map(|inode| inode.survives(dice, kept, *by_words)).collect();
        let mut nodes: Vec<(PathBuf, Node)> = Vec::new();
        for (path, entry) in &names {
            let above = path.parent().unwrap_or(Path::new(""));
            let is_held = above.as_os_str().is_empty()
                || nodes.iter().any(|(other, node)| other == above && *node == Node::Directory);
            if is_held {
                nodes.push((
                    path.clone(),
                    match entry {
                        Entry::Directory => Node::Directory,
                        Entry::File(inode) => Node::File(contents[*inode].clone()),
                    },
                ));
            }
        }
        Image { nodes, event: *events }
    }
}
