//! Segments live several times: what an earlier life held never comes back with a later one.

use std::collections::BTreeSet;

use crate::Checksum;

use super::support::{Fixture, GROUNDS, Ground, MIB, content};
use crate::record::LINE_BYTES;
use crate::{Ack, Punch, Read, StoreError, Write};

const KEYS: u64 = 40;

fn sequences(fixture: &Fixture) -> BTreeSet<u32> {
    fixture.target().census().segments.iter().map(|segment| segment.sequence).filter(|own| *own > 0).collect()
}

fn update(fixture: &Fixture, number: u64, bytes: usize) {
    let key = number.to_le_bytes();
    let place = fixture.place(1, &key, b"a");
    fixture
        .target()
        .update(&place, Write::Single, &content(number, bytes), Ack::AsConfigured)
        .expect("updated");
}

/// Removes all, and gives back every segment.
fn empty(fixture: &Fixture) {
    let place = fixture.place(1, b"", b"");
    fixture.target().punch(&place, Punch::Object, Ack::AsConfigured).expect("removed");
    for _ in 0..2 {
        fixture.target().aggregate(fixture.container, None, true).expect("aggregated");
    }
}

#[test]
fn no_life_of_a_segment_has_the_sequence_of_another() {
    for ground in GROUNDS {
        for is_clean in [false, true] {
            let mut fixture = Fixture::new(ground, 4 * MIB, 0, Checksum::Crc32);
            let mut given = BTreeSet::new();
            for life in 0..6 {
                let before = sequences(&fixture);
                (0..KEYS).for_each(|number| update(&fixture, number, 1000 + 64 * number as usize));
                let fresh: BTreeSet<u32> = sequences(&fixture).difference(&before).copied().collect();
                assert!(!fresh.is_empty(), "{ground:?}: a segment was begun");
                assert!(fresh.is_disjoint(&given), "{ground:?}, life {life}: {fresh:?} after {given:?}");
                given.extend(fresh);
                empty(&fixture);
                given.extend(sequences(&fixture));
                fixture.reopen(is_clean);
                assert_eq!(fixture.pool().findings(), [""; 0], "{ground:?}, life {life}");
            }
        }
    }
}

/// One small record in a segment that was full of larger ones: behind it nothing is found.
#[test]
fn what_a_freed_segment_held_does_not_come_back() {
    for ground in GROUNDS {
        let mut fixture = Fixture::new(ground, 4 * MIB, 0, Checksum::Crc32);
        for life in 0..12 {
            (0..KEYS).for_each(|number| update(&fixture, number, 3000));
            empty(&fixture);
            fixture.reopen(false);
            update(&fixture, KEYS + life, 100);
            fixture.reopen(false);
            assert_eq!(fixture.pool().findings(), [""; 0], "{ground:?}, life {life}");
            let mut buffer = vec![0; 4000];
            for number in 0..KEYS {
                let key = number.to_le_bytes();
                let place = fixture.place(1, &key, b"a");
                let found = fixture.target().fetch(&place, Read::Single, None, &mut buffer);
                assert_eq!(found.map(|_| ()), Err(StoreError::NotFound), "{ground:?}, life {life}");
            }
            empty(&fixture);
            fixture.reopen(false);
        }
    }
}

/// A line is torn by words where CPU flushes make it durable: a commit word of an earlier life must not stand beside a header of this one.
#[test]
fn a_segment_that_is_written_again_holds_nothing_of_before() {
    let mut fixture = Fixture::new(Ground::Memory, 4 * MIB, 0, Checksum::Crc32);
    let mut again = 0;
    for life in 0..12 {
        (0..KEYS).for_each(|number| update(&fixture, number, 3000));
        let census = fixture.target().census();
        for (number, segment) in census.segments.iter().enumerate() {
            if segment.is_free || segment.used_lines >= census.segment_lines {
                continue;
            }
            again += u64::from(life > 0);
            let content = fixture.target().segment_content(number as u32).expect("read");
            let lines = census.segment_lines as usize;
            let used = segment.used_lines as usize * LINE_BYTES;
            let rest = content.bytes(used, lines * LINE_BYTES - used);
            assert!(rest.iter().all(|byte| *byte == 0), "segment {number} in life {life}");
        }
        empty(&fixture);
        fixture.reopen(life % 3 == 0);
    }
    assert!(again > 0);
}
