//! Calls outside the measured window that ask servers. libdaos itself tries again for ever where none answers, so each is made with an event and
//! given up after its time.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::Error;
use parking_lot::Mutex;

use super::abi::{Event, Handle};
use super::errors::{TIMED_OUT, failed};
use super::library::Api;

/// How long servers may take: a new leader of a pool's service is found within half of it.
const ASKING: Duration = Duration::from_secs(30);
/// How long they may take once a call or an operation of this process was not answered, and where an answer can be done without.
const BRIEF: Duration = Duration::from_secs(5);
/// Longest sleep: the interrupt is looked at after it.
const SLEEP_US: i64 = 50_000;
const EVENTS: usize = 8;

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// 30 s, or 5 s where the servers have left something unanswered before. An interrupt ends it.
    Asking,
    /// As that, and no interrupt ends it: what the run made is removed.
    Cleaning,
    /// 5 s, and no call at all where something was left unanswered before: a handle is given back, or something asked that can be done without.
    Brief,
}

/// Memory that a call reads and writes while it is in flight.
struct InFlight<T> {
    event: Event,
    place: T,
}

/// Calls on one event queue, one at a time.
pub(crate) struct Calls {
    api: &'static Api,
    queue: Mutex<Handle>,
    interrupt: Arc<AtomicBool>,
    /// Something was not answered: the library still has it.
    is_stuck: AtomicBool,
}

impl Calls {
    /// # Errors
    /// When there is no event queue.
    pub(crate) fn new(api: &'static Api, interrupt: &Arc<AtomicBool>) -> Result<Self, Error> {
        let mut queue = Handle::default();
        // SAFETY: a place for the handle.
        let code = unsafe { (api.daos_eq_create)(&raw mut queue) };
        if code != 0 {
            return Err(failed("cannot create an event queue", code));
        }
        Ok(Self {
            api,
            queue: Mutex::new(queue),
            interrupt: interrupt.clone(),
            is_stuck: AtomicBool::new(false),
        })
    }

    /// How long servers may leave everything unanswered.
    pub(crate) fn quiet(&self) -> Duration {
        if self.is_stuck.load(Ordering::Relaxed) { BRIEF } else { ASKING }
    }

    /// Notes that the servers have left an operation unanswered.
    pub(crate) fn note_stuck(&self) {
        self.is_stuck.store(true, Ordering::Relaxed);
    }

    /// Makes a call and waits for its event: `begin` gets `place`, in which everything lies that the call has addresses of, and comes back
    /// with what the library said. What is not answered in time stays allocated.
    ///
    /// # Errors
    /// The library's code; `-DER_TIMEDOUT` where no answer came in time, or the run was interrupted.
    pub(crate) fn call<T>(
        &self,
        patience: Patience,
        place: T,
        begin: impl FnOnce(&mut T, *mut Event) -> c_int,
    ) -> Result<T, c_int> {
        let is_stuck = self.is_stuck.load(Ordering::Relaxed);
        let wait = match patience {
            Patience::Brief if is_stuck => return Err(TIMED_OUT),
            Patience::Brief => BRIEF,
            Patience::Asking | Patience::Cleaning => self.quiet(),
        };
        let queue = self.queue.lock();
        let flying = Box::into_raw(Box::new(InFlight { event: Event::EMPTY, place }));
        // SAFETY: an allocation of ours, seen by the library from the call to its event, and by nobody else.
        unsafe {
            let event = &raw mut (*flying).event;
            let mut code = (self.api.daos_event_init)(event, *queue, std::ptr::null_mut());
            if code == 0 {
                code = begin(&mut (*flying).place, event);
                if code == 0 {
                    let Some(told) = self.wait(*queue, event, Instant::now() + wait, patience) else {
                        self.note_stuck();
                        return Err(TIMED_OUT);
                    };
                    code = told;
                }
                (self.api.daos_event_fini)(event);
            }
            let InFlight { place, .. } = *Box::from_raw(flying);
            if code == 0 { Ok(place) } else { Err(code) }
        }
    }

    /// The result of an event; none where it has not come.
    ///
    /// # Safety
    /// `event` is of this queue, and in flight.
    unsafe fn wait(
        &self,
        queue: Handle,
        event: *mut Event,
        deadline: Instant,
        patience: Patience,
    ) -> Option<c_int> {
        loop {
            let mut events: [*mut Event; EVENTS] = [std::ptr::null_mut(); EVENTS];
            // SAFETY: a place for so many events of our queue.
            let count =
                unsafe { (self.api.daos_eq_poll)(queue, 0, SLEEP_US, EVENTS as u32, events.as_mut_ptr()) };
            let come = usize::try_from(count).ok()?;
            if events[..come].contains(&event) {
                // SAFETY: it has come back.
                return Some(unsafe { (*event).error });
            }
            let is_cut = patience == Patience::Asking && self.interrupt.load(Ordering::Relaxed);
            if is_cut || Instant::now() >= deadline {
                return None;
            }
        }
    }

    /// Gives the queue back; false where something is in flight, and the library must be left as it is.
    pub(crate) fn end(&self) -> bool {
        if self.is_stuck.load(Ordering::Relaxed) {
            return false;
        }
        // SAFETY: nothing is in flight, and nobody calls any more.
        unsafe { (self.api.daos_eq_destroy)(*self.queue.lock(), 0) == 0 }
    }
}
