//! Open images.
#![allow(unsafe_code)]

use std::any::Any;
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ceph::{Access, Cluster, Context, Handle};
use driver::{Error, ErrorKind};

use super::{Api, ImageName};

/// Watchers of an image that are asked for.
const WATCHERS_MAX: usize = 16;

/// Purpose that an image is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Use {
    /// To see what it is: by nobody noticed, past librbd's cache.
    Looked,
    /// To be measured.
    Measured {
        /// Written too.
        writes: bool,
        /// Past librbd's cache.
        direct: bool,
    },
}

/// An image, open. Closed when it is dropped, which waits for what is in flight.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) api: &'static Api,
    handle: Handle,
    name: ImageName,
    // Outlives the image.
    context: Context,
    // Dropped last: a callback may still be on its way out when its operation has landed.
    retired: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

// SAFETY: an rbd_image_t may be used by several threads at once.
unsafe impl Send for Image {}
// SAFETY: as for Send.
unsafe impl Sync for Image {}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: a handle of ours, used no more.
        unsafe { (self.api.rbd_close)(self.handle) };
    }
}

/// Images that the workers of a phase share. Two handles of one process that write to one image would take its exclusive lock from each other
/// for every write.
#[derive(Debug, Default)]
pub struct Images {
    open: Mutex<HashMap<(String, Use), Weak<Image>>>,
}

impl Images {
    /// The image of this name; opened by the first who asks.
    ///
    /// # Errors
    /// As [`Image::open`].
    pub(crate) fn get(&self, name: &str, purpose: Use) -> Result<Arc<Image>, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), purpose);
        if let Some(image) = open.get(&key).and_then(Weak::upgrade) {
            return Ok(image);
        }
        let image = Arc::new(Image::open(&name.parse()?, purpose)?);
        open.insert(key, Arc::downgrade(&image));
        Ok(image)
    }
}

impl Image {
    /// Opens an image on a connection of its own.
    ///
    /// # Errors
    /// A library, cluster, pool, image or snapshot that is missing; bad usage where a snapshot is to be written.
    pub(crate) fn open(name: &ImageName, purpose: Use) -> Result<Self, Error> {
        let api = Api::get()?;
        let is_cached = matches!(purpose, Use::Measured { direct: false, .. });
        let writes = matches!(purpose, Use::Measured { writes: true, .. });
        if writes && name.snapshot.is_some() {
            return Err(Error::usage("rbd", "a snapshot is read-only")
                .with("image", &name.image)
                .remedy("leave out @SNAPSHOT"));
        }
        let cluster = Cluster::connect(&Access {
            conf: name.conf.as_deref(),
            conf_remedy: "give its path: rbd:POOL/IMAGE:conf=FILE, or CEPH_CONF",
            user: name.user.as_deref(),
            timeout_ns: 0,
            settings: if is_cached { &[] } else { &[("rbd_cache", "false")] },
        })?;
        let context = Context::open(&Arc::new(cluster), &name.pool, &name.namespace)?;
        let (image, snapshot) =
            (ceph::text(&name.image)?, name.snapshot.as_deref().map(ceph::text).transpose()?);
        let snapshot = snapshot.as_ref().map_or(std::ptr::null(), |snapshot| snapshot.as_ptr());
        let open = if writes { api.rbd_open } else { api.rbd_open_read_only };
        let mut handle = std::ptr::null_mut();
        // SAFETY: a pool that is open, names, and a place for the handle.
        let code = unsafe { open(context.handle(), image.as_ptr(), &raw mut handle, snapshot) };
        if code < 0 {
            return Err(not_opened(name, code));
        }
        Ok(Self { api, handle, name: name.clone(), context, retired: Mutex::default() })
    }

    /// Keeps what callbacks of the library may still look at until its threads have ended.
    pub(crate) fn retire(&self, what: Arc<dyn Any + Send + Sync>) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// The library's handle (`rbd_image_t`), as long as this lives.
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    fn failed(&self, message: &'static str, code: i64) -> Error {
        Error::system("rbd", message, std::io::Error::from_raw_os_error(-code as i32))
            .with("image", &self.name.image)
    }

    /// Its size, in bytes.
    pub(crate) fn size_bytes(&self) -> Result<u64, Error> {
        let mut size = 0;
        // SAFETY: an open image and a place for the size.
        match unsafe { (self.api.rbd_get_size)(self.handle, &raw mut size) } {
            code if code < 0 => Err(self.failed("cannot determine the size of the image", code.into())),
            _ => Ok(size),
        }
    }

