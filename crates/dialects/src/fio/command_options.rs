//! The options of fio itself, which are not of a job.

use crate::fio::options::Takes;

/// Effect of an option on the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    Help,
    Version,
    OptionHelp,
    EngineHelp,
    Output,
    OutputFormat,
    Minimal,
    TerseVersion,
    Eta,
    Section,
    Client,
    ReadOnly,
    ParseOnly,
    ShowCommand,
    WarningsFatal,
    BandwidthLog,
    AuxPath,
    EtaInterval,
    EtaNewline,
    StatusInterval,
    IdleProf,
    Debug,
    InflateLog,
}

/// Treatment of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// Its effect, in words too.
    Does(Flag, &'static str),
    /// Why it changes nothing.
    Accepted(&'static str),
    /// Why it is refused, and the nearest that there is.
    Refused(&'static str, &'static str),
}

/// One option.
pub(crate) struct CommandOption {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) what: What,
}

const SERVICE: &str = "strata service is what clients reach";
const START_SERVICE: &str = "strata service --listen ADDRESS:PORT --root DIR";
const TRIGGER: &str = "a run is not steered from outside";
const SELF_TEST: &str = "a dialect measures files and devices, not itself";

const fn row(name: &'static str, takes: Takes, what: What) -> CommandOption {
    CommandOption { name, takes, what }
}

/// Every option of the program.
pub(crate) static COMMAND_OPTIONS: &[CommandOption] = &[
    row("output", Takes::Value, What::Does(Flag::Output, "file that the results go to")),
    row(
        "output-format",
        Takes::Value,
        What::Does(Flag::OutputFormat, "normal, terse, json, json+, or several with commas"),
    ),
    row("minimal", Takes::Flag, What::Does(Flag::Minimal, "terse output")),
    row("terse-version", Takes::Value, What::Does(Flag::TerseVersion, "3, 4 or 5")),
    row("append-terse", Takes::Flag, What::Refused("fio has withdrawn it", "--output-format=normal,terse")),
    row("section", Takes::Value, What::Does(Flag::Section, "the only jobs to run; may be given again")),
    row("readonly", Takes::Flag, What::Does(Flag::ReadOnly, "refuses jobs that write or trim")),
    row("eta", Takes::Value, What::Does(Flag::Eta, "when progress is shown: always, never or auto")),
    row(
        "eta-interval",
        Takes::Value,
        What::Does(Flag::EtaInterval, "time between two drawings of the progress, 250 ms or more"),
    ),
    row(
        "eta-newline",
        Takes::Value,
        What::Does(Flag::EtaNewline, "progress in lines that stay, one in each such time"),
    ),
    row(
        "status-interval",
        Takes::Value,
        What::Does(
            Flag::StatusInterval,
            "the results so far in each such time, and with SIGUSR1; the results at the end are all",
        ),
    ),
    row("parse-only", Takes::Flag, What::Does(Flag::ParseOnly, "reads all and runs nothing")),
    row("showcmd", Takes::Flag, What::Does(Flag::ShowCommand, "prints the jobs as a command line")),
    row("warnings-fatal", Takes::Flag, What::Does(Flag::WarningsFatal, "refuses what would be warned about")),
    row("help", Takes::Flag, What::Does(Flag::Help, "prints this")),
    row("version", Takes::Flag, What::Does(Flag::Version, "prints the version of fio that is spoken")),
    row("cmdhelp", Takes::Flag, What::Does(Flag::OptionHelp, "what becomes of the options of a job")),
    row("enghelp", Takes::Flag, What::Does(Flag::EngineHelp, "the engines")),
    row("max-jobs", Takes::Value, What::Accepted("memory is not shared by processes")),
    row("alloc-size", Takes::Value, What::Accepted("memory is not shared by processes")),
    row(
        "bandwidth-log",
        Takes::Flag,
        What::Does(
            Flag::BandwidthLog,
            "agg-read_bw.log and its like: bandwidth of all jobs together by second",
        ),
    ),
    row("latency-log", Takes::Flag, What::Refused("fio has withdrawn it", "write_lat_log")),
    row(
        "idle-prof",
        Takes::Value,
        What::Does(
            Flag::IdleProf,
            "system: the machine's idle time in percent, from the kernel's accounting; percpu and calibrate are refused",
        ),
    ),
    row(
        "debug",
        Takes::Value,
        What::Does(
            Flag::Debug,
            "parse, job, random, or several with commas: what was read, what runs, the seed; others are refused",
        ),
    ),
    row("inflate-log", Takes::Value, What::Does(Flag::InflateLog, "prints a log of log_store_compressed")),
    row("profile", Takes::Value, What::Refused("profiles are code of fio's", "a job file")),
    row(
        "client",
        Takes::Value,
        What::Does(
            Flag::Client,
            "a `strata service` that carries out the job files right behind it, HOST[,PORT]; or a file with a list of them",
        ),
    ),
    row("server", Takes::Flag, What::Refused(SERVICE, START_SERVICE)),
    row("server-internal", Takes::Value, What::Refused(SERVICE, START_SERVICE)),
    row("daemonize", Takes::Value, What::Refused(SERVICE, START_SERVICE)),
    row(
        "remote-config",
        Takes::Value,
        What::Refused("hosts read no job files of their own", "a copy of the file behind its --client"),
    ),
    row(
        "cpuclock-test",
        Takes::Flag,
        What::Refused(SELF_TEST, "a record, which says how steady the clock was"),
    ),
    row("crctest", Takes::Flag, What::Refused(SELF_TEST, "verify=crc32c")),
    row("memcpytest", Takes::Flag, What::Refused(SELF_TEST, "strata media mem:")),
    row("trigger-file", Takes::Value, What::Refused(TRIGGER, "runtime")),
    row("trigger-timeout", Takes::Value, What::Refused(TRIGGER, "runtime")),
    row("trigger", Takes::Value, What::Refused(TRIGGER, "a script around the run")),
    row("trigger-remote", Takes::Value, What::Refused(TRIGGER, "a script around the run")),
    row("aux-path", Takes::Value, What::Does(Flag::AuxPath, "directory of the files of verify_state_save")),
    row("merge-blktrace-only", Takes::Flag, What::Refused("traces are not read", "a job for each load")),
];

/// The option of this name.
pub(crate) fn find(name: &str) -> Option<&'static CommandOption> {
    COMMAND_OPTIONS.iter().find(|option| option.name == name)
}

/// All names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    COMMAND_OPTIONS.iter().map(|option| option.name)
}
