//! The driver of one worker.

use std::sync::Arc;

use driver::polled::InFlight;
use driver::{
    Arena, Completions, Driver, Error, FINDINGS_MAX, Findings, Opened, Operation, PageSize, Secret,
    Submitted, Tally, Wait,
};
use rpc::client::{self, Channel, ChannelRequest, EndpointRequest, Reaper};
use rpc::{Poll, SocketPlan};
use vos::Redundancy;

use crate::plan::{ObjectOp, ObjectPlan};

use vos::erasure::Striping;
use vos::model::{Key, ObjectId};
use vos::placement::Placement;

use super::geometry::Geometry;
use super::watch::{PARTS, Watch};
use crate::{ObjectOperation, OpenRequest};
use object_service::wire::Handle;
use object_service::{INLINE_BYTES_MAX, Location};

/// The worker's buffers.
pub(super) const VALUES: u32 = 0;
/// Memory of requests for replies that are no values.
pub(super) const SCRATCH: u32 = 1;
/// Copies of the worker's buffers, where they are not used themselves.
pub(super) const STAGING: u32 = 2;

/// Note about an engine of an older version.
const UNTIMED: &str = "the engine has an older version that does not report its own times: --split-latency shows \
                       only submission and completion; start this version of strata there";

/// Arguments that a driver is opened with.
pub(super) struct Opening<'a> {
    pub(super) request: &'a OpenRequest,
    pub(super) placement: Placement,
    pub(super) targets: u32,
    pub(super) location: &'a Location,
    pub(super) pool: &'a str,
    pub(super) container: &'a str,
    pub(super) handle: Handle,
    pub(super) secret: Option<&'a Secret>,
    pub(super) zero_copy: bool,
    /// The engine tells what requests take in it.
    pub(super) tells_parts: bool,
    pub(super) timeout_ns: u64,
}

/// An operation in flight.
#[derive(Clone, Copy)]
pub(super) struct Running {
    pub(super) operation: ObjectOperation,
    /// Requests that are not done.
    pub(super) left: u32,
    /// Of them those that found nothing.
    pub(super) missed: u32,
    pub(super) requests: u32,
    /// First error, negated, and the endpoint that it came from.
    pub(super) errno: i32,
    pub(super) failed_at: u32,
    /// Sum of the results of the requests so far; the meaning is the operation's.
    pub(super) sum: u64,
    /// Steps that are behind.
    pub(super) stage: u8,
}

impl Running {
    /// With no request made yet.
    #[inline]
    pub(super) fn new(operation: ObjectOperation) -> Self {
        Self { operation, left: 0, missed: 0, requests: 0, errno: 0, failed_at: 0, sum: 0, stage: 0 }
    }
}

/// The part of a value that a request moves.
#[derive(Clone, Copy, Default)]
pub(super) struct Piece {
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) endpoint: u32,
    /// The copy that is asked for it.
    pub(super) shard: u32,
}

/// Where the lists of a slot stand.
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    pub(super) object: ObjectId,
    pub(super) group: u32,
    pub(super) anchor: [u8; 16],
    pub(super) is_begun: bool,
}

/// Requests of an endpoint that failed.
#[derive(Clone, Copy, Default)]
pub(super) struct Failures {
    pub(super) count: u64,
    pub(super) errno: i32,
}

/// See the module.
pub(super) struct EngineDriver {
    pub(super) channel: Channel,
    pub(super) values: Arc<Arena>,
    pub(super) scratch: Arc<Arena>,
    pub(super) staging: Option<Arc<Arena>>,
    pub(super) handle: Handle,
    pub(super) placement: Placement,
    pub(super) geometry: Geometry,
    pub(super) plan: Arc<ObjectPlan>,
    /// Targets; the number of the metadata's endpoint too.
    pub(super) targets: u32,
    /// Body of a request that opens the container.
    pub(super) open_request: Vec<u8>,
    pub(super) running: Vec<Running>,
    pub(super) pieces: Vec<Piece>,
    pub(super) cursors: Vec<Cursor>,
    pub(super) depth: u32,
    pub(super) in_flight: InFlight,
    pub(super) sequence: u64,
    pub(super) failures: Vec<Failures>,
    /// Operations whose data was damaged, and the endpoint that said so.
    pub(super) damaged: Findings<(ObjectOperation, u32)>,
    /// How arrays lie in cells, where the class has parity.
    pub(super) striping: Option<Striping>,
    /// Values that came from another copy than the first, or were put together from cells of parity.
    pub(super) repaired: u64,
    /// Arrays are opened for each transfer, and that reads their attributes.
    pub(super) reopens: bool,
    pub(super) watch: Watch,
    tells_parts: bool,
    labels: Vec<String>,
    timeout_ns: u64,
}

