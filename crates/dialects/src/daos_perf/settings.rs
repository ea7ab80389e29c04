//! Settings from the options, read and checked.

use driver::Error;
use units::ParseError;
use workload::spec::Spec;

use super::class;
use super::commands::{self, Command, Test};
use super::numbers;
use crate::options::{said, say};
use crate::words::{Table, Words, quoted};
use crate::{PathFacts, World};

/// Smallest value, in bytes.
const SIZE_BYTES_MIN: u64 = 4;
/// Largest value, in bytes.
const SIZE_BYTES_MAX: u64 = 1 << 30;
/// Most records that a test may come to.
const RECORDS_MAX: u64 = 1 << 48;
/// Where the store of vos_perf lies when nothing says so.
const DIRECTORY: &str = "/mnt/daos";
/// The variable that names the target of daos_perf.
const TARGET_VARIABLE: &str = "DAOS_PERF_TARGET";

/// Target of the tests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Workload {
    /// vos_perf: a store of each process, in this process.
    Vos {
        /// Path before the number of the process.
        before: String,
        /// Path after it.
        after: &'static str,
    },
    /// daos_perf: a target that all processes share.
    Shared {
        /// Its URL.
        url: String,
        /// Nothing is stored: RPCs alone.
        is_echo: bool,
    },
}

/// The release whose text the results have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextOf {
    /// The public guide of 2.0.
    V2_0,
    /// The tools of 2.8.
    V2_8,
}

/// A command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) tool: &'static str,
    pub(crate) place: Workload,
    pub(crate) scm_bytes: u64,
    pub(crate) nvme_bytes: u64,
    /// Objects of a process, dkeys of an object, akeys of a dkey, records of an akey.
    pub(crate) counts: [u64; 4],
    pub(crate) size_bytes: u64,
    pub(crate) is_array: bool,
    pub(crate) is_shuffled: bool,
    pub(crate) commands: Vec<Command>,
    pub(crate) asks: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) pool: Option<String>,
    pub(crate) container: Option<String>,
    pub(crate) processes: u32,
    /// Processes that a launcher has started and that take part; 1 where it has started none.
    ranks: u32,
    pub(crate) zero_copy: bool,
    pub(crate) integer_dkeys: bool,
    pub(crate) constant_akey: bool,
    pub(crate) keep: bool,
    pub(crate) text_of: TextOf,
    /// Of containers that vos_perf makes.
    pub(crate) checksum: String,
    /// As typed: 0 or less is synchronous.
    pub(crate) credits: i64,
    /// By the names of DAOS.
    pub(crate) class: String,
    class_is_given: bool,
}

fn usage(table: &Table, error: &ParseError) -> Error {
    Error::usage(table.tool, error.to_string())
}

fn number(table: &Table, words: &Words, long: &str, range: (u64, u64), default: u64) -> Result<u64, Error> {
    let Some(text) = words.value(long) else { return Ok(default) };
    let what = format!("a value of --{long}");
    numbers::parse(&what, text, range.0, range.1).map_err(|error| usage(table, &error))
}

/// Whether a text is a UUID: 8, 4, 4, 4 and 12 hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn checksum(table: &Table, words: &Words) -> Result<String, Error> {
    let text = words.value("checksum").unwrap_or("off");
    option(table, "checksum", text)?;
    Ok(text.to_owned())
}

/// Refuses what is no value of an option of the store.
pub(super) fn option(table: &Table, name: &'static str, text: &str) -> Result<(), Error> {
    let taken = Spec::of_layer("object").and_then(|mut spec| say(&mut spec, [said(name, text)]));
    taken.map_err(|error| usage(table, &error))
}

fn text_of(table: &Table, words: &Words) -> Result<TextOf, Error> {
    match words.value("text-of") {
        None | Some("2.8") => Ok(TextOf::V2_8),
        Some("2.0") => Ok(TextOf::V2_0),
        Some(other) => table
            .refuse(format!("--text-of: {} is not a supported release", quoted(other)), "give 2.8 or 2.0"),
    }
}

