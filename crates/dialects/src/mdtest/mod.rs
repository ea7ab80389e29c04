//! The dialect of mdtest: metadata of files and directories.

mod render;
mod settings;
mod specs;
mod table;
#[cfg(test)]
mod tests;

use driver::Error;

use crate::{Piece, Progress, Request, Run, World, tasks};
use render::Model;
use settings::Settings;
use table::{TABLE, TOOL};

/// Reads the words after the name.
///
/// # Errors
/// Bad usage.
pub fn parse(words: &[String], world: &dyn World) -> Result<Request, Error> {
    let split = TABLE.split(&tasks::separate(words))?;
    if split.has("help") {
        return Ok(Request::Show(vec![Piece::stdout(format!(
            "Usage: {TOOL} OPTIONS\n\nMeasures creation, stat, read and removal of files and directories; tasks are threads. Options:\n{}",
            TABLE.help()
        ))]));
    }
    if let Some(word) = split.paths.first() {
        return TABLE.refuse(
            format!("{} is not an option", crate::words::quoted(word)),
            "give the directory with -d PATH, and write each option separately",
        );
    }
    // Those of a launcher that is not known are alone for all that strata knows.
    if world.ranks() == 1 {
        tasks::refuse_ranks(&TABLE, world, "--tasks")?;
    }
    let settings = Settings::read(&split, world)?;
    let mut warnings = split.warnings.clone();
    if settings.tree.directories.is_some() {
        warnings
            .push("-n with -I: all directories are in one tree, not each in a separate test-dir".to_owned());
    }
    let tasks = settings.tasks.iter().max().copied().unwrap_or(1);
    let programme = specs::build(&settings).map_err(|error| Error::usage(TOOL, error.to_string()))?;
    Ok(Request::Run(Box::new(Run {
        tasks: Some(tasks),
        specs: programme.specs,
        render: Box::new(Model::new(settings, programme.steps, words)),
        warnings,
        token_file: None,
        secrets: Vec::new(),
        progress: Progress::Auto,
    })))
}