/// Whether tag 0 is asked in the load itself.
fn asks_metadata(plan: &ObjectPlan) -> bool {
    plan.any(|operation| matches!(operation, ObjectOp::OpenContainer | ObjectOp::AllocateIds))
}

fn channel_of(
    opening: &Opening<'_>,
    regions: &[Arc<Arena>],
    fan: u32,
) -> Result<(Channel, Vec<String>), Error> {
    let request = opening.request;
    let plan = &request.plan;
    let targets = opening.targets;
    let value_bytes = plan.dataset.value_size_bytes_max.max(plan.short_read_bytes.unwrap_or(0));
    let has_bulk = value_bytes > INLINE_BYTES_MAX as u64;
    let mut endpoints: Vec<_> = (0..targets)
        .map(|target| EndpointRequest { plan: opening.location.endpoint(2 + target), has_bulk })
        .collect();
    if asks_metadata(plan) {
        endpoints.push(EndpointRequest { plan: opening.location.endpoint(0), has_bulk: false });
    }
    let requests = plan.load.depth * fan;
    Channel::open(&ChannelRequest {
        endpoints,
        connections: 1,
        pipeline: requests,
        depth: requests,
        slots: request.arena.slots() * fan,
        copied_bytes: super::issue::HEAD_BYTES_MAX + INLINE_BYTES_MAX,
        bulk_bytes_max: if has_bulk { value_bytes } else { 0 },
        regions: regions.to_vec(),
        poll: Poll::Adaptive,
        timeout_ns: opening.timeout_ns,
        socket: SocketPlan { no_delay: true, ..SocketPlan::default() },
        secret: opening.secret.cloned(),
        interrupt: Arc::clone(&request.interrupt),
    })
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Opened<ObjectOperation>, Error> {
    let request = opening.request;
    let plan = &request.plan;
    super::geometry::check(plan, &opening.placement)?;
    let targets = opening.targets;
    let geometry = Geometry::new(plan, &opening.placement, targets);
    let values = Arc::clone(&request.arena);
    let slots = values.slots();
    let scratch = Arc::new(Arena::new(slots * geometry.fan, geometry.scratch_bytes, PageSize::Base)?);
    let striping = match opening.placement.redundancy() {
        Redundancy::ErasureCoded { data, .. } => Some(Striping::new(usize::from(data))),
        Redundancy::None | Redundancy::Replicated(_) => None,
    };
    let staging = (!opening.zero_copy)
        .then(|| Arena::new(slots, values.slot_bytes(), PageSize::Base).map(Arc::new))
        .transpose()?;
    let mut regions = vec![Arc::clone(&values), Arc::clone(&scratch)];
    regions.extend(staging.clone());
    let (channel, mut notes) = channel_of(opening, &regions, geometry.fan)?;
    let nothing = ObjectOperation {
        slot: 0,
        operation: ObjectOp::OpenWithAttr,
        is_short_good: false,
        record: 0,
        object: ObjectId::default(),
        dkey: Key::EMPTY,
        akey: Key::EMPTY,
        offset_bytes: 0,
        value_bytes: 0,
    };
    let idle = Running::new(nothing);
    let driver = EngineDriver {
        channel,
        values,
        scratch,
        staging,
        handle: opening.handle,
        placement: opening.placement,
        geometry,
        plan: Arc::clone(plan),
        targets,
        open_request: object_service::open_request(opening.pool, opening.container),
        running: vec![idle; slots as usize],
        pieces: vec![Piece::default(); (slots * geometry.fan) as usize],
        cursors: vec![Cursor::default(); slots as usize],
        depth: plan.load.depth,
        in_flight: InFlight::new(slots, &request.interrupt),
        sequence: 0,
        failures: vec![Failures::default(); targets as usize + 1],
        damaged: Findings::new(),
        striping,
        repaired: 0,
        reopens: plan.reopens_arrays(),
        watch: Watch::default(),
        tells_parts: opening.tells_parts,
        labels: (0..targets).map(|target| opening.location.endpoint(2 + target).label).collect(),
        timeout_ns: opening.timeout_ns,
    };
    if plan.load.split_latency && !opening.tells_parts {
        notes.push(UNTIMED.to_owned());
    }
    Ok(Opened { driver: Box::new(driver), notes })
}

impl EngineDriver {
    fn label(&self, endpoint: usize) -> &str {
        self.labels.get(endpoint).map_or("the pools endpoint", String::as_str)
    }

    /// Notes what the engine says of a request that is done; those that are handed over together are done at one time.
    #[cold] // Keeps it out of the way of the runs that do not ask for it.
    fn note_times(&mut self, number: u32, is_first: bool) {
        if is_first {
            self.watch.now_ns = self.channel.now_ns();
        }
        self.watch.came(number, self.channel.server_times(number));
    }
}

impl Reaper for EngineDriver {
    #[inline]
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        self.in_flight.count()
    }

    /// Takes in the requests that are done, starts what follows from them, and moves operations out as far as there is room.
    #[inline]
    fn hand_over(&mut self, done: &mut Completions) {
        let mut is_any = false;
        while let Some(each) = self.channel.pop() {
            if self.watch.is_on() {
                self.note_times(each.slot, !is_any);
            }
            self.take_in(&each);
            is_any = true;
        }
        if is_any {
            self.channel.flush();
        }
        self.in_flight.hand_over(done);
    }
}

