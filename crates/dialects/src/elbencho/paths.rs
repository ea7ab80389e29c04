//! Paths of the command line: ranges in brackets, kinds, sizes.

use driver::Error;

use super::settings::{Order, Settings};
use super::table::TABLE;
use crate::words::quoted;
use crate::{PathFacts, World};

/// Most paths of a phase: a target's number has 16 bits.
const PATHS_MAX: usize = 65_535;

/// Kind of all paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    BlockDevice,
}

/// The paths, and how much of each is worked on.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    pub(crate) paths: Vec<String>,
    pub(crate) kind: Kind,
    /// Bytes of each path; whole blocks.
    pub(crate) size_bytes: u64,
    pub(crate) block_bytes: u64,
    /// Bytes of all random operations together; whole blocks for each thread.
    pub(crate) random_bytes: u64,
}

impl Dataset {
    /// Blocks of each path.
    pub(crate) fn blocks(&self) -> u64 {
        self.size_bytes / self.block_bytes
    }

    /// Bytes of all paths.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.size_bytes.saturating_mul(self.paths.len() as u64)
    }
}

/// The first pair of brackets with digits, commas and dashes between: what is before, within and after.
fn brackets(path: &str) -> Option<(&str, &str, &str)> {
    path.match_indices('[').find_map(|(at, _)| {
        let rest = &path[at + 1..];
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != ',' && letter != '-')?;
        (end > 0 && rest[end..].starts_with(']')).then(|| (&path[..at], &rest[..end], &rest[end + 1..]))
    })
}

/// Expands `file[1-4]` and `dev[1,3]`, as often as it occurs; numbers are as wide as the first of their range.
pub(super) fn expand(path: &str, out: &mut Vec<String>) -> Result<(), Error> {
    let full =
        || TABLE.error(format!("{} paths are too many", quoted(path)), format!("give at most {PATHS_MAX}"));
    let Some((before, list, after)) = brackets(path) else {
        out.push(path.to_owned());
        return if out.len() > PATHS_MAX { Err(full()) } else { Ok(()) };
    };
    let bad = || {
        TABLE.error(
            format!("the brackets in {} do not contain a list of numbers", quoted(path)),
            "give numbers and ranges such as [1-4] or [1,3], or --nopathexp",
        )
    };
    let parts: Vec<&str> = list.split(',').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Err(bad());
    }
    for part in parts {
        let Some((from, to)) = part.split_once('-') else {
            expand(&format!("{before}{part}{after}"), out)?;
            continue;
        };
        let (first, last): (u64, u64) = (from.parse().map_err(|_| bad())?, to.parse().map_err(|_| bad())?);
        let (low, high, width) = (first.min(last), first.max(last), from.len());
        if high - low >= PATHS_MAX as u64 {
            return Err(full());
        }
        for step in 0..=high - low {
            let number = if first <= last { low + step } else { high - step };
            expand(&format!("{before}{number:0width$}{after}"), out)?;
        }
    }
    Ok(())
}

/// Expands all paths.
fn expand_all(words: &[String], expands: bool) -> Result<Vec<String>, Error> {
    let mut paths = Vec::new();
    for word in words.iter().filter(|word| !word.trim().is_empty()) {
        let path = word.strip_prefix("file://").unwrap_or(word);
        if ["hdfs://"].iter().any(|prefix| path.starts_with(prefix)) {
            return TABLE.refuse(
                format!("{}: this version does not support HDFS", quoted(path)),
                "give files or block devices",
            );
        }
        if expands { expand(path, &mut paths)? } else { paths.push(path.to_owned()) }
    }
    if paths.is_empty() {
        return TABLE.refuse("no path", "give files or block devices");
    }
    let mut sorted: Vec<&String> = paths.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => TABLE.refuse(format!("{} is given twice", quoted(pair[0])), "give it once"),
        None => Ok(paths),
    }
}

fn kind_of(path: &str, facts: PathFacts, is_elsewhere: bool) -> Result<Kind, Error> {
    match facts {
        PathFacts::BlockDevice { .. } => Ok(Kind::BlockDevice),
        PathFacts::File { .. } | PathFacts::CharacterDevice => Ok(Kind::File),
        PathFacts::Missing if path.starts_with("/dev/") && is_elsewhere => Ok(Kind::BlockDevice),
        PathFacts::Missing if path.starts_with("/dev/") => TABLE.refuse(
            format!("{} does not exist, and no file is created in /dev", quoted(path)),
            "check its name",
        ),
        PathFacts::Missing => Ok(Kind::File),
        PathFacts::Directory | PathFacts::Other => TABLE.refuse(
            format!("{} is neither a file nor a block device", quoted(path)),
            "give files or block devices",
        ),
    }
}

