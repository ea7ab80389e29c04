//! Folders of sockets that killed processes have left.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::server::SOCKET;

/// Beginning of the name of that folder; the number of the process and one of its own follow.
pub(super) const FOLDER: &str = "strata-mount-";
/// Age from which a folder without a socket is left by a process that has ended: those that go on make it at once.
const BARE_AGE_MIN: Duration = Duration::from_secs(60);

/// Removes the folders that processes of this user have left which were killed: nobody listens at their sockets any more.
pub(super) fn remove(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let folder = entry.path();
        let is_meant = entry.file_name().as_encoded_bytes().starts_with(FOLDER.as_bytes());
        let Ok(facts) = std::fs::symlink_metadata(&folder) else { continue };
        if !is_meant || !facts.is_dir() || facts.uid() != rustix::process::geteuid().as_raw() {
            continue;
        }
        let socket = folder.join(SOCKET);
        match UnixStream::connect(&socket) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(&socket);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let age = facts.modified().ok().and_then(|then| then.elapsed().ok());
                if age.is_none_or(|age| age < BARE_AGE_MIN) {
                    continue;
                }
            }
            _ => continue,
        }
        // One that holds something else stays.
        let _ = std::fs::remove_dir(&folder);
    }
}
