//! PMIx, as Open MPI and Slurm (`--mpi=pmix`) serve it, by the library that is there at run time. Its calls block without a limit, so a thread of
//! its own makes them. Types and values are those of PMIx 4 and 5 (`pmix_common.h`).
#![allow(unsafe_code)]
// Functions are called as the library names them.
#![allow(non_snake_case)]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use driver::foreign::ClientLibrary;
use driver::{Error, ErrorKind};

use super::channel::{Channel, TEXT_BYTES_MAX};
use super::{Launched, bad};

/// How long the farewell of all may take.
const END_WAIT: Duration = Duration::from_secs(5);
/// `PMIX_SUCCESS`.
const SUCCESS: c_int = 0;
/// `PMIX_ERR_NOT_FOUND`.
const NOT_FOUND: c_int = -46;
/// How often a text is asked for that is not there yet.
const LOOK: Duration = Duration::from_millis(20);
/// `PMIX_GLOBAL`: for ranks on all hosts.
const GLOBAL: u8 = 3;
/// `PMIX_STRING`.
const STRING: u16 = 3;
/// `PMIX_MAX_NSLEN` and the byte that ends it.
const NAMESPACE_BYTES: usize = 256;

static LIBRARY: ClientLibrary = ClientLibrary {
    layer: "launcher",
    name: "libpmix.so.2",
    variable: "STRATA_LIBPMIX",
    package: "libpmix2",
};

/// `pmix_proc_t`.
#[repr(C)]
struct Process {
    namespace: [c_char; NAMESPACE_BYTES],
    rank: u32,
}

/// `pmix_value_t`, as far as it is used: a type, and a union that begins with a pointer.
#[repr(C)]
struct Value {
    kind: u16,
    text: *mut c_char,
    /// The rest of the union, and room for one that grows.
    _rest: [u64; 6],
}

driver::foreign::functions! {
    /// Functions in use of libpmix.
    Api of LIBRARY {
        PMIx_Init: fn(*mut Process, *mut u8, usize) -> c_int;
        PMIx_Put: fn(u8, *const c_char, *mut Value) -> c_int;
        PMIx_Commit: fn() -> c_int;
        PMIx_Get: fn(*const Process, *const c_char, *const u8, usize, *mut *mut Value) -> c_int;
        PMIx_Fence: fn(*const Process, usize, *const u8, usize) -> c_int;
        PMIx_Finalize: fn(*const u8, usize) -> c_int;
        PMIx_Error_string: fn(c_int) -> *const c_char;
    }
}

/// Has PMIx keep what it knows in the process. Where it shares that with its server by files (`ds21`), a process that comes after another one of the
/// same rank has left finds nothing, and MPI, which an application may begin later than this meeting, could not begin. The user's own choice stands.
pub(crate) fn settle_environment() {
    let names = |module: &str| module == "hash";
    let serves = std::env::var("PMIX_GDS_MODULE").is_ok_and(|modules| modules.split(',').any(names));
    if serves && std::env::var_os("PMIX_MCA_gds").is_none() {
        // SAFETY: the caller has begun no other thread, which could read the environment meanwhile.
        unsafe { std::env::set_var("PMIX_MCA_gds", "hash") };
    }
}

/// Whether the library is there.
///
/// # Errors
/// What is missing.
pub(super) fn is_there() -> Result<(), Error> {
    Api::get().map(drop)
}

/// Texts that the thread has heard.
#[derive(Default)]
struct Heard {
    texts: HashMap<u32, String>,
    failure: Option<String>,
    has_ended: bool,
}

/// Way between the thread and its owner.
#[derive(Default)]
struct Shared {
    heard: Mutex<Heard>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// The key-value store of PMIx.
pub(super) struct Pmix {
    rank: u32,
    size: u32,
    shared: Arc<Shared>,
}

impl Pmix {
    pub(super) fn new(launched: &Launched) -> Self {
        Self { rank: launched.rank, size: launched.size, shared: Arc::default() }
    }
}

impl Channel for Pmix {
    fn say(&mut self, text: &str, _until: Instant) -> Result<(), Error> {
        let text = CString::new(text).map_err(|_| bad("the text has a zero byte"))?;
        let (api, rank, size, shared) = (Api::get()?, self.rank, self.size, Arc::clone(&self.shared));
        let work = move || {
            let failure = exchange(api, &text, rank, size, &shared).err();
            shared.note(|heard| (heard.failure, heard.has_ended) = (failure, true));
        };
        std::thread::Builder::new()
            .name("pmix".to_owned())
            .spawn(work)
            .map(drop)
            .map_err(|error| Error::system("launcher", "cannot start a thread", error))
    }

