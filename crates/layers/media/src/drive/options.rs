//! Options of `strata drive`.

use units::{ParseError, Span, parse_u64_in};
use workload::options::value::some_text;
use workload::options::{self, Group, OptionDef, switch};

/// Options of the test, as typed.
#[derive(Clone, Debug, Default)]
pub(super) struct DriveSpec {
    /// Figures of the vendor: a file, or the figures themselves.
    pub(super) sheet: Option<String>,
    /// Whether preconditioning is left out, and rounds are short.
    pub(super) is_quick: bool,
    /// Length of a round.
    pub(super) round: Option<Span>,
    /// Most rounds until steady state.
    pub(super) rounds_max: Option<u64>,
    /// Requests in flight a worker, but for latencies.
    pub(super) depth: Option<u64>,
    /// Workers of random loads, but for latencies.
    pub(super) threads: Option<u64>,
}

/// Options of a load on media that hold for all phases.
const OF_LOADS: &[&str] = &["size", "engine", "seed", "cores", "numa", "keep", "destroy-data"];

/// The options of loads that hold here too.
pub(super) fn of_loads() -> impl Iterator<Item = &'static OptionDef> {
    options::of(crate::LAYER).filter(|option| OF_LOADS.contains(&option.name))
}

/// Options of its own.
pub(super) static OWN: &[OptionDef<DriveSpec>] = &[
    OptionDef {
        name: "spec",
        short: None,
        value: "FILE|KEY=VALUE,...",
        default: "none: measure without a comparison",
        help: "Data sheet values, from a TOML file or as seq_read=7000MB/s,rand_read=1M; keys: seq_read, seq_write, rand_read, rand_write, read_latency, write_latency, read_p99_99, write_p99_99",
        group: Group::Workload,
        apply: |spec, text| {
            spec.sheet = Some(some_text("spec", text)?);
            Ok(())
        },
    },
    OptionDef {
        name: "quick",
        short: None,
        value: "",
        default: "off",
        help: "Skip preconditioning and steady state: five rounds of 1s per load; the result contains a warning",
        group: Group::Workload,
        apply: |spec, text| {
            spec.is_quick = switch("quick", text)?;
            Ok(())
        },
    },
    OptionDef {
        name: "round",
        short: None,
        value: "DURATION",
        default: "60s, as specified by SNIA; --quick: 1s",
        help: "Length of a round; every load runs at least five rounds",
        group: Group::Load,
        apply: |spec, text| {
            let round: Span = text.parse()?;
            if round.ns() == 0 {
                return Err(ParseError::new("a round length", text, "more than 0, such as 60s"));
            }
            spec.round = Some(round);
            Ok(())
        },
    },
    OptionDef {
        name: "rounds-max",
        short: None,
        value: "N",
        default: "25, as specified by SNIA",
        help: "Maximum rounds of writes to wait for five consecutive steady ones; 5 to 1000",
        group: Group::Load,
        apply: |spec, text| {
            spec.rounds_max = Some(parse_u64_in("rounds-max", text, 5..=1000)?);
            Ok(())
        },
    },
    OptionDef {
        name: "depth",
        short: Some('q'),
        value: "N",
        default: "32",
        help: "Requests in flight per worker; latency loads use one",
        group: Group::Load,
        apply: |spec, text| {
            spec.depth = Some(parse_u64_in("depth", text, 1..=65_536)?);
            Ok(())
        },
    },
    OptionDef {
        name: "threads",
        short: Some('t'),
        value: "N",
        default: "4",
        help: "Workers of random loads; latency loads use one",
        group: Group::Load,
        apply: |spec, text| {
            spec.threads = Some(parse_u64_in("threads", text, 1..=4096)?);
            Ok(())
        },
    },
];
