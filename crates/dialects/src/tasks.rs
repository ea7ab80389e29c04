//! Common parts of the tools of MPI: tasks are threads here, options with `=` behind their letter, paths parted by `@`, and the file
//! in which a write notes how far it came.

use driver::Error;
use report::record::PhaseRecord;

use crate::World;
use crate::words::{Table, quoted};

/// Variables in which launchers say how many processes they started.
const SIZES: &[&str] =
    &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"];

/// Refuses a process that is one of several of an MPI job: each would do the whole load.
///
/// # Errors
/// Bad usage that names the option to use instead.
pub(crate) fn refuse_ranks(table: &Table, world: &dyn World, instead: &str) -> Result<(), Error> {
    if world.variable("STRATA_LAUNCHER").is_some_and(|name| name == "none") {
        return Ok(());
    }
    let started = SIZES.iter().find_map(|name| world.variable(name)?.parse::<u64>().ok());
    match started.filter(|&tasks| tasks > 1) {
        Some(tasks) => table.refuse(
            format!("this is one of {tasks} processes of an MPI job, but tasks are threads of one process"),
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
            "give a path, or several paths separated by @",
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
            .remedy(format!("run a write first with the same {option}"))
    })?;
    match text.trim().parse::<u64>() {
        Ok(count) if count > 0 => Ok(count),
        _ => table.refuse(
            format!("{option}: {} does not contain a number above 0", quoted(path)),
            format!("run a write first with the same {option}"),
        ),
    }
}

/// Causes that are told of a phase at most.
const CAUSES_MAX: usize = 10;

/// Failures of a phase.
#[derive(Debug, Default)]
pub(crate) struct Failures<'a> {
    /// Reads whose data were not as they were written.
    pub(crate) wrong: u64,
    /// Calls that the system refused.
    pub(crate) failed: u64,
    causes: Vec<(&'a str, &'a str, u64)>,
}

impl<'a> Failures<'a> {
    /// Of all tasks.
    pub(crate) fn of(phase: &'a PhaseRecord) -> Self {
        let mut all = Self::default();
        for error in phase.samples.workers.iter().flat_map(|worker| &worker.errors) {
            // What is wrong with data has no number of the system.
            *(if error.errno.is_none() { &mut all.wrong } else { &mut all.failed }) += error.count;
            let same = |known: &&mut (&str, &str, u64)| known.0 == error.class && known.1 == error.cause;
            match all.causes.iter_mut().find(same) {
                Some((.., count)) => *count += error.count,
                None => all.causes.push((&error.class, &error.cause, error.count)),
            }
        }
        all
    }

    /// A line a cause: how many calls of which class.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let more = self.causes.len().saturating_sub(CAUSES_MAX);
        let first = self.causes.iter().take(CAUSES_MAX);
        let lines = first.map(|(class, cause, count)| format!("{count} {class}: {}", units::clean(cause)));
        lines.chain((more > 0).then(|| format!("and {more} more causes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Flag;

    static TABLE: Table = Table {
        tool: "tool",
        flags: &[Flag::honoured("tasks", "N", "tasks").short('N')],
        switch_values: false,
        single_dash: false,
    };

    /// A machine where a launcher has set this variable.
    struct Launched(&'static str, &'static str);

    impl World for Launched {
        fn read(&self, _: &str) -> std::io::Result<String> {
            Ok(self.1.to_owned())
        }

        fn variable(&self, name: &str) -> Option<String> {
            (name == self.0).then(|| self.1.to_owned())
        }

        fn look(&self, _: &str) -> crate::PathFacts {
            crate::PathFacts::Missing
        }

        fn processors(&self) -> Vec<u32> {
            Vec::new()
        }

        fn page_size_bytes(&self) -> u64 {
            4096
        }

        fn memory_bytes(&self) -> u64 {
            0
        }

        fn nvme_namespaces(&self) -> Vec<crate::NvmeNamespace> {
            Vec::new()
        }

        fn host_name(&self) -> String {
            String::new()
        }

        fn process_id(&self) -> u32 {
            1
        }

        fn engines(&self) -> Vec<&'static str> {
            Vec::new()
        }
    }

    #[test]
    fn one_process_is_taken_and_one_of_several_is_not() {
        for name in SIZES {
            let told = refuse_ranks(&TABLE, &Launched(name, "4"), "-N").expect_err("four");
            assert!(told.to_string().ends_with("start it without mpirun and give -N 4"), "{told}");
            assert!(refuse_ranks(&TABLE, &Launched(name, "1"), "-N").is_ok());
        }
        assert!(refuse_ranks(&TABLE, &Launched("HOME", "4"), "-N").is_ok());
    }

    #[test]
    fn values_may_stand_behind_an_equals_sign() {
        let words = ["-t=4k", "-O", "a=b", "--posix.x=1", "-tx=3", "-"].map(str::to_owned);
        assert_eq!(separate(&words), ["-t", "4k", "-O", "a=b", "--posix.x=1", "-tx=3", "-"]);
    }

    #[test]
    fn a_status_is_a_number_above_zero() {
        let read = |text| status(&TABLE, "-x", "f", &Launched("", text));
        assert_eq!(read("17\n").ok(), Some(17));
        assert!(["", "0", "-1", "x"].into_iter().all(|text| read(text).is_err()));
    }
}
