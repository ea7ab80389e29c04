//! Space of a target: segments of the log, extents of the data file, and what the index says that they hold.

use super::Examined;
use super::records::{Extent, Subject};
use super::report::{Finding, FindingKind};
use crate::record::LINE_BYTES;
use crate::segment::{MAGIC_BYTES, is_free, segment_header};
use crate::storage_target::SegmentFacts;

/// A header that differs in more bits from what it may have been is something else.
const DISTANCE_BITS_MAX: u32 = 64;

const INDEX_GOES: &str = "the index is removed, and the log is read instead";

/// A header of a segment that is neither free nor whole.
pub(super) fn report_head(
    subject: &Subject<'_>,
    number: u32,
    head: &[u8; LINE_BYTES],
    facts: SegmentFacts,
    examined: &mut Examined,
) {
    let finding = |what: String| Finding::new(FindingKind::Log, what).on(subject.number);
    // Where the log was read, what stands in the index was lost with the header.
    let sequence = (!subject.is_recovered).then_some(facts.sequence);
    match whole_head(&subject.uuid, number, head, sequence, facts.is_free && !subject.is_recovered) {
        Some(whole) if is_free(&whole) => {
            let what = format!("the header of segment {number} of the log is damaged; the segment is free");
            examined.heads.push((subject.number, number, whole));
            examined.report.findings.push(finding(what).mended("the header is rewritten"));
        }
        Some(whole) => {
            let what = format!("the header of segment {number} of the log is damaged");
            examined.heads.push((subject.number, number, whole));
            examined
                .report
                .findings
                .push(finding(what).mended("the header is rewritten, and its records are read"));
        }
        None => {
            let what =
                format!("the header of segment {number} of the log is damaged, and its sequence is unknown");
            examined.report.findings.push(
                finding(what).kept("its records cannot be distinguished from older ones: restore the pool"),
            );
        }
    }
}

/// The header that a damaged one was: the likeliest of a free one and one of a sequence, none where it is like neither.
fn whole_head(
    uuid: &[u8; 16],
    number: u32,
    head: &[u8; LINE_BYTES],
    sequence: Option<u32>,
    is_unused: bool,
) -> Option<[u8; LINE_BYTES]> {
    if let Some(sequence) = sequence {
        let mut whole = segment_header(uuid, number, sequence);
        if is_unused {
            whole[..MAGIC_BYTES].fill(0);
        }
        return Some(whole);
    }
    // Its own sequence, or with a bit of it flipped back: the checksum at the end tells.
    let own = u32::from_le_bytes([head[12], head[13], head[14], head[15]]);
    let tried = std::iter::once(own).chain((0..32).map(|bit| own ^ 1 << bit));
    let distance = |other: &[u8; LINE_BYTES]| -> u32 {
        head.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum()
    };
    let used = tried.map(|sequence| segment_header(uuid, number, sequence)).min_by_key(distance)?;
    // Mapped logs free a segment by its first word alone.
    let mut freed = used;
    freed[..MAGIC_BYTES].fill(0);
    let likely = [used, freed, [0; LINE_BYTES]].into_iter().min_by_key(distance)?;
    (distance(&likely) <= DISTANCE_BITS_MAX).then_some(likely)
}

/// Lines of segments, and extents, against what refers to them.
pub(super) fn examine_space(subject: &Subject<'_>, extents: &mut [Extent], examined: &mut Examined) {
    let census = subject.census;
    let mut live = vec![0u64; census.segments.len()];
    for found in &census.references {
        let segment = (found.location / u64::from(census.segment_lines)) as usize;
        if let Some(lines) = live.get_mut(segment) {
            *lines += u64::from(found.lines);
        }
    }
    let mut off = 0u64;
    for (facts, live) in census.segments.iter().zip(&live) {
        let noted = if facts.is_free { 0 } else { u64::from(facts.live_lines) };
        off += u64::from(noted != *live);
    }
    let mut report = |kind, what: String| {
        examined.report.findings.push(Finding::new(kind, what).on(subject.number).mended(INDEX_GOES));
    };
    if off > 0 {
        report(
            FindingKind::Leak,
            format!(
                "{off} segments of the log have a different number of lines in use than the index records"
            ),
        );
    }
    let keys: u64 = census.keys.values().map(|keys| keys.akeys).sum();
    if keys != census.keys_noted {
        report(FindingKind::Index, format!("the index has {keys} keys, but records {}", census.keys_noted));
    }
    extents.sort_unstable();
    examine_extents(subject, extents, examined);
}

/// Extents in use and free ones: each block is in one of them.
fn examine_extents(subject: &Subject<'_>, extents: &[Extent], examined: &mut Examined) {
    let census = subject.census;
    // Free extents have no owner.
    let free = census.free_extents.iter().map(|&(start, bytes)| (start, bytes, None));
    let used = extents.iter().map(|extent| (extent.start, extent.bytes, Some(extent.owner)));
    let mut all: Vec<(u64, u64, Option<usize>)> = free.chain(used).collect();
    all.sort_unstable();
    let (mut end, mut before, mut leaked_bytes, mut leaks) = (0u64, None, 0u64, 0u64);
    for (start, bytes, owner) in all {
        if start < end {
            let what = match (before.flatten(), owner) {
                (Some(_), Some(_)) => "its extent of the data file overlaps that of another value",
                (None, None) => "two free extents of the data file overlap",
                _ => "its extent of the data file is also marked free",
            };
            let reference = owner.or(before.flatten()).map(|owner| &census.references[owner]);
            let finding = match reference {
                Some(found) => {
                    super::records::place_of(subject, found, FindingKind::Extent, what, None, examined).0
                }
                None => Finding::new(FindingKind::Extent, what).on(subject.number),
            };
            examined.report.findings.push(finding.mended(INDEX_GOES));
        } else if start > end {
            leaked_bytes += start - end;
            leaks += 1;
        }
        (end, before) = (end.max(start.saturating_add(bytes)), Some(owner));
    }
    if census.nvme_bytes > end {
        leaked_bytes += census.nvme_bytes - end;
        leaks += 1;
    }
    // What belongs to a record that is damaged cannot be told from a leak.
    if leaks > 0 && !examined.has_damaged_records(subject.number) {
        let what =
            format!("{leaked_bytes} bytes of the data file, in {leaks} parts, are neither free nor in use");
        let finding = Finding::new(FindingKind::Leak, what).on(subject.number);
        examined.report.findings.push(finding.mended(INDEX_GOES));
    }
}
