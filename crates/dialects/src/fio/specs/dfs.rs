//! Jobs on files over objects: `ioengine=dfs`. Each clone has one file, which is a set of the file-system layer.

use workload::spec::{Layer, Operation};

use super::Site;
use super::targets::Files;
use crate::fio::draft::{Access, Draft, Verify};
use crate::fio::fault::{Fault, shown};
use crate::fio::value::Amount;

/// Container that the file system of a pool in a directory lies in.
const CONTAINER_OF_DIRECTORY: &str = "dfs";
/// Blocks of a job that its time alone ends.
const ENDLESS_BLOCKS: u64 = 1 << 48;
const POOLS: &str = "the label or UUID of a DAOS pool, vos:DIR or engine://HOST:PORT/POOL";

impl Site<'_> {
    /// Everything of such a job; its depth.
    pub(super) fn filed(&mut self, access: Access) -> Result<u32, Fault> {
        let operation = self.file_operation()?;
        self.check_options(access)?;
        let unknown = |error: units::ParseError| Fault::of("ioengine", error.to_string());
        self.spec.layer = Layer::named("filesystem").map_err(unknown)?;
        self.spec.targets = vec![file_system(self.draft)?];
        self.set("ioengine", "engine", "dfs")?;
        let depth = self.one_in_flight()?;
        let files = self.files_of_job()?;
        self.one_file(&files)?;
        let blocks = self.file_blocks()?;
        let moved_blocks = self.moved_blocks(blocks)?;
        self.pace(depth)?;
        self.file_order()?;
        self.file_syncs()?;
        self.set("rw", "op", operation)?;
        if self.draft.verifies() {
            self.read_back(&files, moved_blocks < blocks)?;
        } else {
            self.content(&files)?;
        }
        // As in fio, whose engine lays no files out.
        self.set("rw", "no-fill", "true")?;
        self.place()?;
        self.common();
        self.check_logs()?;
        Ok(depth)
    }

    fn file_operation(&self) -> Result<&'static str, Fault> {
        let percent = self.draft.rwmixread.unwrap_or(50);
        match self.operation {
            Operation::Read | Operation::RandRead => Ok("read"),
            Operation::Write | Operation::RandWrite => Ok("write"),
            Operation::ReadWrite | Operation::RandRw if percent == 100 => Ok("read"),
            Operation::ReadWrite | Operation::RandRw if percent == 0 => Ok("write"),
            Operation::ReadWrite | Operation::RandRw => Err(Fault::of(
                "rw",
                "reads and writes in one job are not supported with ioengine=dfs; alternative: one job that reads and one that writes",
            )),
            _ => Err(Fault::of(
                "rw",
                "files over objects do not support trims (as in fio): use read, write, randread or randwrite",
            )),
        }
    }

    fn one_in_flight(&mut self) -> Result<u32, Fault> {
        if let Some(asked) = self.draft.iodepth.filter(|&asked| asked > 1) {
            self.warn(format!(
                "iodepth={asked} is 1 with ioengine=dfs: strata waits for each operation, but fio uses DAOS events; to keep more in flight, use numjobs"
            ));
        }
        self.set("iodepth", "depth", "1")?;
        self.batches(1)?;
        Ok(1)
    }

    /// The one file of a clone, named for the end of its name in the container.
    fn one_file(&mut self, files: &Files) -> Result<(), Fault> {
        let draft = self.draft;
        if draft.directory.is_some() {
            let message = "is not supported with ioengine=dfs: it is a local directory; alternative: filename or filename_format without a /";
            return Err(Fault::of("directory", message));
        }
        if draft.allow_file_create == Some(false) && self.writes() {
            let message = "0 is not supported with ioengine=dfs for a job that writes: it always creates its file; alternative: 1";
            return Err(Fault::of("allow_file_create", message));
        }
        let [name] = &files.each[..] else {
            let key = if draft.nrfiles.is_some() { "nrfiles" } else { "filename" };
            let message = "several files are not supported with ioengine=dfs: fio's engine uses only the last file of a job; alternative: numjobs, with one file per clone";
            return Err(Fault::of(key, message));
        };
        if name.contains('/') {
            let message =
                format!("{}: use a name without /: files are in one directory of the container", shown(name));
            return Err(Fault::of("filename", message));
        }
        self.set("filename", "shape", "shared")?;
        self.set("filename", "file-suffix", &format!(".{name}"))
    }

    /// Blocks of the file.
    fn file_blocks(&mut self) -> Result<u64, Fault> {
        let draft = self.draft;
        for (key, amount) in [("offset", draft.offset), ("offset_increment", draft.offset_increment)] {
            if !matches!(amount, None | Some(Amount::Bytes(0) | Amount::Percent(0))) {
                let message = "is not supported with ioengine=dfs: a job always starts at the beginning of its file; alternative: 0, with one file per job";
                return Err(Fault::of(key, message));
            }
        }
        let block_bytes = self.blocks.max_bytes;
        let (key, bytes) = match (draft.filesize, draft.size) {
            (Some((low, high)), _) if low < high => {
                let message = "a range is not supported with ioengine=dfs; alternative: one size";
                return Err(Fault::of("filesize", message));
            }
            (Some((bytes, _)), _) => ("filesize", bytes),
            (None, Some(Amount::Bytes(bytes))) => ("size", bytes),
            (None, _) => {
                let message =
                    "the size of files over objects is not read before the run: give size= in bytes";
                return Err(Fault::of("size", message));
            }
        };
        let blocks = bytes / block_bytes;
        if blocks == 0 {
            let message = format!("gives the file {bytes} bytes, less than the block size of {block_bytes}");
            return Err(Fault::of(key, message));
        }
        self.set("bs", "block-size", &block_bytes.to_string())?;
        self.set(key, "file-size", &(blocks * block_bytes).to_string())?;
        Ok(blocks)
    }

    /// Blocks that the job moves, and its times.
    fn moved_blocks(&mut self, blocks: u64) -> Result<u64, Fault> {
        let draft = self.draft;
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
        let block_bytes = self.blocks.max_bytes;
        let pass = match draft.size {
            Some(Amount::Bytes(bytes)) => (bytes / block_bytes).clamp(1, blocks),
            _ => blocks,
        };
        let once = match draft.io_size {
            None | Some(Amount::Bytes(0)) => pass,
            Some(Amount::Bytes(bytes)) => bytes.div_ceil(block_bytes),
            Some(Amount::Percent(percent)) => (u128::from(pass) * u128::from(percent) / 100).max(1) as u64,
        };
        let moved = if runtime.is_some() && draft.time_based == Some(true) {
            ENDLESS_BLOCKS
        } else {
            let all = once.checked_mul(draft.loops.unwrap_or(1)).filter(|&all| all <= ENDLESS_BLOCKS);
            all.ok_or_else(|| Fault::of("loops", "exceeds the largest supported number"))?
        };
        let moved = draft.number_ios.filter(|&count| count > 0).map_or(moved, |count| count.min(moved));
        if moved != blocks {
            self.set("size", "transfers", &moved.to_string())?;
        }
        Ok(moved)
    }

    fn file_order(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if draft.random_distribution.as_ref().is_some_and(|text| !text.is_empty()) {
            let message = "is not supported with ioengine=dfs; alternative: random";
            return Err(Fault::of("random_distribution", message));
        }
        let order = match (self.operation.is_random(), self.has_repeats()) {
            (false, _) => "sequential",
            (true, false) => "random",
            (true, true) => "random-repeats",
        };
        self.set("rw", "order", order)
    }

    /// Whether random blocks may come more than once in a pass.
    fn has_repeats(&self) -> bool {
        self.draft.norandommap == Some(true) && self.draft.lfsr != Some(true)
    }

    fn file_syncs(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let above_zero = |every: Option<u64>| every.filter(|&every| every > 0);
        match (above_zero(draft.fsync), above_zero(draft.fdatasync)) {
            (Some(_), Some(_)) => {
                return Err(Fault::of("fdatasync", "it conflicts with fsync: give only one of them"));
            }
            (Some(every), None) => self.set("fsync", "fsync", &every.to_string())?,
            (None, Some(every)) => {
                self.warn("with ioengine=dfs, fdatasync runs as fsync");
                self.set("fdatasync", "fsync", &every.to_string())?;
            }
            (None, None) => {}
        }
        if draft.end_fsync == Some(true) || draft.fsync_on_close == Some(true) {
            self.set("end_fsync", "end-fsync", "true")?;
        }
        Ok(())
    }

    /// Blocks say what they are, and what the job writes is read back.
    fn read_back(&mut self, files: &Files, is_part: bool) -> Result<(), Fault> {
        let draft = self.draft;
        if draft.verify == Some(Verify::Pattern) {
            return Err(Fault::of(
                "verify",
                "pattern is not supported with ioengine=dfs; alternative: crc32c",
            ));
        }
        if draft.numjobs.unwrap_or(1) > 1 && files.shared && self.writes() {
            return Err(Fault::of(
                "verify",
                "clones that write the same file overwrite each other's blocks: give each clone its own file (leave filename out)",
            ));
        }
        if !self.writes() && draft.do_verify == Some(false) {
            return Ok(());
        }
        self.spec.verify = true;
        self.warn(
            "verified blocks have strata's own content: file, position and run; blocks written by fio cannot be verified",
        );
        if !self.writes() || draft.do_verify == Some(false) {
            return Ok(());
        }
        let leaves_holes = self.operation.is_random() && (is_part || self.has_repeats());
        if self.spec.time.is_some() || leaves_holes {
            return Err(Fault::of(
                "verify",
                "with ioengine=dfs, the job reads back its whole file: leave out runtime, io_size and norandommap, or give do_verify=0",
            ));
        }
        self.reads_back = true;
        self.set("verify", "op", "write,read")
    }
}

