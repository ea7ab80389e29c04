//! One worker's way over the zones of its targets.

use crate::plan::MediaPlan;
use crate::zoned::ZonedPlan;
use units::ParseError;
use workload::block_size::BlockSizes;
use workload::class_sizes::ClassSizes;
use workload::plan::LimitPlan;
use workload::random::{Random, derive_seed};
use workload::spec::Operation;

use super::set::{Ground, ZoneSet};
use super::state::{At, Turn, Writer};
use crate::{MediaClass, MediaOperation};

/// Draws of a zone before it is waited for one.
const DRAWS_MAX: u32 = 8;

/// Next step of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An operation; `is_extra`: one that no limit counts, because a zone needs it.
    Go { class: MediaClass, target: u16, offset: u64, length: u32, is_extra: bool },
    /// Something in flight, of this worker or of another one, must complete first.
    Wait,
    /// Nothing is left to do.
    End,
}

/// Where sequential operations of one class are.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// Number of the zone among those of the worker.
    zone: u64,
    /// Bytes from its begin on, of reads and in conventional zones.
    within: u64,
    /// Whether this pass has written to the zone.
    has_written: bool,
    /// Whether it has passed the last zone, in a load of one pass.
    is_over: bool,
}

/// Zones of one worker, all targets one after the other, and where it is.
pub(crate) struct ZonedWalk {
    grounds: Box<[Ground]>,
    total: u64,
    sizes: [BlockSizes; 3],
    random: Random,
    by: Writer,
    is_random: bool,
    /// Whether each class ends with the last zone.
    ends: bool,
    reads_beyond: bool,
    skip_zones: u64,
    left_bytes: u64,
    cursors: [Cursor; 3],
    /// A class and size that were drawn and wait.
    held: Option<(MediaClass, u64)>,
    has_written: bool,
    is_mixed: bool,
}

impl ZonedWalk {
    /// The walk of worker `worker` of a phase.
    ///
    /// # Errors
    /// As [`ClassSizes`] reads them.
    pub(crate) fn new(
        plan: &MediaPlan,
        zoned: &ZonedPlan,
        set: &ZoneSet,
        worker: u32,
    ) -> Result<Self, ParseError> {
        let sizes: ClassSizes = plan.block_size.parse()?;
        let grounds = set.grounds(worker);
        let is_random = plan.operation.is_random();
        let is_mixed = matches!(plan.operation, Operation::ReadWrite | Operation::RandRw);
        let once = plan.load.limit == LimitPlan::default();
        let capacity =
            grounds.iter().map(|ground| ground.table.capacity_bytes(ground.first, ground.end)).sum();
        let group = grounds.first().map_or(0, |ground| ground.group);
        let seed = derive_seed(plan.load.seed, &[u64::from(plan.load.worker_of_all(worker)), 4]);
        Ok(Self {
            grounds: grounds.into(),
            total: grounds.iter().map(|ground| (ground.end - ground.first) as u64).sum(),
            sizes: [0, 1, 2].map(|class| sizes.of(class).clone()),
            random: Random::new(seed),
            by: Writer {
                worker: set.number_of(worker),
                group,
                open_max: zoned.worker_write_zones_max,
                depth: zoned.zone_depth,
            },
            is_random,
            ends: once && !is_random && !is_mixed,
            reads_beyond: zoned.reads_beyond_write_pointer,
            skip_zones: zoned.skip_zones,
            // Discards end where no zone holds data.
            left_bytes: if once && plan.mix.discard_percent == 0 { capacity } else { u64::MAX },
            cursors: [Cursor::default(); 3],
            held: None,
            has_written: false,
            is_mixed,
        })
    }

    /// The next operation; `class` is drawn where none is held.
    #[inline]
    pub(crate) fn next(&mut self, class: impl FnOnce() -> MediaClass) -> Step {
        if self.left_bytes == 0 || self.total == 0 {
            return Step::End;
        }
        let (class, size) = match self.held.take() {
            Some(held) => held,
            None => {
                let class = class();
                (class, self.sizes[lane(class)].next(&mut self.random))
            }
        };
        let step = match class {
            MediaClass::Write => self.write(size),
            MediaClass::Discard => self.discard(),
            _ => self.read(size),
        };
        match step {
            Step::Go { is_extra: true, .. } | Step::Wait => self.held = Some((class, size)),
            Step::Go { length, class, .. } => {
                self.has_written |= class == MediaClass::Write;
                if self.left_bytes != u64::MAX {
                    self.left_bytes = self.left_bytes.saturating_sub(u64::from(length));
                }
            }
            Step::End => {}
        }
        step
    }

