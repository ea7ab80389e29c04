//! `tcp`: measurements over sockets, many in flight on each connection; bulk on a stream of its own.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use driver::{
    Capabilities, Completions, Driver, Error, Opened, Operation, Registration, Submitted, Tally, Wait,
};
use rpc::EndpointPlan;

use crate::{OpenRequest, Rpc};
use rpc::client::{
    self, Channel, ChannelRequest, DEPTH_MAX, Done, EndpointRequest, Reaper, Request, Started, Stretch,
};
use rpc::wire::{flag, opcode};

const CAPABILITIES: Capabilities = Capabilities {
    classes: Rpc::CLASSES,
    asynchronous: true,
    depth_max: DEPTH_MAX,
    targetless: false,
    direct: false,
    options: &["zero-copy", "send-buffer", "receive-buffer", "no-delay", "bind-device", "bind-address"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<Rpc, OpenRequest> = Registration {
    name: "tcp",
    summary: "TCP sockets, pipelined; bulk on a separate stream",
    capabilities: CAPABILITIES,
    open,
};

const INVALID: i64 = -(libc::EINVAL as i64);

/// See the module.
struct Tcp {
    channel: Channel,
    /// Every request, but for slot, endpoint and number.
    template: Request<'static>,
    depth: u32,
    request_bytes: u64,
}

fn open(request: &OpenRequest) -> Result<Opened<Rpc>, Error> {
    request.check(CAPABILITIES.depth_max)?;
    let (sends, asks) = (&request.request, &request.reply);
    let stretch = |offset_bytes: usize, bytes: u64| Stretch {
        offset_bytes,
        length_bytes: bytes as usize,
        ..Stretch::default()
    };
    let has_bulk = sends.bulk_bytes() + asks.bulk_bytes() > 0;
    let place = |plan: &EndpointPlan| EndpointRequest { plan: plan.clone(), has_bulk };
    let (channel, notes) = Channel::open(&ChannelRequest {
        endpoints: request.endpoints.iter().map(place).collect(),
        connections: request.connections,
        pipeline: request.pipeline,
        depth: request.depth,
        slots: request.arena.slots(),
        copied_bytes: sends.iov_bytes() as usize,
        bulk_bytes_max: sends.bulk_bytes(),
        regions: vec![Arc::clone(&request.arena)],
        poll: request.poll,
        timeout_ns: request.timeout_ns,
        socket: request.socket.clone(),
        secret: request.secret.clone(),
        interrupt: Arc::clone(&request.interrupt),
    })?;
    let layout = request.layout;
    let template = Request {
        slot: 0,
        endpoint: 0,
        opcode: opcode::MEASURE,
        flags: if request.verify { flag::VERIFY } else { 0 },
        sequence: 0,
        seed: request.seed,
        head: &[],
        inline: stretch(layout.request_offset_bytes, sends.iov_bytes()),
        bulk: stretch(layout.request_offset_bytes, sends.bulk_bytes()),
        reply: stretch(layout.reply_offset_bytes, asks.size_bytes),
        reply_inline_bytes: asks.iov_bytes(),
        reply_bulk_bytes: asks.bulk_bytes(),
    };
    let driver = Tcp { channel, template, depth: request.depth, request_bytes: sends.size_bytes };
    Ok(Opened { driver: Box::new(driver), notes })
}

impl Tcp {
    fn request_of(&self, rpc: &Rpc) -> Request<'static> {
        let own = |stretch: Stretch| Stretch { slot: rpc.slot, ..stretch };
        let all = &self.template;
        Request {
            slot: rpc.slot,
            endpoint: rpc.endpoint,
            sequence: rpc.sequence,
            inline: own(all.inline),
            bulk: own(all.bulk),
            reply: own(all.reply),
            ..*all
        }
    }

    fn result_of(&self, done: &Done) -> i64 {
        let came = (done.inline_bytes, done.bulk_bytes);
        match done.status {
            0 if came == (self.template.reply_inline_bytes, self.template.reply_bulk_bytes) => {
                (self.request_bytes + done.inline_bytes + done.bulk_bytes) as i64
            }
            // Less than was asked for is no success, whatever the engine says.
            0 => -i64::from(libc::EBADMSG),
            status => i64::from(status),
        }
    }
}

impl Reaper for Tcp {
    #[inline]
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        self.channel.in_flight()
    }

    #[inline]
    fn hand_over(&mut self, done: &mut Completions) {
        while done.room() > 0 {
            let Some(each) = self.channel.pop() else { break };
            done.push(each.slot, self.result_of(&each));
        }
    }
}

impl Driver<Rpc> for Tcp {
    fn submit(&mut self, batch: &[Rpc], done: &mut Completions) -> Result<Submitted, Error> {
        let now_ns = self.channel.now_ns();
        let room = (self.depth - self.channel.in_flight()) as usize;
        let mut accepted = 0;
        for rpc in &batch[..batch.len().min(room)] {
            match self.channel.start(&self.request_of(rpc), now_ns) {
                Started::Taken => {}
                Started::Busy => break,
                Started::Invalid => done.push(rpc.slot, INVALID),
            }
            accepted += 1;
        }
        self.channel.flush();
        Ok(Submitted { accepted })
    }

    fn event(&mut self) -> Result<Option<BorrowedFd<'_>>, Error> {
        Ok(Some(self.channel.event()))
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        client::reap(self, wait, done)
    }

    fn tallies(&mut self) -> Vec<Tally> {
        self.channel.tallies()
    }
}
