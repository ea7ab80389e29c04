//! Data that others have written and the page cache still holds goes to the drive before the first pass: it would go there during the passes.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use units::ByteSize;

use crate::output;
use crate::session::Session;

/// Longest time to wait: a drive that needs longer is busy with others, and its rows say so.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often the amount that is left is shown, and an interrupt is looked for.
const SHOWN: Duration = Duration::from_millis(200);

/// Has the kernel write back the file system of `directory` (syncfs(2)), and what the page cache holds of `device`, and waits for it.
///
/// A system call that writes back cannot be ended: after [`WAIT_MAX`], or an interrupt, it goes on by itself.
pub(super) fn settle(session: &mut Session, directory: &Path, device: Option<&str>) {
    let (directory, device) = (directory.to_owned(), device.map(PathBuf::from));
    let (begun, before_bytes) = (Instant::now(), dirty_bytes());
    let (done, is_done) = mpsc::channel::<()>();
    thread::spawn(move || {
        write_back(directory, device);
        drop(done);
    });
    // The channel is closed when all is written.
    while is_done.recv_timeout(SHOWN) == Err(RecvTimeoutError::Timeout) && !session.is_interrupted() {
        let left_bytes = dirty_bytes();
        if begun.elapsed() > WAIT_MAX {
            output::tell(format_args!(
                "strata: stack: {} of memory are still being written back after {} s: the first passes compete with that",
                ByteSize(left_bytes).human(),
                WAIT_MAX.as_secs(),
            ));
            return;
        }
        let left = left_bytes as f64 / before_bytes.max(1) as f64;
        session.prepares("writing back the page cache", (1.0 - left).clamp(0.0, 1.0));
    }
}

/// Errors are those of files of others, or of a target that the rows will refuse in their own words.
fn write_back(directory: PathBuf, device: Option<PathBuf>) {
    if let Ok(directory) = File::open(directory) {
        let _ = rustix::fs::syncfs(directory.as_fd());
    }
    if let Some(Ok(device)) = device.map(File::open) {
        let _ = device.sync_all();
    }
}

/// Bytes of the page cache that are to be written back, of all file systems.
fn dirty_bytes() -> u64 {
    host::memory::memory().dirty_bytes.unwrap_or(0)
}
