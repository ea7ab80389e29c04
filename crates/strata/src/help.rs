//! Help and man pages: `-h` is one screen with examples, `--help` everything, and each command has a page of the manual.

mod own;

use clap::builder::{PossibleValuesParser, StyledStr};
use clap::{Arg, Command, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use driver::Error;
use own::OWN;
use units::clean;
use workload::help::Help;
use workload::spec::Layer;

/// Options shown in short help where an option says more than this: its help is cut at the first clause.
const SHORT_COLUMNS_MAX: usize = 64;

/// Help of the command with these names from strata down; none where nobody wrote any.
fn help_of(names: &[&str]) -> Help {
    let own = |name: &str| OWN.iter().find(|(known, _)| *known == name).map(|(_, help)| *help);
    let brought = |command: &str, below: &str| {
        let all = layer::all().into_iter().flat_map(|layer| layer.commands());
        let found = all.filter(|own| own.name == command).flat_map(|own| own.help);
        found.into_iter().find(|(name, _)| *name == below).map(|(_, help)| *help)
    };
    match names {
        [] => own(""),
        [command] => own(command)
            .or_else(|| Layer::of_command(command).map(|layer| layer.help))
            .or_else(|| brought(command, "")),
        [command, below, ..] => match Layer::of_command(command) {
            Some(_) => brought(below, ""),
            None => own(&format!("{command} {below}")).or_else(|| brought(command, below)),
        },
    }
    .unwrap_or(Help::NONE)
}

/// The command with its help: one screen for `-h`, all of it for `--help`. `is_short` says which the words ask for.
pub(crate) fn with_help(command: Command, is_short: bool) -> Command {
    explain(command, &[], is_short)
}

/// See [`with_help`]; `names` are those of the command from strata down.
fn explain(command: Command, names: &[&str], is_short: bool) -> Command {
    let help = help_of(names);
    let below: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let command = below.iter().fold(command, |command, name| {
        let names: Vec<&str> = names.iter().copied().chain([name.as_str()]).collect();
        command.mut_subcommand(name, |inner| explain(inner, &names, is_short))
    });
    if is_short && !help.options.is_empty() {
        let text = short(&command, names, help);
        return command.override_help(text);
    }
    let examples = examples(help, names);
    command.after_help(examples.clone()).after_long_help(examples + EXIT_CODES)
}

/// Exit codes, as help has them.
const EXIT_CODES: &str =
    "\n\nExit codes: 0 success; 1 the run failed or is partial; 2 rejected before anything was changed";

/// One screen of help: the options that most users need, and examples.
fn short(command: &Command, names: &[&str], help: Help) -> String {
    let mut command = command.clone().bin_name(bin_name(names));
    let about = command.get_about().map(StyledStr::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let shown = |name: &&str| command.get_arguments().find(|argument| argument.get_id() == *name);
    let rows: Vec<(String, String)> = help.options.iter().filter_map(shown).map(row).collect();
    let width = rows.iter().map(|(flag, _)| flag.len()).max().unwrap_or(0);
    let mut text = format!("{about}\n\n{usage}\n\n");
    for (flag, meaning) in &rows {
        text += &format!("{flag:width$}  {meaning}\n");
    }
    let all =
        command.get_opts().count() + command.get_arguments().filter(|argument| is_switch(argument)).count();
    text += &format!("\n{}\n\nAll {all} options: {} --help", examples(help, names), bin_name(names));
    text
}

fn is_switch(argument: &Arg) -> bool {
    !argument.is_positional() && !argument.get_action().takes_values()
}

/// `  -b, --block-size <SIZE>` and the first clause of its help.
fn row(argument: &Arg) -> (String, String) {
    let short = argument.get_short().map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let long = argument.get_long().unwrap_or_default();
    let value = argument.get_value_names().filter(|_| !is_switch(argument));
    let value = value.and_then(|names| names.first()).map_or_else(String::new, |name| format!(" <{name}>"));
    let help = argument.get_help().map(StyledStr::to_string).unwrap_or_default();
    (format!("  {short}--{long}{value}"), first_clause(&help))
}

/// The first clause of an option's help, without its default.
fn first_clause(help: &str) -> String {
    let text = help.rsplit_once(" [default: ").map_or(help, |(text, _)| text);
    if text.chars().count() <= SHORT_COLUMNS_MAX {
        return text.to_owned();
    }
    let ends = ["; ", ": ", " (", ", "].iter().filter_map(|mark| text.find(mark)).filter(|&at| at > 12);
    let end = ends.min().unwrap_or(text.len());
    text[..end].to_owned()
}

/// `Examples:` with a line for the purpose of each and one for its words.
fn examples(help: Help, _names: &[&str]) -> String {
    if help.examples.is_empty() {
        return String::new();
    }
    let lines =
        help.examples.iter().map(|example| format!("  # {}\n  strata {}", example.about, example.words));
    format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// `strata media`.
fn bin_name(names: &[&str]) -> String {
    std::iter::once("strata").chain(names.iter().copied()).collect::<Vec<_>>().join(" ")
}

/// A page of the manual: its file name and its text.
pub(crate) struct Page {
    pub(crate) file: String,
    pub(crate) text: Vec<u8>,
}

/// The pages of the manual: strata, each command, each command below one.
///
/// # Errors
/// When a page cannot be made.
pub(crate) fn pages() -> Result<Vec<Page>, Error> {
    let mut command = crate::cli::command();
    command.build();
    let mut pages = Vec::new();
    collect(&command, &[], &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, names: &[&str], pages: &mut Vec<Page>) -> Result<(), Error> {
    let title = std::iter::once("strata").chain(names.iter().copied()).collect::<Vec<_>>().join("-");
    pages.push(Page { file: format!("{title}.1"), text: page(command, &title, names)? });
    let shown = |inner: &&Command| !inner.is_hide_set() && inner.get_name() != "help";
    for inner in command.get_subcommands().filter(shown) {
        let names: Vec<&str> = names.iter().copied().chain([inner.get_name()]).collect();
        collect(inner, &names, pages)?;
    }
    Ok(())
}

/// A page: what clap says of the command, then examples and what all commands share.
fn page(command: &Command, title: &str, names: &[&str]) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::system("man", "cannot make the page", error);
    let mut text = Vec::new();
    let named = command.clone().name(title.to_owned()).bin_name(bin_name(names));
    Man::new(named).render(&mut text).map_err(failed)?;
    let mut roff = Roff::new();
    let help = help_of(names);
    if !help.examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        for example in help.examples {
            roff.control("TP", []);
            roff.text([roman(example.about)]);
            roff.text([bold(format!("strata {}", example.words))]);
        }
    }
    for (heading, entries) in SHARED {
        roff.control("SH", [*heading]);
        for (term, meaning) in *entries {
            roff.control("TP", []);
            roff.text([bold(*term)]);
            roff.text([roman(*meaning)]);
        }
    }
    roff.to_writer(&mut text).map_err(failed)?;
    Ok(text)
}

/// A section: its heading, and what is said of each term.
type Section = (&'static str, &'static [(&'static str, &'static str)]);

/// Sections that all pages share.
const SHARED: &[Section] = &[
    (
        "EXIT STATUS",
        &[
            ("0", "Success."),
            (
                "1",
                "The run failed or was interrupted; results until then are shown and recorded. Also: output that could \
                 not be written, and an exceeded limit of --fail-if.",
            ),
            (
                "2",
                "Rejected before anything was changed: bad usage, a missing target, existing data without --destroy-data.",
            ),
        ],
    ),
    (
        "FILES",
        &[
            (
                "$XDG_STATE_HOME/strata, ~/.local/state/strata",
                "Manifests: the files and objects that each run has created and not yet removed. strata clean reads them.",
            ),
            ("*.attach_info_tmp in /tmp or --path", "Addresses of the engines of a group."),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            ("XDG_STATE_HOME, XDG_RUNTIME_DIR", "Directories of manifests and sockets."),
            (
                "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_CA_BUNDLE",
                "S3 credentials, and trusted certificates.",
            ),
            ("CRT_ATTACH_INFO_PATH", "Directory of the attach info of engines, if --path is not given."),
            (
                "OFI_INTERFACE, OFI_DOMAIN",
                "Interface and domain of the fabric, if the options are not given.",
            ),
            ("PMEM_NO_FLUSH", "1: mapped memory needs no flush of CPU caches."),
            ("NO_COLOR, TERM", "Whether the live view uses colours, and whether it can be shown."),
        ],
    ),
];

/// The command for a shell's completions: options whose values are words or paths say so.
pub(crate) fn for_completions(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |inner| {
            let layer = Layer::of_command(name);
            for_completions(inner).mut_args(|argument| values(argument, layer))
        })
    });
    command.mut_args(|argument| values(argument, None))
}

