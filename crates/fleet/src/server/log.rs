//! Lines about callers, not more than a log can bear.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::audit::{Audit, AuditCaller, AuditEvent};
use crate::messages::line;

/// Lines at once, and time until there is room for another.
const BURST: u32 = 10;
const REFILL: Duration = Duration::from_secs(1);

/// Where a server writes lines for its operator.
pub type LogSink = Arc<dyn Fn(&str) + Send + Sync>;

/// A sink that takes ten lines at once and then one a second, and tells how many it left out.
#[derive(Clone)]
pub(crate) struct Log {
    sink: LogSink,
    budget: Arc<Mutex<Budget>>,
    audit: Option<Arc<Audit>>,
}

struct Budget {
    lines: u32,
    refilled: Instant,
    omitted: u64,
}

impl Log {
    pub(crate) fn new(sink: LogSink) -> Self {
        let budget = Budget { lines: BURST, refilled: Instant::now(), omitted: 0 };
        Self { sink, budget: Arc::new(Mutex::new(budget)), audit: None }
    }

    /// The same, with events noted in an audit log as well.
    pub(crate) fn with_audit(self, audit: Option<Arc<Audit>>) -> Self {
        Self { audit, ..self }
    }

    /// Notes an event of a caller that has proven itself, or of one that has not.
    pub(crate) fn audit(&self, peer: SocketAddr, caller: Option<&str>, event: &AuditEvent) {
        if let Some(audit) = &self.audit {
            let is_stranger = caller.is_none();
            audit.note(&AuditCaller { peer, caller: caller.map(str::to_owned) }, event, is_stranger);
        }
    }

    /// Says and notes why a caller that has not proven itself is refused.
    pub(crate) fn refuse(&self, peer: SocketAddr, why: &str) {
        self.say(&format!("control: {peer}: {why}"));
        self.audit(peer, None, &AuditEvent::refused(why));
    }

    pub(crate) fn say(&self, text: &str) {
        let omitted = {
            let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
            let earned = budget.refilled.elapsed().as_secs() / REFILL.as_secs();
            if earned > 0 {
                budget.lines = BURST.min(budget.lines.saturating_add(u32::try_from(earned).unwrap_or(BURST)));
                budget.refilled = Instant::now();
            }
            if budget.lines == 0 {
                budget.omitted += 1;
                return;
            }
            budget.lines -= 1;
            std::mem::take(&mut budget.omitted)
        };
        let text = line(text);
        if omitted > 0 {
            (self.sink)(&format!("{text} ({omitted} earlier lines were omitted)"));
        } else {
            (self.sink)(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let log = Log::new(Arc::new(move |line: &str| sink.lock().expect("no panic").push(line.to_owned())));
        let hour = Duration::from_secs(3600);
        log.budget.lock().expect("no panic").refilled = Instant::now() + hour;
        for _ in 0..30 {
            log.say("a\nb");
        }
        assert_eq!(lines.lock().expect("no panic").len(), BURST as usize);
        log.budget.lock().expect("no panic").refilled =
            Instant::now().checked_sub(2 * REFILL).expect("the machine is up for longer");
        log.say("c");
        let lines = lines.lock().expect("no panic");
        assert_eq!((&*lines[0], &*lines[10]), ("a b", "c (20 earlier lines were omitted)"));
    }
}
