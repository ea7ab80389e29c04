//! The dialect of IOR: bandwidth of one shared file, or of a file for each task.

mod documents;
mod figures;
mod render;
mod settings;
mod specs;
mod table;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use figures::span_s;
pub(crate) use table::APIS_REFUSED;

use driver::Error;

use crate::words::Words;
use crate::{Piece, Progress, Request, Run, World, tasks};
use render::Model;
use settings::{Settings, Test};
use table::{TABLE, TOOL};

/// Reads the words after the name.
///
/// # Errors
/// Bad usage.
pub fn parse(words: &[String], world: &dyn World) -> Result<Request, Error> {
    let split = TABLE.split(&tasks::separate(words))?;
    if split.has("help") {
        return Ok(Request::Show(vec![Piece::stdout(format!(
            "Usage: {TOOL} OPTIONS\n\nMeasures the bandwidth of one shared file or of one file per task; tasks are threads. Options:\n{}",
            TABLE.help()
        ))]));
    }
    if let Some(word) = split.paths.first() {
        return TABLE.refuse(
            format!("{} is not an option", crate::words::quoted(word)),
            "give the file with -o FILE, and write each option separately",
        );
    }
    // Those of a launcher that is not known are alone for all that strata knows.
    if world.ranks() == 1 {
        tasks::refuse_ranks(&TABLE, world, "-N")?;
    }
    let mut settings = Settings::read(&split, world)?;
    let more = limit_tasks(&mut settings.tests, world.ranks());
    let tasks = settings.tests.first().map_or(1, |test| test.tasks);
    let programme = specs::build(&settings.tests, world)?;
    let mut warnings = warnings(&split, &settings);
    warnings.extend(more);
    let dry_run = settings.show.dry_run;
    let model = Model::new(settings, programme.steps, words, world);
    if dry_run {
        return Ok(Request::Show(vec![Piece::stdout(model.dry_run())]));
    }
    Ok(Request::Run(Box::new(Run {
        tasks: Some(tasks),
        specs: programme.specs,
        render: Box::new(model),
        warnings,
        token_file: None,
        secrets: Vec::new(),
        progress: Progress::Auto,
    })))
}

/// Limits the tasks to the processes that mpirun has started, as IOR does; a warning where there are fewer than asked for.
fn limit_tasks(tests: &mut [Test], ranks: u32) -> Option<String> {
    let asked = tests.iter().map(|test| test.tasks).max().filter(|asked| ranks > 1 && *asked > ranks)?;
    tests.iter_mut().for_each(|test| test.tasks = test.tasks.min(ranks));
    Some(format!("-N {asked} is more than the {ranks} processes started: only {ranks} tasks run"))
}

fn warnings(words: &Words, settings: &Settings) -> Vec<String> {
    let mut warnings = words.warnings.clone();
    let stays = |test: &&Test| !test.write && !test.keep;
    if settings.tests.iter().any(|test| stays(&test)) {
        warnings.push("files that this run does not write are kept, even without -k".to_owned());
    }
    if settings.tests.iter().any(|test| test.keep) && settings.tests.iter().any(|test| !test.keep) {
        warnings.push("one of the tests has -k: the files of all tests are kept".to_owned());
    }
    warnings
}
