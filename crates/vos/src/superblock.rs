//! The superblock: the file that makes a directory a pool.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use driver::{Error, ErrorKind};
use rustix::fs::FlockOperation;

use super::checksum::crc32c;
use super::storage_target::file_error;
use super::{FORMAT_VERSION, PoolOptions};

const MAGIC: [u8; 8] = *b"STRATAVS";
const BYTES: usize = 4096;
/// Its name.
pub(super) const FILE: &str = "superblock";
/// The table of containers.
pub(super) const CONTAINERS_FILE: &str = "containers";

/// Targets of a pool.
const TARGETS_MAX: u32 = 1 << 16;

/// Properties that a pool was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) uuid: [u8; 16],
    pub(super) targets: u32,
    /// Segments of the log of each target.
    pub(super) segments: u32,
    pub(super) segment_bytes: u64,
    /// Data file of each target.
    pub(super) nvme_bytes: u64,
    pub(super) threshold_bytes: u64,
}

/// Largest segment; records are smaller.
const SEGMENT_BYTES_MAX: u64 = 32 << 20;
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// Segments of a log: some are kept free for punches and for cleaning.
const SEGMENTS_MIN: u64 = 16;

impl Superblock {
    /// Lays out a new pool.
    pub(super) fn plan(options: &PoolOptions) -> Result<Self, Error> {
        let targets = u64::from(options.targets);
        if targets == 0 {
            return Err(
                Error::usage("pool", "a pool has at least 1 target").remedy("use --targets 1 or more")
            );
        }
        let scm_bytes = options.scm_bytes / targets;
        let least = SEGMENTS_MIN * SEGMENT_BYTES_MIN;
        if scm_bytes < least {
            return Err(Error::usage("pool", "the log is too small")
                .with("scm_bytes", options.scm_bytes)
                .with("targets", targets)
                .remedy(format!("use --scm with at least {} bytes", least * targets)));
        }
        let segment_bytes = (1 << (scm_bytes / SEGMENTS_MIN).ilog2()).min(SEGMENT_BYTES_MAX);
        let nvme_bytes = options.nvme_bytes / targets / 4096 * 4096;
        if options.nvme_bytes > 0 && nvme_bytes == 0 {
            return Err(Error::usage("pool", "the data file is too small")
                .with("nvme_bytes", options.nvme_bytes)
                .remedy(format!("use --nvme 0, or at least {} bytes", 4096 * targets)));
        }
        let segments = u32::try_from(scm_bytes / segment_bytes)
            .map_err(|_| Error::usage("pool", "the log is too large").with("scm_bytes", options.scm_bytes))?;
        Ok(Self {
            uuid: options.uuid.map_or_else(random_uuid, |uuid| Ok(uuid.0))?,
            targets: options.targets,
            segments,
            segment_bytes,
            nvme_bytes,
            threshold_bytes: options.threshold_bytes,
        })
    }

