//! Doubts in the words of the tool that is spoken: its users cannot type strata's own options.

use std::borrow::Cow;

use report::record::{Doubt, PhaseRecord};
use statistics::{Histogram, LatencySummary};

/// For each kind of doubt of `report`, what to do about it in the words of one tool. What is left out is the same in all of
/// them, and the record says it.
type Remedies = &'static [(&'static str, &'static str)];

/// Remedies in fio's options.
const FIO: Remedies = &[
    ("too_short", "run longer: runtime=10 time_based"),
    ("not_steady", "run longer (runtime=60 time_based, ramp_time=10); write a drive over twice first"),
    ("memory_target", "choose a filename or directory on a drive (`df -T` shows file systems)"),
    (
        "page_cache",
        "read with direct=1, or with invalidate=1 and without loops; if you mean memory, pre_read=1",
    ),
    ("unwritten_range", "write all of it once (rw=write, same size) before reading it"),
    ("buffered_writes", "write with direct=1 or sync=dsync; or more than memory holds, with end_fsync=1"),
    ("compressible_content", "write with refill_buffers=1, unless your data are like this"),
    ("client_saturated", "raise numjobs or bs, or bind the jobs (cpus_allowed); leave out refill_buffers"),
    ("kernel_workers", "use direct=1, or ioengine=psync with more numjobs"),
    (
        "all_processors_busy",
        "lower numjobs below the processors; if the load needs more, use a larger machine",
    ),
    (
        "arrivals_unserved",
        "lower the rate, or raise numjobs or iodepth; latencies are those of an overloaded target",
    ),
];

/// Remedies in elbencho's options.
const ELBENCHO: Remedies = &[
    ("too_short", "run longer: a larger -s, or --infloop with --timelimit 10"),
    ("not_steady", "run longer (--infloop --timelimit 60); write a drive over twice first (-w -i 2)"),
    ("memory_target", "choose a path on a drive (`df -T` shows file systems)"),
    ("page_cache", "read with --direct, or with --sync --dropcache and without --infloop"),
    ("unwritten_range", "write all of it once (-w, same -s) before reading it"),
    ("buffered_writes", "write with --direct, or write more than fits in memory (-s) with --sync"),
    ("compressible_content", "write with --blockvarpct 100, unless your data is similar"),
    ("client_saturated", "raise -t or -b, or bind the threads (--cores); write with --blockvarpct 0"),
    ("kernel_workers", "use --direct, or --iodepth 1 with more -t"),
    (
        "all_processors_busy",
        "lower -t below the number of CPUs; if the load needs more, use a larger machine",
    ),
    (
        "arrivals_unserved",
        "lower --limitread or --limitwrite, or raise -t or --iodepth; these latencies come from an overloaded target",
    ),
];

/// Remedies in elbencho's options for files in directories.
const ELBENCHO_FILES: Remedies = &[
    ("too_short", "run longer: more directories (-n) or files (-N)"),
    ("not_steady", "run longer: more directories (-n) or files (-N)"),
    ("memory_target", "choose a directory on a drive (`df -T` shows file systems)"),
    ("page_cache", "read with --direct, or with --dropcache"),
    ("not_durable", "write with --direct, or add --sync: its phase SYNC shows the time that the rest takes"),
    ("client_saturated", "raise -t, or bind the threads (--cores); write with --blockvarpct 0"),
    (
        "all_processors_busy",
        "lower -t below the number of CPUs; if the load needs more, use a larger machine",
    ),
];

/// Remedies in the options of elbencho's netbench.
const NETBENCH: Remedies = &[
    ("too_short", "run longer: a larger -s, or --infloop with --timelimit 10"),
    ("not_steady", "run longer: a larger -s, or --infloop with --timelimit 60"),
    ("cpu_bound", "raise -t or -b, or bind the threads (--cores)"),
    ("remote_numa", "bind the clients to the interface's node (--zones), or name other devices (--netdevs)"),
    ("uneven_endpoints", "look at that server; test it alone (--servers)"),
    ("all_processors_busy", "lower -t below the number of CPUs; if the load needs more, use larger machines"),
    (
        "arrivals_unserved",
        "lower --limitwrite, or raise -t or --iodepth; these latencies come from an overloaded target",
    ),
];

/// Remedies in the options of `spdk_nvme_perf`.
const SPDK: Remedies = &[
    ("too_short", "run longer: -t 10"),
    ("not_steady", "run longer (-t 60 -a 10); write a drive over twice first (-w write)"),
    ("memory_target", "choose a drive (-r), or a path on one (`df -T` shows file systems)"),
    ("unwritten_range", "write all of it once (-w write) before reading it"),
    ("client_saturated", "give more cores (-c), or larger operations (-o)"),
    ("kernel_workers", "drive the path with libaio: leave out -R"),
    ("all_processors_busy", "leave a CPU free (-c); if the load needs more, use a larger machine"),
];

