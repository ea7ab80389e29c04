//! A store against what was acknowledged of it.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::{Arena, Completions, Driver, Error, ErrorKind, PageSize, Wait};
use serde::Serialize;
use workload::plan::LimitPlan;

use super::read::{Acknowledged, Known, Value};
use crate::payload::{Payload, SERIES_MASK};
use crate::plan::{ObjectOp, ObjectPlan, OpShare};
use crate::{Backend, ObjectOperation, OpenRequest};

/// Examples that are kept of each verdict.
const EXAMPLES_MAX: usize = 5;
/// Values below this size carry no number of their write.
const STAMPED_BYTES_MIN: u64 = 40;

/// Writes after the newest one acknowledged that a part of a record without a stamp is held against, and their bytes.
const TRIED_WRITES_MAX: u64 = 1 << 16;
const TRIED_BYTES_MAX: u64 = 4 << 30;

/// State of a value, against the acknowledged one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The newest version that was acknowledged, or one that was begun beside it.
    Current,
    /// A version whose acknowledgement is not in the file: it may have been carried out last.
    Newer,
    /// Nothing is there.
    Lost,
    /// A version that was acknowledged before the newest acknowledged one was begun.
    Older,
    /// A value of another run.
    OtherRun,
    /// The bytes are none that were ever written there, or the store says that they are damaged.
    Damaged,
    /// The store failed the read.
    Unreadable,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Current,
        Self::Newer,
        Self::Lost,
        Self::Older,
        Self::OtherRun,
        Self::Damaged,
        Self::Unreadable,
    ];

    /// Whether the store kept what it acknowledged.
    #[must_use]
    pub fn is_good(self) -> bool {
        matches!(self, Self::Current | Self::Newer)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Current => "current",
            Self::Newer => "newer version",
            Self::Lost => "lost",
            Self::Older => "older version",
            Self::OtherRun => "from another run",
            Self::Damaged => "damaged",
            Self::Unreadable => "unreadable",
        })
    }
}

/// A value that is not as it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    /// State of the value.
    pub verdict: Verdict,
    /// Where it is.
    pub place: String,
    /// Finding, in words.
    pub what: String,
}

/// Result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Updates in the file.
    pub updates: u64,
    /// Values that they are of: each was read once.
    pub values: u64,
    /// Values by verdict.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// Values of fewer than 40 bytes: they do not tell their version, only whether they are there and whole.
    pub without_version: u64,
    /// Some of the values that are not as they were acknowledged.
    pub examples: Vec<Example>,
    /// The file ends within a line: the process was killed while it wrote.
    pub is_cut: bool,
}

impl AuditReport {
    /// Whether every acknowledged update is there, or a newer one.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.verdicts.iter().all(|(verdict, count)| verdict.is_good() || *count == 0)
    }

    fn add(&mut self, verdict: Verdict, value: &Value, what: String) {
        *self.verdicts.entry(verdict).or_default() += 1;
        let examples = self.examples.iter().filter(|example| example.verdict == verdict).count();
        if verdict.is_good() || examples >= EXAMPLES_MAX {
            return;
        }
        let own = &value.entry.operation;
        let place = format!(
            "object {} dkey {} akey {} offset {} ({} bytes, worker {})",
            own.object, own.dkey, own.akey, own.offset_bytes, own.value_bytes, value.entry.worker
        );
        self.examples.push(Example { verdict, place, what });
    }
}

/// Reads every value of a file and holds it against what was acknowledged. `interrupt` ends it.
///
/// # Errors
/// A driver that cannot be opened or broke; the interrupt.
pub fn audit(
    acknowledged: &Acknowledged,
    backend: &dyn Backend,
    interrupt: &Arc<AtomicBool>,
) -> Result<AuditReport, Error> {
    let mut report = AuditReport {
        updates: acknowledged.updates,
        values: acknowledged.values.len() as u64,
        is_cut: acknowledged.is_cut,
        ..AuditReport::default()
    };
    // By phase and worker: each has a driver of its own.
    let mut parts: BTreeMap<(u32, u32), Vec<&Value>> = BTreeMap::new();
    for value in acknowledged.values.values() {
        parts.entry((value.entry.phase, value.entry.worker)).or_default().push(value);
    }
    let sizes = acknowledged.phases.iter().map(|plan| plan.dataset.value_size_bytes_max);
    let bytes_max = sizes.max().unwrap_or(0);
    for ((phase, worker), values) in parts {
        let plan = acknowledged.phases.get(phase as usize);
        let plan = plan.ok_or_else(|| {
            Error::usage("audit", "an update refers to a phase that the file does not define")
        })?;
        let mut reader = Reader::open(plan, bytes_max, worker, backend, interrupt)?;
        for value in values {
            if interrupt.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Run, "audit", "interrupted"));
            }
            let (verdict, what) = reader.judge(value, acknowledged.run)?;
            report.without_version += u64::from(value.entry.operation.value_bytes < STAMPED_BYTES_MIN);
            report.add(verdict, value, what);
        }
    }
    Ok(report)
}

