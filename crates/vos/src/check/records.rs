//! The records of one target: every reference of its index, every checksum, and the space of log and data file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::Checksum;

use super::report::{Finding, FindingKind};
use super::space;
use super::{Examined, KeyName};
use crate::checksum;
use crate::data::Spread;
use crate::error::StoreError;
use crate::index::Hashes;
use crate::record::{HEADER_BYTES, Header, Kind, LINE_BYTES};
use crate::segment::{SegmentHead, parse_segment_header};
use crate::storage_target::{Census, Committed, Reference, Seen, Sort, Target, scan_records};
use crate::types::ContainerId;

/// An extent of the data file that a record refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Number of the reference.
    pub(super) owner: usize,
}

/// A target that is examined.
pub(super) struct Subject<'a> {
    pub(super) number: u32,
    pub(super) target: &'a Arc<Target>,
    pub(super) census: &'a Census,
    pub(super) uuid: [u8; 16],
    /// Its log was read: the last process did not close it.
    pub(super) is_recovered: bool,
}

/// Keys of a record, and the extent of its data.
struct Opened {
    header: Header,
    dkey: Vec<u8>,
    akey: Vec<u8>,
}

/// Examines the log and the data file of a target. What its records are of, by reference: for the comparison of copies.
pub(super) fn examine(subject: &Subject<'_>, examined: &mut Examined) {
    let mut extents = Vec::new();
    let mut strangers: BTreeMap<ContainerId, (u64, Checksum)> = BTreeMap::new();
    let (census, lines) = (subject.census, u64::from(subject.census.segment_lines));
    let references = &census.references;
    let mut first = 0;
    for number in 0..census.segments.len() as u32 {
        let end = (u64::from(number) + 1) * lines;
        let count = references[first..].partition_point(|found| found.location < end);
        let own = first..first + count;
        first += count;
        let read = examine_segment(subject, number, own, examined, &mut extents, &mut strangers);
        if let Err(error) = read {
            let what = format!("segment {number} of the log cannot be read: {error}");
            let finding = Finding::new(FindingKind::File, what).on(subject.number);
            examined
                .report
                .findings
                .push(finding.kept("the device or the file system must be repaired first"));
        }
    }
    for found in &references[first..] {
        let what = format!("the index refers to line {}, which is beyond the end of the log", found.location);
        examined.found(place_of(subject, found, FindingKind::Index, &what, None, examined));
    }
    report_strangers(subject, strangers, examined);
    space::examine_space(subject, &mut extents, examined);
}

fn examine_segment(
    subject: &Subject<'_>,
    number: u32,
    own: std::ops::Range<usize>,
    examined: &mut Examined,
    extents: &mut Vec<Extent>,
    strangers: &mut BTreeMap<ContainerId, (u64, Checksum)>,
) -> Result<(), StoreError> {
    let facts = subject.census.segments[number as usize];
    let head = subject.target.segment_head(number)?;
    let stands = parse_segment_header(&head, &subject.uuid, number);
    match stands {
        SegmentHead::Free(_) if own.is_empty() => return Ok(()),
        SegmentHead::Damaged => space::report_head(subject, number, &head, facts, examined),
        SegmentHead::Used(sequence) if sequence != facts.sequence && !facts.is_free => {
            let what = format!(
                "segment {number} of the log has sequence {sequence}, but the index has {}",
                facts.sequence
            );
            let finding = Finding::new(FindingKind::Index, what).on(subject.number);
            examined
                .report
                .findings
                .push(finding.mended("the index is removed, and the log is read instead"));
        }
        SegmentHead::Free(_) | SegmentHead::Used(_) => {}
    }
    if own.is_empty() && matches!(stands, SegmentHead::Damaged) {
        return Ok(());
    }
    let bytes = subject.census.segment_lines as usize * LINE_BYTES;
    let content = subject.target.segment_content(number)?;
    let content = content.bytes(0, bytes);
    if let SegmentHead::Used(sequence) = stands {
        scan_records(content, sequence, &mut |found, _| {
            let header = &found.header;
            let is_known = examined.knows(header.container) || header.container.0 < examined.next_container;
            if found.state == Committed::Yes && header.kind != Kind::Discard && !is_known {
                strangers.entry(header.container).or_insert((0, header.checksum)).0 += 1;
            }
        });
    }
    let base = u64::from(number) * u64::from(subject.census.segment_lines);
    let mut end = base;
    for at in own {
        let found = &subject.census.references[at];
        examined.report.records += 1;
        if found.location < end {
            let what = "its record overlaps another one that the index refers to";
            examined.found(place_of(subject, found, FindingKind::Index, what, None, examined));
        }
        end = end.max(found.location + u64::from(found.lines));
        let from = (found.location - base) as usize * LINE_BYTES;
        let record = content.get(from..from + found.lines as usize * LINE_BYTES);
        examine_record(subject, at, record, facts.sequence, examined, extents);
    }
    Ok(())
}

