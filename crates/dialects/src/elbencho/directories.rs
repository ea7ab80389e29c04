//! Many files in directories: settings from the options, and specs of the file-system layer.

use driver::Error;
use units::{ParseError, Span};
use workload::spec::{OnError, Refill, Spec, Warmup};

use super::files::Configuration;
use super::gpu::Gpu;
use super::hosts::{self, Hosts};
use super::settings::{
    Output, check_repeats, cores, indexes, number, output, progress, refills, seconds, size,
};
use super::specs::{Programme, Step};
use super::table::{OF_DIRECTORIES, TABLE, TOOL};
use super::tree::Tree;
use crate::options::{Said, said, said_if, say, switch};
use crate::words::{Words, quoted};
use crate::{PathFacts, Progress, World};

/// Phases in the order of the tool: its option, its name in the table, and the operation of the layer.
const PHASES: &[(&str, &str, &str)] = &[
    ("mkdirs", "MKDIRS", "tree-create"),
    ("write", "WRITE", "write"),
    ("stat", "STAT", "stat"),
    ("read", "READ", "read"),
    ("delfiles", "RMFILES", "unlink"),
    ("deldirs", "RMDIRS", "tree-remove"),
];

/// Options that mean nothing here, or that nothing does: why, and the nearest there is.
const REFUSED: &[(&str, &str, &str)] = &[
    ("mmap", "mmap is not supported for files in directories", "leave it out"),
    ("strided", "only files and block devices support it", "use --rand or --backward"),
    (
        "norandalign",
        "random positions in files in directories are always multiples of the block size",
        "leave it out",
    ),
    ("randamount", "random operations on a file in a directory always cover the whole file", "leave it out"),
    ("infloop", "each phase visits each file once", "give more files (-N), or more iterations (-i)"),
    (
        "rwmixpct",
        "a phase in directories either writes or reads files",
        "give -w -r, or run both at once from a job file with concurrent = true",
    ),
    (
        "rwmixthr",
        "a phase in directories either writes or reads files",
        "give -w -r, or run both at once from a job file with concurrent = true",
    ),
    (
        "limitread",
        "strata does not limit bytes per second for files in directories",
        "use `strata fs --rate`, which limits calls per second",
    ),
    (
        "limitwrite",
        "strata does not limit bytes per second for files in directories",
        "use `strata fs --rate`, which limits calls per second",
    ),
    ("nopathexp", "brackets in the name of a directory are never expanded", "leave it out"),
];

/// Order of the blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Sequential,
    Backward,
    Random {
        /// Whether writes too are drawn with repeats.
        repeats: bool,
    },
}

/// A command line about a directory.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    path: String,
    phases: Vec<(&'static str, &'static str)>,
    pub(crate) threads: u32,
    /// Directories of a thread, 0 for none, and files of a thread in each.
    pub(crate) dirs: u64,
    pub(crate) files: u64,
    pub(crate) size_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) iterations: u32,
    depth: u32,
    pub(crate) direct: bool,
    order: Order,
    is_shared: bool,
    time: Option<Span>,
    salt: Option<u64>,
    /// Buffers on GPUs.
    gpu: Option<Gpu>,
    verify_written: bool,
    refills: bool,
    sync: bool,
    drop_cache: bool,
    delay: Option<Span>,
    cores: Option<Vec<u32>>,
    zones: Option<Vec<u32>>,
    pub(crate) truncate: bool,
    truncate_to_size: bool,
    preallocate: bool,
    ignores_missing: bool,
    tree: Option<Tree>,
    /// Whether directories are shown beside files.
    pub(crate) shows_directories: bool,
    pub(crate) dry_run: bool,
    pub(crate) progress: Progress,
    pub(crate) output: Output,
}

fn usage(error: &ParseError) -> Error {
    Error::usage(TOOL, error.to_string())
}

fn paths(words: &Words) -> Vec<&str> {
    let all = words.values("path").chain(words.paths.iter().map(String::as_str));
    all.filter(|path| !path.trim().is_empty())
        .map(|path| path.strip_prefix("file://").unwrap_or(path))
        .collect()
}

/// Whether the words are about directories: one is there, or one that is not there yet is meant by its name or its options.
pub(crate) fn is_meant(words: &Words, world: &dyn World) -> bool {
    let has_options = OF_DIRECTORIES.iter().any(|option| words.has(option));
    paths(words).iter().any(|path| match world.look(path) {
        PathFacts::Directory => true,
        PathFacts::Missing => !path.starts_with("/dev/") && (path.ends_with('/') || has_options),
        _ => false,
    })
}

