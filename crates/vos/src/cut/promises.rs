//! Promises of a pool: for each key the value that was acknowledged, and those that were begun after it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Epoch;

/// A value: the number of its update; none where there is nothing.
pub(super) type Value = Option<u64>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Promise {
    acknowledged: Value,
    later: Vec<Value>,
}

/// All promises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Promises {
    keys: BTreeMap<u32, Promise>,
    /// Snapshots, and what each key was when they were made.
    pub(super) snapshots: BTreeMap<Epoch, BTreeMap<u32, Value>>,
    /// A pool was made.
    pub(super) is_made: bool,
    /// The container of the keys was made.
    pub(super) has_container: bool,
    /// Containers that were made and not destroyed, and those of which one or the other was begun.
    pub(super) others: BTreeSet<String>,
    pub(super) unsure: BTreeSet<String>,
}

impl Promises {
    /// A change of a key begins.
    pub(super) fn begin(&mut self, key: u32, value: Value) {
        self.keys.entry(key).or_default().later.push(value);
    }

    /// The change that was begun last was refused.
    pub(super) fn refuse(&mut self, key: u32) {
        self.keys.entry(key).or_default().later.pop();
    }

    /// All changes of a key are acknowledged.
    pub(super) fn acknowledge(&mut self, key: u32) {
        let own = self.keys.entry(key).or_default();
        if let Some(last) = own.later.pop() {
            (own.acknowledged, own.later) = (last, Vec::new());
        }
    }

    /// All changes of all keys are acknowledged.
    pub(super) fn acknowledge_all(&mut self) {
        let keys: Vec<u32> = self.keys.keys().copied().collect();
        keys.into_iter().for_each(|key| self.acknowledge(key));
    }

    /// Whether a key may have this value.
    pub(super) fn allows(&self, key: u32, value: Value) -> bool {
        self.keys
            .get(&key)
            .map_or(value.is_none(), |own| own.acknowledged == value || own.later.contains(&value))
    }

    /// Promises of a key, for messages.
    pub(super) fn of(&self, key: u32) -> String {
        format!("{:?}", self.keys.get(&key))
    }

    /// A cut left this value: it is what the next one must leave.
    pub(super) fn settle(&mut self, key: u32, value: Value) {
        self.keys.insert(key, Promise { acknowledged: value, later: Vec::new() });
    }

    /// Value of each key, where nothing waits to be acknowledged.
    pub(super) fn seen(&self) -> Option<BTreeMap<u32, Value>> {
        let is_settled = self.keys.values().all(|own| own.later.is_empty());
        is_settled.then(|| self.keys.iter().map(|(key, own)| (*key, own.acknowledged)).collect())
    }
}
