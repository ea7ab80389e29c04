//! The service that measurements are made against.

use crate::payload::{Content, Direction};
use crate::service::{Answer, BulkReply, BulkSink, Call, Service};
use crate::wire::{flag, opcode};

/// Replies as each request asks. With [`flag::VERIFY`] it checks what came and makes what goes; without, it looks at no payload, and what
/// it replies inline is zero.
#[derive(Clone, Debug)]
pub struct Measure {
    content: Content,
}

impl Measure {
    /// A service for one endpoint.
    #[must_use]
    pub fn new() -> Self {
        Self { content: Content::new(0) }
    }

    fn verify(&mut self, call: &Call<'_>, answer: &mut Answer<'_>, bulk_bytes: usize) -> i32 {
        self.content.turn_to(call.seed);
        for came in [call.inline, call.bulk] {
            if self.content.check(Direction::Request, call.sequence, came).is_err() {
                return -libc::EBADMSG;
            }
        }
        self.content.fill(Direction::Reply, call.sequence, answer.inline.as_mut_slice());
        self.content.fill(Direction::Reply, call.sequence, &mut answer.scratch[..bulk_bytes]);
        0
    }
}

impl Default for Measure {
    fn default() -> Self {
        Self::new()
    }
}

impl Service for Measure {
    #[inline]
    fn call(&mut self, call: &Call<'_>, answer: &mut Answer<'_>) -> i32 {
        if call.opcode != opcode::MEASURE {
            return -libc::EOPNOTSUPP;
        }
        // The transport holds requests to its limits before they come here.
        let (Ok(inline_bytes), Ok(bulk_bytes)) =
            (usize::try_from(call.reply_inline_bytes), usize::try_from(call.reply_bulk_bytes))
        else {
            return -libc::EMSGSIZE;
        };
        if bulk_bytes > answer.scratch.len() {
            return -libc::EMSGSIZE;
        }
        let Some(inline) = answer.inline.add(inline_bytes) else { return -libc::EMSGSIZE };
        inline.fill(0);
        if call.flags & flag::VERIFY != 0 {
            let status = self.verify(call, answer, bulk_bytes);
            if status != 0 {
                answer.inline.clear();
                return status;
            }
        }
        if bulk_bytes > 0 {
            answer.bulk = BulkReply::Scratch(bulk_bytes);
        }
        0
    }
}

/// Several services behind one endpoint, each with a range of opcodes: measuring beside a store.
#[derive(Default)]
pub struct Services {
    entries: Vec<(std::ops::RangeInclusive<u16>, Box<dyn Service>)>,
}

impl Services {
    /// None yet: every request is refused.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service for `opcodes`. Where ranges overlap, the one that was added first answers.
    #[must_use]
    pub fn with(mut self, opcodes: std::ops::RangeInclusive<u16>, service: Box<dyn Service>) -> Self {
        self.entries.push((opcodes, service));
        self
    }
}

impl Service for Services {
    #[inline]
    fn call(&mut self, call: &Call<'_>, answer: &mut Answer<'_>) -> i32 {
        match self.entries.iter_mut().find(|(opcodes, _)| opcodes.contains(&call.opcode)) {
            Some((_, service)) => service.call(call, answer),
            None => -libc::EOPNOTSUPP,
        }
    }

    fn sink(&mut self, call: &Call<'_>, bulk_bytes: usize) -> Option<Box<dyn BulkSink>> {
        let (_, service) = self.entries.iter_mut().find(|(opcodes, _)| opcodes.contains(&call.opcode))?;
        service.sink(call, bulk_bytes)
    }

    fn defer(&mut self) -> bool {
        // All of them, whatever the first one says.
        self.entries.iter_mut().fold(false, |any, (_, service)| service.defer() | any)
    }

    fn is_unsettled(&self) -> bool {
        self.entries.iter().any(|(_, service)| service.is_unsettled())
    }

    fn storage_wait_ns(&self) -> u64 {
        self.entries.iter().map(|(_, service)| service.storage_wait_ns()).max().unwrap_or(0)
    }

