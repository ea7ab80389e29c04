//! libhdf5: where it is looked for, its functions in use, and the lock around them.
#![allow(unsafe_code)]
// Names of C.
#![allow(non_snake_case)]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use driver::foreign::{self, ClientLibrary, Library, LoadError};
use driver::{Error, ErrorKind};

use crate::failure::{Failure, Walker};
use crate::mpi::{Handle, Ranks, SIZE_OF_LAUNCH};

/// `hid_t`: an object of the library. Releases before 1.10 have one of 4 bytes.
pub(crate) type Hid = i64;

/// `H5P_DEFAULT`, `H5E_DEFAULT`.
pub(crate) const DEFAULT: Hid = 0;

/// The library as Debian names it, and where it is missing its package.
const LIBRARY: ClientLibrary = ClientLibrary {
    layer: "hdf5",
    name: "libhdf5_serial.so.103",
    variable: "STRATA_LIBHDF5",
    package: "libhdf5-103-1 (or set STRATA_LIBHDF5 to the file of another libhdf5, 1.10 or later)",
};

/// The parallel library, which ranks of MPI load.
const PARALLEL: ClientLibrary = ClientLibrary {
    name: "libhdf5_openmpi.so.103",
    package: "libhdf5-openmpi-103-1 (or set STRATA_LIBHDF5 to the file of another parallel libhdf5, 1.10 or later)",
    ..LIBRARY
};

/// Names of it in other releases.
const PARALLEL_NAMES: &[&str] = &["libhdf5_openmpi.so.310", "libhdf5_openmpi.so.200"];

/// Names of other releases and distributions, in the order in which they are tried.
const OTHER_NAMES: &[&str] = &[
    "libhdf5_serial.so.310",
    "libhdf5_serial.so.200",
    "libhdf5.so.310",
    "libhdf5.so.200",
    "libhdf5.so.103",
    "libhdf5.so",
];

/// Name of the file that was loaded.
static LOADED: OnceLock<String> = OnceLock::new();

/// [`LIBRARY`] under any of its names.
struct AnyName;

impl AnyName {
    fn open(&self) -> Result<Library, Error> {
        // One process has one library, and the parallel one does what the other does.
        let is_rank = std::env::var_os(SIZE_OF_LAUNCH).is_some();
        let parallel = is_rank.then(|| PARALLEL.open_any(PARALLEL_NAMES).ok()).flatten();
        let (library, file) = match parallel {
            Some(found) => found,
            None => LIBRARY.open_any(OTHER_NAMES)?,
        };
        LOADED.get_or_init(|| file);
        Ok(library)
    }

    fn lacks(&self, cause: &LoadError) -> Error {
        LIBRARY.lacks(cause)
    }
}

