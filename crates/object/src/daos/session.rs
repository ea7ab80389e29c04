//! The library in use, a pool and containers: each given back when the last user goes.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

use driver::Error;

use super::abi::{CONTAINER_READ_WRITE, ContainerInfo, Handle, POOL_READ_WRITE};
use super::errors::failed;
use super::library::{Api, api};

/// A connection to a pool.
pub(crate) struct Pool {
    pub(crate) api: &'static Api,
    pub(crate) handle: Handle,
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: a handle of ours; containers hold the pool, so none is open.
        unsafe {
            (self.api.daos_pool_disconnect)(self.handle, std::ptr::null_mut());
            (self.api.daos_fini)();
        }
    }
}

impl Pool {
    /// Connects to a pool by its label or UUID.
    ///
    /// # Errors
    /// When the library is missing, the agent does not answer, or there is no such pool.
    pub(crate) fn connect(pool: &str, system: Option<&str>) -> Result<Self, Error> {
        let api = api()?;
        let text = |words: &str| {
            CString::new(words).map_err(|_| Error::usage("daos", format!("{words:?} has a NUL in it")))
        };
        let (name, group) = (text(pool)?, system.map(text).transpose()?);
        let group = group.as_ref().map_or(std::ptr::null(), |group| group.as_ptr());
        // SAFETY: no arguments; counted by the library.
        let code = unsafe { (api.daos_init)() };
        if code != 0 {
            return Err(failed("libdaos does not start", code)
                .remedy("see whether daos_agent runs here and DAOS_AGENT_DRPC_DIR is its directory"));
        }
        let mut handle = Handle::default();
        let none = std::ptr::null_mut();
        let connect = api.daos_pool_connect2;
        // SAFETY: strings, a place for the handle; nothing else is asked for.
        let code = unsafe {
            connect(name.as_ptr(), group, POOL_READ_WRITE, &raw mut handle, none, std::ptr::null_mut())
        };
        if code == 0 {
            return Ok(Self { api, handle });
        }
        // SAFETY: as often as it was started.
        unsafe { (api.daos_fini)() };
        let error = failed("cannot connect to the pool", code).with("pool", pool);
        Err(match code {
            -1005 => error.remedy("pools are listed by: dmg pool list"),
            -1001 => error.remedy("see its access list: dmg pool get-acl"),
            _ => error,
        })
    }

    /// Makes a container; the result is the library's.
    pub(crate) fn create(&self, label: &CStr) -> Result<String, c_int> {
        let none = std::ptr::null_mut();
        let create = self.api.daos_cont_create_with_label;
        let mut uuid = [0_u8; 16];
        let place = uuid.as_mut_ptr().cast();
        // SAFETY: a string and a place for the UUID; no properties.
        let code = unsafe { create(self.handle, label.as_ptr(), none, place, std::ptr::null_mut()) };
        if code == 0 { Ok(hexadecimal(&uuid)) } else { Err(code) }
    }

    /// UUID of a container; the error is the library's.
    pub(crate) fn id_of(self: &Arc<Self>, label: &CStr) -> Result<String, c_int> {
        Container::open(self, label).map(|container| hexadecimal(&container.uuid))
    }

    /// Destroys a container that nobody has open; the result is the library's.
    pub(crate) fn destroy(&self, label: &CStr) -> c_int {
        // SAFETY: a string.
        unsafe { (self.api.daos_cont_destroy2)(self.handle, label.as_ptr(), 0, std::ptr::null_mut()) }
    }
}

/// An open container.
pub(crate) struct Container {
    pub(crate) pool: Arc<Pool>,
    pub(crate) label: CString,
    pub(crate) handle: Handle,
    uuid: [u8; 16],
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Drop for Container {
    fn drop(&mut self) {
        // SAFETY: a handle of ours; workers hold the container.
        unsafe { (self.pool.api.daos_cont_close)(self.handle, std::ptr::null_mut()) };
    }
}

impl Container {
    /// Opens a container; the error is the library's.
    pub(crate) fn open(pool: &Arc<Pool>, label: &CStr) -> Result<Self, c_int> {
        let (mut handle, mut info) = (Handle::default(), ContainerInfo::default());
        let open = pool.api.daos_cont_open2;
        let (place, told) = (&raw mut handle, &raw mut info);
        // SAFETY: a string and places for handle and facts.
        let code = unsafe {
            open(pool.handle, label.as_ptr(), CONTAINER_READ_WRITE, place, told, std::ptr::null_mut())
        };
        if code == 0 {
            Ok(Self { pool: pool.clone(), label: label.to_owned(), handle, uuid: info.uuid })
        } else {
            Err(code)
        }
    }
}
