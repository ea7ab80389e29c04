//! Refusals of strata, in the options of the tool that is spoken: its users cannot type strata's own.

mod tools;

/// Pairs of a phrase of strata's and its replacement. Longer phrases stand before their parts.
type Phrases = &'static [(&'static str, &'static str)];

const FIO_PHRASES: Phrases = &[
    (
        "--op write --verify --keep with the same --size and --block-size",
        "rw=write verify=crc32c, with the same size and bs",
    ),
    ("--cache drop", "invalidate=1"),
    ("--cache warm", "pre_read=1"),
    ("--engine io_uring or libaio", "ioengine=io_uring or libaio"),
    ("--engine io_uring or psync", "ioengine=io_uring or psync"),
    ("--engine psync", "ioengine=psync"),
    ("--refill full", "refill_buffers=1"),
    ("leave out --share whole", "leave out filename, so that each clone has its own file"),
    ("or --share whole", "or one filename for all clones"),
    ("--share whole", "one filename for all clones"),
    (
        "give --op: read, write, randread, randwrite, readwrite, randrw, discard, randdiscard or nop",
        "give rw",
    ),
    ("--op readwrite or randrw, not with discard", "rw=rw or randrw, not with trim"),
    ("--op readwrite or randrw, not with randdiscard", "rw=rw or randrw, not with randtrim"),
    ("--op readwrite", "rw=rw"),
    ("--op discard", "rw=trim"),
    ("--op randdiscard", "rw=randtrim"),
    ("--op ", "rw="),
    ("--no-read-back", "do_verify=0"),
    ("has no discard", "has no trim"),
    ("see `strata list` for the engine that has it", "see --enghelp for the engine that has it"),
];

/// Options of strata's, and fio's in place of them.
const FIO_OPTIONS: Phrases = &[
    ("align", "ba"),
    ("arrivals", "rate_process"),
    ("batch", "iodepth_batch"),
    ("batch-max", "iodepth_batch_complete_max"),
    ("batch-min", "iodepth_batch_complete_min"),
    ("block-size", "bs"),
    ("bytes", "io_size"),
    ("cache", "invalidate"),
    ("compress", "buffer_compress_percentage"),
    ("concurrent", "stonewall"),
    ("content", "buffer_pattern"),
    ("cores", "cpus_allowed"),
    ("cores-policy", "cpus_allowed_policy"),
    ("count", "number_ios"),
    ("dedupe", "dedupe_percentage"),
    ("depth", "iodepth"),
    ("direct", "direct=1"),
    ("dontcache", "uncached"),
    ("end-fsync", "end_fsync"),
    ("end-others", "exitall"),
    ("dedupe-set", "dedupe_working_set_percentage"),
    ("engine", "ioengine"),
    ("fsync", "fsync"),
    ("hipri", "hipri"),
    ("huge-pages", "mem=mmaphuge"),
    ("iopoll", "hipri"),
    ("keep", "unlink=0"),
    ("layout", "fallocate"),
    ("mix", "rwmixread"),
    ("nowait", "nowait"),
    ("numa", "numa_cpu_nodes"),
    ("numa-memory", "numa_mem_policy"),
    ("offset", "offset"),
    ("on-error", "continue_on_error"),
    ("op", "rw"),
    ("pattern", "random_distribution"),
    ("rate", "rate_iops"),
    ("refill", "refill_buffers"),
    ("register-buffers", "fixedbufs"),
    ("register-files", "registerfiles"),
    ("seed", "randseed"),
    ("share", "filename"),
    ("size", "size"),
    ("sizes", "filesize"),
    ("sqpoll", "sqthread_poll"),
    ("sqpoll-core", "sqthread_poll_cpu"),
    ("start-delay", "startdelay"),
    ("sync", "sync"),
    ("sync-call", "fsync or fdatasync"),
    ("no-catch-up", "rate_ignore_thinktime"),
    ("think-after", "thinktime_iotime"),
    ("think-blocks", "thinktime_blocks"),
    ("think-spin", "thinktime_spin"),
    ("think-time", "thinktime"),
    ("threads", "numjobs"),
    ("time", "runtime"),
    ("verify", "verify"),
    ("verify-interval", "verify_interval"),
    ("warmup", "ramp_time"),
];

