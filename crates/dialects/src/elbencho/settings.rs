//! Settings from the options, read and checked.

use std::path::PathBuf;

use driver::Error;
use units::{ByteSize, Span};

use super::gpu::{Gpu, is_direct};
use super::hosts;
use super::table::{TABLE, TOOL};
use crate::words::{Words, quoted};
use crate::{Progress, World};

/// In which order blocks are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Sequential,
    Backward,
    Strided,
    Random {
        /// Positions at any byte.
        unaligned: bool,
        /// Bytes of all threads, where given.
        amount_bytes: Option<u64>,
        /// Whether writes too are drawn with repeats.
        repeats: bool,
    },
}

/// Reads within the write phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    None,
    /// Percent of the operations.
    Percent(u64),
    /// So many of the threads.
    Threads(u32),
}

/// Options of the output: the results that are shown, and where.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) latency: bool,
    pub(crate) percentiles: bool,
    /// How many of 99.9, 99.99, ...
    pub(crate) nines: u32,
    pub(crate) histogram: bool,
    pub(crate) all_elapsed: bool,
    pub(crate) cpu: bool,
    pub(crate) base10: bool,
    pub(crate) operations: bool,
    pub(crate) csv: Option<PathBuf>,
    pub(crate) csv_labels: bool,
    pub(crate) json: Option<PathBuf>,
    pub(crate) table: Option<PathBuf>,
    pub(crate) label: String,
}

/// A command line.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) write: bool,
    pub(crate) read: bool,
    pub(crate) delete: bool,
    pub(crate) threads: u32,
    pub(crate) size_bytes: Option<u64>,
    pub(crate) block_bytes: u64,
    pub(crate) iterations: u32,
    pub(crate) depth: u32,
    pub(crate) mmap: bool,
    /// Buffers on GPUs.
    pub(crate) gpu: Option<Gpu>,
    pub(crate) direct: bool,
    pub(crate) order: Order,
    pub(crate) endless: bool,
    pub(crate) time: Option<Span>,
    pub(crate) mix: Mix,
    /// Salt of verification.
    pub(crate) salt: Option<u64>,
    pub(crate) verify_written: bool,
    /// Whether each written block is new.
    pub(crate) refills: bool,
    pub(crate) read_limit_bytes: Option<u64>,
    pub(crate) write_limit_bytes: Option<u64>,
    pub(crate) sync: bool,
    pub(crate) drop_cache: bool,
    pub(crate) delay: Option<Span>,
    pub(crate) cores: Option<Vec<u32>>,
    pub(crate) zones: Option<Vec<u32>>,
    pub(crate) truncate: bool,
    pub(crate) truncate_to_size: bool,
    pub(crate) preallocate: bool,
    /// Whether hosts carry it out, which may not have the paths of this machine.
    pub(crate) is_elsewhere: bool,
    pub(crate) dry_run: bool,
    pub(crate) progress: Progress,
    pub(crate) output: Output,
}

pub(super) fn number(words: &Words, long: &str, min: u64, max: u64) -> Result<Option<u64>, Error> {
    let Some(text) = words.value(long) else { return Ok(None) };
    units::parse_u64_in(long, text, min..=max)
        .map(Some)
        .map_err(|error| Error::usage(TOOL, error.to_string()))
}

/// A size; 0 is as good as none, as in the tool.
pub(super) fn size(words: &Words, long: &str) -> Result<Option<u64>, Error> {
    let Some(text) = words.value(long) else { return Ok(None) };
    let read: Result<ByteSize, _> = text.parse();
    let bytes =
        read.map_err(|error| Error::usage(TOOL, error.to_string()).with("option", format!("--{long}")))?.0;
    Ok((bytes > 0).then_some(bytes))
}

pub(super) fn seconds(words: &Words, long: &str) -> Result<Option<Span>, Error> {
    let seconds = number(words, long, 0, 1 << 32)?;
    Ok(seconds.filter(|&seconds| seconds > 0).map(|seconds| Span(seconds * 1_000_000_000)))
}

