//! The settings of a run: the configuration and the options of the command, checked, with every default resolved.

use std::path::{Path, PathBuf};

use driver::Error;
use serde::{Deserialize, Serialize};
use units::{ByteSize, label_of, path_of};

use super::ini::Config;
use super::keys::SECTIONS;
use super::options::SuiteSpec;
use super::time;

/// Seconds of a write phase by the rules, and by those of the Student Cluster Competition.
const RULE_SECONDS: u64 = 300;
const STUDENT_SECONDS: u64 = 30;
/// Size of the random reads, in bytes.
pub(super) const RANDOM_BYTES: u64 = 4096;

/// Mode of the benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    #[default]
    Standard,
    Extended,
}

impl Mode {
    /// Name, as typed.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Extended => "extended",
        }
    }
}

/// Large transfers to files of the ranks' own.
#[derive(Clone, Debug)]
pub(super) struct IorEasy {
    pub(super) transfer_bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) is_private: bool,
    pub(super) unique_directories: bool,
}

/// A search.
#[derive(Clone, Debug, Default)]
pub(super) struct Find {
    /// Program that searches in place of strata, with what stands before it and its first arguments.
    pub(super) external: Option<External>,
    pub(super) threads: Option<u32>,
}

/// A program that searches.
#[derive(Clone, Debug)]
pub(super) struct External {
    pub(super) script: String,
    pub(super) before: String,
    pub(super) arguments: String,
}

/// All settings of a run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) mode: Mode,
    pub(super) ranks: u32,
    /// Processes of a launch that have them, each as many; 1: all are threads of this process.
    pub(super) processes: u32,
    pub(super) timestamp: String,
    /// Directory of the data.
    pub(super) data: String,
    /// Directory of the results.
    pub(super) results: PathBuf,
    pub(super) stonewall_s: u64,
    /// Seconds that the rules demand.
    pub(super) rule_s: u64,
    pub(super) verbosity: u64,
    pub(super) drop_caches: Option<String>,
    pub(super) pause: Option<PathBuf>,
    pub(super) easy: IorEasy,
    pub(super) segments: u64,
    pub(super) easy_items: u64,
    pub(super) hard_items: u64,
    pub(super) hard_per_directory: Option<u64>,
}

fn refused(section: &str, key: &str, value: &str, why: &str) -> Error {
    Error::usage("io500", format!("[{section}] {key} = {value}")).remedy(why.to_owned())
}

/// The absolute path, as a text that leads there whatever the process stands in.
fn absolute(path: &str) -> String {
    std::path::absolute(path_of(path)).map_or_else(|_| path.to_owned(), |path| label_of(path.as_os_str()))
}

impl Settings {
    /// The settings that a configuration and options make, for so many processes of a launch.
    ///
    /// # Errors
    /// Bad usage: a key that cannot be honoured, or values that do not go together, with what is accepted.
    pub(super) fn of(spec: &SuiteSpec, mut config: Config, processes: u32) -> Result<Self, Error> {
        if let Some(seconds) = spec.stonewall_s {
            config.put("debug", "stonewall-time", seconds.to_string());
        }
        if let Some(level) = spec.verbosity {
            config.put("global", "verbosity", level.to_string());
        }
        if let Some(directory) = &spec.directory {
            config.put("global", "datadir", directory);
        }
        if let Some(directory) = &spec.results {
            config.put("global", "resultdir", directory);
            config.put("global", "timestamp-resultdir", "FALSE");
        }
        check(&config)?;
        let mode = spec.mode.unwrap_or_default();
        if mode == Mode::Extended && config.is_on("mdworkbench", "run") {
            return Err(Error::usage(
                "io500",
                "the extended mode includes mdworkbench, which strata does not support",
            )
            .remedy(
                "set [mdworkbench] run = FALSE, which makes the extended score INVALID, or use --mode standard",
            ));
        }
        let timestamp = spec.timestamp.clone().unwrap_or_else(time::directory);
        let below = |key: &str, suffix: &str| {
            let directory = absolute(config.get("global", key).unwrap_or("."));
            if config.is_on("global", suffix) { format!("{directory}/{timestamp}") } else { directory }
        };
        let (data, results) =
            (below("datadir", "timestamp-datadir"), below("resultdir", "timestamp-resultdir"));
        let processors = || host::topology::current_affinity().map_or(1, |cores| cores.len().max(1) as u32);
        let of_process = || if processes > 1 { 1 } else { processors() };
        let global = |key: &str| config.get("global", key);
        Ok(Self {
            mode,
            ranks: spec.ranks.unwrap_or_else(of_process).saturating_mul(processes),
            processes,
            data,
            results: path_of(&results).into_owned(),
            stonewall_s: config.number("debug", "stonewall-time").unwrap_or(RULE_SECONDS),
            rule_s: if config.is_on("global", "scc") { STUDENT_SECONDS } else { RULE_SECONDS },
            verbosity: config.number("global", "verbosity").unwrap_or(1),
            drop_caches: config
                .is_on("global", "drop-caches")
                .then(|| global("drop-caches-cmd").unwrap_or_default().to_owned()),
            pause: config.get("debug", "pause-dir").map(|path| path_of(path).into_owned()),
            easy: easy(&config)?,
            segments: positive(&config, "ior-hard", "segmentCount")?,
            easy_items: positive(&config, "mdtest-easy", "n")?,
            hard_items: positive(&config, "mdtest-hard", "n")?,
            hard_per_directory: config.number("mdtest-hard", "files-per-dir").filter(|&files| files > 0),
            timestamp,
            config,
        })
    }

