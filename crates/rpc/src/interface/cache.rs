//! The scan, kept in a file for the many processes of a host.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::Error;
use serde::{Deserialize, Serialize};

use super::files;
use super::scan::{FabricScan, Machine, Providers, ScanKey, unix_ns};
use super::turns::FileTurns;

/// Message of the DAOS agent when its cache is off.
pub const DISABLED_MESSAGE: &str = "GetAttachInfo agent caching has been disabled";
/// The variable of the DAOS agent that turns the cache off.
const VARIABLE: &str = "DAOS_AGENT_DISABLE_CACHE";
/// Longest wait for another process that scans.
const SCAN_WAIT: Duration = Duration::from_secs(10);
/// A scan is made anew after this time: facts that no link tells of may have changed.
const AGE_NS_MAX: u64 = 3_600_000_000_000;
/// The same for a scan without libfabric's providers, which may have been installed since.
const AGE_WITHOUT_PROVIDERS_NS_MAX: u64 = 10_000_000_000;
/// Scans that one file keeps: network namespaces and environments of the same user.
const SCANS_MAX: usize = 8;
/// Longest file that is read.
const BYTES_MAX: u64 = 16 << 20;

/// Where a scan came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Made now.
    Scanned,
    /// Read from the file.
    Cached {
        /// How old it is, in nanoseconds.
        age_ns: u64,
    },
}

/// A scan and how it was come by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The scan.
    pub scan: FabricScan,
    /// Where it came from.
    pub origin: Origin,
    /// Messages for a person: the cache is off, or could not be written.
    pub messages: Vec<String>,
}

/// Where scans are kept.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
    is_off: bool,
    messages: Vec<String>,
    scan_wait: Duration,
}

/// The file.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    scans: Vec<FabricScan>,
}

impl Cache {
    /// In the user's directory of the session, else in `/tmp`; off while the environment has `DAOS_AGENT_DISABLE_CACHE=true`.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::in_directory(&files::directory(), std::env::var(VARIABLE).ok().as_deref())
    }

    /// In `directory`; `disable` is the value of `DAOS_AGENT_DISABLE_CACHE`.
    #[must_use]
    pub fn in_directory(directory: &Path, disable: Option<&str>) -> Self {
        let mut cache =
            Self { directory: directory.to_owned(), is_off: false, messages: vec![], scan_wait: SCAN_WAIT };
        match disable.map(str::trim) {
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => {
                cache.is_off = true;
                cache.messages.push(DISABLED_MESSAGE.to_owned());
            }
            None | Some("" | "0" | "f" | "F" | "false" | "FALSE" | "False") => {}
            Some(other) => cache.messages.push(format!(
                "{VARIABLE}={} is neither true nor false: the cache stays on",
                other.escape_debug()
            )),
        }
        cache
    }

    /// The same with another longest wait for a process that scans.
    #[must_use]
    pub fn waiting(self, scan_wait: Duration) -> Self {
        Self { scan_wait, ..self }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(format!("strata-fabric-scan-{}.json", files::user()))
    }

    /// Turns over the processes of this user. They are counted while the cache is off too. With `advance` a turn is taken, without
    /// it only looked at.
    #[must_use]
    pub fn turns(&self, advance: bool) -> FileTurns {
        FileTurns::at(&self.directory, advance)
    }

    /// The scan of `machine`: from the file while nothing changed, else made now and kept. Of many processes that begin at once one
    /// scans and the others wait for it.
    ///
    /// # Errors
    /// When the kernel does not list the interfaces. A file that cannot be used is a message.
    pub fn find(&self, machine: &Machine<'_>, providers: Providers<'_>) -> Result<Found, Error> {
        let key = machine.key()?;
        let mut messages = self.messages.clone();
        if self.is_off {
            return Ok(Found { scan: machine.scan(key, providers), origin: Origin::Scanned, messages });
        }
        let path = self.path();
        let known =
            |(scan, age_ns)| Found { scan, origin: Origin::Cached { age_ns }, messages: messages.clone() };
        if let Some(found) = kept(&path, &key) {
            return Ok(known(found));
        }
        let lock = files::lock(&path.with_extension("lock"), self.scan_wait);
        if let Some(found) = lock.is_ok().then(|| kept(&path, &key)).flatten() {
            return Ok(known(found));
        }
        let scan = machine.scan(key, providers);
        if let Err(error) = lock.and_then(|_lock| keep(&path, &scan)) {
            messages.push(format!("the scan cannot be cached in {}: {}", path.display(), words(&error)));
        }
        Ok(Found { scan, origin: Origin::Scanned, messages })
    }
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "another process held the lock for too long".to_owned(),
        _ => error.to_string(),
    }
}

/// The scan of the file that still holds, and its age in nanoseconds.
fn kept(path: &Path, key: &ScanKey) -> Option<(FabricScan, u64)> {
    let scan = read(path).into_iter().find(|scan| scan.key == *key)?;
    // A scan of the future is one from before the clock was set.
    let age_ns = unix_ns().checked_sub(scan.scanned_at_unix_ns)?;
    let max = if scan.providers_unknown.is_some() { AGE_WITHOUT_PROVIDERS_NS_MAX } else { AGE_NS_MAX };
    (age_ns <= max).then_some((scan, age_ns))
}

fn read(path: &Path) -> Vec<FabricScan> {
    let text = files::open(path, false).and_then(|file| files::read(&file, BYTES_MAX));
    text.map(|text| parse(&text)).unwrap_or_default()
}

/// The scans of the file's text; of a damaged one, or one of another form, none.
pub(super) fn parse(text: &str) -> Vec<FabricScan> {
    serde_json::from_str::<Kept>(text).unwrap_or_default().scans
}

/// Puts the scan into the file, in the place of an older one of the same network namespace.
fn keep(path: &Path, scan: &FabricScan) -> io::Result<()> {
    let mut scans = read(path);
    scans.retain(|other| !other.key.same_place(&scan.key));
    scans.insert(0, scan.clone());
    scans.truncate(SCANS_MAX);
    files::replace(path, &serde_json::to_string(&Kept { scans })?)
}
