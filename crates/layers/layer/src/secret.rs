//! Files with secrets.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
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

/// Variable that names a file with the shared secret.
pub const TOKEN_FILE_VARIABLE: &str = "STRATA_TOKEN_FILE";
/// Variable that is the shared secret.
pub const TOKEN_VARIABLE: &str = "STRATA_TOKEN";

/// The shared secret of a file that was named, else of the one that `STRATA_TOKEN_FILE` names, else of `STRATA_TOKEN`; none where nothing was said.
///
/// # Errors
/// As with [`shared`]; both variables at once, and one that is empty.
pub fn shared_or_environment(path: Option<&Path>) -> Result<Option<Secret>, Error> {
    let variable = |name: &str| std::env::var_os(name);
    find(path, variable(TOKEN_FILE_VARIABLE), variable(TOKEN_VARIABLE))
}

fn find(
    path: Option<&Path>,
    file: Option<OsString>,
    token: Option<OsString>,
) -> Result<Option<Secret>, Error> {
    match (path, file, token) {
        (Some(path), _, _) => read(path).map(Some),
        (None, Some(_), Some(_)) => {
            Err(Error::usage("token", format!("{TOKEN_FILE_VARIABLE} and {TOKEN_VARIABLE} are both set"))
                .remedy("unset one of them"))
        }
        (None, Some(file), None) => read(Path::new(&file)).map(Some),
        (None, None, Some(token)) => of_bytes(token.as_bytes(), TOKEN_VARIABLE).map(Some),
        (None, None, None) => Ok(None),
    }
}

fn read(path: &Path) -> Result<Secret, Error> {
    let bytes = read_guarded(path, "shared token")?;
    of_bytes(&bytes, &path.display().to_string())
}

/// The secret of a text that may end with its line.
fn of_bytes(bytes: &[u8], source: &str) -> Result<Secret, Error> {
    let length = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    Secret::new(&bytes[..length]).ok_or_else(|| {
        Error::usage("token", format!("the shared token has only {length} bytes"))
            .with("source", source)
            .remedy(format!(
                "use at least {} random bytes: head -c 32 /dev/urandom | base64",
                Secret::BYTES_MIN
            ))
    })
}

/// A random secret, written in one line.
///
/// # Errors
/// When there are no random bytes.
pub fn random_line() -> Result<String, Error> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Error::system("token", "cannot read random bytes", error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
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
            .remedy("use a file owned by this user or by root"));
    }
    if facts.is_file() && facts.mode() & 0o077 != 0 {
        let message = format!("users other than its owner can access the file with the {what}");
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
    fn a_file_that_is_named_goes_before_the_environment_which_says_it_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        std::fs::write(&path, "sixteen bytes...").expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its owner");
        let is = |found: Option<Secret>, text: &str| {
            let other = Secret::new(text.as_bytes()).expect("long enough");
            found.expect("a secret").accepts(&[b"x"], &other.prove(&[b"x"]))
        };
        let (file, token) =
            (Some(path.clone().into_os_string()), Some(OsString::from("another token of 16\n")));
        assert!(is(find(Some(&path), None, token.clone()).expect("a file"), "sixteen bytes..."));
        assert!(is(find(None, file.clone(), None).expect("a file"), "sixteen bytes..."));
        assert!(is(find(None, None, token.clone()).expect("a token"), "another token of 16"));
        assert!(find(None, None, None).expect("nothing").is_none());
        assert!(find(None, file, token).expect_err("twice").to_string().contains("unset one"));
        let short = find(None, None, Some(OsString::new())).expect_err("empty").to_string();
        assert!(short.contains("0 bytes") && short.contains("STRATA_TOKEN"), "{short}");
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