/// The file system of a job, in the words of targets.
///
/// # Errors
/// A pool or a container that is missing, or names none.
fn file_system(draft: &Draft) -> Result<String, Fault> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let pool = given(&draft.pool);
    let pool = pool.ok_or_else(|| Fault::of("pool", format!("engine dfs requires it: {POOLS}")))?;
    let cont = given(&draft.cont);
    if let Some(directory) = pool.strip_prefix("vos:") {
        return match cont.filter(|cont| cont != CONTAINER_OF_DIRECTORY) {
            Some(cont) => Err(Fault::of(
                "cont",
                format!(
                    "{} is not supported: a pool in a directory has only the container {CONTAINER_OF_DIRECTORY}; alternative: cont={CONTAINER_OF_DIRECTORY}, or leave it out",
                    shown(&cont)
                ),
            )),
            None => Ok(format!("dfs+vos:{directory}")),
        };
    }
    let cont =
        cont.ok_or_else(|| Fault::of("cont", "engine dfs requires it: the label or UUID of a container"))?;
    if cont.contains('/') {
        return Err(Fault::of("cont", format!("{} is not a valid container label", shown(&cont))));
    }
    let none = || Fault::of("pool", format!("{} names no pool: use {POOLS}", shown(&pool)));
    let is_label = |text: &str| !text.is_empty() && !text.contains(['/', ':']);
    if let Some(place) = pool.strip_prefix("engine://") {
        let label = place.split_once('/').map(|(_, label)| label);
        label.filter(|label| is_label(label)).ok_or_else(none)?;
        return Ok(format!("dfs+engine://{place}/{cont}"));
    }
    let label = pool.strip_prefix("daos://").unwrap_or(&pool);
    if is_label(label) { Ok(format!("dfs+daos://{label}/{cont}")) } else { Err(none()) }
}
