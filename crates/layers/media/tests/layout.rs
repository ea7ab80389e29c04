//! Laying files out: complete, marked, and gone when it fails.

mod scratch;

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::{Error, ErrorKind};
use host::extents::{Extents, extents};
use layer::MARK;
use media::layout::{Manifest, Progress, Request, prepare};
use media::probe::{is_own, probe};
use media::spec::Layout;
use scratch::{Loop, Mounted, run, skipped};
use workload::target::{TargetKind, TargetPlan};

const MIB: u64 = 1 << 20;

fn target(path: &Path, offset_bytes: u64, size_bytes: u64) -> TargetPlan {
    let path = path.to_str().unwrap().to_owned();
    let direct_alignment_bytes = probe(&path, true).unwrap().direct_alignment_bytes;
    TargetPlan { path, kind: TargetKind::File, offset_bytes, size_bytes, direct_alignment_bytes }
}

/// Content that tells target and offset.
fn content(buffer: &mut [u8], index: usize, offset: u64) {
    for (byte, at) in buffer.iter_mut().zip(offset..) {
        *byte = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ index as u8 | 1;
    }
}

fn expected(index: usize, offset: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    content(&mut bytes, index, offset);
    bytes
}

static NO_STOP: AtomicBool = AtomicBool::new(false);

fn request(needs_data: bool) -> Request<'static> {
    Request {
        needs_data,
        layout: Layout::Auto,
        refill: false,
        destroy_data: false,
        writes: false,
        direct: false,
        grain_bytes: 4096,
        fill: &content,
        stop: &NO_STOP,
        progress: &|_| {},
    }
}

fn lay_out(manifest: &mut Manifest, targets: &[TargetPlan]) -> Result<u64, Error> {
    prepare(manifest, targets, &request(true))
}

fn entries(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name != "lost+found").collect()
}

fn written(path: &Path, size: u64) -> bool {
    extents(path, 0..size).unwrap() == Extents { allocated_bytes: size, ..Extents::default() }
}

#[test]
fn files_are_full_marked_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    for direct in [false, true] {
        let targets = [target(&paths[0], 0, 3 * MIB + 5000), target(&paths[1], 4096, 70_000)];
        let reports = RefCell::new(Vec::new());
        let progress = |progress: Progress| reports.borrow_mut().push(progress);
        let request = Request { direct, progress: &progress, ..request(true) };
        let mut manifest = Manifest::new("run-7", false);
        assert_eq!(prepare(&mut manifest, &targets, &request).unwrap(), 3 * MIB + 75_000);
        let reports = reports.take();
        assert!(reports.iter().all(|report| report.total_bytes == 3 * MIB + 75_000));
        assert_eq!(reports.last().unwrap().written_bytes, 3 * MIB + 75_000);
        assert_eq!(std::fs::read(&paths[0]).unwrap(), expected(0, 0, 3 * MIB + 5000));
        assert_eq!(&std::fs::read(&paths[1]).unwrap()[4096..], expected(1, 4096, 70_000));
        let found = extents(&paths[0], 0..3 * MIB + 5000).unwrap();
        assert_eq!(found, Extents { allocated_bytes: 3 * MIB + 5000, ..Extents::default() });
        let mut mark = [0; 16];
        if let Ok(length) = rustix::fs::getxattr(&paths[0], MARK, &mut mark[..]) {
            assert_eq!(&mark[..length], b"run-7");
        }
        assert!(manifest.owns(&paths[0]) && manifest.paths().count() == 2);
        // A second phase of the same run finds everything in place.
        assert_eq!(prepare(&mut manifest, &targets, &request).unwrap(), 0);
        drop(manifest);
        assert!(entries(directory.path()).is_empty());
    }
}