foreign::functions! {
    /// Functions of libhdf5 in use.
    Api of AnyName {
        H5dont_atexit: fn() -> c_int;
        H5open: fn() -> c_int;
        H5get_libversion: fn(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;
        H5Eset_auto2: fn(Hid, *const c_void, *mut c_void) -> c_int;
        H5Ewalk2: fn(Hid, c_int, Walker, *mut c_void) -> c_int;
        H5Pcreate: fn(Hid) -> Hid;
        H5Pset_fapl_sec2: fn(Hid) -> c_int;
        H5Fcreate: fn(*const c_char, c_uint, Hid, Hid) -> Hid;
        H5Fopen: fn(*const c_char, c_uint, Hid) -> Hid;
        H5Fflush: fn(Hid, c_int) -> c_int;
        H5Fclose: fn(Hid) -> c_int;
        H5Gcreate2: fn(Hid, *const c_char, Hid, Hid, Hid) -> Hid;
        H5Gopen2: fn(Hid, *const c_char, Hid) -> Hid;
        H5Gclose: fn(Hid) -> c_int;
        H5Dcreate2: fn(Hid, *const c_char, Hid, Hid, Hid, Hid, Hid) -> Hid;
        H5Dopen2: fn(Hid, *const c_char, Hid) -> Hid;
        H5Dget_space: fn(Hid) -> Hid;
        H5Dwrite: fn(Hid, Hid, Hid, Hid, Hid, *const c_void) -> c_int;
        H5Dread: fn(Hid, Hid, Hid, Hid, Hid, *mut c_void) -> c_int;
        H5Dclose: fn(Hid) -> c_int;
        H5Screate_simple: fn(c_int, *const u64, *const u64) -> Hid;
        H5Sset_extent_simple: fn(Hid, c_int, *const u64, *const u64) -> c_int;
        H5Sselect_hyperslab: fn(Hid, c_int, *const u64, *const u64, *const u64, *const u64) -> c_int;
        H5Sget_simple_extent_npoints: fn(Hid) -> i64;
        H5Sclose: fn(Hid) -> c_int;
    }
}

impl Api {
    /// Value of an object of the library that its headers name.
    fn value(&self, symbol: &CStr) -> Result<Hid, LoadError> {
        // SAFETY: the headers declare it as a `hid_t`, which H5open sets.
        unsafe { Ok(**self._library.get::<*const Hid>(symbol.to_bytes_with_nul())?) }
    }

    /// A function of the parallel library.
    fn parallel<T: Copy>(&self, symbol: &CStr) -> Result<T, Error> {
        // SAFETY: the type is that of the library's header.
        let found = unsafe { self._library.get::<T>(symbol.to_bytes_with_nul()) };
        found.map(|function| *function).map_err(|cause| {
            let missing = format!("{} is missing: install {}", PARALLEL.name, PARALLEL.package);
            Error::new(ErrorKind::Unsupported, "hdf5", missing).with("cause", cause)
        })
    }
}

/// `H5Pset_fapl_mpio` of Open MPI.
type SetAccess = unsafe extern "C" fn(Hid, Handle, Handle) -> c_int;
/// `H5Pset_dxpl_mpio`.
type SetTransfer = unsafe extern "C" fn(Hid, c_int) -> c_int;

/// A way to files: alone, or together with other ranks.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub(crate) library: &'static Hdf5,
    pub(crate) access: Hid,
    pub(crate) transfer: Hid,
    /// Other ranks have the files open too.
    pub(crate) is_together: bool,
}

/// libhdf5, ready for calls.
pub struct Hdf5 {
    api: &'static Api,
    version: (u32, u32, u32),
    /// Access to files by system calls, whatever `HDF5_DRIVER` says.
    access: Hid,
    /// Types of elements, in the order of [`crate::ElementType`].
    pub(crate) types: [Hid; 6],
}

impl fmt::Debug for Hdf5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hdf5").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Serialises all calls of the library.
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// The library has been told not to print errors of this thread.
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
}

/// The library, while no other thread is in it.
pub(crate) struct Locked {
    pub(crate) api: &'static Api,
    _turn: MutexGuard<'static, ()>,
}

impl Locked {
    fn new(api: &'static Api) -> Self {
        let locked = Self { api, _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner) };
        if !IS_SILENT.replace(true) {
            // SAFETY: no function means that errors are not printed.
            unsafe { (api.H5Eset_auto2)(DEFAULT, ptr::null(), ptr::null_mut()) };
        }
        locked
    }

    /// The result of a function, or the cause of its failure.
    #[inline]
    pub(crate) fn checked<T: PartialOrd + Default + Copy>(
        &self,
        call: &'static str,
        result: T,
    ) -> Result<T, Failure> {
        if result >= T::default() { Ok(result) } else { Err(Failure::of(self.api, call)) }
    }
}

