//! The embedded store behind an engine.

mod client;
mod store;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use driver::{Error, Secret};
use object_service::wire::{Handle, Request};
use object_service::{Engine, Location};
use parking_lot::{Mutex, RwLock};
use rustix::io::Errno;
use vos::Checksum;
use vos::model::ObjectId;
use vos::placement::Placement;

use client::{Client, Opening, Payload, Reply, is_lost};

use crate::layout::is_flat;

/// Connections that are kept for the next requests.
const IDLE_MAX: usize = 64;

/// Arguments that a container of an engine is opened with.
pub(crate) struct Connecting<'a> {
    pub(crate) location: Location,
    pub(crate) pool: &'a str,
    pub(crate) container: &'a str,
    pub(crate) secret: Option<&'a Secret>,
    pub(crate) timeout: Duration,
    /// It is made where it is not there.
    pub(crate) create: Option<Checksum>,
}

/// A container of a pool of an engine.
pub(crate) struct EngineStore {
    location: Location,
    pool: String,
    container: String,
    /// By what the container is known again.
    uuid: String,
    targets: u32,
    value_bytes_max: usize,
    secret: Option<Secret>,
    timeout: Duration,
    handle: RwLock<Handle>,
    idle: Mutex<Vec<Client>>,
    /// The engine was started again since that was asked last.
    has_restarted: AtomicBool,
    findings: Mutex<driver::Findings>,
}

impl EngineStore {
    /// Connects, and opens the container.
    pub(crate) fn connect(connecting: Connecting<'_>) -> Result<Self, Error> {
        let Connecting { location, pool, container, secret, timeout, create } = connecting;
        let mut engine = Engine::connect(&location, secret, timeout, &AtomicBool::new(false))?;
        let facts = engine.pool(pool)?;
        let is_there = engine.containers(pool)?.iter().any(|info| info.label == container);
        if let (false, Some(checksum)) = (is_there, create) {
            // Another client may have made it meanwhile: it is there then.
            let made = engine.create_container(pool, container, checksum, None).map(drop);
            made.or_else(|error| engine.container(pool, container).map(drop).map_err(|_| error))?;
        }
        let info = engine.container(pool, container)?;
        let handle = engine.open_container(pool, container)?;
        let told = facts.info.value_bytes_max as usize;
        let value_bytes_max =
            if told == 0 { client::VALUE_BYTES_MAX } else { told.min(client::VALUE_BYTES_MAX) };
        Ok(Self {
            location,
            pool: pool.to_owned(),
            container: container.to_owned(),
            uuid: info.uuid,
            targets: facts.info.targets,
            value_bytes_max,
            secret: secret.cloned(),
            timeout,
            handle: RwLock::new(handle),
            idle: Mutex::default(),
            has_restarted: AtomicBool::new(false),
            findings: Mutex::new(driver::Findings::new()),
        })
    }

    fn control(&self) -> Result<Engine, Errno> {
        let connected =
            Engine::connect(&self.location, self.secret.as_ref(), self.timeout, &AtomicBool::new(false));
        connected.map_err(|error| self.lost(&error))
    }

    fn lost(&self, error: &Error) -> Errno {
        self.findings.lock().add(|| error.to_string());
        Errno::IO
    }

    /// Opens the container once more: the engine was started again.
    fn reopen(&self) -> Result<(), Errno> {
        let mut engine = self.control()?;
        let info = engine.container(&self.pool, &self.container).map_err(|error| self.lost(&error))?;
        if info.uuid != self.uuid {
            // Another one of the same label: nothing of this file system is in it.
            return Err(Errno::STALE);
        }
        let handle = engine.open_container(&self.pool, &self.container);
        *self.handle.write() = handle.map_err(|error| self.lost(&error))?;
        self.has_restarted.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn placement(&self, object: ObjectId) -> Result<Placement, Errno> {
        let class = object.class().filter(is_flat).ok_or(Errno::INVAL)?;
        Placement::new(class, self.targets).map_err(|_| Errno::INVAL)
    }

    /// The endpoint of the target of a dkey.
    fn endpoint_of(&self, object: ObjectId, dkey: &[u8]) -> Result<u32, Errno> {
        let placement = self.placement(object)?;
        Ok(placement.target(object, placement.group(dkey), 0))
    }

    /// A connection that nobody uses.
    fn client(&self) -> Result<Client, Errno> {
        if let Some(client) = self.idle.lock().pop() {
            return Ok(client);
        }
        let timeout_ns = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
        let (location, secret) = (&self.location, self.secret.as_ref());
        let opened = Client::open(&Opening { location, targets: self.targets, secret, timeout_ns });
        opened.map_err(|error| self.lost(&error))
    }

    /// Sends a request and waits for the reply. One that changes nothing, or the same again, is `repeatable`: it is sent once more where its connection
    /// was lost, because an engine that was started again leaves old ones behind. The error is the engine's, or `EIO` where there is none.
    fn call<R>(
        &self,
        to: (u32, u16),
        request: &Request<'_>,
        payload: Payload<'_>,
        reply: Reply,
        is_repeatable: bool,
        mut take: impl FnMut(&[u8]) -> R,
    ) -> Result<R, i32> {
        let (mut was_lost, mut was_stale) = (false, false);
        loop {
            let mut client = self.client().map_err(|error| error.raw_os_error())?;
            let request = Request { handle: *self.handle.read(), ..*request };
            match client.call(to, &request, payload, reply, &mut take) {
                Err(libc::ESTALE) if !was_stale => {
                    was_stale = true;
                    self.reopen().map_err(|error| error.raw_os_error())?;
                }
                // The others are as old.
                Err(errno) if is_lost(errno) => {
                    self.idle.lock().clear();
                    if was_lost || !is_repeatable {
                        return Err(libc::EIO);
                    }
                    was_lost = true;
                    continue;
                }
                done => {
                    let mut idle = self.idle.lock();
                    if idle.len() < IDLE_MAX {
                        idle.push(client);
                    }
                    return done;
                }
            }
        }
    }
}
