//! Examination of a pool that nobody has open: every checksum, every reference, copies against each other, parity against data. Nothing is
//! written: what opening a target would change stays in memory. A repair does what the findings say, and examines again.

mod cells;
mod copies;
mod names;
mod records;
mod repair;
mod report;
mod space;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::{Checksum, Flush, Redundancy};
use driver::{Error, ErrorKind};

pub use self::report::{CheckReport, Finding, FindingKind, RepairReport};
use super::access::access_of;
use super::containers::Table;
use super::index::Hashes;
use super::opening::{LOST_MARK, setup_of};
use super::record::LINE_BYTES;
use super::storage_target::{
    Census, INDEX_FILE, Purpose, Reference, Seen, Target, TargetSetup, is_whole, mark_is_damaged,
};
use super::superblock::{self, CONTAINERS_FILE, Lock, Superblock, target_dir};
use super::{ContainerId, OpenOptions, Pool, repair as retreat, settled};
use crate::model::{Epoch, ObjectId};

/// Dkey and akey.
type KeyName = (Vec<u8>, Vec<u8>);
/// Where a damaged latest version is: target, container, object, hashes of dkey and akey.
type Spot = (u32, ContainerId, ObjectId, (u64, u16, u64));

/// Findings and counts of an examination.
#[derive(Debug, Default)]
pub(super) struct Examined {
    report: CheckReport,
    labels: BTreeMap<ContainerId, String>,
    /// Numbers from here on were given to no container.
    next_container: u32,
    /// Keys of objects that have copies or cells.
    names: records::Names,
    /// Findings about latest versions, by where they are.
    damaged: BTreeMap<Spot, usize>,
    /// Bytes of a segment of the log.
    segment_bytes: u64,
    /// Headers of segments as they should be: target, segment.
    heads: Vec<(u32, u32, [u8; LINE_BYTES])>,
    /// Containers that no table names, with the checksum of a record.
    strangers: BTreeMap<ContainerId, Checksum>,
    /// The table as it is to be written anew.
    table: Option<Table>,
    /// Damaged versions that nobody sees any more.
    unseen: u64,
    /// Targets of which a part of the log was lost: what is missing there may have been there.
    holed: BTreeSet<u32>,
}

impl Examined {
    fn knows(&self, container: ContainerId) -> bool {
        self.labels.contains_key(&container)
    }

    fn label(&self, container: ContainerId) -> String {
        self.labels.get(&container).cloned().unwrap_or_else(|| format!("#{}", container.0))
    }

    fn push(&mut self, finding: Finding) {
        self.report.findings.push(finding);
    }

    /// Keeps a finding; of a latest version also where it is, for copies that mend it.
    fn found(&mut self, (finding, reference): (Finding, Option<Reference>)) {
        if reference.is_some_and(|found| found.seen == Seen::Nobody) {
            // After a kill the log brings back versions that were dropped, and whose extents others have.
            self.unseen += 1;
            return;
        }
        if let (Some(found), Some(target)) = (reference, finding.target)
            && found.seen == Seen::Latest
        {
            let spot = spot_of(target, found.container, found.object, &found.hashes);
            self.damaged.insert(spot, self.report.findings.len());
        }
        self.report.findings.push(finding);
    }

    fn has_damaged_records(&self, target: u32) -> bool {
        let is_record = |finding: &Finding| matches!(finding.kind, FindingKind::Record | FindingKind::Index);
        let is_here = |finding: &Finding| finding.target == Some(target) && is_record(finding);
        self.unseen > 0 || self.report.findings.iter().any(is_here)
    }

    /// Notes the keys of a record of an object that has copies or cells.
    fn note_name(&mut self, found: &Reference, dkey: &[u8], akey: &[u8]) {
        let class = found.object.class();
        if class.is_some_and(|class| class.redundancy != Redundancy::None) && self.knows(found.container) {
            let own = self.names.entry((found.container, found.object)).or_default();
            own.insert((dkey.to_vec(), akey.to_vec()));
        }
    }