/// Remedies in self_test's options.
const SELF_TEST: Remedies = &[
    ("too_short", "run longer: more --repetitions-per-size"),
    ("not_steady", "run longer: more --repetitions-per-size"),
    (
        "cpu_bound",
        "use more --master-endpoint or --endpoint tags on cores of their own, or larger --message-sizes",
    ),
    (
        "remote_numa",
        "bind to the interface's node (taskset), or choose another one (OFI_INTERFACE, OFI_DOMAIN)",
    ),
    ("uneven_endpoints", "look at that host; test it alone (--endpoint)"),
    ("all_processors_busy", "leave a CPU free; if the load needs more, use a larger machine"),
];

/// Remedies in the options of `vos_perf` and `daos_perf`.
const DAOS_PERF: Remedies = &[
    ("too_short", "run longer: a larger -d, or i=N"),
    ("not_steady", "run longer: a larger -d, or i=N"),
    ("client_saturated", "raise --procs or -s, or bind the process (taskset)"),
    (
        "all_processors_busy",
        "lower --procs below the number of CPUs; if the load needs more, use a larger machine",
    ),
];

/// Remedies in the options of IOR.
const IOR: Remedies = &[
    ("too_short", "run longer: a larger -b or -s, or -D 60 with enough data for it"),
    ("not_steady", "run longer: a larger -b or -s, and -i 3"),
    (
        "page_cache",
        "read with --posix.odirect, or read more than fits in memory; -C helps only on several hosts",
    ),
    ("not_durable", "give -e, so that a file counts only when it is on storage"),
    ("client_saturated", "raise -N or -t"),
    (
        "all_processors_busy",
        "lower -N below the number of CPUs; if the load needs more, use a larger machine",
    ),
];

/// Remedies in the options of mdtest.
const MDTEST: Remedies = &[
    ("too_short", "run longer: a larger -n, or -W 60 with enough items for it"),
    ("not_steady", "run longer: a larger -n, and -i 3"),
    ("page_cache", "read more than fits in memory, or drop the caches first; -N helps only on several hosts"),
    ("not_durable", "give -y, so that a file counts only when it is on storage, or -Y"),
    ("client_saturated", "raise --tasks"),
    (
        "all_processors_busy",
        "lower --tasks below the number of CPUs; if the load needs more, use a larger machine",
    ),
];

/// The remedies of each dialect, by its name.
const DIALECTS: &[(&str, Remedies)] = &[
    ("fio", FIO),
    ("elbencho", ELBENCHO),
    ("spdk_nvme_perf", SPDK),
    ("self_test", SELF_TEST),
    ("vos_perf", DAOS_PERF),
    ("daos_perf", DAOS_PERF),
    ("ior", IOR),
    ("mdtest", MDTEST),
];

/// Kind of the doubt that latencies are lower bounds.
pub(crate) const LOWER_BOUNDS: &str = "lower_bounds";
/// Percentiles of which `statistics` says whether they are lower bounds.
const PERCENTS_JUDGED: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// A doubt as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told<'a> {
    /// Name of the kind, as in the record.
    pub(crate) kind: &'a str,
    /// Observation behind the doubt.
    pub(crate) detail: Cow<'a, str>,
    /// Remedy, in the tool's words.
    pub(crate) remedy: Cow<'a, str>,
}

impl Told<'_> {
    /// `strata doubts JOB: DETAIL; REMEDY` and the end of the line; without JOB where there is no name.
    pub(crate) fn line(&self, name: &str) -> String {
        let space = if name.is_empty() { "" } else { " " };
        format!("strata doubts{space}{name}: {}; {}\n", self.detail, self.remedy)
    }
}

