//! The shape of fio's I/O: the offsets that fio itself visits (its `write_iolog`, version 3.33), visited here.

use std::fs;
use std::time::Duration;

use testkit::{Arrival, SlowFile, SlowKind};

use crate::support::{Scratch, class, read_record, skipped};

/// Kind, offset and size in bytes of all that a FUSE file of so many KiB served a job of fio's; none where FUSE is missing.
pub(crate) fn served(size_kib: u64, words: &str) -> Option<Vec<(char, u64, u64)>> {
    let directory = tempfile::tempdir().unwrap();
    let file = SlowFile::mount(directory.path(), size_kib << 10, 0, |_| Duration::ZERO).ok()?;
    let path = file.path().to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let words = format!("as --destroy-data fio --name=x --filename={path} --direct=1 --invalidate=0 {words}");
    let ended = scratch.run(&words);
    assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
    let kind = |kind| match kind {
        SlowKind::Read => 'r',
        SlowKind::Write => 'w',
        SlowKind::Sync => 's',
    };
    let operation = |arrival: Arrival| (kind(arrival.kind), arrival.offset_bytes, arrival.size_bytes);
    Some(file.served().into_iter().map(|served| operation(served.arrival)).collect())
}

/// Kind and KiB of the operations on a file of so many KiB, in their order; none where FUSE is missing.
fn visited(size_kib: u64, words: &str) -> Option<Vec<(char, u64)>> {
    // A look at the file before the job reads no whole blocks of its.
    let blocks = served(size_kib, words)?.into_iter().filter(|(_, _, size_bytes)| size_bytes % 4096 == 0);
    Some(blocks.map(|(kind, offset_bytes, _)| (kind, offset_bytes >> 10)).collect())
}

/// Asserts reads at these KiB.
fn reads(test: &str, size_kib: u64, words: &str, expected: &[u64]) {
    let Some(visited) = visited(size_kib, words) else {
        return skipped(test, "FUSE cannot be mounted here");
    };
    let expected: Vec<_> = expected.iter().map(|at| ('r', *at)).collect();
    assert_eq!(visited, expected, "{words}");
}

#[test]
fn holes_are_where_fio_leaves_them() {
    let name = "holes_are_where_fio_leaves_them";
    reads(name, 32, "--rw=read:4k --bs=4k --size=32k", &[0, 8, 16, 24, 0, 8, 16, 24]);
    reads(
        name,
        64,
        "--rw=read:20k --bs=4k --size=64k",
        &[0, 24, 48, 0, 24, 48, 0, 24, 48, 0, 24, 48, 0, 24, 48, 0],
    );
    reads(name, 32, "--rw=read:-8k --bs=4k --size=32k", &[0, 24, 20, 16, 12, 8, 4, 0]);
    reads(name, 32, "--rw=read:-12k --bs=4k --size=32k", &[0, 20, 12, 4, 20, 12, 4, 20]);
    // A block that the end of the file cuts is not read, and ends it.
    reads(name, 36, "--rw=read:8k --bs=8k --size=36k", &[0, 16]);
    // Where the file goes on behind the range, it ends with the range.
    reads(name, 128, "--rw=read:12k --bs=4k --size=64k", &[0, 16, 32, 48]);
    reads(name, 48, "--rw=read:4k --bs=4k --size=32k --offset=16k", &[16, 24, 32, 40]);
}

#[test]
fn zones_are_the_same() {
    let name = "zones_are_the_same";
    let zoned = "--zonemode=strided --zonesize=8k --zonerange=16k";
    let expected: Vec<u64> = [0, 4, 32, 36, 64, 68, 96, 100].repeat(4);
    reads(name, 128, &format!("--rw=read --bs=4k --size=128k {zoned} --zoneskip=16k"), &expected);
    let expected = [0, 4, 16, 20, 32, 36, 48, 52, 64, 68, 80, 84, 96, 100, 112, 116];
    reads(name, 128, &format!("--rw=read --bs=4k --size=64k {zoned}"), &expected);
    let words =
        "--rw=read --bs=4k --size=64k --zonemode=strided --zonesize=24k --zonerange=16k --zoneskip=16k";
    reads(name, 128, words, &[0, 4, 8, 12, 0, 4, 32, 36, 40, 44, 32, 36, 64, 68, 72, 76]);
}

