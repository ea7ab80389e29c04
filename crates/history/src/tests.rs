use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use report::record::{Record, Status};
use report::sample::{DRIVE, Shape, phase, record};
use tempfile::TempDir;

use super::*;

/// A run of the drive at this rate, the `at`-th of a day each.
fn made(at: usize, rate: f64) -> Record {
    registry::register();
    let mut made = record(vec![phase(&Shape { operations_per_second: rate, ..DRIVE })]);
    made.started_at = format!("2026-11-{:02}T03:00:00.000Z", at + 1);
    made.run_id = format!("{at:016x}");
    made
}

fn add(directory: &Path, record: &Record, series: Option<&str>) -> Added {
    let json = report::to_json(record).unwrap();
    Store::open_for_more(directory).unwrap().add(record, &json, series).unwrap()
}

fn ids(directory: &Path) -> Vec<String> {
    let (runs, _) = Store::open(directory).unwrap().runs().unwrap();
    runs.into_iter().map(|run| run.run_id).collect()
}

fn three() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for at in 0..3 {
        add(directory.path(), &made(at, 400_000.0 + at as f64), None);
    }
    directory
}

#[test]
fn records_go_in_and_come_out_as_they_were() {
    let directory = three();
    let mut store = Store::open(directory.path()).unwrap();
    let (runs, remarks) = store.runs().unwrap();
    assert!(remarks.is_empty() && store.in_memory().is_none(), "{remarks:?}");
    for (at, run) in runs.iter().enumerate() {
        let record = made(at, 400_000.0 + at as f64);
        assert_eq!(store.record(&run.path).unwrap(), record);
        // The index says what the record says.
        assert_eq!(*run, run_of(&record, run.path.clone()));
    }
    assert_eq!(runs[1].path, "20261102T030000Z-0000000000000001.json.gz");
    assert_eq!(add(directory.path(), &made(1, 5.0), None), Added::Known(runs[1].path.clone()));
    let names: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 4, "three records and the index, nothing besides: {names:?}");
}

#[test]
fn a_series_of_a_name_is_a_directory() {
    let directory = three();
    assert_eq!(
        add(directory.path(), &made(7, 1e5), Some("nightly-nvme")),
        Added::New("nightly-nvme/20261108T030000Z-0000000000000007.json.gz".to_owned())
    );
    let (runs, _) = Store::open(directory.path()).unwrap().runs().unwrap();
    assert_eq!(runs[3].series, "nightly-nvme");
    let mut store = Store::open(directory.path()).unwrap();
    for name in ["", ".", "..", "../x", "a/b", ".hidden", "a b", "ä", &"x".repeat(65)] {
        let error = store.add(&made(9, 1e5), "{}", Some(name)).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{name}");
    }
    assert_eq!(ids(directory.path()).len(), 4);
}

#[test]
fn runs_that_are_not_whole_are_no_measure() {
    let directory = three();
    let mut store = Store::open(directory.path()).unwrap();
    for status in [Status::Partial, Status::Running] {
        let mut broken = made(9, 1e5);
        broken.status = status;
        let error = store.add(&broken, "{}", None).unwrap_err();
        assert!(error.to_string().contains("not complete"), "{error}");
    }
    // One that somebody put there is shown with its failure.
    let mut broken = made(9, 1e5);
    (broken.status, broken.failure) = (Status::Partial, Some("interrupted".to_owned()));
    fs::write(directory.path().join("own.json"), report::to_json(&broken).unwrap()).unwrap();
    let (runs, _) = Store::open(directory.path()).unwrap().runs().unwrap();
    assert_eq!(runs[3].failure.as_deref(), Some("interrupted"));
}

#[test]
fn the_index_follows_what_others_do_with_the_files() {
    let directory = three();
    let path = |name: &str| directory.path().join(name);
    // Plain and packed records that were copied there, one changed in its place, one removed.
    fs::write(path("plain.json"), report::to_json(&made(5, 1e5)).unwrap()).unwrap();
    let mut packed = GzEncoder::new(fs::File::create(path("packed.json.gz")).unwrap(), Compression::fast());
    packed.write_all(report::to_json(&made(6, 1e5)).unwrap().as_bytes()).unwrap();
    packed.finish().unwrap();
    fs::remove_file(path("20261101T030000Z-0000000000000000.json.gz")).unwrap();
    assert_eq!(ids(directory.path()), [1, 2, 5, 6].map(|at| format!("{at:016x}")));
    fs::write(path("plain.json"), report::to_json(&made(8, 1e5)).unwrap()).unwrap();
    assert_eq!(ids(directory.path()), [1, 2, 6, 8].map(|at| format!("{at:016x}")));
    // What is no record is told, and does not stop the rest.
    fs::write(path("comparison.json"), "{}").unwrap();
    fs::write(path("broken.json.gz"), [0x1f, 0x8b, 8, 0, 1, 2, 3]).unwrap();
    fs::copy(path("plain.json"), path("again.json")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("endless.json")).unwrap();
    let (runs, remarks) = Store::open(directory.path()).unwrap().runs().unwrap();
    assert_eq!(runs.len(), 4);
    let told = remarks.join("\n");
    assert!(told.contains("ignored comparison.json: not a record of strata"), "{told}");
    assert!(told.contains("ignored broken.json.gz: cannot read the file"), "{told}");
    assert!(told.contains("plain.json: the same run as again.json"), "{told}");
    assert!(!told.contains("endless"), "links are passed over: {told}");
}

