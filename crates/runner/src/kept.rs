//! Records of single operations: only where asked for.

use driver::{Clock, Operation, Source};
use statistics::OperationSample;
use workload::control::Control;

use crate::worker::Worker;

/// The error of an operation that took longer than it may: ETIMEDOUT.
const TOO_LATE: i64 = -110;

/// Operations that one worker keeps. Everything is allocated, and touched, before the window opens.
pub(crate) struct Kept {
    operations: Vec<OperationSample>,
    room: usize,
    latency_ns_max: u64,
}

impl Kept {
    /// Where a load asks for it.
    pub(crate) fn new(control: &Control) -> Option<Box<Self>> {
        let room = control.operations_kept.unwrap_or(0) as usize;
        if room == 0 && control.latency_ns_max.is_none() {
            return None;
        }
        // Written once, so that no page of it is new within the window.
        let mut operations = vec![OperationSample { ended_ns: 1, ..OperationSample::default() }; room];
        operations.clear();
        Some(Box::new(Self { operations, room, latency_ns_max: control.latency_ns_max.unwrap_or(u64::MAX) }))
    }

    pub(crate) fn into_operations(self) -> Vec<OperationSample> {
        self.operations
    }
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Keeps what completed whole and counted at `now`, and fails what took too long.
    #[cold]
    pub(crate) fn note_kept(&mut self, now: u64) {
        let Some(mut kept) = self.kept.take() else { return };
        let at_ns = now - self.window.open_ns;
        for (at, completion) in self.done.as_slice().iter().enumerate() {
            let operation = self.slots[completion.slot as usize];
            let Some(operation) = operation.filter(|operation| operation.is_whole(completion.result)) else {
                continue;
            };
            let (start_ns, ended_ns) = self.span_of(at, now);
            let latency_ns = ended_ns.saturating_sub(start_ns);
            if kept.operations.len() < kept.room {
                let taken_ns = self.split.as_ref().and_then(|split| split.taken_ns_of(completion.slot));
                kept.operations.push(OperationSample {
                    ended_ns: at_ns,
                    latency_ns,
                    submission_ns: taken_ns.map(|taken| taken.saturating_sub(start_ns)),
                    class: self.class_places[operation.class()] as usize,
                    bytes: operation.moved_bytes(completion.result),
                    offset_bytes: operation.position(),
                    target: operation.target(),
                });
            }
            if latency_ns > kept.latency_ns_max {
                self.errors.failed(&operation, TOO_LATE, None, at_ns);
                self.shared.stop();
            }
        }
        self.kept = Some(kept);
    }
}
