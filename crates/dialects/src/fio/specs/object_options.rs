//! Which options mean something to a job whose blocks are objects, or whose files lie over objects.

use super::Site;
use crate::fio::draft::{Access, Draft, ZoneMode};
use crate::fio::fault::Fault;
use crate::fio::options::{Fate, find};

/// Options of the engine http, and of rados.
const OF_HTTP: &[&str] = &[
    "https",
    "http_host",
    "http_user",
    "http_pass",
    "http_s3_key",
    "http_s3_keyid",
    "http_s3_region",
    "http_s3_sse_customer_algorithm",
    "http_s3_storage_class",
    "http_mode",
    "http_verbose",
    "http_object_mode",
];
/// Of the engine dfs.
const OF_DFS: &[&str] = &["pool", "cont", "fsync", "fdatasync", "end_fsync", "fsync_on_close"];
const OF_RADOS: &[&str] = &["pool", "clustername", "clientname", "conf", "busy_poll", "touch_objects"];
/// Of these what the engine rbd has too, and its own.
const OF_RBD: &[&str] = &["pool", "clustername", "clientname", "conf", "busy_poll", "rbdname"];

/// Options of jobs that mean for objects what they mean for files.
const OF_ALL: &[&str] = &[
    "name",
    "description",
    "wait_for",
    "loops",
    "numjobs",
    "stonewall",
    "new_group",
    "group_reporting",
    "startdelay",
    "runtime",
    "time_based",
    "ramp_time",
    "exitall",
    "exit_what",
    "stats",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "bsrange",
    "bssplit",
    "norandommap",
    "random_generator",
    "random_distribution",
    "randrepeat",
    "allrandrepeat",
    "randseed",
    "size",
    "io_size",
    "number_ios",
    "filesize",
    "offset",
    "offset_increment",
    "filename",
    "directory",
    "filename_format",
    "nrfiles",
    "file_service_type",
    "unlink",
    "ioengine",
    "iodepth",
    "iodepth_batch",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "iodepth_low",
    "zero_buffers",
    "refill_buffers",
    "scramble_buffers",
    "buffer_pattern",
    "buffer_compress_percentage",
    "dedupe_percentage",
    "verify",
    "do_verify",
    "verify_fatal",
    "rate",
    "rate_iops",
    "rate_process",
    "rate_ignore_thinktime",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "thinktime_iotime",
    "thinktime_spin",
    "cpus_allowed",
    "cpumask",
    "cpus_allowed_policy",
    "numa_cpu_nodes",
    "continue_on_error",
    "kb_base",
    "unit_base",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "percentile_list",
    "gtod_reduce",
    "disable_lat",
    "disable_clat",
    "disable_slat",
    "unified_rw_reporting",
    "bwavgtime",
    "per_job_logs",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
    "log_avg_msec",
    "log_hist_msec",
    "log_window_value",
    "log_store_compressed",
    "log_alternate_epoch",
];

/// Options that change nothing where no file is opened, as in fio.
const OF_OPENED_FILES: &[&str] = &[
    "direct",
    "buffered",
    "invalidate",
    "fadvise_hint",
    "fallocate",
    "create_on_open",
    "allow_file_create",
    "openfiles",
];

