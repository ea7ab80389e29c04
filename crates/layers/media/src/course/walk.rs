//! The walk of one worker.

use units::ParseError;

use super::{CoursePlan, Visit, Zones};
use workload::access::{Access, Pattern};
use workload::block_size::BlockSizes;
use workload::class_sizes::ClassSizes;
use workload::random::{Random, derive_seed};

/// No operation was there yet.
const NOWHERE: u64 = u64::MAX;
/// Draws of a random position before one that fits is taken instead.
const DRAWS_MAX: u32 = 64;

/// A part of a target that one worker goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of the target.
    pub target: u16,
    /// Where in the target it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub size_bytes: u64,
}

/// Where one operation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Number of the target.
    pub target: u16,
    /// Where in the target.
    pub offset_bytes: u64,
    /// Bytes to move.
    pub length_bytes: u32,
}

/// The operations of one class, or of all of them.
#[derive(Clone, Debug)]
struct Lane {
    sizes: BlockSizes,
    granularity_bytes: u64,
    /// Places of random operations, for each extent; none of sequential ones.
    places: Option<Box<[Access]>>,
    align_bytes: u64,
    /// For each extent: the byte after the last operation, and the byte where it began.
    next_bytes: Box<[u64]>,
    last_bytes: Box<[u64]>,
    /// Operations that the run still has.
    run_left: u64,
}

/// Which extent is worked on.
#[derive(Clone, Debug)]
struct Turn {
    visit: Visit,
    at: usize,
    left: u64,
}

impl Turn {
    #[inline]
    fn next(&mut self, extents: usize, random: &mut Random) -> usize {
        let count = match self.visit {
            Visit::Sequential => return self.at,
            Visit::RoundRobin(count) | Visit::Random(count) => count,
        };
        if self.left == 0 {
            self.left = count;
            self.at = match self.visit {
                Visit::Random(_) => random.below(extents as u64) as usize,
                _ => (self.at + 1) % extents,
            };
        }
        self.left -= 1;
        self.at
    }
}

/// The positions of one worker, one after the other.
#[derive(Clone, Debug)]
pub struct Course {
    plan: CoursePlan,
    extents: Box<[Extent]>,
    lanes: Box<[Lane]>,
    turn: Turn,
    random: Random,
    /// For each extent: where its zone begins.
    zone_begins: Box<[u64]>,
    zone_moved_bytes: u64,
    left_bytes: u64,
}

/// The extents of a worker, and what its operations are.
pub struct Ground<'a> {
    pub(super) extents: &'a [Extent],
    pub(super) sizes: &'a ClassSizes,
    pub(super) pattern: &'a Pattern,
    pub(super) align_bytes: Option<u64>,
}

impl Course {
    /// The walk over `extents`. Random positions are multiples of `align_bytes`, or of the largest block of their class. With
    /// `once` it ends when as many bytes were moved as the extents have.
    ///
    /// # Errors
    /// Refuses an extent that is smaller than a block or than the gap, and what [`Access::new`] refuses.
    pub fn new(plan: &CoursePlan, ground: &Ground<'_>, once: bool, seed: u64) -> Result<Self, ParseError> {
        let (extents, sizes) = (ground.extents, ground.sizes);
        let smallest = extents.iter().map(|extent| extent.size_bytes).min().unwrap_or(0);
        if smallest < sizes.max().max(plan.gap_bytes.unsigned_abs()) {
            return Err(ParseError::new(
                "a range",
                format!("{smallest} bytes"),
                "at least one block, and the gap, for each target and worker",
            ));
        }
        let total = extents.iter().map(|extent| extent.size_bytes).sum();
        let classes = if plan.own_positions || sizes.common().is_none() { 3 } else { 1 };
        let lane = |class: usize| Lane::new(plan, ground, class, derive_seed(seed, &[2, class as u64]));
        // Random operations have no end of a target to move on at.
        let visit = match plan.visit {
            Visit::Sequential if ground.pattern.is_random() => Visit::RoundRobin(1),
            visit => visit,
        };
        let at = if visit == Visit::Sequential { 0 } else { extents.len() - 1 };
        Ok(Self {
            plan: plan.clone(),
            extents: extents.into(),
            lanes: (0..classes).map(lane).collect::<Result<_, _>>()?,
            turn: Turn { visit, at, left: 0 },
            random: Random::new(derive_seed(seed, &[1])),
            zone_begins: vec![0; extents.len()].into(),
            zone_moved_bytes: 0,
            left_bytes: if once { total } else { u64::MAX },
        })
    }

    /// The next position of an operation of this class (0 read, 1 write, 2 discard); none after the only pass.
    #[inline]
    pub fn next(&mut self, class: usize) -> Option<Position> {
        if self.left_bytes == 0 {
            return None;
        }
        let lane = if self.lanes.len() == 1 { 0 } else { class };
        let size_bytes = self.lanes[lane].sizes.next(&mut self.random);
        let mut at = self.turn.next(self.extents.len(), &mut self.random);
        let (begin, end) = self.window(at);
        let start = if self.lanes[lane].places.is_some() {
            self.random_start(lane, class, at, begin, end, size_bytes)
        } else {
            match self.sequential_start(lane, at, begin, end) {
                Some(start) => start,
                None => {
                    at = self.wrap(lane, at);
                    let (begin, end) = self.window(at);
                    self.wrapped_start(lane, begin, end)
                }
            }
        };
        Some(self.take(lane, at, start, size_bytes))
    }

