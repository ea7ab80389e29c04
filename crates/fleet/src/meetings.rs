//! Meetings of the hosts of a run: each says some figures, and all get them merged once all have.

use std::collections::BTreeMap;

use driver::{Error, ErrorKind};

/// Figures that a host may say at once. A host says one for each worker at most.
pub const FIGURES_MAX: usize = 1 << 16;
/// Meetings that may be under way at the same time.
const MEETINGS_MAX: usize = 4096;
/// Longest name of a meeting, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// One figure of all hosts that said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The least of them.
    pub least: u64,
    /// The most.
    pub most: u64,
    /// All of them together, up to the largest number.
    pub sum: u64,
}

impl Figure {
    /// The figure that one host says.
    #[must_use]
    pub fn of(said: u64) -> Self {
        Self { least: said, most: said, sum: said }
    }

    fn add(&mut self, said: u64) {
        self.least = self.least.min(said);
        self.most = self.most.max(said);
        self.sum = self.sum.saturating_add(said);
    }
}

/// Outcome of a meeting: it is the same for all hosts, and as large for thousands of them as for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// Hosts that came; the others are gone.
    pub hosts: u32,
    /// Their figures, in the order in which each host said them.
    pub figures: Vec<Figure>,
}

impl Met {
    /// A meeting of one host.
    #[must_use]
    pub fn alone(said: &[u64]) -> Self {
        Self { hosts: 1, figures: said.iter().copied().map(Figure::of).collect() }
    }
}

/// A meeting to which not all have come.
#[derive(Debug)]
struct Open {
    came: Vec<bool>,
    /// Hosts that are neither away nor have come.
    missing: usize,
    met: Met,
}

/// All meetings of a run, as the one that leads it keeps them. A host that is away is not waited for.
#[derive(Debug)]
pub struct Meetings {
    away: Vec<bool>,
    /// Hosts that are not away.
    present: usize,
    open: BTreeMap<String, Open>,
}

impl Meetings {
    /// Of so many hosts, none of which is away.
    #[must_use]
    pub fn new(hosts: u32) -> Self {
        Self { away: vec![false; hosts as usize], present: hosts as usize, open: BTreeMap::new() }
    }

    /// A host says its figures. Once all have that are not away: what all of them get.
    ///
    /// # Errors
    /// A host that is none or came before, other figures than the others say, and more than any host may say.
    pub fn say(&mut self, rank: u32, meeting: &str, said: &[u64]) -> Result<Option<Met>, Error> {
        let refused = |message: &str| {
            Error::new(ErrorKind::Run, "meeting", message).with("host", rank).with("figures", said.len())
        };
        match self.away.get(rank as usize) {
            None => return Err(refused("no host has this number")),
            // It was given up, and what it says now belongs to nothing.
            Some(true) => return Ok(None),
            Some(false) => {}
        }
        let is_new = !self.open.contains_key(meeting);
        if said.len() > FIGURES_MAX || meeting.len() > NAME_BYTES_MAX {
            return Err(refused("a host sent more than allowed"));
        }
        if is_new && self.open.len() >= MEETINGS_MAX {
            return Err(refused("too many meetings are in progress"));
        }
        let (hosts, missing) = (self.away.len(), self.present);
        let open = self.open.entry(meeting.to_owned()).or_insert_with(|| Open {
            came: vec![false; hosts],
            missing,
            met: Met { hosts: 0, figures: Vec::new() },
        });
        if open.came[rank as usize] {
            return Err(refused("a host came twice"));
        }
        match open.met.hosts {
            0 => open.met.figures = said.iter().copied().map(Figure::of).collect(),
            _ if open.met.figures.len() != said.len() => {
                return Err(refused("the hosts sent different numbers of values"));
            }
            _ => open.met.figures.iter_mut().zip(said).for_each(|(figure, &said)| figure.add(said)),
        }
        open.came[rank as usize] = true;
        open.met.hosts += 1;
        open.missing -= 1;
        Ok(self.close(meeting))
    }

    /// A host has ended its part, or is gone, and comes to no meeting any more; what it said counts. Meetings that waited for it alone, by their names.
    pub fn leave(&mut self, rank: u32) -> Vec<(String, Met)> {
        let Some(away) = self.away.get_mut(rank as usize) else { return Vec::new() };
        if std::mem::replace(away, true) {
            return Vec::new();
        }
        self.present -= 1;
        for open in self.open.values_mut().filter(|open| !open.came[rank as usize]) {
            open.missing -= 1;
        }
        let names: Vec<String> = self.open.keys().cloned().collect();
        names.into_iter().filter_map(|name| self.close(&name).map(|met| (name, met))).collect()
    }

