//! The `strata` command.

use std::process::ExitCode;

use units::label_of;

fn main() -> ExitCode {
    strata::settle_environment();
    // The clock's calibration runs on while the command line is read.
    // Words are text from here on; a name that is not UTF-8 is spelled out, and made itself again where a file is opened.
    let words: Vec<String> = std::env::args_os().map(|word| label_of(&word)).collect();
    ExitCode::from(strata::run(&words))
}