    /// Reads a part of it.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        // SAFETY: an open image, and a place of that length.
        let read =
            unsafe { (self.api.rbd_read)(self.handle, offset, buffer.len(), buffer.as_mut_ptr().cast()) };
        match read as i64 {
            code if code < 0 => Err(self.failed("the image cannot be read", code)),
            length if length as usize == buffer.len() => Ok(()),
            _ => Err(self.failed("the image has become shorter", -i64::from(libc::EIO))),
        }
    }

    /// Bytes of a range that lie in objects of the cluster, of this image or of what it was cloned from.
    pub(crate) fn allocated_bytes(&self, offset: u64, length: u64) -> Result<u64, Error> {
        unsafe extern "C" fn add(_: u64, length: usize, exists: c_int, sum: *mut c_void) -> c_int {
            if exists != 0 {
                // SAFETY: the place that was given below, used by this call alone.
                unsafe { *sum.cast::<u64>() += length as u64 };
            }
            0
        }
        let mut sum = 0_u64;
        let place = (&raw mut sum).cast();
        // SAFETY: an open image; the place is there until the call returns.
        let code = unsafe {
            (self.api.rbd_diff_iterate2)(self.handle, std::ptr::null(), offset, length, 1, 0, add, place)
        };
        if code < 0 {
            Err(self.failed("cannot determine the allocated ranges of the image", code.into()))
        } else {
            Ok(sum)
        }
    }

    /// Addresses of those who have it open for writing. This handle is none of them where it only reads.
    pub(crate) fn watchers(&self) -> Result<Vec<String>, Error> {
        let none = super::library::Watcher { address: std::ptr::null_mut(), id: 0, cookie: 0 };
        let mut watchers = [none; WATCHERS_MAX];
        let mut count = watchers.len();
        // SAFETY: places for as many watchers.
        let code =
            unsafe { (self.api.rbd_watchers_list)(self.handle, watchers.as_mut_ptr(), &raw mut count) };
        if code == -libc::ERANGE {
            return Ok(vec![format!("{count} clients")]);
        }
        if code < 0 {
            return Err(self.failed("cannot list the clients that have the image open", code.into()));
        }
        // SAFETY: the library has filled `count` of them with strings, which are its own until they are given back.
        let named = watchers[..count].iter().map(|one| unsafe { CStr::from_ptr(one.address) });
        let named = named.map(|address| address.to_string_lossy().into_owned()).collect();
        // SAFETY: what the library filled, given back once.
        unsafe { (self.api.rbd_watchers_list_cleanup)(watchers.as_mut_ptr(), count) };
        Ok(named)
    }

    /// How librbd's cache stands, in a line; none where it is off.
    pub(crate) fn cache(&self) -> Option<String> {
        let cluster = self.context.cluster();
        let is_on = cluster.setting(c"rbd_cache").is_some_and(|value| value == "true");
        let policy = cluster.setting(c"rbd_cache_policy").unwrap_or_else(|| "writearound".to_owned());
        is_on.then(|| {
            format!("librbd's cache is on (rbd_cache_policy = {policy}) as configured in the cluster; --direct turns it off")
        })
    }

    /// Length below which librbd says that a discard is done and leaves it undone, in bytes.
    pub(crate) fn discard_bytes_min(&self) -> u64 {
        let cluster = self.context.cluster();
        let skips = cluster.setting(c"rbd_skip_partial_discard").is_none_or(|value| value == "true");
        let granularity =
            cluster.setting(c"rbd_discard_granularity_bytes").and_then(|value| value.parse().ok());
        granularity.filter(|_| skips).unwrap_or(0)
    }

    /// Version of librbd.
    pub(crate) fn version(&self) -> String {
        let mut version = [0; 3];
        let [major, minor, extra] = &mut version;
        // SAFETY: three places to write to.
        unsafe { (self.api.rbd_version)(major, minor, extra) };
        version.map(|part: c_int| part.to_string()).join(".")
    }
}

fn not_opened(name: &ImageName, code: c_int) -> Error {
    let ImageName { pool, image, namespace, snapshot, .. } = name;
    if code != -libc::ENOENT {
        return ceph::refused("the image cannot be opened", code).with("image", image);
    }
    let what = if snapshot.is_some() {
        "the image does not exist, or the snapshot does not"
    } else {
        "the image does not exist"
    };
    let space = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    Error::new(ErrorKind::Usage, "rbd", what).with("pool", pool).with("image", image).remedy(format!(
        "rbd ls {pool} lists the images; rbd create --size 10G {pool}/{space}{image} makes one"
    ))
}
