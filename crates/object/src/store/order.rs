//! One order for all copies and cells of a value.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use parking_lot::{Mutex, MutexGuard};
use workload::random::mix64;

use crate::model::ObjectId;

/// Turns. Dkeys share them by their hash.
const TURNS: usize = 256;
/// How often a reader looks again before it waits for the writers.
const LOOKS_MAX: usize = 3;

#[derive(Debug, Default)]
struct Turn {
    lock: Mutex<()>,
    /// Odd while somebody changes something.
    changes: AtomicU64,
}

/// The shards of a dkey are changed by one at a time, so that none has another update last than the others, and no two compute the parity
/// of one stripe. Readers of several shards see all of a change or nothing of it. Shared by all who change a pool.
#[derive(Debug)]
pub(crate) struct Order(Box<[Turn]>);

/// Somebody's turn.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    changes: &'a AtomicU64,
    _lock: MutexGuard<'a, ()>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.changes.fetch_add(1, Ordering::Release);
    }
}

impl Turn {
    fn take(&self) -> Held<'_> {
        let lock = self.lock.lock();
        self.changes.fetch_add(1, Ordering::AcqRel);
        Held { changes: &self.changes, _lock: lock }
    }
}

impl Order {
    pub(crate) fn new() -> Self {
        Self((0..TURNS).map(|_| Turn::default()).collect())
    }

    fn turn(&self, object: ObjectId, dkey: &[u8]) -> &Turn {
        let hash = dkey.iter().fold(mix64(object.lo ^ object.hi), |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        &self.0[(mix64(hash) % TURNS as u64) as usize]
    }

    /// The turn to change a dkey.
    pub(crate) fn of(&self, object: ObjectId, dkey: &[u8]) -> Held<'_> {
        self.turn(object, dkey).take()
    }

    /// The turns of all dkeys: for what changes an object as a whole, and for a moment at which nothing is half changed.
    pub(crate) fn all(&self) -> Vec<Held<'_>> {
        self.0.iter().map(Turn::take).collect()
    }

    /// Reads several shards of a dkey as they are together at one moment: again where they were changed meanwhile, and at last while nobody
    /// may change them.
    pub(crate) fn together<R>(&self, object: ObjectId, dkey: &[u8], mut read: impl FnMut() -> R) -> R {
        let turn = self.turn(object, dkey);
        for _ in 0..LOOKS_MAX {
            let before = turn.changes.load(Ordering::Acquire);
            if before % 2 == 1 {
                break;
            }
            let result = read();
            fence(Ordering::Acquire);
            if turn.changes.load(Ordering::Relaxed) == before {
                return result;
            }
        }
        let _still = turn.lock.lock();
        read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_all_of_a_change_or_nothing() {
        let order = Order::new();
        let object = ObjectId { lo: 1, hi: 2 };
        let halves = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for value in 1..20_000 {
                    let _turn = order.of(object, b"d");
                    halves[0].store(value, Ordering::Release);
                    std::hint::spin_loop();
                    halves[1].store(value, Ordering::Release);
                }
            });
            while !writer.is_finished() {
                let read = || [0, 1].map(|half: usize| halves[half].load(Ordering::Acquire));
                let [one, other] = order.together(object, b"d", read);
                assert_eq!(one, other);
            }
        });
        drop(order.all());
        assert!(order.0.iter().all(|turn| turn.changes.load(Ordering::Relaxed).is_multiple_of(2)));
    }
}
