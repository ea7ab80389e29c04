//! The subcommands.

use std::io::Read;
use std::process::ExitCode;

use clap::ArgMatches;
use driver::{Capabilities, Error};
use workload::spec::Spec;

use crate::output::{print, print_report};
use crate::session::{self, Session};
use crate::{cli, planning, saturate, stack};

/// Longest job file or record that is read.
const INPUT_BYTES_MAX: u64 = 1 << 30;

/// Runs the command that the words ask for.
pub(crate) fn dispatch(words: &[String]) -> Result<ExitCode, Error> {
    let matches = match cli::command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if !error.use_stderr() => {
            print(&error.to_string());
            return Ok(ExitCode::SUCCESS);
        }
        // Called with nothing at all: the help is what is wanted.
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprint!("{error}");
            return Ok(ExitCode::from(2));
        }
        Err(error) => return Err(cli::usage_error(&error)),
    };
    let code = match matches.subcommand() {
        Some(("stack", matches)) => {
            stack::run(words, &cli::stack_spec(matches)?, &cli::output_spec(matches)?)?
        }
        Some(("media", matches)) => measure(words, &[cli::load_spec(matches)?], matches)?,
        Some(("run", matches)) => run_job(words, matches)?,
        Some(("report", matches)) => report(matches)?,
        Some(("list", _)) => list(),
        Some(("schema", _)) => show(&format!("{:#}\n", report::schema())),
        Some(("options", _)) => show(&cli::markdown()),
        Some(("man", _)) => man()?,
        Some(("completions", matches)) => completions(matches),
        _ => 2,
    };
    Ok(ExitCode::from(code))
}

fn show(text: &str) -> u8 {
    print(text);
    0
}

/// Plans, runs and reports a load.
fn measure(words: &[String], specs: &[Spec], matches: &ArgMatches) -> Result<u8, Error> {
    let output = cli::output_spec(matches)?;
    let seed = specs.iter().find_map(|spec| spec.seed).unwrap_or_else(session::draw_seed);
    let mut targets: Vec<String> = Vec::new();
    for target in specs.iter().flat_map(|spec| &spec.targets) {
        if !targets.contains(target) {
            targets.push(target.clone());
        }
    }
    let programme = match planning::plan(specs, seed) {
        Ok(programme) => programme,
        Err(error) if error.exit_code() == 2 => return Err(error),
        // Nothing wrong with what was asked for: the fault of the target belongs into the record.
        Err(error) => return Session::begin(words, &output, &targets, seed, false)?.finish(Err(error)),
    };
    let mut session = Session::begin(words, &output, &targets, seed, programme.keep)?;
    let result = saturate::run(&mut session, &programme);
    session.finish(result)
}

fn run_job(words: &[String], matches: &ArgMatches) -> Result<u8, Error> {
    let path = matches.get_one::<String>("job").map_or("", String::as_str);
    let text = read_input("job", path)?;
    let specs =
        workload::job::parse(&text).map_err(|error| Error::usage("run", error.0).with("file", path))?;
    measure(words, &specs, matches)
}

fn report(matches: &ArgMatches) -> Result<u8, Error> {
    let path = matches.get_one::<String>("record").map_or("", String::as_str);
    let text = read_input("report", path)?;
    let record =
        report::from_json(&text).map_err(|message| Error::usage("report", message).with("file", path))?;
    if matches.get_flag("csv") {
        print(&report::to_csv(&record));
    } else {
        print_report(&record);
    }
    Ok(0)
}

/// Reads a file, or standard input for `-`.
fn read_input(operation: &'static str, path: &str) -> Result<String, Error> {
    let mut text = String::new();
    let result = if path == "-" {
        std::io::stdin().take(INPUT_BYTES_MAX).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX).read_to_string(&mut text))
    };
    match result {
        Ok(_) => Ok(text),
        Err(error) => {
            Err(Error::usage(operation, format!("cannot read the file: {error}")).with("file", path))
        }
    }
}

/// Layers and their engines, from the tables of drivers.
fn list() -> u8 {
    let mut text =
        String::from("layer   engine     depth   direct  does                              what it is\n");
    for registration in media::DRIVERS {
        let Capabilities { classes, asynchronous, depth_max, direct, options, .. } =
            registration.capabilities;
        let depth = if asynchronous { format!("1-{depth_max}") } else { "1".to_owned() };
        let direct = if direct { "yes" } else { "-" };
        text += &format!(
            "media   {:<9}  {depth:<7} {direct:<6}  {:<32}  {}\n",
            registration.name,
            classes.join(" "),
            registration.summary
        );
        if !options.is_empty() {
            let flags: Vec<_> = options.iter().map(|option| format!("--{option}")).collect();
            text += &format!("{:26}options: {}\n", "", flags.join(" "));
        }
    }
    show(&text)
}

fn man() -> Result<u8, Error> {
    let mut page = Vec::new();
    let mut render = |command: clap::Command| clap_mangen::Man::new(command).render(&mut page);
    let mut command = cli::command();
    command.build();
    let mut result = render(command.clone());
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let title = format!("strata-{}", subcommand.get_name());
        result = result.and_then(|()| render(subcommand.clone().name(title)));
    }
    result.map_err(|error| Error::system("man", "cannot make the page", error))?;
    Ok(show(&String::from_utf8_lossy(&page)))
}

fn completions(matches: &ArgMatches) -> u8 {
    let mut script = Vec::new();
    if let Some(shell) = matches.get_one::<clap_complete::Shell>("shell") {
        clap_complete::generate(*shell, &mut cli::command(), "strata", &mut script);
    }
    show(&String::from_utf8_lossy(&script))
}
