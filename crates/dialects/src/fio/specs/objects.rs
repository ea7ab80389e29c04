//! Jobs whose blocks are objects: `ioengine=http`, which is S3, and `ioengine=rados`.

use workload::options::apply_secret;
use workload::spec::{Layer, Operation, Share};

use super::Site;
use super::bucket::{Bucket, key};
use super::targets::Files;
use crate::fio::draft::{Access, Verify};
use crate::fio::fault::{Fault, shown};
use crate::fio::value::Amount;

/// Blocks of a job on objects.
struct Range {
    block_bytes: u64,
    /// First block, and how many, of one file.
    first: u64,
    blocks: u64,
}

impl Site<'_> {
    /// Operations of such a job, and its depth.
    pub(super) fn stored(&mut self, access: Access) -> Result<u32, Fault> {
        self.check_options(access)?;
        let unknown = |error: units::ParseError| Fault::of("ioengine", error.to_string());
        self.spec.layer = Layer::named("object").map_err(unknown)?;
        let depth = self.depth()?;
        self.batches(depth)?;
        let files = self.files_of_job()?;
        self.check_service(files.each.len())?;
        let range = self.blocks_of(&files)?;
        self.ends(&range, files.each.len() as u64)?;
        self.pace(depth)?;
        self.spec.pattern = Some("sequential".to_owned());
        if self.operation.is_random() {
            self.random_order(access)?;
        }
        let clones = self.clones.count;
        if clones > 1 {
            self.spec.share = Some(Share::Whole);
        }
        if self.trims() && clones > 1 {
            return Err(Fault::of(
                "numjobs",
                "clones that trim the same objects are not supported: an object can be removed only once; alternative: numjobs=1",
            ));
        }
        let operations = if self.engine.ours == "s3" {
            self.in_bucket(&files, &range)?
        } else {
            self.in_pool(&files, &range)?
        };
        self.operations(operations)?;
        if self.draft.verifies() {
            self.verified(&files, &range)?;
        } else {
            self.content(&files)?;
        }
        self.place()?;
        self.common();
        self.check_logs()?;
        Ok(depth)
    }

    /// Objects take turns, as with fio's default.
    fn check_service(&self, files: usize) -> Result<(), Fault> {
        let word = self.draft.file_service_type.as_deref().unwrap_or("roundrobin");
        if files > 1 && !matches!(word, "roundrobin" | "roundrobin:1") {
            let message = format!("{} is not supported with objects; alternative: roundrobin", shown(word));
            return Err(Fault::of("file_service_type", message));
        }
        Ok(())
    }

    fn blocks_of(&self, files: &Files) -> Result<Range, Fault> {
        let (draft, count) = (self.draft, files.each.len() as u64);
        let block_bytes = self.blocks.max_bytes;
        let bytes = |key: &str, amount: Option<Amount>| match amount {
            None | Some(Amount::Percent(0)) => Ok(0),
            Some(Amount::Bytes(bytes)) => Ok(bytes),
            Some(Amount::Percent(_)) => Err(Fault::of(
                key,
                "a percentage is undefined for objects, which have no size yet: give bytes",
            )),
        };
        let step = bytes("offset_increment", draft.offset_increment)?;
        let step = step.checked_mul(self.clones.first.into());
        let offset = step.and_then(|step| step.checked_add(bytes("offset", draft.offset).ok()?));
        bytes("offset", draft.offset)?;
        let offset = offset
            .ok_or_else(|| Fault::of("offset_increment", "the offset of the last clone is too large"))?;
        if !offset.is_multiple_of(block_bytes) {
            let key = if draft.offset_increment.is_some() { "offset_increment" } else { "offset" };
            return Err(Fault::of(
                key,
                format!(
                    "{offset} is not a multiple of the block size {block_bytes}, which determines the object names: use multiples of bs"
                ),
            ));
        }
        let (key, each) = match (draft.filesize, draft.size) {
            (Some((low, high)), _) if low < high => {
                return Err(Fault::of(
                    "filesize",
                    "a range is not supported with objects; alternative: one size",
                ));
            }
            (Some((size, _)), _) => ("filesize", size.saturating_sub(offset)),
            (None, Some(Amount::Bytes(bytes))) => ("size", bytes / count),
            (None, _) => {
                return Err(Fault::of("size", "objects have no size yet: give size= in bytes"));
            }
        };
        if each < block_bytes {
            return Err(Fault::of(
                key,
                format!("gives each file {each} bytes, less than the block size of {block_bytes}"),
            ));
        }
        Ok(Range { block_bytes, first: offset / block_bytes, blocks: each / block_bytes })
    }

    /// Limits that end the job.
    fn ends(&mut self, range: &Range, files: u64) -> Result<(), Fault> {
        let draft = self.draft;
        let too_much = |key: &str| Fault::of(key, "exceeds the largest supported number");
        let runtime = draft.runtime.filter(|&time| time > 0);
        if let Some(time_ns) = runtime {
            self.set("runtime", "time", &format!("{time_ns}ns"))?;
        } else if draft.time_based == Some(true) {
            self.warn("time_based without runtime does nothing, as in fio");
        }
        let warmup = match draft.ramp_time.filter(|&time| time > 0) {
            Some(time_ns) => format!("{time_ns}ns"),
            None => "none".to_owned(),
        };
        self.set("ramp_time", "warmup", &warmup)?;
        if runtime.is_none() {
            self.set("size", "one-pass", "true")?;
        }
        let pass = range.blocks.checked_mul(files).ok_or_else(|| too_much("size"))?;
        let once = match draft.io_size {
            None | Some(Amount::Bytes(0)) => pass,
            Some(Amount::Bytes(bytes)) => bytes.div_ceil(range.block_bytes),
            Some(Amount::Percent(percent)) => (u128::from(pass) * u128::from(percent) / 100).max(1) as u64,
        };
        let loops = draft.loops.unwrap_or(1);
        let asked = draft.number_ios.filter(|&count| count > 0);
        let is_endless = runtime.is_some() && draft.time_based == Some(true);
        let by_size = (!is_endless).then(|| once.checked_mul(loops).ok_or_else(|| too_much("loops")));
        let count = match (by_size.transpose()?, asked) {
            (Some(count), Some(asked)) => Some(count.min(asked)),
            (count, asked) => count.or(asked),
        };
        // A pass needs no number.
        let count = count.filter(|&count| count != pass || runtime.is_some());
        let of_all = |count: u64| count.checked_mul(self.clones.count.into());
        self.spec.count =
            count.map(|count| of_all(count).ok_or_else(|| too_much("number_ios"))).transpose()?;
        Ok(())
    }

    /// The bucket, its server and the names in it; reads, writes and trims.
    fn in_bucket(&mut self, files: &Files, range: &Range) -> Result<[&'static str; 3], Fault> {
        let draft = self.draft;
        let [name] = &files.each[..] else {
            return Err(Fault::of(
                "nrfiles",
                "several files are not supported with ioengine=http: each file needs separate object names in the bucket; alternative: one job per file",
            ));
        };
        let bucket = Bucket::of(draft, name)?;
        let ranged = draft.http_ranges == Some(true);
        let block_bytes = range.block_bytes;
        let (target, key_text, operations) = if ranged {
            self.check_ranges(range)?;
            let (head, tail) = bucket.object()?;
            let read = if range.blocks > 1 { "read" } else { "get" };
            (head, format!("{tail}{{-}}"), [read, "put", "remove"])
        } else {
            let head = format!("s3://{}/{}_", bucket.bucket, bucket.object);
            (head, format!("{{*{block_bytes}}}_{block_bytes}"), ["get", "put", "remove"])
        };
        self.spec.targets = vec![target];
        let keys = if ranged { 1 } else { range.blocks };
        let value_bytes = if ranged { range.blocks * block_bytes } else { block_bytes };
        self.set("size", "dkeys", &keys.to_string())?;
        if range.first > 0 {
            self.set("offset", "first", &format!("0,{},0,0", range.first))?;
        }
        self.set("filename", "dkey-prefix", &key_text)?;
        self.set("bs", "value-size", &value_bytes.to_string())?;
        if ranged && range.blocks > 1 {
            self.set("bs", "read-size", &block_bytes.to_string())?;
        }
        self.set("http_host", "s3-endpoint", &bucket.endpoint)?;
        if let Some(region) = &draft.http_s3_region {
            self.set("http_s3_region", "s3-region", region)?;
        }
        self.set("http_host", "s3-addressing", bucket.addressing)?;
        if let Some((access, secret)) = key(draft, self.clones.world)? {
            apply_secret(&mut self.spec, "s3-key", &format!("{access}\n{secret}"))
                .map_err(|error| Fault::of("http_s3_key", error.to_string()))?;
        }
        Ok(operations)
    }

    /// fio puts each block as the whole object in this mode, and takes the whole away with each trim.
    fn check_ranges(&self, range: &Range) -> Result<(), Fault> {
        let size_bytes = range.blocks * range.block_bytes;
        if range.first > 0 {
            return Err(Fault::of(
                "offset",
                "is not supported with http_object_mode=range; alternative: offset=0",
            ));
        }
        if (self.writes() || self.trims()) && range.blocks > 1 {
            return Err(Fault::of(
                "http_object_mode",
                format!(
                    "range is not supported for a job that writes or trims blocks: each operation would replace or remove the whole object; alternative: bs={size_bytes}, or http_object_mode=block"
                ),
            ));
        }
        Ok(())
    }

    /// The pool and the names in it; reads, writes and trims.
    fn in_pool(&mut self, files: &Files, range: &Range) -> Result<[&'static str; 3], Fault> {
        let draft = self.draft;
        let pool = draft
            .pool
            .clone()
            .ok_or_else(|| Fault::of("pool", "engine rados requires it: the name of a pool"))?;
        if pool.contains('/') {
            return Err(Fault::of("pool", format!("{} is not a valid pool name", shown(&pool))));
        }
        self.spec.targets = vec![format!("rados://{pool}")];
        let names: Vec<_> = files.each.iter().map(|name| escaped(name)).collect();
        self.set("filename", "object-names", &names.join(","))?;
        self.set("size", "records", &range.blocks.to_string())?;
        if range.first > 0 {
            self.set("offset", "first", &format!("0,0,0,{}", range.first))?;
        }
        self.set("rw", "value", "array")?;
        self.set("bs", "value-size", &range.block_bytes.to_string())?;
        for (key, option, value) in
            [("conf", "rados-conf", &draft.conf), ("clientname", "rados-user", &draft.clientname)]
        {
            if let Some(value) = value {
                self.set(key, option, value)?;
            }
        }
        Ok(["fetch", "update", "punch"])
    }

    /// Operation.
    fn operations(&mut self, [read, write, trim]: [&str; 3]) -> Result<(), Fault> {
        let percent = self.draft.rwmixread.unwrap_or(50);
        let one = match self.operation {
            Operation::Read | Operation::RandRead => read,
            Operation::Write | Operation::RandWrite => write,
            Operation::Discard | Operation::RandDiscard => trim,
            Operation::ReadWrite | Operation::RandRw if percent == 100 => read,
            Operation::ReadWrite | Operation::RandRw if percent == 0 => write,
            Operation::ReadWrite | Operation::RandRw => {
                let mix = format!("{read}={percent},{write}={}", 100 - percent);
                self.warn(
                    "objects that the job reads and this run has not written are written first; fio treats missing objects as zeros",
                );
                return self.set("rw", "mix", &mix);
            }
            other => return Err(Fault::of("rw", format!("objects do not support {}", other.name()))),
        };
        // What is not there is neither read nor taken away.
        if one != write {
            self.set("rw", "no-fill", "true")?;
        }
        if one == read {
            self.warn("a missing object fails the job; fio treats it as zeros");
        }
        self.set("rw", "op", one)
    }

    /// Values say what they are, and are read back.
    fn verified(&mut self, files: &Files, range: &Range) -> Result<(), Fault> {
        let draft = self.draft;
        if self.trims() {
            return Err(Fault::of("verify", "trimmed data cannot be verified: leave verify out"));
        }
        if draft.http_ranges == Some(true) && range.blocks > 1 {
            return Err(Fault::of(
                "verify",
                "checks whole objects, but http_object_mode=range reads parts of them: leave verify out",
            ));
        }
        if draft.verify == Some(Verify::Pattern) {
            return Err(Fault::of("verify", "pattern is not supported with objects; alternative: crc32c"));
        }
        let clones = draft.numjobs.unwrap_or(1);
        if clones > 1 && files.shared && self.writes() && draft.offset_increment.is_none() {
            return Err(Fault::of(
                "verify",
                "clones that write the same objects overwrite each other's blocks: give each clone separate names (directory without filename), or use offset_increment",
            ));
        }
        let reads_back = self.writes() && draft.do_verify != Some(false);
        if !self.writes() && draft.do_verify == Some(false) {
            return Ok(());
        }
        self.spec.verify = true;
        self.warn(
            "verified blocks have strata's own content: position, run, version and CRC-32C; blocks written by fio cannot be verified",
        );
        if self.operation.is_mixed() {
            self.warn("verify: the reads of the job are checked; no read-back follows at its end");
            return Ok(());
        }
        if !reads_back {
            return Ok(());
        }
        let is_part = self.spec.count.is_some() && self.operation.is_random();
        if self.spec.time.is_some() || is_part {
            return Err(Fault::of(
                "verify",
                "with objects, the job reads back all of its objects: leave out runtime, loops and io_size, or give do_verify=0",
            ));
        }
        let both = if self.engine.ours == "s3" { "put,get" } else { "update,fetch" };
        self.reads_back = true;
        self.set("verify", "op", both)?;
        self.set("verify", "no-fill", "true")
    }

    /// Operations one by one are kept of the media layer alone.
    pub(super) fn check_logs(&self) -> Result<(), Fault> {
        let draft = self.draft;
        let logs = [
            ("write_bw_log", &draft.write_bw_log),
            ("write_iops_log", &draft.write_iops_log),
            ("write_lat_log", &draft.write_lat_log),
        ];
        let is_averaged = draft.log_avg_msec.unwrap_or(0) > 0;
        match logs.iter().find(|(_, log)| log.is_some() && !is_averaged) {
            Some((key, _)) => Err(Fault::of(
                key,
                format!(
                    "a log of single operations is not supported with ioengine={}; alternative: log_avg_msec=1000, for averages",
                    self.engine.typed
                ),
            )),
            None => Ok(()),
        }
    }
}

/// A name in a list of them.
fn escaped(name: &str) -> String {
    let sign = |sign: char| {
        let is_apart = matches!(sign, ',' | '\\') || sign.is_whitespace() || sign.is_control();
        [is_apart.then_some('\\'), Some(sign)].into_iter().flatten()
    };
    name.chars().flat_map(sign).collect()
}
