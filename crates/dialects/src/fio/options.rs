//! The one table of fio's options: what becomes of each of them. Reading, `--cmdhelp` and docs/dialects/fio.md are made from it.

use crate::fio::draft::Draft;
use crate::fio::value::Value;

/// Whether a value follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// May stand alone; a value comes after `=` only.
    Flag,
    /// One on the command line; in a job file the option may stand alone.
    Bool,
    /// Always one.
    Value,
}

/// Treatment of an option.
pub(crate) enum Fate {
    /// It means here what it means to fio.
    Honoured { read: fn(&mut Draft, &Value<'_>) -> Result<(), String>, becomes: &'static str },
    /// Any value that fio takes changes nothing here.
    Accepted { check: fn(&Value<'_>) -> Result<(), String>, because: &'static str },
    /// Only these values, which ask for nothing, are taken.
    Refused { unless: &'static [&'static str], because: &'static str, nearest: &'static str },
}

/// One option of fio.
pub(crate) struct FioOption {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) takes: Takes,
    pub(crate) fate: Fate,
}

/// The option of this name or alias.
pub(crate) fn find(name: &str) -> Option<&'static FioOption> {
    OPTIONS.iter().find(|option| option.name == name || option.aliases.contains(&name))
}

macro_rules! fate {
    (does $field:ident $read:ident, $becomes:literal) => {
        Fate::Honoured {
            read: |draft, value| {
                draft.$field = Some(value.$read()?);
                Ok(())
            },
            becomes: $becomes,
        }
    };
    (free $read:ident, $because:literal) => {
        Fate::Accepted { check: |value| value.$read().map(drop), because: $because }
    };
    (no [$($unless:literal)*], $because:literal, $nearest:literal) => {
        Fate::Refused { unless: &[$($unless),*], because: $because, nearest: $nearest }
    };
    (of $engine:literal) => {
        Fate::Refused {
            unless: &[],
            because: concat!("it is an option of engine ", $engine),
            nearest: "ioengine=psync, libaio or io_uring with their options",
        }
    };
}

macro_rules! table {
    ($({ $name:literal [$($alias:literal)*] $takes:ident $($fate:tt)+ })*) => {
        /// Every option of a job.
        pub(crate) static OPTIONS: &[FioOption] = &[$(FioOption {
            name: $name,
            aliases: &[$($alias),*],
            takes: Takes::$takes,
            fate: fate!($($fate)+),
        }),*];
    };
}

