//! Requests to the medium are made without the target's lock: others go on meanwhile.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::Checksum;
use parking_lot::{Mutex, RwLock};

use super::support::{Fixture, Ground, MIB, content};
use crate::error::StoreError;
use crate::flush::Flusher;
use crate::medium::Medium;
use crate::memory::Region;
use crate::{Ack, Anchor, Punch, Read, Target, Write};

/// How long a thread of its own tries to get the lock. It has it at once, unless the caller of the medium has it.
const PATIENCE: Duration = Duration::from_secs(60);

static WATCHES: RwLock<Vec<(PathBuf, Weak<Watch>)>> = RwLock::new(Vec::new());

/// Watches the calls of a pool's media.
#[derive(Debug, Default)]
struct Watch {
    target: Mutex<Weak<Target>>,
    is_on: AtomicBool,
    /// Calls that were made, and those of them that were made with the lock.
    calls: Mutex<Vec<&'static str>>,
    locked: Mutex<Vec<&'static str>>,
}

impl Watch {
    /// Watches pools that are opened in a directory.
    fn over(dir: &Path) -> Arc<Self> {
        let watch = Arc::new(Self::default());
        WATCHES.write().push((dir.to_path_buf(), Arc::downgrade(&watch)));
        watch
    }

    fn begin(&self, target: &Arc<Target>) {
        *self.target.lock() = Arc::downgrade(target);
        self.is_on.store(true, Ordering::Release);
    }

    fn end(&self) {
        self.is_on.store(false, Ordering::Release);
    }

    fn note(&self, call: &'static str) {
        if !self.is_on.load(Ordering::Acquire) {
            return;
        }
        let target = self.target.lock().upgrade();
        let Some(target) = target else { return };
        let is_free = std::thread::scope(|scope| {
            scope.spawn(|| target.can_be_locked_within(PATIENCE)).join().expect("an answer")
        });
        self.calls.lock().push(call);
        if !is_free {
            self.locked.lock().push(call);
            self.end();
        }
    }
}

#[derive(Debug)]
struct Watched {
    inner: Arc<dyn Medium>,
    watch: Arc<Watch>,
}

/// Puts a watch over a medium, where its directory has one.
pub(crate) fn wrap(path: &Path, inner: Arc<dyn Medium>) -> Arc<dyn Medium> {
    let watches = WATCHES.read();
    let own = watches.iter().filter(|(dir, _)| path.starts_with(dir)).find_map(|(_, watch)| watch.upgrade());
    match own {
        Some(watch) => Arc::new(Watched { inner, watch }),
        None => inner,
    }
}

impl Medium for Watched {
    fn mapped(&self) -> Option<&Arc<Region>> {
        self.inner.mapped()
    }

    fn flusher(&self) -> Flusher {
        self.inner.flusher()
    }

    fn allocate(&self, at: u64, bytes: u64) -> Result<(), StoreError> {
        self.watch.note("allocate");
        self.inner.allocate(at, bytes)
    }

    fn free_bytes(&self) -> u64 {
        self.watch.note("free_bytes");
        self.inner.free_bytes()
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), StoreError> {
        self.watch.note("write");
        self.inner.write(bytes, at)
    }

    fn read(&self, into: &mut [u8], at: u64) -> Result<(), StoreError> {
        self.watch.note("read");
        self.inner.read(into, at)
    }

    fn sync(&self, at: u64, bytes: u64) -> Result<(), StoreError> {
        self.watch.note("sync");
        self.inner.sync(at, bytes)
    }

    fn is_synced(&self) -> bool {
        self.inner.is_synced()
    }

    fn durable_by(&self) -> &'static str {
        self.inner.durable_by()
    }
}

/// Updates, overwrites, punches, listings and reads: more than log and data file hold.
fn work(fixture: &Fixture) {
    let target = fixture.target();
    let mut buffer = vec![0; 300_000];
    for round in 0..5u64 {
        for number in 0..60u64 {
            let key = number.to_le_bytes();
            let bytes = [3000, 40_000, 300_000][number as usize % 3];
            let value = content(number << 32 | round, bytes);
            let ack = if number % 2 == 0 { Ack::AsConfigured } else { Ack::Deferred };
            let place = fixture.place(1, &key, b"a");
            target.update(&place, Write::Single, &value, ack).expect("written");
            let array = fixture.place(2, &key, b"b");
            let offset_bytes = 1000 * round;
            target.update(&array, Write::Extent { offset_bytes }, &value[..3000], ack).expect("written");
        }
        for number in (0..60u64).filter(|number| number % 7 == round) {
            let key = number.to_le_bytes();
            target.punch(&fixture.place(1, &key, b"a"), Punch::Dkey, Ack::AsConfigured).expect("punched");
        }
        for number in (0..60u64).filter(|number| number % 7 != round) {
            let key = number.to_le_bytes();
            let found = target.fetch(&fixture.place(1, &key, b"a"), Read::Single, None, &mut buffer);
            let bytes = found.expect("read").bytes as usize;
            assert_eq!(buffer[..bytes], content(number << 32 | round, bytes));
        }
        let (mut anchor, mut listed) = (Anchor::START, 0);
        let object = fixture.place(1, b"", b"").object;
        while !anchor.is_end() {
            let found = target.list_dkeys(fixture.container, object, None, &mut anchor, 16, &mut |_| {});
            listed += found.expect("listed");
        }
        assert_eq!(listed, (0..60).filter(|number| number % 7 != round).count());
        let largest = target.largest(fixture.container, object, b"a", None).expect("one");
        assert_eq!(largest.dkey, if round == 3 { 58 } else { 59 });
    }
    target.aggregate(fixture.container, None, true).expect("aggregated");
    target.discard(fixture.container, 1..=1).expect("discarded");
}

#[test]
fn the_medium_is_asked_without_the_lock() {
    for ground in [Ground::Disk, Ground::Memory] {
        let dir = ground.scratch();
        let watch = Watch::over(dir.path());
        let fixture = Fixture::in_dir(dir, ground, 8 * MIB, 24 * MIB, Checksum::Crc32);
        watch.begin(fixture.target());
        work(&fixture);
        watch.end();
        assert_eq!(*watch.locked.lock(), [""; 0], "{ground:?}: with the lock");
        let calls = watch.calls.lock();
        let wanted: &[&str] = match ground {
            Ground::Memory => &["allocate", "free_bytes", "write"],
            _ => &["allocate", "free_bytes", "write", "read", "sync"],
        };
        for call in wanted {
            assert!(calls.contains(call), "{ground:?}: {call} was never made");
        }
    }
}
