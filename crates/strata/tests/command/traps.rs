//! Traps between an operation and the medium, set up with real parts: loop devices, overlays, control groups, mounts. Each
//! raises its doubt, and the same load without the trap does not.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FallocateFlags, fallocate};
use testkit::SlowFile;

use crate::doubts::{Told, in_memory, on_a_drive};
use crate::support::{Ended, Loop, Mounted, NO_ROOT, Scratch, read_record, skipped, tool};

const MIB: u64 = 1 << 20;

/// A file of that many bytes that are all written and on the drive.
fn written(path: &Path, bytes: u64) {
    let data: Vec<u8> = (0..bytes).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
    fs::write(path, data).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}

/// A file of sysfs about a device, such as `queue/write_cache` of `/dev/loop0`.
fn about(device: &str, file: &str) -> PathBuf {
    Path::new("/sys/block").join(device.strip_prefix("/dev/").unwrap()).join(file)
}

#[test]
fn direct_through_the_cache_of_a_loop_device() {
    let test = "direct_through_the_cache_of_a_loop_device";
    let Some(scratch) = on_a_drive(test) else { return };
    let backing = scratch.join("backing");
    written(&backing, 32 * MIB);
    let words = |disk: &Loop| format!("media {} --op randread --direct -b 64k --count 512", disk.device);
    {
        let Some(disk) = Loop::over(&backing, &["--direct-io=off"]) else { return skipped(test, NO_ROOT) };
        let told = Told::by(&scratch, &words(&disk));
        let detail = told.raised("direct_not_honoured");
        assert!(detail.contains("through the page cache, which ignores --direct"), "{detail}");
        let doubts = told.record["phases"][0]["doubts"].to_string();
        assert!(doubts.contains("losetup --direct-io=on"), "the remedy is the loop device's: {doubts}");
    }
    let disk = Loop::over(&backing, &["--direct-io=on"]).unwrap();
    if fs::read_to_string(about(&disk.device, "loop/dio")).is_ok_and(|direct| direct.trim() == "1") {
        Told::by(&scratch, &words(&disk)).silent("direct_not_honoured");
    }
}

#[test]
fn direct_on_a_file() {
    let Some(scratch) = on_a_drive("direct_on_a_file") else { return };
    for words in ["--op randread -b 64k", "--op randwrite -b 64k", "--op randrw -b 16k"] {
        let (ended, record) = scratch.measure(&format!("media file -s 8m {words} --direct --count 256"));
        if ended.code == Some(2) {
            return skipped("direct_on_a_file", "the file system takes no direct I/O");
        }
        Told::new(&ended, record).silent("direct_not_honoured");
    }
}

#[test]
fn direct_dropped_by_a_program_that_serves_a_file() {
    let place = tempfile::tempdir().unwrap();
    let file = match SlowFile::mount(place.path(), 32 * MIB, 0, |_| std::time::Duration::ZERO) {
        Ok(file) => file,
        Err(error) => return skipped("direct_dropped_by_a_program_that_serves_a_file", &error.to_string()),
    };
    let words = format!("media {} --op randread --direct -b 1m --count 800", file.path().display());
    let told =
        Told::by_one_of_five(&Scratch::new(), &words, |told| told.detail("direct_not_honoured").is_some());
    let detail = told.raised("direct_not_honoured");
    assert!(
        detail.starts_with("of 800 MiB read with --direct, at most ") && detail.contains("FUSE"),
        "{detail}"
    );
}

/// An overlay over two directories below `place`.
fn overlay(place: &Path) -> Option<Mounted> {
    let made = ["lower", "upper", "work"].map(|name| place.join(name));
    made.iter().for_each(|directory| fs::create_dir(directory).unwrap());
    let [lower, upper, work] = made.map(|directory| directory.to_str().unwrap().to_owned());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    Mounted::new(&["-t", "overlay", "-o", &options, "overlay"])
}