    /// An operation of this worker has ended, in full or not.
    #[inline]
    pub(crate) fn ended(&self, operation: &MediaOperation, is_whole: bool) {
        let Some(ground) = self.grounds.iter().find(|ground| ground.target == operation.target) else {
            return;
        };
        let zone = ground.table.zone_of(operation.offset);
        match operation.class {
            MediaClass::Read => ground.table.end_read(zone),
            MediaClass::Write if ground.table.is_sequential(zone) => ground.table.end_write(zone, is_whole),
            MediaClass::Discard | MediaClass::Reset => ground.table.end_reset(zone, is_whole),
            MediaClass::Finish => ground.table.end_finish(zone, is_whole),
            MediaClass::Write | MediaClass::Sync | MediaClass::Nop => {}
        }
    }

    /// The ground and the number in its table of one of the worker's zones.
    fn place(&self, mut zone: u64) -> (usize, usize) {
        for (number, ground) in self.grounds.iter().enumerate() {
            let count = (ground.end - ground.first) as u64;
            if zone < count {
                return (number, ground.first + zone as usize);
            }
            zone -= count;
        }
        (0, self.grounds[0].first)
    }

    fn by(&self, ground: usize) -> Writer {
        Writer { group: self.grounds[ground].group, ..self.by }
    }

    /// Goes on to the next zone.
    fn advance(&mut self, lane: usize) {
        let cursor = &mut self.cursors[lane];
        let zone = cursor.zone + 1 + self.skip_zones;
        let is_over = self.ends && zone >= self.total;
        *cursor = Cursor { zone: if zone < self.total { zone } else { 0 }, is_over, ..Cursor::default() };
    }

    fn write(&mut self, size: u64) -> Step {
        if self.is_random { self.random_write(size) } else { self.next_write(size) }
    }

    fn next_write(&mut self, size: u64) -> Step {
        const WRITES: usize = 1;
        let unit = self.sizes[WRITES].granularity();
        for _ in 0..=self.total {
            let cursor = self.cursors[WRITES];
            if cursor.is_over {
                return Step::End;
            }
            let (ground, zone) = self.place(cursor.zone);
            let table = std::sync::Arc::clone(&self.grounds[ground].table);
            let (start, end) = table.bounds(zone);
            if !table.is_sequential(zone) {
                let length = size.min((end - start).saturating_sub(cursor.within)) / unit * unit;
                if length == 0 {
                    self.advance(WRITES);
                    continue;
                }
                self.cursors[WRITES].within += length;
                return self.go(MediaClass::Write, ground, start + cursor.within, length);
            }
            let turn = table.write(zone, self.by(ground), (size, unit), !cursor.has_written);
            match turn {
                Turn::Write { offset, length } => {
                    self.cursors[WRITES].has_written = true;
                    if table.is_filled(zone) {
                        self.advance(WRITES);
                    }
                    return self.go(MediaClass::Write, ground, offset, length);
                }
                Turn::Limited => return self.write_open(ground, size),
                Turn::Full | Turn::Unusable => self.advance(WRITES),
                turn => return self.take(ground, turn),
            }
        }
        Step::End
    }

    fn random_write(&mut self, size: u64) -> Step {
        let unit = self.sizes[1].granularity();
        for _ in 0..DRAWS_MAX {
            let drawn = self.random.below(self.total);
            let (ground, zone) = self.place(drawn);
            let table = &self.grounds[ground].table;
            if !table.is_sequential(zone) {
                let (start, end) = table.bounds(zone);
                let length = size.min(end - start) / unit * unit;
                if length == 0 {
                    continue;
                }
                let places = (end - start - length) / unit + 1;
                let offset = start + self.random.below(places) * unit;
                return self.go(MediaClass::Write, ground, offset, length);
            }
            match table.write(zone, self.by(ground), (size, unit), true) {
                Turn::Limited => return self.write_open(ground, size),
                Turn::Busy => match self.write_open(ground, size) {
                    Step::Wait => {}
                    step => return step,
                },
                Turn::Full | Turn::Unusable => {}
                turn => return self.take(ground, turn),
            }
        }
        Step::Wait
    }

    /// A write to one of the zones that are open.
    fn write_open(&mut self, ground: usize, size: u64) -> Step {
        let draw = self.random.below(u64::from(u32::MAX));
        let Ground { first, end, ref table, .. } = self.grounds[ground];
        let sizes = (size, self.sizes[1].granularity());
        match table.write_open((first, end), self.by(ground), sizes, draw) {
            Some((_, turn)) => self.take(ground, turn),
            None => Step::Wait,
        }
    }