impl Settings {
    /// Reads and checks what the options say.
    ///
    /// # Errors
    /// Values that cannot be, and options that contradict each other.
    pub(crate) fn read(
        table: &Table,
        words: &Words,
        world: &dyn World,
        is_daos: bool,
    ) -> Result<Self, Error> {
        if let Some(word) = words.paths.first() {
            return table.refuse(
                format!("{} does not belong to an option", quoted(word)),
                "quote the tests, as in -R \"U;p F;p\"; write the R of -A without a blank: -AR",
            );
        }
        let Some(run) = words.value("run") else {
            return table.refuse("no -R/--run: no test is given", "give tests, as in -R \"U;p F;p\"");
        };
        let count = |long, default| number(table, words, long, (1, u64::MAX), default);
        let constant_akey = words.has("const_akey");
        let akeys = count("akey", 16)?;
        let counts =
            [count("obj", 1)?, count("dkey", 256)?, if constant_akey { 1 } else { akeys }, count("num", 16)?];
        let processes = number(table, words, "procs", (1, 4096), u64::from(world.ranks()))? as u32;
        let size_option = if words.has("size") { "size" } else { "stride" };
        let settings = Self {
            tool: table.tool,
            place: if is_daos { shared(table, words, world)? } else { vos(table, words)? },
            scm_bytes: number(table, words, "pool_scm", (1 << 20, u64::MAX), 2 << 30)?,
            nvme_bytes: number(table, words, "pool_nvme", (0, u64::MAX), 0)?,
            counts,
            size_bytes: number(table, words, size_option, (SIZE_BYTES_MIN, SIZE_BYTES_MAX), 64)?,
            is_array: words.has("array"),
            is_shuffled: is_shuffled(table, words)?,
            commands: commands::parse(run, is_daos).map_err(|error| usage(table, &error))?,
            asks: words.has("wait"),
            seed: words
                .value("seed")
                .map(|text| units::parse_u64_in("--seed", text, 0..=u64::MAX))
                .transpose()
                .map_err(|error| usage(table, &error))?,
            pool: words.value("pool").map(str::to_owned),
            container: words.value("cont").map(str::to_owned),
            processes,
            ranks: world.ranks().min(processes),
            zero_copy: words.has("zcopy"),
            integer_dkeys: words.has("int_dkey"),
            constant_akey,
            keep: words.has("keep") || (words.has("pool") && words.has("cont")),
            text_of: text_of(table, words)?,
            checksum: checksum(table, words)?,
            credits: credits(table, words)?,
            class_is_given: words.has("class"),
            class: class::parse(
                table,
                words.value("class").unwrap_or(if is_daos { "LARGE" } else { "TINY" }),
            )?,
        };
        settings.check(table, world)?;
        Ok(settings)
    }