    /// Another stage begins, in which a host may come to meetings again. Those of the stage before are over.
    pub fn begin_stage(&mut self, takes_part: impl Fn(u32) -> bool) {
        self.open.clear();
        (0..).zip(&mut self.away).for_each(|(rank, away)| *away = !takes_part(rank));
        self.present = self.away.iter().filter(|&&away| !away).count();
    }

    fn close(&mut self, meeting: &str) -> Option<Met> {
        let is_whole = self.open.get(meeting)?.missing == 0;
        if is_whole { self.open.remove(meeting).map(|open| open.met) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_meet_once_all_have_come() {
        let mut meetings = Meetings::new(3);
        assert_eq!(meetings.say(0, "wall", &[5, 1]).expect("good"), None);
        assert_eq!(meetings.say(2, "other", &[1]).expect("good"), None);
        assert_eq!(meetings.say(2, "wall", &[9, 1]).expect("good"), None);
        let met = meetings.say(1, "wall", &[7, 1]).expect("good").expect("all have come");
        assert_eq!(met.hosts, 3);
        assert_eq!(
            met.figures,
            [Figure { least: 5, most: 9, sum: 21 }, Figure { least: 1, most: 1, sum: 3 }]
        );
        assert_eq!(meetings.say(0, "wall", &[1, 1]).expect("the name is free again"), None);
    }

    #[test]
    fn a_host_that_is_away_is_not_waited_for() {
        let mut meetings = Meetings::new(3);
        meetings.say(0, "a", &[4]).expect("good");
        meetings.say(1, "a", &[6]).expect("good");
        meetings.say(2, "b", &[8]).expect("good");
        let over = meetings.leave(2);
        assert_eq!(
            over,
            [("a".to_owned(), Met { hosts: 2, figures: vec![Figure { least: 4, most: 6, sum: 10 }] })]
        );
        assert_eq!(meetings.say(2, "c", &[1]).expect("it is too late"), None);
        meetings.say(0, "b", &[2]).expect("good");
        let met = meetings.say(1, "b", &[2]).expect("good").expect("whole");
        assert_eq!((met.hosts, met.figures[0].sum), (3, 12), "what it said before counts");
        assert!(meetings.leave(1).is_empty() && meetings.leave(7).is_empty());
        let alone = meetings.say(0, "d", &[3]).expect("good").expect("whole");
        assert_eq!(alone, Met::alone(&[3]));
        meetings.begin_stage(|rank| rank != 1);
        assert_eq!(meetings.say(0, "e", &[3]).expect("good"), None, "rank 2 is back");
        assert_eq!(meetings.say(2, "e", &[4]).expect("good").expect("whole").hosts, 2);
    }

    #[test]
    fn what_no_host_says_is_refused() {
        let mut meetings = Meetings::new(2);
        meetings.say(0, "a", &[1]).expect("good");
        for (rank, name, said, part) in [
            (0, "a".to_owned(), vec![1], "came twice"),
            (1, "a".to_owned(), vec![1, 2], "different numbers"),
            (2, "a".to_owned(), vec![1], "no host"),
            (1, "x".repeat(200), vec![1], "more than allowed"),
        ] {
            let error = meetings.say(rank, &name, &said).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
        for number in 0..MEETINGS_MAX - 1 {
            meetings.say(1, &format!("m{number}"), &[]).expect("good");
        }
        assert!(meetings.say(1, "one more", &[]).expect_err("many").to_string().contains("too many"));
        assert!(meetings.say(1, "a", &[1]).expect("it was under way").is_some());
    }

    proptest! {
        /// Whoever comes when, and whoever goes: each meeting ends once, with what the others said.
        #[test]
        fn each_meeting_ends_once(order in Just((0..6u32).collect::<Vec<_>>()).prop_shuffle(), goes in prop::collection::btree_set(0..6u32, 0..5), said in prop::collection::vec(0..1000u64, 6)) {
            let (mut meetings, mut ended) = (Meetings::new(6), Vec::new());
            for &rank in &order {
                if goes.contains(&rank) {
                    ended.extend(meetings.leave(rank).into_iter().map(|(_, met)| met));
                } else {
                    ended.extend(meetings.say(rank, "m", &[said[rank as usize]]).expect("good"));
                }
            }
            let stay: Vec<u64> = (0..6u32).filter(|rank| !goes.contains(rank)).map(|rank| said[rank as usize]).collect();
            prop_assert_eq!(ended.len(), 1);
            prop_assert_eq!(ended[0].hosts as usize, stay.len());
            prop_assert_eq!(ended[0].figures[0].sum, stay.iter().sum::<u64>());
            prop_assert_eq!(Some(&ended[0].figures[0].most), stay.iter().max());
        }
    }
}
