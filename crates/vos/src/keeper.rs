//! The thread that keeps the targets of a pool supplied: segments with their space ahead of the writers, and free ones.

use std::sync::Arc;
use std::thread::JoinHandle;

use driver::Error;
use parking_lot::{Condvar, Mutex};

use super::storage_target::Target;

#[derive(Debug, Default)]
struct Call {
    is_rung: bool,
    is_ending: bool,
}

/// Calls the keeper.
#[derive(Debug, Default)]
pub(super) struct Bell {
    call: Mutex<Call>,
    changed: Condvar,
}

impl Bell {
    /// There is something to do: a segment was begun.
    pub(super) fn ring(&self) {
        let mut call = self.call.lock();
        if !call.is_rung {
            call.is_rung = true;
            self.changed.notify_one();
        }
    }

    /// Waits for a call; false where it is the last.
    fn wait(&self) -> bool {
        let mut call = self.call.lock();
        while !call.is_rung && !call.is_ending {
            self.changed.wait(&mut call);
        }
        call.is_rung = false;
        !call.is_ending
    }

    fn is_ending(&self) -> bool {
        self.call.lock().is_ending
    }
}

/// The thread.
#[derive(Debug)]
pub(super) struct Keeper {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start(targets: &[Arc<Target>], bell: Arc<Bell>) -> Result<Self, Error> {
        let (own, targets) = (bell.clone(), targets.to_vec());
        let work = move || {
            while own.wait() {
                targets.iter().take_while(|_| !own.is_ending()).for_each(|target| target.keep());
            }
        };
        let thread = std::thread::Builder::new().name("store-keep".into()).spawn(work);
        let thread = thread
            .map_err(|error| Error::system("pool", "cannot start the thread that allocates space", error))?;
        bell.ring();
        Ok(Self { bell, thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.bell.call.lock().is_ending = true;
        self.bell.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
