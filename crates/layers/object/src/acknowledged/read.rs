//! Reading the file: every line is checked, and what was acknowledged of each value is put together.

use std::collections::BTreeMap;
use std::io::BufRead;

use driver::Error;

use crate::plan::{ObjectPlan, Scope};

use vos::model::{Key, ObjectId};

use super::line::{Entry, FORMAT, open};

/// A write of a value that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Number of the write.
    pub write: u64,
    /// When it was begun and acknowledged, in nanoseconds.
    pub begun_ns: u64,
    /// See `begun_ns`.
    pub acknowledged_ns: u64,
    /// Bytes.
    pub value_bytes: u64,
    /// Record that it is of.
    pub record: u64,
}

/// Where a value is: container, worker (0 where workers share), object, dkey, akey, first byte.
pub(super) type ValueKey = (String, u32, ObjectId, Vec<u8>, Vec<u8>, u64);

/// All writes of a value that were acknowledged, and one of its operations.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) entry: Entry,
    pub(super) known: Vec<Known>,
}

/// Updates that were acknowledged to a run.
#[derive(Clone, Debug)]
pub struct Acknowledged {
    /// Number of the run: it stands in its values.
    pub run: u64,
    /// The store, as it was named.
    pub target: String,
    /// Updates.
    pub updates: u64,
    /// The file ends within a line: the process was killed while it wrote.
    pub is_cut: bool,
    pub(super) phases: Vec<ObjectPlan>,
    pub(super) values: BTreeMap<ValueKey, Value>,
}

impl Acknowledged {
    /// The phases that stored something.
    #[must_use]
    pub fn phases(&self) -> &[ObjectPlan] {
        &self.phases
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Bad usage, by line: it is none, it is of another version, a line is damaged.
    pub fn read(mut from: impl BufRead, name: &str) -> Result<Self, Error> {
        let mut found = Self {
            run: 0,
            target: String::new(),
            updates: 0,
            is_cut: false,
            phases: Vec::new(),
            values: BTreeMap::new(),
        };
        let mut line = String::new();
        for number in 1u64.. {
            line.clear();
            let refuse = |why: String| {
                Error::usage("audit", format!("line {number}: {why}"))
                    .with("file", name)
                    .remedy("use an unmodified file that --acknowledged wrote")
            };
            let length = from.read_line(&mut line);
            if length.map_err(|error| refuse(format!("cannot read: {error}")))? == 0 {
                break;
            }
            let Some(text) = line.strip_suffix('\n') else {
                if number == 1 {
                    return Err(refuse(format!("the file does not begin with {FORMAT:?}")));
                }
                found.is_cut = true;
                break;
            };
            let taken = if number == 1 { head(text) } else { open(text).and_then(|words| found.take(words)) };
            taken.map_err(refuse)?;
        }
        if found.target.is_empty() {
            return Err(Error::usage("audit", "the file does not name its run").with("file", name));
        }
        Ok(found)
    }

    fn take(&mut self, words: &str) -> Result<(), String> {
        let (kind, rest) = words.split_once(' ').ok_or("not a line of this format")?;
        match kind {
            "run" => {
                self.run =
                    u64::from_str_radix(rest, 16).map_err(|_| format!("run {rest:?} is not a number"))?;
            }
            "target" => rest.clone_into(&mut self.target),
            "phase" => {
                let (number, json) = rest.split_once(' ').ok_or("a phase needs a number and a plan")?;
                if number.parse() != Ok(self.phases.len()) {
                    return Err(format!("phase {number:?} is out of order"));
                }
                // As records are read: to compile a second reader of plans takes seconds.
                let plan = serde_json::from_str(json).and_then(serde_json::from_value::<ObjectPlan>);
                let plan = plan.map_err(|error| format!("the plan of the phase: {error}"))?;
                self.phases.push(plan);
            }
            "update" => self.add(Entry::parse(rest)?)?,
            other => return Err(format!("{other:?} is not run, target, phase or update")),
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry) -> Result<(), String> {
        let plan = self.phases.get(entry.phase as usize);
        let plan = plan.ok_or_else(|| format!("phase {} is not defined", entry.phase))?;
        let own = &entry.operation;
        if own.value_bytes > plan.dataset.value_size_bytes_max {
            return Err(format!("{} bytes exceed the value size of the phase", own.value_bytes));
        }
        let worker = if plan.containers == Scope::Private { entry.worker } else { 0 };
        let bytes = |key: &Key| key.as_bytes().to_vec();
        let place = (
            plan.container.clone(),
            worker,
            own.object,
            bytes(&own.dkey),
            bytes(&own.akey),
            own.offset_bytes,
        );
        let known = Known {
            write: entry.write,
            begun_ns: entry.begun_ns,
            acknowledged_ns: entry.acknowledged_ns,
            value_bytes: own.value_bytes,
            record: own.record,
        };
        self.updates += 1;
        let value = self.values.entry(place).or_insert_with(|| Value { entry, known: Vec::new() });
        // Read with the plan of the phase that stored it last.
        if value.known.last().is_none_or(|last| last.begun_ns <= known.begun_ns) {
            value.entry = entry;
        }
        value.known.push(known);
        Ok(())
    }
}

fn head(text: &str) -> Result<(), String> {
    match text.strip_prefix("strata acknowledged ") {
        _ if text == FORMAT => Ok(()),
        Some(version) => {
            Err(format!("the file has format version {version}, but this strata reads version 1"))
        }
        None => Err(format!("the file does not begin with {FORMAT:?}")),
    }
}