#[test]
fn kept_files_stay_and_are_filled_where_they_were_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let mut manifest = Manifest::new("first", true);
    assert_eq!(prepare(&mut manifest, &[target(&path, 0, 4 * MIB)], &request(false)).unwrap(), 0);
    assert_eq!(path.metadata().unwrap().len(), 4 * MIB);
    drop(manifest);
    if !is_own(&path) {
        return skipped("kept_files_stay: no extended attributes");
    }
    File::options().write(true).open(&path).unwrap().write_all_at(&vec![7; MIB as usize], MIB).unwrap();
    let mut manifest = Manifest::new("second", false);
    assert_eq!(
        lay_out(&mut manifest, &[target(&path, 0, 5 * MIB)]).unwrap(),
        4 * MIB,
        "all but what was written"
    );
    assert!(written(&path, 5 * MIB));
    let mut whole = expected(0, 0, 5 * MIB);
    whole[MIB as usize..2 * MIB as usize].fill(7);
    assert!(std::fs::read(&path).unwrap() == whole);
    let refill = Request { refill: true, ..request(true) };
    assert_eq!(prepare(&mut manifest, &[target(&path, 0, 2 * MIB)], &refill).unwrap(), 2 * MIB);
    assert!(std::fs::read(&path).unwrap() == expected(0, 0, 5 * MIB));
    drop(manifest);
    assert_eq!(entries(directory.path()), ["data"], "the second run did not create it");
}

#[test]
fn the_user_says_how_a_file_is_made() {
    let directory = tempfile::tempdir().unwrap();
    // What is written, what is a hole, and what is allocated and unwritten afterwards.
    for (layout, needs_data, expected) in [
        (Layout::Auto, false, (0, 0, MIB)),
        (Layout::Auto, true, (MIB, 0, 0)),
        (Layout::Fill, false, (MIB, 0, 0)),
        (Layout::Allocate, true, (0, 0, MIB)),
        (Layout::Sparse, true, (0, MIB, 0)),
    ] {
        let path = directory.path().join("data");
        let mut manifest = Manifest::new("run", false);
        let request = Request { layout, ..request(needs_data) };
        let range = target(&path, 0, MIB);
        assert_eq!(prepare(&mut manifest, std::slice::from_ref(&range), &request).unwrap(), expected.0);
        assert_eq!(path.metadata().unwrap().len(), MIB, "{layout:?}");
        let found = extents(&path, 0..MIB).unwrap();
        assert_eq!((found.hole_bytes, found.unwritten_bytes), (expected.1, expected.2), "{layout:?}");
        assert_eq!(prepare(&mut manifest, std::slice::from_ref(&range), &request).unwrap(), 0);
    }
    // A file that is long enough is left as it is, but for filling.
    let path = directory.path().join("long");
    let mut manifest = Manifest::new("run", false);
    let range = [target(&path, 0, MIB)];
    let make =
        |manifest: &mut Manifest, layout| prepare(manifest, &range, &Request { layout, ..request(true) });
    for layout in [Layout::Sparse, Layout::Allocate, Layout::Sparse] {
        assert_eq!(make(&mut manifest, layout).unwrap(), 0);
        assert_eq!(extents(&path, 0..MIB).unwrap().hole_bytes, MIB, "{layout:?}");
    }
    assert_eq!(make(&mut manifest, Layout::Fill).unwrap(), MIB);
    assert_eq!(make(&mut manifest, Layout::Sparse).unwrap(), 0);
    assert!(written(&path, MIB));
}

#[test]
fn fill_gets_whole_grains() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let calls = RefCell::new(Vec::new());
    let fill = |buffer: &mut [u8], _: usize, offset: u64| {
        buffer.fill(1);
        calls.borrow_mut().push((offset, buffer.len() as u64));
    };
    let mut manifest = Manifest::new("run", false);
    let grain = 3 * 4096;
    let request = Request { fill: &fill, grain_bytes: grain, ..request(true) };
    prepare(&mut manifest, &[target(&path, 4096, 2 * MIB + 1)], &request).unwrap();
    let mut at = 4096;
    for (offset, length) in calls.into_inner() {
        assert_eq!((offset, (offset - 4096) % grain), (at, 0));
        at += length;
        assert!(length % grain == 0 || at == 4096 + 2 * MIB + 1);
    }
    assert_eq!(at, 4096 + 2 * MIB + 1);
}

