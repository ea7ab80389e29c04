//! Options that belong to the command and not to a load: the same kind of table as the load's.

use report::stack::Detail;
use std::path::PathBuf;

use live::{CsvTarget, LiveMode};
use units::{ByteSize, ParseError};
use workload::options::value::some_text;
use workload::options::{Group, HOSTS, OptionDef, path, switch};
use workload::spec::Spec;

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
    pub(crate) stack_object: Option<String>,
    pub(crate) stack_object_options: Vec<(String, String)>,
    pub(crate) app: Option<String>,
    pub(crate) app_settings: Vec<(String, String)>,
    pub(crate) app_options: Vec<(String, String)>,
    pub(crate) gpu: Option<String>,
    pub(crate) passes: Option<u32>,
    pub(crate) full: bool,
    pub(crate) warnings: bool,
    pub(crate) try_remedy: bool,
    /// Options of hosts ([`stack_hosts`]) as those of a load.
    pub(crate) hosts: Spec,
}

impl StackSpec {
    /// How much is shown at the end.
    pub(crate) fn detail(&self) -> Detail {
        match (self.full, self.warnings) {
            (true, _) => Detail::Full,
            (false, true) => Detail::Warnings,
            (false, false) => Detail::Screen,
        }
    }
}

/// Options of every command that measures.
pub(crate) static OUTPUT: &[OptionDef<OutputSpec>] = &[
    OptionDef {
        name: "json",
        short: None,
        value: "FILE",
        default: "none",
        help: "Write the record as JSON, during the run and at its end; - for standard output",
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
        help: "Write one row per phase and class, with percentiles; - for standard output",
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
        help: "What to show during the run, on standard error",
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
        help: "Write one row per interval and class during the run; - for standard output",
        group: Group::Output,
        apply: |spec, text| {
            spec.live_csv = Some(text.parse()?);
            Ok(())
        },
    },
];

/// Reads `NAME=VALUE,NAME=VALUE`.
fn pairs(text: &str) -> Result<Vec<(String, String)>, ParseError> {
    let pair = |option: &str| match option.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(ParseError::new("an option", option, "NAME=VALUE")),
    };
    text.split(',').map(pair).collect()
}

/// Options of hosts that `strata stack` takes, as loads have them. Its token is that of engines, too.
const STACK_HOSTS: [&str; 5] = ["hosts", "hosts-used", "host-targets", "fingerprint", "tls"];

/// Their entries in the table of hosts.
pub(crate) fn stack_hosts() -> impl Iterator<Item = &'static OptionDef> {
    HOSTS.iter().filter(|option| STACK_HOSTS.contains(&option.name))
}

/// Options of `strata stack`.
pub(crate) static STACK: &[OptionDef<StackSpec>] = &[
    OptionDef {
        name: "dir",
        short: None,
        value: "DIR",
        default: "the current directory",
        help: "Directory of the scratch file: selects the drive and file system to measure",
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
        help: "Measure the media layer on this block device; writes destroy its data",
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
        default: "one over loopback, started by this run",
        help: "Measure the network to this engine: HOST[:PORT] of its control port, or tcp://HOST:PORT",
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
        help: "File with the secret; required by hosts and an --engine that are not on loopback",
        group: Group::Run,
        apply: |spec, text| {
            spec.token_file = Some(path("token-file", text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "stack-object",
        short: None,
        value: "URL",
        default: "the embedded store behind an engine that this run starts",
        help: "Measure this object store instead of the row engine: engine://, s3://, rados:// or daos://",
        group: Group::Run,
        apply: |spec, text| {
            let schemes = ["engine://", "s3://", "rados://", "daos://"];
            if !schemes.iter().any(|scheme| text.starts_with(scheme)) {
                return Err(ParseError::new(
                    "an object store",
                    text,
                    "engine://..., s3://..., rados://... or daos://...",
                ));
            }
            spec.stack_object = Some(text.to_owned());
            Ok(())
        },
    },
    OptionDef {
        name: "stack-object-options",
        short: None,
        value: "NAME=VALUE[,...]",
        default: "none",
        help: "Options of the load on --stack-object, as for `strata object`: s3-endpoint=http://host:9000",
        group: Group::Run,
        apply: |spec, text| {
            spec.stack_object_options.extend(pairs(text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "app",
        short: None,
        value: "NAME",
        default: "none",
        help: "Add rows for this application (a name of strata app list, or the path of a description) above its layers",
        group: Group::Run,
        apply: |spec, text| {
            spec.app = Some(some_text("app", text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "app-set",
        short: None,
        value: "NAME=VALUE[,...]",
        default: "as its description sets for a stack",
        help: "Values of parameters of --app (strata app show NAME lists them)",
        group: Group::Workload,
        apply: |spec, text| {
            spec.app_settings.extend(pairs(text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "app-options",
        short: None,
        value: "NAME=VALUE[,...]",
        default: "none",
        help: "Options of the targets of --app, as for `strata app --target-options`; each applies to the rows that support it: direct=true, durability=batch",
        group: Group::Run,
        apply: |spec, text| {
            spec.app_options.extend(pairs(text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "gpu",
        short: None,
        value: "all|N,...",
        default: "none: buffers are host memory",
        help: "Add rows for the memory of these GPUs: copies in both directions, and files read and written by each path",
        group: Group::Run,
        apply: |spec, text| {
            let is_list = text.split(',').all(|word| word.parse::<u8>().is_ok());
            if text != "all" && !is_list {
                return Err(ParseError::new("a list of GPUs", text, "all, or numbers such as 0,1"));
            }
            spec.gpu = Some(if text == "all" { "gpu".to_owned() } else { format!("gpu:{text}") });
            Ok(())
        },
    },
    OptionDef {
        name: "passes",
        short: None,
        value: "N",
        default: "5, 3 with --quick",
        help: "Passes over all rows, 2 to 50; confidence intervals come from their differences",
        group: Group::Run,
        apply: |spec, text| {
            let accepted = 2..=u64::from(report::stack::PASSES_MAX);
            spec.passes = Some(units::parse_u64_in("passes", text, accepted)? as u32);
            Ok(())
        },
    },
    OptionDef {
        name: "try",
        short: None,
        value: "",
        default: "off",
        help: "Run the first remedy that can be tried, in turns with the original row, and show both results",
        group: Group::Run,
        apply: |spec, text| {
            spec.try_remedy = switch("try", text)?;
            Ok(())
        },
    },
    OptionDef {
        name: "warnings",
        short: None,
        value: "",
        default: "off: their number",
        help: "Show the warnings of all rows, each remedy once",
        group: Group::Output,
        apply: |spec, text| {
            spec.warnings = switch("warnings", text)?;
            Ok(())
        },
    },
    OptionDef {
        name: "full",
        short: None,
        value: "",
        default: "off: one screen",
        help: "Also show latencies, CPU time and notes of every row",
        group: Group::Output,
        apply: |spec, text| {
            spec.full = switch("full", text)?;
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
        help: "Allow writes to a --device that holds data",
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
        default: "random, and stored in the record",
        help: "Random seed: the same seed repeats the same operations and data",
        group: Group::Run,
        apply: |spec, text| {
            spec.seed = Some(units::parse_u64_in("seed", text, 0..=u64::MAX)?);
            Ok(())
        },
    },
];