    /// The finding about the latest version of a key on a target.
    fn finding_of(&mut self, target: u32, key: &names::Key<'_>) -> Option<&mut Finding> {
        let hashes = Hashes::of(key.place.dkey, key.place.akey);
        let spot = spot_of(target, key.place.container, key.place.object, &hashes);
        let at = *self.damaged.get(&spot)?;
        self.report.findings.get_mut(at)
    }
}

fn spot_of(target: u32, container: ContainerId, object: ObjectId, hashes: &Hashes) -> Spot {
    (target, container, object, (hashes.dkey, hashes.extra, hashes.akey))
}

/// Label of a container that was found in the log alone.
fn adopted_label(container: ContainerId) -> String {
    format!("recovered.{}", container.0)
}

impl Pool {
    /// Examines the pool in `dir`, which nobody may have open. Nothing is changed.
    ///
    /// # Errors
    /// There is no pool, it is of another version, another process has it open. Damage is no error: it is in the report.
    pub fn check(dir: &Path) -> Result<CheckReport, Error> {
        let lock = lock_pool(dir)?;
        let report = examine(dir, &lock)?.report;
        drop(lock);
        Ok(report)
    }

    /// Examines the pool in `dir`, mends what its findings say that can be, and examines it again.
    ///
    /// # Errors
    /// As [`Pool::check`]; what could not be written.
    pub fn repair(dir: &Path) -> Result<RepairReport, Error> {
        self::repair::repair(dir)
    }
}

fn lock_pool(dir: &Path) -> Result<Lock, Error> {
    if !dir.join(superblock::FILE).is_file() {
        let error = Error::usage("pool", "the directory contains no pool").with("path", dir.display());
        return Err(match Pool::standing(dir) {
            super::Standing::Unfinished => error
                .remedy("its creation was interrupted, and it is empty: strata pool create creates it again, strata pool destroy removes it"),
            _ => error.remedy("use the directory of a pool, or create one: strata pool create vos:DIR"),
        });
    }
    Superblock::lock_to_look(dir)
}

/// Examines a pool whose lock is held.
fn examine(dir: &Path, _lock: &Lock) -> Result<Examined, Error> {
    let mut examined = Examined::default();
    examined.report.pool = dir.display().to_string();
    let Some(superblock) = read_superblock(dir, &mut examined)? else { return Ok(examined) };
    examined.report.uuid = Some(superblock.uuid_text());
    examined.report.targets = superblock.targets;
    examined.segment_bytes = superblock.segment_bytes;
    let Some(table) = read_table(dir, &mut examined) else { return Ok(examined) };
    examined.report.containers = table.rows.len() as u32;
    examined.next_container = table.next;
    examined.labels = table.rows.iter().map(|row| (row.id, row.label.clone())).collect();
    let access = access_of(dir, Flush::Auto)?;
    let settled = settled::read(dir);
    if settled.is_none() {
        examined.push(Finding::new(FindingKind::File, LOST_MARK).mended("it is rewritten"));
    }
    let setup = TargetSetup {
        purpose: Purpose::Look,
        ..setup_of(dir, &superblock, &OpenOptions::default(), access, &table, settled)
    };
    let opened = open_alike(dir, &setup, &mut examined);
    let targets: Vec<Option<Arc<Target>>> = opened.iter().map(|opened| opened.target.clone()).collect();
    examined.report.is_closed = !targets.iter().flatten().any(|target| target.is_recovered());
    take_back(&targets, setup.settled, &mut examined);
    for (number, opened) in (0..).zip(&opened) {
        examine_target(number, opened, &setup, &mut examined);
    }
    check_snapshots(&table, &mut examined);
    names::compare(&targets, &mut examined, None);
    if examined.unseen > 0 {
        let note = format!(
            "{} versions that are no longer visible are damaged; the next aggregation frees them",
            examined.unseen
        );
        examined.report.notes.push(note);
    }
    if examined.table.is_some() || !examined.strangers.is_empty() {
        examined.table = Some(table);
    }
    Ok(examined)
}

