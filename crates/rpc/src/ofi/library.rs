//! libfabric, loaded at run time.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use driver::{Error, ErrorKind};
use libloading::Library;

use super::abi::{API_VERSION, FI_ERRNO_OFFSET, FI_ETRUNC, FiFabricAttr, FiInfo, FidFabric};

/// Names of the library, the newest first.
const NAMES: [&str; 2] = ["libfabric.so.1", "libfabric.so"];
/// Signals whose handlers the shm provider replaces when it is loaded (it removes its files and then calls the former handler,
/// but only once). The process keeps its own: its endpoints are closed on every way out that a handler could catch.
const SIGNALS: [c_int; 4] = [libc::SIGBUS, libc::SIGSEGV, libc::SIGTERM, libc::SIGINT];

type GetInfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const FiInfo, *mut *mut FiInfo) -> c_int;

/// Functions that the library exports.
pub(super) struct Api {
    getinfo: GetInfo,
    freeinfo: unsafe extern "C" fn(*mut FiInfo),
    dupinfo: unsafe extern "C" fn(*const FiInfo) -> *mut FiInfo,
    fabric: unsafe extern "C" fn(*mut FiFabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: u32,
    /// Keeps the functions where they are.
    _library: Library,
}

static API: OnceLock<Result<Api, String>> = OnceLock::new();

/// The library; loaded by the first who asks.
///
/// # Errors
/// When it cannot be loaded: one line that names the package.
pub(super) fn api() -> Result<&'static Api, Error> {
    API.get_or_init(|| with_own_signals(load)).as_ref().map_err(|cause| {
        Error::new(ErrorKind::Unsupported, "libfabric", format!("cannot load {}", NAMES[0]))
            .with("cause", cause)
            .remedy("install it (Debian: libfabric1), or use tcp://, which does not need it")
    })
}

fn load() -> Result<Api, String> {
    let mut failure = String::new();
    for name in NAMES {
        // SAFETY: loading runs the library's constructors, which only set up its own tables.
        match unsafe { Library::new(name) } {
            Ok(library) => return symbols(library).map_err(|error| error.to_string()),
            Err(error) if failure.is_empty() => failure = error.to_string(),
            Err(_) => {}
        }
    }
    Err(failure)
}

fn symbols(library: Library) -> Result<Api, libloading::Error> {
    // SAFETY: the types are those of rdma/fabric.h. A symbol without a version is the newest of its name, whose structures
    // begin with those of 1.17.
    unsafe {
        let version: unsafe extern "C" fn() -> u32 = *library.get(b"fi_version\0")?;
        Ok(Api {
            getinfo: *library.get(b"fi_getinfo\0")?,
            freeinfo: *library.get(b"fi_freeinfo\0")?,
            dupinfo: *library.get(b"fi_dupinfo\0")?,
            fabric: *library.get(b"fi_fabric\0")?,
            strerror: *library.get(b"fi_strerror\0")?,
            version: version(),
            _library: library,
        })
    }
}

/// Runs `work`, and puts the process's handlers of [`SIGNALS`] back if it replaced them.
fn with_own_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: an all-zero sigaction is valid, and sigaction(2) only fills it.
    let own = SIGNALS.map(|signal| unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action);
        action
    });
    let result = work();
    for (signal, action) in SIGNALS.into_iter().zip(&own) {
        // SAFETY: the action is what the kernel told before.
        unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
    }
    result
}

/// A list of what the library offers, freed when dropped.
pub(super) struct InfoList {
    api: &'static Api,
    first: *mut FiInfo,
}

impl Drop for InfoList {
    fn drop(&mut self) {
        // SAFETY: it came from the library and is freed once.
        unsafe { (self.api.freeinfo)(self.first) };
    }
}

// SAFETY: plain memory that nobody else knows.
unsafe impl Send for InfoList {}
// SAFETY: as for Send; nothing is written after it was made.
unsafe impl Sync for InfoList {}

