//! Options of a mount.

use std::path::PathBuf;
use std::time::Duration;

use driver::Error;
use units::Span;
use workload::option;
use workload::options::OptionDef;
use workload::options::value::{count, label, path, switch};
use workload::spec::choice;

/// Lifetime of attributes and of entries of files in the kernel, where data are cached and nothing else is said.
const LIFETIME: Span = Span(1_000_000_000);
/// Lifetime of entries of directories, likewise.
const DIRECTORY_LIFETIME: Span = Span(5_000_000_000);
/// Threads that serve requests, where nothing is said.
const THREADS: u32 = 16;

/// How far the kernel keeps what it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataCaching {
    /// Data, attributes and entries.
    #[default]
    On,
    /// Attributes and entries; each read and write goes to the store.
    Metadata,
    /// Nothing.
    Off,
}

/// Times for which the kernel keeps what it was given.
#[derive(Clone, Copy, Debug)]
pub struct Caching {
    /// Data that it keeps.
    pub data: DataCaching,
    /// Lifetime of attributes.
    pub attributes: Duration,
    /// Lifetime of entries of files.
    pub entry: Duration,
    /// Lifetime of entries of directories.
    pub directory_entry: Duration,
    /// Lifetime of the knowledge that there is no such entry.
    pub absent_entry: Duration,
    /// Writes stay in the kernel until they are flushed.
    pub writeback: bool,
}

/// Options of `strata mount`, as typed.
#[derive(Clone, Debug, Default)]
pub struct MountSpec {
    attributes: Option<Span>,
    entry: Option<Span>,
    directory_entry: Option<Span>,
    absent_entry: Option<Span>,
    data: Option<DataCaching>,
    writeback: bool,
    threads: Option<u32>,
    /// Nothing can be changed through the mount.
    pub read_only: bool,
    /// Other users may use it.
    pub allow_other: bool,
    /// Programs with the interception library are served by this process.
    pub intercept: bool,
    /// The command stays until the end of the mount.
    pub foreground: bool,
    /// The command ends when the mount stands.
    pub background: bool,
    /// It ends when standard input closes.
    pub until_stdin_closes: bool,
    /// Print the path of the interception library instead.
    pub print_intercept: bool,
    /// Container of the pool, where the URL names none.
    pub container: Option<String>,
    /// File with the secret of the engines.
    pub token_file: Option<PathBuf>,
    /// Make what is not there.
    pub create: bool,
}

macro_rules! own {
    ($name:literal, $value:literal, $default:literal, $group:ident, $help:literal, $field:ident, $parse:expr) => {
        option!($name, None, $value, $default, $group, $help, |spec, text| {
            spec.$field = Some($parse(text)?);
            Ok(())
        })
    };
}

macro_rules! own_switch {
    ($name:literal, $group:ident, $help:literal, $field:ident) => {
        option!($name, None, "", "off", $group, $help, |spec, text| {
            spec.$field = switch($name, text)?;
            Ok(())
        })
    };
}