fn algorithm(words: &Words, long: &str) -> Result<bool, Error> {
    match words.value(long) {
        None => Ok(false),
        Some("fast" | "balanced" | "balanced_single" | "strong") => Ok(true),
        Some(text) => TABLE.refuse(
            format!("--{long} {} is not a generator", quoted(text)),
            "use one of fast, balanced, balanced_single, strong",
        ),
    }
}

/// `0,1`, `[0-3]`.
pub(super) fn indexes(words: &Words, long: &str) -> Result<Option<Vec<u32>>, Error> {
    let Some(text) = words.value(long) else { return Ok(None) };
    let list = text.replace(['[', ']'], "").replace(' ', ",");
    let read = units::parse_index_list(long, &list, 65_536);
    read.map(Some).map_err(|error| Error::usage(TOOL, error.to_string()))
}

/// Processors that threads are bound to in turn; none: any.
pub(super) fn cores(words: &Words, world: &dyn World) -> Result<Option<Vec<u32>>, Error> {
    match words.value("cores") {
        Some("all") => Ok(Some(world.processors())),
        _ => indexes(words, "cores"),
    }
}

impl Settings {
    /// Reads and checks what the options say.
    ///
    /// # Errors
    /// Values that cannot be, and options that contradict each other.
    pub(crate) fn read(words: &Words, world: &dyn World, warnings: &mut Vec<String>) -> Result<Self, Error> {
        check_repeats(words)?;
        let order = order(words, warnings)?;
        let cores = cores(words, world)?;
        algorithm(words, "blockvaralgo")?;
        let block_bytes = match words.value("block") {
            None => 1 << 20,
            Some(_) => size(words, "block")?.ok_or_else(|| {
                TABLE.error("-b/--block 0 moves nothing", "give a size above 0, such as 4k")
            })?,
        };
        let depth = number(words, "iodepth", 1, 65_536)?.unwrap_or(1) as u32;
        let is_elsewhere = hosts::are_given(words);
        let settings = Self {
            write: words.has("write"),
            read: words.has("read"),
            delete: words.has("delfiles"),
            threads: number(words, "threads", 1, 4096)?.unwrap_or(1) as u32,
            size_bytes: size(words, "size")?,
            block_bytes,
            iterations: number(words, "iterations", 1, 100_000)?.unwrap_or(1) as u32,
            depth,
            mmap: words.has("mmap"),
            gpu: Gpu::read(words, depth, is_elsewhere)?,
            direct: is_direct(words),
            order,
            endless: words.has("infloop"),
            time: seconds(words, "timelimit")?,
            mix: mix(words)?,
            salt: number(words, "verify", 0, u64::MAX)?.filter(|&salt| salt > 0),
            verify_written: words.has("verifydirect"),
            refills: refills(words)?,
            read_limit_bytes: size(words, "limitread")?,
            write_limit_bytes: size(words, "limitwrite")?,
            sync: words.has("sync"),
            drop_cache: words.has("dropcache"),
            delay: seconds(words, "phasedelay")?,
            cores,
            zones: indexes(words, "zones")?,
            truncate: words.has("trunc"),
            truncate_to_size: words.has("trunctosize"),
            preallocate: words.has("preallocfile"),
            is_elsewhere,
            dry_run: words.has("dryrun"),
            progress: progress(words),
            output: output(words, warnings)?,
        };
        settings.check_phases()?;
        settings.check_order()?;
        settings.check_verification()?;
        settings.warn(words, warnings);
        Ok(settings)
    }

