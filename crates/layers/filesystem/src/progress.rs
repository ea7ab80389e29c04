//! Progress of a file set during a run, and the stonewall: how much each rank has made, so that later phases work on what is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use driver::{Clock as _, Error, HostClock};
use layer::{Hosts, Meeting};

/// How many a rank has made, where no phase of the run has made any: all there are.
const UNKNOWN: u64 = u64::MAX;

/// Items or blocks that each rank has made, once a phase of the run has made any.
#[derive(Debug)]
pub(crate) struct Made {
    ranks: Vec<AtomicU64>,
}

impl Made {
    fn new(ranks: u32) -> Self {
        Self { ranks: (0..ranks).map(|_| AtomicU64::new(UNKNOWN)).collect() }
    }

    /// A phase that makes those of some ranks begins: later ones work on what it makes.
    pub(crate) fn begin(&self, ranks: impl IntoIterator<Item = u32>) {
        ranks.into_iter().for_each(|rank| self.ranks[rank as usize].store(0, Ordering::Relaxed));
    }

    /// So many of a rank are there.
    #[inline]
    pub(crate) fn reach(&self, rank: u32, count: u64) {
        self.ranks[rank as usize].fetch_max(count, Ordering::Relaxed);
    }

    /// How many of a rank there are, of `all`.
    pub(crate) fn of(&self, rank: u32, all: u64) -> u64 {
        self.ranks[rank as usize].load(Ordering::Relaxed).min(all)
    }

    /// How many of some ranks there are, of `all` each.
    pub(crate) fn sum(&self, ranks: impl IntoIterator<Item = u32>, all: u64) -> u64 {
        ranks.into_iter().map(|rank| self.of(rank, all)).fold(0, u64::saturating_add)
    }

    /// Learns from the other hosts how many the first `ranks` have made, which they work on, and tells them about those of this host, `here`. Nothing
    /// travels but a number where all have made `all_of` them.
    ///
    /// # Errors
    /// When the others cannot be reached.
    pub(crate) fn exchange(
        &self,
        (hosts, meeting): (&Hosts, &str),
        (ranks, here): (u32, &[u32]),
        all_of: impl Fn(u32) -> u64,
    ) -> Result<(), Error> {
        let missing = here.iter().filter(|rank| self.of(**rank, UNKNOWN) < all_of(**rank)).count();
        let met = hosts.link.meet(meeting, &[missing as u64])?;
        if met.figures.first().is_some_and(|figure| figure.sum == 0) {
            return Ok(());
        }
        let mut said = vec![0; ranks as usize];
        for rank in here {
            said[*rank as usize] = self.of(*rank, all_of(*rank));
        }
        let met = hosts.link.meet(&format!("{meeting}.counts"), &said)?;
        for (count, figure) in self.ranks.iter().zip(&met.figures) {
            count.store(figure.most, Ordering::Relaxed);
        }
        Ok(())
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
    /// Bytes of each of these blocks; 0 where no phase of the run has made any.
    block_bytes: AtomicU64,
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
            block_bytes: AtomicU64::new(0),
            has_tree: AtomicBool::new(false),
        })
    }

    /// Blocks are counted by this size, in bytes, from now on.
    pub(crate) fn count_blocks_of(&self, bytes: u64) {
        self.block_bytes.store(bytes, Ordering::Relaxed);
    }

    /// How many whole blocks of `bytes` there are of a rank, of `all`, whatever size they were made with.
    pub(crate) fn blocks_of(&self, rank: u32, bytes: u64, all: u64) -> u64 {
        let (made, made_bytes) = (self.blocks.of(rank, UNKNOWN), self.block_bytes.load(Ordering::Relaxed));
        if made == UNKNOWN || made_bytes == bytes || made_bytes == 0 {
            return made.min(all);
        }
        let whole = u128::from(made) * u128::from(made_bytes) / u128::from(bytes.max(1));
        whole.min(u128::from(all)) as u64
    }
}

