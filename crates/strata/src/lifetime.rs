//! How long a server process lives: until a signal, the end of its standard input where that was asked for, or somebody who may tell it.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use driver::Error;
use layer::Ending;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
use signal_hook::iterator::Signals;

use crate::signals::REPEAT_TIME;

/// Begins to listen for what may end it. A second signal ends the process at once.
///
/// # Errors
/// When signals cannot be handled.
pub(crate) fn begin(until_stdin_closes: bool) -> Result<Ending, Error> {
    let (sender, receiver) = channel();
    let failed = |error| Error::system("signals", "cannot handle signals", error);
    let once = Arc::new(AtomicBool::new(false));
    let ending = crate::signals::ending();
    for &signal in &ending {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&once)).map_err(failed)?;
    }
    let mut signals = Signals::new(&ending).map_err(failed)?;
    let teller = sender.clone();
    watch("signals", move || {
        for signal in &mut signals {
            let name = match signal {
                SIGINT => "SIGINT",
                SIGHUP => "SIGHUP",
                SIGQUIT => "SIGQUIT",
                _ => "SIGTERM",
            };
            // Whoever waited may be gone already, and then the end is under way.
            let _ = teller.send(format!("signal {name}"));
            // Repeats of the first are no second request.
            std::thread::sleep(REPEAT_TIME);
            once.store(true, Ordering::SeqCst);
        }
    })?;
    if until_stdin_closes {
        let teller = sender.clone();
        watch("stdin", move || {
            let mut ignored = [0; 4096];
            while std::io::stdin().read(&mut ignored).is_ok_and(|count| count > 0) {}
            // As above.
            let _ = teller.send("standard input was closed".to_owned());
        })?;
    }
    Ok(Ending { sender, receiver })
}

fn watch(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|error| Error::system("engine", "cannot start a thread", error).with("thread", name))
}
