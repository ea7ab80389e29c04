//! The tables of a run: which phases share the zones of which device, and who of them may keep how many open.

use std::sync::Arc;

use crate::plan::MediaPlan;
use crate::zoned::{ZoneModel, ZonedPlan, ZonedTarget};
use driver::{Error, ErrorKind};
use workload::spec::Share;
use workload::target::TargetPlan;

use super::device::{BlockZones, report_all};
use super::group::{EarlyResets, Group, quotas};
use super::{Condition, Kind, ZoneDevice, ZoneReport, ZoneTable};

/// Part of the zones of one target that a worker works on.
#[derive(Clone)]
pub(crate) struct Ground {
    /// The zones of the target.
    pub(crate) table: Arc<ZoneTable>,
    /// Number of the target.
    pub(crate) target: u16,
    /// Its first zone.
    pub(crate) first: usize,
    /// The zone behind its last one.
    pub(crate) end: usize,
    /// Group that writes it; 0 where nothing is written.
    pub(crate) group: usize,
}

/// The zones of one phase: what each of its workers works on.
pub struct ZoneSet {
    workers: Vec<Vec<Ground>>,
    /// Number of its first worker among those of all phases that run together.
    first_worker: u32,
}

impl ZoneSet {
    pub(crate) fn grounds(&self, worker: u32) -> &[Ground] {
        &self.workers[worker as usize]
    }

    pub(crate) fn number_of(&self, worker: u32) -> u32 {
        self.first_worker + worker
    }
}

/// Emulated zones live as long as the run; those of devices are asked for before each stage.
pub struct ZoneTables {
    emulated: Vec<(String, ZonedTarget, Arc<ZoneTable>)>,
    open: Box<OpenZones>,
}

/// Opens the device at a path, to ask for its zones.
pub type OpenZones = dyn Fn(&str) -> Result<Box<dyn ZoneDevice>, Error> + Send;

impl Default for ZoneTables {
    fn default() -> Self {
        Self::opening(Box::new(|path| Ok(Box::new(BlockZones::open(path)?))))
    }
}

/// The zones of a target, and the groups that write them, while a stage is made.
struct Shared {
    path: String,
    zones: ZonedTarget,
    table: Arc<ZoneTable>,
    groups: Vec<Group>,
    limit: Option<u32>,
}

impl ZoneTables {
    /// Tables of devices that `open` opens.
    #[must_use]
    pub fn opening(open: Box<OpenZones>) -> Self {
        Self { emulated: Vec::new(), open }
    }

    /// The zones of each phase of a stage; none of a phase that does not keep to any.
    ///
    /// # Errors
    /// When zones cannot be read, when fewer zones may be open than are needed, and when there is nothing to read.
    pub fn begin_stage(&mut self, plans: &[&MediaPlan]) -> Result<Vec<Option<Arc<ZoneSet>>>, Error> {
        let mut shared: Vec<Shared> = Vec::new();
        for plan in plans {
            let zones = plan.zoned.iter().flat_map(|zoned| &zoned.targets);
            for (target, zones) in plan.targets.iter().zip(zones) {
                if !shared.iter().any(|shared| shared.path == target.path) {
                    let table = self.table(target, zones, end_of(plans, &target.path))?;
                    let path = target.path.clone();
                    shared.push(Shared { path, zones: *zones, table, groups: Vec::new(), limit: None });
                }
            }
        }
        let mut first_worker = 0;
        let mut sets = Vec::with_capacity(plans.len());
        for plan in plans {
            sets.push(plan.zoned.as_ref().map(|zoned| set_of(plan, zoned, &mut shared, first_worker)));
            first_worker += plan.load.threads;
        }
        shared.into_iter().try_for_each(|shared| shared.begin(first_worker))?;
        plans.iter().zip(&sets).try_for_each(|(plan, set)| check_readable(plans, plan, set.as_ref()))?;
        Ok(sets.into_iter().map(|set| set.map(Arc::new)).collect())
    }

