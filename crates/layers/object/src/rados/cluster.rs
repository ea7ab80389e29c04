//! A connection to a cluster, and pools of it.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use ceph::{Access, Handle};

use crate::plan::ObjectOptions;
pub(crate) use ceph::{refused, text};
use driver::{Arena, Error};
use parking_lot::Mutex;

use super::layout::{MARKER, Name};
use super::library::{Api, CMPXATTR_EQ, CREATE_EXCLUSIVE};
use super::parts::Parts;

/// Requests of [`Pool::clear`] in flight.
const CLEARING: usize = 128;
/// Attribute of a container's mark: the run that made it.
pub(super) const MAKER: &CStr = c"strata.run";
/// Attribute of a container's mark: what runs store in it ([`vos::claims::Claims`]), as JSON.
const CLAIMS: &CStr = c"strata.claims";
/// Longest text of claims: attributes of an object are 64 KiB at most (`osd_max_attr_size` of file systems beneath).
const CLAIMS_BYTES_MAX: usize = 64 << 10;
/// A connection.
pub(crate) struct Cluster {
    api: &'static Api,
    // Dropped first: the library's threads end with it.
    connection: ceph::Cluster,
    /// Memory that callbacks of the library may still look at.
    retired: Mutex<Vec<(Parts, Arc<Arena>)>>,
}

impl std::ops::Deref for Cluster {
    type Target = ceph::Cluster;

    fn deref(&self) -> &ceph::Cluster {
        &self.connection
    }
}

impl Cluster {
    /// Connects. Every wait of this connection ends after the timeout, in whole seconds.
    ///
    /// # Errors
    /// A file or user that was not found, a cluster that did not answer.
    pub(crate) fn connect(options: &ObjectOptions) -> Result<Self, Error> {
        let connection = ceph::Cluster::connect(&Access {
            conf: options.rados_conf.as_deref(),
            conf_remedy: "specify it: --rados-conf FILE, or CEPH_CONF",
            user: options.rados_user.as_deref(),
            timeout_ns: options.timeout_ns,
            settings: &[],
        })?;
        Ok(Self { api: Api::get()?, connection, retired: Mutex::default() })
    }

    /// Keeps what callbacks may still look at until the library's threads have ended.
    pub(crate) fn retire(&self, parts: Parts, arena: Arc<Arena>) {
        self.retired.lock().push((parts, arena));
    }
}

/// A namespace of a pool (`rados_ioctx_t`).
pub(crate) struct Pool {
    pub(crate) api: &'static Api,
    pub(crate) handle: Handle,
    pub(crate) cluster: Arc<Cluster>,
}

// SAFETY: a rados_ioctx_t may be used by several threads at once, but for its settings, which are made once.
unsafe impl Send for Pool {}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: a handle of ours; the library keeps what requests in flight need.
        unsafe { (self.api.rados_ioctx_destroy)(self.handle) };
    }
}

impl Pool {
    /// Opens a namespace.
    ///
    /// # Errors
    /// When there is no such pool: with the pools that there are.
    pub(crate) fn open(cluster: &Arc<Cluster>, pool: &str, namespace: &str) -> Result<Self, Error> {
        let (name, space) = (text(pool)?, text(namespace)?);
        cluster
            .open_context(&name, &space)
            .map(|handle| Self { api: cluster.api, handle, cluster: cluster.clone() })
            .map_err(|code| cluster.pool_refused(pool, code))
    }

    /// Whether the namespace is marked as a container.
    pub(crate) fn is_container(&self) -> Result<bool, Error> {
        let (mut size, mut time) = (0, 0);
        let (size, time) = (&raw mut size, &raw mut time);
        // SAFETY: a name and two places to write to.
        match unsafe { (self.api.rados_stat)(self.handle, MARKER.as_ptr(), size, time) } {
            0 => Ok(true),
            code if code == -libc::ENOENT => Ok(false),
            code => Err(refused("the pool does not answer", code)),
        }
    }

    /// Maker that the mark of the container names: empty where it names none; none where there is no container.
    pub(crate) fn maker(&self) -> Result<Option<String>, Error> {
        self.attribute(MARKER, MAKER, 32)
    }

    /// Claims in the mark of the container, as text; as [`Pool::maker`].
    pub(crate) fn claims(&self) -> Result<Option<String>, Error> {
        self.attribute(MARKER, CLAIMS, CLAIMS_BYTES_MAX)
    }

    /// An attribute of an object: empty where it has none; none where there is no such object.
    pub(super) fn attribute(
        &self,
        object: &CStr,
        name: &CStr,
        bytes_max: usize,
    ) -> Result<Option<String>, Error> {
        let mut text = vec![0_u8; bytes_max];
        let (place, room) = (text.as_mut_ptr().cast::<c_char>(), text.len());
        // SAFETY: names, and a place of that size.
        let code =
            unsafe { (self.api.rados_getxattr)(self.handle, object.as_ptr(), name.as_ptr(), place, room) };
        match code {
            length if length >= 0 => {
                Ok(Some(String::from_utf8_lossy(&text[..(length as usize).min(room)]).into_owned()))
            }
            code if code == -libc::ENODATA => Ok(Some(String::new())),
            code if code == -libc::ENOENT => Ok(None),
            code => Err(refused("the pool does not answer", code)),
        }
    }

