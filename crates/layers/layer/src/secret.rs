//! Files with secrets.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use driver::{Error, ErrorKind, Secret};

/// Longest secret, in bytes.
const BYTES_MAX: u64 = 4096;

/// The shared secret of a file, for connections of data and of control; none where no file was given. Line ends after the secret are not
/// part of it.
///
/// # Errors
/// When it cannot be read, when others than its owner can read it, or when the secret is too short.
pub fn shared(path: Option<&Path>) -> Result<Option<Secret>, Error> {
    path.map(read).transpose()
}

fn read(path: &Path) -> Result<Secret, Error> {
    let bytes = read_guarded(path, "shared token")?;
    let length = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    Secret::new(&bytes[..length]).ok_or_else(|| {
        Error::usage("token", format!("the shared token has {length} bytes"))
            .with("path", path.display())
            .remedy(format!(
                "use at least {} random bytes: head -c 32 /dev/urandom | base64",
                Secret::BYTES_MIN
            ))
    })
}

/// The content of a file that nobody but its owner may read; `what` is in it.
///
/// # Errors
/// When it cannot be read, or when others than its owner can read it.
pub fn read_guarded(path: &Path, what: &str) -> Result<Vec<u8>, Error> {
    let failed = |error| {
        Error::system("token", format!("cannot read the file with the {what}"), error)
            .with("path", path.display())
    };
    let file = File::open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if facts.is_file() && facts.uid() != own && facts.uid() != 0 {
        let message = format!("the file with the {what} belongs to user {}", facts.uid());
        return Err(Error::new(ErrorKind::Unsafe, "token", message)
            .with("path", path.display())
            .remedy("give one that belongs to this user or to root"));
    }
    if facts.is_file() && facts.mode() & 0o077 != 0 {
        let message = format!("others than its owner may use the file with the {what}");
        return Err(Error::new(ErrorKind::Unsafe, "token", message)
            .with("path", path.display())
            .with("mode", format!("{:04o}", facts.mode() & 0o7777))
            .remedy(format!("chmod 600 {}", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > BYTES_MAX {
        let message = format!("the file with the {what} has more than {BYTES_MAX} bytes");
        return Err(Error::usage("token", message).with("path", path.display()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(content: &[u8], mode: u32) -> Result<Secret, Error> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        std::fs::write(&path, content).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its owner");
        super::read(&path)
    }

    #[test]
    fn a_secret_is_read_without_its_line_end() {
        let one = read(b"sixteen bytes...\n", 0o600).expect("a secret");
        let other = Secret::new(b"sixteen bytes...").expect("long enough");
        assert!(one.accepts(&[b"x"], &other.prove(&[b"x"])));
    }

    #[test]
    fn what_others_may_read_and_what_is_too_short_is_refused() {
        for mode in [0o640, 0o604, 0o660] {
            let error = read(b"sixteen bytes...", mode).expect_err("open to others");
            assert!(error.to_string().contains("chmod 600") && error.exit_code() == 2, "{error}");
        }
        let error = read(b"fifteen bytes..\n\n", 0o600).expect_err("too short").to_string();
        assert!(error.contains("15 bytes") && error.contains("at least 16"), "{error}");
        assert!(read(&[b'x'; 5000], 0o600).expect_err("too long").to_string().contains("more than 4096"));
    }
}