    fn settle(&mut self) -> i32 {
        let each = self.entries.iter_mut().map(|(_, service)| service.settle());
        each.fold(0, |first, status| if first == 0 { status } else { first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inline;

    struct Reply {
        status: i32,
        inline: Vec<u8>,
        scratch: Vec<u8>,
        bulk_bytes: usize,
    }

    fn call(service: &mut dyn Service, call: &Call<'_>) -> Reply {
        let (mut room, mut scratch) = (vec![0xaa; 10_000], vec![0xaa; 10_000]);
        let inline = Inline::new(&mut room);
        let mut answer = Answer { inline, scratch: &mut scratch, bulk: BulkReply::None };
        let status = service.call(call, &mut answer);
        let bulk_bytes = match answer.bulk {
            BulkReply::Scratch(bytes) => bytes,
            BulkReply::None => 0,
            BulkReply::Shared(..) => unreachable!("a measurement has no memory of its own"),
        };
        let inline = answer.inline.as_mut_slice().to_vec();
        Reply { status, inline, scratch, bulk_bytes }
    }

    fn measure<'a>(flags: u16, inline: &'a [u8], bulk: &'a [u8], reply: (u64, u64)) -> Call<'a> {
        Call {
            opcode: opcode::MEASURE,
            flags,
            sequence: 41,
            seed: 5,
            inline,
            bulk,
            reply_inline_bytes: reply.0,
            reply_bulk_bytes: reply.1,
        }
    }

    #[test]
    fn replies_are_as_large_as_asked_and_untouched_unless_checked() {
        let reply = call(&mut Measure::new(), &measure(0, b"whatever", &[], (100, 5000)));
        assert_eq!((reply.status, reply.inline.len(), reply.bulk_bytes), (0, 100, 5000));
        assert!(reply.scratch.iter().all(|&byte| byte == 0xaa));
        let reply = call(&mut Measure::new(), &measure(0, &[], &[], (0, 0)));
        assert_eq!((reply.status, reply.inline.len(), reply.bulk_bytes), (0, 0, 0));
    }

    #[test]
    fn with_verify_both_directions_are_the_content() {
        let mut content = Content::new(5);
        let mut request = vec![0; 6000];
        content.fill(Direction::Request, 41, &mut request);
        let reply = call(&mut Measure::new(), &measure(flag::VERIFY, &request[..64], &request, (300, 9000)));
        assert_eq!((reply.status, reply.bulk_bytes), (0, 9000));
        assert_eq!(content.check(Direction::Reply, 41, &reply.inline), Ok(()));
        assert_eq!(content.check(Direction::Reply, 41, &reply.scratch[..9000]), Ok(()));
    }

    #[test]
    fn damage_is_told() {
        let mut request = vec![0; 6000];
        Content::new(5).fill(Direction::Request, 41, &mut request);
        request[5999] ^= 1;
        let reply = call(&mut Measure::new(), &measure(flag::VERIFY, &[], &request, (300, 9000)));
        assert_eq!((reply.status, reply.inline.len(), reply.bulk_bytes), (-libc::EBADMSG, 0, 0));
        let reply = call(&mut Measure::new(), &measure(0, &[], &request, (0, 0)));
        assert_eq!(reply.status, 0, "nobody asked for a check");
    }

    #[test]
    fn what_does_not_fit_or_is_another_service_is_refused() {
        let reply = call(&mut Measure::new(), &measure(0, &[], &[], (0, 10_001)));
        assert_eq!((reply.status, reply.bulk_bytes), (-libc::EMSGSIZE, 0));
        let other = Call { opcode: opcode::SERVICE_FIRST, ..measure(0, &[], &[], (0, 0)) };
        assert_eq!(call(&mut Measure::new(), &other).status, -libc::EOPNOTSUPP);
    }

    #[test]
    fn services_share_an_endpoint_by_opcode() {
        struct Store;
        impl Service for Store {
            fn call(&mut self, _call: &Call<'_>, answer: &mut Answer<'_>) -> i32 {
                answer.inline.extend_from_slice(b"stored");
                0
            }
        }
        let first = opcode::SERVICE_FIRST;
        let mut services = Services::new()
            .with(opcode::MEASURE..=opcode::MEASURE, Box::new(Measure::new()))
            .with(first..=first + 9, Box::new(Store));
        assert_eq!(call(&mut services, &measure(0, &[], &[], (3, 0))).inline.len(), 3);
        let at = |opcode| Call { opcode, ..measure(0, &[], &[], (0, 0)) };
        assert_eq!(call(&mut services, &at(first + 9)).inline, b"stored");
        assert_eq!(call(&mut services, &at(first + 10)).status, -libc::EOPNOTSUPP);
    }
}
