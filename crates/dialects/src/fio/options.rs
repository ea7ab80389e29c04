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
            nearest: "ioengine=psync, libaio or io_uring and their options",
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
    { "wait_for" [] Value does wait_for text, "the job is of the stage after that of the job named, which must be alone in it" }
    { "loops" [] Value does loops positive, "`--bytes`: so many times the size" }
    { "numjobs" [] Value does numjobs count, "`--threads`, or one concurrent phase a clone" }
    { "thread" ["threads"] Flag free flag, "workers are threads of one process either way" }
    { "stonewall" ["wait_for_previous"] Flag does stonewall flag, "the phase is not `--concurrent`" }
    { "new_group" [] Flag does new_group flag, "group of the report" }
    { "group_reporting" [] Flag does group_reporting flag, "clones of a job are the threads of one phase" }
    { "startdelay" [] Value does startdelay seconds, "`--start-delay`" }
    { "runtime" ["timeout"] Value does runtime seconds, "`--time`; whichever of it and the size comes first" }
    { "time_based" [] Flag does time_based flag, "`--time` alone" }
    { "ramp_time" [] Value does ramp_time seconds, "`--warmup`" }
    { "ramp_size" [] Value no [], "warm-up is a time", "ramp_time" }
    { "exitall" [] Flag does exitall flag, "`--end-others`, of all jobs where one has it" }
    { "exit_what" [] Value does exit_what text, "jobs that run at the same time; refused where it would be others" }
    { "exitall_on_error" [] Flag free flag, "a job that fails ends those beside it, and the run, anyway" }
    { "exec_prerun" [] Value does exec_prerun text, "`--run-before`; once for clones that are the threads of one phase" }
    { "exec_postrun" [] Value does exec_postrun text, "`--run-after`; once for clones that are the threads of one phase" }
    { "profile" [] Value no [], "profiles are code of fio's", "a job file" }
    { "comm" [] Value no [], "threads keep their names", "name" }
    { "stats" [] Bool does stats flag, "0 leaves the job out of the results" }

    // What is done.
    { "rw" ["readwrite"] Value does access access, "`--op`; `read:8k` is `--gap`, `randread:8` is `--run`" }
    { "rw_sequencer" [] Value does rw_identical sequencer, "`--run identical:N`" }
    { "rwmixread" [] Value does rwmixread mix_percent, "`--mix`" }
    { "rwmixwrite" [] Value does rwmixread mix_rest_percent, "`--mix`" }
    { "rwmixcycle" [] Value no [], "fio has withdrawn it", "rwmixread" }
    { "bs" ["blocksize"] Value does bs sizes, "`--block-size`, by class where directions differ" }
    { "ba" ["blockalign"] Value does ba sizes, "`--align`" }
    { "bsrange" ["blocksize_range"] Value does bsrange ranges, "`--block-size`" }
    { "bssplit" [] Value does bssplit splits, "`--block-size`" }
    { "bs_unaligned" ["blocksize_unaligned"] Flag does bs_unaligned flag, "`--block-size` in steps of one byte" }
    { "bs_is_seq_rand" [] Bool does bs_is_seq_rand flag, "`--block-size`: the first size in order, the second at random; refused where a job is both" }
    { "percentage_random" [] Value does percentage_random percents, "`--random-percent`" }
    { "percentage_sequential" [] Value no [], "fio has withdrawn it", "percentage_random" }
    { "norandommap" [] Flag does norandommap flag, "`--pattern uniform`" }
    { "softrandommap" [] Bool free flag, "the order of blocks needs no memory for a map" }
    { "random_generator" [] Value does lfsr generator, "one generator serves all; lfsr has each block once a pass also with norandommap" }
    { "random_distribution" [] Value does random_distribution distribution, "`--pattern`" }
    { "random_sequence_stride" [] Bool does random_sequence_stride flag, "`--pattern groups:...` for random_distribution=sequence" }
    { "randrepeat" [] Bool does randrepeat flag, "1: `--seed 137`; 0: a drawn seed" }
    { "allrandrepeat" [] Bool does randrepeat flag, "as `randrepeat`" }
    { "randseed" [] Value does randseed number, "`--seed`" }
    { "sprandom" [] Bool no ["0"], "one pass over regions with growing shares of blocks written again is not drawn", "rw=write and then rw=randwrite with loops=2, which take longer to the same state" }
    { "spr_num_regions" [] Value no [], "it is for sprandom", "rw=randwrite with loops=2" }
    { "spr_op" [] Value no [], "it is for sprandom", "rw=randwrite with loops=2" }
    { "spr_cs" [] Value no [], "it is for sprandom", "rw=randwrite with loops=2" }
    { "num_range" [] Value no ["1"], "several ranges in one trim are a command of NVMe, which fio sends by ioengine=io_uring_cmd alone", "rw=randtrim, one range each" }
    { "size" [] Value does size amount, "`--size` of each file, the job's size over its files; in percent of what is there" }
    { "io_size" ["io_limit"] Value does io_size amount, "`--bytes`" }
    { "number_ios" [] Value does number_ios number, "`--count`" }
    { "filesize" [] Value does filesize size_range, "`--size` of each file; of a range `--sizes` that are drawn from it" }
    { "fill_device" ["fill_fs"] Bool does fill_device flag, "`--end-when-full` for one file; a block device is written to its end" }
    { "file_append" [] Bool does file_append flag, "`--offset` at the end of what is there" }
    { "offset" ["fileoffset"] Value does offset amount, "`--offset`" }
    { "offset_align" [] Value does offset_align number, "an offset in percent is rounded up to it" }
    { "offset_increment" [] Value does offset_increment amount, "`--offset` of each clone's own phase" }

    // Files.
    { "filename" [] Value does filename text, "targets; a colon between two, `\\:` for a colon" }
    { "directory" [] Value does directory text, "directory of the targets; several are dealt out to the clones" }
    { "filename_format" [] Value does filename_format text, "names of the targets" }
    { "unique_filename" [] Bool does unique_filename flag, "with `--client`, 0 leaves the name of the client out of names of files in `directory`" }
    { "filetype" [] Value no ["none"], "the type is that of what lies there; a new target is a file", "leave it out" }
    { "lockfile" [] Value no ["none"], "files are not locked", "a job for each file" }
    { "opendir" [] Value no [], "a directory is not walked for targets", "filename=a:b:c" }
    { "nrfiles" ["nr_files"] Value does nrfiles count, "so many targets" }
    { "openfiles" [] Value does openfiles count, "all files are open, with a warning where fewer are asked for" }
    { "file_service_type" [] Value does file_service_type text, "`--visit`" }
    { "fallocate" [] Value does fallocate layout, "`--layout allocate` or `sparse` for jobs that only write" }
    { "overwrite" [] Bool does overwrite flag, "`--layout fill`" }
    { "create_serialize" [] Bool free flag, "files are laid out before anything is measured" }
    { "create_fsync" [] Bool free flag, "files are laid out before anything is measured" }
    { "create_on_open" [] Bool does create_on_open flag, "`--layout sparse` for a job that only writes" }
    { "create_only" [] Bool does create_only flag, "the files are laid out, and nothing is done" }
    { "allow_file_create" [] Bool does allow_file_create flag, "0 refuses targets that do not exist" }
    { "allow_mounted_write" [] Bool no ["0"], "safety is not a matter of job files", "strata as --destroy-data fio ..." }
    { "unlink" [] Bool does unlink flag, "0 is `--keep`; 1 removes what the run created" }
    { "unlink_each_loop" [] Bool does unlink_each_loop flag, "as `unlink` for a job that runs once; refused with loops" }
    { "pre_read" [] Bool does pre_read flag, "`--cache warm`" }
    { "invalidate" [] Bool does invalidate flag, "1: `--cache drop`; 0: `--cache keep`" }
    { "fadvise_hint" [] Value does fadvise_hint advice, "`--advise`; by the order of access where it is not given" }
    { "write_hint" [] Value no ["none"], "no lifetime hints are given", "leave it out" }

    // The driver.
    { "ioengine" [] Value does engine engine, "`--engine`" }
    { "iodepth" [] Value does iodepth count, "`--depth`; 1 with an engine that waits" }
    { "iodepth_batch" ["iodepth_batch_submit"] Value does iodepth_batch number, "`--batch`" }
    { "iodepth_batch_complete_min" ["iodepth_batch_complete"] Value does iodepth_batch_complete_min count, "`--batch-min`" }
    { "iodepth_batch_complete_max" [] Value does iodepth_batch_complete_max number, "`--batch-max`; as `iodepth_batch_complete_min` where it is not given" }
    { "iodepth_low" [] Value does iodepth_low number, "the queue is filled at once; a lower mark is refused" }
    { "serialize_overlap" [] Bool does serialize_overlap flag, "`--serialize-overlap`, among the operations of a clone" }
    { "io_submit_mode" [] Value does offload submit_mode, "offload with a rate: the open loop, which it stands in for; without one the thread that times submits, which is told" }
    { "direct" [] Bool does direct flag, "`--direct`" }
    { "buffered" [] Bool does direct not, "0 is `--direct`" }
    { "atomic" [] Bool no ["0"], "writes are not asked to be atomic", "sync=dsync" }
    { "sync" [] Value does sync sync_mode, "`--sync`" }
    { "fsync" [] Value does fsync number, "`--fsync` with `--sync-call fsync`" }
    { "fdatasync" [] Value does fdatasync number, "`--fsync`" }
    { "end_fsync" [] Bool does end_fsync flag, "`--end-fsync`; with a runtime too" }
    { "fsync_on_close" [] Bool does fsync_on_close flag, "`--end-fsync`" }
    { "end_syncfs" [] Bool no ["0"], "a whole file system is not synced", "end_fsync" }
    { "write_barrier" [] Value no ["0"], "it is not a barrier but fdatasync", "fdatasync" }
    { "sync_file_range" [] Value no [], "it makes nothing durable", "fdatasync" }
    { "mem" ["iomem"] Value does huge_pages memory, "`--huge-pages` for mmaphuge and shmhuge" }
    { "iomem_align" ["mem_align"] Value no ["0" "512" "4096" "4k"], "buffers lie on pages", "4k" }
    { "hugepage-size" [] Value no ["2m" "2097152"], "huge pages are of 2 MiB", "2m" }
    { "lockmem" [] Value no ["0"], "memory is not taken away from the page cache", "a control group around the run" }
    { "hipri" [] Flag does hipri flag, "io_uring: `--iopoll`; pvsync2: `--hipri`" }
    { "hipri_percentage" [] Value no ["100"], "all operations are polled for or none", "hipri" }
    { "fixedbufs" [] Flag does fixedbufs flag, "`--register-buffers on`" }
    { "registerfiles" [] Flag does registerfiles flag, "`--register-files on`" }
    { "sqthread_poll" [] Flag does sqthread_poll flag, "`--sqpoll`" }
    { "sqthread_poll_cpu" [] Value does sqthread_poll_cpu number, "`--sqpoll-core`" }
    { "nonvectored" [] Value free flag, "operations have one buffer and need no vector" }
    { "libaio_vectored" [] Value no ["0"], "operations have one buffer and need no vector", "leave it out" }
    { "userspace_reap" [] Flag free flag, "completions are taken from the ring where the kernel allows it" }
    { "uncached" [] Value does uncached flag, "pvsync2: `--dontcache`" }
    { "nowait" [] Value does nowait flag, "pvsync2: `--nowait`" }
    { "force_async" [] Value does force_async number, "`--force-async`" }
    { "readfua" [] Bool no ["0"], "commands of a device are not shaped", "direct" }
    { "writefua" [] Bool no ["0"], "commands of a device are not shaped", "sync=dsync" }
    { "thp" [] Flag no ["0"], "mappings get the pages that the kernel gives", "mem=mmaphuge for buffers" }
    { "gpu_dev_id" [] Value no [], "buffers are memory of the process", "mem=malloc" }

    // What is written and checked.
    { "zero_buffers" [] Flag does zero_buffers flag, "`--content zero`" }
    { "refill_buffers" [] Flag does refill_buffers flag, "`--refill full`" }
    { "scramble_buffers" [] Bool does scramble_buffers flag, "1: `--refill stamp`; 0: `--refill once`" }
    { "buffer_pattern" [] Value does buffer_pattern content, "`--content`; a file in single quotes is read" }
    { "buffer_compress_percentage" [] Value does buffer_compress_percentage percent, "`--compress`" }
    { "buffer_compress_chunk" [] Value no ["512" "1k" "1024" "2k" "2048" "4k" "4096"], "the share compresses in each 4 KiB, not over larger chunks", "4k" }
    { "dedupe_percentage" [] Value does dedupe_percentage percent, "`--dedupe`" }
    { "dedupe_mode" [] Value does dedupe_working_set dedupe_mode, "repeat: copies are of 16 blocks; working_set: `--dedupe-set`" }
    { "dedupe_global" [] Bool does dedupe_global flag, "`--dedupe-global`" }
    { "dedupe_working_set_percentage" [] Value does dedupe_working_set_percentage percent, "`--dedupe-set`: of the job's size" }
    { "verify" [] Value does verify verification, "`--verify`, with headers and sums of strata's own" }
    { "do_verify" [] Bool does do_verify flag, "0 is `--no-read-back`" }
    { "verify_only" [] Flag does verify_only flag, "the blocks are read and checked, and nothing is written" }
    { "verify_interval" [] Value does verify_interval positive, "`--verify-interval`; at most what all blocks are multiples of, which is told" }
    { "verify_fatal" [] Bool does verify_fatal flag, "`--on-mismatch stop`; without it all wrong blocks are counted, and the run fails" }
    { "verify_policy" [] Value does verify_policy verify_policy, "which writes a file of `verify_state_save` counts: fsynced leaves out those after the last sync" }
    { "verifysort" [] Bool free flag, "blocks are read back in order of position" }
    { "verifysort_nr" [] Value free number, "blocks are read back in order of position" }
    { "verify_offset" [] Value does verify_offset number, "all bytes of a block are checked; strata's header stands at its beginning, which is told" }
    { "verify_pattern" [] Value does verify_pattern content, "`--verify-pattern` with verify=pattern; with a sum blocks hold strata's own data, which is told" }
    { "verify_pattern_interval" [] Bool no ["0"], "a verified block is filled from its position and sequence", "verify=crc32c" }
    { "verify_dump" [] Bool does verify_dump flag, "`--verify-dump .`: files NAME.OFFSET.received and .expected" }
    { "verify_async" [] Value does verify_async number, "the thread that reads blocks checks them, which is told" }
    { "verify_async_cpus" [] Value free indexes, "it is for verify_async" }
    { "verify_backlog" [] Value does verify_backlog number, "`--verify-backlog`" }
    { "verify_backlog_batch" [] Value does verify_backlog_batch number, "`--verify-backlog N:BATCH`" }
    { "experimental_verify" [] Bool free flag, "there is one way to verify, and it needs no log of the writes" }
    { "verify_state_load" [] Bool does verify_state_load flag, "only the writes that the file of `verify_state_save` counts are checked, in the order in which they were made" }
    { "verify_state_save" [] Bool does verify_state_save flag, "1 leaves a file `local-JOB-0-verify.state` in fio's format; without it none is left" }
    { "verify_write_sequence" [] Bool no ["1"], "the sequence of writes is always checked", "leave it out" }
    { "verify_header_seed" [] Bool no ["1"], "the run of a block is always checked", "leave it out" }
    { "trim_percentage" [] Value no ["0"], "a job that verifies does not trim what it has written", "rw=trimwrite without verify, or a job with rw=trim" }
    { "trim_verify_zero" [] Bool no ["0"], "a job that verifies does not trim what it has written, and trimmed blocks are not checked for zeros", "rw=trimwrite without verify, or a job with rw=trim" }
    { "trim_backlog" [] Value no ["0"], "a job that verifies does not trim what it has written", "rw=trimwrite without verify, or a job with rw=trim" }
    { "trim_backlog_batch" [] Value no ["0"], "it is for trim_backlog", "rw=trimwrite without verify, or a job with rw=trim" }

    // Logs of operations.
    { "read_iolog" [] Value does read_iolog text, "the operations of a log of version 2 or 3, on its files, when it says, at most iodepth at a time" }
    { "write_iolog" [] Value does write_iolog text, "a log of version 3 of what completed, made from the record" }
    { "read_iolog_chunked" [] Bool free flag, "a log is read before anything is measured" }
    { "replay_no_stall" [] Bool does replay_no_stall flag, "operations of a log start as soon as there is room" }
    { "replay_redirect" [] Value does replay_redirect text, "all operations of a log go to this file or device" }
    { "replay_scale" [] Value does replay_scale positive, "offsets of a log are divided by it" }
    { "replay_align" [] Value does replay_align power_of_two, "offsets of a log are rounded down to multiples of it" }
    { "replay_time_scale" [] Value does replay_time_scale positive, "in percent of the log's pace" }
    { "replay_skip" [] Value does replay_skip replay_classes, "kinds of operations of a log that are left out" }
    { "merge_blktrace_file" [] Value no [], "traces are not read", "a job for each load" }
    { "merge_blktrace_scalars" [] Value no [], "traces are not read", "a job for each load" }
    { "merge_blktrace_iters" [] Value no [], "traces are not read", "a job for each load" }

    // Zones and placement.
    { "zonemode" [] Value does zonemode zone_mode, "`--zones`: strided, and zbd for the zones of a zoned block device (emulated on others, as in fio); ranges are cut to whole zones" }
    { "zonesize" [] Value does zonesize number, "`--zones`" }
    { "zonecapacity" [] Value does zonecapacity number, "`--zones zbd,capacity=`, of emulated zones: a zoned device's own holds" }
    { "zonerange" [] Value does zonerange number, "`--zones`; as `zonesize` where it is not given" }
    { "zoneskip" [] Value does zoneskip number, "`--zones`" }
    { "read_beyond_wp" [] Bool does read_beyond_wp flag, "`--zones zbd,read-beyond-wp`" }
    { "max_open_zones" [] Value does max_open_zones number, "`--zones zbd,max-open=`" }
    { "job_max_open_zones" [] Value does job_max_open_zones number, "`--zones zbd,thread-max-open=`" }
    { "ignore_zone_limits" [] Bool does ignore_zone_limits flag, "`--zones zbd,ignore-limits`" }
    { "zone_reset_threshold" [] Value does zone_reset_threshold fraction, "`--zones zbd,reset-threshold=`" }
    { "zone_reset_frequency" [] Value does zone_reset_frequency fraction, "`--zones zbd,reset-frequency=`" }
    { "recover_zbd_write_error" [] Bool free flag, "after a failed write the device is asked for the zone's write pointer in any case, and writes go on there; nothing is written to move it" }
    { "write_zone_remainder" [] Bool no ["0"], "what is left of a zone and holds no block is finished (BLKFINISHZONE), not written with a smaller one", "a block size that divides the zone capacity" }
    { "fdp" [] Bool no ["0"], "placement is left to the device", "leave it out" }
    { "dataplacement" ["data_placement"] Value no ["none"], "placement is left to the device", "leave it out" }
    { "plid_select" ["fdp_pli_select"] Value no [], "placement is left to the device", "leave it out" }
    { "plids" ["fdp_pli"] Value no [], "placement is left to the device", "leave it out" }
    { "dp_scheme" [] Value no [], "placement is left to the device", "leave it out" }

    // Pace.
    { "rate" [] Value does rate limits, "`--rate`: bytes a second over the mean block; latency counts from when an operation was due" }
    { "rate_iops" [] Value does rate_iops limits, "`--rate`; latency counts from when an operation was due" }
    { "rate_process" [] Value does rate_process arrivals, "`--arrivals`" }
    { "rate_min" ["ratemin"] Value does rate_min limits, "`--rate-bytes-min`, of all directions together" }
    { "rate_iops_min" [] Value does rate_iops_min limits, "`--rate-min`, of all directions together" }
    { "rate_cycle" ["ratecycle"] Value does rate_cycle milliseconds, "`--rate-cycle`; to the pace it means nothing: each operation has a time of its own" }
    { "rate_ignore_thinktime" [] Bool does rate_ignore_thinktime flag, "`--no-catch-up`; without it operations that were due in a pause follow at once" }
    { "thinktime" [] Value does thinktime microseconds, "`--think-time`" }
    { "thinktime_blocks" [] Value does thinktime_blocks positive, "`--think-blocks`" }
    { "thinktime_blocks_type" [] Value does thinktime_issue think_kind, "a pause comes after completions; with issue that is told" }
    { "thinktime_iotime" [] Value does thinktime_iotime seconds, "`--think-after`" }
    { "thinktime_spin" [] Value does thinktime_spin microseconds, "`--think-spin`" }
    { "thinkcycles" [] Value no ["0"], "a pause does not burn processor time", "thinktime" }
    { "max_latency" [] Value does max_latency microseconds, "`--latency-max`" }
    { "latency_target" [] Value does latency_target microseconds, "`--latency-target`; the depth found stands in `latency_depth`" }
    { "latency_window" [] Value does latency_window microseconds, "`--latency-target`" }
    { "latency_percentile" [] Value does latency_percentile share, "`--latency-target`" }
    { "latency_run" [] Bool does latency_run flag, "`--latency-target ...:run`" }
    { "flow" [] Value does flow number, "`--flow`" }
    { "flow_id" [] Value does flow_id number, "`--flow-group`" }
    { "flow_watermark" [] Value no [], "fio has withdrawn it", "rate_iops in each" }
    { "flow_sleep" [] Value free number, "a worker that is ahead waits for a part of a millisecond" }
    { "steadystate" ["ss"] Value does steadystate steady, "`--end-when-steady`" }
    { "steadystate_duration" ["ss_dur"] Value does steadystate_duration seconds, "`--end-when-steady`" }
    { "steadystate_ramp_time" ["ss_ramp"] Value does steadystate_ramp_time seconds, "`--end-when-steady`" }
    { "steadystate_check_interval" ["ss_interval"] Value does steadystate_check_interval milliseconds, "`--end-when-steady`" }

    // Where it runs.
    { "cpus_allowed" [] Value does cpus_allowed indexes, "`--cores`" }
    { "cpumask" [] Value does cpus_allowed mask, "`--cores`" }
    { "cpus_allowed_policy" [] Value does cpus_allowed_policy cores_policy, "`--cores-policy`; shared where it is not given" }
    { "numa_cpu_nodes" [] Value does numa_cpu_nodes indexes, "`--numa`" }
    { "numa_mem_policy" [] Value does numa_mem_policy text, "`--numa-memory`" }
    { "nice" [] Value does nice signed, "`--nice`" }
    { "prio" [] Value does prio number, "`--priority`" }
    { "prioclass" [] Value does prioclass number, "`--priority`" }
    { "priohint" [] Value no [], "operations carry no hints", "ionice(1) around the run" }
    { "ioscheduler" [] Value does ioscheduler text, "`--scheduler`: what was chosen before comes back" }
    { "cgroup" [] Value no [], "control groups are left as they are", "systemd-run around the run" }
    { "cgroup_nodelete" [] Bool no ["0"], "control groups are left as they are", "systemd-run around the run" }
    { "cgroup_weight" [] Value no [], "control groups are left as they are", "systemd-run around the run" }
    { "uid" [] Value no [], "the user is not changed", "setpriv(1) around the run" }
    { "gid" [] Value no [], "the group is not changed", "setpriv(1) around the run" }
    { "clocksource" [] Value free text, "the clock is chosen by the machine, and the record names it" }
    { "gtod_cpu" [] Value no [], "no processor is set aside to read the clock", "leave it out" }
    { "job_start_clock_id" [] Value no ["0"], "the start is given on the clock of the day", "leave it out" }
    { "continue_on_error" [] Value does continue_on_error on_errors, "`--on-error`" }
    { "ignore_error" [] Value does ignore_error ignored, "`--ignore-error`" }
    { "error_dump" [] Bool free flag, "every kind of failure is told once" }

    // What is shown.
    { "kb_base" [] Value does kb_base kb_base, "units of sizes, read and shown" }
    { "unit_base" [] Value does unit_base unit_base, "bytes or bits, shown" }
    { "significant_figures" [] Value no ["4"], "figures have four digits", "--output-format=json" }
    { "clat_percentiles" [] Bool does clat_percentiles flag, "percentiles shown" }
    { "lat_percentiles" [] Bool does lat_percentiles flag, "percentiles shown" }
    { "slat_percentiles" [] Bool does slat_percentiles flag, "percentiles shown" }
    { "percentile_list" [] Value does percentile_list percentiles, "percentiles shown" }
    { "disk_util" [] Bool free flag, "what the devices did is in the record" }
    { "gtod_reduce" [] Bool does gtod_reduce flag, "latency is measured, and not shown; samples of rates are, as by fio" }
    { "disable_lat" [] Bool does disable_lat flag, "measured, and not shown" }
    { "disable_clat" [] Bool does disable_clat flag, "measured, and not shown" }
    { "disable_slat" [] Bool does disable_slat flag, "measured, and not shown" }
    { "disable_bw_measurement" ["disable_bw"] Bool free flag, "samples of rates are taken all the same, by fio too" }
    { "unified_rw_reporting" [] Value does unified unified, "directions shown each on its own, as one, or both; logs have each on its own" }
    { "block_error_percentiles" [] Bool no ["0"], "errors are not counted by block", "continue_on_error=all" }
    { "bwavgtime" [] Value does bwavgtime positive, "bandwidth samples, shown" }
    { "iopsavgtime" [] Value no ["500"], "samples of both rates have the length of bwavgtime", "bwavgtime" }
    { "per_job_logs" [] Bool does per_job_logs flag, "names of the logs" }
    { "write_bw_log" [] Bool does write_bw_log prefix, "`PREFIX_bw.N.log`, one line an interval" }
    { "write_iops_log" [] Bool does write_iops_log prefix, "`PREFIX_iops.N.log`, one line an interval" }
    { "write_lat_log" [] Bool does write_lat_log prefix, "`PREFIX_lat.N.log` and its like, one line an interval" }
    { "write_hist_log" [] Bool does write_hist_log prefix, "`PREFIX_clat_hist.N.log`, one line an interval" }
    { "log_avg_msec" [] Value does log_avg_msec number, "`--interval`" }
    { "log_hist_msec" [] Value does log_hist_msec number, "`--interval`" }
    { "log_hist_coarseness" [] Value no ["0"], "histograms are logged with all their bins", "log_hist_coarseness=0" }
    { "log_window_value" ["log_max_value"] Value does log_value log_value, "a line of a latency log holds the mean of its interval, the largest, or both" }
    { "log_entries" [] Value free number, "logs are made from the record when all is measured" }
    { "log_offset" [] Bool does log_offset flag, "logs with a column for the position; 0 in averages" }
    { "log_prio" [] Bool does log_prio flag, "logs with the priority in hexadecimal" }
    { "log_issue_time" [] Bool does log_issue_time flag, "logs with a column for the time of issue, in nanoseconds from the start; 0 but in slat and clat logs of single operations" }
    { "log_compression" [] Value free number, "logs are made from the record when all is measured, and fio too writes them as text" }
    { "log_compression_cpus" [] Value free indexes, "logs are made from the record when all is measured" }
    { "log_store_compressed" [] Bool does log_compressed flag, "logs are gzip files with .fz behind their names; `--inflate-log` and zcat read them" }
    { "log_alternate_epoch" ["log_unix_epoch"] Bool does log_epoch flag, "times in logs count from 1970" }
    { "log_alternate_epoch_clock_id" [] Value no ["0"], "times in logs count from the start or from 1970 (clock 0, CLOCK_REALTIME)", "0, or leave it out" }

    // Options of engines.
    { "cmdprio_percentage" [] Value does cmdprio_percentage percents, "`--operation-priority`" }
    { "cmdprio_class" [] Value does cmdprio_class limits, "`--operation-priority`" }
    { "cmdprio_hint" [] Value no [], "operations carry no hints", "two jobs" }
    { "cmdprio" [] Value does cmdprio limits, "`--operation-priority`" }
    { "cmdprio_bssplit" [] Value does cmdprio_bssplit text, "`--operation-priority`" }
    { "cpuload" [] Value does cpuload percent, "cpuio: `--cpu-chunk` and `--think-time` in this proportion" }
    { "cpumode" [] Value does cpu_sorts cpu_mode, "cpuio: qsort is `--cpu-sort`" }
    { "cpuchunks" [] Value does cpuchunks positive, "cpuio: `--cpu-chunk`" }
    { "exit_on_io_done" [] Bool no ["0"], "a job that burns processor time ends by its own time", "exitall in the jobs that do I/O" }
    { "program" [] Value does program text, "exec: `--program`, once a clone" }
    { "arguments" [] Value does arguments text, "exec: `--program-arguments`" }
    { "grace_time" [] Value does grace_time number, "exec: `--program-grace`" }
    { "std_redirect" [] Bool does std_redirect flag, "exec: `--program-output` with the job's name" }
    { "pool" [] Value does pool text, "rados and rbd: the pool of `rados://POOL`, `rbd:POOL/IMAGE`; dfs: a label or UUID of DAOS, `vos:DIR` or `engine://HOST:PORT/POOL`, for `dfs+daos://POOL/CONT` and the like" }
    { "cont" [] Value does cont text, "dfs: the container of `dfs+daos://POOL/CONT`, `dfs+engine://HOST:PORT/POOL/CONT`" }
    { "chunk_size" [] Value no ["0"], "files have the chunk size of their file system", "a container made with it: daos container create --chunk-size" }
    { "object_class" [] Value no [], "files have the object class of their file system", "a container made with it: daos container create --file-oclass" }
    { "svcl" [] Value no [], "DAOS finds the servers of a pool by itself since its version 1", "leave it out" }
    { "donorname" [] Value of "e4defrag" } { "inplace" [] Value of "e4defrag" }
    { "stat_type" [] Value no ["stat"], "files are asked for by stat(2)", "stat" }
    { "volume" [] Value of "gfapi" } { "brick" [] Value of "gfapi" } { "single-instance" [] Value of "gfapi" }
    { "https" [] Value does https https, "http: the scheme of `--s3-endpoint`; insecure is refused" }
    { "http_host" [] Value does http_host text, "http: `--s3-endpoint`; `BUCKET.s3.REGION...` is `--s3-addressing virtual-host`" }
    { "http_user" [] Value does http_user text, "http: refused with http_mode=s3, which signs its requests" }
    { "http_pass" [] Value does http_pass text, "http: refused with http_mode=s3, which signs its requests" }
    { "http_s3_key" [] Value does http_s3_key text, "http: the secret key; else AWS_SECRET_ACCESS_KEY. It stands in no output" }
    { "http_s3_keyid" [] Value does http_s3_keyid text, "http: the access key; else AWS_ACCESS_KEY_ID" }
    { "http_s3_security_token" [] Value no [], "keys that need a token of their session are not spoken", "keys of a user" }
    { "http_swift_auth_token" [] Value no [], "Swift is not spoken", "http_mode=s3, which gateways of Swift speak too" }
    { "http_s3_region" [] Value does http_s3_region text, "http: `--s3-region`" }
    { "http_s3_sse_customer_key" [] Value no [], "objects are not encrypted with keys of the client", "encryption that the bucket does by itself" }
    { "http_s3_sse_customer_algorithm" [] Value no ["AES256"], "objects are not encrypted with keys of the client", "encryption that the bucket does by itself" }
    { "http_s3_storage_class" [] Value no ["STANDARD"], "objects are put in the class of the bucket", "a bucket that moves them (lifecycle rules)" }
    { "http_mode" [] Value does http_mode http_mode, "http: s3 is the driver s3; webdav, which is fio's default, and swift are refused" }
    { "http_verbose" [] Value no ["0"], "requests are not printed", "0" }
    { "http_object_mode" [] Value does http_ranges http_object_mode, "http: block: an object for each block, `FILE_OFFSET_SIZE`; range: one object for the file, `--op read` of ranges of it" }
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
    { "gpu_dev_ids" [] Value does gpu_dev_ids text, "libcufile: `--memory gpu:N`, the devices of the workers in turn" }
    { "cuda_io" [] Value does cuda_io text, "libcufile: cufile (the default): engine `cufile`; posix: `psync` with `--gpu-path staged`" } { "rocm_io" [] Value of "libhipfile" }
    { "namenode" [] Value of "libhdfs" } { "hostname" [] Value of "net, rdma or libhdfs" }
    { "port" [] Value of "net, rdma or libhdfs" } { "hdfsdirectory" [] Value of "libhdfs" }
    { "chunck_size" [] Value of "libhdfs" } { "single_instance" [] Value of "libhdfs" }
    { "hdfs_use_direct" [] Value of "libhdfs" } { "initiator" [] Value of "libiscsi" }
    { "skip_bad" [] Value of "mtd" } { "uri" [] Value of "nbd" } { "nfs_url" [] Value of "nfs" }
    { "protocol" ["proto"] Value of "net" } { "nodelay" [] Bool of "net" } { "listen" [] Flag of "net" }
    { "pingpong" [] Flag of "net" } { "interface" [] Value of "net" } { "ttl" [] Value of "net" }
    { "window_size" [] Value of "net" } { "mss" [] Value of "net" }
    { "clustername" [] Value no ["ceph"], "the cluster is the one that its configuration names", "conf=FILE with its mon_host" }
    { "clientname" [] Value does clientname text, "rados: `--rados-user`; rbd: `rbd:POOL/IMAGE:id=USER`" }
    { "conf" [] Value does conf text, "rados: `--rados-conf`; rbd: `rbd:POOL/IMAGE:conf=FILE`; else CEPH_CONF, and then /etc/ceph/ceph.conf" }
    { "busy_poll" [] Bool no ["0"], "completions wake the worker", "0" }
    { "touch_objects" [] Bool free flag, "objects that a job writes are made before it begins; a job that reads makes none" }
    { "rbdname" [] Value does rbdname text, "rbd: the image of `rbd:POOL/IMAGE`" }
    { "rbd_encryption_format" [] Value no [], "images are opened without librbd's encryption", "rbd-nbd map with --encryption-format, and io_uring on its device" }
    { "rbd_encryption_passphrase" [] Value no [], "images are opened without librbd's encryption", "rbd-nbd map with --encryption-passphrase-file, and io_uring on its device" }
    { "bindname" [] Value of "rdma" } { "verb" [] Value of "rdma" }
    { "serverip" [] Value of "librpma" } { "direct_write_to_pmem" [] Bool of "librpma" }
    { "busy_wait_polling" [] Bool of "librpma" }
    { "sg_write_mode" [] Value of "sg" } { "stream_id" [] Value of "sg" }
    { "no_completion_thread" [] Flag of "windowsaio" }
    { "xnvme_be" [] Value of "xnvme" } { "xnvme_mem" [] Value of "xnvme" } { "xnvme_async" [] Value of "xnvme" }
    { "xnvme_sync" [] Value of "xnvme" } { "xnvme_admin" [] Value of "xnvme" } { "xnvme_dev_nsid" [] Value of "xnvme" }
    { "xnvme_dev_subnqn" [] Value of "xnvme" } { "xnvme_iovec" [] Flag of "xnvme" }
}
