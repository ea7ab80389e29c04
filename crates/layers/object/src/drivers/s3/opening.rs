//! Opening the driver of a worker.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use driver::polled::InFlight;
use driver::{Arena, Clock as _, Error, ErrorKind, Findings, HostClock, Opened, PageSize};
use rpc::tcp::poller::Poller;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::backend::OpenRequest;
use crate::operation::ObjectOperation;
use crate::s3::{Answers, Names, Own, Site, mark};

use super::slot::Slot;
use super::{Common, DEPTH_MAX, S3};

/// Files that a process has open besides connections.
const OTHER_FILES: u64 = 128;

pub(crate) fn open(
    site: &Arc<Site>,
    request: &OpenRequest,
    threads: u32,
    own: Own,
) -> Result<Opened<ObjectOperation>, Error> {
    let depth = request.arena.slots();
    if depth > DEPTH_MAX {
        return Err(Error::usage("s3", format!("a depth of {depth} is too large for one worker"))
            .remedy(format!("accepted: 1 to {DEPTH_MAX}, with one connection each")));
    }
    make_room_for(u64::from(depth) * u64::from(threads.max(1)))?;
    let plan = &request.plan;
    let poller =
        Poller::new().map_err(|error| Error::system("s3", "cannot create an event descriptor", error))?;
    let is_staged = !plan.options.zero_copy;
    let memory = if is_staged {
        Arc::new(Arena::new(depth, request.arena.slot_bytes(), PageSize::Base)?)
    } else {
        Arc::clone(&request.arena)
    };
    let part_bytes = plan.options.s3_part_size_bytes;
    let largest = plan.dataset.value_size_bytes_max;
    let parts = if part_bytes > 0 && largest >= part_bytes { largest.div_ceil(part_bytes) } else { 0 };
    let clock = HostClock::get();
    let wall_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let now_ns = clock.now_ns();
    let slots = (0..depth as usize).map(|number| {
        // Workers and their connections take turns, so that each server has its share of both.
        let turn = request.worker as usize + number;
        Slot::new(turn % site.endpoints.len(), turn / site.endpoints.len(), parts)
    });
    let driver = S3 {
        slots: slots.collect(),
        common: Common {
            site: Arc::clone(site),
            names: Names::new(site, plan),
            mark: mark(own.run),
            takes_conditions: own.takes_conditions,
            own,
            writer: site.writer(),
            poller,
            answers: Answers::default(),
            arena: Arc::clone(&request.arena),
            memory,
            is_staged,
            list_max: plan.list_max.max(1),
            part_bytes,
            clock,
            now_ns,
            wall_base_ns: wall_ns.saturating_sub(u128::from(now_ns)),
            random: wall_ns as u64 | 1,
            pausing: 0,
            connections: 0,
            in_flight: InFlight::new(depth, &request.interrupt),
            troubles: Findings::new(),
        },
        next_look_ns: 0,
    };
    Ok(Opened { driver: Box::new(driver), notes: Vec::new() })
}

/// Raises the process's limit of open files to what so many connections need.
fn make_room_for(connections: u64) -> Result<(), Error> {
    let needed = connections + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let refuse = || {
        let hard = limit.maximum.map_or_else(|| "no limit".to_owned(), |maximum| maximum.to_string());
        Error::new(ErrorKind::System, "s3", format!("{connections} connections need {needed} open files"))
            .with("limit", hard)
            .remedy("raise the limit (ulimit -Hn), or use fewer threads or a smaller depth")
    };
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        return Err(refuse());
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|_| refuse())
}
