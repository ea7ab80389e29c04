//! From options to what mdtest would do.

use driver::Error;
use units::ByteSize;

use super::table::TABLE;
use crate::gpu_buffers::GpuBuffers;
use crate::ior::APIS_REFUSED;
use crate::words::{Flag, Words, quoted};
use crate::{World, tasks};

/// Load that a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) is_dummy: bool,
    pub(crate) paths: Vec<String>,
    /// Numbers of tasks, one test each.
    pub(crate) tasks: Vec<u32>,
    pub(crate) iterations: u32,
    pub(crate) dirs: bool,
    pub(crate) files: bool,
    pub(crate) create: bool,
    pub(crate) stat: bool,
    pub(crate) read: bool,
    pub(crate) remove: bool,
    pub(crate) rename: bool,
    pub(crate) tree: Tree,
    /// Items that a status file tells for files, of a task.
    pub(crate) noted: Option<u64>,
    pub(crate) status_file: Option<String>,
    pub(crate) unique: bool,
    pub(crate) stride: u32,
    pub(crate) write_bytes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) verify: bool,
    pub(crate) data_number: Option<u64>,
    pub(crate) mknod: bool,
    pub(crate) fsync: bool,
    pub(crate) sync: bool,
    pub(crate) direct: bool,
    pub(crate) gpu: GpuBuffers,
    pub(crate) random: bool,
    pub(crate) random_seed: Option<u64>,
    pub(crate) stonewall_s: u64,
    pub(crate) delay_s: u64,
    pub(crate) rates: bool,
    pub(crate) times: bool,
}

/// Directories, and the items of a task in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) branch: u64,
    pub(crate) depth: u32,
    pub(crate) leaf_only: bool,
    /// Directories in place of branch and depth.
    pub(crate) directories: Option<u64>,
    pub(crate) per_directory: u64,
    pub(crate) items: u64,
}

fn typed(long: &str) -> String {
    TABLE.flags.iter().find(|flag| flag.long == long).map_or_else(|| long.to_owned(), Flag::typed)
}

/// A value of an option; what it is where it was not given.
struct Values<'a>(&'a Words);

impl Values<'_> {
    fn number<T: std::str::FromStr>(&self, long: &str, otherwise: T) -> Result<T, Error> {
        let Some(text) = self.0.value(long) else { return Ok(otherwise) };
        text.parse().or_else(|_| {
            TABLE.refuse(
                format!("{}: {} is not a whole number of 0 or more", typed(long), quoted(text)),
                "give a number such as 1000",
            )
        })
    }

    fn above_zero(&self, long: &str, otherwise: u32) -> Result<u32, Error> {
        match self.number(long, otherwise)? {
            0 => TABLE.refuse(format!("{} 0 is too small", typed(long)), "give 1 or more"),
            count => Ok(count),
        }
    }

    fn size(&self, long: &str) -> Result<u64, Error> {
        let Some(text) = self.0.value(long) else { return Ok(0) };
        text.parse::<ByteSize>().map(|size| size.0).or_else(|_| {
            TABLE.refuse(
                format!("{}: {} is not a number of bytes", typed(long), quoted(text)),
                "give a number such as 3901 or 4k",
            )
        })
    }
}

impl Settings {
    /// Reads what was given.
    ///
    /// # Errors
    /// Options that cannot be, one line each.
    pub(crate) fn read(words: &Words, world: &dyn World) -> Result<Self, Error> {
        let values = Values(words);
        let [create, stat, read, remove, rename] =
            ["create", "stat", "read", "remove", "rename"].map(|long| words.has(long));
        let all = !(create || stat || read || remove || rename);
        let (dirs, files) = (words.has("dirs-only"), words.has("files-only"));
        let both = dirs == files;
        let tasks = values.above_zero("tasks", world.ranks())?;
        let mut settings = Self {
            is_dummy: is_dummy(words)?,
            paths: tasks::paths(&TABLE, "-d", words.value("dir").unwrap_or("./out"))?,
            tasks: counts(&values, tasks)?,
            iterations: values.above_zero("iterations", 1)?,
            dirs: dirs || both,
            files: files || both,
            create: create || all,
            stat: stat || all,
            read: read || all,
            remove: remove || all,
            rename: rename || all,
            tree: tree(words, &values)?,
            noted: None,
            status_file: words.value("status-file").map(str::to_owned),
            unique: words.has("unique-dir"),
            stride: values.number("stride", 0)?,
            write_bytes: values.size("write-bytes")?,
            read_bytes: values.size("read-bytes")?,
            verify: words.has("verify-read"),
            data_number: words.value("data-number").map(|_| values.number("data-number", 0)).transpose()?,
            mknod: words.has("mknod"),
            fsync: words.has("fsync"),
            sync: words.has("sync"),
            direct: words.has("posix.odirect"),
            gpu: gpu(words)?,
            random: words.has("random"),
            random_seed: words.value("random-seed").map(|_| values.number("random-seed", 0)).transpose()?,
            stonewall_s: values.number("stonewall", 0)?,
            delay_s: values.number("pre-delay", 0)?,
            rates: words.has("print-rate-and-time") || !words.has("print-time"),
            times: words.has("print-rate-and-time") || words.has("print-time"),
        };
        settings.check()?;
        if let Some(path) = settings.status_file.as_ref().filter(|_| !settings.create && settings.files) {
            settings.noted = Some(tasks::status(&TABLE, "-x", path, world)?);
        }
        Ok(settings)
    }

