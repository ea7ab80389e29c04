//! Options that belong to the command and not to a load: the same kind of table as the load's.

use std::path::PathBuf;

use live::{CsvTarget, LiveMode};
use units::{ByteSize, ParseError};
use workload::options::{Group, OptionDef, path, switch};

/// Options of the output of a run: files, forms and places.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputSpec {
    pub(crate) json: Option<String>,
    pub(crate) csv: Option<String>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) live: LiveMode,
    pub(crate) live_csv: Option<CsvTarget>,
}

/// Options of `strata stack`: its directory, device and load.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackSpec {
    pub(crate) dir: Option<PathBuf>,
    pub(crate) device: Option<String>,
    pub(crate) quick: bool,
    pub(crate) size: Option<ByteSize>,
    pub(crate) destroy_data: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) engine: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
}

/// Options of every command that measures.
pub(crate) static OUTPUT: &[OptionDef<OutputSpec>] = &[
    OptionDef {
        name: "json",
        short: None,
        value: "FILE",
        default: "none",
        help: "Write the record as JSON, after every phase; - for standard output",
        group: Group::Output,
        apply: |spec, text| {
            path("json", text)?;
            spec.json = Some(text.to_owned());
            Ok(())
        },
    },
    OptionDef {
        name: "csv",
        short: None,
        value: "FILE",
        default: "none",
        help: "Write one row a phase and class, with percentiles; - for standard output",
        group: Group::Output,
        apply: |spec, text| {
            path("csv", text)?;
            spec.csv = Some(text.to_owned());
            Ok(())
        },
    },
    OptionDef {
        name: "out",
        short: Some('o'),
        value: "DIR",
        default: "none",
        help: "Write record.json, table.csv and report.txt into this directory",
        group: Group::Output,
        apply: |spec, text| {
            spec.out = Some(path("out", text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "live",
        short: None,
        value: "auto|line|full|none",
        default: "auto: a progress line on a terminal, plain lines elsewhere",
        help: "What is shown while it runs, on standard error",
        group: Group::Output,
        apply: |spec, text| {
            spec.live = text.parse()?;
            Ok(())
        },
    },
    OptionDef {
        name: "live-csv",
        short: None,
        value: "FILE",
        default: "none",
        help: "Write one row an interval and class while it runs; - for standard output",
        group: Group::Output,
        apply: |spec, text| {
            spec.live_csv = Some(text.parse()?);
            Ok(())
        },
    },
];

/// Options of `strata stack`.
pub(crate) static STACK: &[OptionDef<StackSpec>] = &[
    OptionDef {
        name: "dir",
        short: None,
        value: "DIR",
        default: "the current directory",
        help: "Where the scratch file is made, and so which drive and file system are measured",
        group: Group::Run,
        apply: |spec, text| {
            spec.dir = Some(path("dir", text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "device",
        short: None,
        value: "DEVICE",
        default: "none: the drive under --dir, through its file system",
        help: "Measure the media layer on this block device; writes destroy what is on it",
        group: Group::Run,
        apply: |spec, text| {
            path("device", text)?;
            spec.device = Some(text.to_owned());
            Ok(())
        },
    },
    OptionDef {
        name: "engine",
        short: None,
        value: "ENGINE",
        default: "one over loopback, started here",
        help: "Measure the network to this engine: HOST[:PORT] of its control, or tcp://HOST:PORT",
        group: Group::Run,
        apply: |spec, text| {
            path("engine", text)?;
            spec.engine = Some(text.to_owned());
            Ok(())
        },
    },
    OptionDef {
        name: "token-file",
        short: None,
        value: "FILE",
        default: "none",
        help: "File with the secret that an --engine beyond loopback demands",
        group: Group::Run,
        apply: |spec, text| {
            spec.token_file = Some(path("token-file", text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "quick",
        short: None,
        value: "",
        default: "off: about a minute",
        help: "Take about 10 s, with wider confidence intervals",
        group: Group::Run,
        apply: |spec, text| {
            spec.quick = switch("quick", text)?;
            Ok(())
        },
    },
    OptionDef {
        name: "size",
        short: Some('s'),
        value: "SIZE",
        default: "1g, 256m with --quick",
        help: "Size of the scratch file",
        group: Group::Workload,
        apply: |spec, text| {
            let size: ByteSize = text.parse()?;
            if size.0 < 64 << 20 {
                return Err(ParseError::new("a size of the scratch file", text, "64m or more"));
            }
            spec.size = Some(size);
            Ok(())
        },
    },
    OptionDef {
        name: "destroy-data",
        short: None,
        value: "",
        default: "off",
        help: "Allow writes to a --device that carries data",
        group: Group::Run,
        apply: |spec, text| {
            spec.destroy_data = switch("destroy-data", text)?;
            Ok(())
        },
    },
    OptionDef {
        name: "seed",
        short: None,
        value: "N",
        default: "drawn, and in the record",
        help: "The same seed gives the same operations and data",
        group: Group::Run,
        apply: |spec, text| {
            spec.seed = Some(units::parse_u64_in("seed", text, 0..=u64::MAX)?);
            Ok(())
        },
    },
];
