//! The library in use, a pool and containers: each given back when the last user goes.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::Error;

use super::abi::{Anchor, CONTAINER_READ_WRITE, ContainerInfo, Handle, POOL_READ_WRITE, PoolFacts};
use super::calls::{Calls, Patience};
use super::errors::{INVALID, NO_PERMISSION, NONEXISTENT, failed};
use super::library::Api;

/// Snapshots that are asked for at first.
const SNAPSHOTS: usize = 256;

/// A connection to a pool.
pub(crate) struct Pool {
    pub(crate) api: &'static Api,
    pub(crate) handle: Handle,
    pub(crate) calls: Calls,
}

impl Drop for Pool {
    fn drop(&mut self) {
        let handle = self.handle;
        // SAFETY: a handle of ours; containers hold the pool, so none is open.
        let disconnect = |(): &mut (), event| unsafe { (self.api.daos_pool_disconnect)(handle, event) };
        // Where the pool does not answer, the library has calls in flight and is left as it is.
        if self.calls.call(Patience::Brief, (), disconnect).is_ok() && self.calls.end() {
            // SAFETY: as often as it was started; nothing is in flight.
            unsafe { (self.api.daos_fini)() };
        }
    }
}

fn text(words: &str) -> Result<CString, Error> {
    CString::new(words).map_err(|_| Error::usage("daos", format!("{words:?} contains a NUL byte")))
}

impl Pool {
    /// Connects to a pool by its label or UUID. `interrupt` ends the wait for servers that do not answer, of this call and of others.
    ///
    /// # Errors
    /// When the library is missing, the agent or the servers do not answer, or there is no such system or pool.
    pub(crate) fn connect(
        pool: &str,
        system: Option<&str>,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let api = Api::get()?;
        let names = (text(pool)?, system.map(text).transpose()?);
        // SAFETY: no arguments; counted by the library.
        let code = unsafe { (api.daos_init)() };
        if code != 0 {
            return Err(failed("libdaos cannot be initialized", code));
        }
        let calls = Calls::new(api, interrupt)?;
        let connected = calls.call(Patience::Asking, (names, Handle::default()), |(names, handle), event| {
            let group = names.1.as_ref().map_or(std::ptr::null(), |group| group.as_ptr());
            let (none, place) = (std::ptr::null_mut(), &raw mut *handle);
            // SAFETY: strings and a place for the handle, which stay until the event has come; nothing else is asked for.
            unsafe { (api.daos_pool_connect2)(names.0.as_ptr(), group, POOL_READ_WRITE, place, none, event) }
        });
        let code = match connected {
            Ok((_, handle)) => return Ok(Self { api, handle, calls }),
            Err(code) => code,
        };
        if calls.end() {
            // SAFETY: as often as it was started; nothing is in flight.
            unsafe { (api.daos_fini)() };
        }
        let error = failed("cannot connect to the pool", code).with("pool", pool);
        Err(match (code, system) {
            (NONEXISTENT, _) => error.remedy("list the pools with: dmg pool list"),
            (NO_PERMISSION, _) => error.remedy("check its access list: dmg pool get-acl"),
            // The agent answers so when it is asked about a system that is not its own.
            (INVALID, Some(system)) => failed(
                format!("the agent on this host does not know system {system}"),
                code,
            )
            .with("pool", pool)
            .remedy(
                "leave out --daos-system, or set DAOS_AGENT_DRPC_DIR to the directory of that system's agent",
            ),
            _ => error,
        })
    }

    /// Targets, nodes and space.
    ///
    /// # Errors
    /// When the pool does not answer.
    pub(crate) fn query(&self, patience: Patience) -> Result<PoolFacts, Error> {
        let (handle, query) = (self.handle, self.api.daos_pool_query);
        let asked = self.calls.call(patience, PoolFacts::asked(), |facts, event| {
            let (none, place) = (std::ptr::null_mut(), &raw mut *facts);
            // SAFETY: a place for the facts, which stays until the event has come.
            unsafe { query(handle, none, place, none, event) }
        });
        asked.map_err(|code| failed("the pool cannot be queried", code))
    }

