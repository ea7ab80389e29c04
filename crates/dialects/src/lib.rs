//! The command lines and outputs of other tools: one module a tool. Its words become a request of specs, and the record of
//! their run becomes that tool's text. Nothing here opens a file, reads a clock or computes a statistic.

mod contract;
pub mod daos_perf;
mod dates;
mod doubts;
pub mod elbencho;
pub mod elbencho_chart;
pub mod fdb_hammer;
pub mod fio;
mod gpu_buffers;
pub mod io500;
pub mod ior;
pub mod mdtest;
mod options;
mod refusals;
#[cfg(test)]
mod sampled;
pub mod self_test;
pub mod spdk;
mod tasks;
mod words;
mod world;

pub use contract::{Destination, Dialect, Pace, Piece, Progress, Render, Request, Run, Serve, Tell, Told};
pub use world::{NvmeNamespace, PathFacts, World};

/// Every dialect, in the order of help. A link with one of these names to the binary speaks it.
pub static DIALECTS: &[Dialect] = &[
    Dialect {
        name: "fio",
        summary: "fio 3: command line, job files; normal, terse, json and json+ output",
        parse: fio::parse,
        refused: fio::refused,
    },
    Dialect {
        name: "spdk_nvme_perf",
        summary: "spdk_nvme_perf: block devices, files, and PCI addresses of NVMe drives",
        parse: spdk::parse,
        refused: |_, _| Vec::new(),
    },
    Dialect {
        name: "elbencho",
        summary: "elbencho 3: large files, many files, block devices, S3 buckets, networks and its services",
        parse: elbencho::parse,
        refused: |_, _| Vec::new(),
    },
    Dialect {
        name: "io500",
        summary: "IO500: its configuration, phases, score and result files; ranks are threads",
        parse: io500::parse,
        refused: |_, _| Vec::new(),
    },
    Dialect {
        name: "self_test",
        summary: "CaRT's self_test: RPCs to the endpoints of engines",
        parse: self_test::parse,
        refused: |_, _| Vec::new(),
    },
    Dialect {
        name: "vos_perf",
        summary: "DAOS's vos_perf: the embedded object store",
        parse: daos_perf::parse_vos,
        refused: |_, _| Vec::new(),
    },
    Dialect {
        name: "daos_perf",
        summary: "DAOS's daos_perf: the object store over the network, and DAOS",
        parse: daos_perf::parse_daos,
        refused: |_, _| Vec::new(),
    },
    Dialect {
        name: "ior",
        summary: "IOR 4: one shared file, or one file per task; tasks are threads",
        parse: ior::parse,
        refused: |_, _| Vec::new(),
    },
    Dialect {
        name: "mdtest",
        summary: "mdtest 4: creation, stat, read and removal of files and directories; tasks are threads",
        parse: mdtest::parse,
        refused: |_, _| Vec::new(),
    },
    Dialect {
        name: "fdb-hammer",
        summary: "ECMWF's fdb-hammer: writes and reads fields of a weather model; processes are threads",
        parse: fdb_hammer::parse,
        refused: |_, _| Vec::new(),
    },
    Dialect {
        name: "elbencho-chart",
        summary: "elbencho-chart: line and bar charts of elbencho's CSV files",
        parse: elbencho_chart::parse,
        refused: |_, _| Vec::new(),
    },
];

/// Words as a record may hold them: `***` in place of secrets ([`Run::secrets`]).
#[must_use]
pub fn without_secrets(all: &[String], secrets: &[String]) -> Vec<String> {
    words::without(all, secrets)
}

/// A text of strata's own, such as a refusal, in the options of a dialect: its users cannot type others.
#[must_use]
pub fn in_words_of(dialect: &str, text: &str) -> String {
    refusals::in_words_of(dialect, text)
}

/// The dialect of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().find(|dialect| dialect.name == name)
}