/// Refuses options of directories for files and devices.
pub(crate) fn refuse_options(words: &Words) -> Result<(), Error> {
    match words.given.iter().map(|given| given.flag).find(|flag| OF_DIRECTORIES.contains(&flag.long)) {
        Some(flag) => TABLE.refuse(
            format!("{} applies only to directories", flag.typed()),
            "give a directory, or --s3endpoints and a bucket, or leave it out",
        ),
        None => Ok(()),
    }
}

fn path(words: &Words, world: &dyn World) -> Result<String, Error> {
    let all = paths(words);
    let [path] = all[..] else {
        return TABLE.refuse(
            format!("{} paths are given, but only one directory can be measured", all.len()),
            "give one directory; `strata fs` takes several and divides the threads among them",
        );
    };
    let makes = words.has("mkdirs") || words.has("write");
    match world.look(path) {
        PathFacts::Directory => Ok(path.to_owned()),
        PathFacts::Missing if makes || hosts::are_given(words) => Ok(path.to_owned()),
        PathFacts::Missing => TABLE.refuse(
            format!("{} does not exist", quoted(path)),
            "create its directories and files first (-d -w)",
        ),
        _ => TABLE.refuse(format!("{} is not a directory", quoted(path)), "give a directory"),
    }
}

fn order(words: &Words) -> Result<Order, Error> {
    let repeats = words.has("randalgo");
    match (words.has("rand"), words.has("backward")) {
        (true, true) => TABLE.refuse("--rand and --backward cannot be combined", "give one of them"),
        (true, false) => Ok(Order::Random { repeats }),
        (false, true) => Ok(Order::Backward),
        (false, false) => Ok(Order::Sequential),
    }
}

impl Settings {
    /// Reads and checks what the options say.
    ///
    /// # Errors
    /// Values that cannot be, and options that directories do not have.
    pub(crate) fn read(words: &Words, world: &dyn World, warnings: &mut Vec<String>) -> Result<Self, Error> {
        check_repeats(words)?;
        if let Some((option, reason, remedy)) = REFUSED.iter().find(|(option, ..)| words.has(option)) {
            return TABLE.refuse(format!("--{option}: {reason}"), *remedy);
        }
        let depth = number(words, "iodepth", 1, 4096)?.unwrap_or(1) as u32;
        let gpu = Gpu::read(words, depth, hosts::are_given(words))?;
        let cores = cores(words, world)?;
        let given = PHASES.iter().filter(|(option, ..)| words.has(option));
        let mut settings = Self {
            path: path(words, world)?,
            phases: given.map(|(_, name, operation)| (*name, *operation)).collect(),
            threads: number(words, "threads", 1, 4096)?.unwrap_or(1) as u32,
            dirs: number(words, "dirs", 0, 1 << 32)?.unwrap_or(1),
            files: number(words, "files", 1, 1 << 32)?.unwrap_or(1),
            size_bytes: size(words, "size")?.unwrap_or(0),
            block_bytes: size(words, "block")?.unwrap_or(1 << 20),
            iterations: number(words, "iterations", 1, 100_000)?.unwrap_or(1) as u32,
            depth,
            gpu,
            direct: words.has("direct"),
            order: order(words)?,
            is_shared: words.has("dirsharing"),
            time: seconds(words, "timelimit")?,
            salt: number(words, "verify", 0, u64::MAX)?.filter(|&salt| salt > 0),
            verify_written: words.has("verifydirect"),
            refills: refills(words)?,
            sync: words.has("sync"),
            drop_cache: words.has("dropcache"),
            delay: seconds(words, "phasedelay")?,
            cores,
            zones: indexes(words, "zones")?,
            truncate: words.has("trunc"),
            truncate_to_size: words.has("trunctosize"),
            preallocate: words.has("preallocfile"),
            ignores_missing: words.has("nodelerr"),
            tree: Tree::read(words)?,
            shows_directories: words.has("dirstats"),
            dry_run: words.has("dryrun"),
            progress: progress(words),
            output: output(words, warnings)?,
        };
        settings.check()?;
        settings.fit(warnings);
        settings.warn(words, warnings);
        Ok(settings)
    }

    fn has(&self, phase: &str) -> bool {
        self.phases.iter().any(|(name, _)| *name == phase)
    }