/// One record: header, keys, commit word, data.
fn examine_record(
    subject: &Subject<'_>,
    at: usize,
    record: Option<&[u8]>,
    sequence: u32,
    examined: &mut Examined,
    extents: &mut Vec<Extent>,
) {
    let found = &subject.census.references[at];
    let opened = record.ok_or("its record extends beyond the end of its segment").and_then(|record| {
        let opened = open(record, sequence, found)?;
        Ok((record, opened))
    });
    let (record, opened) = match opened {
        Ok(opened) => opened,
        Err(what) => {
            let keys = record.and_then(|record| keys_of(record, found));
            if let Some((dkey, akey)) = &keys {
                examined.note_name(found, dkey, akey);
            }
            examined.found(place_of(subject, found, FindingKind::Record, what, keys, examined));
            return;
        }
    };
    if !matches!(found.sort, Sort::Discard | Sort::Object | Sort::Dkey) {
        examined.note_name(found, &opened.dkey, &opened.akey);
    }
    if !found.sort.has_data() {
        return;
    }
    match verify(subject, at, record, &opened.header, extents) {
        Ok(()) if opened.header.checksum == Checksum::Off => examined.report.unverified_values += 1,
        Ok(()) => examined.report.verified_bytes += u64::from(opened.header.bytes),
        Err(what) => {
            let keys = Some((opened.dkey, opened.akey));
            examined.found(place_of(subject, found, FindingKind::Value, &what, keys, examined));
        }
    }
}

/// Decodes a record and holds it against what the index says.
fn open(record: &[u8], sequence: u32, found: &Reference) -> Result<Opened, &'static str> {
    let head = record.first_chunk::<HEADER_BYTES>().and_then(|head| Header::decode(head, record.len()));
    let header = head.ok_or("the header of its record is damaged")?;
    if !header.is_intact(record, sequence) {
        return Err("the checksum of its record's header does not match");
    }
    if header.lines() != found.lines as usize {
        return Err("its record has a different length than in the index");
    }
    if !header.commitment(record).1 {
        return Err("the commit word of its record does not match");
    }
    let (dkey, akey) = (header.dkey(record).to_vec(), header.akey(record).to_vec());
    let is_same = header.epoch == found.epoch
        && header.container == found.container
        && is_sort(&header, record, found.sort)
        && (found.sort == Sort::Discard || header.object == found.object)
        && has_keys(found, &dkey, &akey);
    if !is_same {
        return Err("its record belongs to another key");
    }
    Ok(Opened { header, dkey, akey })
}

fn is_sort(header: &Header, record: &[u8], sort: Sort) -> bool {
    match sort {
        Sort::Single => header.kind == Kind::Single,
        Sort::Tombstone | Sort::All => header.kind == Kind::PunchAkey,
        Sort::Data { start, bytes } => {
            header.kind == Kind::Extent && header.offset == start && u64::from(header.bytes) == bytes
        }
        Sort::Hole { start, bytes } => {
            let is_same = header.offset == start && header.extension_number(record) == bytes;
            header.kind == Kind::PunchExtent && is_same
        }
        Sort::Dkey => header.kind == Kind::PunchDkey,
        Sort::Object => header.kind == Kind::PunchObject,
        Sort::Discard => header.kind == Kind::Discard,
    }
}

/// Whether keys are those that the index has hashes of.
fn has_keys(found: &Reference, dkey: &[u8], akey: &[u8]) -> bool {
    let hashes = Hashes::of(dkey, akey);
    let is_dkey = (hashes.dkey, hashes.extra) == (found.hashes.dkey, found.hashes.extra);
    match found.sort {
        Sort::Object | Sort::Discard => true,
        Sort::Dkey => is_dkey,
        _ => is_dkey && hashes.akey == found.hashes.akey,
    }
}