#[test]
fn the_page_cache_below_an_overlay() {
    let test = "the_page_cache_below_an_overlay";
    let Some(scratch) = on_a_drive(test) else { return };
    let Some(mounted) = overlay(scratch.path()) else { return skipped(test, NO_ROOT) };
    for name in ["upper/new", "lower/old"] {
        written(&scratch.join(name), 8 * MIB);
        let file = mounted.path().join(Path::new(name).file_name().unwrap());
        let words = format!("media {} --op read -b 64k", file.display());
        let told = Told::by(&scratch, &words);
        assert_eq!(told.observed("cached_before_fraction"), 1.0, "{name}");
        assert!(told.raised("page_cache").starts_with("100% of the range was in the page cache"), "{name}");
        tool(&[
            "dd",
            &format!("of={}", scratch.join(name).display()),
            "oflag=nocache",
            "conv=notrunc,fdatasync",
            "count=0",
        ]);
        let told = Told::by(&scratch, &words);
        assert_eq!(told.observed("cached_before_fraction"), 0.0, "{name}");
        told.silent("page_cache");
        assert!(told.observed("device_read_bytes").as_u64().unwrap() >= 8 * MIB, "the drive below is found");
    }
}

#[test]
fn an_overlay_over_memory() {
    let test = "an_overlay_over_memory";
    let Some(memory) = in_memory(test) else { return };
    let Some(mounted) = overlay(memory.path()) else { return skipped(test, NO_ROOT) };
    let words = format!("media {} -s 4m --op write -b 64k", mounted.path().join("file").display());
    let told = Told::by(&Scratch::new(), &words);
    assert!(told.raised("memory_target").contains("(overlay over tmpfs)"));
}

/// A control group with one setting, for the length of a test.
struct Group(PathBuf);