    /// Warnings where something is done otherwise than the words say.
    pub(crate) fn warnings(&self, words: &Words) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.commands.iter().any(|command| command.is_verbose) {
            warnings.push(
                "v: individual operations are not printed; only failed operations are listed".to_owned(),
            );
        }
        if matches!(self.place, Workload::Shared { .. }) || self.pool.is_some() {
            for option in ["pool_scm", "pool_nvme"].iter().filter(|option| words.has(option)) {
                warnings.push(format!("--{option} changes nothing: the pool already exists"));
            }
        }
        if self.is_echo() && words.has("class") {
            warnings.push("-c/--class changes nothing with -T echo: each RPC goes to one target".to_owned());
        }
        warnings
    }

    /// Operations in flight of each process.
    pub(crate) fn depth(&self) -> u32 {
        self.credits.clamp(1, i64::from(u32::MAX)) as u32
    }

    /// The rank that has a process's store, where a launcher has started several.
    pub(crate) fn rank_of(&self, process: u32) -> Option<u32> {
        let is_apart = self.ranks > 1 && matches!(self.place, Workload::Vos { .. });
        is_apart.then(|| process / (self.processes / self.ranks))
    }

    /// Path of a process's store.
    pub(crate) fn store(&self, process: u32) -> Option<String> {
        match &self.place {
            Workload::Vos { before, after } => Some(format!("{before}{process}{after}")),
            Workload::Shared { .. } => None,
        }
    }

    /// The class that is asked for: that of `-c`, and on DAOS itself the tool's own. Elsewhere the store chooses.
    pub(crate) fn class_asked(&self) -> Option<&str> {
        let is_daos = matches!(&self.place, Workload::Shared { url, .. } if url.starts_with("daos:"));
        (is_daos || self.class_is_given).then_some(self.class.as_str())
    }

    /// Whether the target's URL names the container.
    pub(crate) fn has_container_in_url(&self) -> bool {
        match &self.place {
            Workload::Vos { .. } => false,
            Workload::Shared { url, .. } => {
                let parts =
                    url.split("://").nth(1).unwrap_or_default().split('/').filter(|part| !part.is_empty());
                // engine://HOST:PORT/POOL/CONT, daos://POOL/CONT
                parts.count() > if url.starts_with("engine:") { 2 } else { 1 }
            }
        }
    }

    /// Whether nothing is stored.
    pub(crate) fn is_echo(&self) -> bool {
        matches!(self.place, Workload::Shared { is_echo: true, .. })
    }

    /// Bytes of a value of this command.
    pub(crate) fn value_bytes(&self, command: &Command) -> u64 {
        command.size_bytes.unwrap_or(self.size_bytes)
    }

    fn check(&self, table: &Table, world: &dyn World) -> Result<(), Error> {
        if self.asks && !world.is_interactive() {
            return table.refuse("-w/--wait requires a terminal", "leave it out");
        }
        if let Workload::Vos { before, .. } = &self.place {
            if !self.processes.is_multiple_of(self.ranks) {
                let (processes, ranks) = (self.processes, self.ranks);
                return table.refuse(
                    format!("--procs {processes} is not a multiple of the {ranks} processes that a launcher started"),
                    format!("give a multiple of {ranks}, or leave out --procs: each process is then one"),
                );
            }
            self.check_stores(table, world, before)?;
        }
        for (at, command) in self.commands.iter().enumerate() {
            self.check_subset(table, command)?;
            self.check_test(table, command)?;
            self.check_data(table, command, &self.commands[..at])?;
        }
        Ok(())
    }

    /// The directory of the stores, and what is in their place.
    fn check_stores(&self, table: &Table, world: &dyn World, before: &str) -> Result<(), Error> {
        let parent = match before.rsplit_once('/') {
            None => ".",
            Some(("", _)) => "/",
            Some((parent, _)) => parent,
        };
        if world.look(parent) != PathFacts::Directory {
            return table.refuse(
                format!("{} is not a directory", quoted(parent)),
                "give -D DIR, or -f DIR/FILE, on storage-class memory, such as /mnt/daos or /dev/shm",
            );
        }
        for option in [&self.pool, &self.container].into_iter().flatten() {
            if !is_uuid(option) {
                return table.refuse(
                    format!("{} is not a UUID", quoted(option)),
                    "give 32 hexadecimal digits as 8-4-4-4-12, such as a3b7ff28-56ff-4974-9283-62990dd770ad",
                );
            }
        }
        // What other machines have is looked at there.
        let is_here = |process: &u32| world.has_all_ranks() || self.rank_of(*process) == Some(0);
        for store in (0..self.processes).filter(is_here).filter_map(|process| self.store(process)) {
            match (world.look(&store), &self.pool) {
                (PathFacts::Missing, None) | (PathFacts::Directory, Some(_)) => {}
                (PathFacts::Missing, Some(_)) => {
                    return table.refuse(
                        format!("-u/--pool: {} does not exist", quoted(&store)),
                        "leave out -u to create a store; add --keep to keep it",
                    );
                }
                (_, None) => {
                    return table.refuse(
                        format!("{} already exists", quoted(&store)),
                        "give -u UUID to use this store, or remove it first",
                    );
                }
                _ => {
                    return table.refuse(
                        format!("{} is not a strata store", quoted(&store)),
                        "use a directory created by vos_perf --keep or strata pool create",
                    );
                }
            }
        }
        Ok(())
    }

    fn check_subset(&self, table: &Table, command: &Command) -> Result<(), Error> {
        let code = command.test.code();
        for ((asked, whole), (letter, option)) in
            command.subset.iter().zip(self.counts).zip([('O', "-o"), ('d', "-d"), ('a', "-a"), ('n', "-n")])
        {
            if let Some(asked) = asked.filter(|&asked| asked > whole) {
                return table.refuse(
                    format!("{code};{letter}={asked} is more than the test creates"),
                    format!("give at most {whole}, or a larger {option}"),
                );
            }
        }
        let records = self.counts.iter().try_fold(command.iterations, |product, &count| {
            product.checked_mul(count).filter(|&product| product <= RECORDS_MAX)
        });
        if records.and_then(|records| records.checked_mul(u64::from(self.processes))).is_none() {
            return table.refuse(
                format!("{code}: -o x -d x -a x -n x i= is more than {RECORDS_MAX} operations"),
                "give smaller numbers",
            );
        }
        let (offset, size) = (command.offset_bytes.unwrap_or(0), self.value_bytes(command));
        if command.offset_bytes.is_some() && !self.is_array {
            return table.refuse(
                format!("{code};o={offset}: a single value is always written completely"),
                "add -A, or leave out o=",
            );
        }
        if offset.saturating_add(size) > self.size_bytes {
            return table.refuse(
                format!("{code}: o={offset} and s={size} exceed the end of a record"),
                format!("reduce their sum to at most {}, or give a larger -s", self.size_bytes),
            );
        }
        Ok(())
    }

    /// Checks the options that a test needs.
    fn check_test(&self, table: &Table, command: &Command) -> Result<(), Error> {
        let is_moved = matches!(command.test, Test::Update | Test::Fetch);
        if self.is_echo() && !is_moved {
            return table.refuse(
                format!("{}: -T echo stores no data", command.test.code()),
                "give only U and F, or use -T daos",
            );
        }
        match command.test {
            Test::Query if !(self.integer_dkeys && self.is_array && self.constant_akey) => table
                .refuse("Q queries the largest dkey and record numbers under one akey", "add -i, -A and -I"),
            Test::Punch if command.iterations > 1 && !command.keeps_keys => table.refuse(
                format!("P;i={}: a record can be punched only once", command.iterations),
                "leave out i=, or update the records again: \"U P U P\"",
            ),
            _ => Ok(()),
        }
    }

    /// Checks the tests that a test needs before it.
    fn check_data(&self, table: &Table, command: &Command, before: &[Command]) -> Result<(), Error> {
        let is_read = matches!(command.test, Test::Fetch | Test::Verify);
        if !is_read || self.is_echo() {
            return Ok(());
        }
        let code = command.test.code();
        let updates = || before.iter().filter(|other| other.test == Test::Update);
        if self.pool.is_none() && updates().next().is_none() && matches!(self.place, Workload::Vos { .. }) {
            return table.refuse(
                format!("{code} reads data that no test has written"),
                "put U before it, or use an existing store with -u",
            );
        }
        let extent = |command: &Command| (command.offset_bytes.unwrap_or(0), self.value_bytes(command));
        let overlaps =
            |one: (u64, u64), other: (u64, u64)| one.0 < other.0 + other.1 && other.0 < one.0 + one.1;
        let own = extent(command);
        let last = updates().map(extent).rfind(|written| overlaps(*written, own));
        match last {
            Some(written) if command.test == Test::Verify && written != own => table.refuse(
                "V must check the part of the records that was written last".to_owned(),
                format!("give V;o={};s={}", written.0, written.1),
            ),
            _ => Ok(()),
        }
    }
}