    fn check_phases(&self) -> Result<(), Error> {
        if !self.write && !self.read {
            return match self.delete {
                true => TABLE.refuse(
                    "-F/--delfiles without -w deletes files that this run did not create",
                    "strata removes only files that the same run created: add -w, or use rm(1)",
                ),
                false => TABLE.refuse("no phase is given", "give -w (write), -r (read), or both"),
            };
        }
        if self.delete && !self.write {
            return TABLE.refuse(
                "-F/--delfiles without -w deletes files that this run did not create",
                "strata removes only files that the same run created: add -w, or use rm(1)",
            );
        }
        if self.mix != Mix::None && !self.write {
            return TABLE.refuse(
                "--rwmixpct and --rwmixthr require a write phase",
                "add -w (leave out -r to run only the mix)",
            );
        }
        if let Mix::Threads(readers) = self.mix
            && readers > self.threads
        {
            return TABLE.refuse(
                format!("--rwmixthr {readers} is more than the number of threads (-t {})", self.threads),
                format!("give at most {}", self.threads),
            );
        }
        if self.is_elsewhere && (self.truncate || self.truncate_to_size) {
            return TABLE.refuse(
                "--trunc and --trunctosize with --hosts: strata cannot check the files on the hosts",
                "leave the option out and remove the file first",
            );
        }
        if self.endless && self.time.is_none() {
            return TABLE.refuse("--infloop never ends", "add --timelimit SECONDS");
        }
        if self.sync && !self.drop_cache && self.write && self.time.is_some() {
            return TABLE.refuse(
                "--sync cannot end a phase that --timelimit ends",
                "add --dropcache, which writes data back, or leave out one of them",
            );
        }
        Ok(())
    }

    fn check_order(&self) -> Result<(), Error> {
        if self.mmap && self.depth > 1 {
            return TABLE.refuse(
                "--mmap runs one operation at a time",
                "leave out --iodepth, or give more threads (-t)",
            );
        }
        if self.mmap && self.direct {
            return TABLE.refuse("--direct has no effect with --mmap", "leave out one of them");
        }
        let is_strided = self.order == Order::Strided && self.threads > 1;
        if is_strided && self.endless {
            return TABLE
                .refuse("--strided with several threads visits each block only once", "leave out --infloop");
        }
        if is_strided && matches!(self.mix, Mix::Threads(_)) {
            return TABLE.refuse("--strided and --rwmixthr both assign blocks to threads", "use --rwmixpct");
        }
        if is_strided && self.salt.is_some() {
            return TABLE.refuse(
                "--strided with several threads cannot be verified",
                "leave out --verify, or give -t 1",
            );
        }
        Ok(())
    }

    fn check_verification(&self) -> Result<(), Error> {
        if self.verify_written && (self.salt.is_none() || !self.write) {
            return TABLE.refuse("--verifydirect requires --verify and -w", "add --verify SALT and -w");
        }
        if self.salt.is_none() {
            return Ok(());
        }
        if self.mix != Mix::None {
            return TABLE.refuse(
                "--verify cannot be combined with a mix of reads and writes",
                "write first, then read: -w -r",
            );
        }
        if self.write && matches!(self.order, Order::Random { .. }) {
            return TABLE.refuse(
                "--verify cannot be combined with random writes",
                "write in order first, then read with --rand",
            );
        }
        Ok(())
    }

    /// Tells of options that change nothing together with the others.
    fn warn(&self, words: &Words, warnings: &mut Vec<String>) {
        let mut idle = |is_idle: bool, option: &str, without: &str| {
            if is_idle && words.given.iter().any(|given| given.flag.long == option) {
                warnings.push(format!("--{option} changes nothing without {without}"));
            }
        };
        for option in ["trunc", "trunctosize", "preallocfile", "limitwrite", "blockvarpct"] {
            idle(!self.write, option, "-w");
        }
        idle(!self.read && !matches!(self.mix, Mix::Threads(_)), "limitread", "-r or --rwmixthr");
        let is_random = matches!(self.order, Order::Random { .. });
        for option in ["norandalign", "randamount", "randalgo"] {
            idle(!is_random, option, "--rand");
        }
        idle(!self.output.percentiles, "latpercent9s", "--latpercent");
        idle(!self.write && !self.drop_cache, "sync", "-w or --dropcache");
        idle(self.output.csv.is_none(), "nocsvlabels", "--csvfile");
        if self.sync && self.write && !self.drop_cache {
            warnings.push("--sync runs at the end of the write phase and counts in its time".to_owned());
        }
        if self.verify_written {
            warnings.push("--verifydirect reads the data back after the write phase".to_owned());
        }
    }
}

