//! Facts of standard error: whether it is a terminal, how large, ours to draw on.

use std::io::stderr;

use rustix::process::getpgrp;
use rustix::termios::{isatty, tcgetpgrp, tcgetwinsize};

/// Size where a terminal does not tell its own.
const DEFAULT: (u16, u16) = (80, 24);

/// Whether standard error is a terminal that understands more than plain text.
pub(crate) fn stderr_can_draw() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    isatty(stderr()) && !dumb
}

/// Whether this process may take over the terminal: a job in the background would be stopped when it tries.
pub(crate) fn in_foreground() -> bool {
    tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp())
}

/// Columns and rows of the terminal at standard error as it is now.
pub(crate) fn stderr_size() -> (u16, u16) {
    match tcgetwinsize(stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => DEFAULT,
    }
}