/// An argument with the values that a shell can offer.
fn values(argument: Arg, layer: Option<Layer>) -> Arg {
    if argument.is_positional() {
        return match argument.get_id().as_str() {
            "words" => {
                let names = dialects::DIALECTS.iter().map(|dialect| dialect.name);
                argument.value_parser(PossibleValuesParser::new(names.collect::<Vec<_>>()))
            }
            "job" | "records" | "a" | "b" | "directory" | "dir" | "targets" => {
                argument.value_hint(ValueHint::AnyPath)
            }
            _ => argument,
        };
    }
    let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let Some(value) = name.filter(|_| argument.get_action().takes_values()) else { return argument };
    let drivers = || layer.and_then(|layer| layer::find(layer.name).ok()).map(|layer| layer.drivers());
    let words: Vec<String> = match argument.get_id().as_str() {
        "engine" => drivers().into_iter().flatten().map(|driver| driver.name.to_owned()).collect(),
        "op" => {
            let words = layer.map(|layer| (layer.operations)());
            words.into_iter().flatten().map(str::to_owned).collect()
        }
        _ if is_choice(&value) => value.split('|').map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if !words.is_empty() {
        return argument.value_parser(PossibleValuesParser::new(words));
    }
    match value.as_str() {
        "FILE" | "FILE[,FILE...]" | "LOG" => argument.value_hint(ValueHint::FilePath),
        "DIR" => argument.value_hint(ValueHint::DirPath),
        _ => argument,
    }
}

/// Whether a value's form is a choice of words: `auto|line|full|none`.
fn is_choice(value: &str) -> bool {
    value.contains('|')
        && value.split('|').all(|word| {
            !word.is_empty()
                && word
                    .chars()
                    .all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "-_".contains(sign))
        })
}

