//! Sessions that take too long.

use rustix::net::RecvFlags;

use super::Session;
use crate::tcp::ending::{Ending, hostile};

impl Session {
    /// Notes at `now_ns` whether something must come or leave. Whether it must.
    pub(in crate::tcp) fn note(&mut self, now_ns: u64, again: bool) -> bool {
        let must_send = self.sending.is_some() || !self.output.pending().is_empty();
        let must_receive = self.awaits_bulk || (!self.input.unread().is_empty() && !must_send && !again);
        self.leaving.note(now_ns, must_send, self.sent_bytes, false);
        self.receiving.note(now_ns, must_receive, self.received_bytes, self.is_whole);
        must_send || must_receive || self.bulk.is_some()
    }

    /// Takes time off in which the endpoint was away, at a sync of a drive that stalls, say.
    pub(in crate::tcp) fn pardon(&mut self, away_ns: u64) {
        self.leaving.pardon(away_ns);
        self.receiving.pardon(away_ns);
        if self.orphan_since_ns != 0 {
            self.orphan_since_ns = self.orphan_since_ns.saturating_add(away_ns);
        }
    }

    /// Ends a session that has taken too long for what it must send or read. Whether it is to be asked again.
    pub(in crate::tcp) fn check_stall(&mut self, now_ns: u64, stall_ns_max: u64) -> Result<bool, Ending> {
        let too_long = |since: u64| since != 0 && now_ns.saturating_sub(since) > stall_ns_max;
        if self.leaving.is_over(now_ns, stall_ns_max) {
            return Err(hostile(format!("it has not read its replies for {} ms", stall_ns_max / 1_000_000)));
        }
        if self.receiving.is_over(now_ns, stall_ns_max) {
            let ms = stall_ns_max / 1_000_000;
            return Err(hostile(match (self.awaits_bulk, &self.bulk) {
                (true, None) => "it requested bulk but opened no stream for it".to_owned(),
                (true, Some(_)) => format!("the bulk of a request has not arrived for {ms} ms"),
                _ => format!("it stopped in the middle of a message for {ms} ms"),
            }));
        }
        if let (Some(bulk), false) = (&self.bulk, self.awaits_bulk) {
            let mut byte = [0; 1];
            match rustix::net::recv(bulk, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(Ending::Gone),
                Ok(_) if self.orphan_since_ns == 0 => self.orphan_since_ns = now_ns.max(1),
                Ok(_) => {}
                Err(_) => self.orphan_since_ns = 0,
            }
            if too_long(self.orphan_since_ns) {
                return Err(hostile("bulk arrived that no request announced"));
            }
        }
        Ok(self.leaving.since_ns != 0 || self.receiving.since_ns != 0 || self.bulk.is_some())
    }
}
