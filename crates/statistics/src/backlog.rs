//! Backlog of an open loop: operations that were due and are not done.

/// Fewest intervals from which growth is told: three in each third.
const INTERVALS_MIN: usize = 9;
/// Growth, as a share of what was due meanwhile, that does not matter: as much as may be missing of what was asked for.
const GROWTH_SHARE_MAX: f64 = 0.005;

/// An open loop at the end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacklogPoint {
    /// When, nanoseconds from the start of the phase.
    pub at_ns: u64,
    /// Operations that were due by then.
    pub due_operations: u64,
    /// Operations that were done by then, failed ones among them.
    pub done_operations: u64,
}

impl BacklogPoint {
    /// Operations that wait or are in flight; below 0 where operations of a warm-up that is not counted were done since.
    fn waiting(&self) -> f64 {
        self.due_operations as f64 - self.done_operations as f64
    }
}

/// How what waits in an open loop went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backlog {
    /// Operations a second by which it grew from the second third of the time to the last.
    pub growth_per_second: f64,
    /// Whether it grows on and on: the target does not keep up with the rate.
    pub grows: bool,
    /// Operations done a second, over all of the time.
    pub done_per_second: f64,
}

/// Whether what waits grows, from its course in order of time; none with fewer than 9 intervals.
///
/// It grows where the median of each third of the time lies above that of the third before it, all of the last third lies above the
/// median of the second, and the difference of these two is more than 0.5 % of what was due meanwhile. A wait that every operation has
/// (a latency) fills up in the first third and grows no more; what piles up behind a stall is worked off again.
#[must_use]
pub fn find_backlog(points: &[BacklogPoint]) -> Option<Backlog> {
    if points.len() < INTERVALS_MIN {
        return None;
    }
    let third = points.len() / 3;
    let thirds = [&points[..third], &points[third..points.len() - third], &points[points.len() - third..]];
    let [first, second, last] = thirds.map(|points| {
        let mut waiting: Vec<f64> = points.iter().map(BacklogPoint::waiting).collect();
        waiting.sort_by(f64::total_cmp);
        (waiting[0], waiting[waiting.len() / 2])
    });
    // From the middle of the second third to that of the last.
    let (from, to) = (&thirds[1][thirds[1].len() / 2], &thirds[2][third / 2]);
    let seconds = to.at_ns.saturating_sub(from.at_ns) as f64 / 1e9;
    let due = to.due_operations.saturating_sub(from.due_operations) as f64;
    let growth = last.1 - second.1;
    let is_ascending = second.1 > first.1 && last.0 > second.1;
    let end = &points[points.len() - 1];
    Some(Backlog {
        growth_per_second: if seconds > 0.0 { growth / seconds } else { 0.0 },
        grows: is_ascending && growth > GROWTH_SHARE_MAX * due,
        done_per_second: end.done_operations as f64 * 1e9 / end.at_ns.max(1) as f64,
    })
}
