//! Examining a pool: damage of any kind is found and named, nothing panics, nothing is changed; what can be mended is.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::{Checksum, ObjectClass, ObjectType};

use super::support::{Fixture, Ground, MIB, content};
use crate::model::ObjectId;
use crate::placement::Placement;
use crate::record::{Header, LINE_BYTES};
use crate::storage_target::Seen;
use crate::{
    Ack, CheckReport, ContainerId, ContainerProperties, FindingKind, KeyPath, Pool, PoolOptions, Punch, Read,
    Write,
};

fn flip(path: &Path, at: u64, mask: u8) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("opened");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("read");
    file.write_all_at(&[byte[0] ^ mask], at).expect("written");
}

/// All files of a pool, with what they hold.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).expect("read"));
        }
    }
    all
}

fn kinds(report: &CheckReport) -> Vec<FindingKind> {
    report.findings.iter().map(|finding| finding.kind).collect()
}

/// A pool with values of all kinds, versions, punches and a snapshot.
fn filled(ground: Ground) -> Fixture {
    let fixture = Fixture::new(ground, 2 * MIB, MIB, Checksum::Crc32);
    let target = fixture.target();
    for number in 0..60u64 {
        let (dkey, akey) = (format!("dkey-{}", number % 20), format!("akey-{}", number % 3));
        let place = fixture.place(1 + number % 2, dkey.as_bytes(), akey.as_bytes());
        let bytes = [40, 900, 3000, 9000][number as usize % 4];
        target.update(&place, Write::Single, &content(number, bytes), Ack::AsConfigured).expect("updated");
        if number == 30 {
            fixture.pool().snapshot(fixture.container).expect("a snapshot");
        }
    }
    for part in 0..6 {
        let place = fixture.place(9, b"array", b"a");
        let write = Write::Extent { offset_bytes: part * 2000 };
        target.update(&place, write, &content(part, 3000), Ack::AsConfigured).expect("updated");
    }
    let holed = fixture.place(9, b"array", b"a");
    target
        .punch(&holed, Punch::Record { offset_bytes: 500, bytes: 700 }, Ack::AsConfigured)
        .expect("punched");
    target.punch(&fixture.place(1, b"dkey-4", b""), Punch::Dkey, Ack::AsConfigured).expect("punched");
    target.punch(&fixture.place(2, b"dkey-1", b"akey-1"), Punch::Akey, Ack::AsConfigured).expect("punched");
    fixture
}

/// Bytes of the log that somebody sees: a flip of any of them must be noticed. Before and behind data there may be padding.
fn live(fixture: &Fixture) -> Vec<std::ops::Range<u64>> {
    let log = std::fs::read(fixture.path().join("target.0").join("log")).expect("read");
    let census = fixture.target().census();
    let seen = census.references.iter().filter(|found| found.seen != Seen::Nobody);
    seen.flat_map(|found| {
        let at = found.location as usize * LINE_BYTES;
        let record = &log[at..at + found.lines as usize * LINE_BYTES];
        let header = Header::decode(record.first_chunk().expect("a header"), record.len()).expect("a record");
        let (head, data) = (header.keys_end() + header.extension_bytes(), header.data_at());
        [at..at + head, at + data..at + data + header.inline_bytes()]
            .map(|part| part.start as u64..part.end as u64)
    })
    .collect()
}

#[test]
fn a_pool_that_is_whole_is_clean_and_stays_as_it_is() {
    for ground in [Ground::Memory, Ground::Disk] {
        for is_clean in [true, false] {
            let mut fixture = filled(ground);
            let pool = fixture.pool.take().expect("open");
            if is_clean {
                pool.close().expect("closed");
            } else {
                drop(pool);
            }
            let before = files(&fixture.path());
            let report = Pool::check(&fixture.path()).expect("examined");
            assert!(report.is_clean(), "{ground:?} {is_clean}: {report:#?}");
            assert_eq!((report.is_closed, report.containers), (is_clean, 1));
            assert!(report.records > 60 && report.verified_bytes > 60_000, "{report:#?}");
            assert!(files(&fixture.path()) == before, "{ground:?} {is_clean}: a file changed");
            // Nothing to mend: nothing is done.
            let repair = Pool::repair(&fixture.path()).expect("repaired");
            assert!(repair.is_whole() && repair.done.is_empty());
            assert!(files(&fixture.path()) == before, "{ground:?} {is_clean}: a file changed");
        }
    }
}

