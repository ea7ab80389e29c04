//! Where an operation spends its time: the parts of its latency, for `--split-latency`.

use driver::{Clock as _, HostClock};

/// Parts, in the order in which a request has them.
pub(super) const PARTS: &[&str] = &["connect", "tls", "send", "first-byte", "receive", "pause"];

/// A part of the latency of an operation, by its place in [`PARTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The connection is made: about a round trip of the network.
    Connect,
    /// TLS shakes hands.
    Tls,
    /// The request goes out.
    Send,
    /// The server has the request, and nothing of its answer has come.
    FirstByte,
    /// The answer comes in.
    Receive,
    /// It waits before it is sent again.
    Pause,
}

/// Times of the operation of a slot. It reads no clock unless it was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    is_on: bool,
    times_ns: [u64; PARTS.len()],
    part: Option<Part>,
    since_ns: u64,
}

impl Watch {
    /// Begins to measure operations.
    pub(super) fn turn_on(&mut self) {
        self.is_on = true;
    }

    /// Begins a new operation.
    #[inline]
    pub(super) fn reset(&mut self) {
        if self.is_on {
            (self.times_ns, self.part) = ([0; PARTS.len()], None);
        }
    }

    /// The operation passes to another part now, or to none: what strata does itself.
    #[inline]
    pub(super) fn pass(&mut self, part: Option<Part>) {
        if self.is_on && self.part != part {
            self.pass_at(part, HostClock::get().now_ns());
        }
    }

    /// The same at a time that is known.
    fn pass_at(&mut self, part: Option<Part>, now_ns: u64) {
        if let Some(part) = self.part {
            self.times_ns[part as usize] += now_ns.saturating_sub(self.since_ns);
        }
        (self.part, self.since_ns) = (part, now_ns);
    }

    /// Its present part.
    #[inline]
    pub(super) fn part(&self) -> Option<Part> {
        self.part
    }

    /// Time of each part of the operation that has ended.
    pub(super) fn times_ns(&self) -> &[u64] {
        &self.times_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_over_the_requests_of_an_operation() {
        let mut watch = Watch::default();
        watch.turn_on();
        watch.reset();
        let passes = [
            (Some(Part::Connect), 100),
            (Some(Part::Send), 150),
            (Some(Part::FirstByte), 160),
            (Some(Part::Receive), 460),
            (Some(Part::Pause), 500),
            (None, 800),
            (Some(Part::Send), 810),
            (Some(Part::FirstByte), 815),
            (None, 900),
        ];
        passes.into_iter().for_each(|(part, at)| watch.pass_at(part, at));
        assert_eq!(watch.times_ns(), [50, 0, 15, 385, 40, 300]);
        watch.reset();
        assert_eq!(watch.times_ns(), [0; PARTS.len()]);
    }

    #[test]
    fn one_that_was_not_asked_for_measures_nothing() {
        let mut watch = Watch::default();
        watch.pass(Some(Part::Send));
        watch.pass(None);
        assert_eq!((watch.part(), watch.times_ns()), (None, &[0; PARTS.len()][..]));
    }
}
