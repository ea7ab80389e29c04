//! From options, directives and scripts to tests.

use driver::Error;
use units::ByteSize;

use super::table::{APIS_REFUSED, TABLE};
use crate::gpu_buffers::GpuBuffers;
use crate::words::{Fate, Flag, Words, quoted};
use crate::{World, tasks};

/// Form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
    Csv,
}

/// One test: what a `RUN` of a script, or a command line, asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Test {
    pub(crate) is_dummy: bool,
    pub(crate) reference: i64,
    pub(crate) block_bytes: u64,
    pub(crate) transfer_bytes: u64,
    pub(crate) segments: u64,
    pub(crate) tasks: u32,
    pub(crate) repetitions: u32,
    pub(crate) delay_s: u64,
    pub(crate) io_delay_us: u64,
    pub(crate) stonewall_s: u64,
    pub(crate) wear_out: bool,
    pub(crate) transfers: Option<u64>,
    pub(crate) status_file: Option<String>,
    pub(crate) outlier_s: u64,
    pub(crate) signature: Option<u64>,
    pub(crate) packet: char,
    pub(crate) path: String,
    pub(crate) offset_tasks: u32,
    pub(crate) reorder: bool,
    pub(crate) reorder_random: u32,
    pub(crate) reorder_seed: i64,
    pub(crate) random: u32,
    pub(crate) random_seed: Option<u64>,
    pub(crate) write: bool,
    pub(crate) check_write: bool,
    pub(crate) read: bool,
    pub(crate) check_read: bool,
    pub(crate) file_per_task: bool,
    pub(crate) multi_file: bool,
    pub(crate) unique_directory: bool,
    pub(crate) existing: bool,
    pub(crate) keep: bool,
    pub(crate) keep_with_error: bool,
    pub(crate) fsync: bool,
    pub(crate) fsync_per_write: bool,
    pub(crate) barriers: bool,
    pub(crate) direct: bool,
    pub(crate) single_attempt: bool,
    pub(crate) rank_csv: Option<String>,
    pub(crate) gpu: GpuBuffers,
}

impl Default for Test {
    fn default() -> Self {
        Self {
            is_dummy: false,
            reference: 0,
            block_bytes: 1 << 20,
            transfer_bytes: 256 << 10,
            segments: 1,
            tasks: 1,
            repetitions: 1,
            delay_s: 0,
            io_delay_us: 0,
            stonewall_s: 0,
            wear_out: false,
            transfers: None,
            status_file: None,
            outlier_s: 0,
            signature: None,
            packet: 'g',
            path: "testFile".to_owned(),
            offset_tasks: 1,
            reorder: false,
            reorder_random: 0,
            reorder_seed: 0,
            random: 0,
            random_seed: None,
            write: false,
            check_write: false,
            read: false,
            check_read: false,
            file_per_task: false,
            multi_file: false,
            unique_directory: false,
            existing: false,
            keep: false,
            keep_with_error: false,
            fsync: false,
            fsync_per_write: false,
            barriers: false,
            direct: false,
            single_attempt: false,
            rank_csv: None,
            gpu: GpuBuffers::default(),
        }
    }
}

/// How results are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Show {
    pub(crate) format: Format,
    pub(crate) file: Option<String>,
    pub(crate) verbose: u32,
    pub(crate) summary_always: bool,
    pub(crate) dry_run: bool,
}

/// All that the words ask for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    pub(crate) tests: Vec<Test>,
    pub(crate) show: Show,
}

/// Names of directives that say the same as others.
const ALIASES: &[(&str, &str)] =
    &[("reordertasksconstant", "reorderTasks"), ("useo_direct", "posix.odirect")];

impl Settings {
    /// Reads what was given, a script too.
    ///
    /// # Errors
    /// Options that cannot be, one line each.
    pub(crate) fn read(words: &Words, world: &dyn World) -> Result<Self, Error> {
        let mut settings = Self::default();
        let mut test = Test { tasks: world.ranks(), ..Test::default() };
        for given in &words.given {
            match given.flag.long {
                "directives" => {
                    for directive in given.value.as_deref().unwrap_or_default().split(',') {
                        settings.directive(directive, &mut test)?;
                    }
                }
                long => settings.apply(long, given.value.as_deref(), &mut test)?,
            }
        }
        match words.value("script") {
            Some(path) => settings.script(path, test, world)?,
            None => settings.tests.push(test),
        }
        for test in &mut settings.tests {
            test.settle()?;
        }
        Ok(settings)
    }

