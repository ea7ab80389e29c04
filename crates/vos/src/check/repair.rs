//! Doing what findings say: files first, while nobody has the pool open, then values, then space.

use std::collections::BTreeSet;
use std::fs::OpenOptions as FileOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use driver::Error;

use super::names::{self, Mender};
use super::report::{CheckReport, FindingKind, RepairReport};
use super::{Examined, adopted_label, examine, lock_pool, names::containers};
use crate::containers::{Row, Table};
use crate::record::LINE_BYTES;
use crate::storage_target::{INDEX_FILE, LOG_FILE, file_error};
use crate::superblock::{self, Lock, Superblock, target_dir};
use crate::types::ContainerId;
use crate::{OpenOptions, Pool, files};

/// Ids of objects that a container whose table row was lost may have given, beyond which it gives new ones.
const IDS_BEYOND: u64 = 1 << 40;

/// See [`Pool::repair`].
pub(super) fn repair(dir: &Path) -> Result<RepairReport, Error> {
    let lock = lock_pool(dir)?;
    let mut examined = examine(dir, &lock)?;
    let before = examined.report.clone();
    let mut mender = Mender::default();
    let is_readable = before.uuid.is_some() && !examined.labels.is_empty() || examined.next_container > 0;
    if before.repairable() == 0 && lost(&before).next().is_none() || !is_readable {
        return Ok(RepairReport { after: before.clone(), before, done: Vec::new(), left: Vec::new() });
    }
    if mend_files(dir, &mut examined, &mut mender)? {
        // What could not be read before is examined now.
        examined = examine(dir, &lock)?;
    }
    mender.left.extend(lost(&examined.report));
    drop_indexes(dir, &examined, &mut mender)?;
    let bytes = std::fs::read(dir.join(superblock::FILE));
    let bytes = bytes
        .map_err(|error| file_error("cannot read the superblock", &dir.join(superblock::FILE), error))?;
    let superblock = Superblock::decode(&bytes, &dir.join(superblock::FILE))?;
    let lock = mend_values(dir, superblock, lock, &mut examined, &mut mender)?;
    let after = examine(dir, &lock)?.report;
    Ok(RepairReport { before, done: mender.done, left: mender.left, after })
}

/// Parts of the log that hold nothing any more, and are not found again when the pool was closed.
fn lost(report: &CheckReport) -> impl Iterator<Item = String> {
    let is_lost = |finding: &&super::Finding| finding.kind == FindingKind::Log && !finding.can_repair;
    let line = |finding: &super::Finding| {
        let target = finding.target.map_or_else(String::new, |target| format!("target {target}: "));
        format!("{target}{}", finding.what)
    };
    report.findings.iter().filter(is_lost).map(line)
}

