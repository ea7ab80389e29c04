//! Signals that end a run: the first has it end in order, with what it made removed; the second ends the process at once.
//!
//! One request to end often arrives twice: timeout(1) signals its child and then its process group, and launchers pass on what they were sent as often
//! as they were sent it. Signals within [`REPEAT_TIME`] of the first are one request with it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use driver::Error;
use rustix::process::getppid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::manifest::Manifest;
use crate::output::tell;

/// Signals that end a process, and may be caught.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// Time after the first signal in which more of them are repeats of it. It is short beside the time that a user waits before asking again.
pub(crate) const REPEAT_TIME: Duration = Duration::from_millis(500);
/// How often the leader of a launch looks whether its launcher is there.
const LOOK: Duration = Duration::from_millis(50);
/// Exit code of a process that a second signal has ended: the run failed.
const FAILED: i32 = 1;

/// Listener for signals, as long as a run lasts.
pub(crate) struct Attention {
    handle: Handle,
    manifest: Arc<Mutex<Option<Arc<Manifest>>>>,
    signals: Vec<i32>,
}

/// Those that this process shall end by: a hang-up that it was started to ignore (nohup) is ignored.
pub(crate) fn ending() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ENDING.into_iter().filter(|signal| *signal != SIGHUP || ignored >> (SIGHUP - 1) & 1 == 0).collect()
}

fn failed(error: std::io::Error) -> Error {
    Error::system("signals", "cannot handle signals", error)
}

impl Attention {
    /// Begins to listen: `interrupt` is set by the first signal.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub(crate) fn begin(interrupt: &Arc<AtomicBool>) -> Result<Self, Error> {
        let signals = ending();
        let mut all = Signals::new(&signals).map_err(failed)?;
        let (handle, manifest) = (all.handle(), Arc::new(Mutex::new(None)));
        let attention = Self { handle, manifest: Arc::clone(&manifest), signals };
        attention.interrupts(interrupt)?;
        let listen = move || {
            // The first has been seen by whoever it was set for.
            let mut signals = all.forever();
            let first = signals.next().map(|_| Instant::now());
            if first.is_some_and(|first| signals.any(|_| first.elapsed() >= REPEAT_TIME)) {
                let manifest = manifest.lock().unwrap_or_else(PoisonError::into_inner).clone();
                tell_what_is_left(manifest.as_deref());
                // An operation may hang, and so may whatever would be done in order.
                signal_hook::low_level::exit(FAILED);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(failed)?;
        Ok(attention)
    }

    /// Has a flag set by every signal.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub(crate) fn interrupts(&self, flag: &Arc<AtomicBool>) -> Result<(), Error> {
        for signal in &self.signals {
            signal_hook::flag::register(*signal, Arc::clone(flag)).map_err(failed)?;
        }
        Ok(())
    }

    /// Takes the end of the process that has started this one for a signal, where none came before it. Open MPI's mpirun sends none when it is
    /// signalled twice, and MPI ends the ranks a second after it has gone: what is to be removed and written must be by then.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub(crate) fn heeds_launcher(&self, interrupt: &Arc<AtomicBool>) -> Result<(), Error> {
        let (launcher, interrupt) = (getppid(), Arc::clone(interrupt));
        let watch = move || {
            while getppid() == launcher {
                std::thread::sleep(LOOK);
            }
            // After a signal of the launcher its end is no second one.
            if !interrupt.load(Ordering::Relaxed) {
                // That it may be raised is known: it is handled.
                let _ = signal_hook::low_level::raise(SIGTERM);
            }
        };
        std::thread::Builder::new().name("launcher".to_owned()).spawn(watch).map(drop).map_err(failed)
    }

    /// Takes the manifest that lists the files and objects left when a second signal comes.
    pub(crate) fn knows(&self, manifest: &Arc<Manifest>) {
        *self.manifest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(manifest));
    }
}

impl Drop for Attention {
    fn drop(&mut self) {
        self.handle.close();
    }
}

fn tell_what_is_left(manifest: Option<&Manifest>) {
    let Some((manifest, path)) = manifest.and_then(|manifest| Some((manifest, manifest.path()?))) else {
        return tell("strata: ended by a second signal");
    };
    let left = manifest.words();
    tell(format_args!(
        "strata: ended by a second signal before everything was removed: {} may be left; {} removes it",
        left.join(", "),
        command(&path)
    ));
}

/// The command that removes what is left.
pub(crate) fn command(manifest: &Path) -> String {
    format!("strata clean --yes {}", manifest.display())
}
