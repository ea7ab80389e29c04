//! `--zones zbd` where zones are emulated: what reaches the file keeps to the rules of a zoned device.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use testkit::{SlowFile, SlowKind};

use crate::support::{Scratch, class, skipped};

const ZONE_BYTES: u64 = 256 << 10;
const CAPACITY_BYTES: u64 = 192 << 10;

/// Offset and size of the writes that a FUSE file of 2 MiB served, in the order in which they ended; none where FUSE is missing.
fn written(words: &str) -> Option<Vec<(u64, u64)>> {
    let directory = tempfile::tempdir().unwrap();
    let file = SlowFile::mount(directory.path(), 2 << 20, 0, |_| Duration::ZERO).ok()?;
    let path = file.path().to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let words = format!("media {path} --destroy-data --direct --zones zbd,size=256k,capacity=192k{words}");
    let ended = scratch.run(&words);
    assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
    let writes = file.served().into_iter().filter(|served| served.arrival.kind == SlowKind::Write);
    Some(writes.map(|served| (served.arrival.offset_bytes, served.arrival.size_bytes)).collect())
}

#[test]
fn writes_go_to_write_pointers_and_open_zones_alone() {
    let test = "writes_go_to_write_pointers_and_open_zones_alone";
    for (words, open_max) in [
        (" --op write -b 16k", 1),
        (",max-open=3 --op randwrite -b 16k --count 300", 3),
        (",max-open=3,depth=1 --op randwrite -b 16k --count 300 -t 3 --share whole", 3),
    ] {
        let Some(writes) = written(words) else { return skipped(test, "FUSE cannot be mounted here") };
        let mut pointers: BTreeMap<u64, u64> = BTreeMap::new();
        for (offset, size) in &writes {
            let (zone, within) = (offset / ZONE_BYTES, offset % ZONE_BYTES);
            let pointer = pointers.entry(zone).or_default();
            // A full zone was reset before it is written from its begin.
            if within == 0 && *pointer == CAPACITY_BYTES {
                *pointer = 0;
            }
            assert_eq!(within, *pointer, "{words}: zone {zone}");
            *pointer += size;
            assert!(*pointer <= CAPACITY_BYTES, "{words}: zone {zone} has {pointer}");
            let open = pointers.values().filter(|at| (1..CAPACITY_BYTES).contains(*at)).count();
            assert!(open <= open_max, "{words}: {open} zones are open");
        }
        assert!(writes.len() >= 96, "{words}: {}", writes.len());
    }
}

#[test]
fn resets_are_operations_of_their_own() {
    let scratch = Scratch::new();
    let record =
        scratch.measured("media file -s 1m --zones zbd,size=256k --op write -b 64k --bytes 2m --keep");
    // The second pass over four zones finds each of them full.
    assert_eq!(class(&record, 0, "reset"), (4, 0));
    assert_eq!(class(&record, 0, "write"), (32, 2 << 20));
    let zones = &record["phases"][0]["plan"]["zoned"]["targets"][0];
    assert_eq!(
        (&zones["model"], &zones["zones"], &zones["zone_size_bytes"]),
        (&"emulated".into(), &4.into(), &(256 << 10).into())
    );
    assert_eq!(fs::metadata(scratch.join("file")).unwrap().len(), 1 << 20);
}

#[test]
fn what_a_phase_wrote_a_later_one_reads_and_no_more() {
    let scratch = Scratch::new();
    let record = scratch
        .measured("media file -s 1m --zones zbd,size=256k --op write,randread -b 64k --bytes 512k --keep");
    assert_eq!(class(&record, 1, "read"), (8, 512 << 10));
    let refused = scratch.run("media file --zones zbd,size=256k --op randread -b 64k --time 1s");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("no zone of the range holds data"), "{}", refused.stderr);
}

#[test]
fn fio_counts_resets_as_fio_does() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --filename=file --rw=write --bs=64k --size=1m --io_size=2m --zonemode=zbd --zonesize=256k";
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("; 4 zone resets"), "{}", ended.stdout);
    let refused = scratch.run("as fio --name=x --filename=file --rw=write --bs=64k --size=1m --zonemode=zbd");
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("not a zoned block device"), "{}", refused.stderr);
}