/// Keys of a record whose header is damaged, where they are the right ones still.
fn keys_of(record: &[u8], found: &Reference) -> Option<(Vec<u8>, Vec<u8>)> {
    let head = record.first_chunk::<HEADER_BYTES>()?;
    let length = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (dkey, akey) = (length(6), length(8));
    let keys = record.get(HEADER_BYTES..HEADER_BYTES + dkey + akey)?;
    let (dkey, akey) = keys.split_at(dkey);
    has_keys(found, dkey, akey).then(|| (dkey.to_vec(), akey.to_vec()))
}

/// Verifies the data of a record, and notes its extent.
fn verify(
    subject: &Subject<'_>,
    owner: usize,
    record: &[u8],
    header: &Header,
    extents: &mut Vec<Extent>,
) -> Result<(), String> {
    let bytes = header.bytes as usize;
    let is_right = if header.is_external() {
        let pieces = match header.spread(record) {
            Spread::One(start) => vec![(start, bytes as u64)],
            Spread::Many(pieces) => pieces.to_vec(),
        };
        let mut value = Vec::with_capacity(bytes);
        for (start, length) in pieces {
            let content = subject.target.data_content(start, length.min(bytes as u64) as usize);
            let content = content.map_err(|error| format!("its data cannot be read: {error}"))?;
            let outside = || format!("its data would be at byte {start} of the data file, beyond its end");
            let content = content.ok_or_else(outside)?;
            extents.push(Extent { start, bytes: crate::data::extent_bytes(length), owner });
            let wanted = (bytes - value.len()).min(length as usize);
            value.extend_from_slice(content.bytes(0, wanted.min(content.len())));
        }
        value.len() == bytes && checksum::verifies(header.checksum, &value, header.sums(record))
    } else {
        let data = record.get(header.data_at()..header.data_at() + bytes);
        data.is_some_and(|data| checksum::verifies(header.checksum, data, header.sums(record)))
    };
    if is_right { Ok(()) } else { Err("the checksum of its data does not match".to_owned()) }
}

/// A finding about a record, with its plan where nothing else comes.
pub(super) fn place_of(
    subject: &Subject<'_>,
    found: &Reference,
    kind: FindingKind,
    what: &str,
    keys: Option<KeyName>,
    examined: &Examined,
) -> (Finding, Option<Reference>) {
    let shown = |key: &[u8]| key.escape_ascii().to_string();
    let finding = Finding {
        container: Some(examined.label(found.container)),
        object: (found.sort != Sort::Discard).then(|| found.object.to_string()),
        dkey: keys.as_ref().map(|(dkey, _)| shown(dkey)),
        akey: keys.as_ref().map(|(_, akey)| shown(akey)),
        epoch: Some(found.epoch),
        ..Finding::new(kind, what).on(subject.number)
    };
    let finding = match found.seen {
        Seen::Snapshot => finding.kept("only a snapshot shows it, and data of snapshots cannot be rewritten"),
        Seen::Latest if kind == FindingKind::Index => {
            finding.mended("the index is removed, and the log is read instead")
        }
        Seen::Latest | Seen::Nobody => {
            finding.kept("no other copy of it exists: write it again, or remove it")
        }
    };
    (finding, Some(*found))
}

/// Records of containers that the table does not name, although their numbers were not given yet.
fn report_strangers(
    subject: &Subject<'_>,
    strangers: BTreeMap<ContainerId, (u64, Checksum)>,
    examined: &mut Examined,
) {
    for (container, (records, kind)) in strangers {
        let known = examined.strangers.insert(container, kind);
        let label = super::adopted_label(container);
        let what = format!(
            "{records} records belong to container number {}, which is not in any table",
            container.0
        );
        let finding = Finding::new(FindingKind::Container, what).on(subject.number);
        let plan = match known {
            None => format!("it is named {label} in the table"),
            Some(_) => format!("it is named {label} in the table, as on other targets"),
        };
        examined
            .report
            .findings
            .push(Finding { container: Some(format!("#{}", container.0)), ..finding.mended(plan) });
    }
}

/// Keys of all records of replicated and erasure-coded objects, by object.
pub(super) type Names = BTreeMap<(ContainerId, crate::model::ObjectId), BTreeSet<KeyName>>;