fn is_shuffled(table: &Table, words: &Words) -> Result<bool, Error> {
    match words.value("array") {
        None => Ok(false),
        Some("R" | "r") => Ok(true),
        Some(text) => table.refuse(format!("-A/--array: {} is not R", quoted(text)), "give -A or -AR"),
    }
}

fn credits(table: &Table, words: &Words) -> Result<i64, Error> {
    let Some(text) = words.value("credits") else { return Ok(-1) };
    match text.parse::<i64>() {
        Ok(credits) if credits <= 65_536 => Ok(credits),
        _ => table.refuse(
            format!("-C/--credits: {} is not a number of operations", quoted(text)),
            "give 1 to 65536, or 0 for synchronous operations",
        ),
    }
}

fn vos(table: &Table, words: &Words) -> Result<Workload, Error> {
    let (directory, file) = (words.value("dir"), words.value("file"));
    let (before, after) = match (directory, file) {
        (Some(_), Some(_)) => {
            return table.refuse("-D and -f both set the path of the store", "give one of them");
        }
        (None, Some(file)) => (file.to_owned(), ""),
        (directory, None) => {
            let directory = directory.unwrap_or(DIRECTORY);
            (format!("{}/vos_perf", directory.trim_end_matches('/')), ".pmem")
        }
    };
    if before.is_empty() || directory == Some("") || before.ends_with('/') {
        return table.refuse("the path of the store is empty", "give -D DIR or -f FILE");
    }
    Ok(Workload::Vos { before, after })
}

fn shared(table: &Table, words: &Words, world: &dyn World) -> Result<Workload, Error> {
    let is_echo = match words.value("type").map(str::to_ascii_lowercase).as_deref() {
        None | Some("daos") => false,
        Some("echo") => true,
        Some(other) => {
            return table
                .refuse(format!("-T/--type: {} is not a test type", quoted(other)), "use one of daos, echo");
        }
    };
    let given = words.value("target").map(str::to_owned).or_else(|| world.variable(TARGET_VARIABLE));
    let (pool, container) = (words.value("pool"), words.value("cont"));
    let url = match (given, pool) {
        (Some(_), Some(_)) if words.value("target").is_some() => {
            return table.refuse("--target and -u/--pool both set the pool", "give one of them");
        }
        (_, Some(pool)) => match container {
            Some(container) => format!("daos://{pool}/{container}"),
            None => format!("daos://{pool}"),
        },
        (Some(url), None) => url,
        (None, None) => {
            return table.refuse(
                "no pool is given, and strata does not create pools on a DAOS system",
                format!(
                    "give --target engine://HOST:PORT/POOL/CONT (or {TARGET_VARIABLE}), or -u POOL [-X CONT] of a DAOS system"
                ),
            );
        }
    };
    if !["engine://", "daos://", "null:"].iter().any(|scheme| url.starts_with(scheme)) {
        return table.refuse(
            format!("--target: {} is not a daos_perf target", quoted(&url)),
            "give engine://HOST:PORT/POOL/CONT or daos://POOL/CONT",
        );
    }
    if is_echo && !url.starts_with("engine://") {
        return table.refuse(
            format!("-T echo: {} does not answer strata RPCs", quoted(&url)),
            "give --target engine://HOST:PORT, or -T daos",
        );
    }
    Ok(Workload::Shared { url, is_echo })
}
