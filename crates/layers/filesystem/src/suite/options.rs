//! Options of `strata suite io500`.

use serde::{Deserialize, Serialize};
use units::{ParseError, parse_u64_in};
use workload::options::value::some_text;
use workload::options::{Group, OptionDef, switch};

use super::settings::Mode;

/// Most ranks: each is a thread.
const RANKS_MAX: u64 = 65_536;

/// Options of the suite, as typed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SuiteSpec {
    /// Data directory, where the command line names it.
    pub(super) directory: Option<String>,
    pub(super) ini: Option<String>,
    pub(super) ranks: Option<u32>,
    pub(super) stonewall_s: Option<u64>,
    pub(super) mode: Option<Mode>,
    pub(super) results: Option<String>,
    pub(super) timestamp: Option<String>,
    pub(super) verbosity: Option<u64>,
    #[serde(skip)]
    pub(super) resume: Option<String>,
    #[serde(skip)]
    pub(super) dry_run: bool,
    #[serde(skip)]
    pub(super) list: bool,
    #[serde(skip)]
    pub(super) list_mandatory: bool,
    #[serde(skip)]
    pub(super) config_hash: bool,
    #[serde(skip)]
    pub(super) verify: Option<String>,
}

macro_rules! texts {
    ($name:literal, $value:literal, $default:literal, $help:literal, $field:ident) => {
        OptionDef {
            name: $name,
            short: None,
            value: $value,
            default: $default,
            help: $help,
            group: Group::Run,
            apply: |spec, text| {
                spec.$field = Some(some_text($name, text)?);
                Ok(())
            },
        }
    };
}

macro_rules! switches {
    ($name:literal, $help:literal, $field:ident) => {
        OptionDef {
            name: $name,
            short: None,
            value: "",
            default: "off",
            help: $help,
            group: Group::Run,
            apply: |spec, text| {
                spec.$field = switch($name, text)?;
                Ok(())
            },
        }
    };
}

/// All of them.
pub(super) static OWN: &[OptionDef<SuiteSpec>] = &[
    texts!("ini", "FILE", "IO500's defaults", "Configuration of IO500; see --list", ini),
    OptionDef {
        name: "ranks",
        short: None,
        value: "N",
        default: "1 if a launcher started several processes, otherwise one per CPU",
        help: "Ranks of IO500, each a thread of this process, or of each process of a launcher (mpiexec -n)",
        group: Group::Load,
        apply: |spec, text| {
            spec.ranks = Some(parse_u64_in("ranks", text, 1..=RANKS_MAX)? as u32);
            Ok(())
        },
    },
    OptionDef {
        name: "stonewall",
        short: None,
        value: "SECONDS",
        default: "from the configuration: 300",
        help: "Seconds of a write phase, and limit of the random reads; the score is INVALID if this differs from the rules",
        group: Group::Load,
        apply: |spec, text| {
            spec.stonewall_s = Some(parse_u64_in("stonewall", text, 1..=86_400)?);
            Ok(())
        },
    },
    OptionDef {
        name: "mode",
        short: None,
        value: "standard|extended",
        default: "standard",
        help: "extended adds find-easy and find-hard, and a score over them",
        group: Group::Workload,
        apply: |spec, text| {
            spec.mode = Some(match text {
                "standard" => Mode::Standard,
                "extended" => Mode::Extended,
                _ => return Err(ParseError::new("mode", text, "standard or extended")),
            });
            Ok(())
        },
    },
    texts!(
        "results",
        "DIR",
        "from the configuration: ./results/TIMESTAMP",
        "Directory of the result files, without a timestamp",
        results
    ),
    texts!(
        "timestamp",
        "TEXT",
        "the local time",
        "Suffix of the directories to which the configuration adds a timestamp",
        timestamp
    ),
    OptionDef {
        name: "verbosity",
        short: None,
        value: "0-10",
        default: "from the configuration: 1",
        help: "0 omits times from result.txt, 2 and above add details",
        group: Group::Output,
        apply: |spec, text| {
            spec.verbosity = Some(parse_u64_in("verbosity", text, 0..=10)?);
            Ok(())
        },
    },
    texts!("resume", "DIR", "none", "Resumes an interrupted run from its result directory", resume),
    switches!("dry-run", "Prints the command of each phase and runs none", dry_run),
    switches!("list", "Prints all keys of the configuration with their meaning and values", list),
    switches!("list-mandatory", "Same as --list, without the keys of the extended mode", list_mandatory),
    switches!("config-hash", "Prints IO500's hash of the configuration", config_hash),
    texts!(
        "verify",
        "FILE",
        "none",
        "Checks the hashes of a result.txt against the configuration and its own scores",
        verify
    ),
];
