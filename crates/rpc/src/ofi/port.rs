//! A port: fabric, domain, address vector, completion queue and one reliable datagram endpoint, for one thread.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::os::fd::RawFd;
use std::ptr::{null, null_mut};

use driver::Error;

use super::abi::*;
use super::library::{Api, InfoList, api, errno, text_of};
use super::provider::{FabricSettings, choose};

mod transfer;

pub use transfer::{EVENTS, Event, NO_CONTEXT};

/// Most bytes of a name on the fabric.
const NAME_BYTES_MAX: usize = 256;
/// A peer's entry in the address vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Default))]
pub struct PeerAddress(FiAddr);

/// Registered memory, or memory that needs no registration.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    base: *mut u8,
    bytes: usize,
    descriptor: *mut c_void,
    key: u64,
    region: *mut FidMr,
    is_virtual: bool,
}

/// Memory of a peer: what stands in a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Address, or offset where the provider counts from the region's begin.
    pub address: u64,
    /// Key of the region.
    pub key: u64,
    /// Bytes.
    pub bytes: u64,
}

// SAFETY: a name for memory and its registration; who may touch the memory is said by its holder.
unsafe impl Send for Region {}

impl Region {
    /// Memory without a registration.
    fn plain(base: *mut u8, bytes: usize) -> Self {
        Self { base, bytes, descriptor: null_mut(), key: 0, region: null_mut(), is_virtual: true }
    }

    /// How a peer names a part of it.
    pub fn remote(&self, offset: usize, bytes: u64) -> Remote {
        let base = if self.is_virtual { self.base as u64 } else { 0 };
        Remote { address: base + offset as u64, key: self.key, bytes }
    }

    /// Where it begins.
    pub fn base(&self) -> *mut u8 {
        self.base
    }
}

/// The memory of an operation's context, which the provider may use while the operation is in flight.
#[repr(transparent)]
struct Context(UnsafeCell<[usize; 8]>);

/// A port. All calls come from one thread at a time (`FI_THREAD_DOMAIN`).
pub struct Port {
    api: &'static Api,
    info: InfoList,
    fabric: *mut FidFabric,
    domain: *mut FidDomain,
    vector: *mut FidAv,
    queue: *mut FidCq,
    endpoint: *mut FidEp,
    regions: Vec<*mut FidMr>,
    contexts: Box<[Context]>,
    wait: Option<RawFd>,
    facts: PortFacts,
    is_abandoned: bool,
}

/// Facts of a port.
#[derive(Clone, Debug)]
pub struct PortFacts {
    /// The provider with its layers.
    pub provider: String,
    /// The domain.
    pub domain: String,
    /// Messages up to this size are copied away when they are sent, and complete at once.
    pub inject_bytes: usize,
    /// A message is seen after the writes that were posted before it.
    pub is_ordered: bool,
    /// Peers are on this machine and copy from and to each other's memory. A write has arrived when it completes, without asking for
    /// it: it is a copy that is done, or a command in the same queue as messages.
    pub is_shared_memory: bool,
    /// Local buffers must be registered.
    pub needs_local: bool,
    /// Receives in flight at most.
    pub receives_max: usize,
}

// SAFETY: the objects belong to this port alone and are used under `&mut` or from the one thread that owns it; the provider was asked
// for a threading level that serialises by domain.
unsafe impl Send for Port {}

impl Port {
    /// Opens one. `contexts` is how many operations may be in flight; `waits` asks for a descriptor to sleep on.
    ///
    /// # Errors
    /// When the library or the provider is not there, or refuses.
    pub fn open(settings: &FabricSettings, contexts: usize, waits: bool) -> Result<Self, Error> {
        let api = api()?;
        let mut info = choose(settings)?;
        let facts = facts_of(info.first_mut());
        let fabric = api.open_fabric(info.first_mut().fabric_attr)?;
        let contexts = (0..contexts).map(|_| Context(UnsafeCell::new([0; 8]))).collect();
        let mut port = Self {
            api,
            info,
            fabric,
            domain: null_mut(),
            vector: null_mut(),
            queue: null_mut(),
            endpoint: null_mut(),
            regions: Vec::new(),
            contexts,
            wait: None,
            facts,
            is_abandoned: false,
        };
        port.open_domain()?;
        port.open_queue(waits)?;
        port.open_endpoint()?;
        Ok(port)
    }