/// The lines of many doubts, each with the job that it is about. One line for each job and kind: that of the first phase, with
/// the number of those that differ from it only in their figures.
pub(crate) fn lines<'a>(all: impl IntoIterator<Item = (&'a str, &'a Told<'a>)>) -> String {
    let mut folded: Vec<(&str, &Told<'_>, Vec<&str>)> = Vec::new();
    for (name, told) in all {
        match folded.iter_mut().find(|(known, first, _)| *known == name && first.kind == told.kind) {
            Some((_, first, others)) if first.detail == told.detail || others.contains(&&*told.detail) => {}
            Some((_, _, others)) => others.push(&told.detail),
            None => folded.push((name, told, Vec::new())),
        }
    }
    let line = |(name, told, others): &(&str, &Told<'_>, Vec<&str>)| match others.len() {
        0 => told.line(name),
        more => {
            let counted = format!("{} (and {more} more like it)", told.detail);
            Told { detail: counted.into(), ..(*told).clone() }.line(name)
        }
    };
    folded.iter().map(line).collect()
}

/// The doubts about these phases, in order, in the words of a dialect. What is the same in two of them, as in a phase and its read-back, is told once.
/// Behind those of a phase stands which of its latencies are lower bounds.
pub(crate) fn told<'a>(dialect: &str, phases: impl IntoIterator<Item = &'a PhaseRecord>) -> Vec<Told<'a>> {
    let own = DIALECTS.iter().find(|(name, _)| *name == dialect).map_or(&[][..], |(_, remedies)| remedies);
    let mut all: Vec<Told<'a>> = Vec::new();
    for phase in phases {
        let is_netbench = dialect == "elbencho" && phase.plan.direction_bytes().is_some();
        let remedies = match phase.plan.layer() {
            _ if is_netbench => NETBENCH,
            "filesystem" if dialect == "elbencho" => ELBENCHO_FILES,
            _ => own,
        };
        let doubts = phase.doubts.iter().map(|doubt| in_words((dialect, remedies), doubt));
        for doubt in doubts.chain(lower_bounds(phase)) {
            if !all.iter().any(|told| told.kind == doubt.kind && told.detail == doubt.detail) {
                all.push(doubt);
            }
        }
    }
    all
}

fn in_words<'a>((dialect, remedies): (&str, Remedies), doubt: &'a Doubt) -> Told<'a> {
    let own = remedies.iter().find(|(kind, _)| *kind == doubt.kind).map(|(_, remedy)| *remedy);
    Told {
        kind: &doubt.kind,
        detail: doubt.detail.as_str().into(),
        remedy: own.map_or_else(|| crate::in_words_of(dialect, &doubt.remedy).into(), Cow::Borrowed),
    }
}

/// Which latencies of a phase are lower bounds, in words: no tool's output has a sign for it. None where none are.
fn lower_bounds(phase: &PhaseRecord) -> Option<Told<'static>> {
    let (mut all, mut unfinished) = (Histogram::new(), Histogram::new());
    for class in phase.samples.workers.iter().flat_map(|worker| &worker.classes) {
        all.merge_sparse(&class.latency);
        unfinished.merge_sparse(&class.unfinished);
    }
    // Some tools' figures are of the whole phase, and strata's own of its steady part.
    let whole = LatencySummary::censored(&all, &unfinished);
    let summary = &phase.summary;
    let parts = summary.classes.iter().chain([&summary.total]).filter_map(|class| class.latency.as_ref());
    let figures: Vec<&LatencySummary> = whole.iter().chain(parts).collect();
    let from =
        figures.iter().filter_map(|latency| latency.lower_bound_from_percent).min_by(f64::total_cmp)?;
    let known = PERCENTS_JUDGED.into_iter().rfind(|percent| *percent < from);
    let percentiles = match known {
        _ if from >= 100.0 => String::new(),
        None => ", all percentiles".to_owned(),
        Some(percent) => format!(", the percentiles above p{percent}"),
    };
    let bounds = figures.iter().map(|latency| latency.lower_bounds).max().unwrap_or(0);
    let count = figures.iter().map(|latency| latency.count).max().unwrap_or(0);
    Some(Told {
        kind: LOWER_BOUNDS,
        detail: format!(
            "of the latencies, the mean{percentiles} and the maximum are lower bounds: {bounds} of {count} operations had not ended \
             and count with the time that they had waited"
        )
        .into(),
        remedy: "find out what hangs; where a rate was asked for, lower it".into(),
    })
}

#[cfg(test)]
mod tests {
    use report::sample;

    use super::*;

    /// Options of tools that look like options of strata.
    const OWN: [(&str, &[&str]); 6] = [
        (
            "elbencho",
            &[
                "direct",
                "dropcache",
                "sync",
                "cores",
                "blockvarpct",
                "iodepth",
                "limitread",
                "limitwrite",
                "infloop",
                "timelimit",
                "zones",
                "netdevs",
                "servers",
                "rand",
                "rwmixthr",
            ],
        ),
        ("self_test", &["repetitions-per-size", "endpoint", "master-endpoint", "message-sizes"]),
        ("vos_perf", &["procs"]),
        ("daos_perf", &["procs"]),
        ("ior", &["posix"]),
        ("mdtest", &["tasks"]),
    ];