    fn table(
        &mut self,
        target: &TargetPlan,
        zones: &ZonedTarget,
        end_bytes: u64,
    ) -> Result<Arc<ZoneTable>, Error> {
        let zone_bytes = zones.zone_size_bytes;
        if zones.model != ZoneModel::Emulated {
            let device = (self.open)(&target.path)?;
            let reports = report_all(&*device)?;
            return Ok(Arc::new(ZoneTable::new(zone_bytes, &reports, Some(device))));
        }
        let fits = |known: &&(String, ZonedTarget, Arc<ZoneTable>)| {
            known.0 == target.path
                && (known.1.zone_size_bytes, known.1.capacity_bytes) == (zone_bytes, zones.capacity_bytes)
                && known.2.len() as u64 >= end_bytes.div_ceil(zone_bytes)
        };
        if let Some((_, _, table)) = self.emulated.iter().find(fits) {
            return Ok(Arc::clone(table));
        }
        let reports = emulated(zone_bytes, zones.capacity_bytes, end_bytes);
        let table = Arc::new(ZoneTable::new(zone_bytes, &reports, None));
        self.emulated.retain(|(path, ..)| *path != target.path);
        self.emulated.push((target.path.clone(), *zones, Arc::clone(&table)));
        Ok(table)
    }
}

/// Where the last range on a target ends.
fn end_of(plans: &[&MediaPlan], path: &str) -> u64 {
    let targets = plans.iter().flat_map(|plan| &plan.targets).filter(|target| target.path == path);
    targets.map(|target| target.offset_bytes + target.size_bytes).max().unwrap_or(0)
}

/// Empty zones up to `end_bytes`, the last one as short as that leaves it.
pub(super) fn emulated(zone_bytes: u64, capacity_bytes: u64, end_bytes: u64) -> Vec<ZoneReport> {
    let zone = |number: u64| {
        let start_bytes = number * zone_bytes;
        let length_bytes = zone_bytes.min(end_bytes - start_bytes);
        ZoneReport {
            start_bytes,
            length_bytes,
            capacity_bytes: capacity_bytes.min(length_bytes),
            write_pointer_bytes: start_bytes,
            kind: Kind::Sequential,
            condition: Condition::Empty,
        }
    };
    (0..end_bytes.div_ceil(zone_bytes)).map(zone).collect()
}

/// The parts of each worker, and the groups that they are of.
fn set_of(plan: &MediaPlan, zoned: &ZonedPlan, shared: &mut [Shared], first_worker: u32) -> ZoneSet {
    let threads = u64::from(plan.load.workers());
    let is_divided = plan.share == Share::Partition;
    let total: u64 = zoned.targets.iter().map(|zones| zones.zones).sum();
    let mut workers = vec![Vec::new(); plan.load.threads as usize];
    let mut before = 0;
    for (number, (target, zones)) in plan.targets.iter().zip(&zoned.targets).enumerate() {
        let Some(shared) = shared.iter_mut().find(|shared| shared.path == target.path) else { continue };
        let base = target.offset_bytes / zones.zone_size_bytes;
        if plan.mix.write_percent > 0 && zones.write_zones_max > 0 {
            shared.limit =
                Some(shared.limit.map_or(zones.write_zones_max, |limit| limit.min(zones.write_zones_max)));
        }
        for (worker, grounds) in workers.iter_mut().enumerate() {
            let cut = |part: u64| (u128::from(total) * u128::from(part) / u128::from(threads)) as u64;
            let part = u64::from(plan.load.worker(worker as u32));
            let (from, to) = match is_divided {
                true => (cut(part), cut(part + 1)),
                false => (0, total),
            };
            let (from, to) = (from.max(before), to.min(before + zones.zones));
            if from >= to {
                continue;
            }
            let (first, end) = ((base + from - before) as usize, (base + to - before) as usize);
            if plan.mix.write_percent > 0 && (is_divided || worker == 0) {
                shared.groups.push(group(zoned, (first, end), zones.zone_size_bytes));
            }
            let group = shared.groups.len().saturating_sub(1);
            let table = Arc::clone(&shared.table);
            grounds.push(Ground { table, target: number as u16, first, end, group });
        }
        before += zones.zones;
    }
    ZoneSet { workers, first_worker }
}

fn group(zoned: &ZonedPlan, (first, end): (usize, usize), zone_bytes: u64) -> Group {
    let early = zoned.reset_every_writes.map(|every_writes| EarlyResets {
        threshold_bytes: ((end - first) as f64 * zone_bytes as f64 * zoned.reset_threshold) as u64,
        every_writes,
        left: every_writes,
    });
    Group { first, end, quota: u32::MAX, open: 0, written_bytes: 0, early }
}

