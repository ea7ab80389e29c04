//! Objects of an S3 bucket: `--s3endpoints`, or paths that begin with `s3://`.

mod keys;

use driver::Error;
use units::{ByteSize, ParseError, Rate, Span};
use workload::options::apply_secret;
use workload::spec::{OnError, Refill, Spec, Warmup};

use super::gpu::Gpu;
use super::hosts::Hosts;
use super::paths::expand;
use super::settings::{
    Output, check_repeats, cores, indexes, number, output, progress, refills, seconds, size,
};
use super::specs::Step;
use super::table::{NOT_OF_S3, OF_CUFILE, TABLE, TOOL};
use crate::options::{said, said_if, say, switch};
use crate::words::{Words, quoted};
use crate::{Progress, World};

pub(crate) use keys::secrets;

/// Smallest part of an upload but the last, in bytes (S3).
const PART_BYTES_MIN: u64 = 5 << 20;
/// Names that one request of a list brings.
const LIST_MAX: u64 = 1000;
/// Most objects of a data set.
const OBJECTS_MAX: u64 = 1 << 40;

/// Options of files that mean nothing here.
const OF_FILES: &[&str] = &[
    "mmap",
    "direct",
    "rand",
    "norandalign",
    "randamount",
    "randalgo",
    "backward",
    "strided",
    "rwmixpct",
    "rwmixthr",
    "verifydirect",
    "sync",
    "dropcache",
    "trunc",
    "trunctosize",
    "preallocfile",
    "dryrun",
];

/// Operation of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Put,
    Get,
    Stat,
    List,
    Remove,
}

impl Operation {
    /// The name that the option of the load has for it.
    fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Stat => "stat",
            Self::List => "list",
            Self::Remove => "remove",
        }
    }
}

fn usage(error: &ParseError) -> Error {
    Error::usage(TOOL, error.to_string())
}

/// Whether the words are about a bucket.
pub(crate) fn is_meant(words: &Words) -> bool {
    let mut paths = words.values("path").chain(words.paths.iter().map(String::as_str));
    words.has("s3endpoints") || paths.any(|path| path.starts_with("s3://"))
}

/// Refuses options of S3 where there is none.
pub(crate) fn refuse_options(words: &Words) -> Result<(), Error> {
    match words.given.iter().map(|given| given.flag).find(|flag| flag.long.starts_with("s3")) {
        Some(flag) => TABLE.refuse(
            format!("{} applies only to buckets", flag.typed()),
            "add --s3endpoints, or leave it out",
        ),
        None => Ok(()),
    }
}

/// A command line of S3.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) threads: u32,
    /// Hosts with so many threads each.
    hosts: u64,
    /// Directories of a thread, 0 for none, and objects of each.
    dirs: u64,
    files: u64,
    pub(crate) size_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) iterations: u32,
    pub(crate) depth: u32,
    gpu: Option<Gpu>,
    pub(crate) output: Output,
    pub(crate) progress: Progress,
    /// Phases in order, with what each does.
    phases: Vec<(&'static str, Operation)>,
    /// Objects that `--s3listobj` lists.
    listed: u64,
    verify: bool,
    refills: bool,
    keep: bool,
    endless: bool,
    time: Option<Span>,
    delay: Option<Span>,
    limits: [Option<u64>; 2],
    /// Fields that all phases have in common.
    base: Spec,
}