impl Hdf5 {
    /// The library; loaded by the first who asks.
    ///
    /// # Errors
    /// When it cannot be loaded or is too old: one line that names the package.
    pub fn get() -> Result<&'static Self, Error> {
        static READY: OnceLock<Hdf5> = OnceLock::new();
        if let Some(ready) = READY.get() {
            return Ok(ready);
        }
        let made = Self::new(Api::get()?)?;
        Ok(READY.get_or_init(|| made))
    }

    fn new(api: &'static Api) -> Result<Self, Error> {
        let (mut major, mut minor, mut release) = (0, 0, 0);
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // Files are closed by those who open them; at the exit, one that failed to close would be tried again.
        // SAFETY: the function takes nothing, and is called before the library sets itself up.
        unsafe { (api.H5dont_atexit)() };
        // SAFETY: the function fills the three numbers, in every release.
        unsafe { (api.H5get_libversion)(&raw mut major, &raw mut minor, &raw mut release) };
        drop(turn);
        let version = (major, minor, release);
        if version < (1, 10, 0) {
            let message = format!("libhdf5 {major}.{minor}.{release} is older than 1.10");
            return Err(Error::new(ErrorKind::Unsupported, "hdf5", message)
                .remedy(format!("install {}", LIBRARY.package)));
        }
        let failed = || Error::new(ErrorKind::Unsupported, "hdf5", "cannot initialise libhdf5");
        let locked = Locked::new(api);
        // SAFETY: the function takes nothing, and this thread alone is in the library.
        if unsafe { (api.H5open)() } < 0 {
            return Err(failed());
        }
        let value = |symbol: &CStr| api.value(symbol).map_err(|cause| LIBRARY.lacks(&cause));
        // SAFETY: the class is the library's own.
        let access = unsafe { (api.H5Pcreate)(value(c"H5P_CLS_FILE_ACCESS_ID_g")?) };
        // SAFETY: the list was made just now; where it was not, the call fails.
        if unsafe { (api.H5Pset_fapl_sec2)(access) } < 0 {
            return Err(failed());
        }
        drop(locked);
        let types = [
            value(c"H5T_IEEE_F32LE_g")?,
            value(c"H5T_IEEE_F64LE_g")?,
            value(c"H5T_STD_I32LE_g")?,
            value(c"H5T_STD_I64LE_g")?,
            value(c"H5T_STD_U8LE_g")?,
            value(c"H5T_STD_U64LE_g")?,
        ];
        Ok(Self { api, version, access, types })
    }

    /// Version of the library.
    #[must_use]
    pub fn version(&self) -> String {
        let (major, minor, release) = self.version;
        format!("{major}.{minor}.{release}")
    }

    /// Name of the file that it was loaded from.
    #[must_use]
    pub fn file(&self) -> &str {
        LOADED.get().map_or(LIBRARY.name, String::as_str)
    }

    /// The way to files of this process alone.
    #[must_use]
    pub fn alone(&'static self) -> Way {
        Way { library: self, access: self.access, transfer: DEFAULT, is_together: false }
    }

    /// Whether it is a parallel one.
    ///
    /// # Errors
    /// Where it is none: one line that names the package.
    pub fn check_parallel(&self) -> Result<(), Error> {
        self.api.parallel::<SetAccess>(c"H5Pset_fapl_mpio").map(drop)
    }

    /// The way to files that all ranks have open, with transfers that they make together or each by itself.
    ///
    /// # Errors
    /// A library that is not parallel, and what it refuses.
    pub fn together(&'static self, ranks: &Ranks, is_collective: bool) -> Result<Way, Error> {
        let failed = || Error::new(ErrorKind::Run, "hdf5", "libhdf5 rejects the MPI communicator");
        let value = |symbol: &CStr| self.api.value(symbol).map_err(|cause| LIBRARY.lacks(&cause));
        let set_access: SetAccess = self.api.parallel(c"H5Pset_fapl_mpio")?;
        let set_transfer: SetTransfer = self.api.parallel(c"H5Pset_dxpl_mpio")?;
        let (accesses, transfers) =
            (value(c"H5P_CLS_FILE_ACCESS_ID_g")?, value(c"H5P_CLS_DATASET_XFER_ID_g")?);
        let locked = self.lock();
        // SAFETY: the classes are the library's; lists that were not made are refused by the calls on them.
        unsafe {
            let (access, transfer) = ((locked.api.H5Pcreate)(accesses), (locked.api.H5Pcreate)(transfers));
            let is_set = set_access(access, ranks.world, ranks.no_info) >= 0
                && set_transfer(transfer, c_int::from(is_collective)) >= 0;
            if is_set {
                Ok(Way { library: self, access, transfer, is_together: true })
            } else {
                Err(failed())
            }
        }
    }

    /// Waits until no other thread is in the library.
    #[inline]
    pub(crate) fn lock(&self) -> Locked {
        Locked::new(self.api)
    }
}