    #[test]
    fn no_remedy_names_an_option_of_strata() {
        registry::register();
        // Kinds that need another layer, or a load that the tool cannot put on.
        let media = [
            "page_cache",
            "unwritten_range",
            "read_amplification",
            "buffered_writes",
            "unwritten_extents",
            "compressible_content",
            "kernel_workers",
        ];
        let (object, network) = (
            ["found_nothing", "not_durable", "paging", "store_grew"],
            ["cpu_bound", "remote_numa", "uneven_endpoints"],
        );
        let open_loop = ["generator_late", "arrivals_unserved"];
        let not_of = |dialect: &str| match dialect {
            "self_test" => [&media[..], &object, &open_loop].concat(),
            // Their stores have all their space before, or are behind an engine.
            "vos_perf" => [&media[..], &network, &open_loop, &["store_grew"][..]].concat(),
            "daos_perf" => [&media[..], &open_loop, &["store_grew"][..]].concat(),
            // Of the kinds of media these have their own of the same name.
            "ior" | "mdtest" => [&media[1..], &object, &network, &open_loop].concat(),
            _ => [&object[..], &network].concat(),
        };
        for (dialect, _) in DIALECTS {
            let known = OWN.iter().find(|(name, _)| name == dialect).map_or(&[][..], |(_, known)| known);
            for (kind, remedy) in
                report::doubts::remedies().filter(|(kind, _)| !not_of(dialect).contains(kind))
            {
                // Of files, where the tool's own kind of this name is of a store.
                if dialect.ends_with("_perf") && remedy.contains("--end-fsync") {
                    continue;
                }
                let doubt = Doubt { kind: kind.to_owned(), detail: String::new(), remedy: remedy.to_owned() };
                let own = DIALECTS.iter().find(|(name, _)| name == dialect).map_or(&[][..], |(_, own)| own);
                let told = in_words((dialect, own), &doubt).remedy.into_owned();
                for part in told.split("--").skip(1) {
                    let name =
                        part.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default();
                    // What is said of other programs: losetup, blockdev, docker.
                    let is_of_others = ["direct-io", "setra", "cpus", "release"].contains(&name);
                    assert!(is_of_others || known.contains(&name), "{dialect}: {kind}: {told}");
                }
            }
        }
    }

    #[test]
    fn remedies_are_for_kinds_and_dialects_that_there_are() {
        registry::register();
        for (dialect, remedies) in DIALECTS {
            assert!(crate::find(dialect).is_some(), "{dialect}");
            for (at, (kind, remedy)) in remedies.iter().enumerate() {
                assert!(report::doubts::kinds().any(|known| known == *kind), "{dialect}: {kind}");
                assert!(!remedies[..at].iter().any(|(other, _)| other == kind), "{dialect}: {kind} twice");
                assert!(remedy.len() <= 120, "{dialect}: {kind} is long");
            }
        }
    }

    #[test]
    fn remedies_name_options_that_fio_has() {
        for (_, remedy) in FIO {
            let options =
                remedy.split([' ', '(', ')', ',', ';', ':']).filter_map(|word| word.split_once('='));
            for (key, _) in options {
                assert!(crate::fio::has_option(key), "{key} in {remedy}");
            }
        }
    }

    #[test]
    fn what_is_told_twice_is_told_once_and_in_the_tools_words() {
        let doubt = |kind: &str, detail: &str| Doubt {
            kind: kind.to_owned(),
            detail: detail.to_owned(),
            remedy: "use --direct".to_owned(),
        };
        let mut main = crate::sampled::phase(&sample::DRIVE);
        let mut read_back = main.clone();
        main.doubts = vec![doubt("page_cache", "a"), doubt("clock", "b")];
        read_back.doubts = vec![doubt("clock", "b"), doubt("page_cache", "c")];
        let phases = [main, read_back];
        let lines = |dialect: &str| -> Vec<String> {
            told(dialect, &phases).iter().map(|told| told.line("x")).collect()
        };
        let fio = lines("fio");
        assert_eq!(fio.len(), 3);
        assert!(fio[0].starts_with("strata doubts x: a; read with direct=1"), "{}", fio[0]);
        assert_eq!(fio[1], "strata doubts x: b; use direct=1\n");
        assert!(fio[2].starts_with("strata doubts x: c; read with direct=1"), "{}", fio[2]);
        assert!(lines("elbencho")[0].contains("--dropcache"));
        assert!(lines("spdk_nvme_perf")[0].ends_with("use --direct\n"));
        assert_eq!(told("fio", &phases[..1])[0].line("").find("doubts: a"), Some(7));
    }

    #[test]
    fn figures_of_one_kind_and_job_share_a_line() {
        let told = |kind, detail: &'static str| Told { kind, detail: detail.into(), remedy: "wait".into() };
        let all = [told("k", "1 s"), told("k", "2 s"), told("k", "2 s"), told("m", "3 s")];
        let text = lines(all.iter().map(|told| ("a", told)).chain([("b", &all[0])]));
        let expected = "strata doubts a: 1 s (and 1 more like it); wait\n\
                        strata doubts a: 3 s; wait\nstrata doubts b: 1 s; wait\n";
        assert_eq!(text, expected);
    }
}
