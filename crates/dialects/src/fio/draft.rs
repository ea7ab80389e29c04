//! The options of one job, read.

use workload::replay::ReplayClass;
use workload::spec::{CoresPolicy, Operation, Spacing};

use crate::fio::fault::Origin;
use crate::fio::model::{LogValue, Unified};
use crate::fio::value::{Amount, Triple};

/// `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) operation: Operation,
    /// Bytes that `read:8k` leaves out after each block; below 0 it goes back.
    pub(crate) gap_bytes: i64,
    /// Operations of `randread:8` from each random position on.
    pub(crate) run: u64,
}

/// `zonemode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneMode {
    None,
    Strided,
    Zbd,
}

/// `ioengine`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Engine {
    /// As typed.
    pub(crate) typed: String,
    pub(crate) ours: &'static str,
    /// Difference from fio's, where there is one.
    pub(crate) difference: Option<&'static str>,
}

/// `fadvise_hint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advise {
    Nothing,
    /// As the job's order is.
    ByOrder,
    Sequential,
    Random,
    NoReuse,
}

/// `verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    Nothing,
    /// A sum of fio's: blocks with headers of strata's.
    Headers,
    /// Blocks of `verify_pattern` and nothing else.
    Pattern,
}

/// A part of `buffer_pattern` or `verify_pattern`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternPart {
    Bytes(Vec<u8>),
    /// Contents of this file.
    File(String),
    /// The offset of the block.
    Offset,
}

/// `continue_on_error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnErrors {
    None,
    Reads,
    Writes,
    All,
}

/// `https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Https {
    Off,
    On,
    /// Certificates are not checked.
    Insecure,
}

/// `http_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpMode {
    WebDav,
    S3,
    Swift,
}

macro_rules! draft {
    ($($field:ident: $type:ty,)*) => {
        /// Options given for a job; none where not given. Fields are named as fio's options.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(crate) struct Draft {
            $(pub(crate) $field: Option<$type>,)*
            /// Where each option was given last.
            pub(crate) places: Vec<(&'static str, Origin)>,
            /// How values were read, for the user.
            pub(crate) notes: Vec<String>,
        }
    };
}

