//! Progress of a file set during a run, and the stonewall: how much each rank has made, so that later phases work on what is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use driver::{Clock as _, HostClock};

/// Items or blocks that each rank has made, once a phase of the run has made any.
#[derive(Debug)]
pub(crate) struct Made {
    is_known: AtomicBool,
    ranks: Vec<AtomicU64>,
}

impl Made {
    fn new(ranks: u32) -> Self {
        Self { is_known: AtomicBool::new(false), ranks: (0..ranks).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A phase that makes them begins: later ones work on what it makes.
    pub(crate) fn begin(&self) {
        self.ranks.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// So many of a rank are there.
    #[inline]
    pub(crate) fn reach(&self, rank: u32, count: u64) {
        self.ranks[rank as usize].fetch_max(count, Ordering::Relaxed);
    }

    /// How many of a rank there are, of `all`.
    pub(crate) fn of(&self, rank: u32, all: u64) -> u64 {
        if self.is_known.load(Ordering::Relaxed) {
            self.ranks[rank as usize].load(Ordering::Relaxed).min(all)
        } else {
            all
        }
    }

    /// How many of all ranks there are, of `all` each.
    pub(crate) fn sum(&self, all: u64) -> u64 {
        (0..self.ranks.len()).map(|rank| self.of(rank as u32, all)).sum()
    }
}

/// Progress of a file set.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Files.
    pub(crate) files: Made,
    /// Directories that are items.
    pub(crate) directories: Made,
    /// Blocks of files without a tree.
    pub(crate) blocks: Made,
    /// The tree was made by a phase of the run, or before one.
    pub(crate) has_tree: AtomicBool,
}

impl Progress {
    /// Nothing is known yet.
    pub(crate) fn new(ranks: u32) -> Arc<Self> {
        Arc::new(Self {
            files: Made::new(ranks),
            directories: Made::new(ranks),
            blocks: Made::new(ranks),
            has_tree: AtomicBool::new(false),
        })
    }
}

/// The stonewall with wear-out: after a time each worker goes on until it has done as much as the one that had done most by then.
#[derive(Debug)]
pub(crate) struct WearOut {
    after_ns: u64,
    /// When it stands; 0 before the first operation.
    at_ns: AtomicU64,
    most: AtomicU64,
    least: AtomicU64,
    sum: AtomicU64,
    arrived: AtomicU32,
    workers: u32,
}

impl WearOut {
    /// A stonewall `after_ns` after the first operation.
    pub(crate) fn new(after_ns: u64, workers: u32) -> Arc<Self> {
        Arc::new(Self {
            after_ns,
            at_ns: AtomicU64::new(0),
            most: AtomicU64::new(0),
            least: AtomicU64::new(u64::MAX),
            sum: AtomicU64::new(0),
            arrived: AtomicU32::new(0),
            workers,
        })
    }

    fn is_past(&self) -> bool {
        let now = HostClock::get().now_ns();
        let stands = now.saturating_add(self.after_ns);
        let at = match self.at_ns.compare_exchange(0, stands, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => stands,
            Err(at) => at,
        };
        now >= at
    }

    fn arrive(&self, done: u64) {
        self.most.fetch_max(done, Ordering::Relaxed);
        self.least.fetch_min(done, Ordering::Relaxed);
        self.sum.fetch_add(done, Ordering::Relaxed);
        self.arrived.fetch_add(1, Ordering::Release);
    }

    /// Items or blocks that were done when it stood: of the worker with most, of the one with least, and of all.
    pub(crate) fn seen(&self) -> Option<(u64, u64, u64)> {
        let arrived = self.arrived.load(Ordering::Acquire);
        (arrived > 0).then(|| {
            let [most, least, sum] =
                [&self.most, &self.least, &self.sum].map(|figure| figure.load(Ordering::Relaxed));
            (most, least, sum)
        })
    }

    /// The time after which it stands, in nanoseconds.
    pub(crate) fn after_ns(&self) -> u64 {
        self.after_ns
    }
}

/// Barriers of a phase: after all workers have opened their file, and after all have moved their data.
#[derive(Debug)]
pub(crate) struct Barriers {
    workers: u32,
    opened: AtomicU32,
    moved: AtomicU32,
}

impl Barriers {
    /// Of so many workers.
    pub(crate) fn new(workers: u32) -> Arc<Self> {
        Arc::new(Self { workers, opened: AtomicU32::new(0), moved: AtomicU32::new(0) })
    }
}

/// A worker at the barriers. One that fails is no longer waited for.
pub(crate) struct AtBarriers {
    barriers: Arc<Barriers>,
    has_opened: bool,
    has_moved: bool,
}

impl AtBarriers {
    /// A worker that has opened nothing.
    pub(crate) fn new(barriers: &Arc<Barriers>) -> Self {
        Self { barriers: Arc::clone(barriers), has_opened: false, has_moved: false }
    }

    /// The worker has opened its file; whether all have.
    pub(crate) fn all_opened(&mut self) -> bool {
        if !std::mem::replace(&mut self.has_opened, true) {
            self.barriers.opened.fetch_add(1, Ordering::AcqRel);
        }
        self.barriers.opened.load(Ordering::Acquire) >= self.barriers.workers
    }

    /// The worker has no data left to move; whether all have none.
    pub(crate) fn all_moved(&mut self) -> bool {
        self.all_opened();
        if !std::mem::replace(&mut self.has_moved, true) {
            self.barriers.moved.fetch_add(1, Ordering::AcqRel);
        }
        self.barriers.moved.load(Ordering::Acquire) >= self.barriers.workers
    }
}

impl Drop for AtBarriers {
    fn drop(&mut self) {
        self.all_moved();
    }
}

/// Step of a worker at a stonewall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wall {
    /// Goes on.
    Go,
    /// Waits for what the others have done.
    Wait,
    /// Has done as much as the one that had done most.
    End,
}

/// A worker before a stonewall. One that ends early, or fails, is no longer waited for.
pub(crate) struct AtWall {
    wall: Arc<WearOut>,
    has_arrived: bool,
}

impl AtWall {
    /// A worker that has done nothing.
    pub(crate) fn new(wall: &Arc<WearOut>) -> Self {
        Self { wall: Arc::clone(wall), has_arrived: false }
    }

