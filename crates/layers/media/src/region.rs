//! A worker's part of the targets: all ranges one after the other, cut into places.

use crate::course::{Course, CoursePlan, Extent, Fitted, Ground};
use crate::plan::MediaPlan;
use driver::Error;
use units::ParseError;
use workload::access::Access;
use workload::random::derive_seed;
use workload::spec::Share;

/// Whether every worker of a plan gets a region that its pattern fits and that verification has room in: for plans to
/// be refused before anything is touched.
///
/// # Errors
/// Bad usage: what does not fit.
pub fn check_plan(plan: &MediaPlan) -> Result<(), Error> {
    let regions =
        (0..plan.load.threads).map(|worker| Region::new(plan, worker)).collect::<Result<Vec<_>, _>>()?;
    let places = regions.iter().map(Region::places).min().unwrap_or(0);
    if let Some(course) = &plan.course {
        regions.iter().try_for_each(|region| region.course(plan, course, 0).map(drop)).map_err(usage)?;
    }
    Access::new(&plan.pattern, places, 0).map_err(usage)?;
    check_verification(plan, places)
}

pub(crate) fn usage(error: ParseError) -> Error {
    Error::usage("plan", error.to_string())
}

/// Verification never has two operations on one block in flight, so it needs a block for each.
pub(crate) fn check_verification(plan: &MediaPlan, places: u64) -> Result<(), Error> {
    let waits = plan.serialize_overlap || plan.verify_grain_bytes.is_some();
    if plan.verify_interval_bytes.is_some() && !waits && places < u64::from(plan.load.depth) {
        let message = "verification requires at least as many blocks per worker as the depth";
        return Err(Error::usage("plan", message)
            .with("blocks", places)
            .remedy("use a larger --size or a smaller --depth"));
    }
    Ok(())
}

/// One target within the joined range.
struct Stretch {
    /// Number of its first place.
    first: u64,
    /// Byte offset of that place in the target.
    offset_bytes: u64,
    /// Its places.
    places: u64,
    /// Length of its range in bytes.
    size_bytes: u64,
}

/// The places of one worker. A place is where an operation may begin; places are numbered over all targets.
pub(crate) struct Region {
    stretches: Vec<Stretch>,
    unit_bytes: u64,
    first: u64,
    end: u64,
}

impl Region {
    /// The region of worker `worker` of this host.
    ///
    /// # Errors
    /// When there are fewer places than workers to share them, those of other hosts among them.
    pub(crate) fn new(plan: &MediaPlan, worker: u32) -> Result<Self, Error> {
        let unit_bytes = plan.align_bytes;
        let mut stretches = Vec::with_capacity(plan.targets.len());
        let mut total = 0u64;
        for target in &plan.targets {
            // The largest block must fit behind the last place.
            let places = (target.size_bytes - plan.block_size_bytes_max) / unit_bytes + 1;
            stretches.push(Stretch {
                first: total,
                offset_bytes: target.offset_bytes,
                places,
                size_bytes: target.size_bytes,
            });
            total += places;
        }
        let (worker, threads) = (u128::from(plan.load.worker(worker)), u128::from(plan.load.workers()));
        let cut = |part: u128| (u128::from(total) * part / threads) as u64;
        let is_private =
            plan.targets.iter().all(|target| target.kind == workload::target::TargetKind::Memory);
        let (first, end) = match plan.share {
            Share::Partition if !is_private => (cut(worker), cut(worker + 1)),
            _ => (0, total),
        };
        if first == end {
            return Err(Error::usage("plan", "the range has fewer blocks than there are threads")
                .with("blocks", total)
                .with("threads", threads));
        }
        Ok(Self { stretches, unit_bytes, first, end })
    }

    /// Number of places.
    pub(crate) fn places(&self) -> u64 {
        self.end - self.first
    }

    /// Number of the first place, over all targets and workers.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The part of each target that is this worker's.
    fn extents(&self) -> Vec<Extent> {
        let part = |(target, stretch): (usize, &Stretch)| {
            let end = stretch.first + stretch.places;
            let (first, last) = (self.first.max(stretch.first), self.end.min(end));
            let bytes = |place: u64| (place - stretch.first) * self.unit_bytes;
            // What is left behind the last place is its worker's.
            let end_bytes = if last == end { stretch.size_bytes } else { bytes(last.max(stretch.first)) };
            (first < last).then(|| Extent {
                target: target as u16,
                offset_bytes: stretch.offset_bytes + bytes(first),
                size_bytes: end_bytes - bytes(first),
            })
        };
        self.stretches.iter().enumerate().filter_map(part).collect()
    }

    /// The walk of this worker over its part of each target.
    ///
    /// # Errors
    /// As [`Course::new`].
    pub(crate) fn course(
        &self,
        plan: &MediaPlan,
        course: &CoursePlan,
        seed: u64,
    ) -> Result<Course, ParseError> {
        let extents = self.extents();
        let sizes = plan.block_size.parse()?;
        let align_bytes = (plan.align_bytes != plan.block_size_bytes_max).then_some(plan.align_bytes);
        let ground = Ground::new(&extents, &sizes, &plan.pattern, align_bytes);
        let once = plan.load.limit == workload::plan::LimitPlan::default();
        Course::new(course, &ground, once, derive_seed(seed, &[3]))
    }

    /// The walk of this worker with blocks of several sizes that fit between each other.
    pub(crate) fn fitted(&self, plan: &MediaPlan, unit_bytes: u64, seed: u64) -> Fitted {
        let once = plan.load.limit == workload::plan::LimitPlan::default();
        Fitted::new(&self.extents(), unit_bytes, once, seed)
    }

    /// Target and byte offset of a place.
    #[inline]
    pub(crate) fn locate(&self, place: u64) -> (u16, u64) {
        let target = match &self.stretches[..] {
            [_] => 0,
            all => all.partition_point(|stretch| stretch.first <= place) - 1,
        };
        let stretch = &self.stretches[target];
        (target as u16, stretch.offset_bytes + (place - stretch.first) * self.unit_bytes)
    }
}

/// Walks a region byte by byte with blocks of varying size: no gaps, no overlaps, no block across two targets.
pub(crate) struct SizedCursor {
    place: u64,
    within_bytes: u64,
    granularity_bytes: u64,
    once: bool,
}

impl SizedCursor {
    pub(crate) fn new(region: &Region, granularity_bytes: u64, once: bool) -> Self {
        Self { place: region.first, within_bytes: 0, granularity_bytes, once }
    }

    /// Target, offset and length of the next block, cut where the target's part ends; `None` after the only pass.
    pub(crate) fn next(&mut self, region: &Region, size_bytes: u64) -> Option<(u16, u64, u32)> {
        loop {
            if self.place >= region.end {
                if self.once {
                    return None;
                }
                (self.place, self.within_bytes) = (region.first, 0);
            }
            let (target, offset) = region.locate(self.place);
            let stretch = &region.stretches[usize::from(target)];
            let last = region.end.min(stretch.first + stretch.places);
            let to_end = if last == stretch.first + stretch.places {
                stretch.size_bytes - (self.place - stretch.first) * region.unit_bytes
            } else {
                (last - self.place) * region.unit_bytes
            };
            let left = (to_end - self.within_bytes) / self.granularity_bytes * self.granularity_bytes;
            if left == 0 {
                (self.place, self.within_bytes) = (last, 0);
                continue;
            }
            let length = size_bytes.min(left);
            let position = (target, offset + self.within_bytes, length as u32);
            self.within_bytes += length;
            return Some(position);
        }
    }
}

#[cfg(test)]
mod tests;
