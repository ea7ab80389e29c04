//! The dialects of vos_perf and daos_perf: the object store by itself, and behind the network.

mod class;
mod commands;
mod numbers;
mod render;
mod settings;
mod specs;
mod table;
#[cfg(test)]
mod tests;

use driver::Error;

use crate::words::Table;
use crate::{Piece, Progress, Request, Run, World};
use render::Model;
use settings::Settings;

/// Reads the words after `vos_perf`.
///
/// # Errors
/// Bad usage.
pub fn parse_vos(words: &[String], world: &dyn World) -> Result<Request, Error> {
    parse(&table::VOS, words, world, false)
}

/// Reads the words after `daos_perf`.
///
/// # Errors
/// Bad usage.
pub fn parse_daos(words: &[String], world: &dyn World) -> Result<Request, Error> {
    parse(&table::DAOS, words, world, true)
}

fn parse(
    table: &'static Table,
    words: &[String],
    world: &dyn World,
    is_daos: bool,
) -> Result<Request, Error> {
    let words = table.split(words)?;
    if words.has("help") {
        let what = if is_daos { "the object store over the network" } else { "the embedded object store" };
        return Ok(Request::Show(vec![Piece::stdout(format!(
            "Usage: {} -R TESTS [OPTIONS]\n\nMeasures {what}. Options:\n{}",
            table.tool,
            table.help()
        ))]));
    }
    let settings = Settings::read(table, &words, world, is_daos)?;
    let mut warnings = words.warnings.clone();
    warnings.extend(settings.warnings(&words));
    let programme = specs::build(&settings).map_err(|error| Error::usage(table.tool, error.to_string()))?;
    let render = Box::new(Model::new(&settings, programme.command_of));
    Ok(Request::Run(Box::new(Run {
        tasks: Some(settings.processes),
        specs: programme.specs,
        render,
        warnings,
        token_file: None,
        secrets: Vec::new(),
        progress: Progress::Auto,
    })))
}

/// Reads the value of `-R` alone, for tests of the grammar.
///
/// # Errors
/// A text that is no list of tests.
pub fn parse_commands(text: &str, is_daos: bool) -> Result<usize, units::ParseError> {
    commands::parse(text, is_daos).map(|commands| commands.len())
}
