//! Commits at times: nothing waits longer than 10 ms with `Durability::Batch`.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use driver::Error;
use parking_lot::{Condvar, Mutex};

use super::Target;

/// Longest wait.
const PERIOD: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
struct Shared {
    is_ending: Mutex<bool>,
    ended: Condvar,
}

/// A thread that commits.
#[derive(Debug)]
pub(super) struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    pub(super) fn start(targets: &[Arc<Target>]) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let (own, targets) = (shared.clone(), targets.to_vec());
        let work = move || {
            let mut is_ending = own.is_ending.lock();
            while !*is_ending {
                own.ended.wait_for(&mut is_ending, PERIOD);
                for target in &targets {
                    // A target that fails says so to the next change.
                    let _ = target.commit();
                }
            }
        };
        let thread = std::thread::Builder::new().name("store-commit".into()).spawn(work);
        let thread =
            thread.map_err(|error| Error::system("pool", "cannot start the thread that commits", error))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Ends it, after a last commit.
    pub(super) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        *self.shared.is_ending.lock() = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.end();
    }
}
