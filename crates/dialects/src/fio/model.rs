//! Settings from a fio command line that are needed to show its results.

use std::path::PathBuf;

use crate::Pace;

/// A format of `--output-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Normal,
    /// `terse`, in one of the versions 3 to 5.
    Terse,
    Json,
    /// `json+`: with all latency bins.
    JsonPlus,
}

/// Where and how results are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    /// In the order given; `normal,json` shows both.
    pub(crate) formats: Vec<Format>,
    /// 3, 4 or 5.
    pub(crate) terse_version: u8,
    /// `--output`; none for standard output.
    pub(crate) path: Option<PathBuf>,
    /// `--eta-interval`, `--eta-newline`, `--status-interval`.
    pub(crate) pace: Pace,
    /// `--idle-prof=system`.
    pub(crate) idle: bool,
    /// `--debug`.
    pub(crate) debug: Vec<Topic>,
    /// `--bandwidth-log`.
    pub(crate) bandwidth_log: bool,
    /// Whether `--eta=never` or a format for programs silences the lines on standard error.
    pub(crate) quiet: bool,
}

/// Topic of `--debug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Options as they were read.
    Parse,
    /// Jobs as they run.
    Job,
    /// Seeds of random numbers.
    Random,
    /// Each operation, when all are done.
    Io,
}

impl Topic {
    pub(crate) const ALL: [Self; 4] = [Self::Parse, Self::Job, Self::Random, Self::Io];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Job => "job",
            Self::Random => "random",
            Self::Io => "io",
        }
    }
}

/// Directions of one job, as fio orders them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    Trim,
}

/// A log that `write_*_log` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) kind: LogKind,
    /// The prefix given, or the job's name.
    pub(crate) prefix: String,
}

/// Kind of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogKind {
    Bandwidth,
    Iops,
    /// `_lat.log`, `_slat.log` and `_clat.log`.
    Latency,
    /// `_clat_hist.log`.
    Histogram,
}

/// `unified_rw_reporting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unified {
    /// Each direction on its own.
    #[default]
    None,
    /// All directions as one, and none on its own.
    Mixed,
    /// Each on its own, and then all as one.
    Both,
}

/// Value of an interval in a line of an averaged log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogValue {
    #[default]
    Mean,
    Largest,
    /// The mean, and the largest in a column after it.
    Both,
}

/// One clone of a job, or all its clones where they are reported as a group and run as the threads of one phase.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    /// Name of the section.
    pub(crate) name: String,
    /// Group that it is reported in (`groupid`).
    pub(crate) group: usize,
    /// Number of the job among all of the run, from 1 (`jobs=` and `$jobnum` count clones).
    pub(crate) number: usize,
    /// Clones that this stands for.
    pub(crate) clones: u32,
    /// Whether its group is reported as one.
    pub(crate) group_reporting: bool,
    /// `request` of its phases: the place of its spec in the run.
    pub(crate) request: usize,
    /// `rw`, as typed.
    pub(crate) rw: String,
    pub(crate) directions: Vec<Direction>,
    /// Smallest and largest block in bytes.
    pub(crate) block_size_bytes: (u64, u64),
    /// `ioengine`, as typed or defaulted.
    pub(crate) engine: String,
    pub(crate) depth: u32,
    pub(crate) description: Option<String>,
    /// Options of the section, and of its clones, as typed, in order; what [global] gave is in [`Model::global_options`].
    pub(crate) options: Vec<(String, String)>,
    /// Percentiles to show, ascending, in percent.
    pub(crate) percentiles: Vec<f64>,
    /// `clat_percentiles` (the default), `slat_percentiles`, `lat_percentiles`.
    pub(crate) shows_completion_percentiles: bool,
    pub(crate) shows_submission_percentiles: bool,
    pub(crate) shows_total_percentiles: bool,
    /// False with `disable_lat`, `disable_clat` and `disable_slat`, or `gtod_reduce` for all three. Samples of rates are always shown:
    /// fio takes them too with `gtod_reduce` and `disable_bw_measurement`.
    pub(crate) shows_latency: bool,
    pub(crate) shows_completion: bool,
    pub(crate) shows_submission: bool,
    pub(crate) unified: Unified,
    /// `kb_base`: 1000 or 1024; `unit_base`: 8 for bytes, 1 for bits.
    pub(crate) kb_base: u32,
    pub(crate) unit_base: u32,
    /// `bwavgtime`, milliseconds.
    pub(crate) bandwidth_average_ms: u64,
    pub(crate) logs: Vec<Log>,
    /// `write_iolog`.
    pub(crate) operation_log: Option<PathBuf>,
    /// `log_avg_msec`; none: the intervals of the series.
    pub(crate) log_average_ms: Option<u64>,
    /// `log_offset`, `log_issue_time`, `log_prio` (with the value to show), `log_unix_epoch`, `log_window_value`.
    pub(crate) log_offset: bool,
    pub(crate) log_issue_time: bool,
    pub(crate) log_priority: Option<u16>,
    pub(crate) log_epoch: bool,
    pub(crate) log_value: LogValue,
    /// `verify_state_save`: the file of each clone.
    pub(crate) states: Vec<PathBuf>,
    /// Writes of a clone after which they are durable, where only those count (`verify_policy=fsynced`).
    pub(crate) synced_every: Option<u64>,
    /// Whether it stands in the results (`stats`).
    pub(crate) is_shown: bool,
    /// Whether logs are compressed.
    pub(crate) log_compressed: bool,
    /// Whether names of logs carry the job's number (`per_job_logs`).
    pub(crate) per_job_logs: bool,
    /// Ending of the names of its logs: the client that it ran on, where there are several.
    pub(crate) log_suffix: Option<String>,
}

/// Jobs of a client (`--client`), and how it is shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientModel {
    pub(crate) hostname: String,
    /// 0 for processes that were started for the run.
    pub(crate) port: u16,
    /// Its number among the hosts of the record.
    pub(crate) rank: usize,
    pub(crate) model: Model,
}

/// All that showing the results needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) jobs: Vec<Job>,
    /// Options of the [global] sections, as typed, in order.
    pub(crate) global_options: Vec<(String, String)>,
    pub(crate) output: Output,
    pub(crate) host_name: String,
    pub(crate) process_id: u32,
    /// Deviations from fio: in the JSON too.
    pub(crate) warnings: Vec<String>,
}