    /// Whether a phase runs: its own key says so, and that of its group.
    pub(super) fn runs(&self, phase: &str) -> bool {
        let has_key =
            |section: &str| SECTIONS.iter().any(|known| known.name == section && !known.keys.is_empty());
        let group = ["ior-easy", "ior-hard", "mdtest-easy", "mdtest-hard"]
            .into_iter()
            .find(|group| phase.starts_with(group))
            .or_else(|| (phase == "ior-rnd4K-easy-read").then_some("ior-easy"));
        group
            .into_iter()
            .chain([phase])
            .filter(|name| has_key(name))
            .all(|name| self.config.is_on(name, "run"))
    }

    /// Whether the transfers of a phase go past the page cache.
    pub(super) fn is_direct(&self, phase: &str) -> bool {
        let own = self.config.get(phase, "API");
        own.or_else(|| self.config.get("ior-easy", "API")).is_some_and(|api| api.contains(DIRECT))
    }

    /// How a search is done.
    ///
    /// # Errors
    /// A script that is not there, or not executable.
    pub(super) fn find(&self, section: &str) -> Result<Find, Error> {
        let get = |key: &str| self.config.get(section, key).unwrap_or_default().to_owned();
        let threads = self.config.number(section, "nproc").map(|count| count.min(u64::from(u32::MAX)) as u32);
        if threads.is_some_and(|count| count == 0 || count > self.ranks) {
            let value = threads.unwrap_or_default().to_string();
            let why = format!("use 1 to {}, the number of ranks", self.ranks);
            return Err(refused(section, "nproc", &value, &why));
        }
        if let Some(count) =
            threads.filter(|count| *count > self.processes && !count.is_multiple_of(self.processes))
        {
            let why =
                format!("use fewer than {0}, or a multiple of {0}: so many processes search", self.processes);
            return Err(refused(section, "nproc", &count.to_string(), &why));
        }
        let external = match self.config.get(section, "external-script") {
            None => None,
            Some(script) => {
                check_script(section, script)?;
                Some(External {
                    script: script.to_owned(),
                    before: get("external-mpi-args"),
                    arguments: get("external-extra-args"),
                })
            }
        };
        Ok(Find { external, threads })
    }
}

/// Argument of the API by which files are opened past the page cache.
const DIRECT: &str = "--posix.odirect";