    /// Tests of a script; each begins with what the one before said.
    fn script(&mut self, path: &str, first: Test, world: &dyn World) -> Result<(), Error> {
        let text = world.read(path).map_err(|error| {
            Error::system(TABLE.tool, "cannot read the script", error).with("path", quoted(path))
        })?;
        let is = |line: &str, words: &str| line.eq_ignore_ascii_case(words);
        let mut lines = text.lines().map(str::trim).skip_while(|line| !is(line, "IOR START"));
        if lines.next().is_none() {
            return TABLE.refuse(
                format!("-f {}: the script has no line IOR START", quoted(path)),
                "start the tests with this line",
            );
        }
        let mut test = first;
        let mut is_said = false;
        for line in lines {
            let line = line.split('#').next().unwrap_or_default().trim();
            match line {
                "" => {}
                _ if is(line, "IOR STOP") => break,
                _ if is(line, "RUN") => {
                    self.tests.push(test.clone());
                    is_said = false;
                }
                _ => {
                    for directive in line.split(',') {
                        self.directive(directive, &mut test)?;
                    }
                    is_said = true;
                }
            }
        }
        if is_said || self.tests.is_empty() {
            self.tests.push(test);
        }
        Ok(())
    }

    /// One `name=value`.
    fn directive(&mut self, text: &str, test: &mut Test) -> Result<(), Error> {
        let Some((name, value)) = text.split_once('=') else {
            return TABLE.refuse(
                format!("{} is not a directive", quoted(text)),
                "write NAME=VALUE, such as summaryFormat=JSON",
            );
        };
        let (name, value) = (name.trim().trim_start_matches("--"), value.trim());
        let alias = ALIASES.iter().find(|(alias, _)| name.eq_ignore_ascii_case(alias));
        let name = alias.map_or(name, |(_, long)| long);
        let known = TABLE.flags.iter().find(|flag| flag.long.eq_ignore_ascii_case(name));
        let is_own = |flag: &&Flag| ["script", "directives", "help"].contains(&flag.long);
        let Some(flag) = known.filter(|flag| !is_own(flag)) else {
            let near = units::nearest(name, TABLE.flags.iter().map(|flag| flag.long));
            return TABLE.refuse(
                format!("{} is not a directive", quoted(name)),
                near.map_or_else(
                    || "see `strata as ior --help` for the list of directives".to_owned(),
                    |near| format!("the closest match is {near}"),
                ),
            );
        };
        // What is off by its value was not asked for.
        if matches!(flag.fate, Fate::Refused(..)) && value == "0" {
            return Ok(());
        }
        TABLE.check(flag)?;
        self.apply(flag.long, Some(value), test)
    }

    fn apply(&mut self, long: &str, value: Option<&str>, test: &mut Test) -> Result<(), Error> {
        let text = value.unwrap_or_default();
        let show = &mut self.show;
        match long {
            "verbose" => show.verbose = times(long, value, show.verbose)?,
            "summaryFile" => show.file = Some(text.to_owned()),
            "summaryFormat" => show.format = format(text)?,
            "summaryAlways" => show.summary_always = is_on(long, value)?,
            "dryRun" => show.dry_run = is_on(long, value)?,
            _ => test.apply(long, value)?,
        }
        Ok(())
    }
}

