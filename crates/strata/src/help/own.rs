//! Help of the commands that belong to no layer.

use workload::help::{Example, Help};

const fn plain(examples: &'static [Example]) -> Help {
    Help { options: &[], examples }
}

/// Help of the commands that belong to no layer; that of strata itself stands under an empty name.
pub(super) const OWN: &[(&str, Help)] = &[
    (
        "",
        plain(&[
            Example::new("which layer of this machine is the bottleneck?", "stack"),
            Example::new(
                "one load on one target",
                "media data --size 1g --op randread --depth 32 --direct --time 10s",
            ),
            Example::new("an unmodified fio job file", "as fio job.fio"),
        ]),
    ),
    (
        "stack",
        Help {
            options: &["quick", "dir", "device", "engine", "app", "size", "out", "json"],
            examples: &[
                Example::new("this machine, in the current directory", "stack"),
                Example::new("another file system, in about 10 s", "stack --quick --dir /mnt/data"),
                Example::new("with an application as the top layer", "stack --quick --app vpic"),
            ],
        },
    ),
    (
        "service",
        Help {
            options: &["listen", "token-file", "root", "allow-destroy", "allow-network", "audit"],
            examples: &[
                Example::new("on this machine only", "service --root /mnt/test"),
                Example::new(
                    "for leaders on other machines",
                    "service --listen 0.0.0.0:1611 --token-file token --root /mnt/test",
                ),
                Example::new(
                    "for loads on a bucket or an engine",
                    "service --allow-network all --audit audit.log",
                ),
            ],
        },
    ),
    (
        "clean",
        plain(&[
            Example::new("files and objects that runs of this user left behind", "clean"),
            Example::new("remove all of them", "clean --yes"),
            Example::new(
                "objects that one run left in a bucket",
                "clean record.json --s3-key-file keys --yes",
            ),
        ]),
    ),
    (
        "run",
        plain(&[
            Example::new("the phases of a job file", "run job.toml"),
            Example::new("and keep the report, the table and the record", "run job.toml --out results"),
            Example::new("read standard input, write the record to standard output", "run - --json -"),
        ]),
    ),
    (
        "compare",
        Help {
            options: &["repeat", "fail-if", "html", "out"],
            examples: &[
                Example::new("is B faster than A?", "compare before.json after.json"),
                Example::new(
                    "run two loads in turns, five times each",
                    "compare --repeat 5 'media data --op randread --time 2s' 'media data --op randread --time 2s --engine libaio'",
                ),
                Example::new(
                    "in CI: exit code 1 if B is slower by at least 5%",
                    "compare before after --fail-if slower:5%",
                ),
            ],
        },
    ),
    (
        "history",
        plain(&[
            Example::new("keep a run", "history add runs record.json"),
            Example::new("newest runs and expected ranges", "history show runs"),
            Example::new("exit code 1 if the newest run is slower", "history check runs"),
        ]),
    ),
    (
        "history add",
        plain(&[
            Example::new("keep a run", "history add runs record.json"),
            Example::new(
                "in CI, where hosts change: a series of a name",
                "history add runs record.json --series nightly",
            ),
            Example::new("all records of a directory", "history add runs results"),
        ]),
    ),
    (
        "history show",
        Help {
            options: &["series", "phase", "metric", "since", "html", "csv"],
            examples: &[
                Example::new("newest runs and expected ranges", "history show runs"),
                Example::new("graphs over time on one page", "history show runs --html history.html"),
                Example::new(
                    "p99 of the reads of the last 30 days",
                    "history show runs --phase read --metric p99 --since 30d",
                ),
            ],
        },
    ),
    (
        "history check",
        Help {
            options: &["series", "last", "since", "fail-if", "html", "markdown", "junit"],
            examples: &[
                Example::new("exit code 1 if the newest run is slower", "history check runs"),
                Example::new(
                    "a run that is not in it yet",
                    "history check runs record.json --fail-if slower:5%",
                ),
                Example::new("for CI", "history check runs --markdown summary.md --junit junit.xml"),
            ],
        },
    ),
    (
        "report",
        Help {
            options: &["html", "png", "csv", "full"],
            examples: &[
                Example::new("tables of a record", "report record.json"),
                Example::new("one HTML page to send", "report record.json --html report.html"),
                Example::new("charts of several records", "report a.json b.json --png charts"),
            ],
        },
    ),
    (
        "as",
        Help {
            options: &["json", "csv", "out", "live", "destroy-data", "token-file"],
            examples: &[
                Example::new("a fio job file", "as fio job.fio"),
                Example::new("elbencho", "as elbencho -w -r -t 4 -b 1m -s 10g --direct data"),
                Example::new(
                    "IOR, and strata's record in addition to its output",
                    "as --json record.json ior -w -r -t 1m -b 1g -o /mnt/test/data",
                ),
            ],
        },
    ),
    ("list", plain(&[Example::new("layers, engines, dialects", "list")])),
    (
        "schema",
        plain(&[
            Example::new("of the record", "schema"),
            Example::new("of a comparison", "schema comparison"),
            Example::new("of a history", "schema history"),
        ]),
    ),
    (
        "man",
        plain(&[
            Example::new("the page of strata", "man"),
            Example::new("the page of one command", "man media"),
            Example::new("a file for each command", "man --dir /usr/local/share/man/man1"),
        ]),
    ),
    (
        "completions",
        plain(&[
            Example::new("for bash", "completions bash"),
            Example::new("for zsh", "completions zsh"),
            Example::new("for fish", "completions fish"),
        ]),
    ),
    (
        "version",
        plain(&[
            Example::new("version, build, formats", "version"),
            Example::new("as JSON", "version --json"),
        ]),
    ),
];