/// The superblock; none where it is damaged, which is a finding.
fn read_superblock(dir: &Path, examined: &mut Examined) -> Result<Option<Superblock>, Error> {
    let path = dir.join(superblock::FILE);
    let bytes = std::fs::read(&path).map_err(|error| {
        Error::system("pool", "cannot read the superblock", error).with("path", path.display())
    })?;
    let has_parts = dir.join(CONTAINERS_FILE).exists() && target_dir(dir, 0).is_dir();
    match Superblock::decode(&bytes, &path) {
        Ok(superblock) if superblock.is_plausible() => return Ok(Some(superblock)),
        // Another thing than a pool, or one of another release.
        Err(error) if error.kind() == ErrorKind::Usage && !(has_parts && superblock::is_damaged(&bytes)) => {
            return Err(error);
        }
        _ => {}
    }
    let what =
        "the superblock is damaged: the settings of the pool are unknown, and nothing else was examined";
    let finding = Finding::new(FindingKind::Superblock, what);
    examined.push(
        finding.kept("there is only one copy: restore the file, or destroy the pool and create a new one"),
    );
    Ok(None)
}

/// The table of containers; none where it cannot be read at all.
fn read_table(dir: &Path, examined: &mut Examined) -> Option<Table> {
    let restore = "there is only one copy: restore the file; without it the containers are unknown, and nothing else was examined";
    match Table::read_damaged(dir) {
        Err(error) => {
            let what = format!("the table of containers cannot be read: {error}");
            examined.push(Finding::new(FindingKind::Table, what).kept(restore));
            None
        }
        Ok((table, None)) => table,
        Ok((None, Some(what))) => {
            let what = format!("the table of containers is damaged: {what}");
            examined.push(Finding::new(FindingKind::Table, what).kept(restore));
            None
        }
        Ok((Some(table), Some(what))) => {
            let labels: Vec<&str> = table.rows.iter().map(|row| row.label.as_str()).collect();
            let plan = format!(
                "its rows can be read, and are rewritten as they are read: {}",
                if labels.is_empty() { "none".to_owned() } else { labels.join(", ") }
            );
            let what = format!("the table of containers is damaged: {what}");
            examined.push(Finding::new(FindingKind::Table, what).mended(plan));
            examined.table = Some(table.clone());
            Some(table)
        }
    }
}

/// Snapshots are kept in the order of their epochs, and looked up so.
fn check_snapshots(table: &Table, examined: &mut Examined) {
    for row in &table.rows {
        if !row.snapshots.is_sorted_by(|one, other| one < other) {
            let what = "its snapshots are not sorted by epoch";
            let finding = Finding::new(FindingKind::Table, what);
            let finding = Finding { container: Some(row.label.clone()), ..finding };
            examined.push(finding.mended("they are sorted"));
            examined.table = Some(table.clone());
        }
    }
}

/// A target that was opened to look at it.
struct OpenTarget {
    /// None where it cannot be.
    target: Option<Arc<Target>>,
    has_index: bool,
}

/// Opens all targets; where one was not closed, all of them from their logs, which tell together what is whole.
fn open_alike(dir: &Path, first: &TargetSetup, examined: &mut Examined) -> Vec<OpenTarget> {
    let numbers = 0..first.targets;
    let mut opened: Vec<_> = numbers.map(|number| open_target(dir, number, first, examined)).collect();
    let is_recovered =
        |opened: &OpenTarget| opened.target.as_ref().is_some_and(|target| target.is_recovered());
    if opened.iter().any(is_recovered) {
        for (number, opened) in (0..).zip(&mut opened).filter(|(_, opened)| !is_recovered(opened)) {
            let setup = TargetSetup {
                number,
                dir: target_dir(dir, number),
                purpose: Purpose::LookAtLog,
                ..first.clone()
            };
            opened.target = opened.target.take().and_then(|_| Target::open(&setup).ok());
        }
    }
    opened
}

/// Takes back, in memory, what the next open takes back.
fn take_back(targets: &[Option<Arc<Target>>], settled: Epoch, examined: &mut Examined) {
    match retreat::take_back(targets, settled) {
        Ok(0) => {}
        Ok(count) => examined.report.notes.push(format!(
            "{count} updates of several targets were interrupted by a failure; the next open rolls them back"
        )),
        Err(error) => {
            let what = format!("updates that a failure interrupted cannot be rolled back: {error}");
            let finding = Finding::new(FindingKind::File, what);
            examined.push(finding.kept("the device or the file system must be repaired first"));
        }
    }
}

