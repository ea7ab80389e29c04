//! What the tools of MPI have in common: tasks are threads here, options with `=` behind their letter, paths parted by `@`, and the file
//! in which a write notes how far it came.

use driver::Error;

use crate::World;
use crate::words::{Table, quoted};

/// Variables in which launchers say how many processes they started.
const SIZES: &[&str] = &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"];

/// Refuses a process that is one of several of an MPI job: each of them would do the whole load.
///
/// # Errors
/// Bad usage that names the option to use instead.
pub(crate) fn refuse_ranks(table: &Table, world: &dyn World, instead: &str) -> Result<(), Error> {
    let started = SIZES.iter().find_map(|name| world.variable(name)?.parse::<u64>().ok());
    match started.filter(|&tasks| tasks > 1) {
        Some(tasks) => table.refuse(
            format!("this is one of {tasks} processes of an MPI job, and tasks are threads of one process"),
            format!("start it without mpirun and give {instead} {tasks}"),
        ),
        None => Ok(()),
    }
}

/// The words with `-t=4k` as `-t 4k`, as the tools' own parser has it.
pub(crate) fn separate(words: &[String]) -> Vec<String> {
    let mut all = Vec::with_capacity(words.len());
    for word in words {
        let mut letters = word.chars();
        let is_short = letters.next() == Some('-') && letters.next().is_some_and(|c| c.is_ascii_alphabetic());
        match word.split_once('=').filter(|(name, _)| is_short && name.len() == 2) {
            Some((name, value)) => all.extend([name.to_owned(), value.to_owned()]),
            None => all.push(word.clone()),
        }
    }
    all
}

/// Paths of a list such as `/a/file@/b/file`.
///
/// # Errors
/// A path that is empty.
pub(crate) fn paths(table: &Table, option: &str, text: &str) -> Result<Vec<String>, Error> {
    let paths: Vec<String> = text.split('@').map(str::to_owned).collect();
    if paths.iter().any(String::is_empty) {
        return table.refuse(
            format!("{option} {}: a path is empty", quoted(text)),
            "give a path, or paths parted by @",
        );
    }
    Ok(paths)
}

/// Number that a write noted in its status file.
///
/// # Errors
/// A file that is not there or holds no number above 0.
pub(crate) fn status(table: &Table, option: &str, path: &str, world: &dyn World) -> Result<u64, Error> {
    let text = world.read(path).map_err(|error| {
        Error::system(table.tool, "cannot read the stonewall status file", error)
            .with("path", quoted(path))
            .remedy(format!("write first, with the same {option}"))
    })?;
    match text.trim().parse::<u64>() {
        Ok(count) if count > 0 => Ok(count),
        _ => table.refuse(
            format!("{option}: {} holds no number above 0", quoted(path)),
            format!("write first, with the same {option}"),
        ),
    }
}
