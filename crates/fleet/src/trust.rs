//! Which certificates a client takes: pinned ones, and those of services that it has met before.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use driver::{Error, ErrorKind};

use crate::address::HostAddress;
use crate::certificate::Fingerprint;

/// Fingerprints of services by host. What stands in between is kept out by the shared secret already; this also tells when a service that knows the
/// secret is another one than before.
#[derive(Debug)]
pub struct Trust {
    pins: HashMap<HostAddress, Fingerprint>,
    known: HashMap<HostAddress, Fingerprint>,
    /// Where hosts are kept that were met for the first time; none: nowhere.
    path: Option<PathBuf>,
    learned: Mutex<Vec<(HostAddress, Fingerprint)>>,
}

impl Trust {
    /// Of these pins, each `HOST=sha256:HEX`, and of the hosts that a file knows: a line `HOST:PORT sha256:HEX` for each.
    ///
    /// # Errors
    /// Pins and lines that are none, and a file that cannot be read. One that is not there knows nobody.
    pub fn new(pins: &[String], port_default: u16, path: Option<PathBuf>) -> Result<Self, Error> {
        let mut pinned = HashMap::new();
        for pin in pins {
            let (host, print) = pin.split_once('=').ok_or_else(|| {
                Error::usage("fingerprint", format!("{pin:?} does not name a host"))
                    .remedy("use HOST=sha256:HEX")
            })?;
            pinned.insert(HostAddress::parse(host, port_default)?, Fingerprint::parse(print)?);
        }
        let text = match path.as_deref().map(fs::read_to_string) {
            None => String::new(),
            Some(Ok(text)) => text,
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Some(Err(error)) => {
                let path = path.unwrap_or_default();
                return Err(Error::system("known_hosts", "cannot read the list of known hosts", error)
                    .with("path", path.display()));
            }
        };
        let known = parse(&text, path.as_deref())?;
        Ok(Self { pins: pinned, known, path, learned: Mutex::default() })
    }

    /// Checks what a host has shown, before anything is said to it.
    pub(crate) fn check(&self, host: &HostAddress, shown: Fingerprint) -> Result<(), Error> {
        let refused = |message: &str, expected: Fingerprint| {
            Error::new(ErrorKind::Unsafe, "connect", message)
                .with("host", host)
                .with("expected", expected)
                .with("shown", shown)
        };
        match (self.pins.get(host), self.known.get(host)) {
            (Some(pin), _) if *pin != shown => Err(refused(
                "the certificate of the service differs from the pinned one",
                *pin,
            )
            .remedy(
                "this may be an attack (man in the middle); otherwise use the fingerprint that the service prints when it starts",
            )),
            (None, Some(known)) if *known != shown => {
                let path = self.path.as_deref().unwrap_or(Path::new("")).display();
                Err(refused("the certificate of the service has changed", *known).remedy(format!(
                    "if the service was set up again, remove the line of {host} from {path}; otherwise this may be an attack"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Notes a host that has proven itself.
    pub(crate) fn learn(&self, host: &HostAddress, shown: Fingerprint) {
        if self.path.is_some() && !self.pins.contains_key(host) && !self.known.contains_key(host) {
            let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
            learned.push((host.clone(), shown));
        }
    }

    /// Writes down the hosts that were met for the first time.
    ///
    /// # Errors
    /// A file that cannot be written, and one in which somebody else has noted another fingerprint meanwhile.
    pub fn save(&self) -> Result<(), Error> {
        let learned = std::mem::take(&mut *self.learned.lock().unwrap_or_else(PoisonError::into_inner));
        let (Some(path), false) = (&self.path, learned.is_empty()) else { return Ok(()) };
        let failed = |error| {
            Error::system(
                "known_hosts",
                "cannot save the hosts that were contacted for the first time",
                error,
            )
            .with("path", path.display())
        };
        if let Some(directory) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        }
        let file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path);
        let mut file = file.map_err(failed)?;
        file.lock().map_err(failed)?;
        let mut text = String::new();
        file.rewind().and_then(|()| file.read_to_string(&mut text)).map_err(failed)?;
        let there = parse(&text, Some(path))?;
        let mut lines = String::new();
        for (host, shown) in learned {
            match there.get(&host) {
                None => lines.push_str(&format!("{host} {shown}\n")),
                Some(known) if *known == shown => {}
                Some(known) => {
                    return Err(Error::new(
                        ErrorKind::Unsafe,
                        "known_hosts",
                        "the host presented two certificates",
                    )
                    .with("host", host)
                    .with("expected", known)
                    .with("shown", shown));
                }
            }
        }
        file.write_all(lines.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
    }
}

fn parse(text: &str, path: Option<&Path>) -> Result<HashMap<HostAddress, Fingerprint>, Error> {
    let mut known = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |error: Error| {
            error.with("path", path.unwrap_or(Path::new("")).display()).with("line", number + 1)
        };
        let (host, print) = line.split_once(char::is_whitespace).ok_or_else(|| {
            at(Error::usage("known_hosts", "a line is HOST:PORT sha256:HEX").remedy("remove the line"))
        })?;
        let host = HostAddress::parse(host, 0).map_err(at)?;
        known.insert(host, Fingerprint::parse(print.trim()).map_err(at)?);
    }
    Ok(known)
}
