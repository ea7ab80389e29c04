//! A file with declared service times, served over FUSE by the process of a test: a target as a user's program is one, whose
//! latencies are known beforehand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

const TTL: Duration = Duration::from_secs(3600);
const FILE: INodeNo = INodeNo(2);
const FILE_NAME: &str = "data";
/// Requests that the kernel passes on at once: as many as it can.
const BACKGROUND_MAX: u16 = u16::MAX;

/// Bytes that the kernel hands on in one request.
const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Kind of an operation of a [`SlowFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowKind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// fsync and fdatasync.
    Sync,
}

/// An operation that has arrived at a [`SlowFile`].
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its number among the operations of its kind, from 0.
    pub number: u64,
    /// Kind.
    pub kind: SlowKind,
    /// First byte of its range.
    pub offset_bytes: u64,
    /// Length of its range.
    pub size_bytes: u64,
    /// Time since the first operation of any kind arrived.
    pub at: Duration,
}

/// One operation as the file has served it: the log that a test holds strata's results against.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The operation.
    pub arrival: Arrival,
    /// Time from its arrival to its reply: the wait for a free station included.
    pub latency: Duration,
}

/// Service time of an operation.
type ServiceTime = Box<dyn Fn(&Arrival) -> Duration + Send + Sync>;

enum Reply {
    Read(ReplyData),
    Write(ReplyWrite),
    Sync(ReplyEmpty),
}

struct Pending {
    arrived: Instant,
    arrival: Arrival,
    reply: Reply,
}

#[derive(Default)]
struct State {
    content: Vec<u8>,
    pending: Vec<Option<Pending>>,
    /// When which entry of `pending` is due.
    queue: BinaryHeap<Reverse<(Instant, usize)>>,
    unused: Vec<usize>,
    /// When each station is free.
    stations: Vec<Instant>,
    began: Option<Instant>,
    counts: [u64; 3],
    served: Vec<Served>,
    is_released: bool,
    is_ending: bool,
}

struct Inner {
    state: Mutex<State>,
    changed: Condvar,
    service_time: ServiceTime,
    attributes: FileAttr,
    root: FileAttr,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an operation: it is answered when its service time is over.
    fn arrive(&self, kind: SlowKind, offset_bytes: u64, size_bytes: u64, reply: Reply) {
        let arrived = Instant::now();
        let mut state = self.lock();
        let began = *state.began.get_or_insert(arrived);
        let count = &mut state.counts[kind as usize];
        let number = *count;
        *count += 1;
        let arrival = Arrival { number, kind, offset_bytes, size_bytes, at: arrived - began };
        let service_time = (self.service_time)(&arrival);
        let due = match state.stations.iter_mut().min() {
            Some(free_at) => {
                *free_at = (*free_at).max(arrived) + service_time;
                *free_at
            }
            None => arrived + service_time,
        };
        let pending = Some(Pending { arrived, arrival, reply });
        let place = if let Some(place) = state.unused.pop() {
            state.pending[place] = pending;
            place
        } else {
            state.pending.push(pending);
            state.pending.len() - 1
        };
        state.queue.push(Reverse((due, place)));
        drop(state);
        self.changed.notify_one();
    }

    /// Answers what is due until the file goes away.
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            if state.is_ending {
                // What still waits is answered with an error when its reply is dropped.
                state.pending.clear();
                return;
            }
            let Some(&Reverse((due, place))) = state.queue.peek() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let now = Instant::now();
            if due > now && !state.is_released {
                state = self.changed.wait_timeout(state, due - now).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.queue.pop();
            state.unused.push(place);
            let Some(pending) = state.pending[place].take() else { continue };
            let (start, size) = (pending.arrival.offset_bytes as usize, pending.arrival.size_bytes as usize);
            let start = start.min(state.content.len());
            let end = (start + size).min(state.content.len());
            let data = if let Reply::Read(_) = pending.reply {
                state.content[start..end].to_vec()
            } else {
                Vec::new()
            };
            state.served.push(Served { arrival: pending.arrival, latency: now - pending.arrived });
            drop(state);
            match pending.reply {
                Reply::Read(reply) => reply.data(&data),
                Reply::Write(reply) => reply.written(pending.arrival.size_bytes as u32),
                Reply::Sync(reply) => reply.ok(),
            }
            state = self.lock();
        }
    }
}

struct FileSystem(Arc<Inner>);

impl Filesystem for FileSystem {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        // Without it the kernel sends direct reads of one thread one after the other.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_ASYNC_READ);
        Ok(())
    }

    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == FILE_NAME {
            reply.entry(&TTL, &self.0.attributes, Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, if ino == FILE { &self.0.attributes } else { &self.0.root });
    }

    fn setattr(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.attr(&TTL, &self.0.attributes);
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.arrive(SlowKind::Read, offset, u64::from(size), Reply::Read(reply));
    }

    fn write(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (start, end) = (offset as usize, offset as usize + data.len());
        match self.0.lock().content.get_mut(start..end) {
            Some(range) => range.copy_from_slice(data),
            None => return reply.error(Errno::ENOSPC),
        }
        self.0.arrive(SlowKind::Write, offset, data.len() as u64, Reply::Write(reply));
    }

    fn fsync(&self, _request: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.0.arrive(SlowKind::Sync, 0, 0, Reply::Sync(reply));
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn readdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [(INodeNo::ROOT, FileType::Directory, "."), (INodeNo::ROOT, FileType::Directory, "..")];
        let entries = entries.into_iter().chain([(FILE, FileType::RegularFile, FILE_NAME)]);
        for (place, (ino, kind, name)) in entries.enumerate().skip(offset as usize) {
            if reply.add(ino, place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// A mounted file with declared service times; unmounted when dropped. Replies come up to some tens of microseconds late, as the
/// scheduler has it, so that service times of a millisecond and more can be judged by.
pub struct SlowFile {
    inner: Arc<Inner>,
    path: PathBuf,
    session: Option<BackgroundSession>,
    server: Option<std::thread::JoinHandle<()>>,
}

impl SlowFile {
    /// Mounts a file of `size_bytes` on `directory`, which is there and empty. At most `stations` operations are served at a time,
    /// each for `service_time` of it, the others wait in the order of their arrival; 0: all are.
    ///
    /// # Errors
    /// When it cannot be mounted: FUSE is missing, or the rights to it.
    pub fn mount(
        directory: &Path,
        size_bytes: u64,
        stations: usize,
        service_time: impl Fn(&Arrival) -> Duration + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let now = SystemTime::now();
        let attributes = |ino, kind, perm, size: u64| FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        };
        let state = State {
            content: vec![0; size_bytes as usize],
            stations: vec![Instant::now(); stations],
            ..State::default()
        };
        let inner = Arc::new(Inner {
            state: Mutex::new(state),
            changed: Condvar::new(),
            service_time: Box::new(service_time),
            attributes: attributes(FILE, FileType::RegularFile, 0o644, size_bytes),
            root: attributes(INodeNo::ROOT, FileType::Directory, 0o755, 0),
        });
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("slow_file".into()), MountOption::RW];
        let session = fuser::spawn_mount(FileSystem(Arc::clone(&inner)), directory, &config)?;
        let server = std::thread::spawn({
            let inner = Arc::clone(&inner);
            move || inner.serve()
        });
        let path = directory.join(FILE_NAME);
        Ok(Self { inner, path, session: Some(session), server: Some(server) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every operation that was answered so far, in the order of the answers.
    pub fn served(&self) -> Vec<Served> {
        self.inner.lock().served.clone()
    }

    /// Answers what waits, and from now on everything, at once: what hung comes back.
    pub fn release(&self) {
        self.inner.lock().is_released = true;
        self.inner.changed.notify_all();
    }

    /// Number of operations that have arrived and were not answered.
    pub fn waiting(&self) -> usize {
        self.inner.lock().queue.len()
    }
}

impl Drop for SlowFile {
    fn drop(&mut self) {
        self.inner.lock().is_ending = true;
        self.inner.changed.notify_all();
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
        drop(self.session.take());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn operations_take_what_was_declared() {
        let directory = tempfile::tempdir().unwrap();
        let time = |arrival: &Arrival| Duration::from_millis(if arrival.number == 2 { 60 } else { 5 });
        let file = match SlowFile::mount(directory.path(), 1 << 20, 1, time) {
            Ok(file) => file,
            Err(error) => return eprintln!("skipped: FUSE cannot be mounted here: {error}"),
        };
        let open = std::fs::OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        open.write_all_at(b"strata", 4096).unwrap();
        let mut block = [0; 6];
        for _ in 0..4 {
            open.read_exact_at(&mut block, 4096).unwrap();
        }
        open.sync_data().unwrap();
        assert_eq!(&block, b"strata");
        let served = file.served();
        assert_eq!(served.len(), 6);
        let reads = served.iter().filter(|served| served.arrival.kind == SlowKind::Read);
        let latencies: Vec<_> = reads.map(|served| served.latency).collect();
        assert!(latencies[2] >= Duration::from_millis(60), "{latencies:?}");
        assert!(latencies[1] >= Duration::from_millis(5), "{latencies:?}");
        assert_eq!(file.waiting(), 0);
        drop(open);
    }
}
