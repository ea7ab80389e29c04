//! Lives of a pool: random changes, cuts at every moment, and after each cut the pool is opened and all promises are held against it.

use crate::Durability;

use super::disk::Dice;
use super::image::Image;
use super::promises::Promises;
use super::world::{LABEL, SINGLES, Scenario, World, part_of};
use crate::{Ack, ContainerProperties, Pool, StoreError};

/// Of so many events one is a cut.
const CUT_EVERY: u64 = 14;
/// Of so many cuts one is examined before it is opened.
const CHECK_EVERY: u64 = 4;
/// Changes of a life.
const STEPS: u64 = 90;
/// Of so many cuts one is where the life goes on.
const GO_ON_EVERY: u64 = 24;

/// Outcome of a life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lived {
    pub(super) cuts: u64,
    /// Of them, those in the middle of an opening after another cut.
    pub(super) nested: u64,
    pub(super) acknowledged: u64,
}

struct Life {
    dice: Dice,
    world: World,
    promises: Promises,
    number: u64,
    lived: Lived,
}

/// Tells what a life does, where somebody lives one again.
fn trace(what: std::fmt::Arguments<'_>) {
    if std::env::var_os("STRATA_CUT_LIFE").is_some() {
        eprintln!("{what}");
    }
}

/// Lives a life. A broken promise is a panic.
pub(super) fn live(seed: u64) -> Lived {
    let mut dice = Dice::new(seed);
    let scenario = Scenario::of(&mut dice);
    let mut life = Life {
        world: World::empty(scenario, seed, CUT_EVERY),
        dice,
        promises: Promises::default(),
        number: 0,
        lived: Lived::default(),
    };
    trace(format_args!("{scenario:?}"));
    life.world.create();
    life.after_change(|promises| promises.is_made = true);
    life.world.create_container();
    life.after_change(|promises| promises.has_container = true);
    for _ in 0..STEPS {
        life.step();
    }
    life.lived
}

impl Life {
    /// Looks at the cuts of a change, which is acknowledged only then.
    fn after_change(&mut self, acknowledge: impl FnOnce(&mut Promises)) {
        let cuts = self.world.disk.take_cuts();
        let mut next = None;
        for image in &cuts {
            let survivor = self.look_at(image, 0);
            if survivor.is_some() {
                next = survivor;
            }
        }
        acknowledge(&mut self.promises);
        let Some((world, promises)) = next else { return };
        // Everything after that cut never was.
        (self.world, self.promises) = (world, promises);
    }

    /// Opens what a cut left, and checks it. Sometimes the life goes on there.
    fn look_at(&mut self, image: &Image, depth: u32) -> Option<(World, Promises)> {
        self.lived.cuts += 1;
        trace(format_args!("cut at event {} (depth {depth})", image.event));
        self.lived.nested += u64::from(depth > 0);
        let seed = self.dice.below(u64::MAX);
        let (goes_on, is_cut_again) = (self.dice.one_in(GO_ON_EVERY), depth == 0 && self.dice.one_in(6));
        let every = if goes_on {
            CUT_EVERY
        } else if is_cut_again {
            5
        } else {
            0
        };
        let mut world = World::after(image, self.world.scenario, seed, every);
        let path = world.path();
        if self.promises.is_made && self.dice.one_in(CHECK_EVERY) {
            let report = Pool::check(&path).expect("examined");
            assert!(report.is_clean(), "a check finds damage after a cut: {:#?}", report.findings);
        }
        match Pool::open(&path, &world.scenario.open()) {
            Ok(pool) => world.pool = Some(pool),
            Err(error) if !self.promises.is_made => {
                // What was never finished can be made anew, and removed.
                let made = Pool::create(&path, &world.scenario.options());
                let made = made.unwrap_or_else(|again| panic!("cannot be made: {again}, after {error}"));
                drop(made);
                Pool::destroy(&path).expect("removed");
                assert!(!path.exists(), "something of it is left");
                return None;
            }
            Err(error) => panic!("a pool does not open after a cut: {error}"),
        }
        world.check(&self.promises);
        let nested = world.disk.take_cuts();
        for image in nested.iter().take(3) {
            self.look_at(image, depth + 1);
        }
        if !goes_on || !self.promises.has_container || depth > 0 {
            return None;
        }
        let mut promises = self.promises.clone();
        for key in world.keys() {
            promises.settle(key, world.read(key, None));
        }
        promises.others = world.pool().containers().into_iter().map(|facts| facts.label).collect();
        promises.others.remove(LABEL);
        promises.unsure.clear();
        if world.scenario.durability == Durability::None {
            // What was read is durable: it came from the disk. What its opening changed is not, before the next close.
            let _ = world.disk.take_cuts();
        }
        trace(format_args!("continues here"));
        Some((world, promises))
    }