impl Group {
    /// With a setting of the controller, in the words of the second generation or the first; none where that is not allowed.
    fn new(controllers: [&str; 2], settings: [(&str, String); 2]) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let name = format!("strata-test-{}-{}", controllers[0], std::process::id());
        let has_new = fs::read_to_string(root.join("cgroup.subtree_control"))
            .is_ok_and(|text| text.split_whitespace().any(|word| word == controllers[0]));
        let (directory, setting) = match has_new {
            true => (root.join(name), &settings[0]),
            false => (root.join(controllers[1]).join(name), &settings[1]),
        };
        fs::create_dir(&directory).ok()?;
        let group = Self(directory);
        fs::write(group.0.join(setting.0), &setting.1).ok()?;
        Some(group)
    }

    /// Runs a load in it.
    fn by(&self, scratch: &Scratch, words: &str) -> Told {
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        let output = Command::new("sh")
            .args(["-c", &enter, "sh", env!("CARGO_BIN_EXE_strata")])
            .args(words.split_whitespace())
            .args(["--json", "record.json"])
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let ended =
            Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        Told::new(&ended, read_record(&scratch.join("record.json")))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_quota_of_processor_time() {
    let settings = [("cpu.max", "20000 100000".to_owned()), ("cpu.cfs_quota_us", "20000".to_owned())];
    let Some(group) = Group::new(["cpu", "cpu"], settings) else {
        return skipped("a_quota_of_processor_time", "no control group with a quota can be made here");
    };
    let scratch = Scratch::new();
    let words = "media null: --op nop --time 1s";
    let told = group.by(&scratch, words);
    let detail = told.raised("cpu_throttled");
    assert!(detail.starts_with("the control group's quota of 0.20 "), "{detail}");
    assert!(told.observed("cpu_throttling")["throttled_periods"].as_u64().unwrap() > 0);
    let told = Told::by(&scratch, words);
    if told.observed("cpu_throttling").is_null() {
        told.silent("cpu_throttled");
    }
}

#[test]
fn a_limit_on_a_device() {
    let test = "a_limit_on_a_device";
    let Some(scratch) = on_a_drive(test) else { return };
    let backing = scratch.join("backing");
    written(&backing, 32 * MIB);
    let Some(disk) = Loop::over(&backing, &["--direct-io=on"]) else { return skipped(test, NO_ROOT) };
    let number = fs::read_to_string(about(&disk.device, "dev")).unwrap().trim().to_owned();
    let limit = 2 * MIB;
    let settings = [
        ("io.max", format!("{number} rbps={limit}")),
        ("blkio.throttle.read_bps_device", format!("{number} {limit}")),
    ];
    let Some(group) = Group::new(["io", "blkio"], settings) else {
        return skipped(test, "no control group with a limit can be made here");
    };
    let words =
        |rate: &str| format!("media {} --op randread --direct -b 16k -q 4 -e io_uring {rate}", disk.device);
    let told = group.by(&scratch, &words("--time 2s"));
    let detail = told.raised("io_throttled");
    assert!(
        detail.starts_with("a control group limits reads of loop") && detail.contains(" to 2.00 MiB/s, and "),
        "{detail}"
    );
    // A quarter of the limit.
    group.by(&scratch, &words("--rate 32 --time 1s")).silent("io_throttled");
}

#[test]
fn a_mapping_that_reads_ahead() {
    let test = "a_mapping_that_reads_ahead";
    let Some(scratch) = on_a_drive(test) else { return };
    written(&scratch.join("data"), 64 * MIB);
    let told = Told::by(&scratch, "media data --op randread -e mmap -b 4k --cache drop --count 500");
    if told.observed("process_fetched_bytes").as_u64().is_none_or(|bytes| bytes < 32 * MIB) {
        return skipped(test, "the kernel does not count what a process reads, or reads little ahead");
    }
    assert!(told.raised("read_amplification").ends_with("from the device (read-ahead)"));
    Told::by(&scratch, "media data --op read -e mmap -b 64k --cache drop").silent("read_amplification");
}

#[test]
fn writes_into_allocated_space() {
    let test = "writes_into_allocated_space";
    let Some(scratch) = on_a_drive(test) else { return };
    let (ended, record) = scratch.measure("media new -s 8m --op write -b 64k --direct");
    if ended.code == Some(2) || record["phases"][0]["observations"]["unwritten_fraction"] != 1.0 {
        return skipped(test, "the file system takes no direct I/O or knows no unwritten extents");
    }
    let told = Told::new(&ended, record);
    assert!(told.raised("unwritten_extents").starts_with("100% of the range was never written"));
    for words in ["--op write --layout fill --direct", "--op randwrite --direct", "--op write"] {
        Told::by(&scratch, &format!("media other -s 8m -b 64k {words}")).silent("unwritten_extents");
    }
}

/// An ext4 of 64 MiB on a loop device, with options of the mount.
fn ext4(scratch: &Scratch, options: &str) -> Option<Mounted> {
    let image = scratch.join("image");
    let path = image.to_str().unwrap();
    File::create(&image).unwrap().set_len(64 * MIB).unwrap();
    tool(&["mkfs.ext4", "-q", "-F", "-m", "0", path])?;
    Mounted::new(&["-o", &format!("loop,{options}"), path])
}

#[test]
fn fsync_without_barriers() {
    let Some(scratch) = on_a_drive("fsync_without_barriers") else { return };
    let words = |mounted: &Mounted, how: &str| {
        format!("media {} -s 4m --op write -b 64k {how}", mounted.path().join("file").display())
    };
    {
        let Some(mounted) = ext4(&scratch, "barrier=0") else {
            return skipped("fsync_without_barriers", NO_ROOT);
        };
        let told = Told::by(&scratch, &words(&mounted, "--fsync 1"));
        assert!(told.raised("volatile_cache").contains(" is mounted with nobarrier: fsync does not empty"));
        Told::by(&scratch, &words(&mounted, "")).silent("volatile_cache");
    }
    let mounted = ext4(&scratch, "barrier=1").unwrap();
    Told::by(&scratch, &words(&mounted, "--fsync 1")).silent("volatile_cache");
}

/// Cache mode that the kernel assumes of a loop device; set back at the end, because the device keeps it for its next user.
struct CacheKind(PathBuf);

impl Drop for CacheKind {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "write back");
    }
}

