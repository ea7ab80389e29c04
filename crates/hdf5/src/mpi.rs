//! MPI (that of Open MPI): the ranks of a launch, and agreement between them before each call that all must make.
#![allow(unsafe_code)]
// Names of C.
#![allow(non_snake_case)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::foreign::{self, ClientLibrary, LoadError};
use driver::{Error, ErrorKind};

use crate::failure::Failure;

/// `MPI_Comm`, `MPI_Op`, ...: pointers in Open MPI.
pub(crate) type Handle = *mut c_void;

const LIBRARY: ClientLibrary =
    ClientLibrary { layer: "mpi", name: "libmpi.so.40", variable: "STRATA_LIBMPI", package: "libopenmpi3" };

/// Variable in which mpirun says how many ranks it has started.
pub(crate) const SIZE_OF_LAUNCH: &str = "OMPI_COMM_WORLD_SIZE";
/// `MPI_THREAD_SERIALIZED`.
const SERIALIZED: c_int = 2;
/// How long others may stay away after the run is being stopped: launchers kill all ranks a second after one was killed.
const STOP_WAIT: Duration = Duration::from_millis(100);
/// How long a rank looks without a sleep whether the others have come.
const SPIN: Duration = Duration::from_micros(200);
/// Sleep between two looks then.
const LOOK: Duration = Duration::from_micros(50);
/// Longest wait for the others at the exit.
const EXIT_WAIT: Duration = Duration::from_secs(10);
/// Words of ranks up to this say that one makes no more calls; those of calls are larger.
pub const ENDED_MAX: u64 = (1 << 48) - 1;
const GONE: &str = "another rank failed or ended";
const APART: &str = "the ranks make different collective calls: make the same calls on all ranks, or use independent transfers";
/// `ECANCELED`.
const CANCELED: i32 = 125;

foreign::functions! {
    /// Functions of MPI in use.
    Api of LIBRARY {
        MPI_Init_thread: fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
        MPI_Comm_size: fn(Handle, *mut c_int) -> c_int;
        MPI_Comm_dup: fn(Handle, *mut Handle) -> c_int;
        MPI_Comm_set_errhandler: fn(Handle, Handle) -> c_int;
        MPI_Iallreduce: fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle, *mut Handle) -> c_int;
        MPI_Test: fn(*mut Handle, *mut c_int, *mut c_void) -> c_int;
        MPI_Finalize: fn() -> c_int;
    }
}

impl Api {
    /// Object of the library that its header makes a handle of.
    fn handle(&self, symbol: &CStr) -> Result<Handle, LoadError> {
        // SAFETY: handles are the addresses of these objects.
        unsafe { Ok(*self._library.get::<Handle>(symbol.to_bytes_with_nul())?) }
    }
}

/// The ranks of a launch, which make the same calls.
pub struct Ranks {
    api: &'static Api,
    pub(crate) world: Handle,
    pub(crate) no_info: Handle,
    /// A communicator of their agreements alone.
    own: Handle,
    number: Handle,
    most: Handle,
    /// A rank has left, or has made another call: nothing is done together any more.
    is_over: AtomicBool,
}

// SAFETY: handles of the library, which is used from one thread at a time: workers agree one after the other.
unsafe impl Send for Ranks {}
// SAFETY: as above.
unsafe impl Sync for Ranks {}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranks").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// The ranks of this process.
static READY: OnceLock<Ranks> = OnceLock::new();
/// A rank did not come to an agreement, or this one is in a call that all make: MPI cannot be left in order.
static IS_BOUND: AtomicBool = AtomicBool::new(false);

impl Ranks {
    /// Whether MPI is there, and this process is one of `count` ranks.
    ///
    /// # Errors
    /// Bad usage: no launcher of MPI has started it; a library that is missing, with its package.
    pub fn are_there(count: u32) -> Result<(), Error> {
        let size = std::env::var(SIZE_OF_LAUNCH).ok().and_then(|size| size.parse::<u32>().ok());
        if size != Some(count) {
            let what = "several hosts can share an HDF5 file only through parallel HDF5 with Open MPI, but mpirun did not start these processes";
            return Err(Error::usage("plan", what));
        }
        Api::get().map(drop)
    }