#[test]
fn every_flip_of_what_is_live_is_found_and_nothing_panics() {
    let mut fixture = filled(Ground::Memory);
    let live = live(&fixture);
    fixture.pool.take().expect("open").close().expect("closed");
    let (path, log) = (fixture.path(), fixture.path().join("target.0").join("log"));
    let whole = files(&path);
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut counts = BTreeMap::new();
    for round in 0..720u32 {
        // Of the log only what was written: the rest is zeros.
        let name = whole.keys().nth(round as usize % whole.len()).expect("a file");
        let bytes = whole[name].iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        if bytes == 0 {
            continue;
        }
        let (at, mask) = (draw(bytes), 1 << draw(8));
        flip(name, at, mask);
        let before = files(&path);
        let found = Pool::check(&path);
        assert!(files(&path) == before, "a check changed a file");
        let is_found = found.as_ref().map_or(true, |report| !report.is_clean());
        let short = name.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let must = match short.as_str() {
            "superblock" | "containers" | "index" => true,
            "log" => live.iter().any(|range| range.contains(&at)),
            _ => false,
        };
        assert!(is_found || !must, "byte {at} of {short}, mask {mask:#x}");
        if !must && *name == log && is_found {
            *counts.entry("beside").or_insert(0) += 1;
        }
        *counts.entry(if must { "live" } else { "other" }).or_insert(0) += 1;
        flip(name, at, mask);
    }
    assert!(counts["live"] > 300, "{counts:?}");
    assert!(Pool::check(&path).expect("examined").is_clean());
    // Files that are cut short, empty or gone.
    for name in whole.keys().filter(|name| !name.ends_with("reserve")) {
        for cut in [whole[name].len() as u64 / 2, 0] {
            std::fs::OpenOptions::new().write(true).open(name).expect("opened").set_len(cut).expect("cut");
            let found = Pool::check(&path);
            assert!(
                found.is_err() || found.is_ok_and(|report| !report.is_clean()),
                "{} of {cut} bytes",
                name.display()
            );
            std::fs::write(name, &whole[name]).expect("restored");
        }
    }
    assert!(Pool::check(&path).expect("examined").is_clean());
}

/// Where the header of a segment in use begins.
fn used_segment(log: &Path) -> u64 {
    let bytes = std::fs::read(log).expect("read");
    bytes.windows(8).position(|window| window == b"STRATSEG").expect("a segment") as u64
}

#[test]
fn damaged_tables_headers_and_indexes_are_mended() {
    for ground in [Ground::Memory, Ground::Disk] {
        let mut fixture = filled(ground);
        fixture.pool.take().expect("open").close().expect("closed");
        let path = fixture.path();
        let text = std::fs::read(path.join("containers")).expect("read");
        let uuid = text.windows(4).position(|window| window == b"uuid").expect("there") as u64;
        for (name, at, kind) in [
            ("target.0/index", 200, FindingKind::Index),
            ("target.0/log", 3, FindingKind::Log),
            ("target.0/log", 13, FindingKind::Log),
            ("target.0/log", 30, FindingKind::Log),
            ("containers", 27, FindingKind::Table),
            ("containers", uuid + 10, FindingKind::Table),
        ] {
            // A repair may have moved what is live to another segment.
            let at = if name.ends_with("log") { at + used_segment(&path.join(name)) } else { at };
            flip(&path.join(name), at, 1);
            let found = Pool::check(&path).expect("examined");
            assert_eq!(kinds(&found), [kind], "{ground:?} {name} {at}: {found:#?}");
            assert_eq!(found.repairable(), 1, "{found:#?}");
            let repair = Pool::repair(&path).expect("repaired");
            assert!(repair.is_whole() && !repair.done.is_empty(), "{ground:?} {name} {at}: {repair:#?}");
            assert!(Pool::check(&path).expect("examined").is_clean());
        }
        fixture.pool = Some(Pool::open(&path, &ground.open(Default::default())).expect("opens"));
        let mut buffer = vec![0; 9000];
        let place = fixture.place(2, b"dkey-19", b"akey-2");
        let found = fixture.target().fetch(&place, Read::Single, None, &mut buffer).expect("there");
        assert_eq!(buffer[..found.bytes as usize], content(59, 9000));
    }
}