/// Oldest glibc that this build runs on, where `scripts/portable.sh` made it; otherwise it is that of the machine that built it.
const GLIBC_MIN: Option<&str> = option_env!("STRATA_GLIBC");

/// Whether the compiler optimized all of strata, as in the profile `release`. The profile `first` does not.
pub(crate) fn is_optimized() -> bool {
    !cfg!(debug_assertions) && !["0", "1"].contains(&env!("STRATA_OPT_LEVEL"))
}

/// Version, build and versions of formats, one a line, or as JSON.
pub(crate) fn version(as_json: bool) -> String {
    let profile = match (cfg!(debug_assertions), is_optimized()) {
        (true, _) => "debug",
        (false, true) => "release",
        (false, false) => "first",
    };
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    if as_json {
        let facts = serde_json::json!({
            "strata_version": env!("CARGO_PKG_VERSION"),
            "build": profile,
            "target": target,
            "glibc_min": GLIBC_MIN,
            "schema_version": report::record::SCHEMA_VERSION,
            "control_protocol_version": fleet::PROTOCOL_VERSION,
        });
        return format!("{facts:#}\n");
    }
    let glibc = GLIBC_MIN.map_or_else(String::new, |version| format!(", glibc {version} or newer"));
    format!(
        "strata {}\nbuild             {profile}, {}{glibc}\nrecord schema     {}\ncontrol protocol  {}\n",
        env!("CARGO_PKG_VERSION"),
        clean(&target),
        report::record::SCHEMA_VERSION,
        fleet::PROTOCOL_VERSION
    )
}

#[cfg(test)]
mod tests;