draft! {
    access: Access,
    allow_file_create: bool,
    arguments: String,
    ba: Triple<u64>,
    bs: Triple<u64>,
    bs_is_seq_rand: bool,
    bs_unaligned: bool,
    bsrange: Triple<(u64, u64)>,
    bssplit: Triple<Vec<(u64, u8)>>,
    buffer_compress_percentage: u8,
    buffer_pattern: Vec<PatternPart>,
    bwavgtime: u64,
    clat_percentiles: bool,
    clientname: String,
    cmdprio: Triple<u64>,
    cmdprio_bssplit: String,
    cmdprio_class: Triple<u64>,
    cmdprio_percentage: Triple<u8>,
    conf: String,
    continue_on_error: OnErrors,
    cpus_allowed: Vec<u32>,
    cpus_allowed_policy: CoresPolicy,
    cpu_sorts: bool,
    cpuchunks: u64,
    cpuload: u8,
    create_on_open: bool,
    create_only: bool,
    dedupe_global: bool,
    dedupe_percentage: u8,
    dedupe_working_set: bool,
    dedupe_working_set_percentage: u8,
    description: String,
    direct: bool,
    directory: String,
    disable_clat: bool,
    disable_lat: bool,
    disable_slat: bool,
    do_verify: bool,
    end_fsync: bool,
    engine: Engine,
    exec_postrun: String,
    exec_prerun: String,
    exit_what: String,
    exitall: bool,
    fadvise_hint: Advise,
    fallocate: &'static str,
    file_append: bool,
    fdatasync: u64,
    file_service_type: String,
    filename: String,
    filename_format: String,
    filesize: (u64, u64),
    fill_device: bool,
    fixedbufs: bool,
    flow: u64,
    flow_id: u64,
    force_async: u64,
    fsync: u64,
    fsync_on_close: bool,
    group_reporting: bool,
    grace_time: u64,
    gtod_reduce: bool,
    gpu_dev_ids: String,
    cuda_io: String,
    hipri: bool,
    http_host: String,
    http_mode: HttpMode,
    http_pass: String,
    http_ranges: bool,
    http_s3_key: String,
    http_s3_keyid: String,
    http_s3_region: String,
    http_user: String,
    https: Https,
    huge_pages: bool,
    ignore_error: String,
    ignore_zone_limits: bool,
    invalidate: bool,
    io_size: Amount,
    iodepth: u32,
    iodepth_batch: u64,
    iodepth_batch_complete_max: u64,
    iodepth_batch_complete_min: u32,
    iodepth_low: u64,
    ioscheduler: String,
    job_max_open_zones: u64,
    kb_base: u32,
    lat_percentiles: bool,
    latency_percentile: f64,
    latency_run: bool,
    latency_target: u64,
    latency_window: u64,
    lfsr: bool,
    log_avg_msec: u64,
    log_compressed: bool,
    log_epoch: bool,
    log_hist_msec: u64,
    log_issue_time: bool,
    log_offset: bool,
    log_value: LogValue,
    log_prio: bool,
    loops: u64,
    max_latency: u64,
    max_open_zones: u64,
    name: String,
    new_group: bool,
    nice: i64,
    norandommap: bool,
    nowait: bool,
    nrfiles: u32,
    numa_cpu_nodes: Vec<u32>,
    number_ios: u64,
    numa_mem_policy: String,
    numjobs: u32,
    offload: bool,
    offset: Amount,
    offset_align: u64,
    offset_increment: Amount,
    openfiles: u32,
    overwrite: bool,
    per_job_logs: bool,
    percentage_random: Triple<u8>,
    percentile_list: Vec<f64>,
    pool: String,
    cont: String,
    pre_read: bool,
    prio: u64,
    prioclass: u64,
    program: String,
    ramp_time: u64,
    randrepeat: bool,
    randseed: u64,
    random_distribution: String,
    random_sequence_stride: bool,
    rate: Triple<u64>,
    rate_cycle: u64,
    rate_ignore_thinktime: bool,
    rate_iops: Triple<u64>,
    rate_iops_min: Triple<u64>,
    rate_min: Triple<u64>,
    rate_process: Spacing,
    rbdname: String,
    read_beyond_wp: bool,
    refill_buffers: bool,
    read_iolog: String,
    registerfiles: bool,
    replay_align: u64,
    replay_no_stall: bool,
    replay_redirect: String,
    replay_scale: u64,
    replay_skip: Vec<ReplayClass>,
    replay_time_scale: u64,
    runtime: u64,
    rw_identical: bool,
    rwmixread: u8,
    scramble_buffers: bool,
    serialize_overlap: bool,
    size: Amount,
    slat_percentiles: bool,
    sqthread_poll: bool,
    sqthread_poll_cpu: u64,
    startdelay: u64,
    stats: bool,
    std_redirect: bool,
    steadystate: (String, String),
    steadystate_check_interval: u64,
    steadystate_duration: u64,
    steadystate_ramp_time: u64,
    stonewall: bool,
    sync: String,
    thinktime: u64,
    thinktime_blocks: u64,
    thinktime_iotime: u64,
    thinktime_issue: bool,
    thinktime_spin: u64,
    time_based: bool,
    uncached: bool,
    unit_base: u32,
    unified: Unified,
    unlink: bool,
    unlink_each_loop: bool,
    verify: Verify,
    verify_async: u64,
    verify_backlog: u64,
    verify_backlog_batch: u64,
    verify_dump: bool,
    verify_fatal: bool,
    verify_interval: u64,
    verify_offset: u64,
    verify_only: bool,
    verify_pattern: Vec<PatternPart>,
    verify_policy: String,
    unique_filename: bool,
    verify_state_load: bool,
    verify_state_save: bool,
    wait_for: String,
    write_bw_log: String,
    write_hist_log: String,
    write_iolog: String,
    write_iops_log: String,
    write_lat_log: String,
    zero_buffers: bool,
    zone_reset_frequency: f64,
    zone_reset_threshold: f64,
    zonecapacity: u64,
    zonemode: ZoneMode,
    zonerange: u64,
    zonesize: u64,
    zoneskip: u64,
}

impl Draft {
    /// Whether blocks are verified.
    pub(crate) fn verifies(&self) -> bool {
        !matches!(self.verify, None | Some(Verify::Nothing))
    }

    /// Whether the run takes its files away again.
    pub(crate) fn removes_files(&self) -> bool {
        self.unlink == Some(true) || self.unlink_each_loop == Some(true)
    }

    /// Where an option was given, for what is found wrong with it later.
    pub(crate) fn place(&self, name: &str) -> Option<&Origin> {
        self.places.iter().find(|(known, _)| *known == name).map(|(_, place)| place)
    }

    /// Notes where an option was given; the last place counts.
    pub(crate) fn given(&mut self, name: &'static str, place: &Origin) {
        self.places.retain(|(known, _)| *known != name);
        self.places.push((name, place.clone()));
    }
}