/// The stonewall with wear-out: after a time each worker goes on until it has done as much as the one that had done most by then, of all hosts.
#[derive(Debug)]
pub(crate) struct WearOut {
    after_ns: u64,
    /// When it stands; 0 before the first operation.
    at_ns: AtomicU64,
    meeting: Meeting,
}

impl WearOut {
    /// A stonewall `after_ns` after the first operation, for so many workers of this host.
    ///
    /// # Errors
    /// When the others cannot be asked.
    pub(crate) fn new(
        after_ns: u64,
        workers: u32,
        (name, hosts): (&str, Option<&Hosts>),
    ) -> Result<Arc<Self>, Error> {
        let meeting = Meeting::new(&format!("{name}.stonewall"), workers, hosts)?;
        Ok(Arc::new(Self { after_ns, at_ns: AtomicU64::new(0), meeting }))
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

    /// Items or blocks that were done when it stood: of the worker of this host with most, of the one with least, and of all of them.
    pub(crate) fn seen(&self) -> Option<(u64, u64, u64)> {
        self.meeting.seen_here()
    }

    /// The time after which it stands, in nanoseconds.
    pub(crate) fn after_ns(&self) -> u64 {
        self.after_ns
    }
}

/// Barriers of a phase: after all workers of all hosts have opened their file, and after all have moved their data.
#[derive(Debug)]
pub(crate) struct Barriers {
    opened: Meeting,
    moved: Meeting,
}

impl Barriers {
    /// Of so many workers of this host.
    ///
    /// # Errors
    /// When the others cannot be asked.
    pub(crate) fn new(workers: u32, (name, hosts): (&str, Option<&Hosts>)) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self {
            opened: Meeting::new(&format!("{name}.opened"), workers, hosts)?,
            moved: Meeting::new(&format!("{name}.moved"), workers, hosts)?,
        }))
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
            self.barriers.opened.come(0);
        }
        self.barriers.opened.is_met()
    }

    /// The worker has no data left to move; whether all have none.
    pub(crate) fn all_moved(&mut self) -> bool {
        self.all_opened();
        if !std::mem::replace(&mut self.has_moved, true) {
            self.barriers.moved.come(0);
        }
        self.barriers.moved.is_met()
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
        if !self.wall.meeting.is_met() {
            return Wall::Wait;
        }
        if done < self.wall.meeting.most() { Wall::Go } else { Wall::End }
    }

    /// The worker has nothing left to do.
    pub(crate) fn arrive(&mut self, done: u64) {
        if !std::mem::replace(&mut self.has_arrived, true) {
            self.wall.meeting.come(done);
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
        let wall = WearOut::new(1, 3, ("t", None)).expect("alone");
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
        let barriers = Barriers::new(3, ("t", None)).expect("alone");
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
            made.begin([0]);
            made.reach(0, count);
            assert_eq!(made.of(0, 9), count);
        }
    }

    #[test]
    fn blocks_of_another_size_are_as_many_as_were_made_whole() {
        let progress = Progress::new(2);
        assert_eq!(progress.blocks_of(0, 4096, 99), 99);
        progress.count_blocks_of(65_536);
        progress.blocks.begin([0]);
        progress.blocks.reach(0, 3);
        assert_eq!(progress.blocks_of(0, 65_536, 99), 3);
        assert_eq!((progress.blocks_of(0, 4096, 99), progress.blocks_of(0, 4096, 20)), (48, 20));
        assert_eq!((progress.blocks_of(0, 47_008, 99), progress.blocks_of(1, 4096, 99)), (4, 99));
    }

    #[test]
    fn a_worker_that_fails_is_not_waited_for() {
        let wall = WearOut::new(0, 2, ("t", None)).expect("alone");
        let mut alive = AtWall::new(&wall);
        drop(AtWall::new(&wall));
        assert_eq!(alive.step(5), Wall::End);
    }
}
