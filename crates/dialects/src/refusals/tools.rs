//! Options of strata's in those of tools other than fio.

use super::Phrases;

/// Words of a tool for strata's phrases, and for its options.
pub(super) type Words = (Phrases, Phrases);

/// The words of a dialect; none where it has no table here.
pub(super) fn of(dialect: &str) -> Option<&'static Words> {
    TOOLS.iter().find(|(name, _)| *name == dialect).map(|(_, words)| words)
}

const TOOLS: &[(&str, Words)] = &[
    ("elbencho", (ELBENCHO_PHRASES, ELBENCHO_OPTIONS)),
    ("spdk_nvme_perf", (SPDK_PHRASES, SPDK_OPTIONS)),
    ("self_test", (SELF_TEST_PHRASES, SELF_TEST_OPTIONS)),
    ("vos_perf", (PERF_PHRASES, PERF_OPTIONS)),
    ("daos_perf", (PERF_PHRASES, PERF_OPTIONS)),
    ("ior", (IOR_PHRASES, IOR_OPTIONS)),
    ("mdtest", (MDTEST_PHRASES, MDTEST_OPTIONS)),
];

const ELBENCHO_PHRASES: Phrases = &[
    ("use fewer threads, a larger --size, or --share whole", "use fewer threads (-t), or a larger -s"),
    ("leave out --share whole", "leave out --rand and --rwmixthr"),
    ("lay the file out with data first (--layout fill), or write it twice", "write it twice (-i 2)"),
    (
        "--cache drop and one pass over the range; to measure memory, use --cache warm",
        "--dropcache and one pass over the range",
    ),
    ("--cache drop", "--dropcache"),
    ("write --content random with --refill full (the defaults)", "write with --blockvarpct 100"),
    ("or --refill stamp", "or --blockvarpct 0"),
    ("more than was done by then, or --warmup DURATION", "more than was done by then"),
    ("engine psync with more threads", "--iodepth 1 with more threads (-t)"),
    (
        "--direct or --sync dsync; or one pass over a range larger than memory with --end-fsync",
        "--direct, or more than the memory size (-s) with --sync",
    ),
    ("fewer threads, --cores,", "a lower -t, --cores,"),
    (
        "ask for a lower --rate, or allow more in flight (-t, -q)",
        "ask for a lower --limitread or --limitwrite, or allow more in flight (-t, --iodepth)",
    ),
    ("or ask for a lower --rate", "or ask for a lower --limitread or --limitwrite"),
    (
        "--op write --verify --keep with the same --size and --block-size",
        "-w --verify with the same -s and -b",
    ),
    ("give --size to create it", "give -s with -w to create it"),
    ("(--op write)", "(-w)"),
    ("take out --count and --bytes limits", "a larger -s"),
    ("give a second phase, such as --op write,read", "give a second phase, such as -w -r"),
];

const ELBENCHO_OPTIONS: Phrases = &[
    ("rotate-hosts", "--rotatehosts"),
    ("block-size", "-b"),
    ("value-size", "-s"),
    ("size", "-s"),
    ("threads", "-t"),
    ("depth", "--iodepth"),
    ("inflight", "--iodepth"),
    ("time", "--timelimit"),
    ("numa", "--zones"),
    ("end-fsync", "--sync"),
    ("mix", "--rwmixpct"),
    ("s3-part-size", "-b"),
    ("s3-endpoint", "--s3endpoints"),
    ("objects", "-N"),
    ("interface", "--netdevs"),
    ("token-file", "--svcpwfile"),
];

const SPDK_PHRASES: Phrases = &[
    (
        "use fewer threads, a larger --size, or --share whole",
        "use fewer cores (-c), or a larger drive or file",
    ),
    ("block size", "-o"),
    ("lay the file out with data first (--layout fill), or write it twice", "write it twice (-w write)"),
    ("read with --direct, or lower the read-ahead", "lower the read-ahead"),
    (
        "--direct, or --cache drop and one pass over the range; to measure memory, use --cache warm",
        "a drive (-r): spdk_nvme_perf itself has no page cache",
    ),
    (
        "write with --direct or --sync dsync; or one pass over a range larger than memory with --end-fsync",
        "write to a drive (-r)",
    ),
    (
        "write --content random with --refill full (the defaults), unless",
        "write to a drive that does not compress, unless",
    ),
    (
        "use more threads (-t) on cores of their own (--cores), larger blocks, or --refill stamp",
        "use more cores (-c), or larger operations (-o)",
    ),
    ("use --direct, or engine psync with more threads", "leave out -R, so that the path uses libaio"),
    ("(fewer threads, --cores, less other load), or ask for a lower --rate", "(-c, less other load)"),
    ("ask for a lower --rate, or allow more in flight (-t, -q)", "allow more in flight (-q)"),
    ("(--op write)", "(-w write)"),
    ("run longer (--time 10s or more), or take out --count and --bytes limits", "run longer (-t 10)"),
];

const SPDK_OPTIONS: Phrases = &[
    ("block-size", "-o"),
    ("threads", "-c"),
    ("cores", "-c"),
    ("depth", "-q"),
    ("time", "-t"),
    ("warmup", "-a"),
    ("mix", "-M"),
    ("op", "-w"),
];