/// The text in the options of a dialect; as it is for those that have no table here.
pub(crate) fn in_words_of(dialect: &str, text: &str) -> String {
    let ((phrases, options), joint) = match (dialect, tools::of(dialect)) {
        ("fio", _) => ((FIO_PHRASES, FIO_OPTIONS), "="),
        (_, Some(words)) => (*words, " "),
        _ => return text.to_owned(),
    };
    let phrased = phrases.iter().fold(text.to_owned(), |text, (ours, theirs)| text.replace(ours, theirs));
    with_options(&phrased, options, joint)
}

/// Puts the tool's options for `--name`, and `name=4` for `--name 4` where a value is joined by `=`. What has none stays.
fn with_options(text: &str, options: Phrases, joint: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, from) = rest.split_at(at);
        let word = &from[2..];
        let end = word.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(word.len());
        let begins = before.is_empty() || before.ends_with([' ', '(', '"', '`']);
        let known = options.iter().find(|(ours, _)| begins && *ours == &word[..end]);
        made.push_str(before);
        let after = &word[end..];
        match known {
            Some((_, theirs)) => {
                made.push_str(theirs);
                let value =
                    after.strip_prefix(' ').filter(|value| value.starts_with(|c: char| c.is_ascii_digit()));
                rest = value.unwrap_or(after);
                made.push_str(if value.is_some() { joint } else { "" });
            }
            None => {
                made.push_str(&from[..2 + end]);
                rest = after;
            }
        }
    }
    made + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_in_fios_options() {
        let cases = [
            (
                "engine psync runs one operation at a time and does not support --depth 4: use --threads 4, or --engine io_uring or libaio",
                "engine psync runs one operation at a time and does not support iodepth=4: use numjobs=4, or ioengine=io_uring or libaio",
            ),
            (
                "--verify needs blocks and positions of whole 512-byte sectors: use multiples of 512 for --block-size and --align",
                "verify needs blocks and positions of whole 512-byte sectors: use multiples of 512 for bs and ba",
            ),
            (
                "4 threads cannot share 2 blocks: use fewer threads, a larger --size, or --share whole",
                "4 threads cannot share 2 blocks: use fewer threads, a larger size, or one filename for all clones",
            ),
            (
                "--pattern zipf:1 does not go with --op discard: use x",
                "random_distribution zipf:1 does not go with rw=trim: use x",
            ),
            ("engine libaio has no discard: it supports read", "engine libaio has no trim: it supports read"),
            ("strata as --destroy-data fio ...", "strata as --destroy-data fio ..."),
        ];
        for (ours, theirs) in cases {
            assert_eq!(in_words_of("fio", ours), theirs);
        }
    }

    #[test]
    fn refusals_of_the_planner_are_in_each_tools_options() {
        let shared = "4 threads cannot share 2 blocks: use fewer threads, a larger --size, or --share whole";
        let cases = [
            ("elbencho", shared, "4 threads cannot share 2 blocks: use fewer threads (-t), or a larger -s"),
            (
                "spdk_nvme_perf",
                shared,
                "4 threads cannot share 2 blocks: use fewer cores (-c), or a larger drive or file",
            ),
            (
                "elbencho",
                "does not support --depth 4: use --threads 4",
                "does not support --iodepth 4: use -t 4",
            ),
            ("spdk_nvme_perf", "--op read and --time 4", "-w read and -t 4"),
            (
                "vos_perf",
                "--value-size 2GiB is too large: use 1GiB or less",
                "-s 2GiB is too large: use 1GiB or less",
            ),
            ("self_test", "--inflight 16 cannot be divided", "--max-inflight-rpcs 16 cannot be divided"),
            ("elbencho-chart", "--size 4", "--size 4"),
        ];
        for (dialect, ours, theirs) in cases {
            assert_eq!(in_words_of(dialect, ours), theirs, "{dialect}");
        }
    }
}