/// Reads values of one phase and worker.
struct Reader {
    driver: Box<dyn Driver<ObjectOperation>>,
    /// Arrays: bytes of a chunk, which stores change by itself.
    chunk_bytes: u64,
    arena: Arc<Arena>,
    done: Completions,
}

/// The operation that reads what another stored.
fn reading(operation: ObjectOp) -> ObjectOp {
    match operation {
        ObjectOp::Put => ObjectOp::Get,
        ObjectOp::Write => ObjectOp::Read,
        _ => ObjectOp::Fetch,
    }
}

impl Reader {
    fn open(
        plan: &ObjectPlan,
        bytes_max: u64,
        worker: u32,
        backend: &dyn Backend,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let stores = plan.operations().find(|operation| operation.stores());
        let operation = reading(stores.unwrap_or(ObjectOp::Put));
        let mut plan = ObjectPlan {
            name: "audit".to_owned(),
            mix: vec![OpShare { operation, percent: 100 }],
            sequence: Vec::new(),
            short_read_bytes: None,
            memory: gpu::MemoryPlan::Host,
            ..plan.clone()
        };
        (plan.load.depth, plan.load.limit) = (1, LimitPlan::default());
        plan.dataset.value_size_bytes_max = bytes_max;
        let bytes = bytes_max.max(1) as usize;
        let arena = Arc::new(Arena::new(1, bytes, PageSize::Base)?);
        backend.prepare(&plan)?;
        let plan = Arc::new(plan);
        let request =
            OpenRequest { worker, plan, arena: Arc::clone(&arena), interrupt: Arc::clone(interrupt) };
        let driver = backend.open(&request)?.driver;
        let chunk_bytes = request.plan.cell_size_bytes.saturating_mul(request.plan.chunk_size_cells);
        Ok(Self { driver, chunk_bytes, arena, done: Completions::with_depth(1) })
    }

    /// Reads a value: bytes, or a negated errno.
    fn read(&mut self, operation: ObjectOperation) -> Result<i64, Error> {
        self.done.clear();
        let mut is_taken = false;
        while self.done.is_empty() {
            if !is_taken {
                is_taken = self.driver.submit(&[operation], &mut self.done)?.accepted == 1;
            }
            if self.done.is_empty() {
                self.driver.reap(Wait::AtLeast(1), &mut self.done)?;
            }
        }
        Ok(self.done.as_slice().first().map_or(0, |completion| completion.result))
    }

    fn judge(&mut self, value: &Value, run: u64) -> Result<(Verdict, String), Error> {
        let own = value.entry.operation;
        // A version before may have another length.
        let longest = value.known.iter().map(|known| known.value_bytes).max().unwrap_or(own.value_bytes);
        let is_short_good = value.known.iter().any(|known| known.value_bytes != longest);
        let operation = ObjectOperation {
            slot: 0,
            operation: reading(own.operation),
            value_bytes: longest,
            is_short_good,
            ..own
        };
        let result = self.read(operation)?;
        if result < 0 {
            let error = std::io::Error::from_raw_os_error(-result as i32).to_string();
            return Ok(match -result as i32 {
                libc::ENOENT => (Verdict::Lost, error),
                libc::EBADMSG => (Verdict::Damaged, error),
                _ => (Verdict::Unreadable, error),
            });
        }
        if result == 0 && own.value_bytes > 0 {
            return Ok((Verdict::Lost, "the value does not exist".to_owned()));
        }
        let bytes = (result as u64).min(longest) as usize;
        Ok(judge_content(self.arena_bytes(bytes), value, run, self.chunk_bytes))
    }