const SELF_TEST_PHRASES: Phrases = &[
    (
        "use more threads (-t) on cores of their own (--cores), larger blocks, or --refill stamp",
        "use more --master-endpoint or --endpoint tags on separate cores, or larger --message-sizes",
    ),
    ("(a pass over more than was done by then, or --warmup DURATION)", "(do a longer run first)"),
    (
        "run longer (--time 10s or more), or take out --count and --bytes limits",
        "run longer: more --repetitions-per-size",
    ),
    ("(-t, --cores)", "(more --master-endpoint or --endpoint tags)"),
    (
        "choose the interface on the workers' node (--interface; `strata net scan`), or pin them (--numa)",
        "choose the interface on the workers' NUMA node (OFI_INTERFACE), or pin to that node (taskset)",
    ),
    (
        "use --order pinned, so that it does not delay the others, and check that host",
        "check that host; test it separately (--endpoint)",
    ),
];

const SELF_TEST_OPTIONS: Phrases = &[
    ("inflight", "--max-inflight-rpcs"),
    ("depth", "--max-inflight-rpcs"),
    ("count", "--repetitions-per-size"),
    ("group", "--group-name"),
    ("master", "--master-endpoint"),
    ("order", "--randomize-endpoints"),
];

const PERF_PHRASES: Phrases = &[
    (
        "use more threads on dedicated cores (-t, --cores), more endpoints, or larger payloads",
        "raise --procs or -s",
    ),
    (
        "choose the interface on the workers' node (--interface; `strata net scan`), or pin them (--numa)",
        "pin the process to the interface's NUMA node (numactl)",
    ),
    ("use --order pinned, so that it does not delay the others, and check that host", "check that host"),
    ("(a pass over more than was done by then, or --warmup DURATION)", "(do a longer run first)"),
    (
        "run longer (--time 10s or more), or take out --count and --bytes limits",
        "run longer: a larger -d, or i=N",
    ),
    (
        "store the data first (leave out --no-fill), with the same --objects, --dkeys and --class",
        "store the data first (U), with the same -o, -d and -a",
    ),
    (
        "leave out --durability: an update then counts as done only when it is durable, and updates in flight share a sync",
        "keep the store on storage-class memory (-D)",
    ),
    ("use fewer keys or a smaller --scm", "use fewer keys (-d, -a) or a smaller -P"),
    (
        "use more threads (-t) on cores of their own (--cores), larger blocks, or --refill stamp",
        "raise --procs or -s, or pin the process (taskset)",
    ),
    ("ask for a lower --rate, or allow more in flight (-t, -q)", "allow more in flight (-C, --procs)"),
];

const PERF_OPTIONS: Phrases = &[
    ("value-size", "-s"),
    ("cell-size", "-s"),
    ("objects", "-o"),
    ("dkeys", "-d"),
    ("akeys", "-a"),
    ("records", "-n"),
    ("threads", "--procs"),
    ("depth", "-C"),
    ("inflight", "-C"),
    ("class", "-c"),
    ("container", "-X"),
    ("scm", "-P"),
    ("nvme", "-N"),
];

const IOR_PHRASES: Phrases = &[
    (
        "use more threads (-t) on cores of their own (--cores), larger blocks, or --refill stamp",
        "raise -N or -t, or pin the process (taskset)",
    ),
    ("(a pass over more than was done by then, or --warmup DURATION)", "(do a longer run first)"),
    (
        "run longer (--time 10s or more), or take out --count and --bytes limits",
        "run longer: a larger -b or -s",
    ),
    ("ask for a lower --rate, or allow more in flight (-t, -q)", "raise -N"),
];

const IOR_OPTIONS: Phrases = &[
    ("file-size", "-b"),
    ("block-size", "-t"),
    ("segments", "-s"),
    ("threads", "-N"),
    ("time", "-D"),
    ("wear-out", "-O stoneWallingWearOut=1"),
    ("transfers", "-O stoneWallingWearOutIterations"),
    ("end-fsync", "-e"),
    ("fsync", "-Y"),
    ("direct", "--posix.odirect"),
    ("rank-shift", "-Q"),
    ("verify", "-R"),
    ("keep", "-k"),
];

const MDTEST_PHRASES: Phrases = &[
    (
        "use more threads (-t) on cores of their own (--cores), larger blocks, or --refill stamp",
        "raise --tasks, or pin the process (taskset)",
    ),
    ("create one with --op tree-create,create", "create one with -C, with the same -d"),
    ("(a pass over more than was done by then, or --warmup DURATION)", "(do a longer run first)"),
    ("run longer (--time 10s or more), or take out --count and --bytes limits", "run longer: a larger -n"),
    ("ask for a lower --rate, or allow more in flight (-t, -q)", "raise --tasks"),
];

const MDTEST_OPTIONS: Phrases = &[
    ("items", "-n"),
    ("files", "-I"),
    ("branch", "-b"),
    ("levels", "-z"),
    ("file-size", "-w and -e"),
    ("block-size", "-w and -e"),
    ("threads", "--tasks"),
    ("time", "-W"),
    ("end-fsync", "-y"),
    ("direct", "--posix.odirect"),
    ("rank-shift", "-N"),
    ("verify", "-X"),
];
