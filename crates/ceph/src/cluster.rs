//! A connection to a cluster, and pools of it.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use driver::{Error, ErrorKind};

use crate::library::{Api, ClusterStat};
use crate::{Handle, refused, text};

/// Waits where nothing is said, in seconds.
const TIMEOUT_S: u64 = 60;
/// User where none is named.
const USER: &str = "client.admin";

/// How a cluster is reached.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// Configuration file; none: where Ceph's own clients look.
    pub conf: Option<&'a str>,
    /// How the user names another one.
    pub conf_remedy: &'static str,
    /// User; none: `client.admin`.
    pub user: Option<&'a str>,
    /// Longest wait for one request, in nanoseconds; 0: not said.
    pub timeout_ns: u64,
    /// Settings besides those of the file, which they replace.
    pub settings: &'a [(&'a str, &'a str)],
}

/// A connection. Ended when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    api: &'static Api,
    handle: Handle,
    timeout_s: u64,
}

// SAFETY: a rados_t may be used by several threads at once.
unsafe impl Send for Cluster {}
// SAFETY: as for Send.
unsafe impl Sync for Cluster {}

impl Drop for Cluster {
    fn drop(&mut self) {
        // SAFETY: a handle of ours; pools hold the cluster, so none is left. The library's threads end here.
        unsafe { (self.api.rados_shutdown)(self.handle) };
    }
}

impl Cluster {
    /// Connects. Every wait of this connection ends after the timeout, in whole seconds.
    ///
    /// # Errors
    /// A file, user or monitor that was not found or did not answer.
    pub fn connect(access: &Access<'_>) -> Result<Self, Error> {
        let api = Api::get()?;
        let user = access.user.unwrap_or(USER);
        let user = if user.contains('.') { user.to_owned() } else { format!("client.{user}") };
        let mut handle = std::ptr::null_mut();
        let name = text(&user)?;
        // SAFETY: two strings and a place for the handle.
        let code = unsafe { (api.rados_create2)(&raw mut handle, c"ceph".as_ptr(), name.as_ptr(), 0) };
        if code < 0 {
            return Err(refused("librados cannot create a client", code).with("user", user));
        }
        let timeout_s = match access.timeout_ns {
            0 => TIMEOUT_S,
            timeout_ns => timeout_ns.div_ceil(1_000_000_000),
        };
        let cluster = Self { api, handle, timeout_s };
        cluster.read_configuration(access)?;
        cluster.configure(access.settings)?;
        // SAFETY: the handle is configured and not connected yet.
        let code = unsafe { (api.rados_connect)(handle) };
        if code < 0 {
            return Err(cluster.not_connected(code, &user, access.conf));
        }
        Ok(cluster)
    }