    /// Whether the worker begins another item after `done`.
    pub(crate) fn step(&mut self, done: u64) -> Wall {
        if !self.has_arrived {
            if !self.wall.is_past() {
                return Wall::Go;
            }
            self.arrive(done);
        }
        if self.wall.arrived.load(Ordering::Acquire) < self.wall.workers {
            return Wall::Wait;
        }
        if done < self.wall.most.load(Ordering::Relaxed) { Wall::Go } else { Wall::End }
    }

    /// The worker has nothing left to do.
    pub(crate) fn arrive(&mut self, done: u64) {
        if !std::mem::replace(&mut self.has_arrived, true) {
            self.wall.arrive(done);
        }
    }
}

impl Drop for AtWall {
    fn drop(&mut self) {
        self.arrive(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_go_on_until_they_have_done_as_much_as_the_fastest() {
        let wall = WearOut::new(1, 3);
        let [mut fast, mut slow, mut dead] = [(); 3].map(|()| AtWall::new(&wall));
        assert_eq!(fast.step(0), Wall::Go);
        while fast.step(10) == Wall::Go {}
        assert_eq!(fast.step(10), Wall::Wait);
        assert_eq!(slow.step(7), Wall::Wait);
        dead.arrive(2);
        assert_eq!((slow.step(7), slow.step(9), slow.step(10)), (Wall::Go, Wall::Go, Wall::End));
        assert_eq!(fast.step(10), Wall::End);
        assert_eq!(wall.seen(), Some((10, 2, 19)));
    }

    #[test]
    fn workers_wait_for_each_other_at_barriers() {
        let barriers = Barriers::new(3);
        let [mut one, mut two, dead] = [(); 3].map(|()| AtBarriers::new(&barriers));
        assert!(!one.all_opened() && !two.all_opened() && !one.all_opened());
        drop(dead);
        assert!(one.all_opened() && !one.all_moved() && two.all_opened());
        assert!(two.all_moved() && one.all_moved());
    }

    #[test]
    fn a_phase_that_makes_less_leaves_less_to_work_on() {
        let made = Made::new(1);
        assert_eq!(made.of(0, 9), 9);
        for count in [7, 3] {
            made.begin();
            made.reach(0, count);
            assert_eq!(made.of(0, 9), count);
        }
    }

    #[test]
    fn a_worker_that_fails_is_not_waited_for() {
        let wall = WearOut::new(0, 2);
        let mut alive = AtWall::new(&wall);
        drop(AtWall::new(&wall));
        assert_eq!(alive.step(5), Wall::End);
    }
}