    /// Its bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.targets.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.uuid);
        bytes[32..36].copy_from_slice(&self.segments.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.segment_bytes.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.nvme_bytes.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.threshold_bytes.to_le_bytes());
        let crc = crc32c(0, &bytes[..BYTES - 4]);
        bytes[BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes what was read from `path`.
    pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        // What was named is another thing than this release reads: bad usage. A damaged pool is none of the user's mistakes.
        let refuse = |what: String| Error::usage("pool", what).with("path", path.display());
        let damaged = |what: String| Error::new(ErrorKind::Run, "pool", what).with("path", path.display());
        if bytes.len() < 12 || bytes[..8] != MAGIC {
            return Err(no_pool(path));
        }
        let word32 = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let version = word32(8);
        if version != FORMAT_VERSION {
            let what = format!(
                "the pool has format version {version}, but this release reads version {FORMAT_VERSION}"
            );
            return Err(
                refuse(what).remedy("use the release that created it, or destroy it and create a new one")
            );
        }
        if bytes.len() != BYTES || word32(BYTES - 4) != crc32c(0, &bytes[..BYTES - 4]) {
            return Err(damaged("the checksum of the superblock does not match".into())
                .remedy("the pool is damaged: restore it, or destroy it and create a new one"));
        }
        let word64 = |at: usize| u64::from(word32(at)) | u64::from(word32(at + 4)) << 32;
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[16..32]);
        Ok(Self {
            uuid,
            targets: word32(12),
            segments: word32(32),
            segment_bytes: word64(40),
            nvme_bytes: word64(48),
            threshold_bytes: word64(56),
        })
    }

    /// Reads it, after the lock was taken.
    pub(super) fn read(dir: &Path) -> Result<(Self, Lock), Error> {
        let path = dir.join(FILE);
        let mut lock = Self::lock_at(&path, dir)?;
        let mut bytes = Vec::new();
        let read = lock.0.read_to_end(&mut bytes);
        read.map_err(|error| file_error("cannot read the superblock", &path, error))?;
        Ok((Self::decode(&bytes, &path)?, lock))
    }

    /// Locks it to be looked at: nothing is written, so a file that may only be read will do.
    pub(super) fn lock_to_look(dir: &Path) -> Result<Lock, Error> {
        let path = dir.join(FILE);
        let file = File::open(&path).map_err(|error| file_error("cannot open the pool", &path, error))?;
        lock(file, dir)
    }

    /// Whether its numbers can be those of a pool: what was written by no release must not be computed with.
    pub(super) fn is_plausible(&self) -> bool {
        let segments = SEGMENTS_MIN..=u64::from(u32::MAX);
        (1..=TARGETS_MAX).contains(&self.targets)
            && segments.contains(&u64::from(self.segments))
            && self.segment_bytes.is_power_of_two()
            && (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes)
            && self.nvme_bytes.is_multiple_of(4096)
            && self.nvme_bytes < 1 << 50
    }

    /// Opens it at a path and locks it.
    pub(super) fn lock_at(path: &Path, dir: &Path) -> Result<Lock, Error> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| {
            let is_absent = error.kind() == std::io::ErrorKind::NotFound;
            let error = file_error("cannot open the pool", path, error);
            if is_absent {
                error.remedy("create one first (strata pool create), or check the directory")
            } else {
                error
            }
        })?;
        lock(file, dir)
    }

    /// Whether it is one, whatever else is wrong with it.
    pub(super) fn check_magic(path: &Path) -> Result<(), Error> {
        let bytes =
            std::fs::read(path).map_err(|error| file_error("cannot read the superblock", path, error))?;
        if bytes.starts_with(&MAGIC) { Ok(()) } else { Err(no_pool(path)) }
    }

    /// Text of the UUID.
    pub(super) fn uuid_text(&self) -> String {
        uuid_text(&self.uuid)
    }
}

/// Whether bytes that are no superblock of this release are one that was damaged, and not one of another release.
pub(super) fn is_damaged(bytes: &[u8]) -> bool {
    let stored = bytes.last_chunk::<4>().map(|stored| u32::from_le_bytes(*stored));
    bytes.len() != BYTES || stored != Some(crc32c(0, &bytes[..BYTES - 4]))
}

fn no_pool(path: &Path) -> Error {
    Error::usage("pool", "the directory contains no pool: its superblock is invalid")
        .with("path", path.display())
        .remedy("use the directory of a pool")
}

/// The superblock's file, locked: keeps other processes out.
#[derive(Debug)]
pub(super) struct Lock(pub(super) File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Not by closing alone: a process that was forked just now has the file, too, until it runs its program.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Locks it.
pub(super) fn lock(file: File, dir: &Path) -> Result<Lock, Error> {
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
        let error = Error::system("pool", "the pool is open already", errno).with("path", dir.display());
        error.remedy("stop the process that has it open, or close it there first")
    })?;
    Ok(Lock(file))
}

/// Directory of a target.
pub(super) fn target_dir(dir: &Path, target: u32) -> PathBuf {
    dir.join(format!("target.{target}"))
}

/// The UUID of a pool that is going to be made: whoever makes it can write down before which one that will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUuid([u8; 16]);

impl PoolUuid {
    /// A new one (version 4).
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn draw() -> Result<Self, Error> {
        random_uuid().map(Self)
    }
}

impl std::fmt::Display for PoolUuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&uuid_text(&self.0))
    }
}

/// A random UUID (version 4).
pub(super) fn random_uuid() -> Result<[u8; 16], Error> {
    use ring::rand::SecureRandom;
    let mut uuid = [0; 16];
    ring::rand::SystemRandom::new()
        .fill(&mut uuid)
        .map_err(|_| Error::new(ErrorKind::System, "pool", "the system provides no random numbers"))?;
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}

/// Text of a UUID.
pub(super) fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