/// Keys that take one value alone, or some.
fn check(config: &Config) -> Result<(), Error> {
    let only = |section: &str, key: &str, accepted: &[&str], why: &str| match config.get(section, key) {
        Some(value) if !accepted.contains(&value) => Err(refused(section, key, value, why)),
        _ => Ok(()),
    };
    let posix = "strata's ranks use POSIX: use POSIX";
    only("global", "api", &["POSIX"], posix)?;
    only("global", "io-buffers-on-gpu", &["FALSE"], "buffers are in host memory: use FALSE")?;
    let packets = ["timestamp", "incompressible", "random"];
    only(
        "global",
        "dataPacketType",
        &packets,
        "use timestamp, incompressible or random: blocks are random and identify their owner",
    )?;
    if config.number("global", "verbosity").is_some_and(|level| level > 10) {
        let value = config.get("global", "verbosity").unwrap_or_default();
        return Err(refused("global", "verbosity", value, "use 0 to 10"));
    }
    if config.number("debug", "stonewall-time").is_some_and(|seconds| seconds == 0 || seconds > 86_400) {
        let value = config.get("debug", "stonewall-time").unwrap_or_default();
        return Err(refused("debug", "stonewall-time", value, "use 1 to 86400 seconds"));
    }
    let direct = format!("POSIX {DIRECT}");
    for section in SECTIONS {
        let has = |key: &str| section.keys.iter().any(|known| known.name == key);
        let name = section.name;
        if has("API") && (name.starts_with("ior-easy") || name == "ior-rnd4K-easy-read") {
            only(
                name,
                "API",
                &["POSIX", &direct],
                &format!("strata's ranks use POSIX: use POSIX or {direct}"),
            )?;
        } else if has("API") {
            only(name, "API", &["POSIX"], posix)?;
        }
        if has("collective") {
            only(name, "collective", &["FALSE"], "POSIX has no collective calls: use FALSE")?;
        }
        if has("verbosity") && name != "global" {
            only(
                name,
                "verbosity",
                &["0"],
                "the output of a phase has one form: use 0, or [global] verbosity",
            )?;
        }
        if has("pfind-queue-length") {
            let own = "this is a setting of pfind; strata's find uses one queue of directories: omit it";
            only(name, "pfind-queue-length", &["10000"], own)?;
            only(name, "pfind-steal-next", &["FALSE"], own)?;
            only(name, "pfind-parallelize-single-dir-access-using-hashing", &["FALSE"], own)?;
        }
    }
    Ok(())
}

fn positive(config: &Config, section: &str, key: &str) -> Result<u64, Error> {
    match config.number(section, key) {
        Some(number) if number > 0 => Ok(number),
        _ => Err(refused(section, key, config.get(section, key).unwrap_or_default(), "use 1 or more")),
    }
}

fn easy(config: &Config) -> Result<IorEasy, Error> {
    let size = |key: &str| {
        let text = config.get("ior-easy", key).unwrap_or_default();
        let size = text.parse::<ByteSize>().ok().filter(|size| size.0 > 0);
        size.map(|size| size.0).ok_or_else(|| refused("ior-easy", key, text, "use a size such as 2m"))
    };
    let easy = IorEasy {
        transfer_bytes: size("transferSize")?,
        block_bytes: size("blockSize")?,
        is_private: config.is_on("ior-easy", "filePerProc"),
        unique_directories: config.is_on("ior-easy", "uniqueDir"),
    };
    let text = config.get("ior-easy", "blockSize").unwrap_or_default();
    if !easy.block_bytes.is_multiple_of(easy.transfer_bytes) {
        return Err(refused("ior-easy", "blockSize", text, "use a multiple of transferSize"));
    }
    if !easy.block_bytes.is_multiple_of(RANDOM_BYTES) || !easy.transfer_bytes.is_multiple_of(RANDOM_BYTES) {
        return Err(refused(
            "ior-easy",
            "transferSize",
            config.get("ior-easy", "transferSize").unwrap_or_default(),
            "use multiples of 4096 for it and for blockSize: ior-rnd4K-easy-read reads blocks of 4096 bytes",
        ));
    }
    if easy.unique_directories && !easy.is_private {
        return Err(refused("ior-easy", "uniqueDir", "TRUE", "set filePerProc = TRUE too, or omit it"));
    }
    Ok(easy)
}

/// Refuses a script that cannot be run.
fn check_script(section: &str, script: &str) -> Result<(), Error> {
    let why = "use the path of an executable file";
    let path = path_of(script);
    let is_file = Path::new(&*path).is_file();
    if !is_file || rustix::fs::access(&*path, rustix::fs::Access::EXEC_OK).is_err() {
        let reason = if is_file { "is not executable" } else { "is not a file" };
        return Err(refused(section, "external-script", script, why).with("reason", reason));
    }
    Ok(())
}