#[test]
fn runs_begin_as_fios_do() {
    let words = "--rw=randread:4 --bs=4k --size=64k --rw_sequencer=identical";
    let Some(visited) = visited(64, words) else {
        return skipped("runs_begin_as_fios_do", "FUSE cannot be mounted here");
    };
    assert_eq!(visited.len(), 16);
    assert!(visited[..4].iter().all(|(_, at)| *at == 0), "{visited:?}");
    assert!(visited.chunks(4).all(|run| run.iter().all(|at| *at == run[0])), "{visited:?}");
}

#[test]
fn directions_have_places_and_sizes_of_their_own() {
    let Some(visited) = visited(64, "--rw=rw --bs=4k,8k --size=64k") else {
        return skipped("directions_have_places_and_sizes_of_their_own", "FUSE cannot be mounted here");
    };
    let of = |kind: char| visited.iter().filter(|(of, _)| *of == kind).map(|(_, at)| *at).collect::<Vec<_>>();
    let (reads, writes) = (of('r'), of('w'));
    assert!(reads.iter().enumerate().all(|(place, at)| *at == place as u64 * 4), "{reads:?}");
    assert!(writes.iter().enumerate().all(|(place, at)| *at == place as u64 * 8), "{writes:?}");
    assert!(reads.len() as u64 * 4 + writes.len() as u64 * 8 >= 64, "{visited:?}");
}

#[test]
fn percent_offsets_are_rounded_up() {
    let name = "percent_offsets_are_rounded_up";
    let expected: Vec<u64> = (36..100).step_by(4).collect();
    reads(name, 100, "--rw=read --bs=4k --offset=33%", &expected);
    let expected: Vec<u64> = (48..100).step_by(4).collect();
    reads(name, 100, "--rw=read --bs=4k --offset=33% --offset_align=16k", &expected);
}

#[test]
fn what_is_asked_for_is_in_the_record() {
    let scratch = Scratch::new();
    let run = |words: &str| {
        let ended = scratch
            .run(&format!("as --json record.json fio --name=x --filename=data --size=1m --bs=4k {words}"));
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        read_record(&scratch.join("record.json"))
    };
    let record = run("--rw=randread --percentage_random=30");
    assert_eq!(record["phases"][0]["plan"]["course"]["random_percent"], serde_json::json!([30, 30, 30]));
    assert_eq!(class(&record, 0, "read"), (256, 1 << 20));
    let record = run("--rw=rw --rwmixwrite=12.5");
    assert_eq!(record["phases"][0]["plan"]["mix"]["write_percent"], 12);
    let record = run("--rw=read --bsrange=4k-6k --bs_unaligned=1");
    assert_eq!(class(&record, 0, "read").1, 1 << 20);
    assert!(class(&record, 0, "read").0 < 256);
}

#[test]
fn files_take_turns() {
    let scratch = Scratch::new();
    // Six blocks, of which four go to the first file in turns of four.
    let words = "as fio --name=x --rw=write --bs=4k --size=48k --filename=a:b --file_service_type=roundrobin:4 \
                 --number_ios=6 --fallocate=none --buffer_pattern=0x61";
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let written = |name: &str| {
        let content = fs::read(scratch.join(name)).unwrap();
        content.chunks(4096).filter(|block| block.iter().all(|byte| *byte == b'a')).count()
    };
    assert_eq!((written("a"), written("b")), (4, 2));
}

#[test]
fn a_file_is_continued_at_its_end() {
    let scratch = Scratch::new();
    fs::write(scratch.join("data"), vec![7; 16 << 10]).unwrap();
    let words =
        "as --destroy-data fio --name=x --rw=write --bs=4k --size=16k --filename=data --file_append=1";
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let content = fs::read(scratch.join("data")).unwrap();
    assert_eq!(content.len(), 32 << 10);
    assert!(content[..16 << 10].iter().all(|byte| *byte == 7));
    assert!(content[16 << 10..].chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)));
}

#[test]
fn what_shapes_nothing_here_is_refused_in_fios_words() {
    let scratch = Scratch::new();
    for (words, part) in [
        ("--rw=read --zonesize=4k", "zonemode=strided"),
        ("--rw=read --zonemode=strided", "zonesize"),
        ("--rw=write --zonemode=zbd --zonesize=64k --verify=md5", "verify"),
        ("--rw=randread:4 --percentage_random=50", "percentage_random"),
    ] {
        let ended = scratch.run(&format!("as fio --name=x --filename=f --size=1m {words}"));
        assert_eq!(ended.code, Some(2), "{words}");
        assert!(ended.stderr.contains(part), "{words}: {}", ended.stderr);
        assert!(!ended.stderr.contains(" --gap") && scratch.names().is_empty(), "{words}: {}", ended.stderr);
    }
}