    fn step(&mut self) {
        match self.dice.below(40) {
            0 => self.reopen(),
            1 | 2 => self.aggregate(),
            3 => self.snapshot(),
            4 => self.change_containers(),
            5 | 6 => {
                trace(format_args!("keep"));
                self.world.pool().targets().iter().for_each(|target| target.keep());
                self.after_change(|_| {});
            }
            7 | 8 => self.commit(),
            9..=11 => self.punch(),
            _ => self.update(),
        }
    }

    fn is_immediate(&self) -> bool {
        self.world.scenario.durability == Durability::Sync
    }

    fn update(&mut self) {
        let key = self.dice.below(u64::from(self.world.keys().end)) as u32;
        self.number += 1;
        let bytes = match self.dice.below(12) {
            0 => 20_000 + self.dice.below(20_000),
            1 | 2 => 4096 + self.dice.below(3) * 4000,
            _ => 8 + self.dice.below(600),
        };
        let is_deferred = self.dice.one_in(4);
        let ack = if is_deferred { Ack::Deferred } else { Ack::AsConfigured };
        self.promises.begin(key, Some(self.number));
        let written = self.world.write(key, self.number, bytes as usize, ack);
        trace(format_args!("update key {key} to {} ({bytes} bytes, {ack:?}): {written:?}", self.number));
        let is_acknowledged = written.is_ok() && !is_deferred && self.is_immediate();
        self.lived.acknowledged += u64::from(is_acknowledged);
        match written {
            Ok(_) => {}
            Err(StoreError::ScmFull | StoreError::NvmeFull) => {
                self.after_change(|promises| promises.refuse(key));
                return self.aggregate();
            }
            Err(error) => panic!("an update failed: {error}"),
        }
        self.after_change(|promises| {
            if is_acknowledged {
                promises.acknowledge(key);
            }
        });
    }

    fn punch(&mut self) {
        let key = self.dice.below(u64::from(self.world.keys().end)) as u32;
        let key = part_of(key).map_or(key, |part| part % SINGLES);
        self.promises.begin(key, None);
        let punched = self.world.punch(key);
        trace(format_args!("punch key {key}: {punched:?}"));
        let is_immediate = self.is_immediate();
        match punched {
            Ok(_) | Err(StoreError::NotFound) => {}
            Err(error) => panic!("a punch failed: {error}"),
        }
        let is_there = punched.is_ok();
        self.after_change(|promises| match (is_there, is_immediate) {
            (false, _) => promises.refuse(key),
            (true, true) => promises.acknowledge(key),
            (true, false) => {}
        });
    }

    /// Commits at times, as the thread of `batch` does and as one who deferred his updates.
    fn commit(&mut self) {
        trace(format_args!("commit"));
        for target in self.world.pool().targets() {
            target.commit().expect("committed");
        }
        let is_promised = self.world.scenario.durability != Durability::None;
        self.after_change(|promises| {
            if is_promised {
                promises.acknowledge_all();
            }
        });
    }

    fn aggregate(&mut self) {
        let is_full = self.dice.one_in(2);
        let container = self.world.container();
        trace(format_args!("aggregate, full: {is_full}"));
        for target in self.world.pool().targets() {
            match target.aggregate(container, None, is_full) {
                Ok(_) | Err(StoreError::ScmFull) => {}
                Err(error) => panic!("an aggregation failed: {error}"),
            }
        }
        self.after_change(|_| {});
    }

    fn snapshot(&mut self) {
        let container = self.world.container();
        if let Some(epoch) = self.promises.snapshots.keys().next().copied().filter(|_| self.dice.one_in(2)) {
            self.promises.snapshots.remove(&epoch);
            self.world.pool().destroy_snapshot(container, epoch).expect("destroyed");
            return self.after_change(|_| {});
        }
        let seen = self.promises.seen().filter(|_| self.is_immediate() && self.promises.snapshots.len() < 2);
        let Some(seen) = seen else { return };
        let epoch = self.world.pool().snapshot(container).expect("a snapshot");
        self.after_change(|promises| drop(promises.snapshots.insert(epoch, seen)));
    }

    fn change_containers(&mut self) {
        let label = format!("other.{}", self.dice.below(3));
        self.promises.unsure.insert(label.clone());
        let is_there = self.promises.others.contains(&label);
        let pool = self.world.pool();
        if is_there {
            pool.destroy_container(&label).expect("destroyed");
        } else {
            pool.create_container(&label, &ContainerProperties::default()).expect("a container");
        }
        self.after_change(|promises| {
            promises.unsure.remove(&label);
            if is_there {
                promises.others.remove(&label);
            } else {
                promises.others.insert(label);
            }
        });
    }

    /// In order: what was written is durable then, whatever the durability.
    fn reopen(&mut self) {
        trace(format_args!("close and open"));
        let pool = self.world.pool.take().expect("open");
        pool.close().expect("closed");
        self.after_change(Promises::acknowledge_all);
        if self.world.pool.is_none() {
            let pool = Pool::open(&self.world.path(), &self.world.scenario.open()).expect("opens again");
            self.world.pool = Some(pool);
            self.world.check(&self.promises);
            self.after_change(|_| {});
        }
    }
}