    fn open_domain(&mut self) -> Result<(), Error> {
        let info: *mut FiInfo = self.info.first_mut();
        // SAFETY: the fabric was opened from this entry; results are taken only on success.
        unsafe {
            let result = ((*(*self.fabric).ops).domain)(self.fabric, info, &raw mut self.domain, null_mut());
            self.check(result, "cannot open the domain")?;
            let mut attributes = FiAvAttr {
                kind: (*(*info).domain_attr).av_type.max(FI_AV_UNSPEC),
                rx_ctx_bits: 0,
                count: 64,
                ep_per_node: 0,
                name: null(),
                map_addr: null_mut(),
                flags: 0,
            };
            let open = (*(*self.domain).ops).av_open;
            let result = open(self.domain, &raw mut attributes, &raw mut self.vector, null_mut());
            self.check(result, "cannot open an address vector")
        }
    }

    fn open_queue(&mut self, waits: bool) -> Result<(), Error> {
        let mut attributes = FiCqAttr {
            size: self.contexts.len().next_power_of_two().max(256),
            flags: 0,
            format: FI_CQ_FORMAT_MSG,
            wait_obj: if waits { FI_WAIT_FD } else { FI_WAIT_NONE },
            signaling_vector: 0,
            wait_cond: 0,
            wait_set: null_mut(),
        };
        // SAFETY: the domain is open; the queue is taken only on success.
        unsafe {
            let open = (*(*self.domain).ops).cq_open;
            let mut result = open(self.domain, &raw mut attributes, &raw mut self.queue, null_mut());
            if result != 0 && waits {
                attributes.wait_obj = FI_WAIT_NONE;
                self.queue = null_mut();
                result = open(self.domain, &raw mut attributes, &raw mut self.queue, null_mut());
            }
            self.check(result, "cannot open a completion queue")?;
            if attributes.wait_obj == FI_WAIT_FD {
                let mut descriptor: c_int = -1;
                let fid = &raw mut (*self.queue).fid;
                let result = ((*(*fid).ops).control)(fid, FI_GETWAIT, (&raw mut descriptor).cast());
                self.wait = (result == 0 && descriptor >= 0).then_some(descriptor);
            }
        }
        Ok(())
    }

    fn open_endpoint(&mut self) -> Result<(), Error> {
        let info: *mut FiInfo = self.info.first_mut();
        // SAFETY: the domain is open; what is bound to the endpoint is closed after it.
        unsafe {
            let open = (*(*self.domain).ops).endpoint;
            let result = open(self.domain, info, &raw mut self.endpoint, null_mut());
            self.check(result, "cannot open an endpoint")?;
            let fid = &raw mut (*self.endpoint).fid;
            let bind = (*(*fid).ops).bind;
            let result = bind(fid, self.vector.cast(), 0);
            self.check(result, "cannot bind the address vector")?;
            let result = bind(fid, self.queue.cast(), FI_SEND | FI_RECV);
            self.check(result, "cannot bind the completion queue")?;
            self.check(((*(*fid).ops).control)(fid, FI_ENABLE, null_mut()), "cannot enable the endpoint")
        }
    }

    fn check(&self, result: c_int, message: &str) -> Result<(), Error> {
        if result == 0 {
            return Ok(());
        }
        let error = self.api.error(message, result);
        Err(error.with("provider", &self.facts.provider).with("domain", &self.facts.domain))
    }

    /// Its facts.
    pub fn facts(&self) -> &PortFacts {
        &self.facts
    }

    /// Its name on the fabric.
    ///
    /// # Errors
    /// When the provider does not tell.
    pub fn name(&self) -> Result<Vec<u8>, Error> {
        let mut name = vec![0; NAME_BYTES_MAX];
        let mut length = name.len();
        // SAFETY: the endpoint is enabled; at most `length` bytes are written.
        let result = unsafe {
            let fid = &raw mut (*self.endpoint).fid;
            ((*(*self.endpoint).cm).getname)(fid, name.as_mut_ptr().cast(), &raw mut length)
        };
        self.check(result, "cannot read the endpoint's name")?;
        name.truncate(length);
        Ok(name)
    }

