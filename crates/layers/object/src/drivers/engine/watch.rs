//! Where an operation spends its time: the parts of its latency, for `--split-latency`.

use rpc::wire::ServerTimes;

/// Parts, in the order in which a request has them. What bulk takes, and waits that the engine cannot see, are the network's.
pub(super) const PARTS: &[&str] = &["network", "queue", "service", "storage"];

/// Times of the operations of all slots. It takes no time unless it was asked to.
#[derive(Debug, Default)]
pub(super) struct Watch {
    is_on: bool,
    /// When the requests were handed over that are being taken in.
    pub(super) now_ns: u64,
    /// When the present step of the operation of each slot began.
    begun_ns: Vec<u64>,
    times_ns: Vec<[u64; PARTS.len()]>,
    /// Times that engines said of each request, of all its tries together.
    requests: Vec<ServerTimes>,
}

impl Watch {
    /// Begins to time the operations of so many slots and the requests of as many numbers.
    pub(super) fn turn_on(&mut self, slots: usize, numbers: usize) {
        self.is_on = true;
        self.begun_ns = vec![0; slots];
        self.times_ns = vec![[0; PARTS.len()]; slots];
        self.requests = vec![ServerTimes::default(); numbers];
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Begins a new operation.
    #[inline]
    pub(super) fn reset(&mut self, slot: u32) {
        if self.is_on {
            self.times_ns[slot as usize] = [0; PARTS.len()];
        }
    }

    /// A request begins under a number, the first of a step of its operation or not.
    #[inline]
    pub(super) fn begins(&mut self, slot: u32, number: u32, is_first: bool, now_ns: u64) {
        if !self.is_on {
            return;
        }
        self.requests[number as usize] = ServerTimes::default();
        if is_first {
            self.begun_ns[slot as usize] = now_ns;
        }
    }

    /// A try of a request is done.
    #[inline]
    pub(super) fn came(&mut self, number: u32, times: ServerTimes) {
        let request = &mut self.requests[number as usize];
        request.queue_ns += times.queue_ns;
        request.service_ns += times.service_ns;
        request.storage_ns += times.storage_ns;
    }

    /// A step ends with a request, the last one of those that ran beside each other: it is the one that was waited for.
    #[inline]
    pub(super) fn ends(&mut self, slot: u32, number: u32) {
        if !self.is_on {
            return;
        }
        let whole_ns = self.now_ns.saturating_sub(self.begun_ns[slot as usize]);
        let ServerTimes { queue_ns, service_ns, storage_ns } = self.requests[number as usize];
        let storage_ns = storage_ns.min(whole_ns);
        let service_ns = service_ns.min(whole_ns - storage_ns);
        let queue_ns = queue_ns.min(whole_ns - storage_ns - service_ns);
        let parts = [whole_ns - storage_ns - service_ns - queue_ns, queue_ns, service_ns, storage_ns];
        self.times_ns[slot as usize].iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
    }

    /// Time of each part of the operation that has ended.
    pub(super) fn times_ns(&self, slot: u32) -> &[u64] {
        self.times_ns.get(slot as usize).map_or(&[], |times| times.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_steps_and_the_last_request_counts() {
        let mut watch = Watch::default();
        watch.turn_on(2, 6);
        let said = |queue_ns, service_ns| ServerTimes { queue_ns, service_ns, storage_ns: service_ns / 10 };
        watch.reset(1);
        // Two requests beside each other; the second is done last, at its second try.
        watch.begins(1, 3, true, 100);
        watch.begins(1, 4, false, 100);
        watch.came(4, said(5, 10));
        watch.came(3, said(0, 300));
        watch.came(4, said(20, 200));
        watch.now_ns = 500;
        watch.ends(1, 4);
        assert_eq!(watch.times_ns(1), [400 - 25 - 210 - 21, 25, 210, 21]);
        // The next step, whose server says more than there was.
        watch.begins(1, 3, true, 510);
        watch.came(3, said(1000, 40));
        watch.now_ns = 610;
        watch.ends(1, 3);
        assert_eq!(watch.times_ns(1), [400 - 25 - 210 - 21, 25 + 56, 210 + 40, 21 + 4]);
        assert_eq!(watch.times_ns(1).iter().sum::<u64>(), 400 + 100);
        watch.reset(1);
        assert_eq!((watch.times_ns(1), watch.times_ns(9)), (&[0, 0, 0, 0][..], &[][..]));
    }
}