    /// The ranks, where MPI has begun.
    #[must_use]
    pub fn begun() -> Option<&'static Self> {
        READY.get()
    }

    /// Begins MPI, which all ranks must do at the same time, and a process once.
    ///
    /// # Errors
    /// Why it cannot be begun.
    pub fn begin(count: u32) -> Result<&'static Self, Error> {
        let made = Self::new(Api::get()?, count)?;
        Ok(READY.get_or_init(|| made))
    }

    fn new(api: &'static Api, count: u32) -> Result<Self, Error> {
        let failed = |what: &str| Error::new(ErrorKind::Run, "mpi", what.to_owned());
        let handle = |symbol: &CStr| api.handle(symbol).map_err(|cause| LIBRARY.lacks(&cause));
        let (world, no_info) = (handle(c"ompi_mpi_comm_world")?, handle(c"ompi_mpi_info_null")?);
        let returns = handle(c"ompi_mpi_errors_return")?;
        let (number, most) = (handle(c"ompi_mpi_uint64_t")?, handle(c"ompi_mpi_op_max")?);
        let (mut given, mut size, mut own) = (0, 0, ptr::null_mut());
        // SAFETY: no words are handed over; the result is written to a number that lives here.
        if unsafe { (api.MPI_Init_thread)(ptr::null_mut(), ptr::null_mut(), SERIALIZED, &raw mut given) } != 0
        {
            return Err(failed("cannot start MPI"));
        }
        // SAFETY: it runs at the exit, when no other thread makes calls of MPI.
        unsafe { libc::atexit(leave) };
        // SAFETY: the handles are the library's, and results are written to what lives here.
        let status = unsafe {
            (api.MPI_Comm_set_errhandler)(world, returns)
                | (api.MPI_Comm_size)(world, &raw mut size)
                | (api.MPI_Comm_dup)(world, &raw mut own)
        };
        if status != 0 || given < SERIALIZED {
            return Err(failed("cannot initialise MPI, or it supports only single-threaded calls"));
        }
        if u32::try_from(size) != Ok(count) {
            return Err(failed(&format!("MPI has {size} ranks, but the run has {count}")));
        }
        Ok(Self { api, world, no_info, own, number, most, is_over: AtomicBool::new(false) })
    }

    /// Whether nothing is done together any more.
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Waits until all ranks have said what they are about to do.
    ///
    /// # Errors
    /// When they have not all said the same, or the run is being stopped and one does not come: nothing is done together from then on.
    pub fn agree(&self, said: u64, interrupt: &AtomicBool) -> Result<(), Failure> {
        let refused = |what: &str| Failure::new(CANCELED, what.to_owned());
        if self.is_over() {
            return Err(refused(GONE));
        }
        let result = self.reduce(said, interrupt);
        match result {
            Some([most, rest]) if most == !rest => {
                IS_BOUND.store(said > ENDED_MAX, Ordering::Release);
                Ok(())
            }
            Some([_, rest]) => {
                IS_BOUND.store(false, Ordering::Release);
                self.is_over.store(true, Ordering::Release);
                Err(refused(if !rest <= ENDED_MAX { GONE } else { APART }))
            }
            None => {
                self.is_over.store(true, Ordering::Release);
                IS_BOUND.store(true, Ordering::Release);
                Err(refused("another rank does not respond"))
            }
        }
    }

    /// The largest of the numbers of all ranks, and that of their complements; none where not all came.
    fn reduce(&self, said: u64, interrupt: &AtomicBool) -> Option<[u64; 2]> {
        let mut buffers = Box::new(([said, !said], [0u64; 2]));
        let mut request: Handle = ptr::null_mut();
        // SAFETY: both buffers have two numbers and stay where they are until the request has ended; if it does not, they are left behind.
        let status = unsafe {
            let (from, into) = ((&raw const buffers.0).cast(), (&raw mut buffers.1).cast());
            (self.api.MPI_Iallreduce)(from, into, 2, self.number, self.most, self.own, &raw mut request)
        };
        if status == 0 && self.await_request(&mut request, interrupt) {
            return Some(buffers.1);
        }
        Box::leak(buffers);
        None
    }

    /// Waits for a request to end; false where the run is being stopped and it does not, or MPI refuses it.
    fn await_request(&self, request: &mut Handle, interrupt: &AtomicBool) -> bool {
        let begun = Instant::now();
        let mut stopped: Option<Instant> = None;
        loop {
            let mut is_done = 0;
            // SAFETY: the request is one of the library's; no status is asked for.
            let status = unsafe { (self.api.MPI_Test)(request, &raw mut is_done, ptr::null_mut()) };
            let is_stopped = interrupt.load(Ordering::Relaxed)
                && stopped.get_or_insert_with(Instant::now).elapsed() > STOP_WAIT;
            if status != 0 || is_done != 0 || is_stopped {
                return status == 0 && is_done != 0;
            }
            if begun.elapsed() > SPIN {
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// Leaves MPI at the exit, together with the other ranks, or after a while without them.
extern "C" fn leave() {
    if IS_BOUND.load(Ordering::Acquire) {
        return;
    }
    let Ok(api) = Api::get() else { return };
    drop(std::thread::Builder::new().spawn(|| {
        std::thread::sleep(EXIT_WAIT);
        // SAFETY: it ends the process; what it had to say is said.
        unsafe { libc::_exit(1) };
    }));
    // SAFETY: MPI was begun, and nobody uses it any more.
    unsafe { (api.MPI_Finalize)() };
}
