//! The side of rank 0: the other ranks, met and connected, until the run has ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind, Secret};
use fleet::{ConnectRequest, Fleet, HostAddress};

use super::channel::{Channel, LEADS, LEAVES, Offer, Way, told_address};
use super::{HAS_MET, Launched};

/// Address and secret of ranks.
type Offers = BTreeMap<u32, (HostAddress, Secret)>;

/// How often rank 0 looks for those that have not come.
const LOOK: Duration = Duration::from_millis(20);
/// Longest pause between two attempts to reach those that are not reached.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Longest wait for one connection.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How long ranks that are told to end may take.
const END_WAIT: Duration = Duration::from_secs(2);
/// How long the word that there is no run may take.
const LEAVE_WAIT: Duration = Duration::from_secs(10);
/// Ranks that are named in one line.
const NAMED_MAX: usize = 8;

/// The other ranks. Connections to them stay open as long as this lives: a rank that loses its own ends. When it is dropped they are told to end.
pub(crate) struct Crew {
    fleets: Vec<Fleet>,
    ranks: Offers,
}

impl Crew {
    /// Meets the other ranks and connects all of them.
    ///
    /// # Errors
    /// Ranks that do not come, by name; a launcher that gives no way to tell a secret.
    pub(crate) fn meet(launched: &Launched) -> Result<Self, Error> {
        let way = Way::of(launched)?;
        HAS_MET.store(true, Ordering::Relaxed);
        let until = Instant::now() + launched.wait;
        match way {
            Way::Known { secret } => {
                let mut known = BTreeMap::new();
                for rank in 1..launched.size {
                    let address = told_address(rank)?.ok_or_else(|| super::bad("no rank addresses"))?;
                    known.insert(rank, (address, secret.clone()));
                }
                Meeting::new(launched, until).connect(&mut |_| Ok(known.clone()))
            }
            Way::Channel(mut channel) => {
                let met = channel.say(LEADS, until).and_then(|()| {
                    Meeting::new(launched, until)
                        .connect(&mut |missing| offers(&mut *channel, missing, until))
                });
                channel.end();
                met
            }
        }
    }

    /// Address and secret of the ranks from 1 on that are below `count`.
    pub(crate) fn ranks(&self, count: u32) -> impl Iterator<Item = (u32, &HostAddress, &Secret)> {
        self.ranks.range(1..count.max(1)).map(|(rank, (address, secret))| (*rank, address, secret))
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for fleet in &self.fleets {
            // One that is gone is told in the record, where it mattered.
            drop(fleet.quit());
        }
        let until = Instant::now() + END_WAIT;
        let lives = |fleet: &Fleet| fleet.describe().iter().any(Result::is_ok);
        // A launcher kills the others when this process fails, and they shall have ended by themselves before.
        while self.fleets.iter().any(lives) && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }
}

/// Offers that the ranks which are missing have made so far.
fn offers(channel: &mut dyn Channel, missing: &[u32], until: Instant) -> Result<Offers, Error> {
    let mut found = BTreeMap::new();
    for rank in missing {
        if let Some(text) = channel.heard(*rank, until)? {
            found.insert(*rank, Offer::read(&text).map_err(|error| error.with("rank", rank))?);
        }
    }
    Ok(found)
}

/// Ranks as they come.
struct Meeting {
    size: u32,
    wait: Duration,
    until: Instant,
    crew: Crew,
    /// Why a rank that has come is not reached.
    failures: HashMap<u32, String>,
}

impl Meeting {
    fn new(launched: &Launched, until: Instant) -> Self {
        let crew = Crew { fleets: Vec::new(), ranks: BTreeMap::new() };
        Self { size: launched.size, wait: launched.wait, until, crew, failures: HashMap::new() }
    }

    /// Connects all of them: `known` gives those of the missing that can be tried.
    fn connect(mut self, known: &mut dyn FnMut(&[u32]) -> Result<Offers, Error>) -> Result<Crew, Error> {
        let mut pause = LOOK;
        loop {
            let missing: Vec<u32> =
                (1..self.size).filter(|rank| !self.crew.ranks.contains_key(rank)).collect();
            if missing.is_empty() {
                return Ok(self.crew);
            }
            let found = known(&missing)?;
            if Instant::now() > self.until {
                return Err(self.absent(&missing));
            }
            // All at once, where they come by and by: each attempt has a thread for its connections.
            let is_worth_it = found.len() == missing.len() || pause >= PAUSE_MAX;
            if is_worth_it && !found.is_empty() {
                self.reach(found)?;
            }
            std::thread::sleep(pause.min(self.until.saturating_duration_since(Instant::now()) + LOOK));
            pause = (pause * 5 / 4).min(PAUSE_MAX);
        }
    }

    fn reach(&mut self, found: Offers) -> Result<(), Error> {
        let found: Vec<(u32, (HostAddress, Secret))> =
            found.into_iter().filter(|(rank, _)| !self.crew.ranks.contains_key(rank)).collect();
        let left = self.until.saturating_duration_since(Instant::now());
        let request = ConnectRequest {
            hosts: found.iter().map(|(_, (address, _))| address.clone()).collect(),
            secret: None,
            tls: false,
            timeout: CONNECT_WAIT.min(left + LOOK),
        };
        let secrets = found.iter().enumerate().map(|(at, (_, (_, secret)))| (at, secret.clone())).collect();
        let fleet = Fleet::connect_with(request, &secrets, None)?;
        let failed: HashMap<usize, String> =
            fleet.failures().map(|(at, error)| (at, error.to_string())).collect();
        let is_of_use = failed.len() < found.len();
        for (at, (rank, offer)) in found.into_iter().enumerate() {
            match failed.get(&at) {
                Some(why) => drop(self.failures.insert(rank, why.clone())),
                None => drop(self.crew.ranks.insert(rank, offer)),
            }
        }
        if is_of_use {
            self.crew.fleets.push(fleet);
        }
        Ok(())
    }

    fn absent(&self, missing: &[u32]) -> Error {
        let one = |rank: &u32| match self.failures.get(rank) {
            Some(why) => format!("{rank} ({why})"),
            None => rank.to_string(),
        };
        let mut named: Vec<String> = missing.iter().take(NAMED_MAX).map(one).collect();
        if missing.len() > NAMED_MAX {
            named.push(format!("and {} more", missing.len() - NAMED_MAX));
        }
        let what = if missing.len() == 1 { "rank" } else { "ranks" };
        let message =
            format!("{what} {} of {} did not connect within {:?}", named.join(", "), self.size, self.wait);
        Error::new(ErrorKind::Run, "launcher", message)
            .remedy("have all ranks run the same command; STRATA_LAUNCH_TIMEOUT=SECONDS waits longer")
    }
}

/// Tells the other ranks that there is no run to take part in.
pub(super) fn leave(launched: &Launched) {
    // Without a way they find out by themselves that nobody calls.
    if let Ok(Way::Channel(mut channel)) = Way::of(launched) {
        let until = Instant::now() + LEAVE_WAIT.min(launched.wait);
        let _ = channel.say(LEAVES, until);
        channel.end();
    }
}