#[test]
fn files_of_others_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("thesis");
    let file = File::create(&path).unwrap();
    file.write_all_at(b"words", 0).unwrap();
    file.set_len(MIB).unwrap();
    let mut manifest = Manifest::new("run", false);
    assert_eq!(lay_out(&mut manifest, &[target(&path, 0, MIB)]).unwrap(), 0);
    let error = lay_out(&mut manifest, &[target(&path, 0, MIB + 1)]).unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Usage, 2));
    assert!(error.to_string().contains("shorter than the range"), "{error}");
    assert!(extents(&path, 0..MIB).unwrap().hole_bytes > 0 && !is_own(&path));
    let given_up = Request { destroy_data: true, ..request(true) };
    assert!(prepare(&mut manifest, &[target(&path, 0, 2 * MIB)], &given_up).unwrap() > 0);
    assert!(written(&path, 2 * MIB));
    drop(manifest);
    assert_eq!(entries(directory.path()), ["thesis"], "never deleted");
}

#[test]
fn a_stop_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| directory.path().join(name));
    let mut manifest = Manifest::new("first", true);
    lay_out(&mut manifest, &[target(&old, 0, MIB)]).unwrap();
    let owned = is_own(&old);
    drop(manifest);
    let stop = AtomicBool::new(false);
    let progress = |progress: Progress| stop.store(progress.written_bytes >= 4 * MIB, Ordering::Relaxed);
    let request = Request { stop: &stop, progress: &progress, destroy_data: !owned, ..request(true) };
    let mut manifest = Manifest::new("second", true);
    let targets = [target(&old, 0, 3 * MIB), target(&new, 0, 8 * MIB)];
    let error = prepare(&mut manifest, &targets, &request).unwrap_err();
    assert!(error.kind() == ErrorKind::Run && error.to_string().contains("interrupted"), "{error}");
    assert_eq!(entries(directory.path()), ["old"]);
    assert!(std::fs::read(&old).unwrap() == expected(0, 0, MIB), "cut back to what it was");
}

#[test]
fn a_replaced_file_is_not_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let mut manifest = Manifest::new("run", false);
    lay_out(&mut manifest, &[target(&path, 0, 4096)]).unwrap();
    let other = directory.path().join("other");
    std::fs::write(&other, b"precious").unwrap();
    std::fs::rename(&other, &path).unwrap();
    manifest.remove_all().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn too_large_is_told_before_anything_is_touched() {
    let Some(mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=8m", "tmpfs"]) else {
        return skipped("too_large_is_told_before_anything_is_touched");
    };
    let targets = ["a", "b"].map(|name| target(&mounted.path().join(name), 0, 5 * MIB));
    let mut manifest = Manifest::new("run", false);
    let error = lay_out(&mut manifest, &targets).unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Run, 1));
    let line = error.to_string();
    assert!(line.contains("needed=10 MiB, free=8 MiB") && !line.contains('\n'), "{line}");
    assert!(entries(mounted.path()).is_empty());
    assert_eq!(lay_out(&mut manifest, &targets[..1]).unwrap(), 5 * MIB);
    assert!(written(&mounted.path().join("a"), 5 * MIB));
}

