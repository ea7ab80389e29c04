//! A file system that is full before the pool is: errors, never signals, and nothing that was acknowledged is lost.

use std::path::{Path, PathBuf};
use std::process::Command;

use vos::model::ObjectId;
use vos::{
    Ack, ContainerId, ContainerProperties, KeyPath, OpenOptions, Pool, PoolOptions, Punch, Read, StoreError,
    Write,
};

/// A test process that finds this has a small file system there.
const DIR: &str = "CRASH_FULL_DIR";

struct Filled {
    pool: Pool,
    container: ContainerId,
    path: PathBuf,
    /// Version of each value; none: punched.
    versions: Vec<Option<u64>>,
    bytes: usize,
}

fn value(number: usize, version: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(31) ^ version ^ (number as u64 * 7)) as u8).collect()
}

impl Filled {
    /// Writes values until there is no space.
    fn new(path: PathBuf, nvme_bytes: u64, bytes: usize) -> Self {
        let options = PoolOptions {
            scm_bytes: 64 << 20,
            nvme_bytes,
            threshold_bytes: 16 << 10,
            ..PoolOptions::default()
        };
        let pool = Pool::create(&path, &options).expect("the pool is larger than the file system");
        let container = pool.create_container("strata", &ContainerProperties::default()).expect("made");
        let mut filled = Self { pool, container, path, versions: Vec::new(), bytes };
        loop {
            filled.versions.push(None);
            let number = filled.versions.len() - 1;
            match filled.update(number, 1) {
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error.errno(), 28, "{error}");
                    filled.versions.pop();
                    return filled;
                }
            }
        }
    }

    fn with_place<R>(&self, number: usize, work: impl FnOnce(&KeyPath<'_>) -> R) -> R {
        let dkey = (number as u64).to_le_bytes();
        let object = ObjectId { lo: 1, hi: 0 };
        work(&KeyPath { container: self.container, object, dkey: &dkey, akey: b"" })
    }

    fn update(&mut self, number: usize, version: u64) -> Result<(), StoreError> {
        let value = value(number, version, self.bytes);
        let target = self.pool.target(0);
        let done =
            self.with_place(number, |place| target.update(place, Write::Single, &value, Ack::AsConfigured));
        done.map(|_| self.versions[number] = Some(version))
    }

    fn check(&self) {
        let mut buffer = vec![0; self.bytes];
        for (number, version) in self.versions.iter().enumerate() {
            let target = self.pool.target(0);
            let found = self.with_place(number, |place| target.fetch(place, Read::Single, None, &mut buffer));
            match version {
                Some(version) => {
                    found.expect("there");
                    assert!(buffer == value(number, *version, self.bytes), "value {number}");
                }
                None => assert_eq!(found.err(), Some(StoreError::NotFound)),
            }
        }
    }

    fn reopened(self) -> Self {
        drop(self.pool);
        Self { pool: Pool::open(&self.path, &OpenOptions::default()).expect("opens"), ..self }
    }

    fn punch_half(&mut self) {
        for number in (0..self.versions.len()).step_by(2) {
            let target = self.pool.target(0);
            self.with_place(number, |place| target.punch(place, Punch::Dkey, Ack::AsConfigured))
                .expect("punched");
            self.versions[number] = None;
        }
    }
}

fn fill_and_go_on(dir: &Path, nvme_bytes: u64, bytes: usize, least: usize) {
    let mut filled = Filled::new(dir.join("pool"), nvme_bytes, bytes);
    assert!(filled.versions.len() >= least, "only {} values", filled.versions.len());
    filled.check();
    filled = filled.reopened();
    filled.check();
    filled.punch_half();
    for version in 2..12 {
        for number in (1..filled.versions.len()).step_by(2) {
            filled.update(number, version).expect("room of what was punched and replaced");
        }
    }
    filled.check();
    filled.reopened().check();
    Pool::destroy(&dir.join("pool")).expect("destroyed");
}

#[test]
fn on_a_full_file_system() {
    if let Some(dir) = std::env::var_os(DIR) {
        let dir = PathBuf::from(dir);
        fill_and_go_on(&dir, 0, 4000, 3000);
        fill_and_go_on(&dir, 1 << 30, 30_000, 300);
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    // A file system of its own, in a namespace of its own.
    let script = "mount -t tmpfs -o size=40m none \"$1\" || exit 77; exec \"$2\" --exact full::on_a_full_file_system --nocapture";
    let status = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(dir.path())
        .arg(std::env::current_exe().expect("the test's own path"))
        .env(DIR, dir.path())
        .status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => {}
        Ok(Some(1 | 77)) | Err(_) if !can_unshare() => eprintln!("not run: no namespaces here"),
        other => panic!("{other:?}"),
    }
}

fn can_unshare() -> bool {
    let script = "mount -t tmpfs none /tmp";
    let status =
        Command::new("unshare").args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).status();
    status.is_ok_and(|status| status.success())
}