#[test]
fn an_index_of_another_time_is_found() {
    let mut fixture = filled(Ground::Memory);
    let path = fixture.path();
    fixture.pool.take().expect("open").close().expect("closed");
    let index = path.join("target.0").join("index");
    let old = std::fs::read(&index).expect("read");
    fixture.pool = Some(Pool::open(&path, &Default::default()).expect("opens"));
    let place = fixture.place(5, b"later", b"a");
    fixture.target().update(&place, Write::Single, b"later", Ack::AsConfigured).expect("updated");
    fixture.pool.take().expect("open").close().expect("closed");
    std::fs::write(&index, old).expect("written");
    let found = Pool::check(&path).expect("examined");
    assert_eq!(kinds(&found), [FindingKind::Index], "{found:#?}");
    assert!(found.findings[0].what.contains("1 latest versions are only in the log"), "{found:#?}");
    assert!(Pool::repair(&path).expect("repaired").is_whole());
    fixture.pool = Some(Pool::open(&path, &Default::default()).expect("opens"));
    assert_eq!(fixture.target().size_of(&fixture.place(5, b"later", b"a"), None), Ok(5));
}

#[test]
fn a_container_that_no_table_names_gets_a_name() {
    let mut fixture = filled(Ground::Memory);
    let path = fixture.path();
    fixture.pool.take().expect("open").close().expect("closed");
    let old = std::fs::read(path.join("containers")).expect("read");
    let pool = Pool::open(&path, &Default::default()).expect("opens");
    let properties = ContainerProperties { checksum: Checksum::Crc64, maker: None };
    let other = pool.create_container("other", &properties).expect("a container");
    let place = |container: ContainerId| KeyPath {
        container,
        object: ObjectId { lo: 1, hi: 0 },
        dkey: b"d",
        akey: b"a",
    };
    pool.target(0).update(&place(other), Write::Single, b"value", Ack::AsConfigured).expect("updated");
    pool.close().expect("closed");
    std::fs::write(path.join("containers"), old).expect("written");
    let found = Pool::check(&path).expect("examined");
    assert!(kinds(&found).contains(&FindingKind::Container), "{found:#?}");
    let repair = Pool::repair(&path).expect("repaired");
    assert!(repair.is_whole(), "{repair:#?}");
    let pool = Pool::open(&path, &Default::default()).expect("opens");
    let adopted = pool.find_container("recovered.1").expect("the container");
    assert_eq!((adopted.id, adopted.checksum), (other, Checksum::Crc64));
    assert_eq!(pool.target(0).size_of(&place(adopted.id), None), Ok(5));
}

/// A value that lies in pieces: each is verified, and none is taken for a leak or for another's.
#[test]
fn a_value_in_pieces_is_read_whole() {
    let mut fixture = Fixture::new(Ground::Memory, 8 * MIB, 8 * MIB, Checksum::Crc32);
    super::space::fragment(&fixture);
    let place = fixture.place(2, b"scattered", b"a");
    let value = content(1, 55_000);
    fixture.target().update(&place, Write::Single, &value, Ack::AsConfigured).expect("room in pieces");
    fixture.pool.take().expect("open").close().expect("closed");
    let report = Pool::check(&fixture.path()).expect("examined");
    assert!(report.is_clean(), "{:#?}", report.findings);
    let data = fixture.path().join("target.0").join("data");
    let bytes = std::fs::read(&data).expect("read");
    let last = &value[50_000..50_064];
    let at = bytes.windows(last.len()).position(|window| window == last).expect("there");
    flip(&data, at as u64, 1);
    let report = Pool::check(&fixture.path()).expect("examined");
    assert_eq!(kinds(&report), [FindingKind::Value], "{report:#?}");
    assert_eq!(report.findings[0].dkey.as_deref(), Some("scattered"));
}

