//! Who writes the zones of a device: the workers of a phase that share a range, or one worker with a range of its own.

/// Zones that a group writes, and how many of them it may keep open. Open zones are dealt out beforehand, so that no group waits for
/// another one to fill its own.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Its first zone.
    pub(crate) first: usize,
    /// The zone behind its last one.
    pub(crate) end: usize,
    /// Zones that it may keep open; `u32::MAX`: no limit.
    pub(crate) quota: u32,
    /// Zones that it keeps open.
    pub(crate) open: u32,
    /// Bytes between begin and write pointer of its sequential zones.
    pub(crate) written_bytes: u64,
    /// When zones are reset before they are full.
    pub(crate) early: Option<EarlyResets>,
}

/// Resets of zones that are not full, for as long as much of a range is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyResets {
    /// From so many written bytes on.
    pub(crate) threshold_bytes: u64,
    /// One write of so many resets its zone first.
    pub(crate) every_writes: u64,
    /// Writes until the next one.
    pub(crate) left: u64,
}

impl Group {
    /// Whether the zone is one of its own.
    pub(crate) fn holds(&self, zone: usize) -> bool {
        (self.first..self.end).contains(&zone)
    }

    /// Counts a write; whether its zone is to be reset first.
    pub(crate) fn is_early_reset_due(&mut self) -> bool {
        let Some(early) = &mut self.early else { return false };
        if self.written_bytes < early.threshold_bytes {
            return false;
        }
        early.left -= 1;
        if early.left > 0 {
            return false;
        }
        early.left = early.every_writes;
        true
    }
}

/// Deals out `limit` open zones to groups that keep `open` of them open already; none where one of them would get nothing.
pub(crate) fn quotas(limit: u32, open: &[u32]) -> Option<Vec<u32>> {
    let mut quotas = open.to_vec();
    let mut left = limit.checked_sub(open.iter().sum())?;
    while left > 0 {
        let Some(poorest) = quotas.iter_mut().min() else { break };
        *poorest += 1;
        left -= 1;
    }
    quotas.iter().all(|quota| *quota > 0).then_some(quotas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_zones_are_dealt_out_to_the_poorest_first() {
        assert_eq!(quotas(8, &[0, 0]), Some(vec![4, 4]));
        assert_eq!(quotas(7, &[4, 0, 0]), Some(vec![4, 2, 1]));
        assert_eq!(quotas(2, &[0, 0]), Some(vec![1, 1]));
        assert_eq!(quotas(1, &[0, 0]), None, "one of them could never write");
        assert_eq!(quotas(4, &[4, 0]), None);
        assert_eq!(quotas(3, &[4]), None, "more are open than may be");
        assert_eq!(quotas(4, &[4]), Some(vec![4]));
    }

    #[test]
    fn early_resets_come_once_in_so_many_writes_beyond_the_threshold() {
        let early = Some(EarlyResets { threshold_bytes: 100, every_writes: 3, left: 3 });
        let mut group = Group { first: 0, end: 4, quota: 1, open: 0, written_bytes: 99, early };
        assert!((0..10).all(|_| !group.is_early_reset_due()));
        group.written_bytes = 100;
        let due: Vec<bool> = (0..6).map(|_| group.is_early_reset_due()).collect();
        assert_eq!(due, [false, false, true, false, false, true]);
    }
}
