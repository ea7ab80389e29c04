//! Writes the content of a layout and makes it durable.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::Ordering;

use driver::{Error, ErrorKind};
use workload::target::TargetPlan;

use super::{Job, Progress, Request};

/// Length of a write, as far as the grain allows.
const WRITE_BYTES: u64 = 1 << 20;
/// Data is made durable every so often, so that a stop does not wait for a page cache full of it.
const SYNC_BYTES: u64 = 128 << 20;
/// Alignment of the buffer: enough for direct I/O on any device.
const BUFFER_ALIGNMENT: usize = 4096;

/// A buffer that direct I/O takes.
struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

impl Buffer {
    fn new(length: usize) -> Self {
        let memory = vec![0; length + BUFFER_ALIGNMENT];
        let start = memory.as_ptr().align_offset(BUFFER_ALIGNMENT);
        Self { memory, start }
    }

    fn first(&mut self, length: usize) -> &mut [u8] {
        &mut self.memory[self.start..self.start + length]
    }
}

/// Fills the ranges of all jobs; returns the bytes written.
pub(super) fn write_all(jobs: &[Job], targets: &[TargetPlan], request: &Request<'_>) -> Result<u64, Error> {
    let total_bytes = jobs.iter().flat_map(|job| &job.ranges).map(|range| range.end - range.start).sum();
    let grain = request.grain_bytes.max(1);
    let chunk = if grain >= WRITE_BYTES { grain } else { WRITE_BYTES / grain * grain };
    let mut progress = Progress { written_bytes: 0, total_bytes };
    let mut buffer = Buffer::new(chunk as usize);
    for job in jobs {
        let mut writer = Writer::open(job, &targets[job.index], request);
        for range in &job.ranges {
            writer.fill(range.clone(), chunk, &mut buffer, &mut progress)?;
        }
        writer.sync()?;
    }
    Ok(progress.written_bytes)
}

struct Writer<'a> {
    job: &'a Job,
    target: &'a TargetPlan,
    request: &'a Request<'a>,
    /// The file once more, past the page cache.
    direct: Option<File>,
    written_bytes: u64,
    unsynced_bytes: u64,
}

impl<'a> Writer<'a> {
    fn open(job: &'a Job, target: &'a TargetPlan, request: &'a Request<'a>) -> Self {
        let wanted = request.direct && target.direct_alignment_bytes > 0;
        let open = || OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(target.place()).ok();
        let direct = if wanted { open() } else { None };
        Self { job, target, request, direct, written_bytes: 0, unsynced_bytes: 0 }
    }

    fn fill(
        &mut self,
        range: Range<u64>,
        chunk: u64,
        buffer: &mut Buffer,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let mut at = range.start;
        while at < range.end {
            if self.request.stop.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Run, "layout", "interrupted before the files were filled")
                    .with("path", &self.target.path));
            }
            let length = (range.end - at).min(chunk);
            let data = buffer.first(length as usize);
            (self.request.fill)(data, self.job.index, at);
            let alignment = self.target.direct_alignment_bytes.max(1);
            let aligned = at.is_multiple_of(alignment) && length.is_multiple_of(alignment);
            let file = self.direct.as_ref().filter(|_| aligned).unwrap_or(&self.job.file);
            file.write_all_at(data, at)
                .map_err(|error| write_failed(error, self.target, self.written_bytes))?;
            at += length;
            self.written_bytes += length;
            self.unsynced_bytes += length;
            if self.unsynced_bytes >= SYNC_BYTES {
                self.sync()?;
            }
            progress.written_bytes += length;
            (self.request.progress)(*progress);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.unsynced_bytes = 0;
        let synced = self.job.file.sync_data();
        synced.map_err(|error| write_failed(error, self.target, self.written_bytes))
    }
}

/// A full disk is a failure of the run like any other, but deserves its own words.
pub(super) fn write_failed(error: io::Error, target: &TargetPlan, written_bytes: u64) -> Error {
    let full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
    if !full {
        return Error::system("layout", "cannot write the file", error)
            .with("path", &target.path)
            .with("written_bytes", written_bytes);
    }
    Error::new(ErrorKind::Run, "layout", format!("the file system is full: {error}"))
        .with("path", &target.path)
        .with("written_bytes", written_bytes)
        .with("wanted_bytes", target.size_bytes)
        .remedy("give a smaller --size, or another file system")
}