    /// Carries out an operation on an object that `fill` puts together; the library's answer.
    pub(super) fn change(&self, object: &CStr, fill: impl FnOnce(Handle)) -> c_int {
        // SAFETY: an operation that is made, filled, carried out and released here.
        unsafe {
            let operation = (self.api.rados_create_write_op)();
            fill(operation);
            let none = std::ptr::null_mut();
            let code = (self.api.rados_write_op_operate)(operation, self.handle, object.as_ptr(), none, 0);
            (self.api.rados_release_write_op)(operation);
            code
        }
    }

    /// Replaces what the mark says of who stores in the container; without a new text the mark goes, and the container with it. False
    /// where another run has changed it since `before` was read.
    pub(crate) fn replace_claims(&self, before: &str, after: Option<&str>) -> Result<bool, Error> {
        // SAFETY: texts that are there until the operation has been carried out.
        let code = self.change(MARKER, |operation| unsafe {
            (self.api.rados_write_op_assert_exists)(operation);
            let (name, old) = (CLAIMS.as_ptr(), before.as_ptr().cast::<c_char>());
            (self.api.rados_write_op_cmpxattr)(operation, name, CMPXATTR_EQ, old, before.len());
            match after {
                Some(after) => {
                    let new = after.as_ptr().cast::<c_char>();
                    (self.api.rados_write_op_setxattr)(operation, name, new, after.len());
                }
                None => (self.api.rados_write_op_remove)(operation),
            }
        });
        match code {
            0 => Ok(true),
            code if code == -libc::ECANCELED => Ok(false),
            code => Err(refused("the mark of the container cannot be changed", code)),
        }
    }

    /// Marks the namespace as a container that `maker` has made. False where another has just done so.
    pub(crate) fn mark(&self, maker: &str) -> Result<bool, Error> {
        // SAFETY: a text that is there until the operation has been carried out.
        let code = self.change(MARKER, |operation| unsafe {
            (self.api.rados_write_op_create)(operation, CREATE_EXCLUSIVE, std::ptr::null());
            let text = maker.as_ptr().cast::<c_char>();
            (self.api.rados_write_op_setxattr)(operation, MAKER.as_ptr(), text, maker.len());
        });
        match code {
            0 => Ok(true),
            code if code == -libc::EEXIST => Ok(false),
            code => Err(refused("the container cannot be created", code)),
        }
    }

    /// Removes the objects of the namespace whose names are meant, but not the mark.
    ///
    /// # Errors
    /// The library's, a negated errno.
    pub(crate) fn clear(&self, is_meant: impl Fn(&CStr) -> bool) -> Result<(), c_int> {
        let mut list = List::open(self)?;
        let mut flying = std::collections::VecDeque::new();
        while let Some(name) = list.next()? {
            if name != MARKER && is_meant(name) {
                flying.push_back(self.remove(name));
            }
            if flying.len() >= CLEARING {
                flying.pop_front().map_or(Ok(()), |request| self.removed(request))?;
            }
        }
        flying.into_iter().try_for_each(|request| self.removed(request))
    }

    fn remove(&self, name: &CStr) -> (Handle, c_int) {
        let mut completion = std::ptr::null_mut();
        // SAFETY: no callback; the name is copied.
        let code = unsafe {
            (self.api.rados_aio_create_completion2)(std::ptr::null_mut(), None, &raw mut completion);
            (self.api.rados_aio_remove)(self.handle, name.as_ptr(), completion)
        };
        (completion, code)
    }

    fn removed(&self, (completion, code): (Handle, c_int)) -> Result<(), c_int> {
        // SAFETY: a completion of ours, released once; what was not sent is not waited for.
        let code = unsafe {
            if code >= 0 {
                (self.api.rados_aio_wait_for_complete)(completion);
            }
            let code = if code < 0 { code } else { (self.api.rados_aio_get_return_value)(completion) };
            (self.api.rados_aio_release)(completion);
            code
        };
        if code < 0 && code != -libc::ENOENT { Err(code) } else { Ok(()) }
    }
}

/// A listing of a namespace's objects, in the order of placement groups.
pub(crate) struct List {
    api: &'static Api,
    handle: Handle,
}

// SAFETY: used by one thread at a time.
unsafe impl Send for List {}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: a handle of ours.
        unsafe { (self.api.rados_nobjects_list_close)(self.handle) };
    }
}

impl List {
    pub(crate) fn open(pool: &Pool) -> Result<Self, c_int> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        let code = unsafe { (pool.api.rados_nobjects_list_open)(pool.handle, &raw mut handle) };
        if code < 0 { Err(code) } else { Ok(Self { api: pool.api, handle }) }
    }

    /// The next name; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&CStr>, c_int> {
        let (mut entry, mut key, mut space) = (std::ptr::null(), std::ptr::null(), std::ptr::null());
        let (mut entry_bytes, mut key_bytes, mut space_bytes) = (0, 0, 0);
        // SAFETY: places for three strings and their lengths; the strings live until the next call.
        unsafe {
            let code = (self.api.rados_nobjects_list_next2)(
                self.handle,
                &raw mut entry,
                &raw mut key,
                &raw mut space,
                &raw mut entry_bytes,
                &raw mut key_bytes,
                &raw mut space_bytes,
            );
            match code {
                0 => Ok(Some(CStr::from_ptr(entry))),
                code if code == -libc::ENOENT => Ok(None),
                code => Err(code),
            }
        }
    }

    /// Passes over the next `count` names that begin as `prefix`; how many there were.
    pub(crate) fn pass(&mut self, prefix: &Name, count: u32) -> Result<u32, c_int> {
        let mut found = 0;
        while found < count {
            match self.next()? {
                Some(name) => found += u32::from(name.to_bytes().starts_with(prefix.as_bytes())),
                None => break,
            }
        }
        Ok(found)
    }
}