    fn check(&self) -> Result<(), Error> {
        if self.phases.is_empty() {
            return TABLE.refuse(
                "no phase is given",
                "give -d (make directories), -w (write), --stat, -r (read), -F (delete files), -D (delete directories), or several",
            );
        }
        if self.verify_written && (self.salt.is_none() || !self.has("WRITE")) {
            return TABLE.refuse("--verifydirect requires --verify and -w", "add --verify SALT and -w");
        }
        let moves_data = self.has("WRITE") || self.has("READ");
        if matches!(self.order, Order::Random { .. })
            && moves_data
            && self.tree.is_none()
            && self.size_bytes < self.block_bytes
        {
            return TABLE.refuse(
                format!(
                    "--rand: the file size of {} bytes is smaller than the block size of {}",
                    self.size_bytes, self.block_bytes
                ),
                "give a larger -s or a smaller -b",
            );
        }
        let repeats = self.order == (Order::Random { repeats: true });
        if repeats && self.salt.is_some() && self.has("WRITE") {
            return TABLE.refuse(
                "--verify cannot be combined with random writes that repeat (--randalgo)",
                "leave out --randalgo: random writes then visit each block once",
            );
        }
        if self.truncate && self.truncate_to_size {
            return TABLE
                .refuse("--trunc and --trunctosize both set the length of a file", "give one of them");
        }
        Ok(())
    }

    /// Makes what does not fit smaller, and tells of it.
    fn fit(&mut self, warnings: &mut Vec<String>) {
        if self.tree.is_none() && self.size_bytes > 0 && self.size_bytes < self.block_bytes {
            self.block_bytes = self.size_bytes;
        }
        if self.dirs == 0 && (self.has("MKDIRS") || self.has("RMDIRS")) {
            self.phases.retain(|(name, _)| !matches!(*name, "MKDIRS" | "RMDIRS"));
            warnings.push("-d and -D change nothing with -n 0: there are no directories".to_owned());
        }
    }

    fn warn(&self, words: &Words, warnings: &mut Vec<String>) {
        let mut idle = |is_idle: bool, option: &str, without: &str| {
            if is_idle && words.given.iter().any(|given| given.flag.long == option) {
                warnings.push(format!("--{option} changes nothing without {without}"));
            }
        };
        for option in ["trunc", "trunctosize", "preallocfile", "blockvarpct"] {
            idle(!self.has("WRITE"), option, "-w");
        }
        idle(!self.has("WRITE") && !self.has("READ"), "dirstats", "-w or -r");
        idle(!self.has("RMFILES") && !self.has("RMDIRS"), "nodelerr", "-F or -D");
        idle(!matches!(self.order, Order::Random { .. }), "randalgo", "--rand");
        idle(!self.output.percentiles, "latpercent9s", "--latpercent");
        idle(self.output.csv.is_none(), "nocsvlabels", "--csvfile");
        for option in ["dirs", "files", "size", "dirsharing", "dirstats"] {
            if self.tree.is_some() && words.has(option) {
                warnings.push(format!(
                    "--{option} changes nothing with --treefile, which lists the directories and files"
                ));
            }
        }
        if self.verify_written {
            warnings.push(
                "--verifydirect reads the data back after the write phase, in a phase VERIFY".to_owned(),
            );
        }
        if self.time.is_some() && self.phases.len() > 1 {
            warnings.push(
                "if --timelimit ends a phase, the later phases still run, on the files that exist by then"
                    .to_owned(),
            );
        }
    }

    /// The phases of one iteration: name and operation.
    fn steps(&self) -> Vec<(&'static str, &'static str)> {
        let sync = self.sync.then_some(("SYNC", "sync"));
        let mut steps: Vec<_> = sync.into_iter().collect();
        for phase in &self.phases {
            steps.push(*phase);
            steps.extend((phase.0 == "WRITE" && self.verify_written).then_some(("VERIFY", "read")));
            steps.extend(sync);
        }
        steps
    }

    /// Phases and specs of all iterations.
    ///
    /// # Errors
    /// Values that the layer does not take.
    pub(crate) fn build(&self) -> Result<Programme, Error> {
        let mut programme = Programme::default();
        for iteration in 0..self.iterations {
            for (name, operation) in self.steps() {
                let mut spec = self.spec(name, operation).map_err(|error| usage(&error))?;
                spec.start_delay = self.delay.filter(|_| !programme.steps.is_empty());
                programme.step_of.push(programme.steps.len());
                programme.steps.push(Step { iteration, operation: name.to_owned() });
                programme.specs.push(spec);
            }
        }
        Ok(programme)
    }