#[test]
fn a_cache_that_is_never_flushed() {
    let test = "a_cache_that_is_never_flushed";
    let Some(scratch) = on_a_drive(test) else { return };
    let Some(disk) = Loop::new(scratch.path(), 16 * MIB) else { return skipped(test, NO_ROOT) };
    let words = format!("media {} --op write -b 64k --direct --fsync 1 --destroy-data", disk.device);
    Told::by(&scratch, &words).silent("volatile_cache");
    let kind = CacheKind(about(&disk.device, "queue/write_cache"));
    if fs::write(&kind.0, "write through").is_err() {
        return skipped(test, "the kernel does not let the kind of cache be set");
    }
    let told = Told::by(&scratch, &words);
    let found = told.record["environment"]["targets"][0]["device"]["underlying"][0]["write_cache"].clone();
    if found == "write back" {
        assert!(told.raised("volatile_cache").contains("below it has one"));
    }
}

#[test]
fn a_file_system_nearly_full() {
    let test = "a_file_system_nearly_full";
    let Some(scratch) = on_a_drive(test) else { return };
    let Some(mounted) = ext4(&scratch, "rw") else { return skipped(test, NO_ROOT) };
    let words = format!("media {} -s 1m --op write -b 64k", mounted.path().join("file").display());
    Told::by(&scratch, &words).silent("nearly_full");
    let space = rustix::fs::statvfs(mounted.path()).unwrap();
    let filler = File::create(mounted.path().join("filler")).unwrap();
    let free = space.f_bavail * space.f_frsize;
    fallocate(&filler, FallocateFlags::empty(), 0, free - 2 * MIB).unwrap();
    let told = Told::by(&scratch, &words);
    assert!(told.raised("nearly_full").ends_with("of the file system is free"));
    Told::by(&scratch, &words.replace("--op write", "--op read")).silent("nearly_full");
}

#[test]
fn compressed_and_shared_blocks() {
    let test = "compressed_and_shared_blocks";
    let Some(scratch) = on_a_drive(test) else { return };
    let image = scratch.join("image");
    File::create(&image).unwrap().set_len(192 * MIB).unwrap();
    let path = image.to_str().unwrap();
    if tool(&["mkfs.btrfs", "-q", path]).is_none() {
        return skipped(test, "no mkfs.btrfs");
    }
    let Some(mounted) = Mounted::new(&["-o", "loop,compress=zstd", path]) else {
        return skipped(test, NO_ROOT);
    };
    let file = |name: &str| mounted.path().join(name);
    let words = |name: &str| format!("media {} --op read -b 64k --cache drop", file(name).display());
    fs::write(file("zeros"), vec![0; 8 << 20]).unwrap();
    written(&file("random"), 8 * MIB);
    assert!(tool(&["sync", "-f", mounted.path().to_str().unwrap()]).is_some());
    let told = Told::by(&scratch, &words("zeros"));
    assert!(told.raised("encoded_extents").contains("is stored compressed"));
    told.silent("page_cache");
    Told::by(&scratch, &words("random")).silent("encoded_extents");
    let copy = file("copy");
    tool(&["cp", "--reflink=always", file("random").to_str().unwrap(), copy.to_str().unwrap()]).unwrap();
    let told = Told::by(&scratch, &words("copy"));
    assert!(told.raised("encoded_extents").contains("shares blocks with other data (reflinks)"));
}

#[test]
fn a_remedy_does_not_name_what_was_done() {
    let Some(scratch) = on_a_drive("a_remedy_does_not_name_what_was_done") else { return };
    written(&scratch.join("data"), 8 * MIB);
    let told = Told::by(&scratch, "media data --op randread -b 64k --cache drop --count 20000");
    if told.detail("page_cache").is_some() {
        let doubts = told.record["phases"][0]["doubts"].as_array().unwrap();
        let doubt = doubts.iter().find(|doubt| doubt["kind"] == "page_cache").unwrap();
        assert!(!doubt["remedy"].as_str().unwrap().contains("--cache drop"), "{doubt}");
    }
}
