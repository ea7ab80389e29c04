//! Names that a load gives, which of them this run has put, and the mark that its objects carry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::plan::{Made, ObjectPlan, Scope};

use vos::model::NO_NUMBER;

use super::client::Upload;
use super::site::{Site, names_objects};

/// Most names that are kept track of: a bit each, 256 MiB.
const TRACKED_MAX: u64 = 1 << 31;

/// Names of the objects of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameSet {
    /// Prefix of the names.
    pub(crate) prefix: String,
    /// `oN/` stands between the prefix and the key.
    pub(crate) names_objects: bool,
    /// The key: its number stands behind it, or where it has braces.
    pub(crate) key: String,
}

impl NameSet {
    /// The names that a phase gives.
    pub(crate) fn of(site: &Site, plan: &ObjectPlan) -> Self {
        let dataset = &plan.dataset;
        Self {
            prefix: String::from_utf8_lossy(&site.prefix).into_owned(),
            names_objects: names_objects(plan),
            key: if dataset.integer_dkeys { String::new() } else { dataset.dkey_prefix.clone() },
        }
    }

    /// Prefix that all names share.
    pub(crate) fn head(&self) -> Vec<u8> {
        let head = if self.names_objects { "o" } else { self.key.split('{').next().unwrap_or_default() };
        [self.prefix.as_bytes(), head.as_bytes()].concat()
    }

    /// Whether a name is one of them.
    pub(crate) fn covers(&self, name: &[u8]) -> bool {
        let Some(rest) = name.strip_prefix(self.prefix.as_bytes()) else { return false };
        let key = if self.names_objects {
            let Some(slash) = rest.iter().position(|&byte| byte == b'/') else { return false };
            let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
            if !rest[..slash].strip_prefix(b"o").is_some_and(is_number) {
                return false;
            }
            &rest[slash + 1..]
        } else {
            rest
        };
        let template = self.key.as_bytes();
        if template.contains(&b'{') { fits(template, key) } else { fits(&[template, b"{}"].concat(), key) }
    }

    pub(crate) fn noted(&self, uploads_of_others: Option<&Vec<Vec<u8>>>) -> Made {
        let text = |id: &Vec<u8>| String::from_utf8_lossy(id).into_owned();
        Made::Objects {
            prefix: self.prefix.clone(),
            names_objects: self.names_objects,
            key: self.key.clone(),
            uploads_of_others: uploads_of_others.map(|ids| ids.iter().map(text).collect()),
        }
    }
}

/// Whether a key is the template with digits in place of its braces.
fn fits(template: &[u8], key: &[u8]) -> bool {
    match template.first() {
        None => key.is_empty(),
        Some(b'{') => {
            let end = template.iter().position(|&byte| byte == b'}').map_or(template.len(), |end| end + 1);
            if template[1..end].strip_suffix(b"}") == Some(NO_NUMBER.as_bytes()) {
                return fits(&template[end..], key);
            }
            let digits = key.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (1..=digits).rev().any(|count| fits(&template[end..], &key[count..]))
        }
        Some(byte) => key.first() == Some(byte) && fits(&template[1..], &key[1..]),
    }
}

/// Which names of a load this run has put: these it may write over.
pub(crate) struct Put {
    names: NameSet,
    first_id: u64,
    whole: [u64; 4],
    bits: Box<[AtomicU64]>,
}

impl Put {
    fn new(names: NameSet, plan: &ObjectPlan, threads: u32) -> Self {
        let whole = plan.dataset.whole();
        let workers = if plan.object_scope == Scope::Private { u64::from(threads.max(1)) } else { 1 };
        let count = whole.iter().fold(workers, |product, &count| product.saturating_mul(count));
        let words = count.min(TRACKED_MAX).div_ceil(64);
        let bits = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { names, first_id: plan.dataset.first_id, whole, bits }
    }