table! {
    // The job.
    { "name" [] Value does name text, "`--name`" }
    { "description" [] Value does description text, "shown with the job" }
    { "wait_for" [] Value does wait_for text, "the job starts in the stage after the named job; the named job must be the only one in its stage" }
    { "loops" [] Value does loops positive, "`--bytes`: this many times the size" }
    { "numjobs" [] Value does numjobs count, "`--threads`, or one concurrent phase per clone" }
    { "thread" ["threads"] Flag free flag, "workers are threads of one process either way" }
    { "stonewall" ["wait_for_previous"] Flag does stonewall flag, "the phase is not `--concurrent`" }
    { "new_group" [] Flag does new_group flag, "starts a new group in the report" }
    { "group_reporting" [] Flag does group_reporting flag, "clones of a job run as the threads of one phase" }
    { "startdelay" [] Value does startdelay seconds, "`--start-delay`" }
    { "runtime" ["timeout"] Value does runtime seconds, "`--time`; the job ends at this time or at its size, whichever comes first" }
    { "time_based" [] Flag does time_based flag, "`--time` only; the size does not end the job" }
    { "ramp_time" [] Value does ramp_time seconds, "`--warmup`" }
    { "ramp_size" [] Value no [], "warm-up is given as a time, not as an amount", "ramp_time" }
    { "exitall" [] Flag does exitall flag, "`--end-others`; if one job has it, all jobs do" }
    { "exit_what" [] Value does exit_what text, "ends the jobs that run at the same time; rejected if it would end other jobs" }
    { "exitall_on_error" [] Flag free flag, "a failed job always ends the concurrent jobs and the run" }
    { "exec_prerun" [] Value does exec_prerun text, "`--run-before`; runs once if the clones are threads of one phase" }
    { "exec_postrun" [] Value does exec_postrun text, "`--run-after`; runs once if the clones are threads of one phase" }
    { "profile" [] Value no [], "profiles are built into fio itself", "a job file" }
    { "comm" [] Value no [], "strata does not rename threads", "name" }
    { "stats" [] Bool does stats flag, "0 excludes the job from the results" }

    // What is done.
    { "rw" ["readwrite"] Value does access access, "`--op`; `read:8k` is `--gap`, `randread:8` is `--run`" }
    { "rw_sequencer" [] Value does rw_identical sequencer, "`--run identical:N`" }
    { "rwmixread" [] Value does rwmixread mix_percent, "`--mix`" }
    { "rwmixwrite" [] Value does rwmixread mix_rest_percent, "`--mix`" }
    { "rwmixcycle" [] Value no [], "fio removed this option", "rwmixread" }
    { "bs" ["blocksize"] Value does bs sizes, "`--block-size`, per class if the directions differ" }
    { "ba" ["blockalign"] Value does ba sizes, "`--align`" }
    { "bsrange" ["blocksize_range"] Value does bsrange ranges, "`--block-size`" }
    { "bssplit" [] Value does bssplit splits, "`--block-size`" }
    { "bs_unaligned" ["blocksize_unaligned"] Flag does bs_unaligned flag, "`--block-size` in steps of one byte" }
    { "bs_is_seq_rand" [] Bool does bs_is_seq_rand flag, "`--block-size`: the first size for sequential, the second for random; rejected if a job is both" }
    { "percentage_random" [] Value does percentage_random percents, "`--random-percent`" }
    { "percentage_sequential" [] Value no [], "fio removed this option", "percentage_random" }
    { "norandommap" [] Flag does norandommap flag, "`--pattern uniform`" }
    { "softrandommap" [] Bool free flag, "the block order needs no map in memory" }
    { "random_generator" [] Value does lfsr generator, "all values use the same generator; lfsr visits each block once per pass, also with norandommap" }
    { "random_distribution" [] Value does random_distribution distribution, "`--pattern`" }
    { "random_sequence_stride" [] Bool does random_sequence_stride flag, "`--pattern groups:...` for random_distribution=sequence" }
    { "randrepeat" [] Bool does randrepeat flag, "1: `--seed 137`; 0: a random seed" }
    { "allrandrepeat" [] Bool does randrepeat flag, "as `randrepeat`" }
    { "randseed" [] Value does randseed number, "`--seed`" }
    { "sprandom" [] Bool no ["0"], "strata cannot generate its sequence of region-wise overwrites", "rw=write, then rw=randwrite with loops=2; this reaches the same state more slowly" }
    { "spr_num_regions" [] Value no [], "it applies only to sprandom", "rw=randwrite with loops=2" }
    { "spr_op" [] Value no [], "it applies only to sprandom", "rw=randwrite with loops=2" }
    { "spr_cs" [] Value no [], "it applies only to sprandom", "rw=randwrite with loops=2" }
    { "num_range" [] Value no ["1"], "several ranges per trim require NVMe commands, which fio sends only with ioengine=io_uring_cmd", "rw=randtrim, one range per trim" }
    { "size" [] Value does size amount, "`--size` of each file: the job's size divided by its files; a percentage is of the existing size" }
    { "io_size" ["io_limit"] Value does io_size amount, "`--bytes`" }
    { "number_ios" [] Value does number_ios number, "`--count`" }
    { "filesize" [] Value does filesize size_range, "`--size` of each file; a range is `--sizes`, drawn at random from it" }
    { "fill_device" ["fill_fs"] Bool does fill_device flag, "`--end-when-full` for one file; on a block device the job writes to the end" }
    { "file_append" [] Bool does file_append flag, "`--offset` at the end of the existing data" }
    { "offset" ["fileoffset"] Value does offset amount, "`--offset`" }
    { "offset_align" [] Value does offset_align number, "an offset in percent is rounded up to a multiple of it" }
    { "offset_increment" [] Value does offset_increment amount, "`--offset`; each clone is a separate phase" }

    // Files.
    { "filename" [] Value does filename text, "targets, separated by colons; `\\:` is a literal colon" }
    { "directory" [] Value does directory text, "directory of the targets; several are assigned to the clones in turn" }
    { "filename_format" [] Value does filename_format text, "names of the targets" }
    { "unique_filename" [] Bool does unique_filename flag, "with `--client`, 0 omits the client's name from file names in `directory`" }
    { "filetype" [] Value no ["none"], "the type of an existing target is detected; a new target is a regular file", "leave it out" }
    { "lockfile" [] Value no ["none"], "strata does not lock files", "a job for each file" }
    { "opendir" [] Value no [], "strata does not search a directory for targets", "filename=a:b:c" }
    { "nrfiles" ["nr_files"] Value does nrfiles count, "number of targets" }
    { "openfiles" [] Value does openfiles count, "all files stay open; a warning if fewer are requested" }
    { "file_service_type" [] Value does file_service_type text, "`--visit`" }
    { "fallocate" [] Value does fallocate layout, "`--layout allocate` or `sparse` for jobs that only write" }
    { "overwrite" [] Bool does overwrite flag, "`--layout fill`" }
    { "create_serialize" [] Bool free flag, "files are laid out before the measurement starts" }
    { "create_fsync" [] Bool free flag, "files are laid out before the measurement starts" }
    { "create_on_open" [] Bool does create_on_open flag, "`--layout sparse` for a job that only writes" }
    { "create_only" [] Bool does create_only flag, "lays out the files and performs no I/O" }
    { "allow_file_create" [] Bool does allow_file_create flag, "0 rejects targets that do not exist" }
    { "allow_mounted_write" [] Bool no ["0"], "a job file cannot disable strata's write protection", "strata as --destroy-data fio ..." }
    { "unlink" [] Bool does unlink flag, "0 is `--keep`; 1 removes the files that the run created" }
    { "unlink_each_loop" [] Bool does unlink_each_loop flag, "as `unlink` for a job that runs once; rejected with loops" }
    { "pre_read" [] Bool does pre_read flag, "`--cache warm`" }
    { "invalidate" [] Bool does invalidate flag, "1: `--cache drop`; 0: `--cache keep`" }
    { "fadvise_hint" [] Value does fadvise_hint advice, "`--advise`; default: matches the access pattern" }
    { "write_hint" [] Value no ["none"], "strata sets no write lifetime hints", "leave it out" }

    // The driver.
    { "ioengine" [] Value does engine engine, "`--engine`" }
    { "iodepth" [] Value does iodepth count, "`--depth`; 1 with a synchronous engine" }
    { "iodepth_batch" ["iodepth_batch_submit"] Value does iodepth_batch number, "`--batch`" }
    { "iodepth_batch_complete_min" ["iodepth_batch_complete"] Value does iodepth_batch_complete_min count, "`--batch-min`" }
    { "iodepth_batch_complete_max" [] Value does iodepth_batch_complete_max number, "`--batch-max`; default: as `iodepth_batch_complete_min`" }
    { "iodepth_low" [] Value does iodepth_low number, "strata always refills the queue at once; a lower value is rejected" }
    { "serialize_overlap" [] Bool does serialize_overlap flag, "`--serialize-overlap`, within each clone" }
    { "io_submit_mode" [] Value does offload submit_mode, "offload with a rate is an open loop; without a rate the timing thread submits, with a warning" }
    { "direct" [] Bool does direct flag, "`--direct`" }
    { "buffered" [] Bool does direct not, "0 is `--direct`" }
    { "atomic" [] Bool no ["0"], "strata does not issue atomic writes", "sync=dsync" }
    { "sync" [] Value does sync sync_mode, "`--sync`" }
    { "fsync" [] Value does fsync number, "`--fsync` with `--sync-call fsync`" }
    { "fdatasync" [] Value does fdatasync number, "`--fsync`" }
    { "end_fsync" [] Bool does end_fsync flag, "`--end-fsync`, also with a runtime" }
    { "fsync_on_close" [] Bool does fsync_on_close flag, "`--end-fsync`" }
    { "end_syncfs" [] Bool no ["0"], "strata does not sync a whole file system", "end_fsync" }
    { "write_barrier" [] Value no ["0"], "fio implements it as fdatasync, not as a barrier", "fdatasync" }
    { "sync_file_range" [] Value no [], "sync_file_range does not make data durable", "fdatasync" }
    { "mem" ["iomem"] Value does huge_pages memory, "`--huge-pages` for mmaphuge and shmhuge" }
    { "iomem_align" ["mem_align"] Value no ["0" "512" "4096" "4k"], "buffers are always page-aligned", "4k" }
    { "hugepage-size" [] Value no ["2m" "2097152"], "strata supports only huge pages of 2 MiB", "2m" }
    { "lockmem" [] Value no ["0"], "strata does not lock memory to shrink the page cache", "run in a control group with a memory limit" }
    { "hipri" [] Flag does hipri flag, "io_uring: `--iopoll`; pvsync2: `--hipri`" }
    { "hipri_percentage" [] Value no ["100"], "polling applies to all operations or to none", "hipri" }
    { "fixedbufs" [] Flag does fixedbufs flag, "`--register-buffers on`" }
    { "registerfiles" [] Flag does registerfiles flag, "`--register-files on`" }
    { "sqthread_poll" [] Flag does sqthread_poll flag, "`--sqpoll`" }
    { "sqthread_poll_cpu" [] Value does sqthread_poll_cpu number, "`--sqpoll-core`" }
    { "nonvectored" [] Value free flag, "each operation has one buffer and needs no vector" }
    { "libaio_vectored" [] Value no ["0"], "each operation has one buffer and needs no vector", "leave it out" }
    { "userspace_reap" [] Flag free flag, "completions are always reaped in user space if the kernel allows it" }
    { "uncached" [] Value does uncached flag, "pvsync2: `--dontcache`" }
    { "nowait" [] Value does nowait flag, "pvsync2: `--nowait`" }
    { "force_async" [] Value does force_async number, "`--force-async`" }
    { "readfua" [] Bool no ["0"], "strata does not set flags in device commands", "direct" }
    { "writefua" [] Bool no ["0"], "strata does not set flags in device commands", "sync=dsync" }
    { "thp" [] Flag no ["0"], "strata does not set the page size of mappings", "mem=mmaphuge for buffers" }
    { "gpu_dev_id" [] Value no [], "it applies only to mem=cudamalloc, which strata does not support", "mem=malloc" }

    // What is written and checked.
    { "zero_buffers" [] Flag does zero_buffers flag, "`--content zero`" }
    { "refill_buffers" [] Flag does refill_buffers flag, "`--refill full`" }
    { "scramble_buffers" [] Bool does scramble_buffers flag, "1: `--refill stamp`; 0: `--refill once`" }
    { "buffer_pattern" [] Value does buffer_pattern content, "`--content`; a name in single quotes is a file with the content" }
    { "buffer_compress_percentage" [] Value does buffer_compress_percentage percent, "`--compress`" }
    { "buffer_compress_chunk" [] Value no ["512" "1k" "1024" "2k" "2048" "4k" "4096"], "the compressible share applies to each 4 KiB, not to larger chunks", "4k" }
    { "dedupe_percentage" [] Value does dedupe_percentage percent, "`--dedupe`" }
    { "dedupe_mode" [] Value does dedupe_working_set dedupe_mode, "repeat: duplicates are copies of 16 blocks; working_set: `--dedupe-set`" }
    { "dedupe_global" [] Bool does dedupe_global flag, "`--dedupe-global`" }
    { "dedupe_working_set_percentage" [] Value does dedupe_working_set_percentage percent, "`--dedupe-set`, as a percentage of the job's size" }
    { "verify" [] Value does verify verification, "`--verify`, with strata's own headers and checksums" }
    { "do_verify" [] Bool does do_verify flag, "0 is `--no-read-back`" }
    { "verify_only" [] Flag does verify_only flag, "reads and checks the blocks and writes nothing" }
    { "verify_interval" [] Value does verify_interval positive, "`--verify-interval`; reduced, with a warning, to a divisor of all block sizes" }
    { "verify_fatal" [] Bool does verify_fatal flag, "`--on-mismatch stop`; without it all corrupt blocks are counted and the run fails" }
    { "verify_policy" [] Value does verify_policy verify_policy, "which writes the file of `verify_state_save` includes: fsynced excludes writes after the last sync" }
    { "verifysort" [] Bool free flag, "blocks are always read back in order of position" }
    { "verifysort_nr" [] Value free number, "blocks are always read back in order of position" }
    { "verify_offset" [] Value does verify_offset number, "all bytes of a block are checked; strata's header stays at the start of the block, with a warning" }
    { "verify_pattern" [] Value does verify_pattern content, "`--verify-pattern` with verify=pattern; with a checksum, blocks hold strata's own data, with a warning" }
    { "verify_pattern_interval" [] Bool no ["0"], "the content of a verified block depends on its position and sequence", "verify=crc32c" }
    { "verify_dump" [] Bool does verify_dump flag, "`--verify-dump .`: files NAME.OFFSET.received and .expected" }
    { "verify_async" [] Value does verify_async number, "the thread that reads a block also checks it, with a warning" }
    { "verify_async_cpus" [] Value free indexes, "it applies only to verify_async" }
    { "verify_backlog" [] Value does verify_backlog number, "`--verify-backlog`" }
    { "verify_backlog_batch" [] Value does verify_backlog_batch number, "`--verify-backlog N:BATCH`" }
    { "experimental_verify" [] Bool free flag, "strata has only one way to verify, which needs no log of the writes" }
    { "verify_state_load" [] Bool does verify_state_load flag, "checks only the writes listed in the file of `verify_state_save`, in the order of writing" }
    { "verify_state_save" [] Bool does verify_state_save flag, "1 writes a file `local-JOB-0-verify.state` in fio's format; default: no file" }
    { "verify_write_sequence" [] Bool no ["1"], "the sequence of writes is always checked", "leave it out" }
    { "verify_header_seed" [] Bool no ["1"], "the run of a block is always checked", "leave it out" }
    { "trim_percentage" [] Value no ["0"], "a job that verifies cannot trim its own writes", "rw=trimwrite without verify, or a job with rw=trim" }
    { "trim_verify_zero" [] Bool no ["0"], "a job that verifies cannot trim its own writes, and trimmed blocks are not checked for zeros", "rw=trimwrite without verify, or a job with rw=trim" }
    { "trim_backlog" [] Value no ["0"], "a job that verifies cannot trim its own writes", "rw=trimwrite without verify, or a job with rw=trim" }
    { "trim_backlog_batch" [] Value no ["0"], "it applies only to trim_backlog", "rw=trimwrite without verify, or a job with rw=trim" }

    // Logs of operations.
    { "read_iolog" [] Value does read_iolog text, "replays a log of version 2 or 3 on its files, at the logged times, with at most iodepth in flight" }
    { "write_iolog" [] Value does write_iolog text, "writes a log of version 3 with the completed operations, from the record" }
    { "read_iolog_chunked" [] Bool free flag, "a log is always read before the measurement starts" }
    { "replay_no_stall" [] Bool does replay_no_stall flag, "replayed operations start as soon as the queue has room" }
    { "replay_redirect" [] Value does replay_redirect text, "all replayed operations go to this file or device" }
    { "replay_scale" [] Value does replay_scale positive, "divides the offsets of a log by this number" }
    { "replay_align" [] Value does replay_align power_of_two, "rounds the offsets of a log down to multiples of this number" }
    { "replay_time_scale" [] Value does replay_time_scale positive, "replay speed in percent of the logged speed" }
    { "replay_skip" [] Value does replay_skip replay_classes, "kinds of operations that a replay skips" }
    { "merge_blktrace_file" [] Value no [], "strata does not read blktrace files", "one job for each load" }
    { "merge_blktrace_scalars" [] Value no [], "strata does not read blktrace files", "one job for each load" }
    { "merge_blktrace_iters" [] Value no [], "strata does not read blktrace files", "one job for each load" }

    // Zones and placement.
    { "zonemode" [] Value does zonemode zone_mode, "`--zones`: strided, or zbd for a zoned block device (emulated on other devices, as in fio); ranges are cut to whole zones" }
    { "zonesize" [] Value does zonesize number, "`--zones`" }
    { "zonecapacity" [] Value does zonecapacity number, "`--zones zbd,capacity=`, for emulated zones only; a zoned device reports its own capacity" }
    { "zonerange" [] Value does zonerange number, "`--zones`; default: as `zonesize`" }
    { "zoneskip" [] Value does zoneskip number, "`--zones`" }
    { "read_beyond_wp" [] Bool does read_beyond_wp flag, "`--zones zbd,read-beyond-wp`" }
    { "max_open_zones" [] Value does max_open_zones number, "`--zones zbd,max-open=`" }
    { "job_max_open_zones" [] Value does job_max_open_zones number, "`--zones zbd,thread-max-open=`" }
    { "ignore_zone_limits" [] Bool does ignore_zone_limits flag, "`--zones zbd,ignore-limits`" }
    { "zone_reset_threshold" [] Value does zone_reset_threshold fraction, "`--zones zbd,reset-threshold=`" }
    { "zone_reset_frequency" [] Value does zone_reset_frequency fraction, "`--zones zbd,reset-frequency=`" }
    { "recover_zbd_write_error" [] Bool free flag, "after a failed write strata always reads the zone's write pointer from the device and continues there, without repair writes" }
    { "write_zone_remainder" [] Bool no ["0"], "strata finishes a zone whose remainder is smaller than a block (BLKFINISHZONE) and writes no smaller block", "a block size that divides the zone capacity" }
    { "fdp" [] Bool no ["0"], "strata does not control data placement", "leave it out" }
    { "dataplacement" ["data_placement"] Value no ["none"], "strata does not control data placement", "leave it out" }
    { "plid_select" ["fdp_pli_select"] Value no [], "strata does not control data placement", "leave it out" }
    { "plids" ["fdp_pli"] Value no [], "strata does not control data placement", "leave it out" }
    { "dp_scheme" [] Value no [], "strata does not control data placement", "leave it out" }

    // Pace.
    { "rate" [] Value does rate limits, "`--rate`: bytes per second divided by the mean block size; latency starts when an operation is due" }
    { "rate_iops" [] Value does rate_iops limits, "`--rate`; latency starts when an operation is due" }
    { "rate_process" [] Value does rate_process arrivals, "`--arrivals`" }
    { "rate_min" ["ratemin"] Value does rate_min limits, "`--rate-bytes-min`, for all directions together" }
    { "rate_iops_min" [] Value does rate_iops_min limits, "`--rate-min`, for all directions together" }
    { "rate_cycle" ["ratecycle"] Value does rate_cycle milliseconds, "`--rate-cycle`; only for minimum rates, because each operation has its own due time" }
    { "rate_ignore_thinktime" [] Bool does rate_ignore_thinktime flag, "`--no-catch-up`; without it, operations that were due in a pause start at once after it" }
    { "thinktime" [] Value does thinktime microseconds, "`--think-time`" }
    { "thinktime_blocks" [] Value does thinktime_blocks positive, "`--think-blocks`" }
    { "thinktime_blocks_type" [] Value does thinktime_issue think_kind, "pauses always follow completions; issue gives a warning" }
    { "thinktime_iotime" [] Value does thinktime_iotime seconds, "`--think-after`" }
    { "thinktime_spin" [] Value does thinktime_spin microseconds, "`--think-spin`" }
    { "thinkcycles" [] Value no ["0"], "a pause is given in time, not in CPU cycles", "thinktime" }
    { "max_latency" [] Value does max_latency microseconds, "`--latency-max`" }
    { "latency_target" [] Value does latency_target microseconds, "`--latency-target`; the result is in `latency_depth`" }
    { "latency_window" [] Value does latency_window microseconds, "`--latency-target`" }
    { "latency_percentile" [] Value does latency_percentile share, "`--latency-target`" }
    { "latency_run" [] Bool does latency_run flag, "`--latency-target ...:run`" }
    { "flow" [] Value does flow number, "`--flow`" }
    { "flow_id" [] Value does flow_id number, "`--flow-group`" }
    { "flow_watermark" [] Value no [], "fio removed this option", "rate_iops in each job" }
    { "flow_sleep" [] Value free number, "a worker that is ahead always waits for less than a millisecond" }
    { "steadystate" ["ss"] Value does steadystate steady, "`--end-when-steady`" }
    { "steadystate_duration" ["ss_dur"] Value does steadystate_duration seconds, "`--end-when-steady`" }
    { "steadystate_ramp_time" ["ss_ramp"] Value does steadystate_ramp_time seconds, "`--end-when-steady`" }
    { "steadystate_check_interval" ["ss_interval"] Value does steadystate_check_interval milliseconds, "`--end-when-steady`" }

    // Where it runs.
    { "cpus_allowed" [] Value does cpus_allowed indexes, "`--cores`" }
    { "cpumask" [] Value does cpus_allowed mask, "`--cores`" }
    { "cpus_allowed_policy" [] Value does cpus_allowed_policy cores_policy, "`--cores-policy`; default: shared" }
    { "numa_cpu_nodes" [] Value does numa_cpu_nodes indexes, "`--numa`" }
    { "numa_mem_policy" [] Value does numa_mem_policy text, "`--numa-memory`" }
    { "nice" [] Value does nice signed, "`--nice`" }
    { "prio" [] Value does prio number, "`--priority`" }
    { "prioclass" [] Value does prioclass number, "`--priority`" }
    { "priohint" [] Value no [], "strata sets no priority hints on operations", "run under ionice(1)" }
    { "ioscheduler" [] Value does ioscheduler text, "`--scheduler`; the previous scheduler is restored after the run" }
    { "cgroup" [] Value no [], "strata does not change control groups", "run under systemd-run" }
    { "cgroup_nodelete" [] Bool no ["0"], "strata does not change control groups", "run under systemd-run" }
    { "cgroup_weight" [] Value no [], "strata does not change control groups", "run under systemd-run" }
    { "uid" [] Value no [], "strata does not change the user", "run under setpriv(1)" }
    { "gid" [] Value no [], "strata does not change the group", "run under setpriv(1)" }
    { "clocksource" [] Value free text, "strata chooses the clock, and the record names it" }
    { "gtod_cpu" [] Value no [], "strata does not reserve a CPU to read the clock", "leave it out" }
    { "job_start_clock_id" [] Value no ["0"], "the start time is always in wall-clock time", "leave it out" }
    { "continue_on_error" [] Value does continue_on_error on_errors, "`--on-error`" }
    { "ignore_error" [] Value does ignore_error ignored, "`--ignore-error`" }
    { "error_dump" [] Bool free flag, "each kind of error is reported once" }

    // What is shown.
    { "kb_base" [] Value does kb_base kb_base, "units of sizes, in input and output" }
    { "unit_base" [] Value does unit_base unit_base, "bytes or bits in the output" }
    { "significant_figures" [] Value no ["4"], "results always have four digits", "--output-format=json" }
    { "clat_percentiles" [] Bool does clat_percentiles flag, "which percentiles the output has" }
    { "lat_percentiles" [] Bool does lat_percentiles flag, "which percentiles the output has" }
    { "slat_percentiles" [] Bool does slat_percentiles flag, "which percentiles the output has" }
    { "percentile_list" [] Value does percentile_list percentiles, "which percentiles the output has" }
    { "disk_util" [] Bool free flag, "the record always has device statistics" }
    { "gtod_reduce" [] Bool does gtod_reduce flag, "latency is measured but not shown; rate samples are shown, as in fio" }
    { "disable_lat" [] Bool does disable_lat flag, "measured but not shown" }
    { "disable_clat" [] Bool does disable_clat flag, "measured but not shown" }
    { "disable_slat" [] Bool does disable_slat flag, "measured but not shown" }
    { "disable_bw_measurement" ["disable_bw"] Bool free flag, "rate samples are still taken, as in fio" }
    { "unified_rw_reporting" [] Value does unified unified, "shows directions separately, merged, or both; logs always separate them" }
    { "block_error_percentiles" [] Bool no ["0"], "strata does not count errors per block", "continue_on_error=all" }
    { "bwavgtime" [] Value does bwavgtime positive, "interval of the bandwidth samples in the output" }
    { "iopsavgtime" [] Value no ["500"], "IOPS and bandwidth samples share the interval bwavgtime", "bwavgtime" }
    { "per_job_logs" [] Bool does per_job_logs flag, "whether log names have the job's number" }
    { "write_bw_log" [] Bool does write_bw_log prefix, "`PREFIX_bw.N.log`, one line per interval of log_avg_msec, or per operation without it" }
    { "write_iops_log" [] Bool does write_iops_log prefix, "`PREFIX_iops.N.log`, one line per interval of log_avg_msec, or per operation without it" }
    { "write_lat_log" [] Bool does write_lat_log prefix, "`PREFIX_lat.N.log`, `_clat` and `_slat`, one line per interval of log_avg_msec, or per operation without it" }
    { "write_hist_log" [] Bool does write_hist_log prefix, "`PREFIX_clat_hist.N.log`, one line per interval" }
    { "log_avg_msec" [] Value does log_avg_msec number, "`--interval`" }
    { "log_hist_msec" [] Value does log_hist_msec number, "`--interval`" }
    { "log_hist_coarseness" [] Value no ["0"], "histogram logs always have all bins", "log_hist_coarseness=0" }
    { "log_window_value" ["log_max_value"] Value does log_value log_value, "whether a latency log line has the mean of its interval, the maximum, or both" }
    { "log_entries" [] Value free number, "logs are written from the record after the measurement" }
    { "log_offset" [] Bool does log_offset flag, "adds a column with the offset to logs; 0 in averages" }
    { "log_prio" [] Bool does log_prio flag, "logs show the priority in hexadecimal" }
    { "log_issue_time" [] Bool does log_issue_time flag, "adds a column with the issue time in nanoseconds since the start; 0 except in slat and clat logs of single operations" }
    { "log_compression" [] Value free number, "logs are written from the record after the measurement; fio also writes them as text" }
    { "log_compression_cpus" [] Value free indexes, "logs are written from the record after the measurement" }
    { "log_store_compressed" [] Bool does log_compressed flag, "logs are gzip files with the suffix .fz; `--inflate-log` and zcat read them" }
    { "log_alternate_epoch" ["log_unix_epoch"] Bool does log_epoch flag, "times in logs are Unix time" }
    { "log_alternate_epoch_clock_id" [] Value no ["0"], "times in logs count from the start or are Unix time (clock 0, CLOCK_REALTIME)", "0, or leave it out" }

    // Options of engines.
    { "cmdprio_percentage" [] Value does cmdprio_percentage percents, "`--operation-priority`" }
    { "cmdprio_class" [] Value does cmdprio_class limits, "`--operation-priority`" }
    { "cmdprio_hint" [] Value no [], "strata sets no priority hints on operations", "two jobs" }
    { "cmdprio" [] Value does cmdprio limits, "`--operation-priority`" }
    { "cmdprio_bssplit" [] Value does cmdprio_bssplit text, "`--operation-priority`" }
    { "cpuload" [] Value does cpuload percent, "cpuio: sets the ratio of `--cpu-chunk` to `--think-time`" }
    { "cpumode" [] Value does cpu_sorts cpu_mode, "cpuio: qsort is `--cpu-sort`" }
    { "cpuchunks" [] Value does cpuchunks positive, "cpuio: `--cpu-chunk`" }
    { "exit_on_io_done" [] Bool no ["0"], "a cpuio job ends only at its own runtime", "exitall in the I/O jobs" }
    { "program" [] Value does program text, "exec: `--program`, once per clone" }
    { "arguments" [] Value does arguments text, "exec: `--program-arguments`" }
    { "grace_time" [] Value does grace_time number, "exec: `--program-grace`" }
    { "std_redirect" [] Bool does std_redirect flag, "exec: `--program-output` with the job's name" }
    { "pool" [] Value does pool text, "rados and rbd: the pool of `rados://POOL` or `rbd:POOL/IMAGE`; dfs: label or UUID of a DAOS pool, `vos:DIR` or `engine://HOST:PORT/POOL`" }
    { "cont" [] Value does cont text, "dfs: the container of `dfs+daos://POOL/CONT` or `dfs+engine://HOST:PORT/POOL/CONT`" }
    { "chunk_size" [] Value no ["0"], "files always use the chunk size of their file system", "set it when you create the container: daos container create --chunk-size" }
    { "object_class" [] Value no [], "files always use the object class of their file system", "set it when you create the container: daos container create --file-oclass" }
    { "svcl" [] Value no [], "DAOS since version 1 finds the servers of a pool without it", "leave it out" }
    { "donorname" [] Value of "e4defrag" } { "inplace" [] Value of "e4defrag" }
    { "stat_type" [] Value no ["stat"], "strata uses only stat(2)", "stat" }
    { "volume" [] Value of "gfapi" } { "brick" [] Value of "gfapi" } { "single-instance" [] Value of "gfapi" }
    { "https" [] Value does https https, "http: the scheme of `--s3-endpoint`; insecure is rejected" }
    { "http_host" [] Value does http_host text, "http: `--s3-endpoint`; `BUCKET.s3.REGION...` is `--s3-addressing virtual-host`" }
    { "http_user" [] Value does http_user text, "http: rejected with http_mode=s3, whose requests are signed with keys" }
    { "http_pass" [] Value does http_pass text, "http: rejected with http_mode=s3, whose requests are signed with keys" }
    { "http_s3_key" [] Value does http_s3_key text, "http: the secret key; default: AWS_SECRET_ACCESS_KEY. No output contains it" }
    { "http_s3_keyid" [] Value does http_s3_keyid text, "http: the access key; default: AWS_ACCESS_KEY_ID" }
    { "http_s3_security_token" [] Value no [], "strata does not support temporary keys with a session token", "permanent keys" }
    { "http_swift_auth_token" [] Value no [], "strata does not support the Swift protocol", "http_mode=s3, which Swift gateways also support" }
    { "http_s3_region" [] Value does http_s3_region text, "http: `--s3-region`" }
    { "http_s3_sse_customer_key" [] Value no [], "strata does not support encryption with client keys", "default encryption of the bucket" }
    { "http_s3_sse_customer_algorithm" [] Value no ["AES256"], "strata does not support encryption with client keys", "default encryption of the bucket" }
    { "http_s3_storage_class" [] Value no ["STANDARD"], "objects always use the bucket's default storage class", "lifecycle rules of the bucket" }
    { "http_mode" [] Value does http_mode http_mode, "http: s3 is the driver s3; swift and webdav (fio's default) are rejected" }
    { "http_verbose" [] Value no ["0"], "strata does not print requests", "0" }
    { "http_object_mode" [] Value does http_ranges http_object_mode, "http: block: one object per block, `FILE_OFFSET_SIZE`; range: one object per file, read in ranges" }
    { "write_mode" [] Value of "io_uring_cmd" } { "verify_mode" [] Value of "io_uring_cmd" }
    { "cmd_type" [] Value of "io_uring_cmd" } { "cdb_len" [] Value of "io_uring_cmd" }
    { "verify_bytchk" [] Value of "io_uring_cmd" } { "read_mode" [] Value of "io_uring_cmd" }
    { "md_per_io_size" [] Value of "io_uring_cmd" } { "pi_act" [] Value of "io_uring_cmd" }
    { "pi_chk" [] Value of "io_uring_cmd" } { "apptag" [] Value of "io_uring_cmd" }
    { "apptag_mask" [] Value of "io_uring_cmd" } { "deac" [] Value of "io_uring_cmd" }
    { "libblkio_driver" [] Value of "libblkio" } { "libblkio_path" [] Value of "libblkio" }
    { "libblkio_pre_connect_props" [] Value of "libblkio" } { "libblkio_num_entries" [] Value of "libblkio" }
    { "libblkio_queue_size" [] Value of "libblkio" } { "libblkio_pre_start_props" [] Value of "libblkio" }
    { "libblkio_vectored" [] Flag of "libblkio" } { "libblkio_write_zeroes_on_trim" [] Flag of "libblkio" }
    { "libblkio_wait_mode" [] Value of "libblkio" } { "libblkio_force_enable_completion_eventfd" [] Flag of "libblkio" }
    { "gpu_dev_ids" [] Value does gpu_dev_ids text, "libcufile: `--memory gpu:N`; workers use the listed devices in turn" }
    { "cuda_io" [] Value does cuda_io text, "libcufile: cufile (the default): engine `cufile`; posix: `psync` with `--gpu-path staged`" } { "rocm_io" [] Value of "libhipfile" }
    { "namenode" [] Value of "libhdfs" } { "hostname" [] Value of "net, rdma or libhdfs" }
    { "port" [] Value of "net, rdma or libhdfs" } { "hdfsdirectory" [] Value of "libhdfs" }
    { "chunck_size" [] Value of "libhdfs" } { "single_instance" [] Value of "libhdfs" }
    { "hdfs_use_direct" [] Value of "libhdfs" } { "initiator" [] Value of "libiscsi" }
    { "skip_bad" [] Value of "mtd" } { "uri" [] Value of "nbd" } { "nfs_url" [] Value of "nfs" }
    { "protocol" ["proto"] Value of "net" } { "nodelay" [] Bool of "net" } { "listen" [] Flag of "net" }
    { "pingpong" [] Flag of "net" } { "interface" [] Value of "net" } { "ttl" [] Value of "net" }
    { "window_size" [] Value of "net" } { "mss" [] Value of "net" }
    { "clustername" [] Value no ["ceph"], "the configuration file determines the cluster", "conf=FILE with its mon_host" }
    { "clientname" [] Value does clientname text, "rados: `--rados-user`; rbd: `rbd:POOL/IMAGE:id=USER`" }
    { "conf" [] Value does conf text, "rados: `--rados-conf`; rbd: `rbd:POOL/IMAGE:conf=FILE`; default: CEPH_CONF, then /etc/ceph/ceph.conf" }
    { "busy_poll" [] Bool no ["0"], "workers always wait for completions without polling", "0" }
    { "touch_objects" [] Bool free flag, "a job that writes creates its objects before it starts; a job that reads creates none" }
    { "rbdname" [] Value does rbdname text, "rbd: the image of `rbd:POOL/IMAGE`" }
    { "rbd_encryption_format" [] Value no [], "strata does not support librbd encryption", "rbd-nbd map with --encryption-format, then io_uring on the mapped device" }
    { "rbd_encryption_passphrase" [] Value no [], "strata does not support librbd encryption", "rbd-nbd map with --encryption-passphrase-file, then io_uring on the mapped device" }
    { "bindname" [] Value of "rdma" } { "verb" [] Value of "rdma" }
    { "serverip" [] Value of "librpma" } { "direct_write_to_pmem" [] Bool of "librpma" }
    { "busy_wait_polling" [] Bool of "librpma" }
    { "sg_write_mode" [] Value of "sg" } { "stream_id" [] Value of "sg" }
    { "no_completion_thread" [] Flag of "windowsaio" }
    { "xnvme_be" [] Value of "xnvme" } { "xnvme_mem" [] Value of "xnvme" } { "xnvme_async" [] Value of "xnvme" }
    { "xnvme_sync" [] Value of "xnvme" } { "xnvme_admin" [] Value of "xnvme" } { "xnvme_dev_nsid" [] Value of "xnvme" }
    { "xnvme_dev_subnqn" [] Value of "xnvme" } { "xnvme_iovec" [] Flag of "xnvme" }
}