    /// Takes a peer in. The name comes from outside: its length must be that of our own kind of name, and text must end.
    ///
    /// # Errors
    /// An errno, when the provider refuses the name.
    pub fn insert(&mut self, name: &[u8]) -> Result<PeerAddress, i32> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !self.is_shaped(name) {
            return Err(libc::EINVAL);
        }
        // Room behind it, all zero: a provider that reads a whole address structure finds memory.
        let mut padded = [0; 2 * NAME_BYTES_MAX];
        padded[..name.len()].copy_from_slice(name);
        let mut address = FI_ADDR_UNSPEC;
        // SAFETY: one name, of the shape that this provider gives.
        let result = unsafe {
            let insert = (*(*self.vector).ops).insert;
            insert(self.vector, padded.as_ptr().cast(), 1, &raw mut address, 0, null_mut())
        };
        match result {
            1 => Ok(PeerAddress(address)),
            0.. => Err(libc::EADDRNOTAVAIL),
            error => Err(errno(error)),
        }
    }

    /// Whether a name looks as ours does: the same address family, or a text with the same beginning.
    fn is_shaped(&self, name: &[u8]) -> bool {
        let Ok(own) = self.name() else { return false };
        let format = self.info.iter().next().map_or(0, |info| info.addr_format);
        match format {
            // Socket addresses: the family stands first.
            1..=3 => name.len() == own.len() && name[..2] == own[..2],
            // Text, such as fi_shm://1234.
            9 => {
                let scheme = own.windows(3).position(|w| w == b"://").map_or(0, |at| at + 3);
                name.len() < 64
                    && name.last() == Some(&0)
                    && name[..name.len() - 1].iter().all(u8::is_ascii_graphic)
                    && name.starts_with(&own[..scheme])
                    && !name[scheme..].contains(&b'/')
            }
            _ => name.len() == own.len(),
        }
    }

    /// Whether a name is that of a port of this process over shared memory. The provider lets both use one mapping of each port's memory,
    /// so a port must not be closed while such a peer knows it.
    pub fn is_own_process(&self, name: &[u8]) -> bool {
        let own = format!("fi_shm://{}:", std::process::id());
        self.facts.is_shared_memory && name.starts_with(own.as_bytes())
    }

    /// Leaves the port open for ever when dropped: a peer of this process may still look at its memory.
    pub fn abandon(&mut self) {
        self.is_abandoned = true;
        let name = self.name().unwrap_or_default();
        let name =
            name.strip_prefix(b"fi_shm://").and_then(|name| std::ffi::CStr::from_bytes_until_nul(name).ok());
        if let Some(name) = name {
            // SAFETY: a terminated text; the mapping stays, its file goes.
            unsafe { libc::shm_unlink(name.as_ptr()) };
        }
    }

    /// Forgets a peer.
    pub fn remove(&mut self, PeerAddress(mut address): PeerAddress) {
        // SAFETY: the address is one that insert gave. What it answers changes nothing.
        unsafe { ((*(*self.vector).ops).remove)(self.vector, &raw mut address, 1, 0) };
    }

    /// Registers memory for messages and for RMA of both sides where `remote`.
    ///
    /// # Errors
    /// When the provider refuses it.
    ///
    /// # Safety
    /// The memory stays mapped until the port is dropped or the region is closed.
    pub unsafe fn register(&mut self, base: *mut u8, bytes: usize, remote: bool) -> Result<Region, Error> {
        let region = Region::plain(base, bytes);
        if !remote && self.mr_mode() & FI_MR_LOCAL == 0 {
            return Ok(region);
        }
        // SAFETY: the caller keeps the memory mapped.
        unsafe { self.register_in(region, None, remote) }
            .map_err(|error| error.remedy("raise the limit of locked memory (ulimit -l), or use less memory"))
    }

    /// Registers memory of CUDA device `device` for RMA of both sides. The port was opened for it ([`FabricSettings::device_memory`]).
    ///
    /// # Errors
    /// When the provider refuses it.
    ///
    /// # Safety
    /// `address` is the device's, and its memory stays until the port is dropped or the region is closed.
    pub unsafe fn register_device(
        &mut self,
        address: u64,
        bytes: usize,
        device: u32,
    ) -> Result<Region, Error> {
        let region = Region::plain(address as *mut u8, bytes);
        // SAFETY: the caller keeps the memory.
        unsafe { self.register_in(region, Some(device), true) }.map_err(|error| {
            error.with("gpu", device).remedy(
                "use --gpu-path staged, or a libfabric built with CUDA whose provider reaches the GPU (nvidia-peermem, gdrcopy)",
            )
        })
    }

    /// Registers memory of the process, or of a device.
    ///
    /// # Safety
    /// As for [`Port::register`] and [`Port::register_device`].
    unsafe fn register_in(
        &mut self,
        mut region: Region,
        device: Option<u32>,
        remote: bool,
    ) -> Result<Region, Error> {
        let mode = self.mr_mode();
        let mut access = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
        if remote {
            access |= FI_REMOTE_READ | FI_REMOTE_WRITE;
        }
        let iov = libc::iovec { iov_base: region.base.cast(), iov_len: region.bytes };
        let mut attributes = FiMrAttr {
            iov: &raw const iov,
            iov_count: 1,
            access,
            offset: 0,
            requested_key: 0,
            context: null_mut(),
            auth_key_size: 0,
            auth_key: null_mut(),
            iface: if device.is_some() { FI_HMEM_CUDA } else { FI_HMEM_SYSTEM },
            device: device.map_or(0, u64::from),
            later: [0; 8],
        };
        let mut result = 0;
        // A key that is taken is drawn again.
        for _ in 0..16 {
            attributes.requested_key = if mode & FI_MR_PROV_KEY != 0 { 0 } else { self.draw_key() };
            // SAFETY: the caller keeps the memory.
            result = unsafe {
                let domain = &raw mut (*self.domain).fid;
                let register = (*(*self.domain).mr).regattr;
                register(domain, &raw const attributes, 0, &raw mut region.region)
            };
            if result != -FI_ENOKEY {
                break;
            }
        }
        self.check(result, "cannot register memory").map_err(|error| error.with("bytes", region.bytes))?;
        self.regions.push(region.region);
        // SAFETY: the region is open.
        unsafe {
            let fid = &raw mut (*region.region).fid;
            if mode & FI_MR_ENDPOINT != 0 {
                let result = ((*(*fid).ops).bind)(fid, &raw mut (*self.endpoint).fid, 0);
                self.check(result, "cannot bind memory to the endpoint")?;
                self.check(((*(*fid).ops).control)(fid, FI_ENABLE, null_mut()), "cannot enable memory")?;
            }
            region.descriptor = (*region.region).mem_desc;
            region.key = (*region.region).key;
        }
        region.is_virtual = mode & FI_MR_VIRT_ADDR != 0;
        Ok(region)
    }

    /// Ends a registration.
    pub fn unregister(&mut self, region: &Region) {
        if let Some(at) = self.regions.iter().position(|open| *open == region.region) {
            close(self.regions.swap_remove(at).cast());
        }
    }

    fn mr_mode(&self) -> c_int {
        // SAFETY: entries of the library have all their parts.
        self.info.iter().next().map_or(0, |info| unsafe { (*info.domain_attr).mr_mode })
    }

    /// A key that cannot be guessed, as wide as the provider's keys.
    fn draw_key(&self) -> u64 {
        // SAFETY: as in mr_mode.
        let width = self.info.iter().next().map_or(4, |info| unsafe { (*info.domain_attr).mr_key_size });
        let mut bytes = [0; 8];
        // Without randomness the key is taken from the memory's own use: still unique enough to be drawn again on a clash.
        if ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes).is_err() {
            bytes = (self.regions.len() as u64 + 1).to_ne_bytes();
        }
        let key = u64::from_ne_bytes(bytes);
        if width >= 8 { key } else { key & ((1 << (8 * width.max(1))) - 1) }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if self.is_abandoned {
            return;
        }
        close(self.endpoint.cast());
        for region in std::mem::take(&mut self.regions) {
            close(region.cast());
        }
        close(self.queue.cast());
        close(self.vector.cast());
        close(self.domain.cast());
        close(self.fabric.cast());
    }
}

/// Closes an object, if there is one. Every object begins with its `fid`.
fn close(fid: *mut Fid) {
    if !fid.is_null() {
        // SAFETY: an open object, closed once, after those that use it.
        unsafe { ((*(*fid).ops).close)(fid) };
    }
}

fn facts_of(info: &FiInfo) -> PortFacts {
    // SAFETY: entries of the library have all their parts.
    unsafe {
        let (send, receive, domain) = (&*info.tx_attr, &*info.rx_attr, &*info.domain_attr);
        let provider = text_of((*info.fabric_attr).prov_name);
        PortFacts {
            inject_bytes: send.inject_size,
            is_ordered: send.msg_order & receive.msg_order & FI_ORDER_SAW != 0,
            is_shared_memory: provider == "shm",
            needs_local: domain.mr_mode & FI_MR_LOCAL != 0,
            receives_max: receive.size.max(1),
            domain: text_of(domain.name),
            provider,
        }
    }
}