impl Driver<ObjectOperation> for EngineDriver {
    fn submit(&mut self, batch: &[ObjectOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let now_ns = self.channel.now_ns();
        let room = (self.depth - self.in_flight.count()) as usize;
        let taken = &batch[..batch.len().min(room)];
        for operation in taken {
            if operation.slot() as usize >= self.running.len() {
                done.push(operation.slot(), -i64::from(libc::EINVAL));
                continue;
            }
            self.in_flight.begin();
            self.begin(operation, now_ns);
        }
        self.channel.flush();
        Ok(Submitted { accepted: taken.len() })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        client::reap(self, wait, done)
    }

    fn cause(&self, slot: u32, result: i64) -> Option<String> {
        let errno = i32::try_from(result.saturating_neg()).ok()?;
        let running = self.running.get(slot as usize).filter(|running| running.errno == -errno)?;
        let error = std::io::Error::from_raw_os_error(errno);
        let label = self.label(running.failed_at as usize);
        match errno {
            libc::ETIMEDOUT => {
                let limit = std::time::Duration::from_nanos(self.timeout_ns);
                let remedy = "use a longer --timeout, or find out what blocks the engine";
                Some(format!("{error}: {label} did not answer within {limit:?}; {remedy}"))
            }
            libc::ECONNRESET | libc::EPIPE | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH => {
                let remedy = "check that the engine still runs";
                Some(format!("{error}: the connection to {label} was lost; {remedy}"))
            }
            _ => None,
        }
    }

    fn latency_parts(&self) -> &'static [&'static str] {
        if self.tells_parts { PARTS } else { &[] }
    }

    fn time_parts(&mut self) {
        self.watch.turn_on(self.running.len(), self.pieces.len());
    }

    fn part_times_ns(&self, slot: u32) -> &[u64] {
        self.watch.times_ns(slot)
    }

    fn tallies(&mut self) -> Vec<Tally> {
        let mut tallies = self.channel.tallies();
        let failed = self.failures.iter().enumerate().filter(|(_, failures)| failures.count > 0);
        tallies.extend(failed.map(|(part, failures)| Tally {
            part,
            name: "failed_requests",
            value: failures.count as f64,
        }));
        tallies.push(Tally { part: 0, name: "values_repaired", value: self.repaired as f64 });
        tallies
    }

    fn findings(&mut self) -> Vec<String> {
        let damaged = self.damaged.iter().map(|(operation, endpoint)| {
            let ObjectOperation { object, dkey, akey, .. } = operation;
            let place = self.label(*endpoint as usize);
            format!("object {object} dkey {dkey} akey {akey}: checksum mismatch reported by {place}")
        });
        let lost = self.failures.iter().enumerate().filter(|(_, failures)| failures.count > 0);
        let lost = lost.map(|(endpoint, failures)| {
            let why = std::io::Error::from_raw_os_error(failures.errno);
            format!("{}: {} requests failed: {why}", self.label(endpoint), failures.count)
        });
        damaged.chain(lost).take(FINDINGS_MAX).collect()
    }
}