impl Test {
    fn apply(&mut self, long: &str, value: Option<&str>) -> Result<(), Error> {
        let text = value.unwrap_or_default();
        match long {
            "api" => self.is_dummy = is_dummy(text)?,
            "refNum" => self.reference = signed(long, text)?,
            "blockSize" => self.block_bytes = size(long, text)?,
            "transferSize" => self.transfer_bytes = size(long, text)?,
            "segmentCount" => self.segments = size(long, text)?,
            "numTasks" => self.tasks = small(long, text)?,
            "repetitions" => self.repetitions = small(long, text)?,
            "interTestDelay" => self.delay_s = number(long, text)?,
            "interIODelay" => self.io_delay_us = number(long, text)?,
            "deadlineForStonewalling" => self.stonewall_s = number(long, text)?,
            "stoneWallingWearOutIterations" => {
                self.transfers = Some(number(long, text)?).filter(|count| *count > 0);
            }
            "stoneWallingStatusFile" => self.status_file = Some(text.to_owned()),
            "outlierThreshold" => self.outlier_s = number(long, text)?,
            "setTimeStampSignature" => self.signature = Some(number(long, text)?).filter(|&at| at > 0),
            "dataPacketType" => self.packet = packet(text)?,
            "testFile" => self.path = text.to_owned(),
            "taskPerNodeOffset" => self.offset_tasks = times(long, value, 0)?,
            "reorderTasksRandom" => {
                self.reorder_random = times(long, value, self.reorder_random)?;
            }
            "reorderTasksRandomSeed" => self.reorder_seed = signed(long, text)?,
            "randomOffset" => self.random = times(long, value, self.random)?,
            "random-offset-seed" => self.random_seed = Some(number(long, text)?),
            "saveRankPerformanceDetailsCSV" => self.rank_csv = Some(text.to_owned()),
            _ if self.gpu.take(&TABLE, long, text)? => {}
            _ => self.apply_switch(long, value)?,
        }
        Ok(())
    }

    fn apply_switch(&mut self, long: &str, value: Option<&str>) -> Result<(), Error> {
        let place = match long {
            "reorderTasks" => &mut self.reorder,
            "stoneWallingWearOut" => &mut self.wear_out,
            "writeFile" => &mut self.write,
            "checkWrite" => &mut self.check_write,
            "readFile" => &mut self.read,
            "checkRead" => &mut self.check_read,
            "filePerProc" => &mut self.file_per_task,
            "multiFile" => &mut self.multi_file,
            "uniqueDir" => &mut self.unique_directory,
            "useExistingTestFile" => &mut self.existing,
            "keepFile" => &mut self.keep,
            "keepFileWithError" => &mut self.keep_with_error,
            "fsync" => &mut self.fsync,
            "fsyncPerWrite" => &mut self.fsync_per_write,
            "intraTestBarriers" => &mut self.barriers,
            "posix.odirect" => &mut self.direct,
            "singleXferAttempt" => &mut self.single_attempt,
            // The script was read apart; the others change nothing.
            _ => return Ok(()),
        };
        *place = is_on(long, value)?;
        Ok(())
    }

    /// Whether the test reads for its figures.
    pub(crate) fn reads(&self) -> bool {
        self.read || self.check_read
    }

    /// Fills in what follows, and refuses what cannot be, with IOR's own conditions.
    fn settle(&mut self) -> Result<(), Error> {
        if !(self.write || self.read || self.check_write || self.check_read) {
            (self.write, self.read) = (true, true);
        }
        let refuse = |message: &str, remedy: &str| TABLE.refuse(message.to_owned(), remedy.to_owned());
        if self.block_bytes < self.transfer_bytes || !self.block_bytes.is_multiple_of(self.transfer_bytes) {
            return TABLE.refuse(
                format!(
                    "-b {} is not a multiple of -t {}",
                    ByteSize(self.block_bytes),
                    ByteSize(self.transfer_bytes)
                ),
                "give a -b that is a multiple of -t",
            );
        }
        let is_random = self.random > 0;
        if self.reorder && self.reorder_random > 0 {
            return refuse("-C and -Z both select the data that a task reads", "give one of them");
        }
        if is_random && !self.file_per_task && (self.reorder || self.reorder_random > 0) {
            return refuse(
                "-z cannot be combined with -C or -Z in one shared file",
                "add -F, or give only one of them",
            );
        }
        if self.wear_out && self.stonewall_s == 0 {
            return refuse("stoneWallingWearOut requires -D", "add -D SECONDS");
        }
        if self.status_file.is_some() && !self.keep {
            return refuse(
                "stoneWallingStatusFile requires that the files are kept for a later read",
                "add -k",
            );
        }
        if self.status_file.is_some() && self.write && !self.wear_out {
            return refuse(
                "stoneWallingStatusFile: without wear-out the tasks write different numbers of transfers",
                "add -D SECONDS and -O stoneWallingWearOut=1",
            );
        }
        if self.unique_directory && !self.file_per_task {
            return refuse("-u requires -F", "add -F");
        }
        if self.unique_directory && self.path.contains('@') {
            return refuse("-u cannot be combined with several paths", "give one path");
        }
        let reads_back = self.check_write || self.reads();
        if self.random > 1 && self.write && reads_back {
            return refuse("-z -z with -w leaves holes, which cannot be read back", "give -z once");
        }
        if is_random && self.write && reads_back && self.stonewall_s > 0 {
            return refuse(
                "-z with -D leaves holes in the files that are read afterwards",
                "leave out -z or -D, or read in a separate run",
            );
        }
        if self.is_dummy && (self.check_read || self.check_write) {
            return refuse("DUMMY has no data to check", "leave out -R and -W, or use -a POSIX");
        }
        Ok(())
    }
}