#[test]
fn a_destroyed_container_is_no_damage() {
    let mut fixture = filled(Ground::Memory);
    fixture.pool().destroy_container("strata").expect("destroyed");
    fixture.pool.take().expect("open").close().expect("closed");
    let report = Pool::check(&fixture.path()).expect("examined");
    assert!(report.is_clean(), "{report:#?}");
    assert!(report.notes.iter().any(|note| note.contains("destroyed containers")), "{report:#?}");
}

#[test]
fn a_pool_that_is_open_and_what_is_none_are_refused() {
    let fixture = filled(Ground::Memory);
    let error = Pool::check(&fixture.path()).expect_err("open");
    assert!(error.to_string().contains("open already"), "{error}");
    let error = Pool::check(fixture.dir.path()).expect_err("none");
    assert_eq!(error.exit_code(), 2, "{error}");
}

/// A pool of several targets with one object of a class.
struct Spread {
    _dir: tempfile::TempDir,
    path: PathBuf,
    pool: Option<Pool>,
    container: ContainerId,
    object: ObjectId,
    placement: Placement,
}

impl Spread {
    fn new(class: &str, targets: u32) -> Self {
        let dir = Ground::Memory.scratch();
        let path = dir.path().join("pool");
        let options =
            PoolOptions { scm_bytes: u64::from(targets) * 4 * MIB, targets, ..PoolOptions::default() };
        let pool = Pool::create(&path, &options).expect("a pool");
        let container =
            pool.create_container("strata", &ContainerProperties::default()).expect("a container");
        let class: ObjectClass = class.parse().expect("a class");
        let object = ObjectId::new(ObjectType::MultiHashed, class, 1);
        let placement = Placement::new(class, targets).expect("enough targets");
        Self { _dir: dir, path, pool: Some(pool), container, object, placement }
    }

    fn place<'a>(&self, dkey: &'a str) -> KeyPath<'a> {
        KeyPath { container: self.container, object: self.object, dkey: dkey.as_bytes(), akey: b"a" }
    }

    fn on(&self, dkey: &str, shard: u32) -> std::sync::Arc<crate::Target> {
        let group = self.placement.group(dkey.as_bytes());
        let number = self.placement.target(self.object, group, shard);
        self.pool.as_ref().expect("open").target(number as usize).clone()
    }

    fn write(&self, dkey: &str, shard: u32, write: Write, data: &[u8]) {
        self.on(dkey, shard).update(&self.place(dkey), write, data, Ack::AsConfigured).expect("updated");
    }

    fn read(&self, dkey: &str, shard: u32, read: Read, bytes: usize) -> Result<Vec<u8>, crate::StoreError> {
        let mut buffer = vec![0; bytes];
        let found = self.on(dkey, shard).fetch(&self.place(dkey), read, None, &mut buffer)?;
        buffer.truncate(found.end_bytes as usize);
        Ok(buffer)
    }

    /// Closes it, mends it and opens it again; what was found before.
    fn mended(&mut self) -> CheckReport {
        self.pool.take().expect("open").close().expect("closed");
        let found = Pool::check(&self.path).expect("examined");
        let repair = Pool::repair(&self.path).expect("repaired");
        assert!(repair.is_whole(), "{repair:#?}");
        self.pool = Some(Pool::open(&self.path, &Default::default()).expect("opens"));
        found
    }
}