#[test]
fn an_index_that_is_damaged_or_of_another_version_is_made_again() {
    let directory = three();
    let index = directory.path().join(INDEX_NAME);
    let whole = fs::read(&index).unwrap();
    let old = rusqlite::Connection::open(&index).unwrap();
    old.execute_batch("DROP TABLE figures; PRAGMA user_version = 77").unwrap();
    drop(old);
    assert_eq!(ids(directory.path()).len(), 3);
    fs::write(&index, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(ids(directory.path()).len(), 3);
    fs::write(&index, []).unwrap();
    assert_eq!(ids(directory.path()).len(), 3);
    fs::remove_file(&index).unwrap();
    assert_eq!(ids(directory.path()).len(), 3);
}

#[test]
fn files_of_others_under_its_name_are_left_alone() {
    let directory = three();
    let index = directory.path().join(INDEX_NAME);
    fs::remove_file(&index).unwrap();
    let other = rusqlite::Connection::open(&index).unwrap();
    other.execute_batch("CREATE TABLE precious (a); INSERT INTO precious VALUES (1)").unwrap();
    drop(other);
    let before = fs::read(&index).unwrap();
    let error = Store::open(directory.path()).err().unwrap();
    assert!(error.exit_code() == 2 && error.to_string().contains("not an index of strata"), "{error}");
    assert_eq!(fs::read(&index).unwrap(), before);
    fs::write(&index, "a letter to my landlord").unwrap();
    assert!(Store::open(directory.path()).is_err());
    assert_eq!(fs::read(&index).unwrap(), b"a letter to my landlord");
}

#[test]
fn directories_without_records_get_no_index() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("notes.txt"), "hello").unwrap();
    let error = Store::open(directory.path()).err().unwrap();
    assert!(error.exit_code() == 2 && error.to_string().contains("no records"), "{error}");
    assert!(!directory.path().join(INDEX_NAME).exists());
    assert!(Store::open(&directory.path().join("missing")).is_err());
}

#[test]
fn what_killed_processes_left_is_removed_in_time() {
    let directory = three();
    let part = |name: &str, age_seconds: u64| {
        let file = fs::File::create(directory.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age_seconds)).unwrap();
    };
    part(".old.json.gz.77.part", 25 * 3600);
    part(".fresh.json.gz.78.part", 60);
    part(".notes.part", 25 * 3600);
    add(directory.path(), &made(5, 1e5), None);
    let is_there = |name: &str| directory.path().join(name).exists();
    assert!(
        !is_there(".old.json.gz.77.part") && is_there(".fresh.json.gz.78.part") && is_there(".notes.part")
    );
}

#[test]
fn several_processes_add_at_once() {
    let directory = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let path = directory.path();
            scope.spawn(move || {
                for at in 0..5 {
                    add(path, &made(part * 5 + at, 1e5), None);
                }
            });
        }
    });
    assert_eq!(ids(directory.path()).len(), 20);
}

#[test]
fn a_directory_that_cannot_be_written_is_read() {
    let directory = three();
    fs::remove_file(directory.path().join(INDEX_NAME)).unwrap();
    let set = |mode| fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
    set(0o500);
    // Root writes wherever it likes.
    let is_refused = fs::write(directory.path().join("probe"), "").is_err();
    let opened = Store::open(directory.path());
    set(0o700);
    let mut store = opened.unwrap();
    assert_eq!(store.runs().unwrap().0.len(), 3);
    assert_eq!(store.in_memory().is_some(), is_refused);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_befalls_the_index_no_run_is_lost_and_no_figure_wrong(
        edits in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..40),
        cut in proptest::option::of(any::<u32>()),
    ) {
        let directory = three();
        let index = directory.path().join(INDEX_NAME);
        let good = Store::open(directory.path()).unwrap().runs().unwrap().0;
        let mut bytes = fs::read(&index).unwrap();
        for (at, byte) in edits {
            let at = at as usize % bytes.len();
            // The mark that says whose it is stays: another's file is left alone.
            if at >= 100 {
                bytes[at] ^= byte;
            }
        }
        if let Some(cut) = cut {
            let length = 100.max(cut as usize % bytes.len());
            bytes.truncate(length);
        }
        fs::write(&index, &bytes).unwrap();
        let runs = Store::open(directory.path()).and_then(|mut store| store.runs());
        match runs {
            Ok((runs, _)) => prop_assert_eq!(runs, good),
            Err(error) => prop_assert!(false, "{}", error),
        }
        for name in fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()) {
            let name = name.into_string().unwrap();
            prop_assert!(name.ends_with(".json.gz") || name == INDEX_NAME, "{}", name);
        }
    }

    #[test]
    fn files_of_any_content_are_told_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..400), is_packed: bool) {
        let directory = three();
        let content = match is_packed {
            true => [&[0x1f, 0x8b, 8, 0][..], &bytes].concat(),
            false => bytes,
        };
        fs::write(directory.path().join("odd.json"), content).unwrap();
        let (runs, remarks) = Store::open(directory.path()).unwrap().runs().unwrap();
        prop_assert_eq!((runs.len(), remarks.len()), (3, 1));
    }
}
