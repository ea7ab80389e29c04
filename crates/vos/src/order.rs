//! One order for all copies and cells of a value.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use parking_lot::{Mutex, MutexGuard};
use units::random::mix64;

use super::error::StoreError;
use super::transaction::Transaction;
use crate::model::{Epoch, ObjectId};

/// Turns. Dkeys share them by their hash.
const TURNS: usize = 256;
/// How often a reader looks again before it waits for the writers.
const LOOKS_MAX: usize = 3;

#[derive(Debug, Default)]
struct Turn {
    lock: Mutex<()>,
    /// Odd while somebody changes something.
    changes: AtomicU64,
    /// The epoch behind the latest that there was when a change was begun that has not ended; 0: there is none. It stays where a change
    /// could be neither made nor taken back.
    begun: AtomicU64,
}

/// The shards of a dkey are changed by one at a time, so that none has another update last than the others, and no two compute the parity
/// of one stripe. Readers of several shards see all of a change or nothing of it. Shared by all who change a pool.
#[derive(Debug)]
pub struct Order {
    turns: Box<[Turn]>,
    /// Epochs of the pool.
    epochs: Arc<AtomicU64>,
}

/// Somebody's turn.
#[derive(Debug)]
pub struct Held<'a> {
    turn: &'a Turn,
    epochs: &'a AtomicU64,
    _lock: MutexGuard<'a, ()>,
}

impl Held<'_> {
    /// Begins a change of `parts` parts: until it ends, no part of it counts as whole.
    ///
    /// # Errors
    /// [`StoreError::Broken`]: one before could be neither made nor taken back.
    pub(super) fn begin(&self, parts: usize) -> Result<Transaction, StoreError> {
        if !self.has_ended() {
            return Err(StoreError::Broken);
        }
        // Seen before its epochs are: who counts finds it under way, or counts less than its number.
        self.turn.begun.store(self.epochs.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
        Ok(Transaction::new(self.epochs.fetch_add(1, Ordering::SeqCst) + 1, parts))
    }

    /// Whether the last change was made, or taken back.
    pub(super) fn has_ended(&self) -> bool {
        self.turn.begun.load(Ordering::Relaxed) == 0
    }

    /// It is made, or taken back.
    pub(super) fn end(&self) {
        self.turn.begun.store(0, Ordering::SeqCst);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.turn.changes.fetch_add(1, Ordering::Release);
    }
}

impl Turn {
    fn take<'a>(&'a self, epochs: &'a AtomicU64) -> Held<'a> {
        let lock = self.lock.lock();
        self.changes.fetch_add(1, Ordering::AcqRel);
        Held { turn: self, epochs, _lock: lock }
    }
}

impl Order {
    pub(super) fn new(epochs: Arc<AtomicU64>) -> Self {
        Self { turns: (0..TURNS).map(|_| Turn::default()).collect(), epochs }
    }

    fn turn(&self, object: ObjectId, dkey: &[u8]) -> &Turn {
        &self.turns[Self::number(object, dkey)]
    }

    fn number(object: ObjectId, dkey: &[u8]) -> usize {
        let hash = dkey.iter().fold(mix64(object.lo ^ object.hi), |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (mix64(hash) % TURNS as u64) as usize
    }

    /// The turn to change a dkey.
    pub fn of(&self, object: ObjectId, dkey: &[u8]) -> Held<'_> {
        self.turn(object, dkey).take(&self.epochs)
    }

    /// The turns to change several dkeys, each once, in the one order in which all take them.
    pub(super) fn several<'a>(&self, dkeys: impl Iterator<Item = (ObjectId, &'a [u8])>) -> Vec<Held<'_>> {
        let mut numbers: Vec<usize> = dkeys.map(|(object, dkey)| Self::number(object, dkey)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| self.turns[number].take(&self.epochs)).collect()
    }

    /// The turns of all dkeys: for what changes an object as a whole, and for a moment at which nothing is half changed.
    pub fn all(&self) -> Vec<Held<'_>> {
        self.turns.iter().map(|turn| turn.take(&self.epochs)).collect()
    }

    /// An epoch such that all changes with a number up to it have ended.
    pub(super) fn ended(&self) -> Epoch {
        let now = self.epochs.load(Ordering::SeqCst);
        let begun = self.turns.iter().map(|turn| turn.begun.load(Ordering::SeqCst));
        begun.filter(|begun| *begun != 0).map(|begun| begun - 1).min().map_or(now, |least| least.min(now))
    }

    /// Reads several shards of a dkey as they are together at one moment: again where they were changed meanwhile, and at last while nobody
    /// may change them.
    pub fn together<R>(&self, object: ObjectId, dkey: &[u8], mut read: impl FnMut() -> R) -> R {
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
    fn what_is_under_way_has_not_ended() {
        let order = Order::new(Arc::default());
        let object = ObjectId { lo: 1, hi: 2 };
        let dkeys: [&[u8]; 2] = [b"one", b"other"];
        let [one, other] = dkeys.map(|dkey| order.of(object, dkey));
        let early = one.begin(2).expect("begun");
        assert_eq!((order.ended(), early.parts()), (0, 2));
        let late = other.begin(1).expect("begun");
        assert!(order.ended() < early.number() && early.number() < late.number());
        one.end();
        assert!(order.ended() >= early.number() && order.ended() < late.number());
        // Neither made nor taken back.
        drop(other);
        assert!(order.ended() < late.number());
        assert_eq!(order.of(object, dkeys[1]).begin(1), Err(StoreError::Broken));
        assert!(one.begin(1).is_ok(), "others go on");
    }

    #[test]
    fn readers_see_all_of_a_change_or_nothing() {
        let order = Order::new(Arc::default());
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
        assert!(order.turns.iter().all(|turn| turn.changes.load(Ordering::Relaxed).is_multiple_of(2)));
    }
}