impl Shared {
    /// Deals out the zones that may be open, and begins.
    fn begin(mut self, workers: u32) -> Result<(), Error> {
        let Some(limit) = self.limit else {
            self.table.begin(self.groups, None, workers);
            return Ok(());
        };
        let overlaps = |groups: &[Group], one: &Group| {
            groups.iter().any(|other| one.first < other.end && other.first < one.end)
        };
        let open: Vec<u32> = (0..self.groups.len())
            .map(|at| match &self.groups[at] {
                one if overlaps(&self.groups[..at], one) => 0,
                one => self.table.open_zones(one.first, one.end),
            })
            .collect();
        let elsewhere = match self.zones.active_zones_max {
            0 => 0,
            _ => self.table.open_zones(0, self.table.len()) - open.iter().sum::<u32>(),
        };
        let Some(quotas) = quotas(limit.saturating_sub(elsewhere), &open) else {
            let error = Error::usage("zones", "the limit of open zones is too low for all writers");
            return Err(error
                .with("path", &self.path)
                .with("open_zones_max", limit)
                .with("open_in_range", open.iter().sum::<u32>())
                .with("open_elsewhere", elsewhere)
                .with("ranges_written", self.groups.len())
                .remedy("reset or finish open zones (blkzone), use fewer threads or concurrent phases, or --share whole"));
        };
        self.groups.iter_mut().zip(quotas).for_each(|(group, quota)| group.quota = quota);
        self.table.begin(self.groups, Some(limit - elsewhere), workers);
        Ok(())
    }
}

/// A phase that only reads, below write pointers, must find something.
fn check_readable(plans: &[&MediaPlan], plan: &MediaPlan, set: Option<&ZoneSet>) -> Result<(), Error> {
    let Some((set, zoned)) = set.zip(plan.zoned.as_ref()) else { return Ok(()) };
    let is_read = plan.mix.read_percent == 100 && !zoned.reads_beyond_write_pointer;
    let is_written = plans
        .iter()
        .any(|other| other.mix.write_percent > 0 && crate::overlap(&other.targets, &plan.targets).is_some());
    let mut grounds = set.workers.iter().flatten();
    if !is_read || is_written || grounds.any(|ground| ground.table.has_data(ground.first, ground.end)) {
        return Ok(());
    }
    Err(Error::usage("zones", "no zone of the range holds data below its write pointer")
        .with("phase", &plan.name)
        .remedy("write the zones first, or read beyond write pointers: --zones zbd,read-beyond-wp (fio: read_beyond_wp=1)"))
}

/// Whether zones of this phase's devices may be reset: those that hold data are, once they are full.
///
/// # Errors
/// [`ErrorKind::Unsafe`] without `destroy_data` where a zone of the range holds data; what a report says.
pub fn check_consent(plan: &MediaPlan, destroy_data: bool) -> Result<(), Error> {
    let changes = plan.mix.write_percent > 0 || plan.mix.discard_percent > 0;
    let Some(zoned) = plan.zoned.as_ref().filter(|_| changes && !destroy_data) else { return Ok(()) };
    let devices = plan.targets.iter().zip(&zoned.targets);
    for (target, _) in devices.filter(|(_, zones)| zones.model != ZoneModel::Emulated) {
        let end = target.offset_bytes + target.size_bytes;
        let zones = report_all(&BlockZones::open(&target.path)?)?;
        let filled = filled(&zones, target.offset_bytes, end);
        if filled > 0 {
            return Err(Error::new(ErrorKind::Unsafe, "safety", "zones of the range contain data")
                .with("path", &target.path)
                .with("zones_with_data", filled)
                .remedy("give --destroy-data to reset them"));
        }
    }
    Ok(())
}

/// Sequential zones with data between two bytes.
pub(super) fn filled(zones: &[ZoneReport], begin: u64, end: u64) -> usize {
    let has_data = |zone: &&ZoneReport| {
        zone.kind == Kind::Sequential
            && (begin..end).contains(&zone.start_bytes)
            && zone.write_pointer_bytes > zone.start_bytes
    };
    zones.iter().filter(has_data).count()
}
