//! `strata mount`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};

use clap::{Arg, ArgAction, ArgMatches};
use driver::Error;
use layer::command::{arguments, fill, table_as_markdown};
use layer::{Command, CommandKind, Console, Measures};
use workload::help::{Example, Help};

use crate::library::intercept_library;
use crate::options::{MOUNT, MountSpec};
use crate::session::{Mounted, Unmounted, check};

/// Flag of the process that serves a mount in the background.
const DETACHED: &str = "detached";
/// Reason of the end when the file system was unmounted.
const UNMOUNTED: &str = "unmounted";

const HELP: Help = Help {
    options: &[
        "create",
        "background",
        "data-caching",
        "enable-wb-cache",
        "intercept",
        "threads",
        "token-file",
    ],
    examples: &[
        Example::new("a new file system in memory", "mount dfs+vos:/dev/shm/pool /mnt/files --create"),
        Example::new(
            "on an engine, in the background",
            "mount dfs+engine://127.0.0.1:31416/tank/files /mnt/files --background",
        ),
        Example::new("path of the interception library, for LD_PRELOAD", "mount --print-intercept"),
    ],
};

/// The command.
#[must_use]
pub fn command() -> Command {
    let help = &[("", HELP)];
    Command {
        name: "mount",
        kind: CommandKind::Administration,
        help,
        define,
        measures: Measures::Nothing,
        run,
        document,
    }
}

fn define() -> clap::Command {
    let word = |name: &'static str, help: &'static str| {
        Arg::new(name).value_name(name.to_uppercase()).required_unless_present("print-intercept").help(help)
    };
    clap::Command::new("mount")
        .about("Mount a file system over objects with FUSE")
        .arg(word("url", "The file system: dfs+vos:DIR, dfs+engine://HOST:PORT/POOL/CONTAINER or dfs+daos://POOL/CONTAINER"))
        .arg(word("dir", "Empty directory to mount it on"))
        .args(arguments(MOUNT))
        .arg(Arg::new(DETACHED).long(DETACHED).action(ArgAction::SetTrue).hide(true))
}

fn document(text: &mut String) {
    table_as_markdown("Options of `strata mount`", MOUNT, text);
}

fn run(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let mut spec = MountSpec::default();
    fill(MOUNT, matches, &mut spec)?;
    if spec.print_intercept {
        console.print(&format!("{}\n", intercept_library()?.display()))?;
        return Ok(0);
    }
    if spec.foreground && spec.background {
        return Err(
            Error::usage("mount", "--foreground conflicts with --background").remedy("use one of them")
        );
    }
    if spec.until_stdin_closes && spec.background {
        return Err(Error::usage("mount", "--until-stdin-closes conflicts with --background")
            .remedy("use one of them"));
    }
    spec.caching()?;
    let word = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let url = word("url");
    let directory = check(&units::path_of(word("dir")))?;
    if spec.background {
        return in_background(console);
    }
    serve(url, directory, &spec, console, matches.get_flag(DETACHED))
}

/// Mounts, and serves until a signal or an unmount.
fn serve(
    url: &str,
    directory: PathBuf,
    spec: &MountSpec,
    console: &dyn Console,
    is_detached: bool,
) -> Result<u8, Error> {
    let file_system = crate::source::open(url, spec)?;
    let ending = console.ending(spec.until_stdin_closes)?;
    let sender = ending.sender.clone();
    let ended = move || {
        // Whoever waited may have ended the mount itself.
        let _ = sender.send(UNMOUNTED.to_owned());
    };
    let mut mounted = Mounted::begin(file_system, url, directory, spec, ended)?;
    console.print(&format!("mounted {url} at {}\n", mounted.directory().display()))?;
    if is_detached {
        detach()?;
    }
    let reason = ending.receiver.recv().unwrap_or_default();
    if reason != UNMOUNTED && mounted.unmount()? == Unmounted::Detached {
        let directory = mounted.directory().display();
        console.tell()(format_args!(
            "strata: {directory} is in use and was detached; open files are served until they are closed ({reason}; repeat to end immediately)"
        ));
    }
    mounted.join()?;
    Ok(0)
}

/// Leaves the session and the output of whoever started it.
fn detach() -> Result<(), Error> {
    let failed = |error: rustix::io::Errno| Error::system("mount", "cannot move to the background", error);
    // A leader of its group already has a session of its own.
    let _ = rustix::process::setsid();
    let null =
        rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty()).map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(failed)?;
    rustix::stdio::dup2_stdout(&null).map_err(failed)?;
    rustix::stdio::dup2_stderr(&null).map_err(failed)
}

/// Has another process of the same words mount, and returns when its mount stands.
fn in_background(console: &dyn Console) -> Result<u8, Error> {
    let failed = |error| Error::system("mount", "cannot start a process in the background", error);
    let program = std::env::current_exe().map_err(failed)?;
    let words = console.words().iter().skip(1).map(|word| {
        let word = if word == "--background" { format!("--{DETACHED}") } else { word.clone() };
        units::path_of(&word).into_owned()
    });
    let mut child = Process::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
    }
    if line.is_empty() {
        // It has said on standard error why.
        let status = child.wait().map_err(failed)?;
        return Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1).max(1));
    }
    console.print(&line)?;
    Ok(0)
}