impl Settings {
    /// Reads and checks what the options say.
    ///
    /// # Errors
    /// Values that cannot be, options of files, and what would touch objects of others.
    pub(crate) fn read(
        words: &Words,
        world: &dyn World,
        hosts: &Hosts,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Error> {
        check_repeats(words)?;
        let mut others = OF_FILES.iter().chain(NOT_OF_S3).chain(OF_CUFILE);
        if let Some(option) = others.find(|option| words.has(option)) {
            return TABLE.refuse(
                format!("--{option} applies only to files, directories and block devices"),
                "leave it out for S3",
            );
        }
        let block_bytes = match words.value("block") {
            None => 1 << 20,
            Some(_) => size(words, "block")?.ok_or_else(|| {
                TABLE.error("-b/--block 0 moves nothing", "give a size above 0, such as 5m")
            })?,
        };
        if hosts.share_paths() == Some(false) {
            return TABLE.refuse("--nosvcshare: all hosts always share a bucket", "leave it out for buckets");
        }
        let listed = number(words, "s3listobj", 1, OBJECTS_MAX)?.unwrap_or(0);
        let depth = number(words, "iodepth", 1, 4096)?.unwrap_or(1) as u32;
        let settings = Self {
            threads: number(words, "threads", 1, 4096)?.unwrap_or(1) as u32,
            hosts: hosts.count() as u64,
            dirs: number(words, "dirs", 0, 1 << 32)?.unwrap_or(1),
            files: number(words, "files", 1, 1 << 32)?.unwrap_or(1),
            size_bytes: size(words, "size")?.unwrap_or(0),
            block_bytes,
            iterations: number(words, "iterations", 1, 100_000)?.unwrap_or(1) as u32,
            depth,
            gpu: Gpu::read(words, depth, super::hosts::are_given(words))?,
            output: output(words, warnings)?,
            progress: progress(words),
            phases: phases(words),
            listed,
            verify: number(words, "verify", 0, u64::MAX)?.is_some_and(|salt| salt > 0),
            refills: refills(words)?,
            keep: !words.has("deldirs"),
            endless: words.has("infloop"),
            time: seconds(words, "timelimit")?,
            delay: seconds(words, "phasedelay")?,
            limits: [size(words, "limitwrite")?, size(words, "limitread")?],
            base: base(words, world)?,
        };
        settings.check(words)?;
        settings.check_sizes()?;
        Ok(settings)
    }

    fn has(&self, operation: Operation) -> bool {
        self.phases.iter().any(|(_, own)| *own == operation)
    }

    /// Whether objects are uploaded in parts.
    fn is_multipart(&self) -> bool {
        self.has(Operation::Put) && self.block_bytes < self.size_bytes
    }

    /// Whether reads ask for ranges.
    fn reads_ranges(&self) -> bool {
        self.block_bytes < self.size_bytes
    }

    /// Objects of all threads of all hosts.
    pub(crate) fn objects(&self) -> u64 {
        let threads = u64::from(self.threads).saturating_mul(self.hosts);
        threads.saturating_mul(self.dirs.max(1)).saturating_mul(self.files)
    }

    /// Directories and files, as result files show them.
    pub(crate) fn dirs_and_files(&self) -> (u64, u64) {
        (self.dirs, self.files)
    }

    fn check(&self, words: &Words) -> Result<(), Error> {
        let writes = self.has(Operation::Put);
        if words.has("mkdirs") && !writes {
            return TABLE.refuse(
                "-d/--mkdirs without -w: strata creates a bucket only for a write phase",
                "add -w, or create the bucket with another client",
            );
        }
        if words.has("deldirs") && !(words.has("mkdirs") && writes) {
            return TABLE.refuse(
                "-D/--deldirs would delete a bucket that this run did not create",
                "strata deletes only buckets created by the same run: add -d and -w, or use another client",
            );
        }
        if self.phases.is_empty() {
            return TABLE.refuse(
                "no phase is given",
                "give -w (write), --stat, --s3listobj N, -r (read) or -F (delete)",
            );
        }
        if self.endless && self.time.is_none() {
            return TABLE.refuse("--infloop never ends", "add --timelimit SECONDS");
        }
        if self.objects() > OBJECTS_MAX {
            return TABLE
                .refuse(format!("-t x -n x -N is more than {OBJECTS_MAX} objects"), "give smaller numbers");
        }
        let limited = [("limitwrite", Operation::Put, "-w"), ("limitread", Operation::Get, "-r")];
        match limited.iter().find(|(option, operation, _)| words.has(option) && !self.has(*operation)) {
            Some((option, _, without)) => {
                TABLE.refuse(format!("--{option} changes nothing without {without}"), "leave it out")
            }
            None => Ok(()),
        }
    }

    fn check_sizes(&self) -> Result<(), Error> {
        if !(self.has(Operation::Put) || self.has(Operation::Get)) {
            return match self.verify {
                true => {
                    TABLE.refuse("--verify requires a write or read phase", "add -w or -r, or leave it out")
                }
                false => Ok(()),
            };
        }
        if self.size_bytes == 0 {
            return TABLE.refuse("no -s/--size: the size of the objects is unknown", "give -s SIZE");
        }
        if self.is_multipart() && self.block_bytes < PART_BYTES_MIN {
            return TABLE.refuse(
                format!("-b {} makes parts smaller than the S3 minimum", ByteSize(self.block_bytes)),
                format!("give -b 5m or more, or at least the object size of {}", ByteSize(self.size_bytes)),
            );
        }
        if self.has(Operation::Get) && self.reads_ranges() {
            if !self.size_bytes.is_multiple_of(self.block_bytes) {
                return TABLE.refuse(
                    format!("-s {} is not a whole number of blocks (-b)", ByteSize(self.size_bytes)),
                    "give a -b that divides -s, or at least -s to read whole objects",
                );
            }
            if self.verify {
                return TABLE.refuse(
                    "--verify checks whole objects, but this -b reads ranges of objects",
                    "give -b of at least -s",
                );
            }
        }
        Ok(())
    }

    /// The steps of the table and the spec of each.
    ///
    /// # Errors
    /// Rates that cannot be.
    pub(crate) fn build(&self) -> Result<(Vec<Step>, Vec<Spec>), Error> {
        let (mut steps, mut specs) = (Vec::new(), Vec::new());
        for iteration in 0..self.iterations {
            for (name, operation) in &self.phases {
                let spec = self.spec(name, *operation)?;
                specs.push(Spec { start_delay: self.delay.filter(|_| !specs.is_empty()), ..spec });
                steps.push(Step { iteration, operation: (*name).to_owned() });
            }
        }
        Ok((steps, specs))
    }

    fn spec(&self, name: &str, operation: Operation) -> Result<Spec, Error> {
        let is_ranged = operation == Operation::Get && self.reads_ranges();
        let blocks = if is_ranged { self.size_bytes / self.block_bytes } else { 1 };
        let bytes = if is_ranged { self.block_bytes } else { self.size_bytes };
        let limit = match operation {
            Operation::Put => self.limits[0],
            Operation::Get => self.limits[1],
            _ => None,
        };
        let rate = limit.map(|limit| Rate::new(limit as f64 * f64::from(self.threads) / bytes as f64));
        let rate = rate.transpose().map_err(|error| usage(&error))?;
        let is_list = operation == Operation::List;
        let is_put = operation == Operation::Put;
        let moves = is_put || operation == Operation::Get;
        // Objects go away once: a phase that deletes is one pass whatever the limits.
        let passes = self.endless && operation != Operation::Remove;
        let total = self.objects().saturating_mul(blocks);
        let done = if is_ranged { "read" } else { operation.name() };
        let mut spec = Spec {
            name: Some(name.to_owned()),
            threads: Some(if is_list { 1 } else { self.threads }),
            depth: Some(self.depth),
            time: self.time,
            count: (self.time.is_some() && !passes && !is_list).then_some(total),
            rate,
            refill: (is_put && !self.verify && self.refills).then_some(Refill::Full),
            verify: moves && self.verify,
            keep: self.keep,
            // Nothing is put: what there is shall go.
            destroy_data: operation == Operation::Remove && !self.has(Operation::Put),
            ..self.base.clone()
        };
        let own = [
            said("op", done),
            said("dkeys", if is_list { self.listed } else { self.objects() }),
            said("dkey-prefix", self.names()),
            said_if("list-max", is_list.then_some(self.listed.min(LIST_MAX))),
            said_if("value-size", (self.size_bytes > 0).then_some(self.size_bytes)),
            said_if("read-size", is_ranged.then_some(self.block_bytes)),
            switch("no-fill", !is_put),
            switch("one-pass", self.time.is_none()),
            said_if("s3-part-size", self.is_multipart().then_some(self.block_bytes)),
        ];
        let memory = self.gpu.iter().filter(|_| moves).flat_map(Gpu::said);
        say(&mut spec, own.into_iter().chain(memory)).map_err(|error| usage(&error))?;
        Ok(spec)
    }

    /// How elbencho names the objects of its threads.
    fn names(&self) -> String {
        let files = self.files;
        match self.dirs {
            0 => format!("r{{{files}}}-f{{%{files}}}"),
            dirs => {
                let each = dirs.saturating_mul(files);
                format!("r{{{each}}}/d{{{files}%{dirs}}}/r{{{each}}}-f{{%{files}}}")
            }
        }
    }
}

/// The phases in the order of the tool.
fn phases(words: &Words) -> Vec<(&'static str, Operation)> {
    let all = [
        ("write", "WRITE", Operation::Put),
        ("stat", "HEADOBJ", Operation::Stat),
        ("s3listobj", "LISTOBJ", Operation::List),
        ("read", "READ", Operation::Get),
        ("delfiles", "RMOBJECTS", Operation::Remove),
    ];
    let given = all.into_iter().filter(|(option, ..)| words.has(option));
    given.map(|(_, name, operation)| (name, operation)).collect()
}

/// Fields that all phases have in common: the bucket, its servers and keys.
fn base(words: &Words, world: &dyn World) -> Result<Spec, Error> {
    let cores = cores(words, world)?;
    let sign = number(words, "s3sign", 0, 2)?.unwrap_or(0);
    let is_fast = words.has("s3fastput") || sign == 2;
    let region = words.value("s3region").map(str::to_owned);
    let region = region.or_else(|| variable(world, &["AWS_REGION", "AWS_DEFAULT_REGION"]));
    let mut base = Spec {
        targets: vec![bucket(words)?],
        warmup: Some(Warmup::None),
        on_error: Some(if words.has("s3ignoreerrors") { OnError::Continue } else { OnError::Stop }),
        cores,
        numa: indexes(words, "zones")?,
        ..Spec::of_layer("object").map_err(|error| usage(&error))?
    };
    let own = [
        said_if("s3-region", region),
        said_if("s3-addressing", words.has("s3virtaddr").then_some("virtual-host")),
        said_if("s3-signing", is_fast.then_some("headers")),
    ];
    let endpoints = endpoints(words, world)?.into_iter().map(|endpoint| said("s3-endpoint", endpoint));
    say(&mut base, endpoints.chain(own)).map_err(|error| usage(&error))?;
    if let Some((access, secret)) = keys::key(words, world)? {
        apply_secret(&mut base, "s3-key", &format!("{access}\n{secret}")).map_err(|error| usage(&error))?;
    }
    Ok(base)
}

fn variable(world: &dyn World, names: &[&str]) -> Option<String> {
    names.iter().filter_map(|name| world.variable(name)).find(|value| !value.is_empty())
}

fn endpoints(words: &Words, world: &dyn World) -> Result<Vec<String>, Error> {
    let given = words.value("s3endpoints").map(str::to_owned);
    let list = given.or_else(|| variable(world, &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]));
    let Some(list) = list else {
        return TABLE.refuse("no S3 server is given", "give --s3endpoints http://HOST:PORT");
    };
    let mut all = Vec::new();
    for text in list.split([',', ' ']).filter(|text| !text.is_empty()) {
        if text.contains('@') {
            // What may be a password is shown to nobody.
            return TABLE.refuse(
                "--s3endpoints contains a user name",
                "give the keys with --s3key and --s3secret, or in the environment",
            );
        }
        let is_whole = text.starts_with("http://") || text.starts_with("https://");
        let text = if is_whole { text.to_owned() } else { format!("https://{text}") };
        if words.has("nopathexp") { all.push(text) } else { expand(&text, &mut all)? }
    }
    match all.is_empty() {
        true => TABLE
            .refuse("--s3endpoints names no server", "give http://HOST:PORT, several separated by commas"),
        false => Ok(all),
    }
}

/// The bucket, and what the names in it begin with.
fn bucket(words: &Words) -> Result<String, Error> {
    let all: Vec<&str> = words.values("path").chain(words.paths.iter().map(String::as_str)).collect();
    let [path] = all[..] else {
        return TABLE.refuse(
            format!("{} buckets are given, but only one can be measured", all.len()),
            "give one bucket",
        );
    };
    let name = path.strip_prefix("s3://").unwrap_or(path).trim_end_matches('/');
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if name.contains('/') {
        return TABLE.refuse(
            format!("{} names an object: strata does not measure individual objects", quoted(path)),
            "give a bucket, with -n and -N for its objects and --s3objprefix for their names",
        );
    }
    if name.is_empty() || !name.bytes().all(is_good) {
        return TABLE
            .refuse(format!("{} is not a bucket name", quoted(path)), "give a name such as s3://mybucket");
    }
    let prefix = words.value("s3objprefix").unwrap_or_default();
    if prefix.contains("%%%") {
        return TABLE.refuse(
            "--s3objprefix: %%% would produce different digits in each run",
            "give a fixed prefix that later runs can repeat",
        );
    }
    Ok(if prefix.is_empty() { format!("s3://{name}") } else { format!("s3://{name}/{prefix}") })
}
