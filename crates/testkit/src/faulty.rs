//! A driver that fails on purpose.

use std::collections::{HashMap, VecDeque};

use driver::{Completions, Driver, Error, ErrorKind, Operation, Submitted, Wait};

/// Faults of an operation.
pub enum Fault {
    /// It is carried out and then reported as failed with this errno (positive).
    Errno(i32),
    /// It is reported to have moved only this many bytes.
    Short(u64),
    /// The driver is busy at it once: it and what follows in its batch are not taken.
    Busy,
    /// The driver itself fails when it is submitted.
    Submit,
    /// The driver itself fails at the first reap after it was submitted.
    Reap,
    /// The driver panics when it is submitted.
    Panic,
    /// This is called when it is submitted; the operation succeeds.
    Call(Box<dyn FnMut() + Send>),
}

/// A driver around another one that fails at the operations it was told, counted from 0 in the order in which they are taken.
pub struct FaultyDriver<Op> {
    inner: Box<dyn Driver<Op>>,
    faults: VecDeque<(u64, Fault)>,
    taken: u64,
    /// Results to report in place of the true ones, by slot.
    replaced: HashMap<u32, i64>,
    fails_at_reap: bool,
}

impl<Op> FaultyDriver<Op> {
    /// A driver around `inner` without faults yet.
    #[must_use]
    pub fn new(inner: Box<dyn Driver<Op>>) -> Self {
        Self { inner, faults: VecDeque::new(), taken: 0, replaced: HashMap::new(), fails_at_reap: false }
    }

    /// Adds a fault at operation `number`.
    ///
    /// # Panics
    /// When a fault at a later operation was added before.
    #[must_use]
    pub fn with_fault(mut self, number: u64, fault: Fault) -> Self {
        assert!(self.faults.back().is_none_or(|last| last.0 <= number), "faults are added in order");
        self.faults.push_back((number, fault));
        self
    }
}

fn broken(place: &'static str) -> Error {
    Error::new(ErrorKind::Run, place, "the driver broke, as it was told to")
}

impl<Op: Operation> FaultyDriver<Op> {
    /// Commits the faults that are due at `operation`; false when the driver is busy at it.
    fn meets(&mut self, operation: &Op) -> Result<bool, Error> {
        while let Some((_, fault)) = self.faults.pop_front_if(|(number, _)| *number == self.taken) {
            match fault {
                Fault::Errno(errno) => {
                    self.replaced.insert(operation.slot(), -i64::from(errno));
                }
                Fault::Short(bytes) => {
                    self.replaced.insert(operation.slot(), bytes as i64);
                }
                Fault::Busy => return Ok(false),
                Fault::Submit => return Err(broken("submit")),
                Fault::Reap => self.fails_at_reap = true,
                Fault::Panic => panic!("the driver panicked, as it was told to"),
                Fault::Call(mut call) => call(),
            }
        }
        Ok(true)
    }

    /// Puts the planned results in place of the true ones.
    fn replace(&mut self, known: usize, done: &mut Completions) {
        if self.replaced.is_empty() {
            return;
        }
        let spans = (0..done.len()).map(|at| done.span(at));
        let all: Vec<_> = done.as_slice().iter().copied().zip(spans).collect();
        done.clear();
        for (place, (completion, span)) in all.into_iter().enumerate() {
            let planned = if place < known { None } else { self.replaced.remove(&completion.slot) };
            let result = planned.unwrap_or(completion.result);
            match span {
                Some(span) => done.push_timed(completion.slot, result, span),
                None => done.push(completion.slot, result),
            }
        }
    }
}

impl<Op: Operation> Driver<Op> for FaultyDriver<Op> {
    fn submit(&mut self, batch: &[Op], done: &mut Completions) -> Result<Submitted, Error> {
        let known = done.len();
        let mut accepted = 0;
        for operation in batch {
            if !self.meets(operation)? {
                break;
            }
            if self.inner.submit(std::slice::from_ref(operation), done)?.accepted == 0 {
                self.replaced.remove(&operation.slot());
                break;
            }
            accepted += 1;
            self.taken += 1;
        }
        self.replace(known, done);
        Ok(Submitted { accepted })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        if self.fails_at_reap {
            return Err(broken("reap"));
        }
        let known = done.len();
        self.inner.reap(wait, done)?;
        self.replace(known, done);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{InstantDriver, TestOp};

    fn batch(count: u32) -> Vec<TestOp> {
        (0..count).map(|slot| TestOp { class: 0, slot, bytes: 100, part: 0 }).collect()
    }

    #[test]
    fn fails_where_it_was_told() {
        let mut driver = FaultyDriver::new(Box::new(InstantDriver))
            .with_fault(1, Fault::Errno(5))
            .with_fault(2, Fault::Short(40))
            .with_fault(4, Fault::Busy)
            .with_fault(5, Fault::Submit);
        let mut done = Completions::with_depth(8);
        assert_eq!(driver.submit(&batch(6), &mut done).map(|taken| taken.accepted).ok(), Some(4));
        let results: Vec<_> = done.as_slice().iter().map(|completion| completion.result).collect();
        assert_eq!(results, [100, -5, 40, 100]);
        done.clear();
        assert_eq!(driver.submit(&batch(1), &mut done).map(|taken| taken.accepted).ok(), Some(1));
        assert!(driver.submit(&batch(1), &mut done).is_err());
        let mut driver = FaultyDriver::new(Box::new(InstantDriver)).with_fault(0, Fault::Reap);
        assert!(driver.submit(&batch(1), &mut done).is_ok());
        assert!(driver.reap(Wait::None, &mut done).is_err());
    }

    #[test]
    #[should_panic(expected = "as it was told to")]
    fn panics_where_it_was_told() {
        let mut driver = FaultyDriver::new(Box::new(InstantDriver)).with_fault(0, Fault::Panic);
        let _ = driver.submit(&batch(1), &mut Completions::with_depth(1));
    }
}