    fn arena_bytes(&self, bytes: usize) -> &[u8] {
        // SAFETY: the only operation of the arena has completed, and none is submitted while the bytes are looked at.
        unsafe { self.arena.slot_mut(0, bytes) }
    }
}

/// Judges the bytes that were read of a value.
fn judge_content(bytes: &[u8], value: &Value, run: u64, chunk_bytes: u64) -> (Verdict, String) {
    let own = &value.entry.operation;
    let mut payload = Payload::new(run, true);
    let length = own.value_bytes.min(bytes.len() as u64) as usize;
    let as_newest = payload.check(&bytes[..length], own.record, own.value_bytes, None);
    let mut others = value.known.iter().filter(|known| known.value_bytes <= bytes.len() as u64);
    let is_other = as_newest.is_err()
        && others.any(|known| {
            let bytes = &bytes[..known.value_bytes as usize];
            payload.check(bytes, known.record, known.value_bytes, None).is_ok()
        });
    if let (Err(fault), false) = (as_newest, is_other) {
        if let Some(judged) = judge_chunks(&bytes[..length], value, run, chunk_bytes) {
            return judged;
        }
        return match fault.cause {
            "unwritten" => (Verdict::Lost, "all zero".to_owned()),
            _ => (Verdict::Damaged, fault.detail),
        };
    }
    let Some((found_run, write)) = Payload::write_of(bytes) else {
        return (Verdict::Current, String::new());
    };
    if found_run != run {
        return (Verdict::OtherRun, format!("written by run {found_run:016x}"));
    }
    judge_write(write, &value.known)
}

/// Judges a record of an array that lies in several chunks, each of them whole: a chunk is stored by itself, so that an update
/// which a kill cut off is there in some of them. The worst of them counts.
fn judge_chunks(bytes: &[u8], value: &Value, run: u64, chunk_bytes: u64) -> Option<(Verdict, String)> {
    let own = &value.entry.operation;
    if own.operation != ObjectOp::Write || (bytes.len() as u64) < own.value_bytes {
        return None;
    }
    let first = chunk_bytes.checked_sub(own.offset_bytes.checked_rem(chunk_bytes)?)?;
    let cuts: Vec<usize> = (first..own.value_bytes)
        .step_by(usize::try_from(chunk_bytes).ok()?)
        .map(|cut| cut as usize)
        .collect();
    let known = value.known.iter().map(|known| known.write);
    let newest = known.clone().max().unwrap_or(0);
    // Writes of a worker are numbered one after the other: the next one of this record is not far.
    let tries = (TRIED_BYTES_MAX / own.value_bytes.max(1)).min(TRIED_WRITES_MAX);
    let later = (1..=tries)
        .map(|ahead| newest + ahead)
        .take_while(|write| write & SERIES_MASK == newest & SERIES_MASK);
    let others = known.chain(later).map(|write| (run, write));
    let writes = Payload::writes_of_parts(bytes, own.record, &cuts, others)?;
    let judged = writes.iter().enumerate().map(|(chunk, &(found_run, write))| {
        let (verdict, what) = match found_run == run {
            true => judge_write(write, &value.known),
            false => (Verdict::OtherRun, format!("written by run {found_run:016x}")),
        };
        (verdict, format!("chunk {} of {}: {what}", chunk + 1, writes.len()))
    });
    judged.max_by_key(|(verdict, _)| *verdict)
}

