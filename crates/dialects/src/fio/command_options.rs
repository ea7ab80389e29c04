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

const SERVICE: &str = "fio's server is not included; clients use strata service";
const START_SERVICE: &str = "strata service --listen ADDRESS:PORT --root DIR";
const TRIGGER: &str = "a run cannot be controlled from outside";
const SELF_TEST: &str = "strata as fio measures files and devices, not the machine's CPU";

const fn row(name: &'static str, takes: Takes, what: What) -> CommandOption {
    CommandOption { name, takes, what }
}

/// Every option of the program.
pub(crate) static COMMAND_OPTIONS: &[CommandOption] = &[
    row("output", Takes::Value, What::Does(Flag::Output, "file for the results")),
    row(
        "output-format",
        Takes::Value,
        What::Does(Flag::OutputFormat, "normal, terse, json, json+, or several separated by commas"),
    ),
    row("minimal", Takes::Flag, What::Does(Flag::Minimal, "terse output")),
    row("terse-version", Takes::Value, What::Does(Flag::TerseVersion, "3, 4 or 5")),
    row(
        "append-terse",
        Takes::Flag,
        What::Refused("fio removed this option", "--output-format=normal,terse"),
    ),
    row("section", Takes::Value, What::Does(Flag::Section, "runs only this job; can be repeated")),
    row("readonly", Takes::Flag, What::Does(Flag::ReadOnly, "rejects jobs that write or trim")),
    row("eta", Takes::Value, What::Does(Flag::Eta, "when progress is shown: always, never or auto")),
    row(
        "eta-interval",
        Takes::Value,
        What::Does(Flag::EtaInterval, "interval between progress updates, 250 ms or more"),
    ),
    row(
        "eta-newline",
        Takes::Value,
        What::Does(Flag::EtaNewline, "prints progress on a new line at this interval"),
    ),
    row(
        "status-interval",
        Takes::Value,
        What::Does(
            Flag::StatusInterval,
            "prints the results so far at this interval and on SIGUSR1; the final results cover the whole run",
        ),
    ),
    row(
        "parse-only",
        Takes::Flag,
        What::Does(Flag::ParseOnly, "checks the options and job files and runs nothing"),
    ),
    row("showcmd", Takes::Flag, What::Does(Flag::ShowCommand, "prints the jobs as a command line")),
    row("warnings-fatal", Takes::Flag, What::Does(Flag::WarningsFatal, "treats warnings as errors")),
    row("help", Takes::Flag, What::Does(Flag::Help, "prints this help")),
    row(
        "version",
        Takes::Flag,
        What::Does(Flag::Version, "prints the fio version whose options and output strata follows"),
    ),
    row("cmdhelp", Takes::Flag, What::Does(Flag::OptionHelp, "prints how each job option is handled")),
    row("enghelp", Takes::Flag, What::Does(Flag::EngineHelp, "prints the supported engines")),
    row("max-jobs", Takes::Value, What::Accepted("jobs are threads and need no shared memory")),
    row("alloc-size", Takes::Value, What::Accepted("jobs are threads and need no shared memory")),
    row(
        "bandwidth-log",
        Takes::Flag,
        What::Does(
            Flag::BandwidthLog,
            "agg-read_bw.log, agg-write_bw.log, ...: total bandwidth of all jobs per second",
        ),
    ),
    row("latency-log", Takes::Flag, What::Refused("fio removed this option", "write_lat_log")),
    row(
        "idle-prof",
        Takes::Value,
        What::Does(
            Flag::IdleProf,
            "system: idle time of all CPUs in percent, from the kernel; percpu and calibrate are rejected",
        ),
    ),
    row(
        "debug",
        Takes::Value,
        What::Does(
            Flag::Debug,
            "parse, job, random, or several separated by commas: options, jobs, the seed; others are rejected",
        ),
    ),
    row(
        "inflate-log",
        Takes::Value,
        What::Does(Flag::InflateLog, "prints a log written with log_store_compressed"),
    ),
    row("profile", Takes::Value, What::Refused("profiles are built into fio itself", "a job file")),
    row(
        "client",
        Takes::Value,
        What::Does(
            Flag::Client,
            "HOST[,PORT] of a `strata service` that runs the job files after this option, or a file with such a list",
        ),
    ),
    row("server", Takes::Flag, What::Refused(SERVICE, START_SERVICE)),
    row("server-internal", Takes::Value, What::Refused(SERVICE, START_SERVICE)),
    row("daemonize", Takes::Value, What::Refused(SERVICE, START_SERVICE)),
    row(
        "remote-config",
        Takes::Value,
        What::Refused(
            "clients cannot read job files on their host",
            "copy the file and give it after --client",
        ),
    ),
    row("cpuclock-test", Takes::Flag, What::Refused(SELF_TEST, "the clock drift in the record")),
    row("crctest", Takes::Flag, What::Refused(SELF_TEST, "verify=crc32c")),
    row("memcpytest", Takes::Flag, What::Refused(SELF_TEST, "strata media mem:")),
    row("trigger-file", Takes::Value, What::Refused(TRIGGER, "runtime")),
    row("trigger-timeout", Takes::Value, What::Refused(TRIGGER, "runtime")),
    row("trigger", Takes::Value, What::Refused(TRIGGER, "start the run from a script")),
    row("trigger-remote", Takes::Value, What::Refused(TRIGGER, "start the run from a script")),
    row("aux-path", Takes::Value, What::Does(Flag::AuxPath, "directory for the files of verify_state_save")),
    row(
        "merge-blktrace-only",
        Takes::Flag,
        What::Refused("strata does not read blktrace files", "one job for each load"),
    ),
];

/// The option of this name.
pub(crate) fn find(name: &str) -> Option<&'static CommandOption> {
    COMMAND_OPTIONS.iter().find(|option| option.name == name)
}

/// All names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    COMMAND_OPTIONS.iter().map(|option| option.name)
}