/// Headers of segments and the table of containers. Whether anything was written.
fn mend_files(dir: &Path, examined: &mut Examined, mender: &mut Mender) -> Result<bool, Error> {
    for (target, segment, head) in &examined.heads {
        let path = target_dir(dir, *target).join(LOG_FILE);
        let failed = |error| file_error("cannot write the header of a segment", &path, error);
        let file = FileOptions::new().read(true).write(true).open(&path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let segment_bytes = examined.segment_bytes;
        let at = u64::from(*segment) * segment_bytes;
        debug_assert!(at + LINE_BYTES as u64 <= bytes);
        file.write_all_at(head, at).and_then(|()| files::sync(&file, &path)).map_err(failed)?;
        mender
            .done
            .push(format!("target {target}: the header of segment {segment} of the log was rewritten"));
    }
    let is_changed = !examined.heads.is_empty();
    let Some(mut table) = examined.table.take() else { return Ok(is_changed) };
    table.rows.iter_mut().for_each(|row| row.snapshots.sort_unstable());
    for (id, checksum) in &examined.strangers {
        adopt(&mut table, *id, *checksum)?;
        mender.done.push(format!("container number {} was named {} in the table", id.0, adopted_label(*id)));
    }
    table.write_or_error()?;
    mender.done.push("the table of containers was rewritten".to_owned());
    Ok(true)
}

fn adopt(table: &mut Table, id: ContainerId, checksum: crate::Checksum) -> Result<(), Error> {
    table.next = table.next.max(id.0.saturating_add(1));
    table.rows.push(Row {
        id,
        label: adopted_label(id),
        uuid: superblock::uuid_text(&superblock::random_uuid()?),
        checksum,
        snapshots: Vec::new(),
        ids_end: IDS_BEYOND,
        next_id: IDS_BEYOND,
        maker: None,
        claims: crate::claims::Claims::default(),
    });
    Ok(())
}

/// Takes indexes away that do not say what the log says. Not where values are damaged that nothing mends: without the index those before
/// them would be shown as the latest.
fn drop_indexes(dir: &Path, examined: &Examined, mender: &mut Mender) -> Result<(), Error> {
    let of_index = |kind| matches!(kind, FindingKind::Index | FindingKind::Leak | FindingKind::Extent);
    let findings = &examined.report.findings;
    let targets: BTreeSet<u32> = findings
        .iter()
        .filter(|finding| of_index(finding.kind) && finding.can_repair)
        .filter_map(|finding| finding.target)
        .collect();
    let damaged = hopeless(&examined.report);
    for target in targets {
        let path = target_dir(dir, target).join(INDEX_FILE);
        if !path.exists() {
            continue;
        }
        if damaged.contains(&target) {
            mender.left.push(format!(
                "target {target}: its index was kept, because without it older versions would replace damaged values"
            ));
            continue;
        }
        files::remove(&path).map_err(|error| file_error("cannot remove the index", &path, error))?;
        mender.done.push(format!("target {target}: the index was removed, and the log was read instead"));
    }
    Ok(())
}

/// Targets with damage that nothing mends.
fn hopeless(report: &CheckReport) -> BTreeSet<u32> {
    let kept =
        report.findings.iter().filter(|finding| !finding.can_repair && finding.kind != FindingKind::Log);
    kept.filter_map(|finding| finding.target).collect()
}

/// Opens the pool, mends copies and cells, frees what nobody sees, and closes it.
fn mend_values(
    dir: &Path,
    superblock: Superblock,
    lock: Lock,
    examined: &mut Examined,
    mender: &mut Mender,
) -> Result<Lock, Error> {
    let pool = Pool::open_locked(dir, superblock, lock, &OpenOptions::default())?;
    mender.done.extend(pool.findings().iter().map(|finding| format!("opening it: {finding}")));
    let targets: Vec<_> = pool.targets().iter().cloned().map(Some).collect();
    names::compare(&targets, examined, Some(mender));
    let damaged = hopeless(&examined.report);
    let mut freed = crate::Aggregated::default();
    for (number, target) in pool.targets().iter().enumerate() {
        if damaged.contains(&(number as u32)) {
            mender.left.push(format!(
                "target {number}: no space was freed, because that could overwrite remains of damaged values"
            ));
            continue;
        }
        let swept = containers(examined).into_iter().try_for_each(|container| {
            freed += target.aggregate(container, None, true)?;
            Ok(())
        });
        let swept = swept.and_then(|()| {
            freed += target.collect()?;
            Ok::<(), crate::StoreError>(())
        });
        if let Err(error) = swept {
            mender.left.push(format!("target {number}: its space cannot be freed: {error}"));
        }
    }
    if freed.versions_dropped > 0 || freed.segments_freed > 0 {
        mender.done.push(format!(
            "{} versions that are no longer visible were dropped, {} segments of the log and {} bytes of the data files freed",
            freed.versions_dropped, freed.segments_freed, freed.nvme_freed_bytes
        ));
    }
    drop(targets);
    pool.close_locked()
}
