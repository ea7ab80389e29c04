//! Laying files out: before a file is read it is created and filled in full, so that no read hits a hole or a
//! stretch that was allocated but never written, which the file system would serve without the device; unless the user
//! wants it otherwise.

mod leftovers;
mod manifest;
mod writer;

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::atomic::AtomicBool;

use crate::spec::Layout;
use driver::{Error, ErrorKind};
use host::extents::{self, Backing};
use rustix::fs::{FallocateFlags, XattrFlags};
use units::ByteSize;
use workload::target::{TargetKind, TargetPlan};

use crate::probe::is_own;
use crate::safety::is_blank;
use layer::MARK;
pub use leftovers::{Leftover, look, remove};
pub use manifest::{Journal, Manifest};

/// How far a layout has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Written so far, in bytes.
    pub written_bytes: u64,
    /// To be written in all, in bytes.
    pub total_bytes: u64,
}

/// Options of [`prepare`].
pub struct Request<'a> {
    /// Whether the ranges will be read or overwritten at random: [`Layout::Auto`] fills them then, and only allocates
    /// their space otherwise.
    pub needs_data: bool,
    /// How files are made that are missing, empty or too short. What a file holds beyond that is touched by filling alone.
    pub layout: Layout,
    /// Fill what is already written too: its content is of another run, and this one verifies.
    pub refill: bool,
    /// Existing files that strata did not create may be extended and filled. They are never deleted.
    pub destroy_data: bool,
    /// The phase writes: existing files of zeros alone, which are nobody's data, may be extended and filled too, and count as
    /// strata's from then on.
    pub writes: bool,
    /// Write past the page cache where the alignment allows it.
    pub direct: bool,
    /// `fill` gets whole multiples of this many bytes, counted from the start of the target's range, but for
    /// the range's end.
    pub grain_bytes: u64,
    /// Makes the content: buffer, index of the target, offset in the target in bytes.
    pub fill: &'a dyn Fn(&mut [u8], usize, u64),
    /// Ends the layout early, as an error.
    pub stop: &'a AtomicBool,
    /// Told after every write.
    pub progress: &'a dyn Fn(Progress),
}

impl Request<'_> {
    /// Whether everything that was never written gets data.
    fn fills(&self) -> bool {
        match self.layout {
            Layout::Auto => self.needs_data,
            Layout::Fill => true,
            Layout::Allocate | Layout::Sparse | Layout::Existing => false,
        }
    }
}

/// A file that is to be filled, open for writing and of full length.
struct Job {
    index: usize,
    file: File,
    /// Ranges to fill, in order.
    ranges: Vec<Range<u64>>,
}

/// An existing file that was made longer, to be cut back on failure.
struct Extended {
    file: File,
    size_bytes: u64,
}

/// Makes the files among `targets` ready for a phase and returns the number of bytes written. Other kinds are
/// left alone, and so are existing files of others, which must be long enough, and all files with [`Layout::Existing`]. Files are
/// created with mode
/// 0644 and a mark ([`MARK`]) where the file system keeps extended attributes; the manifest remembers them.
///
/// # Errors
/// Not enough space (found out beforehand, or in the middle), a file shorter than its range, the stop flag,
/// or the system's. What this call created is gone then, and what it extended is cut back.
pub fn prepare(manifest: &mut Manifest, targets: &[TargetPlan], request: &Request<'_>) -> Result<u64, Error> {
    let before = manifest.len();
    let mut extended = Vec::new();
    let result = lay_out(manifest, targets, request, &mut extended);
    if result.is_err() {
        for Extended { file, size_bytes } in &extended {
            // The error that led here is the one worth telling.
            let _ = file.set_len(*size_bytes);
        }
        let _ = manifest.remove_from(before);
    }
    result
}

fn lay_out(
    manifest: &mut Manifest,
    targets: &[TargetPlan],
    request: &Request<'_>,
    extended: &mut Vec<Extended>,
) -> Result<u64, Error> {
    let is_file = |(_, target): &(usize, &TargetPlan)| target.kind == TargetKind::File;
    if request.layout == Layout::Existing {
        for (_, target) in targets.iter().enumerate().filter(is_file) {
            check_existing(target)?;
            if request.writes {
                hold(manifest, target, &open_writable(target)?, request)?;
            }
        }
        return Ok(0);
    }
    // Found out once: what lies there may have to be read.
    let leaves: Vec<bool> = targets.iter().map(|target| is_of_others(target, request)).collect();
    check_space(targets, &leaves, request)?;
    manifest.announce(targets.iter().enumerate().filter(is_file).map(|(_, target)| target.place()))?;
    let mut jobs = Vec::new();
    for (index, target) in targets.iter().enumerate().filter(is_file) {
        if let Some(file) = open(manifest, target, leaves[index])? {
            hold(manifest, target, &file, request)?;
            lengthen(&file, target, request, manifest, extended)?;
            let ranges = if request.fills() { ranges_to_fill(&file, target, request)? } else { Vec::new() };
            if !ranges.is_empty() {
                jobs.push(Job { index, file: open_writable(target)?, ranges });
            }
        }
    }
    manifest.settle()?;
    writer::write_all(&jobs, targets, request)
}