/// The kind of all paths, and what is at each.
fn look(paths: &[String], is_elsewhere: bool, world: &dyn World) -> Result<(Kind, Vec<PathFacts>), Error> {
    let facts: Vec<PathFacts> = paths.iter().map(|path| world.look(path)).collect();
    let kind = kind_of(&paths[0], facts[0], is_elsewhere)?;
    for (path, facts) in paths.iter().zip(&facts) {
        if kind_of(path, *facts, is_elsewhere)? != kind {
            return TABLE.refuse(
                format!("{} and {} are not of the same type", quoted(&paths[0]), quoted(path)),
                "give only files or only block devices",
            );
        }
    }
    Ok((kind, facts))
}

fn size_of(facts: PathFacts) -> Option<u64> {
    match facts {
        PathFacts::File { size_bytes } | PathFacts::BlockDevice { size_bytes } => Some(size_bytes),
        _ => None,
    }
}

/// Checks that `-w` may write to a file that is there.
fn check_existing(settings: &Settings, path: &str, facts: PathFacts, size_bytes: u64) -> Result<(), Error> {
    let PathFacts::File { size_bytes: own } = facts else { return Ok(()) };
    if settings.delete {
        return TABLE.refuse(
            format!("-F/--delfiles: {} already exists", quoted(path)),
            "strata removes only files that the same run created: leave out -F, or remove the file first",
        );
    }
    if settings.write && settings.truncate && own > 0 {
        return TABLE.refuse(
            format!("--trunc would delete the data of {}", quoted(path)),
            "remove the file first, or leave out --trunc",
        );
    }
    if settings.write && settings.truncate_to_size && own != size_bytes {
        return TABLE.refuse(
            format!("--trunctosize would change the length of {} from {own} bytes", quoted(path)),
            "remove the file first, or leave out --trunctosize",
        );
    }
    Ok(())
}

fn check_size(settings: &Settings, path: &str, facts: PathFacts, size_bytes: u64) -> Result<(), Error> {
    let shown = quoted(path);
    match size_of(facts) {
        Some(own)
            if own < size_bytes && (!settings.write || matches!(facts, PathFacts::BlockDevice { .. })) =>
        {
            TABLE.refuse(
                format!("{shown} has {own} bytes, less than the size of {size_bytes}"),
                "give a smaller -s, or write the file first (-w)",
            )
        }
        _ => check_existing(settings, path, facts, size_bytes),
    }
}

/// Finds out what to work on.
///
/// # Errors
/// Paths that cannot be measured, together or at all.
pub(crate) fn dataset(
    words: &[String],
    expands: bool,
    settings: &Settings,
    world: &dyn World,
    warnings: &mut Vec<String>,
) -> Result<Dataset, Error> {
    let paths = expand_all(words, expands)?;
    let (kind, facts) = look(&paths, settings.is_elsewhere, world)?;
    if settings.delete && kind == Kind::BlockDevice {
        return TABLE.refuse("-F/--delfiles does not apply to block devices", "leave it out");
    }
    if let Some(at) = facts
        .iter()
        .position(|facts| *facts == PathFacts::Missing)
        .filter(|_| !settings.write && !settings.is_elsewhere)
    {
        return TABLE.refuse(format!("{} does not exist", quoted(&paths[at])), "write it first (-w -s SIZE)");
    }
    let whole = settings.size_bytes.or_else(|| size_of(facts[0]).filter(|&size| size > 0));
    // A device here says nothing of one of that name on a host.
    let whole =
        whole.filter(|_| settings.size_bytes.is_some() || !settings.is_elsewhere || kind == Kind::File);
    let Some(whole) = whole else {
        return TABLE.refuse(format!("the size of {} is unknown", quoted(&paths[0])), "give -s SIZE");
    };
    for (path, facts) in paths.iter().zip(&facts).filter(|_| !settings.is_elsewhere) {
        check_size(settings, path, *facts, whole)?;
    }
    let block_bytes = settings.block_bytes.min(whole);
    if block_bytes < settings.block_bytes {
        warnings.push(format!("the block size is reduced to the path size of {whole} bytes"));
    }
    let size_bytes = whole - whole % block_bytes;
    if size_bytes < whole {
        warnings.push(format!(
            "the last {} bytes of each path are not used: they are less than a block",
            whole - size_bytes
        ));
    }
    let mut dataset = Dataset { paths, kind, size_bytes, block_bytes, random_bytes: 0 };
    dataset.random_bytes = random_bytes(settings, &dataset, warnings)?;
    Ok(dataset)
}

fn random_bytes(settings: &Settings, dataset: &Dataset, warnings: &mut Vec<String>) -> Result<u64, Error> {
    let Order::Random { amount_bytes: Some(asked), .. } = settings.order else {
        return Ok(dataset.total_bytes());
    };
    let round = dataset.block_bytes.saturating_mul(u64::from(settings.threads));
    if asked < round {
        return TABLE.refuse(
            format!("--randamount {asked} is less than one block per thread"),
            format!("give at least {round}"),
        );
    }
    let amount = asked - asked % round;
    if amount < asked {
        warnings
            .push(format!("--randamount is reduced to {amount} bytes, a whole number of blocks per thread"));
    }
    Ok(amount)
}