    /// Makes a container; the result is the library's.
    pub(crate) fn create(&self, label: &CStr) -> Result<String, c_int> {
        let (handle, create) = (self.handle, self.api.daos_cont_create_with_label);
        let place = (label.to_owned(), [0_u8; 16]);
        let made = self.calls.call(Patience::Asking, place, |(label, uuid), event| {
            let (none, uuid) = (std::ptr::null_mut(), uuid.as_mut_ptr().cast());
            // SAFETY: a string and a place for the UUID, which stay until the event has come; no properties.
            unsafe { create(handle, label.as_ptr(), none, uuid, event) }
        });
        made.map(|(_, uuid)| hexadecimal(&uuid))
    }

    /// Destroys a container that nobody has open; the result is the library's.
    pub(crate) fn destroy(&self, label: &CStr) -> c_int {
        let (handle, destroy) = (self.handle, self.api.daos_cont_destroy2);
        let gone = self.calls.call(Patience::Cleaning, label.to_owned(), |label, event| {
            // SAFETY: a string, which stays until the event has come.
            unsafe { destroy(handle, label.as_ptr(), 0, event) }
        });
        gone.map_or_else(|code| code, |_| 0)
    }
}

/// An open container.
pub(crate) struct Container {
    pub(crate) pool: Arc<Pool>,
    pub(crate) label: CString,
    pub(crate) handle: Handle,
    uuid: [u8; 16],
}

/// Bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Drop for Container {
    fn drop(&mut self) {
        let (handle, close) = (self.handle, self.pool.api.daos_cont_close);
        // SAFETY: a handle of ours; workers hold the container.
        let _ = self.pool.calls.call(Patience::Brief, (), |(), event| unsafe { close(handle, event) });
    }
}

impl Container {
    /// Opens a container; the error is the library's.
    pub(crate) fn open(pool: &Arc<Pool>, label: &CStr, patience: Patience) -> Result<Self, c_int> {
        let open = pool.api.daos_cont_open2;
        let place = (label.to_owned(), Handle::default(), ContainerInfo::default());
        let opened = pool.calls.call(patience, place, |(label, handle, info), event| {
            let (handle, info) = (&raw mut *handle, &raw mut *info);
            // SAFETY: a string and places for handle and facts, which stay until the event has come.
            unsafe { open(pool.handle, label.as_ptr(), CONTAINER_READ_WRITE, handle, info, event) }
        });
        let (label, handle, info) = opened?;
        Ok(Self { pool: pool.clone(), label, handle, uuid: info.uuid })
    }

    /// Epochs of its snapshots, oldest first; the error is the library's.
    pub(crate) fn snapshots(&self) -> Result<Vec<u64>, c_int> {
        let (handle, list) = (self.handle, self.pool.api.daos_cont_list_snap);
        let mut room = SNAPSHOTS;
        loop {
            let place = (vec![0_u64; room], room as c_int, Anchor::START);
            let listed =
                self.pool.calls.call(Patience::Asking, place, |(epochs, count, anchor), event| {
                    let (count, anchor) = (&raw mut *count, &raw mut *anchor);
                    // SAFETY: places for so many epochs, their number and an anchor, which stay until the event has come; names are not asked for.
                    unsafe { list(handle, count, epochs.as_mut_ptr(), std::ptr::null_mut(), anchor, event) }
                })?;
            let (mut epochs, count, _) = listed;
            // How many there are, also where there was room for fewer.
            let count = usize::try_from(count).unwrap_or(0);
            if count <= room {
                epochs.truncate(count);
                epochs.sort_unstable();
                return Ok(epochs);
            }
            room = count;
        }
    }

    /// Its UUID, in hexadecimal digits.
    pub(crate) fn id(&self) -> String {
        hexadecimal(&self.uuid)
    }
}