/// Whether an option asks for something. Its usual way to ask for nothing is a value of 0.
fn asks(draft: &Draft, name: &str) -> bool {
    let on = |flag: Option<bool>| flag == Some(true);
    let above_zero = |number: Option<u64>| number.is_some_and(|number| number > 0);
    match name {
        "sync" => draft.sync.as_deref().is_some_and(|sync| sync != "none"),
        "fsync" => above_zero(draft.fsync),
        "fdatasync" => above_zero(draft.fdatasync),
        "end_fsync" => on(draft.end_fsync),
        "fsync_on_close" => on(draft.fsync_on_close),
        "overwrite" => on(draft.overwrite),
        "create_only" => on(draft.create_only),
        "file_append" => on(draft.file_append),
        "fill_device" => on(draft.fill_device),
        "pre_read" => on(draft.pre_read),
        "serialize_overlap" => on(draft.serialize_overlap),
        "unlink_each_loop" => on(draft.unlink_each_loop),
        "verify_only" => on(draft.verify_only),
        "verify_dump" => on(draft.verify_dump),
        "verify_state_save" => on(draft.verify_state_save),
        "verify_state_load" => on(draft.verify_state_load),
        "verify_async" => above_zero(draft.verify_async),
        "verify_backlog" => above_zero(draft.verify_backlog),
        "max_latency" => above_zero(draft.max_latency),
        "flow" => above_zero(draft.flow),
        "mem" => on(draft.huge_pages),
        "io_submit_mode" => on(draft.offload),
        "hipri" => on(draft.hipri),
        "zonemode" => draft.zonemode == Some(ZoneMode::Strided),
        _ => true,
    }
}

/// Refuses options of object engines, and of images, in a job of another engine.
///
/// # Errors
/// Such an option.
pub(super) fn refuse_options(draft: &Draft, ours: &str) -> Result<(), Fault> {
    let of = |name: &str| match name {
        name if ours == "rbd" && OF_RBD.contains(&name) => None,
        "rbdname" => Some("rbd"),
        "cont" => Some("dfs"),
        name if OF_HTTP.contains(&name) => Some("http"),
        name if OF_RADOS.contains(&name) => Some("rados"),
        _ => None,
    };
    // What asks for nothing is no matter of an engine.
    let is_idle = |name: &str| find(name).is_some_and(|option| matches!(option.fate, Fate::Refused { .. }));
    let mut given = draft.places.iter().filter(|(name, _)| !is_idle(name));
    match given.find_map(|(name, _)| of(name).map(|engine| (name, engine))) {
        Some((name, engine)) => Err(Fault::of(
            name,
            format!(
                "is not supported: it is an option of engine {engine}; alternative: ioengine={engine}, or leave it out"
            ),
        )),
        None => Ok(()),
    }
}

impl Site<'_> {
    /// Refuses options of files, and what objects have no part of.
    ///
    /// # Errors
    /// Such an option.
    pub(super) fn check_options(&self, access: Access) -> Result<(), Fault> {
        let (draft, typed) = (self.draft, &self.engine.typed);
        let (own, what) = match self.engine.ours {
            "s3" => (OF_HTTP, "it applies only to files"),
            "dfs" => (OF_DFS, "it does not apply to files over objects"),
            _ => (OF_RADOS, "it applies only to files"),
        };
        let lists = [own, OF_ALL, OF_OPENED_FILES];
        let is_refused = |name: &str| {
            let is_read = find(name).is_some_and(|option| matches!(option.fate, Fate::Honoured { .. }));
            let is_of_other = [OF_HTTP, OF_RADOS, OF_RBD, &["cont"]].iter().any(|list| list.contains(&name));
            (is_read || is_of_other) && !lists.iter().any(|list| list.contains(&name)) && asks(draft, name)
        };
        if let Some((name, _)) = draft.places.iter().find(|(name, _)| is_refused(name)) {
            let message =
                format!("is not supported with ioengine={typed}: {what}; alternative: leave it out");
            return Err(Fault::of(name, message));
        }
        if access.gap_bytes != 0 || access.run > 1 {
            let message = format!(
                "a number after the colon is not supported with ioengine={typed}; alternative: rw without the number"
            );
            return Err(Fault::of("rw", message));
        }
        if self.operation.is_pair() {
            let message = format!(
                "trims and writes of the same block are not supported with ioengine={typed}; alternative: a job with rw=trim, then a job with rw=write after a stonewall"
            );
            return Err(Fault::of("rw", message));
        }
        if self.blocks.min_bytes != self.blocks.max_bytes {
            let message = format!(
                "several sizes are not supported with ioengine={typed}; alternative: one bs, or one job per size"
            );
            return Err(Fault::of(self.blocks.key, message));
        }
        Ok(())
    }
}