#[test]
fn a_disk_that_fills_up_in_the_middle() {
    let Some(device) = Loop::new(32 * MIB) else { return skipped("a_disk_that_fills_up_in_the_middle") };
    run(&["mkfs.ext4", "-q", "-F", "-m", "0", &device.device]).unwrap();
    let Some(mounted) = Mounted::new(&[&device.device]) else {
        return skipped("a_disk_that_fills_up_in_the_middle");
    };
    let ballast = mounted.path().join("ballast");
    let first = Cell::new(true);
    let fill = |buffer: &mut [u8], index: usize, offset: u64| {
        content(buffer, index, offset);
        if offset >= 4 * MIB && first.replace(false) {
            let file = File::create(&ballast).unwrap();
            let mut length = 0;
            while file.write_all_at(&vec![1; 65_536], length).is_ok() {
                length += 65_536;
            }
        }
    };
    let request = Request { fill: &fill, direct: true, ..request(true) };
    let mut manifest = Manifest::new("run", true);
    let targets = ["a", "b"].map(|name| target(&mounted.path().join(name), 0, 8 * MIB));
    let error = prepare(&mut manifest, &targets, &request).unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Run, 1));
    assert!(error.to_string().contains("No space left on device"), "{error}");
    assert!(error.to_string().contains("written_bytes=4194304"), "{error}");
    assert_eq!(entries(mounted.path()), ["ballast"]);
}

#[test]
fn a_read_only_place_is_a_system_error() {
    let Some(mounted) = Mounted::new(&["-t", "tmpfs", "-o", "ro", "tmpfs"]) else {
        return skipped("a_read_only_place_is_a_system_error");
    };
    let path = mounted.path().join("data");
    let text = path.to_str().unwrap();
    let error = probe(text, true).unwrap_err();
    assert_eq!((error.exit_code(), error.errno()), (1, Some(libc::EROFS)));
    let plan = TargetPlan {
        path: text.to_owned(),
        kind: TargetKind::File,
        offset_bytes: 0,
        size_bytes: 4096,
        direct_alignment_bytes: 512,
    };
    // tmpfs without content has all space free, so only the creation fails.
    let error = lay_out(&mut Manifest::new("run", false), &[plan]).unwrap_err();
    assert_eq!((error.exit_code(), error.errno()), (1, Some(libc::EROFS)));
}

#[test]
fn what_is_only_checked_is_never_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let existing = Request { layout: Layout::Existing, ..request(true) };
    let mut manifest = Manifest::new("run", false);
    let refused = |manifest: &mut Manifest, range: &[TargetPlan]| {
        let error = prepare(manifest, range, &existing).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Run);
        error.to_string()
    };
    let missing = [target(&path, 0, MIB)];
    assert!(refused(&mut manifest, &missing).contains("does not exist, and strata does not create it"));
    assert!(entries(directory.path()).is_empty());
    File::create(&path).unwrap().set_len(MIB).unwrap();
    let line = refused(&mut manifest, &[target(&path, 4096, MIB)]);
    assert!(line.contains("file_size_bytes=1048576") && line.contains("range_end_bytes=1052672"), "{line}");
    assert_eq!(prepare(&mut manifest, &[target(&path, 0, MIB)], &existing).unwrap(), 0);
    let found = extents(&path, 0..MIB).unwrap();
    assert_eq!((path.metadata().unwrap().len(), found.hole_bytes), (MIB, MIB), "its holes stay");
}

#[test]
fn zeros_are_nobodys_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let file = File::create(&path).unwrap();
    file.set_len(2 * MIB).unwrap();
    file.write_all_at(&vec![0; 70_000], MIB).unwrap();
    let range = [target(&path, 0, 3 * MIB)];
    let mut manifest = Manifest::new("run", false);
    let reads = prepare(&mut manifest, &range, &request(true)).unwrap_err();
    assert!(
        reads.to_string().contains("shorter than the range"),
        "a phase that reads changes nothing: {reads}"
    );
    let writes = Request { writes: true, ..request(true) };
    prepare(&mut manifest, &range, &writes).unwrap();
    assert_eq!(path.metadata().unwrap().len(), 3 * MIB);
    drop(manifest);
    assert_eq!(entries(directory.path()), ["data"], "not of the run, and still there");
    let other = directory.path().join("other");
    std::fs::write(&other, [vec![0; 100_000], vec![1]].concat()).unwrap();
    let error = prepare(&mut Manifest::new("run", false), &[target(&other, 0, MIB)], &writes).unwrap_err();
    assert!(error.to_string().contains("strata did not create it"), "{error}");
    assert_eq!(other.metadata().unwrap().len(), 100_001);
}
