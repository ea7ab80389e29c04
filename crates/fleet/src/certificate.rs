//! The certificate of a service: made at its first start and kept, or its operator's own.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use driver::{Error, ErrorKind};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::proof::fingerprint;
use crate::stream::Identity;

/// Largest file of a certificate or a key, bytes.
const BYTES_MAX: u64 = 1 << 20;

/// SHA-256 of a certificate (DER), by which a client knows a service again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Reads `sha256:` and 64 hexadecimal digits, colons between them or not.
    ///
    /// # Errors
    /// Any other text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refused = || {
            Error::usage("fingerprint", format!("{text:?} is not a certificate fingerprint"))
                .remedy("use sha256: and 64 hexadecimal digits, as printed by the service when it starts")
        };
        let digits: String = text.strip_prefix("sha256:").ok_or_else(refused)?.replace(':', "");
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(refused());
        }
        let mut bytes = [0; 32];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).map_err(|_| refused())?;
        }
        Ok(Self(bytes))
    }

    /// That of the certificate a connection is bound to: the first bytes of its binding; none without TLS.
    pub(crate) fn of_binding(binding: &[u8]) -> Option<Self> {
        Some(Self(*binding.first_chunk()?))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A certificate with its key.
#[derive(Clone)]
pub struct Certificate {
    pub(crate) identity: Identity,
    fingerprint: Fingerprint,
}

impl Certificate {
    /// The operator's own: PEM files with a certificate (its chain may follow) and with its key, which only its owner may read.
    ///
    /// # Errors
    /// Files that cannot be read or hold something else, a key that others may read, and one that is not the certificate's.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let chain = CertificateDer::pem_slice_iter(&read(certificate, false)?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(certificate, &error))?;
        let leaf = chain.first().ok_or_else(|| unusable(certificate, &"the file contains no certificate"))?;
        let print = fingerprint(leaf);
        let key_der =
            PrivateKeyDer::from_pem_slice(&read(key, true)?).map_err(|error| unusable(key, &error))?;
        let identity = Identity::of(chain, key_der).map_err(|error| {
            Error::usage("certificate", format!("certificate and key cannot be used together: {error}"))
                .with("certificate", certificate.display())
                .with("key", key.display())
                .remedy("use the key that belongs to the certificate")
        })?;
        let fingerprint = Fingerprint::of_binding(&print)
            .ok_or_else(|| unusable(certificate, &"its fingerprint has a wrong length"))?;
        Ok(Self { identity, fingerprint })
    }

    /// The one that is kept in these files; where neither is there, it is made, with mode 0600 in a directory of mode 0700.
    ///
    /// # Errors
    /// As with [`Certificate::load`]; files that cannot be written; one of the two without the other.
    pub fn load_or_make(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let failed = |path: &Path, error: io::Error| {
            Error::system("certificate", "cannot store the certificate of the service", error)
                .with("path", path.display())
                .remedy("use files of this user: --certificate FILE --key FILE")
        };
        for directory in [certificate, key].into_iter().filter_map(Path::parent) {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|error| failed(directory, error))?;
        }
        // Two services that start for the first time at once make one certificate.
        let lock_path = beside(key, "lock");
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(&lock_path);
        lock.and_then(|lock| lock.lock().map(|()| lock)).map_or_else(
            |error| Err(failed(&lock_path, error)),
            |_lock| {
                // The key comes last: a certificate without one was never used.
                if key.try_exists().map_err(|error| failed(key, error))? {
                    return Self::load(certificate, key);
                }
                let (made, signing_key) = Identity::make()?;
                let pem = |label: &str, der: &[u8]| {
                    let lines = STANDARD.encode(der);
                    let lines = lines.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>();
                    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
                };
                write(certificate, &pem("CERTIFICATE", &made)).map_err(|error| failed(certificate, error))?;
                write(key, &pem("PRIVATE KEY", &signing_key)).map_err(|error| failed(key, error))?;
                Self::load(certificate, key)
            },
        )
    }

    /// Its fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({})", self.fingerprint)
    }
}

fn unusable(path: &Path, why: &dyn fmt::Display) -> Error {
    Error::usage("certificate", format!("the file cannot be used: {why}"))
        .with("path", path.display())
        .remedy("use PEM files: a certificate and its key")
}

fn read(path: &Path, is_secret: bool) -> Result<Vec<u8>, Error> {
    let failed =
        |error| Error::system("certificate", "cannot read the file", error).with("path", path.display());
    let file = File::open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    if is_secret && facts.is_file() && facts.mode() & 0o077 != 0 {
        return Err(Error::new(
            ErrorKind::Unsafe,
            "certificate",
            "other users can read the key of the service",
        )
        .with("path", path.display())
        .with("mode", format!("{:04o}", facts.mode() & 0o7777))
        .remedy(format!("chmod 600 {}", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Writes a file of its owner alone, whole or not at all.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let new = beside(path, "new");
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// A file of the state of strata of this user: `$XDG_STATE_HOME/strata/NAME`, else `~/.local/state/strata/NAME`.
///
/// # Errors
/// Where neither variable names a directory.
pub fn state_file(name: &str) -> Result<PathBuf, Error> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("XDG_STATE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("strata").join(name))
        .ok_or_else(|| {
            Error::usage("state", format!("there is no directory to store {name} in"))
                .remedy("set XDG_STATE_HOME or HOME to an absolute path, or specify the file")
        })
}