impl InfoList {
    /// The entries. They live as long as the list.
    pub(super) fn iter(&self) -> impl Iterator<Item = &FiInfo> {
        let mut next = self.first;
        std::iter::from_fn(move || {
            // SAFETY: null, or an entry of the list, which lives as long as self.
            let entry = unsafe { next.as_ref() }?;
            next = entry.next;
            Some(entry)
        })
    }

    /// The first entry, to be filled as hints.
    pub(super) fn first_mut(&mut self) -> &mut FiInfo {
        // SAFETY: never null: lists are made of successful calls only; exclusive by &mut self.
        unsafe { &mut *self.first }
    }
}

impl Api {
    /// Version of the library: major, minor.
    pub(super) fn version(&self) -> (u32, u32) {
        (self.version >> 16, self.version & 0xffff)
    }

    /// An empty entry, for hints.
    pub(super) fn hints(&'static self) -> Result<InfoList, Error> {
        // SAFETY: null asks for an empty entry with all its parts.
        let first = unsafe { (self.dupinfo)(std::ptr::null()) };
        if first.is_null() {
            return Err(self.error("out of memory", -libc::ENOMEM));
        }
        Ok(InfoList { api: self, first })
    }

    /// One entry alone.
    pub(super) fn copy(&'static self, info: &FiInfo) -> Result<InfoList, Error> {
        // SAFETY: the entry is one of the library's.
        let first = unsafe { (self.dupinfo)(info) };
        if first.is_null() {
            return Err(self.error("out of memory", -libc::ENOMEM));
        }
        Ok(InfoList { api: self, first })
    }

    /// Offers of the library for the hints; a negated error number when there are none.
    pub(super) fn info(&'static self, hints: &FiInfo) -> Result<InfoList, c_int> {
        let mut first = std::ptr::null_mut();
        let version = API_VERSION.min(self.version);
        // SAFETY: hints is an entry of the library's own making; the result is taken only when the call succeeds.
        let result = with_own_signals(|| unsafe {
            (self.getinfo)(version, std::ptr::null(), std::ptr::null(), 0, hints, &raw mut first)
        });
        if result != 0 || first.is_null() { Err(result) } else { Ok(InfoList { api: self, first }) }
    }

    /// Opens a fabric. It is never closed: all ports of the process share it.
    pub(super) fn open_fabric(&self, attributes: *mut FiFabricAttr) -> Result<*mut FidFabric, Error> {
        let mut fabric = std::ptr::null_mut();
        // SAFETY: the attributes are those of an entry that the library returned.
        let result = unsafe { (self.fabric)(attributes, &raw mut fabric, std::ptr::null_mut()) };
        if result == 0 { Ok(fabric) } else { Err(self.error("cannot open the fabric", result)) }
    }

    /// The library's words for an error number of either sign.
    pub(super) fn text(&self, number: c_int) -> String {
        // SAFETY: it returns a static text for every number.
        let text = unsafe { (self.strerror)(number.wrapping_abs()) };
        if text.is_null() {
            return format!("error {number}");
        }
        // SAFETY: as above, terminated.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// An error of a call.
    pub(super) fn error(&self, message: &str, number: c_int) -> Error {
        let number = number.wrapping_abs();
        if number < FI_ERRNO_OFFSET {
            Error::system("libfabric", message, std::io::Error::from_raw_os_error(number))
        } else {
            Error::new(ErrorKind::System, "libfabric", message).with("cause", self.text(number))
        }
    }
}

/// The errno for an error number of libfabric.
pub(super) fn errno(number: c_int) -> i32 {
    match number.wrapping_abs() {
        0 => libc::EIO,
        FI_ETRUNC => libc::EMSGSIZE,
        super::abi::FI_ENOKEY => libc::EACCES,
        number if number >= FI_ERRNO_OFFSET => libc::EIO,
        number => number,
    }
}

/// A C text; empty when null.
pub(super) fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the library's texts are terminated and live as long as their entry.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
