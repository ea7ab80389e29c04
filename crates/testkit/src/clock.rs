//! Time that moves when everybody waits for it.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use driver::Clock;

/// Time of a new clock, in nanoseconds. Not 0, so that a forgotten start does not look right.
const START_NS: u64 = 1_000_000_000;

thread_local! {
    /// Seats that this thread holds, at any clock.
    static SEATS: Cell<u32> = const { Cell::new(0) };
}

/// Who takes part in a clock's time.
#[derive(Default)]
struct Player {
    seats: u32,
    /// The time that it waits for; none while it works.
    waits_for_ns: Option<u64>,
}

#[derive(Default)]
struct Table {
    players: HashMap<ThreadId, Player>,
    /// Readings by threads without a seat, such as the one that collects from the workers.
    observations: u64,
}

struct State {
    now_ns: AtomicU64,
    table: Mutex<Table>,
    moved: Condvar,
    observed: Condvar,
}

/// A clock that stands still while any thread with a [`Seat`] works, and jumps to the earliest time that one of them waits for once
/// all of them wait (a conservative simulation: Chandy and Misra 1979). Clones share their time.
#[derive(Clone)]
pub struct VirtualClock {
    state: Arc<State>,
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl VirtualClock {
    /// A clock at its start.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: Arc::new(State {
                now_ns: AtomicU64::new(START_NS),
                table: Mutex::default(),
                moved: Condvar::new(),
                observed: Condvar::new(),
            }),
        }
    }

    /// Nanoseconds since the clock was made.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        self.time() - START_NS
    }

    /// Makes the calling thread one that time waits for, until the seat is dropped.
    #[must_use]
    pub fn seat(&self) -> Seat {
        let thread = std::thread::current().id();
        self.table().players.entry(thread).or_default().seats += 1;
        SEATS.with(|seats| seats.set(seats.get() + 1));
        Seat { clock: self.clone(), thread }
    }

    /// Returns when the time is `at_ns`. A thread without a seat takes one for as long as it waits.
    pub fn wait_until(&self, at_ns: u64) {
        let _seat = self.seat();
        let thread = std::thread::current().id();
        let mut table = self.table();
        while self.time() < at_ns {
            table.players.entry(thread).or_default().waits_for_ns = Some(at_ns);
            self.advance(&table);
            if self.time() < at_ns {
                table = self.state.moved.wait(table).unwrap_or_else(PoisonError::into_inner);
            }
        }
        table.players.entry(thread).or_default().waits_for_ns = None;
    }

    fn time(&self) -> u64 {
        self.state.now_ns.load(Ordering::Acquire)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.state.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Jumps to the earliest time that is waited for when nobody works.
    fn advance(&self, table: &Table) {
        let earliest = table.players.values().map(|player| player.waits_for_ns).min().flatten();
        if let Some(earliest) = earliest.filter(|&at_ns| at_ns > self.time()) {
            self.state.now_ns.store(earliest, Ordering::Release);
            self.state.moved.notify_all();
        }
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        if SEATS.with(Cell::get) == 0 {
            self.table().observations += 1;
            self.state.observed.notify_all();
        }
        self.time()
    }

    fn sleep_ns(&self, ns: u64) {
        self.wait_until(self.time() + ns);
    }

    fn spin_until(&self, at_ns: u64) {
        self.wait_until(at_ns);
    }

    /// Waits until a thread without a seat has read the time: a collector does after each of its rounds.
    fn await_collector(&self) -> bool {
        let mut table = self.table();
        let before = table.observations;
        while table.observations == before {
            table = self.state.observed.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}

/// A thread's part in a [`VirtualClock`]: time stands still until the thread waits or gives the seat up.
pub struct Seat {
    clock: VirtualClock,
    thread: ThreadId,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.clock.table();
        if let Some(player) = table.players.get_mut(&self.thread) {
            player.seats -= 1;
            if player.seats == 0 {
                table.players.remove(&self.thread);
            }
        }
        // The others may have waited for this thread alone.
        self.clock.advance(&table);
        SEATS.with(|seats| seats.set(seats.get().saturating_sub(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_to_what_a_lone_thread_waits_for() {
        let clock = VirtualClock::new();
        clock.sleep_ns(5_000_000_000);
        assert_eq!(clock.elapsed_ns(), 5_000_000_000);
        clock.spin_until(clock.now_ns() + 7);
        assert_eq!(clock.elapsed_ns(), 5_000_000_007);
        clock.wait_until(1);
        assert_eq!(clock.elapsed_ns(), 5_000_000_007, "time never runs backwards");
    }

    #[test]
    fn stands_still_until_everybody_waits() {
        let clock = VirtualClock::new();
        let step = |count: u64, step_ns: u64| {
            let clock = clock.clone();
            let seat = clock.seat();
            (clock, seat, count, step_ns)
        };
        let run = |(clock, _seat, count, step_ns): (VirtualClock, Seat, u64, u64)| {
            (1..=count).all(|turn| {
                clock.sleep_ns(step_ns);
                clock.elapsed_ns() == turn * step_ns
            })
        };
        let ready = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let threads = [(1000, 3), (500, 7)].map(|(count, step_ns)| {
                let (ready, step, run) = (&ready, &step, &run);
                scope.spawn(move || {
                    let part = step(count, step_ns);
                    ready.wait();
                    run(part)
                })
            });
            assert!(threads.into_iter().all(|thread| thread.join().is_ok_and(|exact| exact)));
        });
        assert_eq!(clock.elapsed_ns(), 3500);
    }
}