    /// Refuses what cannot be, with mdtest's own conditions.
    fn check(&self) -> Result<(), Error> {
        let refuse = |message: &str, remedy: &str| TABLE.refuse(message.to_owned(), remedy.to_owned());
        let paths = self.paths.len();
        if paths > 1 && !self.unique {
            return refuse(
                "several directories are given, but all tasks share one tree",
                "give -u, or one directory",
            );
        }
        if paths > 1 && self.stride > 0 {
            return refuse(
                "-N cannot be combined with several directories",
                "give one directory, or leave out -N",
            );
        }
        if self.tasks.iter().any(|&tasks| paths > tasks as usize) {
            return refuse(
                "more directories than tasks are given",
                "give fewer directories, or more --tasks",
            );
        }
        if self.stonewall_s > 0 && self.tree.branch > 1 {
            return refuse("-W requires -b 1", "leave out -b, or -W");
        }
        if self.mknod && self.write_bytes > 0 {
            return refuse("-k creates empty files, but -w writes data to them", "give one of them");
        }
        if self.verify && !(self.read && self.read_bytes > 0) {
            return refuse("-X checks the data that is read, but this run reads none", "add -E and -e SIZE");
        }
        if self.create && self.read && self.read_bytes > self.write_bytes {
            return refuse(
                "-e is larger than -w: the files are shorter than the reads",
                "give a -e of at most -w",
            );
        }
        if self.verify && self.write_bytes > 0 && self.write_bytes != self.read_bytes {
            return refuse("-X checks whole files", "give the same -e as -w");
        }
        if self.verify && self.is_dummy {
            return refuse("DUMMY has no data to check", "leave out -X, or use -a POSIX");
        }
        let repeats = self.iterations > 1 || self.tasks.len() > 1;
        if self.create && !self.remove && repeats {
            return refuse(
                "a second creation without a removal would find the items of the first creation",
                "add -r, or run it again with another -d",
            );
        }
        Ok(())
    }

    /// Items of a task.
    pub(crate) fn items(&self) -> u64 {
        self.tree.items
    }
}

fn is_dummy(words: &Words) -> Result<bool, Error> {
    let text = words.value("api").unwrap_or("POSIX");
    if text.eq_ignore_ascii_case("POSIX") || text.eq_ignore_ascii_case("DUMMY") {
        return Ok(text.eq_ignore_ascii_case("DUMMY"));
    }
    match APIS_REFUSED.iter().find(|(name, ..)| text.eq_ignore_ascii_case(name)) {
        Some((name, why, _)) => {
            TABLE.refuse(format!("-a {name}: {why}"), "mount the file system and use -a POSIX")
        }
        None => TABLE.refuse(format!("-a {}: unknown back end", quoted(text)), "use POSIX or DUMMY"),
    }
}

/// Buffers on GPUs that the options ask for.
fn gpu(words: &Words) -> Result<GpuBuffers, Error> {
    let mut gpu = GpuBuffers::default();
    for given in &words.given {
        gpu.take(&TABLE, given.flag.long, given.value.as_deref().unwrap_or_default())?;
    }
    Ok(gpu)
}

/// Numbers of tasks from `-f` to `-l`.
fn counts(values: &Values<'_>, tasks: u32) -> Result<Vec<u32>, Error> {
    let last: u32 = values.number("last", 0)?;
    let stride = values.above_zero("task-stride", 1)?;
    if last == 0 {
        return Ok(vec![tasks]);
    }
    let first = values.above_zero("first", 1)?;
    if first > last || last > tasks {
        return TABLE.refuse(
            format!("-f {first} and -l {last} do not fit {tasks} tasks"),
            "give a -f of at most -l, and a -l of at most --tasks",
        );
    }
    Ok((first..=last).step_by(stride as usize).collect())
}

/// Directories, and items in them, by mdtest's rule.
fn tree(words: &Words, values: &Values<'_>) -> Result<Tree, Error> {
    let branch = u64::from(values.above_zero("branch", 1)?);
    let depth: u32 = values.number("depth", 0)?;
    if depth > 64 {
        return TABLE.refuse(format!("-z {depth} is too deep"), "give at most 64");
    }
    let leaf_only = words.has("leaf-only");
    let (items, per) = (values.number::<u64>("items", 0)?, values.number::<u64>("items-per-dir", 0)?);
    let level = |level: u32| branch.checked_pow(level).filter(|&count| count <= 1 << 40);
    let sum = (0..=depth).map(level).try_fold(0u64, |sum, count| sum.checked_add(count?));
    let (Some(all), Some(leaves)) = (sum, level(depth)) else {
        return TABLE
            .refuse(format!("-b {branch} -z {depth} makes too many directories"), "give smaller numbers");
    };
    let holders = if leaf_only { leaves } else { all };
    let whole = Tree { branch, depth, leaf_only, directories: None, per_directory: per, items };
    match (items, per) {
        (0, 0) => TABLE.refuse("the number of items is not given", "give -n, or -I with -b and -z"),
        (0, per) => match per.checked_mul(holders) {
            Some(items) => Ok(Tree { items, ..whole }),
            None => TABLE.refuse(
                format!("-I {per} in {holders} directories makes too many items"),
                "give smaller numbers",
            ),
        },
        (items, 0) if items / holders == 0 => TABLE.refuse(
            format!("-n {items} is less than one item for each of {holders} directories"),
            format!("give at least {holders}"),
        ),
        (items, 0) => {
            let per = items / holders;
            Ok(Tree { per_directory: per, items: per * holders, ..whole })
        }
        _ if words.has("unique-dir") || depth > 0 => TABLE.refuse(
            "-n and -I both set the number of items",
            "give one of them; both are possible only without -u and -z",
        ),
        (items, per) if items % per != 0 => {
            TABLE.refuse(format!("-n {items} is not a multiple of -I {per}"), "give a multiple of -I")
        }
        (items, per) => Ok(Tree { directories: Some(items / per), ..whole }),
    }
}