/// Options of `strata mount`.
pub static MOUNT: &[OptionDef<MountSpec>] = &[
    own!(
        "data-caching",
        "on|off|metadata",
        "on",
        Data,
        "What the kernel caches: on: data, attributes and entries; off: nothing; metadata: attributes and entries",
        data,
        |text| {
            let choices =
                [("on", DataCaching::On), ("off", DataCaching::Off), ("metadata", DataCaching::Metadata)];
            choice("data-caching", text, &choices)
        }
    ),
    own!(
        "attr-timeout",
        "TIME",
        "1s; 0 with --data-caching off",
        Data,
        "How long the kernel caches attributes (dfuse-attr-time)",
        attributes,
        str::parse
    ),
    own!(
        "dentry-timeout",
        "TIME",
        "1s; 0 with --data-caching off",
        Data,
        "How long the kernel caches file entries (dfuse-dentry-time)",
        entry,
        str::parse
    ),
    own!(
        "dentry-dir-timeout",
        "TIME",
        "5s; 0 with --data-caching off",
        Data,
        "How long the kernel caches directory entries (dfuse-dentry-dir-time)",
        directory_entry,
        str::parse
    ),
    own!(
        "ndentry-timeout",
        "TIME",
        "0",
        Data,
        "How long the kernel caches missing entries (dfuse-ndentry-time)",
        absent_entry,
        str::parse
    ),
    own_switch!(
        "enable-wb-cache",
        Data,
        "Cache writes in the kernel until the file is flushed: only for files that no other client writes",
        writeback
    ),
    own_switch!("read-only", Run, "Reject all changes", read_only),
    own_switch!("allow-other", Run, "Allow other users, subject to owner and permissions", allow_other),
    own_switch!(
        "intercept",
        Run,
        "Serve programs with the interception library from this process, over a Unix socket",
        intercept
    ),
    own!("threads", "N", "16", Engine, "Threads that serve kernel requests", threads, |text| count(
        "threads", text, 1, 1024
    )),
    own!(
        "container",
        "LABEL",
        "dfs",
        Engine,
        "Container in the pool, if the URL names none",
        container,
        |text| label("container", text)
    ),
    own!(
        "token-file",
        "FILE",
        "none",
        Engine,
        "File with the secret shared with the engines: 16 to 4096 bytes, readable only by its owner",
        token_file,
        |text| path("token-file", text)
    ),
    own_switch!(
        "create",
        Engine,
        "Create the pool (dfs+vos: only), container and file system if missing",
        create
    ),
    own_switch!("foreground", Run, "Run until the mount ends (default)", foreground),
    own_switch!("background", Run, "Return once mounted, and serve the mount in the background", background),
    own_switch!(
        "until-stdin-closes",
        Run,
        "End when standard input closes, for example when the parent process ends",
        until_stdin_closes
    ),
    own_switch!(
        "print-intercept",
        Run,
        "Print the path of the interception library without mounting",
        print_intercept
    ),
];

impl MountSpec {
    /// Threads that serve requests.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or(THREADS) as usize
    }

    /// Times for which the kernel keeps what it was given.
    ///
    /// # Errors
    /// Options that contradict each other.
    pub fn caching(&self) -> Result<Caching, Error> {
        let data = self.data.unwrap_or_default();
        let named = [
            ("--attr-timeout", self.attributes),
            ("--dentry-timeout", self.entry),
            ("--dentry-dir-timeout", self.directory_entry),
            ("--ndentry-timeout", self.absent_entry),
        ];
        let kept = named.iter().find(|(_, time)| time.is_some_and(|time| time.ns() > 0));
        if let Some((name, _)) = kept.filter(|_| data == DataCaching::Off) {
            let message = format!("{name} above 0 conflicts with --data-caching off");
            return Err(Error::usage("mount", message).remedy("use --data-caching metadata"));
        }
        if self.writeback && data != DataCaching::On {
            return Err(Error::usage("mount", "--enable-wb-cache requires data caching in the kernel")
                .remedy("use --data-caching on"));
        }
        if self.writeback && self.read_only {
            return Err(Error::usage(
                "mount",
                "--enable-wb-cache caches writes, but --read-only rejects them",
            )
            .remedy("use one of them"));
        }
        if self.writeback && self.intercept {
            return Err(Error::usage(
                "mount",
                "--enable-wb-cache caches data that programs with --intercept cannot see",
            )
            .remedy("use one of them"));
        }
        let time = |given: Option<Span>, default: Span| {
            let default = if data == DataCaching::Off { Span(0) } else { default };
            Duration::from_nanos(given.unwrap_or(default).ns())
        };
        Ok(Caching {
            data,
            attributes: time(self.attributes, LIFETIME),
            entry: time(self.entry, LIFETIME),
            directory_entry: time(self.directory_entry, DIRECTORY_LIFETIME),
            absent_entry: time(self.absent_entry, Span(0)),
            writeback: self.writeback,
        })
    }
}