    fn heard(&mut self, rank: u32, _until: Instant) -> Result<Option<String>, Error> {
        let heard = self.shared.lock();
        match (heard.texts.get(&rank), &heard.failure) {
            (Some(text), _) => Ok(Some(text.clone())),
            (None, Some(failure)) => Err(Error::new(ErrorKind::Run, "launcher", failure.clone())),
            (None, None) => Ok(None),
        }
    }

    fn end(&mut self) {
        // One that is stuck is left behind: the process ends all the same.
        let waits = |heard: &mut Heard| !heard.has_ended;
        drop(self.shared.changed.wait_timeout_while(self.shared.lock(), END_WAIT, waits));
    }
}

/// Says the text of this rank, hears what it needs of the others, and takes leave together with them.
fn exchange(api: &Api, text: &CStr, rank: u32, size: u32, shared: &Shared) -> Result<(), String> {
    let told = |call: &str, status: c_int| {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: it gives a text that stands in the library, for any number.
        let why = unsafe { CStr::from_ptr((api.PMIx_Error_string)(status)) };
        Err(format!("PMIx: {call} failed: {}", why.to_string_lossy()))
    };
    let mut own = Process { namespace: [0; NAMESPACE_BYTES], rank: 0 };
    // SAFETY: `own` is a `pmix_proc_t` to be filled; no further facts are given.
    told("PMIx_Init", unsafe { (api.PMIx_Init)(&mut own, std::ptr::null_mut(), 0) })?;
    let name = key(rank);
    let mut value = Value { kind: STRING, text: text.as_ptr().cast_mut(), _rest: [0; 6] };
    // SAFETY: name and value live over the call, which copies them and does not write to the text.
    told("PMIx_Put", unsafe { (api.PMIx_Put)(GLOBAL, name.as_ptr(), &mut value) })?;
    // SAFETY: it takes nothing.
    told("PMIx_Commit", unsafe { (api.PMIx_Commit)() })?;
    // The leader hears all, the others the leader.
    let of = if rank == 0 { 1..size } else { 0..1 };
    for other in of {
        let process = Process { namespace: own.namespace, rank: other };
        let mut found: *mut Value = std::ptr::null_mut();
        loop {
            // SAFETY: the arguments live over the call, which fills `found` where it succeeds.
            let status =
                unsafe { (api.PMIx_Get)(&process, key(other).as_ptr(), std::ptr::null(), 0, &mut found) };
            // Servers wait for what the other will commit, or say that it has not yet.
            if status != NOT_FOUND {
                told("PMIx_Get", status)?;
                break;
            }
            std::thread::sleep(LOOK);
        }
        // SAFETY: a value that a call has given, which nobody else frees: it stays, a small one a rank.
        let text = unsafe { found.as_ref() }.filter(|value| value.kind == STRING && !value.text.is_null());
        let text = text.ok_or_else(|| format!("PMIx: the message of rank {other} is not valid UTF-8"))?;
        // SAFETY: PMIX_STRING is a text that ends with a zero byte.
        let text = unsafe { CStr::from_ptr(text.text) }.to_bytes();
        let text = String::from_utf8_lossy(&text[..text.len().min(TEXT_BYTES_MAX)]).into_owned();
        shared.note(|heard| drop(heard.texts.insert(other, text)));
    }
    // Nobody leaves before all have heard him.
    // SAFETY: null and 0 mean all processes of the job.
    told("PMIx_Fence", unsafe { (api.PMIx_Fence)(std::ptr::null(), 0, std::ptr::null(), 0) })?;
    // SAFETY: it takes no further facts.
    told("PMIx_Finalize", unsafe { (api.PMIx_Finalize)(std::ptr::null(), 0) })
}

fn key(rank: u32) -> CString {
    CString::new(format!("strata.rank.{rank}")).unwrap_or_default()
}