#[test]
fn the_newest_copy_is_what_the_others_become() {
    let mut spread = Spread::new("RP_3G1", 3);
    for shard in (0..3).rev() {
        spread.write("same", shard, Write::Single, b"same");
        spread.write("torn", shard, Write::Single, b"before");
        spread.write("gone", shard, Write::Single, b"before");
        spread.write("array", shard, Write::Extent { offset_bytes: 0 }, &content(1, 100_000));
    }
    // Changes that were cut off after the first copy.
    spread.write("torn", 2, Write::Single, b"after");
    spread.write("array", 2, Write::Extent { offset_bytes: 70_000 }, &content(2, 5000));
    let gone = spread.place("gone");
    spread.on("gone", 2).punch(&gone, Punch::Akey, Ack::AsConfigured).expect("punched");
    spread.write("single", 2, Write::Single, b"only");
    let found = spread.mended();
    assert_eq!(found.findings.len(), 8, "two copies of four keys: {found:#?}");
    assert!(kinds(&found).iter().all(|kind| *kind == FindingKind::Copy));
    let mut expected = content(1, 100_000);
    expected[70_000..75_000].copy_from_slice(&content(2, 5000));
    for shard in 0..3 {
        assert_eq!(spread.read("torn", shard, Read::Single, 100), Ok(b"after".to_vec()));
        assert_eq!(spread.read("single", shard, Read::Single, 100), Ok(b"only".to_vec()));
        assert!(spread.read("gone", shard, Read::Single, 100).is_err(), "the removal is completed");
        let array = spread.read("array", shard, Read::Extent { offset_bytes: 0 }, 100_000).expect("there");
        assert!(array == expected, "shard {shard}");
    }
    assert!(spread.mended().is_clean());
}

#[test]
fn cells_are_computed_and_incomplete_updates_taken_back() {
    use crate::erasure::{Coder, EXTENT_CELL_BYTES, Tag};
    let mut spread = Spread::new("EC_2P1G1", 3);
    let mut coder = Coder::new(2, 1);
    let mut cells = |value: &[u8], stamp: u64| -> Vec<Vec<u8>> {
        let length = crate::erasure::cell_bytes(value.len(), 2);
        let mut parity = vec![0; length];
        coder.encode(value, length, &mut parity);
        let tag = Tag { value_bytes: value.len() as u64, stamp }.encode();
        let part = |cell: usize| value[crate::erasure::cell_range(value.len(), 2, cell)].to_vec();
        [part(0), part(1), parity].into_iter().map(|cell| [cell, tag.to_vec()].concat()).collect()
    };
    let (first, second) = (cells(&content(1, 3000), 7), cells(&content(2, 3000), 8));
    for shard in 0..3u32 {
        for dkey in ["whole", "torn", "short"] {
            spread.write(dkey, shard, Write::Single, &first[shard as usize]);
        }
    }
    // Cut off after one cell, and after two, which are enough.
    spread.write("torn", 0, Write::Single, &second[0]);
    spread.write("short", 0, Write::Single, &second[0]);
    spread.write("short", 1, Write::Single, &second[1]);
    // An array whose parity was not written, and one whose parity is of something else.
    let stripe = content(3, 2 * EXTENT_CELL_BYTES as usize);
    for dkey in ["bare", "wrong"] {
        for shard in 0..2u32 {
            let at = shard as usize * EXTENT_CELL_BYTES as usize;
            let cell = &stripe[at..at + EXTENT_CELL_BYTES as usize];
            spread.write(dkey, shard, Write::Extent { offset_bytes: 0 }, cell);
        }
    }
    spread.write("wrong", 2, Write::Extent { offset_bytes: 0 }, &content(4, EXTENT_CELL_BYTES as usize));
    let found = spread.mended();
    let mut kinds = kinds(&found);
    kinds.sort();
    use FindingKind::{Incomplete, Stripe};
    assert_eq!(kinds, [Stripe, Stripe, Stripe, Incomplete], "{found:#?}");
    for (shard, cell) in first.iter().enumerate() {
        assert_eq!(spread.read("torn", shard as u32, Read::Single, 4000), Ok(cell.clone()), "taken back");
        assert_eq!(spread.read("short", shard as u32, Read::Single, 4000), Ok(second[shard].clone()));
    }
    let parity = spread.read("bare", 2, Read::Extent { offset_bytes: 0 }, 1024).expect("there");
    assert_eq!(Ok(parity), spread.read("wrong", 2, Read::Extent { offset_bytes: 0 }, 1024));
    assert!(spread.mended().is_clean());
}