/// Opens a target to look at it.
fn open_target(dir: &Path, number: u32, first: &TargetSetup, examined: &mut Examined) -> OpenTarget {
    let own = target_dir(dir, number);
    let index = own.join(INDEX_FILE);
    let has_index = index.exists();
    if has_index && !is_whole(&index).unwrap_or(false) {
        let what = "the checksum of its index does not match";
        let finding = Finding::new(FindingKind::Index, what).on(number);
        examined.push(finding.mended("the index is removed, and the log is read instead"));
    }
    if mark_is_damaged(&own) {
        let finding = Finding::new(FindingKind::File, "the mark beside its log is damaged").on(number);
        examined.push(finding.mended("it is rewritten"));
    }
    let setup = TargetSetup { number, dir: own, ..first.clone() };
    let target = Target::open(&setup).inspect_err(|error| {
        let finding = Finding::new(FindingKind::File, format!("it cannot be opened: {error}")).on(number);
        examined.push(finding.kept("restore the file"));
        examined.holed.insert(number);
    });
    OpenTarget { target: target.ok(), has_index }
}

/// Examines a target that was opened to look at it.
fn examine_target(number: u32, opened: &OpenTarget, first: &TargetSetup, examined: &mut Examined) {
    let Some(target) = &opened.target else { return };
    let census = target.census();
    let is_recovered = target.is_recovered();
    for &(segment, line, lines) in &census.gaps {
        let bytes = lines as usize * LINE_BYTES;
        let what = format!(
            "{bytes} bytes at line {line} of segment {segment} of the log are damaged: their contents are lost"
        );
        let plan = "the contents are unknown; copies and cells on other targets are used to restore them";
        examined.push(Finding::new(FindingKind::Log, what).on(number).kept(plan));
        examined.holed.insert(number);
    }
    let subject = records::Subject { number, target, census: &census, uuid: first.uuid, is_recovered };
    records::examine(&subject, examined);
    if opened.has_index && !is_recovered {
        let pool = super::files::directory_of(&first.dir);
        let setup = TargetSetup { number, dir: target_dir(pool, number), ..first.clone() };
        compare_with_log(&setup, &census, examined);
    }
    note_destroyed(&census, number, examined);
}

/// Space of containers that were destroyed and not collected: known, and no damage.
fn note_destroyed(census: &Census, number: u32, examined: &mut Examined) {
    let gone =
        |found: &&Reference| !examined.knows(found.container) && found.container.0 < examined.next_container;
    let lines: u64 = census.references.iter().filter(gone).map(|found| u64::from(found.lines)).sum();
    if lines > 0 {
        let bytes = lines * LINE_BYTES as u64;
        let note = format!(
            "target {number}: {bytes} bytes of the log belong to destroyed containers; the next collection frees them"
        );
        examined.report.notes.push(note);
    }
}

/// Compares the index with the log as a kill would leave it: the latest versions must be the same.
fn compare_with_log(setup: &TargetSetup, census: &Census, examined: &mut Examined) {
    if examined.has_damaged_records(setup.number) || !examined.heads.is_empty() {
        // What is damaged differs, and was told.
        return;
    }
    let read = Target::open(&TargetSetup { purpose: Purpose::LookAtLog, ..setup.clone() });
    let Ok(target) = read else { return };
    let key = |found: &Reference| {
        (
            found.container,
            found.object,
            (found.hashes.dkey, found.hashes.extra, found.hashes.akey),
            found.epoch,
        )
    };
    let latest = |census: &Census| -> BTreeSet<_> {
        let shown = census.references.iter();
        shown.filter(|found| found.seen == Seen::Latest && found.sort.has_data()).map(key).collect()
    };
    let (own, read) = (latest(census), latest(&target.census()));
    let (missing, stale) = (read.difference(&own).count(), own.difference(&read).count());
    if missing + stale > 0 {
        let what = format!(
            "the index and the log disagree: {missing} latest versions are only in the log, {stale} only in the index"
        );
        let finding = Finding::new(FindingKind::Index, what).on(setup.number);
        examined.push(finding.mended("the index is removed, and the log is read instead"));
    }
}