    /// The step that a turn stands for.
    fn take(&self, ground: usize, turn: Turn) -> Step {
        let target = self.grounds[ground].target;
        let extra = |class, offset| Step::Go { class, target, offset, length: 0, is_extra: true };
        match turn {
            Turn::Write { offset, length } => self.go(MediaClass::Write, ground, offset, length),
            Turn::Reset { offset } => extra(MediaClass::Reset, offset),
            Turn::Finish { offset } => extra(MediaClass::Finish, offset),
            Turn::Busy | Turn::Limited | Turn::Full | Turn::Unusable => Step::Wait,
        }
    }

    fn go(&self, class: MediaClass, ground: usize, offset: u64, length: u64) -> Step {
        let target = self.grounds[ground].target;
        Step::Go { class, target, offset, length: length as u32, is_extra: false }
    }

    /// A read; of a mix that has written nothing yet, and of zones without data, a write.
    fn read(&mut self, size: u64) -> Step {
        if self.is_mixed && !self.has_written && !self.reads_beyond {
            return self.write(size);
        }
        let step = if self.is_random { self.random_read(size) } else { self.next_read(size) };
        if self.is_mixed && step == Step::End { self.write(size) } else { step }
    }

    fn next_read(&mut self, size: u64) -> Step {
        const READS: usize = 0;
        let unit = self.sizes[READS].granularity();
        for _ in 0..=self.total {
            let cursor = self.cursors[READS];
            if cursor.is_over {
                return Step::End;
            }
            let (ground, zone) = self.place(cursor.zone);
            let table = &self.grounds[ground].table;
            let at = At::Byte(table.bounds(zone).0 + cursor.within);
            if let Some((offset, length)) = table.read(zone, at, (size, unit), self.reads_beyond) {
                self.cursors[READS].within += length;
                return self.go(MediaClass::Read, ground, offset, length);
            }
            self.advance(READS);
        }
        Step::End
    }

    fn random_read(&mut self, size: u64) -> Step {
        let unit = self.sizes[0].granularity();
        let drawn = self.random.below(self.total);
        let (ground, zone) = self.place(drawn);
        let draw = self.random.below(u64::MAX);
        let found = |at: usize, place: Option<(u64, u64)>| place.map(|(offset, length)| (at, offset, length));
        let table = &self.grounds[ground].table;
        let mut place = found(ground, table.read(zone, At::Drawn(draw), (size, unit), self.reads_beyond));
        let count = self.grounds.len();
        for step in 0..count {
            if place.is_some() {
                break;
            }
            let at = (ground + step) % count;
            let Ground { first, end, ref table, .. } = self.grounds[at];
            place = found(at, table.read_data((first, end), (size, unit), draw));
        }
        match place {
            Some((at, offset, length)) => self.go(MediaClass::Read, at, offset, length),
            None => Step::End,
        }
    }

    /// A discard is a reset of a zone with data.
    fn discard(&mut self) -> Step {
        if self.is_random { self.random_discard() } else { self.next_discard() }
    }

    fn next_discard(&mut self) -> Step {
        const DISCARDS: usize = 2;
        for _ in 0..=self.total {
            let cursor = self.cursors[DISCARDS];
            if cursor.is_over {
                return Step::End;
            }
            let (ground, zone) = self.place(cursor.zone);
            match self.grounds[ground].table.discard(zone) {
                Some(Turn::Reset { offset }) => {
                    self.advance(DISCARDS);
                    return self.discard_of(ground, offset);
                }
                Some(_) => return Step::Wait,
                None => self.advance(DISCARDS),
            }
        }
        Step::End
    }

    fn random_discard(&mut self) -> Step {
        let draw = self.random.below(u64::from(u32::MAX));
        let count = self.grounds.len();
        let mut waits = false;
        for step in 0..count {
            let at = (draw as usize + step) % count;
            let Ground { first, end, ref table, .. } = self.grounds[at];
            match table.discard_data((first, end), draw) {
                Some(Turn::Reset { offset }) => return self.discard_of(at, offset),
                Some(_) => waits = true,
                None => {}
            }
        }
        if waits { Step::Wait } else { Step::End }
    }

    fn discard_of(&self, ground: usize, offset: u64) -> Step {
        let table = &self.grounds[ground].table;
        let (start, end) = table.bounds(table.zone_of(offset));
        self.go(MediaClass::Discard, ground, offset, end - start)
    }
}

fn lane(class: MediaClass) -> usize {
    match class {
        MediaClass::Write => 1,
        MediaClass::Discard => 2,
        _ => 0,
    }
}