fn is_dummy(text: &str) -> Result<bool, Error> {
    if text.eq_ignore_ascii_case("POSIX") || text.eq_ignore_ascii_case("DUMMY") {
        return Ok(text.eq_ignore_ascii_case("DUMMY"));
    }
    match APIS_REFUSED.iter().find(|(name, ..)| text.eq_ignore_ascii_case(name)) {
        Some((name, why, nearest)) => TABLE.refuse(format!("-a {name}: {why}"), *nearest),
        None => TABLE.refuse(format!("-a {}: unknown back end", quoted(text)), "use POSIX or DUMMY"),
    }
}

fn format(text: &str) -> Result<Format, Error> {
    let all = [("default", Format::Text), ("JSON", Format::Json), ("CSV", Format::Csv)];
    match all.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)) {
        Some((_, format)) => Ok(*format),
        None => TABLE
            .refuse(format!("summaryFormat={}: unknown format", quoted(text)), "use default, JSON or CSV"),
    }
}

fn packet(text: &str) -> Result<char, Error> {
    match text.chars().next().map(|letter| letter.to_ascii_lowercase()) {
        Some(letter @ ('o' | 'i' | 't' | 'r')) => Ok(letter),
        _ => TABLE.refuse(
            format!("-l {}: unknown data type", quoted(text)),
            "use offset, incompressible, timestamp or random",
        ),
    }
}

/// An option as users know it.
fn typed(long: &str) -> String {
    TABLE.flags.iter().find(|flag| flag.long == long).map_or_else(|| long.to_owned(), Flag::typed)
}

fn refuse_value<T>(long: &str, text: &str, wanted: &str) -> Result<T, Error> {
    TABLE.refuse(format!("{}: {} is not {wanted}", typed(long), quoted(text)), format!("give {wanted}"))
}

fn size(long: &str, text: &str) -> Result<u64, Error> {
    match text.parse::<ByteSize>() {
        Ok(size) if size.0 > 0 => Ok(size.0),
        _ => refuse_value(long, text, "a number above 0, such as 47008 or 2m"),
    }
}

fn number(long: &str, text: &str) -> Result<u64, Error> {
    text.parse::<u64>().or_else(|_| refuse_value(long, text, "a whole number, 0 or more"))
}

fn signed(long: &str, text: &str) -> Result<i64, Error> {
    text.parse::<i64>().or_else(|_| refuse_value(long, text, "a whole number"))
}

fn small(long: &str, text: &str) -> Result<u32, Error> {
    match text.parse::<u32>() {
        Ok(count) if count > 0 => Ok(count),
        _ => refuse_value(long, text, "a whole number above 0"),
    }
}

fn is_on(long: &str, value: Option<&str>) -> Result<bool, Error> {
    match value {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(text) => refuse_value(long, text, "0 or 1"),
    }
}

/// A switch that counts: given once more, or its count.
fn times(long: &str, value: Option<&str>, so_far: u32) -> Result<u32, Error> {
    match value {
        None => Ok(so_far + 1),
        Some(text) => text.parse::<u32>().or_else(|_| refuse_value(long, text, "a whole number, 0 or more")),
    }
}

/// Paths of a test.
///
/// # Errors
/// An empty one.
pub(crate) fn paths(test: &Test) -> Result<Vec<String>, Error> {
    let mut paths = tasks::paths(&TABLE, "-o", &test.path)?;
    if !test.file_per_task {
        paths.truncate(1);
    }
    Ok(paths)
}