/// One value each, but for paths.
pub(super) fn check_repeats(words: &Words) -> Result<(), Error> {
    let valued = words.given.iter().filter(|given| given.value.is_some() && given.flag.long != "path");
    for given in valued {
        if words.count(given.flag.long) > 1 {
            return TABLE.refuse(format!("{} is given more than once", given.flag.typed()), "give it once");
        }
    }
    Ok(())
}

fn order(words: &Words, warnings: &mut Vec<String>) -> Result<Order, Error> {
    let kinds = ["rand", "backward", "strided"];
    let given: Vec<&str> = kinds.into_iter().filter(|kind| words.has(kind)).collect();
    let amount_bytes = size(words, "randamount")?;
    let repeats = algorithm(words, "randalgo")?;
    match given[..] {
        [] => Ok(Order::Sequential),
        ["backward"] => Ok(Order::Backward),
        ["strided"] => Ok(Order::Strided),
        ["rand"] => {
            let is_asked = words.has("norandalign");
            if is_asked && is_direct(words) {
                warnings.push("--norandalign is ignored: --direct requires aligned positions".to_owned());
            }
            Ok(Order::Random { unaligned: is_asked && !is_direct(words), amount_bytes, repeats })
        }
        [..] => TABLE.refuse(format!("--{} cannot be combined", given.join(" and --")), "give one of them"),
    }
}

fn mix(words: &Words) -> Result<Mix, Error> {
    let percent = number(words, "rwmixpct", 0, 100)?;
    let threads = number(words, "rwmixthr", 0, 4096)?;
    match (percent, threads) {
        (Some(_), Some(_)) => {
            TABLE.refuse("--rwmixpct and --rwmixthr cannot be combined", "give one of them")
        }
        (Some(percent), None) => Ok(Mix::Percent(percent)),
        (None, Some(threads)) => Ok(Mix::Threads(threads as u32)),
        (None, None) => Ok(Mix::None),
    }
}

pub(super) fn refills(words: &Words) -> Result<bool, Error> {
    match number(words, "blockvarpct", 0, 100)? {
        None | Some(100) => Ok(true),
        Some(0) => Ok(false),
        Some(percent) => TABLE.refuse(
            format!("--blockvarpct {percent}: strata refills a block completely or not at all"),
            "use 100 or 0, or `strata media --dedupe PERCENT`",
        ),
    }
}

pub(super) fn progress(words: &Words) -> Progress {
    if words.has("nolive") {
        Progress::Never
    } else if words.has("live1n") {
        Progress::Always
    } else {
        Progress::Auto
    }
}

pub(super) fn output(words: &Words, warnings: &mut Vec<String>) -> Result<Output, Error> {
    let path = |long: &str| words.value(long).map(PathBuf::from);
    let label = words.value("label").unwrap_or_default();
    if label.contains(['\n', '\r']) {
        warnings.push("line breaks in --label are replaced by blanks".to_owned());
    }
    Ok(Output {
        latency: words.has("lat"),
        percentiles: words.has("latpercent"),
        nines: number(words, "latpercent9s", 0, 8)?.unwrap_or(0) as u32,
        histogram: words.has("lathisto"),
        all_elapsed: words.has("allelapsed"),
        cpu: words.has("cpu"),
        base10: words.has("base10"),
        operations: number(words, "log", 0, 2)?.unwrap_or(0) > 0,
        csv: path("csvfile"),
        csv_labels: !words.has("nocsvlabels"),
        json: path("jsonfile"),
        table: path("resfile"),
        label: label.replace(['\n', '\r'], " "),
    })
}