    fn spec(&self, name: &str, operation: &str) -> Result<Spec, ParseError> {
        let (writes, moves_data) = (operation == "write", matches!(operation, "write" | "read"));
        let is_sync = operation == "sync";
        let refill = if self.refills { Refill::Full } else { Refill::Once };
        let mut spec = Spec {
            name: Some(name.to_owned()),
            targets: vec![self.path.clone()],
            threads: Some(if is_sync { 1 } else { self.threads }),
            depth: moves_data.then_some(self.depth),
            block_size: self.moves(operation).then(|| self.block_bytes.to_string()),
            time: self.time.filter(|_| !is_sync),
            warmup: Some(Warmup::None),
            on_error: Some(OnError::Stop),
            refill: (writes && self.salt.is_none()).then_some(refill),
            verify: moves_data && self.salt.is_some(),
            cores: self.cores.clone(),
            numa: self.zones.clone(),
            keep: true,
            ..Spec::of_layer("filesystem")?
        };
        let order = match self.order {
            Order::Sequential => None,
            Order::Backward => Some("backward"),
            Order::Random { repeats: false } if writes => Some("random"),
            Order::Random { .. } => Some("random-repeats"),
        };
        let own = [
            said("op", operation),
            said_if("engine", (moves_data && self.depth > 1).then_some("io_uring")),
            switch("direct", moves_data && self.direct),
            said_if("verify-run", self.salt.filter(|_| moves_data)),
            said_if("cache", (self.drop_cache && !is_sync).then_some("drop")),
            said_if("order", order.filter(|_| moves_data)),
            switch("truncate-first", writes && self.truncate),
            switch("truncate-to-size", writes && self.truncate_to_size),
            switch("preallocate", writes && self.preallocate),
            switch("ignore-missing", self.ignores_missing),
            switch("no-fill", true),
        ];
        let memory = self.gpu.iter().filter(|_| moves_data).flat_map(Gpu::said);
        say(&mut spec, own.into_iter().chain(memory))?;
        match &self.tree {
            _ if is_sync => {}
            Some(tree) => say(&mut spec, tree.said())?,
            None => say(&mut spec, self.names())?,
        }
        Ok(spec)
    }

    /// Whether a phase needs the size of blocks: it moves some, or files of a list are shared out by them.
    fn moves(&self, operation: &str) -> bool {
        matches!(operation, "write" | "read") || (self.tree.is_some() && operation != "sync")
    }

    /// Names and numbers of directories and files.
    fn names(&self) -> [Said; 6] {
        [
            said("names", "elbencho"),
            said_if("dirs", (self.dirs > 0).then_some(self.dirs)),
            said_if("levels", (self.dirs == 0).then_some(0)),
            said("files", self.files),
            said("file-size", self.size_bytes),
            switch("shared-tree", self.is_shared),
        ]
    }

    /// The command line as far as the result files show it.
    pub(crate) fn configuration(&self, command: String, hosts: &Hosts) -> Configuration {
        Configuration {
            path_type: "dir",
            hosts: hosts.count(),
            shares_paths: hosts.share_paths(),
            paths: 1,
            threads: self.threads,
            size_bytes: self.size_bytes,
            block_bytes: self.block_bytes,
            direct: self.direct,
            random: matches!(self.order, Order::Random { .. }),
            unaligned: false,
            depth: self.depth,
            truncate: Some(self.truncate),
            dirs_and_files: Some((self.dirs, self.files)),
            shows_directories: self.shows_directories && self.tree.is_none(),
            command,
        }
    }

    /// How much each phase would do, as `--dryrun` shows it.
    pub(crate) fn dry_run(&self) -> String {
        let threads = u64::from(self.threads);
        let count = |number: u64| format!("{number} | {} K | {} M", number / 1000, number / 1_000_000);
        let size = |bytes: u64| format!("{bytes} | {} MiB | {} GiB", bytes >> 20, bytes >> 30);
        let of = |(name, operation): &(&str, &str)| {
            let is_of_dirs = matches!(*name, "MKDIRS" | "RMDIRS");
            let each = if is_of_dirs { self.dirs } else { self.dirs.max(1).saturating_mul(self.files) };
            let trees = if is_of_dirs && self.is_shared { 1 } else { threads };
            let mut text = format!(
                "Phase: {name}\n* Entries per thread: {}\n* Entries total:      {}\n",
                count(each),
                count(each.saturating_mul(trees)),
            );
            if matches!(*operation, "write" | "read") {
                let bytes = each.saturating_mul(self.size_bytes);
                text.push_str(&format!(
                    "* Bytes per thread:   {}\n* Bytes total:        {}\n",
                    size(bytes),
                    size(bytes.saturating_mul(threads))
                ));
            }
            text
        };
        self.phases.iter().map(of).collect()
    }
}
