//! The dialect of IO500: its command line around `strata suite io500`, which reads the configuration and runs the phases.

mod table;
#[cfg(test)]
mod tests;

use driver::Error;

use crate::words::Words;
use crate::{Piece, Request, World, tasks};
use table::{TABLE, TOOL};

/// Options that are those of the suite, with their values.
const AS_THEY_ARE: &[&str] = &["timestamp", "mode", "ranks", "results", "verify"];
/// Switches that are.
const SWITCHES: &[&str] = &["dry-run", "config-hash", "list", "list-mandatory"];

/// Reads the words after the name.
///
/// # Errors
/// Bad usage.
pub fn parse(words: &[String], world: &dyn World) -> Result<Request, Error> {
    // The one option with two letters behind one dash.
    let known = |word: &String| if word == "-lm" { "--list-mandatory".to_owned() } else { word.clone() };
    let words = TABLE.split(&words.iter().map(known).collect::<Vec<_>>())?;
    let lists = words.has("list") || words.has("list-mandatory");
    if words.has("help") || (words.paths.is_empty() && !lists && !words.has("resume")) {
        return Ok(Request::Show(vec![Piece::stdout(help())]));
    }
    if world.ranks() == 1 {
        tasks::refuse_ranks(&TABLE, world, "--ranks")?;
    }
    suite(&words).map(Request::Command)
}

/// The command of strata that does what the words ask for.
fn suite(words: &Words) -> Result<Vec<String>, Error> {
    let mut command: Vec<String> = ["suite", "io500"].map(str::to_owned).to_vec();
    let mut say = |name: &str, value: &str| command.extend([format!("--{name}"), value.to_owned()]);
    if let Some(directory) = words.value("resume") {
        if !words.paths.is_empty() {
            return TABLE.refuse(
                "a configuration and --resume are both given",
                "leave it out: the run continues with its original configuration",
            );
        }
        say("resume", directory);
        return Ok(command);
    }
    match &words.paths[..] {
        [] => {}
        [ini] => say("ini", ini),
        [_, second, ..] => {
            let second = crate::words::quoted(second);
            return TABLE.refuse(
                format!("unexpected {second} after the configuration"),
                "give only one configuration",
            );
        }
    }
    AS_THEY_ARE
        .iter()
        .filter_map(|name| Some((name, words.value(name)?)))
        .for_each(|(name, value)| say(name, value));
    match (words.value("verbose"), words.count("v")) {
        (Some(level), _) => say("verbosity", level),
        (None, 0) => {}
        (None, count) => say("verbosity", &count.to_string()),
    }
    command.extend(SWITCHES.iter().filter(|name| words.has(name)).map(|name| format!("--{name}")));
    Ok(command)
}

fn help() -> String {
    format!(
        "Synopsis:\n  {TOOL} <INI file> [options]                     Run the benchmark\n  or\n  {TOOL} <INI file> --verify <output file>        \
         Verify that the output matches the configuration\n  or\n  {TOOL} --list | -l                              List all \
         configuration options for INI file\n\nOptions:\n{}",
        TABLE.help()
    )
}