/// Whether a write is the newest that was acknowledged, or may have been carried out after it. One whose answer never came may have been at any
/// time after its begin: it was in flight with the newest, or failed and was carried out all the same (Herlihy and Wing, 1990: a pending
/// operation takes effect at any time, or never).
fn judge_write(write: u64, known: &[Known]) -> (Verdict, String) {
    let own = known.iter().find(|known| known.write == write);
    let (Some(own), Some(newest)) = (own, known.iter().max_by_key(|known| known.begun_ns)) else {
        return (Verdict::Newer, String::new());
    };
    // Those in flight together may have taken either order.
    if own.acknowledged_ns >= newest.begun_ns {
        return (Verdict::Current, String::new());
    }
    let what = format!("found write {write:016x}, but write {:016x} was acknowledged after it", newest.write);
    (Verdict::Older, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(write: u64, begun_ns: u64, acknowledged_ns: u64) -> Known {
        Known { write, begun_ns, acknowledged_ns, value_bytes: 64, record: 0 }
    }

    #[test]
    fn a_record_in_several_chunks_is_judged_chunk_by_chunk() {
        use vos::model::{Key, ObjectId};
        const RUN: u64 = 7;
        let series = 9 << 40;
        let operation = ObjectOperation {
            slot: 0,
            operation: ObjectOp::Write,
            is_short_good: false,
            record: 5,
            object: ObjectId::default(),
            dkey: Key::EMPTY,
            akey: Key::EMPTY,
            offset_bytes: 60_000,
            value_bytes: 20_000,
        };
        let known = |write, begun_ns| Known {
            write: series | write,
            begun_ns,
            acknowledged_ns: begun_ns + 5,
            value_bytes: 20_000,
            record: 5,
        };
        let entry = super::super::line::Entry {
            phase: 0,
            worker: 0,
            operation,
            write: series | 2,
            begun_ns: 20,
            acknowledged_ns: 25,
        };
        let value = Value { entry, known: vec![known(1, 10), known(2, 20)] };
        let made = |write: u64| {
            let mut bytes = vec![0; 20_000];
            Payload::new(RUN, false).fill(&mut bytes, 5, series | write);
            bytes
        };
        // 65,536 bytes a chunk: the second one begins 5,536 bytes into the record, within a block.
        let torn = |head: u64, tail: u64, cut: usize| [&made(head)[..cut], &made(tail)[cut..]].concat();
        let verdict = |bytes: &[u8], chunk_bytes| judge_content(bytes, &value, RUN, chunk_bytes).0;
        assert_eq!(verdict(&torn(3, 2, 5536), 65_536), Verdict::Newer, "the next update was cut off");
        assert_eq!(verdict(&torn(2, 3, 5536), 65_536), Verdict::Newer);
        assert_eq!(verdict(&torn(2, 1, 5536), 65_536), Verdict::Older, "a chunk was lost");
        assert_eq!(verdict(&torn(3, 2, 8192), 65_536), Verdict::Damaged, "within a chunk");
        assert_eq!(verdict(&torn(3, 2, 5536), 1 << 20), Verdict::Damaged, "all of it is in one chunk");
        // The first block begins in one chunk and ends in the other, or the last block is too short for a stamp.
        let torn_tail = |head: u64, tail: u64| torn(head, tail, 19_990);
        assert_eq!(verdict(&torn_tail(2, 3), 60_000 + 19_990), Verdict::Newer, "nothing in the tail says so");
        assert_eq!(verdict(&torn_tail(2, 3000), 60_000 + 19_990), Verdict::Newer);
        assert_eq!(verdict(&torn_tail(2, 1), 60_000 + 19_990), Verdict::Older);
        assert_eq!(
            verdict(&torn_tail(2, 1 << 20), 60_000 + 19_990),
            Verdict::Damaged,
            "no write that can be there"
        );
        let mut damaged = torn(3, 2, 5536);
        damaged[12_000] ^= 1;
        assert_eq!(verdict(&damaged, 65_536), Verdict::Damaged);
        assert_eq!(verdict(&torn(3, 2, 5536)[..19_000], 65_536), Verdict::Damaged, "the end is missing");
    }

    #[test]
    fn versions_are_told_apart() {
        let series = 7 << 40;
        let all = [known(series | 1, 10, 20), known(series | 3, 30, 50), known(9 << 40 | 1, 40, 60)];
        let verdict = |write| judge_write(write, &all).0;
        assert_eq!(verdict(9 << 40 | 1), Verdict::Current);
        assert_eq!(verdict(series | 3), Verdict::Current, "it was in flight with the newest");
        assert_eq!(verdict(series | 1), Verdict::Older);
        assert_eq!(verdict(series | 4), Verdict::Newer, "begun, and not acknowledged");
        assert_eq!(verdict(9 << 40), Verdict::Newer, "begun before the newest, and never answered");
        assert_eq!(verdict(11 << 40), Verdict::Newer, "of a worker of which nothing is known");
    }
}