fn end_of(target: &TargetPlan) -> Result<u64, Error> {
    target.offset_bytes.checked_add(target.size_bytes).filter(|&end| i64::try_from(end).is_ok()).ok_or_else(
        || Error::usage("layout", "the range ends beyond the largest file offset").with("path", &target.path),
    )
}

fn failed<'a>(message: &'static str, target: &'a TargetPlan) -> impl Fn(std::io::Error) -> Error + 'a {
    move |error| Error::system("layout", message, error).with("path", &target.path)
}

/// Whether an existing file must not be changed: neither created by strata, nor empty, nor given up by the user.
fn is_of_others(target: &TargetPlan, request: &Request<'_>) -> bool {
    let path = &*target.place();
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let is_free = request.destroy_data || size == 0 || is_own(path);
    target.kind == TargetKind::File && !is_free && !(request.writes && is_blank(path))
}

/// Refuses a file that is not there to the end of its range: [`Layout::Existing`] makes none.
///
/// # Errors
/// [`ErrorKind::Run`]: what was to be found there is lost.
pub fn check_existing(target: &TargetPlan) -> Result<(), Error> {
    let end = end_of(target)?;
    let lost = |message: &'static str| {
        Error::new(ErrorKind::Run, "layout", message).with("path", &target.path).with("range_end_bytes", end)
    };
    match std::fs::metadata(target.place()) {
        Ok(metadata) if metadata.len() >= end => Ok(()),
        Ok(metadata) => {
            Err(lost("the file is shorter than the range to read, and strata does not extend it")
                .with("file_size_bytes", metadata.len()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(lost("the file to read does not exist, and strata does not create it"))
        }
        Err(error) => Err(failed("cannot read the metadata of the file", target)(error)),
    }
}

/// Compares what the files will take with what their file systems have, all files on one together.
fn check_space(targets: &[TargetPlan], leaves: &[bool], request: &Request<'_>) -> Result<(), Error> {
    let mut needs: BTreeMap<u64, (u64, &TargetPlan)> = BTreeMap::new();
    let mut seen = HashSet::new();
    let files = targets.iter().zip(leaves).filter(|(target, _)| target.kind == TargetKind::File);
    for (target, &is_left) in files {
        if !seen.insert(&target.path) {
            continue;
        }
        let place = manifest::existing_place(&target.place());
        let metadata = std::fs::metadata(&place)
            .map_err(failed("cannot read the metadata of the file's directory", target))?;
        let need = if is_left { 0 } else { needed_bytes(target, request)? };
        let entry = needs.entry(metadata.dev()).or_insert((0, target));
        entry.0 = entry.0.saturating_add(need);
    }
    for (need, target) in needs.into_values() {
        let place = manifest::existing_place(&target.place());
        // File systems that do not tell (all zero) are left to fail by themselves.
        let Ok(space) = rustix::fs::statvfs(&place) else { continue };
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        if space.f_blocks > 0 && need > free {
            return Err(Error::new(ErrorKind::Run, "layout", "not enough free space for the files")
                .with("path", &target.path)
                .with("needed", ByteSize(need).human())
                .with("free", ByteSize(free).human())
                .remedy("give a smaller --size, or another file system"));
        }
    }
    Ok(())
}

/// Bytes of the range that are not allocated yet and will be.
fn needed_bytes(target: &TargetPlan, request: &Request<'_>) -> Result<u64, Error> {
    if request.layout == Layout::Sparse {
        return Ok(0);
    }
    let path = &*target.place();
    let range = target.offset_bytes..end_of(target)?;
    match std::fs::metadata(path) {
        Ok(_) => extents::extents(path, range)
            .map(|found| found.hole_bytes)
            .map_err(failed("cannot examine the file", target)),
        Err(_) => Ok(target.size_bytes),
    }
}

/// Opens the file, creates it where it is missing. `None`: a file of others, which is left as it is.
fn open(manifest: &mut Manifest, target: &TargetPlan, is_left: bool) -> Result<Option<File>, Error> {
    let path = &*target.place();
    let end = end_of(target)?;
    match std::fs::metadata(path) {
        Ok(metadata) if is_left && !manifest.owns(path) => {
            if metadata.len() >= end {
                return Ok(None);
            }
            Err(Error::usage("layout", "the file is shorter than the range, and strata did not create it")
                .with("path", &target.path)
                .with("file_size_bytes", metadata.len())
                .with("range_end_bytes", end)
                .remedy("give a smaller --size, or --destroy-data to extend it"))
        }
        // A file that needs nothing may well be read-only.
        Ok(metadata) if metadata.len() >= end => {
            File::open(path).map(Some).map_err(failed("cannot open the file", target))
        }
        Ok(_) => open_writable(target).map(Some),
        Err(_) => {
            let create = OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(path);
            let file = create.map_err(failed("cannot create the file", target))?;
            manifest.add(path, &file).map_err(failed("cannot read the metadata of the new file", target))?;
            Ok(Some(file))
        }
    }
}

/// Keeps a file that this run writes, or makes, from other runs as long as it lasts.
fn hold(
    manifest: &mut Manifest,
    target: &TargetPlan,
    file: &File,
    request: &Request<'_>,
) -> Result<(), Error> {
    let is_short = file.metadata().map_err(failed("cannot read the metadata of the file", target))?.len()
        < end_of(target)?;
    if !request.writes && !is_short && !request.refill && !manifest.owns(&target.place()) {
        return Ok(());
    }
    let is_held = manifest.hold(file).map_err(failed("cannot lock the file", target))?;
    if is_held || request.destroy_data { Ok(()) } else { Err(manifest::in_use(&target.path)) }
}

fn open_writable(target: &TargetPlan) -> Result<File, Error> {
    let open = OpenOptions::new().read(true).write(true).open(target.place());
    open.map_err(failed("cannot open the file for writing", target))
}

/// Brings the file to its length, and allocates its space unless filling will do that.
fn lengthen(
    file: &File,
    target: &TargetPlan,
    request: &Request<'_>,
    manifest: &Manifest,
    extended: &mut Vec<Extended>,
) -> Result<(), Error> {
    let end = end_of(target)?;
    let size = file.metadata().map_err(failed("cannot read the metadata of the file", target))?.len();
    let path = &*target.place();
    // What is neither strata's nor given up by the user is zeros alone, or it would not be here.
    let is_adopted = request.writes && !request.destroy_data && !is_own(path);
    if size == 0 || manifest.owns(path) || is_adopted {
        // File systems without extended attributes keep no mark: a later run will ask for --destroy-data.
        let _ = rustix::fs::fsetxattr(file, MARK, manifest.run_id().as_bytes(), XattrFlags::empty());
    }
    if size >= end {
        return Ok(());
    }
    let copy = file.try_clone().map_err(failed("cannot open the file", target))?;
    extended.push(Extended { file: copy, size_bytes: size });
    if !request.fills() && request.layout != Layout::Sparse && target.size_bytes > 0 {
        let start = target.offset_bytes;
        match rustix::fs::fallocate(file, FallocateFlags::empty(), start, target.size_bytes) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
            Err(error) => return Err(writer::write_failed(error.into(), target, 0)),
        }
    }
    file.set_len(end).map_err(|error| writer::write_failed(error, target, 0))
}

/// The stretches of the target's range that hold no written data, widened to whole grains; all of it for a
/// refill.
fn ranges_to_fill(file: &File, target: &TargetPlan, request: &Request<'_>) -> Result<Vec<Range<u64>>, Error> {
    let whole = target.offset_bytes..end_of(target)?;
    if request.refill {
        return Ok(vec![whole]);
    }
    let grain = request.grain_bytes.max(1);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    extents::walk(file, whole.clone(), &mut |part, backing| {
        if matches!(backing, Backing::Written | Backing::Altered { .. }) {
            return;
        }
        let start = whole.start + (part.start - whole.start) / grain * grain;
        let end = (part.end - whole.start)
            .div_ceil(grain)
            .saturating_mul(grain)
            .saturating_add(whole.start)
            .min(whole.end);
        match ranges.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => ranges.push(start..end),
        }
    })
    .map_err(failed("cannot examine the file", target))?;
    Ok(ranges)
}
