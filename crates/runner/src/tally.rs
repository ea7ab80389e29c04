//! Counters of a worker besides the intervals.

use driver::{Fault, Operation};
use statistics::ErrorCount;

/// Kinds of failures told apart for each worker; beyond that they are counted as `other`.
const ERROR_KINDS_MAX: usize = 32;

/// Why an operation with this result failed, in words, and the error number where there is one.
#[cold]
pub(crate) fn cause_of<Op: Operation>(operation: &Op, result: i64) -> (String, Option<i32>) {
    if result >= 0 {
        return (format!("short: {result} of {} bytes", operation.bytes()), None);
    }
    let errno = i32::try_from(-result).unwrap_or(i32::MAX);
    (std::io::Error::from_raw_os_error(errno).to_string(), Some(errno))
}

/// Failures by class and cause.
pub(crate) struct Errors {
    counts: Vec<ErrorCount>,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { counts: Vec::with_capacity(ERROR_KINDS_MAX) }
    }

    /// Counts a failed or short operation, with the driver's words where it has some. Cold: a phase with failures is not a measurement of
    /// speed.
    #[cold]
    pub(crate) fn failed<Op: Operation>(
        &mut self,
        operation: &Op,
        result: i64,
        told: Option<String>,
        at_ns: u64,
    ) {
        let (cause, errno) = cause_of(operation, result);
        let cause = told.unwrap_or(cause);
        self.count::<Op>(operation, &cause, errno, at_ns);
    }

    /// Notes that a failure just counted is one that the load ignores: it is listed, and makes nothing fail.
    #[cold]
    pub(crate) fn ignore_last<Op: Operation>(&mut self, operation: &Op, result: i64) {
        let (class, errno) = (Op::CLASSES[operation.class()], i32::try_from(-result).ok());
        let known = self.counts.iter_mut().find(|count| count.class == class && count.errno == errno);
        if let Some(count) = known {
            count.is_ignored = true;
        }
    }

    /// Counts an operation that returned wrong data; the first of each kind with its detail.
    #[cold]
    pub(crate) fn faulty<Op: Operation>(&mut self, operation: &Op, fault: &Fault, at_ns: u64) {
        let prefix = format!("{}: ", fault.cause);
        let class = Op::CLASSES[operation.class()];
        match self.counts.iter_mut().find(|count| count.class == class && count.cause.starts_with(&prefix)) {
            Some(count) => count.count += 1,
            None => self.count::<Op>(operation, &format!("{prefix}{}", fault.detail), None, at_ns),
        }
    }

    fn count<Op: Operation>(&mut self, operation: &Op, cause: &str, errno: Option<i32>, at_ns: u64) {
        let class = Op::CLASSES[operation.class()];
        if let Some(count) = self.counts.iter_mut().find(|count| count.class == class && count.cause == cause)
        {
            count.count += 1;
            return;
        }
        let is_full = self.counts.len() >= ERROR_KINDS_MAX;
        match self.counts.last_mut().filter(|last| is_full && last.cause == "other") {
            Some(other) => other.count += 1,
            None => self.counts.push(ErrorCount {
                class: class.to_owned(),
                cause: if is_full { "other" } else { cause }.to_owned(),
                errno,
                count: 1,
                is_ignored: false,
                first_at_ns: at_ns,
            }),
        }
    }

    /// The first failure in one line.
    pub(crate) fn first(&self) -> Option<String> {
        self.counts
            .iter()
            .find(|count| !count.is_ignored)
            .map(|count| format!("{} failed: {}", count.class, count.cause))
    }

    pub(crate) fn into_counts(self) -> Vec<ErrorCount> {
        self.counts
    }
}