    /// Begin and end of what is worked on of an extent: all of it, or a zone.
    #[inline]
    fn window(&mut self, at: usize) -> (u64, u64) {
        let size = self.extents[at].size_bytes;
        let Some(Zones { size_bytes, range_bytes, skip_bytes }) = self.plan.zones else { return (0, size) };
        if self.zone_moved_bytes >= size_bytes {
            self.zone_moved_bytes = 0;
            let next = self.zone_begins[at].saturating_add(range_bytes).saturating_add(skip_bytes);
            let fits = self.lanes.iter().all(|lane| next.saturating_add(lane.sizes.max()) <= size);
            self.zone_begins[at] = if fits { next } else { 0 };
            for lane in &mut self.lanes {
                (lane.next_bytes[at], lane.last_bytes[at]) = (self.zone_begins[at], NOWHERE);
            }
        }
        let begin = self.zone_begins[at];
        (begin, begin.saturating_add(range_bytes).min(size))
    }

    /// After the last operation, with the gap between; none where that is past the end.
    #[inline]
    fn sequential_start(&self, lane: usize, at: usize, begin: u64, end: u64) -> Option<u64> {
        let lane = &self.lanes[lane];
        if lane.last_bytes[at] == NOWHERE {
            return Some(begin);
        }
        let start = lane.next_bytes[at].checked_add_signed(self.plan.gap_bytes)?;
        (start >= begin && start < end && end - start >= lane.granularity_bytes).then_some(start)
    }

    /// Where it goes on at the end of an extent: at its other end, or in the next one.
    fn wrap(&mut self, lane: usize, at: usize) -> usize {
        if self.turn.visit != Visit::Sequential || self.extents.len() == 1 || self.plan.zones.is_some() {
            return at;
        }
        self.lanes[lane].last_bytes[at] = NOWHERE;
        self.turn.at = (at + 1) % self.extents.len();
        self.lanes[lane].last_bytes[self.turn.at] = NOWHERE;
        self.turn.at
    }

    fn wrapped_start(&self, lane: usize, begin: u64, end: u64) -> u64 {
        let forward = self.plan.gap_bytes.saturating_add_unsigned(self.lanes[lane].granularity_bytes) > 0;
        if forward { begin } else { end.saturating_add_signed(self.plan.gap_bytes) }
    }

    #[inline]
    fn random_start(
        &mut self,
        lane: usize,
        class: usize,
        at: usize,
        begin: u64,
        end: u64,
        size_bytes: u64,
    ) -> u64 {
        let percent = u64::from(self.plan.random_percent.0[class]);
        let lane = &mut self.lanes[lane];
        let follows = if lane.run_left > 0 {
            lane.run_left -= 1;
            true
        } else {
            percent < 100 && self.random.below(100) >= percent
        };
        if follows {
            let (last, next) = (lane.last_bytes[at], lane.next_bytes[at]);
            let start = match last {
                NOWHERE => begin,
                _ if self.plan.run.identical => last,
                _ => next,
            };
            if start >= begin && start.saturating_add(size_bytes) <= end {
                return start;
            }
        }
        lane.run_left = self.plan.run.operations - 1;
        let Some(places) = &mut lane.places else { return begin };
        for _ in 0..DRAWS_MAX {
            let start = begin + places[at].next().block * lane.align_bytes;
            if start.saturating_add(size_bytes) <= end {
                return start;
            }
        }
        begin
    }

    /// Notes the operation; it is cut where the extent ends.
    #[inline]
    fn take(&mut self, lane: usize, at: usize, start: u64, size_bytes: u64) -> Position {
        let extent = self.extents[at];
        let lane = &mut self.lanes[lane];
        let left = (extent.size_bytes - start) / lane.granularity_bytes * lane.granularity_bytes;
        let length_bytes = size_bytes.min(left.max(lane.granularity_bytes));
        (lane.last_bytes[at], lane.next_bytes[at]) = (start, start + length_bytes);
        self.zone_moved_bytes += length_bytes;
        if self.left_bytes != u64::MAX {
            self.left_bytes = self.left_bytes.saturating_sub(length_bytes);
        }
        Position {
            target: extent.target,
            offset_bytes: extent.offset_bytes + start,
            length_bytes: length_bytes as u32,
        }
    }
}

impl<'a> Ground<'a> {
    /// Extents, block sizes and the order of positions; `align_bytes` where it is not the largest block of each class.
    #[must_use]
    pub fn new(
        extents: &'a [Extent],
        sizes: &'a ClassSizes,
        pattern: &'a Pattern,
        align_bytes: Option<u64>,
    ) -> Self {
        Self { extents, sizes, pattern, align_bytes }
    }
}

impl Lane {
    fn new(plan: &CoursePlan, ground: &Ground<'_>, class: usize, seed: u64) -> Result<Self, ParseError> {
        let sizes = ground.sizes.of(class).clone();
        let align_bytes = ground.align_bytes.unwrap_or_else(|| sizes.max());
        let places = |(number, extent): (usize, &Extent)| {
            let window =
                plan.zones.map_or(extent.size_bytes, |zones| zones.range_bytes.min(extent.size_bytes));
            let places = window.saturating_sub(sizes.max()) / align_bytes + 1;
            Access::new(ground.pattern, places, derive_seed(seed, &[number as u64]))
        };
        let is_random = ground.pattern.is_random();
        let made = || ground.extents.iter().enumerate().map(places).collect::<Result<Box<[_]>, _>>();
        let count = ground.extents.len();
        Ok(Self {
            granularity_bytes: sizes.granularity(),
            places: if is_random { Some(made()?) } else { None },
            align_bytes,
            next_bytes: vec![0; count].into(),
            last_bytes: vec![NOWHERE; count].into(),
            run_left: if plan.run.operations > 1 { plan.run.operations } else { 0 },
            sizes,
        })
    }
}
