//! A small operation, its source, and a driver that has nothing to do.

use driver::{Completions, Driver, Error, Operation, Submitted};

/// An operation of a layer that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestOp {
    /// Index into its classes: 0 reads, 1 writes.
    pub class: usize,
    /// Its slot.
    pub slot: u32,
    /// Bytes that it moves.
    pub bytes: u64,
    /// Part of the target that it goes to.
    pub part: usize,
}

impl Operation for TestOp {
    const CLASSES: &'static [&'static str] = &["read", "write"];

    fn class(&self) -> usize {
        self.class
    }

    fn slot(&self) -> u32 {
        self.slot
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn part(&self) -> usize {
        self.part
    }
}

/// A source of [`TestOp`]s: the given classes in turn, all of one size.
#[derive(Clone, Debug)]
pub struct TestSource {
    classes: Vec<usize>,
    bytes: u64,
    left: u64,
    drawn: usize,
    parts: usize,
    final_class: usize,
    finals_left: u64,
}

impl TestSource {
    /// Reads of `bytes` bytes without end.
    #[must_use]
    pub fn reads(bytes: u64) -> Self {
        Self { classes: vec![0], bytes, left: u64::MAX, drawn: 0, parts: 1, final_class: 0, finals_left: 0 }
    }

    /// Operations of these classes, in turn, from the first again when all were drawn.
    ///
    /// # Panics
    /// Without a class.
    #[must_use]
    pub fn in_turn(classes: &[usize], bytes: u64) -> Self {
        assert!(!classes.is_empty(), "a source needs a class");
        Self { classes: classes.to_vec(), ..Self::reads(bytes) }
    }

    /// Turns to so many parts of the target, one after the other.
    ///
    /// # Panics
    /// Without a part.
    #[must_use]
    pub fn over_parts(mut self, parts: usize) -> Self {
        assert!(parts > 0, "a target has a part");
        self.parts = parts;
        self
    }

    /// Ends after `operations`.
    #[must_use]
    pub fn ending_after(mut self, operations: u64) -> Self {
        self.left = operations;
        self
    }

    /// Has `operations` final operations of this class.
    #[must_use]
    pub fn finishing_with(mut self, class: usize, operations: u64) -> Self {
        (self.final_class, self.finals_left) = (class, operations);
        self
    }
}

impl driver::Source<TestOp> for TestSource {
    fn next(&mut self, slot: u32) -> Option<TestOp> {
        self.left = self.left.checked_sub(1)?;
        let (class, part) = (self.classes[self.drawn % self.classes.len()], self.drawn % self.parts);
        self.drawn += 1;
        Some(TestOp { class, slot, bytes: self.bytes, part })
    }

    fn finish(&mut self, slot: u32) -> Option<TestOp> {
        self.finals_left = self.finals_left.checked_sub(1)?;
        Some(TestOp { class: self.final_class, slot, bytes: self.bytes, part: 0 })
    }
}

/// Completes every operation in full at once, on any clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstantDriver;

impl<Op: Operation> Driver<Op> for InstantDriver {
    fn submit(&mut self, batch: &[Op], done: &mut Completions) -> Result<Submitted, Error> {
        for operation in batch {
            done.push(operation.slot(), operation.bytes() as i64);
        }
        Ok(Submitted { accepted: batch.len() })
    }
}
