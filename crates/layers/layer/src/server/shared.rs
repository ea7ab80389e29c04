//! Stores in directories that several processes of one machine use: one process alone can have such a store open, so an engine that the run
//! starts has it open, and serves it to all of them over loopback.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use driver::Error;
use rustix::fs::{MemfdFlags, Mode, fchmod, memfd_create};

use super::local::{LocalEngine, LocalRequest};
use crate::secret;

/// Engines of a run, a directory each. They end when this is dropped, and with this process however it ends.
#[derive(Debug, Default)]
pub struct SharedStores {
    served: Vec<SharedStore>,
    /// The secret that they demand, in a file without a name: nobody but this user may read it, and it is gone with this process.
    token: Option<File>,
}

/// A store that an engine of the run serves.
#[derive(Debug)]
struct SharedStore {
    directory: PathBuf,
    target: String,
    engine: LocalEngine,
}

impl SharedStores {
    /// Label of the pool of each of them.
    pub const POOL: &'static str = "pool";

    /// Serves the pool in a directory, in which there is one: its absolute path, and where it is served, `HOST:PORT`. `target` is what the user
    /// calls it. A directory that is served already is not served a second time.
    ///
    /// # Errors
    /// Why the engine does not serve, and why the directory cannot be looked up.
    pub fn serve(&mut self, target: &str, directory: &Path) -> Result<(PathBuf, String), Error> {
        let directory = directory.canonicalize().map_err(|error| {
            Error::system("hosts", "cannot look up the directory of a store", error)
                .with("directory", directory.display())
        })?;
        let at = match self.served.iter().position(|served| served.directory == directory) {
            Some(at) => at,
            None => {
                let token_file = self.token_file()?;
                let request = LocalRequest {
                    provider: "tcp",
                    token_file: Some(&token_file),
                    pool: Some((&directory, Self::POOL)),
                    ..LocalRequest::default()
                };
                let engine =
                    LocalEngine::start(&request).map_err(|error| error.with("target", target.to_owned()))?;
                self.served.push(SharedStore { directory, target: target.to_owned(), engine });
                self.served.len() - 1
            }
        };
        let served = &self.served[at];
        Ok((served.directory.clone(), served.address().to_owned()))
    }

    /// Path of the file with the secret that the engines demand, as long as this process lives.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn token_file(&mut self) -> Result<PathBuf, Error> {
        let failed = |error| Error::system("hosts", "cannot keep the token of an engine", error);
        let token = match self.token.take() {
            Some(token) => token,
            None => {
                let file =
                    memfd_create("token", MemfdFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
                fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(|errno| failed(errno.into()))?;
                let file = File::from(file);
                std::io::Write::write_all(&mut &file, secret::random_line()?.as_bytes()).map_err(failed)?;
                file
            }
        };
        let path = format!("/proc/{}/fd/{}", std::process::id(), token.as_raw_fd());
        self.token = Some(token);
        Ok(path.into())
    }

    /// A line on each store for the user and the record.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let note = |served: &SharedStore| {
            format!(
                "{} is served to the processes of this run by an engine at {}, because only one process can open it",
                served.target,
                served.address()
            )
        };
        self.served.iter().map(note).collect()
    }
}

impl SharedStore {
    fn address(&self) -> &str {
        let uri = self.engine.uri();
        uri.strip_prefix("tcp://").unwrap_or(uri)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_token_is_one_that_this_user_alone_may_read() {
        let mut stores = SharedStores::default();
        let path = stores.token_file().unwrap();
        assert_eq!(stores.token_file().unwrap(), path, "one for all engines");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(std::fs::read(&path).unwrap().len(), 64);
        assert!(secret::shared(Some(&path)).unwrap().is_some());
        drop(stores);
        assert!(secret::shared(Some(&path)).is_err(), "it is gone with the stores");
    }
}