    /// Whether the name of a record was put by this run. False also where it is not kept track of.
    #[inline]
    pub(crate) fn has(&self, record: u64) -> bool {
        let word = self.bits.get((record / 64) as usize);
        word.is_some_and(|word| (word.load(Ordering::Relaxed) >> (record % 64)) & 1 == 1)
    }

    /// The name of a record is this run's.
    #[inline]
    pub(crate) fn add(&self, record: u64) {
        if let Some(word) = self.bits.get((record / 64) as usize) {
            word.fetch_or(1 << (record % 64), Ordering::Relaxed);
        }
    }

    /// The name of a record is free again.
    #[inline]
    pub(crate) fn remove(&self, record: u64) {
        if let Some(word) = self.bits.get((record / 64) as usize) {
            word.fetch_and(!(1 << (record % 64)), Ordering::Relaxed);
        }
    }
}

/// Objects of the run's own, as the driver of a worker knows them.
pub(crate) struct Own {
    pub(crate) put: Arc<Put>,
    /// Number that objects of the run are marked with.
    pub(crate) run: u64,
    /// Others' objects may be written over and removed.
    pub(crate) destroys: bool,
    /// The server keeps to conditions of puts, as far as is known.
    pub(crate) takes_conditions: bool,
    /// Uploads whose end is not known, for the end of the run; without an id where it was never told.
    pub(crate) lost: Arc<parking_lot::Mutex<Vec<Upload>>>,
}

/// The mark of a run, as objects carry it.
pub(crate) fn mark(run: u64) -> [u8; 16] {
    let mut mark = [0; 16];
    for (place, digit) in mark.iter_mut().zip(format!("{run:016x}").bytes()) {
        *place = digit;
    }
    mark
}

/// Objects that were put, by all loads of a run.
#[derive(Default)]
pub(crate) struct PutByRun(parking_lot::Mutex<Vec<Arc<Put>>>);

impl PutByRun {
    /// That of a phase: the same for phases whose records have the same names.
    pub(crate) fn of(&self, site: &Site, plan: &ObjectPlan, threads: u32) -> Arc<Put> {
        let (names, whole) = (NameSet::of(site, plan), plan.dataset.whole());
        let mut all = self.0.lock();
        let is_same = |put: &&Arc<Put>| {
            put.names == names && put.first_id == plan.dataset.first_id && put.whole == whole
        };
        if let Some(put) = all.iter().find(is_same) {
            return Arc::clone(put);
        }
        let put = Arc::new(Put::new(names, plan, threads.max(plan.load.workers())));
        all.push(Arc::clone(&put));
        put
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_a_load_are_covered() {
        let one = NameSet { prefix: "p/".to_owned(), names_objects: false, key: "blade-".to_owned() };
        assert!(one.covers(b"p/blade-0") && one.covers(b"p/blade-17"));
        for other in ["p/blade-", "p/blade-x", "blade-1", "p/blade-1/2", "p/o1/blade-1"] {
            assert!(!one.covers(other.as_bytes()), "{other}");
        }
        let several = NameSet { names_objects: true, ..one };
        assert!(several.covers(b"p/o12/blade-3") && several.head() == b"p/o");
        for other in ["p/blade-1", "p/o/blade-1", "p/ox/blade-1", "p/o1"] {
            assert!(!several.covers(other.as_bytes()), "{other}");
        }
        let paths =
            NameSet { prefix: "x".to_owned(), names_objects: false, key: "r{12}/d{4%3}/f{%4}0".to_owned() };
        assert!(paths.covers(b"xr0/d17/f200") && paths.head() == b"xr");
        let one = NameSet { prefix: "a".to_owned(), names_objects: false, key: "b{-}".to_owned() };
        assert!(one.covers(b"ab") && !one.covers(b"ab1") && one.head() == b"ab");
        for other in ["xr0/d17/f20x", "xr0/d17/f0", "r0/d1/f10", "xr/d1/f10"] {
            assert!(!paths.covers(other.as_bytes()), "{other}");
        }
    }
}