    fn read_configuration(&self, access: &Access<'_>) -> Result<(), Error> {
        let path = access.conf.map(text).transpose()?;
        let address = path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr());
        // SAFETY: null, or a string.
        let code = unsafe { (self.api.rados_conf_read_file)(self.handle, address) };
        if code == 0 {
            return Ok(());
        }
        let error = refused("the configuration of the Ceph cluster cannot be read", code);
        Err(match access.conf {
            Some(path) => error.with("file", path),
            None => error.with("file", "/etc/ceph/ceph.conf").remedy(access.conf_remedy),
        })
    }

    /// Settings of a measuring client: waits that end, no limit besides the depth of its workers, no log of its own.
    fn configure(&self, more: &[(&str, &str)]) -> Result<(), Error> {
        let seconds = self.timeout_s.to_string();
        let waits = ["client_mount_timeout", "rados_mon_op_timeout", "rados_osd_op_timeout"];
        let limits = ["objecter_inflight_ops", "objecter_inflight_op_bytes"];
        let logs = ["log_to_stderr", "err_to_stderr"];
        let debug = ["debug_rados", "debug_objecter", "debug_ms", "debug_monc", "debug_auth"];
        let settings = (waits.iter().map(|name| (*name, seconds.as_str())))
            .chain(limits.iter().map(|name| (*name, "0")))
            .chain(logs.iter().map(|name| (*name, "false")))
            .chain(debug.iter().map(|name| (*name, "0/0")))
            .chain(more.iter().copied());
        for (name, value) in settings {
            let (option, value) = (text(name)?, text(value)?);
            // SAFETY: two strings.
            let code = unsafe { (self.api.rados_conf_set)(self.handle, option.as_ptr(), value.as_ptr()) };
            if code < 0 {
                return Err(refused("librados rejects a setting", code).with("option", name));
            }
        }
        Ok(())
    }

    fn not_connected(&self, code: c_int, user: &str, conf: Option<&str>) -> Error {
        let error = refused("cannot connect to the Ceph cluster", code)
            .with("user", user)
            .with("file", conf.unwrap_or("/etc/ceph/ceph.conf"));
        let error = match self.setting(c"mon_host") {
            Some(monitors) if !monitors.is_empty() => error.with("mon_host", monitors),
            _ => error,
        };
        match -code {
            libc::ETIMEDOUT => error.remedy(format!("no monitor answered in {} s", self.timeout_s)),
            libc::ENOENT => error.remedy("the file must name mon_host and a keyring with this user"),
            libc::EACCES | libc::EPERM => {
                error.remedy("the keyring has no key for this user, or a different one than the monitors")
            }
            _ => error,
        }
    }

    /// A setting, as the library has it.
    #[must_use]
    pub fn setting(&self, name: &CStr) -> Option<String> {
        let mut buffer = [0_u8; 512];
        let (place, room) = (buffer.as_mut_ptr().cast::<c_char>(), buffer.len());
        // SAFETY: a place of that size; the library ends what it writes with a NUL.
        let code = unsafe { (self.api.rados_conf_get)(self.handle, name.as_ptr(), place, room) };
        let value = CStr::from_bytes_until_nul(&buffer).ok().filter(|_| code == 0)?;
        Some(value.to_string_lossy().into_owned())
    }

    /// Longest wait for one request, in seconds.
    #[must_use]
    pub fn timeout_s(&self) -> u64 {
        self.timeout_s
    }

    /// Version of the library.
    #[must_use]
    pub fn version(&self) -> (i32, i32, i32) {
        let mut version = (0, 0, 0);
        // SAFETY: three places to write to.
        unsafe { (self.api.rados_version)(&raw mut version.0, &raw mut version.1, &raw mut version.2) };
        version
    }

    /// Id of the cluster.
    #[must_use]
    pub fn fsid(&self) -> String {
        let mut buffer = [0_u8; 64];
        let (place, room) = (buffer.as_mut_ptr().cast::<c_char>(), buffer.len());
        // SAFETY: a place of that size.
        unsafe { (self.api.rados_cluster_fsid)(self.handle, place, room) };
        CStr::from_bytes_until_nul(&buffer).map(|id| id.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Space of the cluster.
    ///
    /// # Errors
    /// Why it does not tell.
    pub fn space(&self) -> Result<ClusterStat, Error> {
        let mut stat = ClusterStat::default();
        // SAFETY: a place for the structure.
        let code = unsafe { (self.api.rados_cluster_stat)(self.handle, &raw mut stat) };
        if code < 0 { Err(refused("the cluster does not report its space", code)) } else { Ok(stat) }
    }

    fn pools(&self) -> Vec<String> {
        let mut names = vec![0_u8; 64 << 10];
        // SAFETY: a place of that size; the library writes names, each with a NUL, and a NUL behind the last.
        let length =
            unsafe { (self.api.rados_pool_list)(self.handle, names.as_mut_ptr().cast(), names.len()) };
        names.truncate(length.max(0) as usize);
        let names = names.split(|byte| *byte == 0).take_while(|name| !name.is_empty());
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Opens a pool, and a namespace of it where one is named: a handle (`rados_ioctx_t`) that the caller destroys. Full pools refuse writes
    /// instead of making them wait.
    ///
    /// # Errors
    /// The library's answer, a negated errno.
    pub fn open_context(&self, pool: &CStr, namespace: &CStr) -> Result<Handle, c_int> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: a string and a place for the handle.
        let code = unsafe { (self.api.rados_ioctx_create)(self.handle, pool.as_ptr(), &raw mut handle) };
        if code < 0 {
            return Err(code);
        }
        // SAFETY: a handle just made, and a string.
        unsafe {
            (self.api.rados_ioctx_set_namespace)(handle, namespace.as_ptr());
            (self.api.rados_set_pool_full_try)(handle);
        }
        Ok(handle)
    }

    /// Why a pool could not be opened, by the library's answer.
    #[must_use]
    pub fn pool_refused(&self, pool: &str, code: c_int) -> Error {
        if code != -libc::ENOENT {
            return refused("the pool cannot be opened", code).with("pool", pool);
        }
        let pools = self.pools().join(", ");
        Error::new(ErrorKind::Run, "rados", format!("pool {pool} does not exist"))
            .remedy(format!("existing pools: {pools}; create one: ceph osd pool create {pool}"))
    }
}

/// A pool, or a namespace of it (`rados_ioctx_t`).
#[derive(Debug)]
pub struct Context {
    handle: Handle,
    cluster: Arc<Cluster>,
}

// SAFETY: a rados_ioctx_t may be used by several threads at once, but for its settings, which are made once.
unsafe impl Send for Context {}
// SAFETY: as for Send.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: a handle of ours.
        unsafe { (self.cluster.api.rados_ioctx_destroy)(self.handle) };
    }
}

impl Context {
    /// As [`Cluster::open_context`].
    ///
    /// # Errors
    /// When there is no such pool: with the pools that there are.
    pub fn open(cluster: &Arc<Cluster>, pool: &str, namespace: &str) -> Result<Self, Error> {
        let opened = cluster.open_context(&text(pool)?, &text(namespace)?);
        let handle = opened.map_err(|code| cluster.pool_refused(pool, code))?;
        Ok(Self { handle, cluster: Arc::clone(cluster) })
    }

    /// The library's handle (`rados_ioctx_t`), as long as this lives.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// The connection.
    #[must_use]
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }
}
